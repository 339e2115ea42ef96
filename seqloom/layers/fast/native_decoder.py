"""A whole decoder as one call of C a step: tokens in, the likeliest next ones out. See `native/decoder.h`.

`steps.py` gives a search all logits and a new state at every step. Where a search asks for nothing but the likeliest
tokens, and all parts of a model are known here, a step is one call: embedding, positions, layers, the product onto the
vocabulary, the softmax and the choice. Caches are written in place. Rows that go on from one another copy numbers of
rows, not what those have read.
"""

from collections.abc import Callable, Sequence
from ctypes import Structure, addressof, byref, c_double, c_long, c_void_p
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..cache import Cache
from ..quantization import eight_bits
from ..state import State
from . import native_kernels, native_steps
from .native_kernels import can_use
from .native_stack import EACH, GATES, LSTM, MEMORY, NORM, OWN, Block, LayerPlaces, LinearPlaces
from .native_steps import Norm

Integers = NDArray[np.int64]
LEAST = 64  # steps that there is room for at first, if so many are asked for
MOST = 64  # so many tokens are quicker found by inserting than by sorting


@dataclass(frozen=True)
class PositionTable:
    """Vectors that are added by position. `table` has those up to the furthest; none where there are not as many, and
    then `refuse` says why."""

    table: Callable[[int, Tensor], Tensor | None]
    refuse: Callable[[Tensor, State], object]


Part = Block | Norm | PositionTable
Path = tuple[int, ...]  # where the state of a part is in that of the decoder
Parts = list[tuple[Part, Path]]


class Lookup(NamedTuple):
    """A vector for each token, and what it is multiplied by."""

    table: Tensor
    scale: float


class Answer(NamedTuple):
    """The product onto the vocabulary, and the tokens that have no probability whatever it says."""

    linear: nn.Linear
    impossible: Tensor


class LinesPlaces(Structure):
    _fields_ = [
        *((name, c_long) for name in ("rows", "per")),
        *((name, c_void_p) for name in ("sources", "origin")),
        ("origin_stride", c_long),
    ]


class DecoderPlaces(Structure):
    _fields_ = [
        *((name, c_long) for name in ("count", "size", "length")),
        *((name, c_void_p) for name in ("layers", "table")),
        ("scale", c_double),
        *((name, c_void_p) for name in ("positions", "rate")),
        ("pairs", c_long),
        ("head", LinearPlaces),
        *((name, c_void_p) for name in ("impossible", "banned")),
        *((name, c_long) for name in ("impossible_count", "banned_count")),
        ("lines", LinesPlaces),
        ("places", c_void_p),
        *((name, c_void_p) for name in ("x", "wide", "other", "normal", "room", "sines", "cosines", "logits")),
    ]


