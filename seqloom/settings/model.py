"""[model]: the network, and where its two sides differ.

A body's settings occur three times: in [model], where both sides find them; again, all optional, in [model.encoder]
and [model.decoder]; and complete in a `Body`. What each of them means is said once, in the types below.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from .section import Section

Kind = Annotated[
    Literal["rnn", "lstm", "peephole", "coupled", "gru", "transformer"],
    Field(description="What reads and writes the sequences: a recurrent cell, or a Transformer."),
]
Size = Annotated[int, Field(ge=1, le=2**16, description="Features a step.")]
Depth = Annotated[int, Field(ge=1, le=1000, description="Layers on top of each other.")]
Dropout = Annotated[float, Field(ge=0, lt=1, description="The share of features left out at random in training.")]
BothWays = Annotated[
    bool,
    Field(
        description="Whether a recurrent encoder reads from both ends, with half its size each; "
        "a Transformer encoder always sees both sides, a decoder never the future."
    ),
]
Peephole = Annotated[
    Literal["diagonal", "full"],
    Field(description="What the gates of a peephole LSTM see of the cell: each unit its own value, or all of them."),
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
    Field(description="Where a Transformer's parts are normalised: behind, in front, or nowhere, starting from zero."),
]


class Part(Section):
    """One side's own settings; what is not given is as in [model]."""

    kind: Kind | None = None
    size: Size | None = None
    depth: Depth | None = None
    dropout: Dropout | None = None
    both_ways: BothWays | None = None
    peephole: Peephole | None = None
    reset: Reset | None = None
    heads: Heads | None = None
    feed_forward: FeedForward | None = None
    norm: Norm | None = None


class Body(Section):
    """The complete settings of one side."""

    kind: Kind
    size: Size
    depth: Depth
    dropout: Dropout
    both_ways: BothWays
    peephole: Peephole
    reset: Reset
    heads: Heads
    feed_forward: FeedForward
    norm: Norm


class Model(Section):
    kind: Kind = "gru"
    size: Size = 128
    depth: Depth = 1
    embedding: int = Field(
        default=0, ge=0, le=2**16, description="Features of a token's vector; 0 is as many as model.size."
    )
    dropout: Dropout = 0.1
    both_ways: BothWays = True
    attention: Literal["none", "dot", "additive"] = Field(
        default="additive",
        description="How a recurrent decoder looks back at the source; "
        "a Transformer decoder has an attention of its own and does not read this.",
    )
    peephole: Peephole = "diagonal"
    reset: Reset = "after"
    heads: Heads = 4
    feed_forward: FeedForward = 0
    norm: Norm = "pre"
    encoder: Part = Field(default=Part(), description="Where the encoder differs; what is not given is as in [model].")
    decoder: Part = Field(default=Part(), description="Where the decoder differs; what is not given is as in [model].")

    def side(self, name: Literal["encoder", "decoder"]) -> Body:
        """All settings of one side, with nothing left to derive."""
        part = self.encoder if name == "encoder" else self.decoder
        values = {key: getattr(self, key) for key in Body.model_fields} | part.model_dump(exclude_none=True)
        values["feed_forward"] = values["feed_forward"] or 4 * values["size"]
        values["both_ways"] = values["both_ways"] and name == "encoder"
        return Body.model_validate(values)

    def resolved(self) -> "Model":
        return self.model_copy(
            update={
                "embedding": self.embedding or self.size,
                "feed_forward": self.feed_forward or 4 * self.size,
                "encoder": Part.model_validate(self.side("encoder").model_dump()),
                "decoder": Part.model_validate(self.side("decoder").model_dump()),
            }
        )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        encoder, decoder = self.side("encoder"), self.side("decoder")
        if self.decoder.both_ways:
            raise ValueError("model.decoder.both_ways is true, but a decoder may not see the future it is to write")
        if encoder.kind == "transformer" and not encoder.both_ways:
            name = "model.both_ways" if self.encoder.both_ways is None else "model.encoder.both_ways"
            raise ValueError(f"{name} is false, but a Transformer encoder always sees both sides")
        if encoder.kind != "transformer" and encoder.both_ways and encoder.size % 2:
            raise ValueError(f"the encoder's size {encoder.size} is odd, but with both_ways each way gets half of it")
        for side, body in (("encoder", encoder), ("decoder", decoder)):
            if body.kind == "transformer" and body.size % body.heads:
                raise ValueError(f"the {side} has size {body.size} and heads {body.heads}, which must divide it evenly")
        return self
