"""Recurrent architectures: the settings of each cell beside the equations that they choose.

To add a cell: its class in `layers/cells.py`, a class here with its `kind`, its settings and `cell`, and a line in
`architectures/__init__.py`.
"""

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from ..config.section import ReadIf, Section, setting
from .base import BIAS, WITH_ATTENTION, LayeredArchitecture, SourceAttention, build_attention
from .pooling import POOLS, PooledFeatures

if TYPE_CHECKING:
    from ..layers.base import Encoder, Layer
    from ..layers.cells import Cell, MakeCell
    from ..layers.recurrent import FinalStateSizes


HALVES = ("concatenate", "separate")  # ways to join two directions that each have half of the size


class Bidirectional(Section):
    bidirectional: bool = setting(True, "Whether the encoder reads from both ends.")
    merge: Annotated[
        Literal["concatenate", "mean", "sum", "project", "separate"],
        ReadIf(lambda side: side.bidirectional, "with bidirectional"),
    ] = setting(
        "concatenate",
        "How the two directions are joined after each layer; concatenated, each has half the size, otherwise all of "
        "it; separate ones are concatenated only at the top, and never see each other, as in ELMo.",
    )


class RecurrentAttention(SourceAttention):
    attention_style: Annotated[Literal["bahdanau", "luong"], WITH_ATTENTION] = setting(
        "bahdanau", "When the decoder looks at the source: before each step, feeding the cell, or after it."
    )


class InitialState(Section):
    initial_state: Literal["zero", "learned"] = setting(
        "zero", "The initial state of a recurrence without an encoder: zero or learned."
    )


class Recurrence(LayeredArchitecture):
    """What every recurrence has, also one without recurrent weights."""

    variational_dropout: Annotated[
        bool, ReadIf(lambda side: len(side.sizes) > 1 and side.dropout > 0, "with dropout between several layers")
    ] = setting(False, "Whether dropout between layers sets the same features to 0 at every step.")
    bias: bool = setting(True, BIAS)
    init: Literal["uniform", "xavier", "orthogonal", "identity", "normal"] = setting(
        "uniform", "How weights are initialized; uniform is within one over the square root of the size."
    )

    start_settings: ClassVar[type[Section]] = InitialState
    encoder_settings: ClassVar[type[Section]] = Bidirectional
    decoder_settings: ClassVar[type[Section]] = RecurrentAttention

    def fault(self) -> str:
        odd = next((size for size in self.sizes if size % 2), 0)
        if odd and (merge := self._merge()) in HALVES:
            return f'has the odd size {odd}, but with bidirectional and merge "{merge}" each way gets half of it'
        return super().fault()

    @abstractmethod
    def cell(self) -> "MakeCell":
        """The equations, before anything is done to their weights."""

    def build_cell(self) -> "MakeCell":
        """The cell with its weights initialized, constrained and dropped out as the settings say."""
        return partial(_build_cell, self, self.cell())

    def _merge(self, ahead: bool = True) -> str:
        """How two directions are joined, or "none" for one."""
        both: bool = ahead and getattr(self, "bidirectional", False)
        return str(self.merge) if both else "none"

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        from ..layers.base import Encoder

        merge = self._merge(ahead)
        usual = "last" if merge in (*HALVES, "none") else "mean"
        summary = POOLS[pool or usual](PooledFeatures(self.width, queries, both_ends=merge in HALVES))
        return Encoder(self._build_layers(inputs, merge, own), summary)

    def _build_layers(self, inputs: int, merge: str, own: "MakeCell | None") -> "Layer":
        from ..layers.recurrent import recurrent_encoder

        return recurrent_encoder(
            own or self.build_cell(),
            inputs,
            self.sizes,
            merge=merge,
            initial_state=self.initial_state,
            dropout=self.dropout,
            variational_dropout=self.variational_dropout,
        )

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: "FinalStateSizes" = (), own: "MakeCell | None" = None
    ) -> "Layer":
        from ..layers.attention_decoders import bahdanau_decoder, luong_decoder
        from ..layers.recurrent import recurrent_decoder

        cell, sizes = own or self.build_cell(), self.sizes
        drop = {"dropout": self.dropout, "variational_dropout": self.variational_dropout}
        if not memory or self.attention == "none":
            start = getattr(self, "initial_state", "zero")  # a decoder starts where the encoder ends
            return recurrent_decoder(cell, inputs, sizes, memory, final_states, initial_state=start, **drop)  # type: ignore[arg-type]
        early = self.attention_style == "bahdanau"
        attention = build_attention(self, sizes[0] if early else sizes[-1], memory)
        build = bahdanau_decoder if early else luong_decoder
        return build(cell, inputs, sizes, memory, attention, final_states, **drop)  # type: ignore[arg-type]


