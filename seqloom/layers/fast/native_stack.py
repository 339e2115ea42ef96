"""Layers of a Transformer, one after another, as one call of C: see `run` in `native/layers.h`.

What `steps.py` does with each layer by itself, this does with as many in a row as are a `Block`. Between two steps only
the places of caches change.
"""

from collections.abc import Sequence
from copy import copy
from ctypes import Structure, byref, c_double, c_long, c_void_p
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..cache import Cache, find_visible
from ..quantization import eight_bits
from ..state import SharedLeaf, State
from . import native_kernels, native_steps
from .native_kernels import can_use

if TYPE_CHECKING:
    from ..attention import MultiHeadAttention

# Attention over a cache, over a memory, none, over the whole sequence; a norm alone; cells.
OWN, MEMORY, EACH, WHOLE, NORM, LSTM, GRU = range(7)
GATES = {LSTM: 4, GRU: 3}  # products of a cell
POST, PRE, REZERO = range(3)  # how a layer's change is joined to what it read
RELU, GELU, SWIGLU = range(3)


class LinearPlaces(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("weights", "scale", "bias", "totals")),
        *((name, c_long) for name in ("inputs", "outputs")),
    ]


class LayerPlaces(Structure):
    _fields_ = [
        *((name, c_long) for name in ("kind", "join", "act")),
        *((name, LinearPlaces) for name in ("into", "out")),
        *((name, c_void_p) for name in ("norm_scale", "norm_shift", "share")),
        ("centered", c_long),
        ("epsilon", c_double),
        *((name, c_long) for name in ("heads", "width", "value_width")),
        ("steps", c_void_p),
        *((name, c_long) for name in ("source_stride", "first", "length", "valid_stride", "per", "window")),
        *((name, c_void_p) for name in ("valid", "cells", "sines", "cosines")),
    ]


@dataclass(frozen=True)
class Block:
    """Two products with attention or an activation between them, as C knows them, and the way around them."""

    kind: int
    into: nn.Linear
    out: nn.Linear
    activation: int = 0
    attend: "MultiHeadAttention | None" = None
    rate: Tensor | None = None  # of the turn of queries and keys
    window: int = 0
    join: int | None = None  # none: it only stands inside of one that has a way around
    norm: native_steps.Norm | None = None
    share: Tensor | None = None

    def fill(self, place: Any) -> list[Any]:
        """Write down what stays the same; what has to stay alive for it."""
        alive: list[Any] = []
        place.kind, place.join, place.act = self.kind, self.join or 0, self.activation
        for name, linear in (("into", self.into), ("out", self.out)):
            layout = native_steps.get_layout(linear.weight, linear.bias, eight_bits.get())
            alive.append(layout)
            pointers = [one.data_ptr() for one in layout] + [None] * (4 - len(layout))
            setattr(place, name, LinearPlaces(*pointers, linear.in_features, linear.out_features))
        if self.share is not None:
            place.share = self.share.data_ptr()
        if self.norm is not None:
            alive.append(self.norm)
            place.norm_scale, place.norm_shift = self.norm.scale.data_ptr(), self.norm.shift.data_ptr()
            place.centered, place.epsilon = self.norm.centered, self.norm.epsilon
        if self.attend is not None:
            (place.heads, place.width, place.value_width), *_ = native_steps.shape(self.attend)
        return alive

    @property
    def fits(self) -> bool:
        """Whether what stands between the products is as wide as C will take it to be."""
        if self.kind in GATES:
            return self.into.out_features == self.out.out_features == GATES[self.kind] * self.out.in_features
        if self.attend is None:
            return self.into.out_features == self.out.in_features * (2 if self.activation == SWIGLU else 1)
        (heads, width, value_width), query_size, seen_size = native_steps.shape(self.attend)
        beside = 0 if self.kind == MEMORY else self.attend.key_value_size
        turns = self.rate is None or self.rate.numel() == width // 2
        same = (
            self.into.out_features == query_size + beside and self.out.in_features == seen_size == heads * value_width
        )
        return same and turns

    @property
    def widest(self) -> int:
        return max(size for one in (self.into, self.out) for size in (one.in_features, one.out_features))


def make_block(kind: int, into: nn.Module, out: nn.Module, **options: Any) -> Block | None:
    """None where the products are not plain ones, or native code is not to compute them."""
    if type(into) is not nn.Linear or type(out) is not nn.Linear or not can_use(into.weight):
        return None
    block = Block(kind, into, out, **options)
    return block if block.fits else None


def feed_forward_block(modules: Sequence[nn.Module]) -> Block | None:
    """Of a product, an activation that C knows, and another product."""
    if len(modules) != 3:
        return None
    into, middle, out = modules
    exact = type(middle) is not nn.GELU or middle.approximate == "none"
    known = {nn.ReLU: RELU, nn.GELU: GELU}.get(type(middle), getattr(middle, "native_activation", None))
    return make_block(EACH, into, out, activation=known) if known is not None and exact else None


def join_norm(block: Block | None, join: int, norm: nn.Module) -> Block | None:
    known = native_steps.norm_of(norm)
    return None if block is None or known is None else replace(block, join=join, norm=known)


