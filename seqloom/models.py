"""The two shapes of model and what is made small in training.

A `Labeler` reads and answers; a `Generator` writes, one element at a time. The training loop knows neither: it sees an
`Objective`, and DDP wraps nothing else.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .batch import Batch as Batch
from .layers.base import Encoder, Layer, Memory
from .layers.cells import Cell
from .layers.description import DescribedModule
from .layers.fast.dropout import Dropout
from .layers.fast.native_decoder import Decoder, Decoding, Lookup, decoder_of
from .layers.fast.steps import Change, change_of, prepare_once, prepare_step
from .layers.fast.steps import Step as LayerStep
from .layers.heads import Head
from .layers.padding import gather_steps, last_step
from .layers.quantization import quantize_weights, use_eight_bits
from .layers.state import State
from .layers.tap import is_watched


def device_of(module: nn.Module) -> torch.device:
    """The device that a module is on."""
    return next(module.parameters()).device


SOURCE, INPUTS = "source", "inputs"  # the sides of a batch: what is written about, and what is read step by step
Bodies = dict[
    str, tuple[str, str, DescribedModule]
]  # by the side it reads: the name of a part, its prefix, and the module


class Labeler(nn.Module):
    """Embed, encode, answer: once per element (tag) or once per sequence (classify).

    In training the `dropout` share of what the head sees is left out.
    """

    source: None = None
    generates: Literal[False] = False

    def __init__(self, embed: nn.Module, encoder: Encoder, head: Head, per_element: bool, dropout: float = 0.0) -> None:
        super().__init__()
        self.embed, self.encoder, self.head, self.per_element = embed, encoder, head, per_element
        self.dropout = Dropout(dropout)

    def features(self, x: Tensor, mask: Tensor) -> Tensor:
        here = device_of(self)
        memory: Memory = self.encoder(self.embed(x.to(here)), mask.to(here))
        return self.dropout(memory.values if self.per_element else memory.summary)

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.head(self.features(x, mask))

    def quantize_weights(self) -> None:
        """Round the weights of the body and the head to eight bits. Whole sequences are read with them as with any
        others, so this is no faster."""
        quantize_weights(self.encoder)
        quantize_weights(self.head)

    def objective(self) -> "Objective":
        """The loss it is trained by, without smoothing or class weights that the head does not have itself."""
        return LabelingObjective(self)

    def embedding_of(self, side: str) -> nn.Module:
        return self.embed

    def read(self, batch: Batch, vectors: Tensor | None = None, side: str = INPUTS) -> Tensor:
        """What the head sees of a batch: (B, T, D), or (B, D) for one label a sequence.

        `vectors` (B, T, D) take the place of what the embedding makes of this side.
        """
        if vectors is None:
            return self.features(batch.inputs, batch.mask)
        memory: Memory = self.encoder(vectors, batch.mask)
        return memory.values if self.per_element else memory.summary

    def roles(self) -> dict[str, str]:
        """What each part is for, and the beginning of its weights' names: another model may have it elsewhere."""
        return {
            "read.embedding": "embed.",
            "read.body": f"encoder.layer.{self.encoder.layer.inside}",
            "pool": "encoder.pool.",
            "head": "head.",
        }

    def bodies(self) -> Bodies:
        """The parts that read sequences."""
        return {INPUTS: ("encoder", "encoder.", self.encoder)}