def _build_cell(settings: Recurrence, make: "MakeCell", inputs: int, size: int) -> "Cell":
    from torch.nn.utils.parametrizations import orthogonal, spectral_norm

    from ..layers.cells import Zoneout, constrain_weights, drop_weights, initialize

    forget: float | None = getattr(settings, "forget_bias", None)
    constraint: str = getattr(settings, "weight_constraint", "none")
    dropped: float = getattr(settings, "recurrent_weight_dropout", 0.0)
    zoneout: float = getattr(settings, "zoneout", 0.0)
    cell = initialize(make(inputs, size), settings.init, forget, getattr(settings, "init_gain", 1.0))
    if constraint != "none":
        cell = constrain_weights(cell, orthogonal if constraint == "orthogonal" else spectral_norm)
    if dropped:
        cell = drop_weights(cell, dropped)
    return Zoneout(cell, zoneout) if zoneout else cell


# --- what some cells have --------------------------------------------------------------------------------------------


class ZoneoutSettings(Recurrence):
    zoneout: float = setting(
        0.0, "Zoneout: the share of units that keep their state at a step, in training.", ge=0, lt=1
    )


class RecurrentWeights(Recurrence):
    recurrent_weight_dropout: float = setting(
        0.0, "The share of recurrent weights that dropout sets to 0 in training, the same at all steps.", ge=0, lt=1
    )


class ConstrainedWeights(RecurrentWeights):
    init_gain: Annotated[
        float, ReadIf(lambda side: side.weight_constraint != "orthogonal", 'without weight_constraint "orthogonal"')
    ] = setting(1.0, "The factor by which recurrent weights start larger than model.init.", ge=0, le=100)
    weight_constraint: Literal["none", "orthogonal", "spectral"] = setting(
        "none",
        "The constraint on the recurrent matrix: none, all singular values 1 (orthogonal), or the largest 1 "
        "(spectral).",
    )


class ForgetBias(Recurrence):
    forget_bias: Annotated[float, ReadIf(lambda side: side.bias, "with bias")] = setting(
        1.0, "The bias of the forget gate at the start of training; a higher one remembers longer.", ge=-100, le=100
    )


class LayerNorm(Recurrence):
    layer_norm: bool = setting(False, "Whether the gates' inputs are normalized at every step.")


class ResetGate(Recurrence):
    reset_gate: Literal["after", "before"] = setting(
        "after", "Where a GRU resets its state: after the matrix product, as torch, or before it."
    )


class ActivationSettings(Recurrence):
    activation: Literal["tanh", "sigmoid", "relu", "identity"] = setting("tanh", "The activation function.")


# --- the kinds -------------------------------------------------------------------------------------------------------


class RNN(ActivationSettings, ZoneoutSettings, ConstrainedWeights):
    kind: Literal["rnn"] = "rnn"

    def cell(self) -> "MakeCell":
        from ..layers.cells import RNNCell

        return partial(RNNCell, activation=self.activation, bias=self.bias)


class Orthogonal(ActivationSettings, ZoneoutSettings, RecurrentWeights):
    """An RNN whose recurrent matrix stays orthogonal."""

    kind: Literal["orthogonal"] = "orthogonal"

    weight_constraint: ClassVar[str] = "orthogonal"

    def cell(self) -> "MakeCell":
        from ..layers.cells import RNNCell

        return partial(RNNCell, activation=self.activation, bias=self.bias)


class LSTM(LayerNorm, ForgetBias, ZoneoutSettings, ConstrainedWeights):
    kind: Literal["lstm"] = "lstm"
    candidate_activation: Literal["tanh", "sigmoid"] = setting(
        "tanh", "The activation function of the candidate for the memory c."
    )
    memory_size: int = setting(
        0, "Units of the memory c, of which h is a projection; 0 is as many as h.", ge=0, le=2**16
    )

    def fault(self) -> str:
        if self.layer_norm and self.memory_size:
            return "has layer_norm and a memory_size, but there is no cell with both"
        if self.candidate_activation != "tanh" and (self.layer_norm or self.memory_size):
            return (
                f'has the candidate_activation "{self.candidate_activation}", but with layer_norm or a memory_size '
                'it is "tanh"'
            )
        return super().fault()

    def cell(self) -> "MakeCell":
        from ..layers.cells import LSTMCell, NormedLSTMCell, ProjectedLSTMCell

        if self.layer_norm:
            return partial(NormedLSTMCell, bias=self.bias)
        if self.memory_size:
            return partial(ProjectedLSTMCell, memory=self.memory_size, bias=self.bias)
        return partial(LSTMCell, candidate=self.candidate_activation, bias=self.bias)


