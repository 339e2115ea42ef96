"""[model]: the network, and where its two sides differ.

A body's settings occur three times: in [model], where both sides find them; again, all optional, in [model.encoder]
and [model.decoder]; and complete in a `Body`. What each of them means is said once, in `body`.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from .body import (
    Activation,
    AttentionDropout,
    Bias,
    Body,
    BothWays,
    Candidate,
    Depth,
    Dropout,
    FeedForward,
    ForgetBias,
    Gain,
    Heads,
    Initial,
    Kind,
    LayerNorm,
    Locked,
    Longest,
    MemorySize,
    Merge,
    Norm,
    Normalize,
    Peephole,
    PeepholeGates,
    PeepholeOutput,
    Positions,
    Recurrence,
    RecurrentDropout,
    Reset,
    Size,
    Start,
    Window,
    Zoneout,
)
from .messages import shown
from .section import Section


def _as_levels(given: object) -> object:
    """One level need not be written as a list."""
    if isinstance(given, list):
        return tuple(given)
    return (given,) if isinstance(given, float) else given


def _check_levels(levels: tuple[float, ...]) -> tuple[float, ...]:
    if list(levels) != sorted(set(levels)):
        raise ValueError(f"{shown(levels)} must increase")
    if levels and 0.5 not in levels:
        raise ValueError(f"{shown(levels)} lacks 0.5, which is the forecast itself")
    return levels


Level = Annotated[float, Field(gt=0, lt=1)]
Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(_as_levels, json_schema_input_type=Level | Annotated[list[Level], Field(max_length=99)]),
    AfterValidator(_check_levels),
    Field(max_length=99),
]


class Part(Section):
    """One side's own settings; what is not given is as in [model]."""

    kind: Kind | None = None
    size: Size | None = None
    depth: Depth | None = None
    dropout: Dropout | None = None
    variational_dropout: Locked | None = None
    recurrent_weight_dropout: RecurrentDropout | None = None
    attention_dropout: AttentionDropout | None = None
    zoneout: Zoneout | None = None
    bidirectional: BothWays | None = None
    merge: Merge | None = None
    initial_state: Start | None = None
    bias: Bias | None = None
    activation: Activation | None = None
    candidate_activation: Candidate | None = None
    layer_norm: LayerNorm | None = None
    memory_size: MemorySize | None = None
    forget_bias: ForgetBias | None = None
    init: Initial | None = None
    init_gain: Gain | None = None
    weight_constraint: Recurrence | None = None
    peephole: Peephole | None = None
    peephole_gates: PeepholeGates | None = None
    peephole_output: PeepholeOutput | None = None
    reset_gate: Reset | None = None
    heads: Heads | None = None
    feed_forward: FeedForward | None = None
    norm: Norm | None = None
    norm_type: Normalize | None = None
    positions: Positions | None = None
    max_positions: Longest | None = None
    window: Window | None = None


