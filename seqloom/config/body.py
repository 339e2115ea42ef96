"""The settings of a body, each with its meaning: what reads on the encoder's side, what writes on the decoder's."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from .section import Section

Kind = Annotated[
    Literal[
        "rnn",
        "lstm",
        "peephole",
        "coupled",
        "gru",
        "gru-d",
        "orthogonal",
        "mingru",
        "minlstm",
        "convolution",
        "linear",
        "transformer",
    ],
    Field(description="What reads and writes the sequences: a recurrent cell, a sliding window, or a Transformer."),
]


DEEPEST = 1000  # layers


def _as_tuple(given: object) -> object:
    """TOML gives a list; a recipe holds what cannot be changed."""
    return tuple(given) if isinstance(given, list) else given


def _check_layers(size: int | tuple[int, ...]) -> int | tuple[int, ...]:
    if isinstance(size, tuple) and len(size) > DEEPEST:
        raise ValueError(f"{len(size)} layers are listed, but there can be at most {DEEPEST}")
    return size


Width = Annotated[int, Field(ge=1, le=2**16)]
Size = Annotated[
    Width | Annotated[tuple[Width, ...], Field(min_length=1)],
    BeforeValidator(
        _as_tuple, json_schema_input_type=Width | Annotated[list[Width], Field(min_length=1, max_length=DEEPEST)]
    ),
    AfterValidator(_check_layers),
    Field(description="Features a step; a list gives each layer of a recurrent body its own."),
]
Depth = Annotated[
    int, Field(ge=0, le=DEEPEST, description="Layers on top of each other; 0 is one, or as many as size lists.")
]
Dropout = Annotated[
    float,
    Field(
        ge=0, lt=1, description="The share of features left out in training: first, between layers and before the last."
    ),
]
Locked = Annotated[
    bool, Field(description="Whether dropout between recurrent layers leaves out the same features at every step.")
]
RecurrentDropout = Annotated[
    float, Field(ge=0, lt=1, description="The share of recurrent weights left out in training, the same at all steps.")
]
AttentionDropout = Annotated[
    float, Field(ge=0, lt=1, description="The share of a Transformer's attention weights left out in training.")
]
Zoneout = Annotated[
    float, Field(ge=0, lt=1, description="The share of a recurrent state's units that stay as they were at a step.")
]
BothWays = Annotated[
    bool,
    Field(
        description="Whether a recurrent or sliding encoder reads from both ends; "
        "a Transformer encoder always sees both sides, a decoder never the future."
    ),
]
Merge = Annotated[
    Literal["concatenate", "mean", "sum", "project"],
    Field(description="How the two ways are joined; concatenated, each has half the size, otherwise all of it."),
]
Start = Annotated[
    Literal["zero", "learned"],
    Field(description="Where a recurrence starts that takes nothing over: at zero, or where training found best."),
]
Bias = Annotated[bool, Field(description="Whether products have a bias.")]
Activation = Annotated[
    Literal["", "tanh", "relu", "identity", "gelu", "swiglu"],
    Field(
        description="What squashes: tanh, relu or identity in an rnn, relu, gelu or swiglu in a Transformer; "
        "empty is tanh and gelu."
    ),
]
Candidate = Annotated[Literal["tanh", "sigmoid"], Field(description="What squashes the candidate of an LSTM's memory.")]
LayerNorm = Annotated[bool, Field(description="Whether an LSTM or GRU normalizes its products at every step.")]
MemorySize = Annotated[
    int, Field(ge=0, le=2**16, description="Units of an LSTM's memory c where h is a projection of it; 0 is as h.")
]
ForgetBias = Annotated[
    float,
    Field(ge=-100, le=100, description="The bias of an LSTM's forget gate at the start; higher remembers longer."),
]
Initial = Annotated[
    Literal["uniform", "xavier", "orthogonal", "identity", "normal"],
    Field(description="How recurrent weights start: evenly within one over the root of the size, or as named."),
]
Gain = Annotated[
    float, Field(ge=0, le=100, description="How many times as large recurrent weights start as model.init has it.")
]
Recurrence = Annotated[
    Literal["none", "orthogonal", "spectral"],
    Field(description="Whether the recurrent matrix keeps all its singular values at one, the largest, or none."),
]
Peephole = Annotated[
    Literal["diagonal", "full"],
    Field(description="What the gates of a peephole LSTM see of the cell: each unit its own value, or all of them."),
]
PeepholeGates = Annotated[
    Literal["ifo", "if", "io", "fo", "i", "f", "o"], Field(description="Which gates of a peephole LSTM see the cell.")
]
PeepholeOutput = Annotated[
    Literal["new", "old"],
    Field(description="Which cell a peephole LSTM's output gate sees: the new one as published, or the old one."),
]
Reset = Annotated[
    Literal["after", "before"],
    Field(description="Where a GRU resets its state: after the matrix product (as torch does), or before it."),
]
Heads = Annotated[
    int, Field(ge=1, le=1000, description="Attention heads of a Transformer, each with its part of the size.")
]
FeedForward = Annotated[
    int, Field(ge=0, le=2**20, description="The width inside a Transformer's feed-forward part; 0 is four times size.")
]
Norm = Annotated[
    Literal["post", "pre", "rezero"],
    Field(description="Where a Transformer's parts are normalized: behind, in front, or nowhere, starting from zero."),
]
Normalize = Annotated[
    Literal["layer", "rms"], Field(description="What normalizes a Transformer: LayerNorm, or RMSNorm.")
]
Positions = Annotated[
    Literal["sinusoidal", "learned", "rotary", "none"],
    Field(description="How a Transformer knows where an element stands: sines and cosines, learned, turned, or not."),
]
Longest = Annotated[int, Field(ge=1, le=10**6, description="The most elements that learned positions are there for.")]
Window = Annotated[
    int,
    Field(
        ge=0,
        le=10**6,
        description="How many elements a Transformer or a sliding body sees at once; 0 is all of them, and 5.",
    ),
]

SQUASHES = {
    "rnn": ("tanh", "relu", "identity"),
    "orthogonal": ("tanh", "relu", "identity"),
    "transformer": ("relu", "gelu", "swiglu"),
}


class Body(Section):
    """The complete settings of one side."""

    kind: Kind
    size: Size
    depth: Depth
    dropout: Dropout
    variational_dropout: Locked
    recurrent_weight_dropout: RecurrentDropout
    attention_dropout: AttentionDropout
    zoneout: Zoneout
    bidirectional: BothWays
    merge: Merge
    initial_state: Start
    bias: Bias
    activation: Activation
    candidate_activation: Candidate
    layer_norm: LayerNorm
    memory_size: MemorySize
    forget_bias: ForgetBias
    init: Initial
    init_gain: Gain
    weight_constraint: Recurrence
    peephole: Peephole
    peephole_gates: PeepholeGates
    peephole_output: PeepholeOutput
    reset_gate: Reset
    heads: Heads
    feed_forward: FeedForward
    norm: Norm
    norm_type: Normalize
    positions: Positions
    max_positions: Longest
    window: Window

    @property
    def sizes(self) -> tuple[int, ...]:
        """The width of each layer."""
        return self.size if isinstance(self.size, tuple) else (self.size,) * self.depth

    @property
    def width(self) -> int:
        """The features that come out."""
        return self.sizes[-1]

    @property
    def shape(self) -> str:
        """In few words: "gru 128 × 2", or "gru 64, 32" where the layers differ."""
        if isinstance(self.size, tuple):
            return f"{self.kind} {', '.join(map(str, self.size))}"
        return f"{self.kind} {self.size} × {self.depth}"

    def fault(self) -> str:
        """Why no network can be built of these, or nothing."""
        if isinstance(self.size, tuple) and self.depth != len(self.size):
            return f"has depth {self.depth}, but its size lists {len(self.size)} layers: depth 0 is as many as listed"
        squashes = SQUASHES.get(self.kind, ())
        if squashes and self.activation not in ("", *squashes):
            choices = ", ".join(f'"{name}"' for name in squashes)
            return f'has the activation "{self.activation}", but kind "{self.kind}" takes one of {choices}'
        if self.kind == "transformer":
            return self._transformer_fault()
        if self.kind in ("convolution", "linear"):
            return self._sliding_fault()
        return self._recurrent_fault()

    def _recurrent_fault(self) -> str:
        if self.kind == "gru-d" and (self.zoneout or self.bidirectional):
            name = "zoneout" if self.zoneout else "bidirectional"
            return f'has {name}, but kind "gru-d" remembers what it saw last, which is the past and stays as it was'
        if self.memory_size and self.kind != "lstm":
            return f'has a memory_size, but only kind "lstm" takes one, not "{self.kind}"'
        if self.layer_norm and not self._takes_layer_norm():
            return "has layer_norm, but only an lstm without memory_size and a gru with the reset after take it"
        if self.kind == "lstm" and self.candidate_activation != "tanh" and (self.layer_norm or self.memory_size):
            return f'has the candidate "{self.candidate_activation}", but with layer_norm or a memory_size it is "tanh"'
        if self.kind in ("mingru", "minlstm") and (self.recurrent_weight_dropout or self.weight_constraint != "none"):
            name = (
                "recurrent_weight_dropout"
                if self.recurrent_weight_dropout
                else f'recurrence "{self.weight_constraint}"'
            )
            return f'has {name}, but kind "{self.kind}" has no recurrent weights'
        odd = next((size for size in self.sizes if size % 2), 0)
        if odd and self.bidirectional and self.merge == "concatenate":
            return f'has the odd size {odd}, but with bidirectional and merge "concatenate" each way gets half of it'
        return ""

    def _takes_layer_norm(self) -> bool:
        return (self.kind == "lstm" and not self.memory_size) or (self.kind == "gru" and self.reset_gate == "after")

    def _transformer_fault(self) -> str:
        if isinstance(self.size, tuple):
            return "lists sizes, but all layers of a Transformer have the same"
        if self.size % self.heads:
            return f"has size {self.size} and heads {self.heads}, which must divide it evenly"
        if self.positions == "rotary" and self.size // self.heads % 2:
            return f'has positions "rotary", which turn pairs of features, but {self.size // self.heads} in each head'
        return ""

    def _sliding_fault(self) -> str:
        if isinstance(self.size, tuple):
            return f'lists sizes, but all layers of kind "{self.kind}" have the same'
        if self.bidirectional and self.window and self.window % 2 == 0:
            return f"has the even window {self.window}, but with bidirectional a window has a middle"
        return ""