class Decoder:
    """What stays the same from search to search. Made of parts that `decoder_of` has looked at."""

    def __init__(self, lookup: Lookup, parts: Parts, answer: Answer) -> None:
        self.lookup, self.answer = lookup, answer
        self.table = lookup.table.detach().contiguous()
        self.dtype, self.size = self.table.dtype, self.table.shape[1]
        self.counting = [path for part, path in parts if isinstance(part, PositionTable)]  # states that count elements
        self.tables = [part for part, _ in parts if isinstance(part, PositionTable)]
        self.layers = [(part, path) for part, path in parts if not isinstance(part, PositionTable)]
        self.places: Any = (LayerPlaces * len(self.layers))()
        self.alive: list[Any] = []
        for place, (part, _) in zip(self.places, self.layers, strict=True):
            if isinstance(part, Norm):
                place.kind, place.norm_scale, place.norm_shift = NORM, part.scale.data_ptr(), part.shift.data_ptr()
                place.centered, place.epsilon = part.centered, part.epsilon
                self.alive.append(part)
            else:
                self.alive.append(part.fill(place))
                place.window = part.window
        blocks = [part for part, _ in self.layers if isinstance(part, Block)]
        self.widest = max([self.size, *(block.widest for block in blocks)])
        rates = [block.rate for block in blocks if block.rate is not None]
        self.rate = rates[0].contiguous() if rates else None
        numbered = [(number, part, path) for number, (part, path) in enumerate(self.layers) if isinstance(part, Block)]
        self.turning = [number for number, part, _ in numbered if part.rate is not None]
        self.counting += [(*path, 1) for _, part, path in numbered if part.rate is not None]
        strides = [(number, part.kind, path, stride_of(part)) for number, part, path in numbered]
        self.own = [(number, stride) for number, kind, _, stride in strides if kind == OWN]
        self.caches = [(*path, 0) for _, kind, path, _ in strides if kind == OWN]
        self.memories = [(number, stride, path) for number, kind, path, stride in strides if kind == MEMORY]
        self.cells = [
            (number, part.out.in_features, (*path, entry))
            for number, part, path in numbered
            if part.kind in GATES
            for entry in range(2 if part.kind == LSTM else 1)
        ]
        self.windowed = any(part.window for _, part, _ in numbered)
        linear = answer.linear
        layout = native_steps.get_layout(linear.weight, linear.bias, eight_bits.get())
        self.alive.append(layout)
        pointers = [one.data_ptr() for one in layout] + [None] * (4 - len(layout))
        self.head = LinearPlaces(*pointers, linear.in_features, linear.out_features)
        self.vocabulary = linear.out_features
        self.impossible = answer.impossible.contiguous()
        self.act = find_step(self.dtype)
        self.positions: Tensor | None = None  # the longest table of them that was asked for

    def begin(self, last: Tensor, state: State, rows: int, best: int, banned: Sequence[int]) -> "Decoding | None":
        """A search from this state, of up to so many rows at a time, that asks for so many tokens a row. None where
        the state, or what is asked for, is nothing that C knows."""
        first = last.numpy() if last.device.type == "cpu" else np.full(1, -1)
        known = last.dtype == torch.long and first.min(initial=0) >= 0 and first.max(initial=0) < self.table.shape[0]
        allowed = all(0 <= token < self.vocabulary for token in banned)
        if not known or not allowed or not 0 < best <= min(MOST, self.vocabulary) or torch.is_grad_enabled():
            return None
        caches = [find(state, path) for path in self.caches]
        if len({cache.length for cache in caches}) > 1 or (self.windowed and any(cache.padded for cache in caches)):
            return None
        counts = [find(state, path) for path in self.counting]
        if any(not torch.equal(count, counts[0]) for count in counts[1:]):
            return None
        if any(find(state, path).width != 1 for *_, path in self.memories):
            return None
        return Decoding(self, state, last.shape[0], rows, best, banned, caches, counts)


def decoder_of(lookup: Lookup | None, parts: Parts | None, answer: Answer | None) -> Decoder | None:
    """None where a part is not known, or does not fit its neighbors."""
    if lookup is None or parts is None or answer is None or type(answer.linear) is not nn.Linear:
        return None
    blocks = [part for part, _ in parts if isinstance(part, Block)]
    rates = {None if one.rate is None else tuple(one.rate.tolist()) for one in blocks if one.kind == OWN}
    weights = [lookup.table, answer.linear.weight, *(block.into.weight for block in blocks)]
    tables = [place for place, (part, _) in enumerate(parts) if isinstance(part, PositionTable)]
    fits = (
        len({weight.dtype for weight in weights}) == 1
        and all(can_use(weight) for weight in weights)
        and all(block.kind in (OWN, MEMORY, EACH, *GATES) for block in blocks)
        and follow_sizes(lookup.table.shape[1], [part for part, _ in parts]) == answer.linear.in_features
        and tables in ([], [0])  # positions are added to what the embedding gives
        and len(rates) <= 1
    )
    return Decoder(lookup, parts, answer) if fits else None


def follow_sizes(size: int, parts: Sequence[Part]) -> int:
    """How wide what goes through the parts is behind them; -1 where one does not fit the one before it."""
    for part in parts:
        inside = part.scale.shape[0] if isinstance(part, Norm) else size
        if isinstance(part, Block):
            inside = part.into.in_features
        if inside != size:
            return -1
        if isinstance(part, Block):
            size = part.out.in_features if part.kind in GATES else part.out.out_features
    return size


def stride_of(block: Block) -> int:
    return 0 if block.attend is None else block.attend.key_value_size


def find(state: State, path: Path) -> Any:
    for place in path:
        state = state[place]
    return state