class Model(Section):
    kind: Kind = "gru"
    size: Size = 128
    depth: Depth = 0
    embedding: int = Field(
        default=0,
        ge=0,
        le=2**16,
        description="Features of a token's vector; 0 is as many as the decoder's first layer has.",
    )
    tied: bool = Field(
        default=False, description="Whether the decoder's first and last layer share their vectors, one a token."
    )
    dropout: Dropout = 0.1
    variational_dropout: Locked = False
    recurrent_weight_dropout: RecurrentDropout = 0.0
    attention_dropout: AttentionDropout = 0.0
    zoneout: Zoneout = 0.0
    bidirectional: BothWays | None = None
    merge: Merge = "concatenate"
    initial_state: Start = "zero"
    spelling: Literal["convolution", "recurrence"] = Field(
        default="convolution", description="What reads the letters of a word, where data.characters says so."
    )
    patch: int = Field(
        default=4, ge=1, le=1024, description="The side, in pixels, of the squares that an image is cut into."
    )
    crf: bool = Field(
        default=False, description="Whether tags depend on their neighbors: a conditional random field decides."
    )
    pool: Literal["", "mean", "last", "max", "attention"] = Field(
        default="",
        description="What a whole sequence is summed up by: the mean, where the reading ends, the largest of each "
        'feature, or learned queries; "" is what suits the kind.',
    )
    hidden: int = Field(
        default=0, ge=0, le=2**16, description="Features of a hidden layer between that and the label; 0 is none."
    )
    attention: Literal["none", "dot", "scaled", "additive"] = Field(
        default="additive",
        description="How a recurrent or sliding decoder looks back at the source; "
        "a Transformer decoder has an attention of its own and does not read this.",
    )
    attention_style: Literal["bahdanau", "luong"] = Field(
        default="bahdanau",
        description="When a recurrent decoder looks: before each step, feeding the cell (Bahdanau), or after (Luong).",
    )
    hard_attention: bool = Field(
        default=False, description="Whether that attention looks at one place only instead of weighing."
    )
    bias: Bias = True
    activation: Activation = ""
    candidate_activation: Candidate = "tanh"
    layer_norm: LayerNorm = False
    memory_size: MemorySize = 0
    forget_bias: ForgetBias = 1.0
    init: Initial = "uniform"
    init_gain: Gain = 1.0
    weight_constraint: Recurrence = "none"
    peephole: Peephole = "diagonal"
    peephole_gates: PeepholeGates = "ifo"
    peephole_output: PeepholeOutput = "new"
    reset_gate: Reset = "after"
    heads: Heads = 4
    feed_forward: FeedForward = 0
    norm: Norm = "pre"
    norm_type: Normalize = "layer"
    positions: Positions = "rotary"
    max_positions: Longest = 1024
    window: Window = 0
    quantiles: Levels = Field(
        default=(0.1, 0.5, 0.9),
        description="Of which shares of the outcomes a forecast says where they end; none is the mean alone.",
    )
    relative: Literal["none", "last", "mean"] = Field(
        default="last",
        description="What a window is told relative to: nothing, its last values, or its mean and spread.",
    )
    channel_independent: bool = Field(
        default=False, description="Whether each variable is forecast from itself alone, all by the same weights."
    )
    patch_length: int = Field(
        default=1, ge=1, le=10**6, description="How many rows of a window are read as one element."
    )
    encoder: Part = Field(default=Part(), description="Where the encoder differs; what is not given is as in [model].")
    decoder: Part = Field(default=Part(), description="Where the decoder differs; what is not given is as in [model].")

    def side(self, name: Literal["encoder", "decoder"]) -> Body:
        """All settings of one side, with nothing left to derive."""
        body = self._body(self.encoder if name == "encoder" else self.decoder)
        return body if name == "encoder" else body.model_copy(update={"bidirectional": False})

    def _body(self, part: Part) -> Body:
        """All settings of [model], or what a part of it says instead."""
        given = part.model_dump(exclude_none=True)
        values = {key: getattr(self, key) for key in Body.model_fields} | given
        # What remembers the last value that it saw reads forwards, unless somebody insists and is refused.
        values["bidirectional"] = (
            values["kind"] != "gru-d" if values["bidirectional"] is None else values["bidirectional"]
        )
        listed = values["size"] if isinstance(values["size"], tuple) else (values["size"],)
        if isinstance(part.size, tuple) and part.depth is None:
            values["depth"] = 0  # a part that lists its own layers says with it how many
        values["depth"] = values["depth"] or len(listed)
        values["feed_forward"] = values["feed_forward"] or 4 * listed[-1]
        return Body.model_validate(values)

    def reader(self, ahead: bool) -> Body:
        """The encoder's side; where nothing may look `ahead`, it reads forwards."""
        body = self.side("encoder")
        return body if ahead else body.model_copy(update={"bidirectional": False})

    def resolved(self, encodes: bool = True, decodes: bool = True, ahead: bool = True) -> "Model":
        """With nothing left to derive, for a network that has these sides."""
        both, encoder, decoder = self._body(Part()), self.reader(ahead), self.side("decoder")
        return self.model_copy(
            update={
                "depth": both.depth,
                "bidirectional": encodes and ahead and both.bidirectional,
                "embedding": self.embedding or (decoder if decodes else encoder).sizes[0],
                "feed_forward": both.feed_forward,
                "encoder": Part.model_validate(encoder.model_dump()) if encodes else Part(),
                "decoder": Part.model_validate(decoder.model_dump()) if decodes else Part(),
            }
        )

    def fault(self, encodes: bool = True, decodes: bool = True, ahead: bool = True) -> str:
        """What cannot be built of it, for a network that has these sides; nothing if all can."""
        encoder, decoder = self.reader(ahead), self.side("decoder")
        if encodes and ahead and encoder.kind == "transformer" and not encoder.bidirectional:
            name = "model.bidirectional" if self.encoder.bidirectional is None else "model.encoder.bidirectional"
            return f"{name} is false, but a Transformer encoder always sees both sides"
        for side, body, there in (("encoder", encoder, encodes), ("decoder", decoder, decodes)):
            if there and (fault := body.fault()):
                return f"the {side} {fault}"
        if encodes and decodes and decoder.kind in ("convolution", "linear") and self.attention == "none":
            return f'a {decoder.kind} decoder knows the source only by looking: model.attention is "none"'
        vector = self.embedding or decoder.sizes[0]
        if decodes and self.tied and vector != decoder.width:
            return (
                f"model.tied wants the decoder's last layer as wide as a token's vector: {decoder.width}, not {vector}"
            )
        return ""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.decoder.bidirectional:
            raise ValueError("model.decoder.bidirectional is true, but a decoder may not see the future it is to write")
        return self