class FusedBlocks:
    """Blocks in a row as a function of x (B, D) and their states."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.places: Any = (LayerPlaces * len(blocks))()
        self.each = list(self.places)
        self.alive = [block.fill(place) for place, block in zip(self.each, blocks, strict=True)]
        self.widest = max(block.widest for block in blocks)
        [self.dtype] = {block.into.weight.dtype for block in blocks}
        [self.size] = {block.out.out_features for block in blocks}
        self.strides = [0 if block.attend is None else block.attend.key_value_size for block in blocks]
        self.act = find_run(self.dtype)
        self.turning = [number for number, block in enumerate(blocks) if block.rate is not None]
        self.rates = [block.rate for block in blocks if block.rate is not None]
        self.windows = [block.window for block in blocks]
        self.kinds = [block.kind for block in blocks]
        self.begin()

    def begin(self) -> None:
        """Forget what the last call pointed to: between two steps of a search, only lengths change."""
        self.rows, self.room = -1, torch.empty(0)
        self.pointed: list[Any] = [None] * len(self.each)
        self.memory: dict[int, tuple[Tensor, Tensor]] = {}  # kept alive
        numbered = list(zip(range(len(self.each)), self.kinds, self.each, strict=True))
        self.own = [(number, place) for number, kind, place in numbered if kind == OWN]
        self.memories = [(number, place) for number, kind, place in numbered if kind == MEMORY]

    def copy(self) -> "FusedBlocks":
        """The same for another search: it points to states of its own."""
        other = copy(self)
        other.places = type(self.places).from_buffer_copy(self.places)
        other.each = list(other.places)
        other.begin()
        return other

    def __call__(self, x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        after: list[State] = list(states)
        alive: list[Any] = []
        counted: State = None
        if self.turning:
            counted = states[self.turning[0]][1]  # the same for all: they have read the same
            alive.append(self.turn(counted[:, None]))
            counted = counted + 1
        if x.shape[0] != self.rows:
            self.make_room(x)
        pointed = self.pointed
        for number, place in self.own:
            cache = states[number][0].grow(1)
            after[number] = cache, counted
            if cache.store is pointed[number] and not cache.padded:
                place.length = cache.length
            else:
                alive.append(self.point_to_own(number, cache))
        for number, place in self.memories:
            if states[number] is not pointed[number]:
                self.point_to_memory(number, place, states[number])
        y = self.run(x)
        for number, _ in self.own:
            if self.windows[number]:
                after[number] = after[number][0].trim(self.windows[number]), after[number][1]
        return y, after

    def make_room(self, x: Tensor) -> None:
        """For what stands between the layers, of so many rows; what was pointed to is forgotten."""
        self.rows, self.pointed = x.shape[0], [None] * len(self.pointed)
        self.room = x.new_empty(self.rows * (2 * self.widest + self.size + self.widest // 4 + 2), dtype=self.dtype)

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """Whole sequences x (B, T, D) of an encoder's layers, which have no state; padding comes out as anything."""
        mask = native_steps.check_mask(mask, *x.shape[:2])
        alive = self.turn(mask.cumsum(1) - 1) if self.turning else None
        for place in self.each:
            place.length = place.per = x.shape[1]
            place.valid, place.valid_stride = mask.data_ptr(), mask.stride(0)
        y = self.run(x.flatten(0, 1)).view_as(x)
        del alive
        return y

    def turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Tell the layers that turn by how much, at these positions (B, T)."""
        angle = positions.reshape(-1, 1) * self.rates[0]
        sines, cosines = angle.sin(), angle.cos()
        for number in self.turning:
            self.each[number].sines, self.each[number].cosines = sines.data_ptr(), cosines.data_ptr()
        return sines, cosines

    def run(self, x: Tensor) -> Tensor:
        rows, size = native_steps.rows_of(x, self.size, self.dtype).shape
        y = x.clone(memory_format=torch.contiguous_format)
        if rows != self.rows:
            self.make_room(x)
        wide, beside = self.room.data_ptr(), rows * self.widest * self.room.itemsize
        normal = wide + 2 * beside
        room = normal + rows * size * self.room.itemsize
        self.act(len(self.each), byref(self.places), rows, size, y.data_ptr(), wide, wide + beside, normal, room)
        return y

    def point_to_own(self, number: int, cache: Cache) -> Tensor | None:
        """Tell a layer where its cache is; what has to stay alive for it."""
        steps, valid, place, window = cache.store.steps, cache.valid, self.each[number], self.windows[number]
        native_steps.check_cache(steps, self.rows, cache.length, self.strides[number], self.dtype)
        if window and valid is not None:
            near = find_visible(cache, 1, window)
            assert near is not None
            valid = near[:, 0].contiguous()
        native_steps.check_marks(valid, self.rows, cache.length)
        place.steps, place.source_stride, place.length, place.per = steps.data_ptr(), steps.stride(0), cache.length, 1
        place.first = max(0, cache.length - window) if window and valid is None else 0
        place.valid, place.valid_stride = (None, 0) if valid is None else (valid.data_ptr(), valid.stride(0))
        self.pointed[number] = None if window or valid is not None else cache.store
        return valid

    def point_to_memory(self, number: int, place: Any, memory: SharedLeaf) -> None:
        keys_values, mask = memory.tensors
        sources, length, _ = keys_values.shape
        native_steps.check_sharing(self.rows, memory.width, sources)
        keys_values = native_steps.make_whole(keys_values, (sources, length, self.strides[number]), self.dtype)
        mask = native_steps.check_mask(mask, sources, length)
        place.steps, place.source_stride = keys_values.data_ptr(), keys_values.stride(0)
        place.length, place.per = length, memory.width
        place.valid, place.valid_stride = mask.data_ptr(), mask.stride(0)
        self.pointed[number], self.memory[number] = memory, (keys_values, mask)


@cache
def find_run(dtype: torch.dtype) -> Any:
    kernel: Any = native_kernels.symbol("run", dtype)
    kernel.argtypes, kernel.restype = [c_long, c_void_p, c_long, c_long, *[c_void_p] * 5], None
    return kernel