class Peephole(ForgetBias, ZoneoutSettings, ConstrainedWeights):
    """An LSTM whose gates see its memory c (Gers et al., 2002)."""

    kind: Literal["peephole"] = "peephole"
    peephole: Literal["diagonal", "full"] = setting(
        "diagonal", "What a gate sees of the memory: each unit its own value, or all of them."
    )
    peephole_gates: Literal["ifo", "if", "io", "fo", "i", "f", "o"] = setting(
        "ifo", "Which gates see the memory: input (i), forget (f), output (o)."
    )
    peephole_output: Annotated[
        Literal["new", "old"], ReadIf(lambda side: "o" in side.peephole_gates, "where the output gate sees the memory")
    ] = setting("new", "Which memory the output gate sees: that after the step, as published, or before it.")

    def cell(self) -> "MakeCell":
        from ..layers.cells import PeepholeLSTMCell

        late, full = self.peephole_output == "new", self.peephole == "full"
        return partial(PeepholeLSTMCell, full=full, sees=self.peephole_gates, late=late, bias=self.bias)


class Coupled(ForgetBias, ZoneoutSettings, ConstrainedWeights):
    """An LSTM that forgets exactly what it writes anew."""

    kind: Literal["coupled"] = "coupled"

    def cell(self) -> "MakeCell":
        from ..layers.cells import CoupledLSTMCell

        return partial(CoupledLSTMCell, bias=self.bias)


class GRU(ResetGate, LayerNorm, ZoneoutSettings, ConstrainedWeights):
    kind: Literal["gru"] = "gru"

    def fault(self) -> str:
        if self.layer_norm and self.reset_gate == "before":
            return 'has layer_norm, but a gru takes it only with reset_gate "after"'
        return super().fault()

    def cell(self) -> "MakeCell":
        from ..layers.cells import GRUCell, NormedGRUCell, ResetBeforeGRUCell

        if self.layer_norm:
            return partial(NormedGRUCell, bias=self.bias)
        return partial(GRUCell if self.reset_gate == "after" else ResetBeforeGRUCell, bias=self.bias)


class GRUD(ResetGate, ConstrainedWeights):
    """A GRU for numbers of which some are missing: what was seen last fades (Che et al., 2018).

    What was missing is a matter of the lowest layer; those above it are plain GRUs, which read states.
    """

    kind: Literal["gru-d"] = "gru-d"

    encoder_settings: ClassVar[type[Section]] = Section  # it remembers what it saw last, so it reads forwards
    only_numbers: ClassVar[bool] = True

    def cell(self) -> "MakeCell":
        from ..layers.cells import DecayGRUCell

        return partial(DecayGRUCell, bias=self.bias)

    def _build_layers(self, inputs: int, merge: str, own: "MakeCell | None") -> "Layer":
        from ..layers.cells import GRUCell, ResetBeforeGRUCell
        from ..layers.recurrent import recurrent_encoder, stack_levels

        first, *rest = self.sizes
        start, drop = self.initial_state, (self.dropout, self.variational_dropout)
        lowest = recurrent_encoder(own or self.build_cell(), inputs, [first], merge="none", initial_state=start)
        if not rest:
            return lowest
        make = partial(GRUCell if self.reset_gate == "after" else ResetBeforeGRUCell, bias=self.bias)
        gru = own or partial(_build_cell, self, make)
        above = recurrent_encoder(
            gru, first, rest, merge="none", initial_state=start, dropout=drop[0], variational_dropout=drop[1]
        )
        return stack_levels([lowest, above], *drop)


class MinGRU(ZoneoutSettings):
    """A GRU whose gates do not see its state, so that all steps are computed at once (Feng et al., 2024)."""

    kind: Literal["mingru"] = "mingru"

    def cell(self) -> "MakeCell":
        from ..layers.cells import MinGRUCell

        return partial(MinGRUCell, bias=self.bias)


class MinLSTM(ForgetBias, ZoneoutSettings):
    kind: Literal["minlstm"] = "minlstm"

    def cell(self) -> "MakeCell":
        from ..layers.cells import MinLSTMCell

        return partial(MinLSTMCell, bias=self.bias)