class Decoding:
    """The rows of one search. What it hands out stands in room that the next step writes to."""

    def __init__(
        self,
        decoder: Decoder,
        state: State,
        sources: int,
        rows: int,
        count: int,
        banned: Sequence[int],
        caches: Sequence[Cache],
        counts: Sequence[Tensor],
    ) -> None:
        self.decoder, self.rows = decoder, sources
        self.length = caches[0].length if caches else 0
        self.kept = [cache.store.steps for cache in caches]  # of each layer, (rows, room, D)
        padded = next((cache for cache in caches if cache.padded), None)
        self.valid = None if padded is None else padded.read()[1]  # (sources, room), if not everything is
        self.origin: NDArray[np.int32] = np.arange(rows, dtype=np.int32)[:, None].repeat(self.length, 1)
        self.layers: Any = type(decoder.places).from_buffer_copy(decoder.places)
        self.last, self.places = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self.sources = np.arange(rows, dtype=np.int32)
        if counts:
            self.places[:sources] = counts[0].numpy()
        self.banned = np.array(sorted(set(banned)), np.int64)
        real = np.float32 if decoder.dtype == torch.float32 else np.float64
        self.values: NDArray[Any] = np.empty((rows, count), real)
        self.tokens: Integers = np.empty((rows, count), np.int64)
        self.here = self.point_to_room(rows)
        self.memories = self.point_to_memories(state)
        self.entries = self.point_to_entries(state, rows)
        self.capacity, self.furthest = 0, int(self.places.max(initial=0))
        self.positions: Tensor | None = None
        results = self.values.ctypes.data, self.tokens.ctypes.data
        self.arguments = byref(self.here), self.last.ctypes.data, count, *results

    def point_to_room(self, rows: int) -> DecoderPlaces:
        """For what stands between the layers, of so many rows, and for everything else that stays where it is."""
        decoder, here = self.decoder, DecoderPlaces()
        pairs = 0 if decoder.rate is None else decoder.rate.numel()
        sizes = dict.fromkeys(("x", "normal", "wide", "other"), decoder.widest)
        sizes |= {"room": decoder.widest // 4 + 2, "sines": pairs, "cosines": pairs, "logits": decoder.vocabulary}
        self.room = torch.empty(rows * sum(sizes.values()), dtype=decoder.dtype)
        place = self.room.data_ptr()
        for name, size in sizes.items():
            setattr(here, name, place)
            place += rows * size * self.room.itemsize
        here.count, here.size, here.length = len(self.layers), decoder.size, self.length
        here.layers, here.head, here.places = addressof(self.layers), decoder.head, self.places.ctypes.data
        here.table, here.scale = decoder.table.data_ptr(), decoder.lookup.scale
        here.impossible, here.impossible_count = decoder.impossible.data_ptr(), decoder.impossible.shape[0]
        here.banned, here.banned_count = self.banned.ctypes.data, len(self.banned)
        here.lines = LinesPlaces(self.rows, 1, self.sources.ctypes.data, None, 0)
        if decoder.rate is not None:
            here.rate, here.pairs = decoder.rate.data_ptr(), pairs
        for number in decoder.turning:
            self.layers[number].sines, self.layers[number].cosines = here.sines, here.cosines
        return here

    def point_to_memories(self, state: State) -> list[tuple[Tensor, Tensor]]:
        """What has to stay alive for it."""
        alive = []
        for number, stride, path in self.decoder.memories:
            memory, place = find(state, path), self.layers[number]
            keys_values, mask = memory.tensors
            sources, length, _ = keys_values.shape
            native_steps.check_sharing(self.rows, 1, sources)
            keys_values = native_steps.make_whole(keys_values, (sources, length, stride), self.decoder.dtype)
            mask = native_steps.check_mask(mask, sources, length)
            place.steps, place.source_stride, place.length = keys_values.data_ptr(), keys_values.stride(0), length
            place.valid, place.valid_stride = mask.data_ptr(), mask.stride(0)
            alive.append((keys_values, mask))
        return alive

    def point_to_entries(self, state: State, rows: int) -> list[Tensor]:
        """Of the cells: the search goes on with its own."""
        entries = []
        for number, size, path in self.decoder.cells:
            before, entry = find(state, path), torch.empty(rows, size, dtype=self.decoder.dtype)
            entry[: self.rows] = native_steps.make_whole(before, (self.rows, size), self.decoder.dtype)
            setattr(self.layers[number], "cells" if path[-1] else "steps", entry.data_ptr())
            entries.append(entry)
        return entries

    def advance(self, last: Integers) -> tuple[NDArray[Any], Integers]:
        """Read the last token of each row; the log-probabilities (N, wanted) of the likeliest next ones, and which they
        are. They stand where the next step will write its own."""
        self.prepare_steps()
        self.last[: self.rows] = last
        self.decoder.act(*self.arguments)
        self.length, self.furthest = self.length + 1, self.furthest + 1
        return self.values[: self.rows], self.tokens[: self.rows]

    def write(self, last: Integers, steps: int, end: int | None) -> list[tuple[list[int], list[float]]]:
        """Go on with the likeliest token until each row ends, or so many steps are made: its tokens, and their
        log-probabilities. A row also ends where no token is likely. For searches that ask for one token a step."""
        rows = self.rows
        counts, names = np.zeros(rows, np.int64), np.arange(rows, dtype=np.int32)
        written, logs = np.zeros((rows, steps), np.int64), np.zeros((rows, steps), self.values.dtype)
        self.last[:rows] = last
        here, last_place, _, *results = self.arguments
        outside = (one.ctypes.data for one in (names, counts))
        about = (*outside, steps, written.ctypes.data, logs.ctypes.data, *results)
        act, never = find_loop(self.decoder.dtype), -1 if end is None else end
        done = 0
        while done < steps and self.here.lines.rows:
            now = min(steps - done, LEAST, self.prepare_steps())  # so that a person can interrupt it
            act(here, last_place, now, never, *about)
            done, self.length = done + now, self.here.length
            self.rows = self.here.lines.rows
            self.furthest = int(self.places[: self.rows].max(initial=0))
        pairs = zip(written, logs, counts.tolist(), strict=True)
        return [(tokens[:count].tolist(), values[:count].tolist()) for tokens, values, count in pairs]

    def prepare_steps(self) -> int:
        """See to it that there is room for at least one step more, and a position: for how many there is now."""
        if self.length >= self.capacity:
            self.make_room()
        if not self.decoder.tables:
            return self.capacity - self.length
        if self.positions is None or self.furthest >= self.positions.shape[0]:
            self.positions = self.tabulate_positions()
            self.here.positions = self.positions.data_ptr()
        return min(self.capacity - self.length, self.positions.shape[0] - self.furthest)

    def make_room(self) -> None:
        """For as many steps again. What was read before moves along."""
        rows, length = len(self.last), self.length
        self.capacity = room = length + max(length, LEAST)
        before, self.origin = self.origin, np.zeros((rows, room), np.int32)
        self.origin[:, :length] = before[:, :length]
        self.here.lines.origin, self.here.lines.origin_stride = self.origin.ctypes.data, room
        if self.valid is not None:
            self.valid = nn.functional.pad(self.valid[:, :length], (0, room - length), value=True).contiguous()
        for place, (number, stride) in enumerate(self.decoder.own):
            read, layer = self.kept[place], self.layers[number]
            steps = self.kept[place] = torch.empty(rows, room, stride, dtype=self.decoder.dtype)
            if length:
                steps[: read.shape[0], :length] = read[:, :length]
            layer.steps, layer.source_stride = steps.data_ptr(), steps.stride(0)
            if self.valid is not None:
                layer.valid, layer.valid_stride = self.valid.data_ptr(), self.valid.stride(0)

    def tabulate_positions(self) -> Tensor:
        """Those up to the furthest that any row stands at; where there are none, the layer says why."""
        decoder = self.decoder
        if decoder.positions is not None and self.furthest < decoder.positions.shape[0]:
            return decoder.positions  # of a search before
        [part] = decoder.tables
        x = decoder.table[:1].expand(self.rows, -1)
        table = part.table(self.furthest, x)
        if table is None:
            part.refuse(x, torch.from_numpy(self.places[: self.rows].copy()))
            raise ValueError(f"there is no position {self.furthest}")
        decoder.positions = native_steps.make_whole(table.detach(), tuple(table.shape), decoder.dtype)
        return decoder.positions

    def select(self, rows: Integers) -> None:
        """Go on from these rows, in this order."""
        count = len(rows)
        self.origin[:count] = self.origin[rows]
        self.sources[:count], self.places[:count] = self.sources[rows], self.places[rows]
        if self.entries:
            kept = torch.from_numpy(rows)
            for entry in self.entries:
                entry[:count] = entry.index_select(0, kept)
        self.rows = self.here.lines.rows = count
        self.furthest = int(self.places[:count].max(initial=0))

    def repeat(self, times: int) -> None:
        """Put so many copies of each row side by side."""
        self.select(np.arange(self.rows).repeat(times))


@cache
def find_step(dtype: torch.dtype) -> Any:
    kernel: Any = native_kernels.symbol("decode", dtype)
    kernel.argtypes, kernel.restype = [c_void_p, c_void_p, c_long, c_void_p, c_void_p], None
    return kernel


@cache
def find_loop(dtype: torch.dtype) -> Any:
    kernel: Any = native_kernels.symbol("write", dtype)
    arguments = [c_void_p, c_void_p, c_long, c_long, c_void_p, c_void_p, c_long, *[c_void_p] * 4]
    kernel.argtypes, kernel.restype = arguments, None
    return kernel