class BidirectionalLanguageModel(Labeler):
    """Two directions that never see each other, each of which predicts the next element in its own; one head answers
    for both (Peters et al., 2018). What the head sees is half of the features."""

    def __init__(self, embed: nn.Module, encoder: Encoder, head: Head, dropout: float = 0.0) -> None:
        super().__init__(embed, encoder, head, per_element=True, dropout=dropout)

    def directions(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """What each direction knows before an element (B, T, D / 2): at the ends, where it knows nothing, zeros."""
        there, back = self.features(x, mask).chunk(2, -1)
        return nn.functional.pad(there, (0, 0, 1, -1)), nn.functional.pad(back, (0, 0, -1, 1))

    def have_read(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Where each direction has read something before an element (B, T)."""
        return mask & nn.functional.pad(mask, (1, -1)), mask & nn.functional.pad(mask, (-1, 1))

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        """What the element is likely to be for both directions together: the mean of their logits."""
        there, back = self.directions(x, mask)
        return (self.head(there) + self.head(back)) / 2

    def objective(self) -> "BidirectionalObjective":
        return BidirectionalObjective(self)


class NextSentenceModel(Labeler):
    """Predicts masked tokens and, from the summary of two segments, whether the second follows the first (Devlin et
    al., 2019)."""

    def __init__(self, embed: nn.Module, encoder: Encoder, head: Head, relation: Head, dropout: float = 0.0) -> None:
        super().__init__(embed, encoder, head, per_element=True, dropout=dropout)
        self.relation = relation

    def summary(self, x: Tensor, mask: Tensor) -> Tensor:
        memory: Memory = self.encoder(self.embed(x), mask)
        return memory.summary

    def objective(self) -> "NextSentenceObjective":
        return NextSentenceObjective(self)


class Source(nn.Module):
    """What a generator writes about: a text, an image cut into patches, past values."""

    def __init__(self, embed: nn.Module, encoder: Encoder) -> None:
        super().__init__()
        self.embed, self.encoder = embed, encoder

    def forward(self, x: Tensor, mask: Tensor) -> Memory:
        here = device_of(self)
        embed = self.embed if self.training or torch.is_grad_enabled() else change_of(self.embed)
        return self.encoder.encode(embed(x.to(here)), mask.to(here))


class Generator(nn.Module):
    """Language, music, forecasts; about a source: translations, captions.

    In training the `dropout` share of what the head sees is left out.
    """

    per_element = True
    generates: Literal[True] = True

    def __init__(
        self, embed: nn.Module, decoder: Layer, head: Head, source: Source | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if not decoder.causal:
            raise ValueError("a generator needs a causal decoder: this one looks ahead")
        self.embed, self.decoder, self.head, self.source = embed, decoder, head, source
        self.dropout = Dropout(dropout)
        self.eight_bits = False

    def quantize_weights(self) -> None:
        """Let what writes go on with weights of eight bits: quicker where there are native kernels, and less exact. So
        does an encoder without a recurrence, which is read in bytes as well."""
        if self.source is not None and not self.source.encoder.layer.final_state_sizes:
            quantize_weights(self.source.encoder)
        quantize_weights(self.decoder)
        quantize_weights(self.head)
        self.eight_bits = True

    def initial_state(self, batch: int, *source: Tensor) -> State:
        if self.source is None:
            return self.decoder.initial_state(batch, None)
        layer = self.source.encoder.layer
        with use_eight_bits(self.eight_bits and not layer.final_state_sizes):
            return self.decoder.initial_state(batch, self.source(*source))

    def features(self, y: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        features, state = self.decoder(self.embed(y), state, mask)
        return self.dropout(features), state

    def forward(self, y: Tensor, state: State, mask: Tensor | None = None) -> tuple[Any, State]:
        """Read y (B, T, ...): tell what comes after each element. T may be all of them, or one."""
        features, state = self.features(y, state, mask)
        return self.head(features), state

    def objective(self) -> "GenerationObjective":
        """The loss it is trained by."""
        return GenerationObjective(self)

    def embedding_of(self, side: str) -> nn.Module:
        return self.source.embed if side == SOURCE and self.source is not None else self.embed

    def read(self, batch: Batch, vectors: Tensor | None = None, side: str = INPUTS) -> Tensor:
        """What the head sees of a batch (B, T, D); `vectors` take the place of what the embedding makes of a side."""
        if vectors is None:
            return self.features(batch.inputs, self.initial_state(len(batch.inputs), *batch.source), batch.mask)[0]
        if side == INPUTS or self.source is None:
            return self.decoder(vectors, self.initial_state(len(vectors), *batch.source), batch.mask)[0]
        memory: Memory = self.source.encoder(vectors, batch.source[1])
        return self.features(batch.inputs, self.decoder.initial_state(len(vectors), memory), batch.mask)[0]

    def roles(self) -> dict[str, str]:
        """What each part is for: with a source, the encoder reads and the decoder writes; else the decoder reads."""
        if self.source is None:
            return {"read.embedding": "embed.", "read.body": "decoder.", "head": "head."}
        shared = self.source.embed is self.embed
        reads = {
            "read.embedding": "embed." if shared else "source.embed.",
            "read.body": "source.encoder.layer.",
            "pool": "source.encoder.pool.",
        }
        return reads | {"write.embedding": "embed.", "write.body": "decoder.", "head": "head."}

    def bodies(self) -> Bodies:
        """The parts that read sequences, the encoder's first."""
        source: Bodies = {} if self.source is None else {SOURCE: ("encoder", "source.encoder.", self.source.encoder)}
        return source | {INPUTS: ("decoder", "decoder.", self.decoder)}

    def stepper(self) -> "Stepper":
        """`forward` for one element a row without gradient, prepared for many steps: what a search should ask."""
        return Stepper(self)

    def native_decoder(self) -> Decoder | None:
        """All that a step goes through, as native code has it; none where that does not know a part."""
        lookup: Callable[[], Lookup | None] = getattr(self.embed, "lookup", lambda: None)
        return decoder_of(lookup(), self.decoder.decoder_parts(), self.head.native_answer())

    def prompt(self, y: Tensor, mask: Tensor, state: State) -> tuple[Tensor, State]:
        """Read each row up to its last element. That one (B, 1, ...) and the state are where a search begins."""
        end = last_step(mask)
        unread = mask & (torch.arange(mask.shape[1], device=y.device) != end[:, None])
        if y.shape[1] > 1:
            _, state = self.features(y, state, unread)
        return gather_steps(y, end)[:, None], state


class Stepper:
    """A generator prepared for many steps. It writes into room of its own: every search at a time has one to itself."""

    __slots__ = ("model", "parts")

    def __init__(self, model: Generator) -> None:
        self.model = model
        self.parts: tuple[Change, LayerStep, Callable[[Tensor], Any]] | None = None

    def __call__(self, last: Tensor, state: State) -> tuple[Any, State]:
        if self.parts is None:  # a search that only wants the likeliest never asks for them
            model = self.model
            with use_eight_bits(model.eight_bits):
                embed = model.embed if model.training else change_of(model.embed)
                self.parts = embed, prepare_step(model.decoder), model.head.fast_answer()
        embed, move, answer = self.parts
        with torch.no_grad():
            y, state = move(embed(last)[:, 0], state)
            return answer(y), state

    def decode_likeliest(
        self, last: Tensor, state: State, rows: int, count: int, banned: Sequence[int]
    ) -> Decoding | None:
        """From here on in native code, where that knows the whole model: for a search of up to so many rows that asks
        for nothing but so many of the likeliest tokens a row, none of them banned."""
        model = self.model
        if model.training or is_watched(model):
            return None
        with use_eight_bits(model.eight_bits), torch.no_grad():
            decoder = prepare_once(model, model.native_decoder, model.embed, model.decoder, model.head)
            return None if decoder is None else decoder.begin(last, state, rows, count, banned)


class Objective(nn.Module):
    """What is made small in training: a sum over so many elements."""

    model: Labeler | Generator
    carries: bool = False  # whether a batch can go on from the state of the one before

    def __init__(self, model: Any = None) -> None:
        """Without a model, whoever inherits holds what is trained."""
        super().__init__()
        if model is not None:
            self.model = model

    @abstractmethod
    def forward(self, batch: Batch, state: State = None) -> tuple[Tensor, Tensor, State]:
        """The sum of the losses, their count, and the state to go on from; no state means: from the start."""


class LabelingObjective(Objective):
    model: Labeler

    def forward(self, batch: Batch, state: State = None) -> tuple[Tensor, Tensor, State]:
        batch = batch.to(device_of(self))
        features = self.model.features(batch.inputs, batch.mask)
        counted = batch.mask if batch.loss_mask is None else batch.loss_mask
        return *self.model.head.loss(features, batch.target, counted if self.model.per_element else None), None


class NextSentenceObjective(Objective):
    """The mean loss of the masked tokens and that of whether the second segment follows, added."""

    model: NextSentenceModel

    def forward(self, batch: Batch, state: State = None) -> tuple[Tensor, Tensor, State]:
        batch, model = batch.to(device_of(self)), self.model
        assert batch.follows is not None and batch.loss_mask is not None
        memory: Memory = model.encoder(model.embed(batch.inputs), batch.mask)
        total, count = model.head.loss(model.dropout(memory.values), batch.target, batch.loss_mask)
        other, rows = model.relation.loss(model.dropout(memory.summary), batch.follows)
        return total + other * count.clamp(min=1) / rows, count.clamp(min=1), None


class BidirectionalObjective(Objective):
    """Every element is predicted twice: from those before it, and from those after it."""

    model: BidirectionalLanguageModel

    def forward(self, batch: Batch, state: State = None) -> tuple[Tensor, Tensor, State]:
        batch = batch.to(device_of(self))
        features = torch.stack(self.model.directions(batch.inputs, batch.mask))
        known = torch.stack(self.model.have_read(batch.mask))
        return *self.model.head.loss(features, batch.target.expand(2, *batch.target.shape), known), None


class GenerationObjective(Objective):
    model: Generator
    carries = True

    def forward(self, batch: Batch, state: State = None) -> tuple[Tensor, Tensor, State]:
        batch = batch.to(device_of(self))
        if state is None:
            state = self.model.initial_state(len(batch.inputs), *batch.source)
        features, state = self.features(batch, state)
        return *self.model.head.loss(features, batch.target, batch.mask), state

    def features(self, batch: Batch, state: State) -> tuple[Tensor, State]:
        """Read the batch, where it says so with the model's own likeliest elements in place of the true ones.

        Scheduled sampling: a recurrent decoder reads one element after the other (Bengio et al., 2015); others read
        twice, the truth first and then what they made of it (Mihaylova and Martins, 2019).
        """
        if batch.teacher_forced is None:
            return self.model.features(batch.inputs, state, batch.mask)
        # There is no element of its own before the first, nor after padding.
        raw = batch.teacher_forced | ~nn.functional.pad(batch.mask, (1, -1))
        if any(isinstance(part, Cell) for part in self.model.decoder.modules()):
            return self._decode_one_by_one(batch, raw, state)
        with torch.no_grad():
            own = self._sample_likeliest(self.model.features(batch.inputs, state, batch.mask)[0])
        before = torch.cat([batch.inputs[:, :1], own[:, :-1]], 1)
        return self.model.features(mix_teacher_forcing(raw, batch.inputs, before), state, batch.mask)

    def _decode_one_by_one(self, batch: Batch, raw: Tensor, state: State) -> tuple[Tensor, State]:
        outputs, before = [], batch.inputs[:, :1]
        for number in range(batch.inputs.shape[1]):
            step = slice(number, number + 1)
            element = mix_teacher_forcing(raw[:, step], batch.inputs[:, step], before)
            features, state = self.model.features(element, state, batch.mask[:, step])
            before = self._sample_likeliest(features)
            outputs.append(features)
        return torch.cat(outputs, 1), state

    @torch.no_grad()
    def _sample_likeliest(self, features: Tensor) -> Tensor:
        return self.model.head.sample(self.model.head(features), 0)


def mix_teacher_forcing(raw: Tensor, truth: Tensor, own: Tensor) -> Tensor:
    """The truth (B, T, ...) where it is given (B, T), elsewhere the model's own."""
    return torch.where(raw.view(*raw.shape, *[1] * (truth.ndim - 2)), truth, own.to(truth.dtype))
