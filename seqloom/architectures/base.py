"""What the settings of every architecture have in common. Settings know no torch until something is built of them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from ..config.messages import literal
from ..config.section import OneOf, ReadIf, Section, find_idle, setting

if TYPE_CHECKING:
    from torch import nn

    from ..layers.attention import Attention
    from ..layers.base import Encoder, Layer
    from ..layers.cells import MakeCell
    from ..layers.recurrent import FinalStateSizes

M = TypeVar("M", bound="nn.Module")
MOST_LAYERS = 1000
BIAS = "Whether there are biases: in products, convolutions and norms, in attention, embedding and head alike."


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _check_layers(size: int | tuple[int, ...]) -> int | tuple[int, ...]:
    if isinstance(size, tuple) and len(size) > MOST_LAYERS:
        raise ValueError(f"{len(size)} layers are listed, but there can be at most {MOST_LAYERS}")
    return size


Width = Annotated[int, Field(ge=1, le=2**16)]
Widths = Annotated[list[Width], Field(min_length=1, max_length=MOST_LAYERS)]
Size = Annotated[
    Width | Annotated[tuple[Width, ...], Field(min_length=1)],
    BeforeValidator(_as_tuple, json_schema_input_type=Width | Widths),
    AfterValidator(_check_layers),
]


class Architecture(Section):
    """The settings of one side of a network. A subclass has a `kind` and what only that kind reads."""

    kind: str = Field(description="The architecture.")
    size: Size = setting(128, "Features of a hidden layer; a list gives each recurrent layer a size of its own.")
    dropout: float = setting(
        0.1,
        "The share of features that dropout sets to 0 in training: of the embedding, between layers, and before the "
        "head.",
        ge=0,
        lt=1,
    )

    encoder_settings: ClassVar[type[Section]] = Section  # what only an encoder has that may read ahead
    start_settings: ClassVar[type[Section]] = Section  # what only one has that no encoder gives a state to
    whole_window: ClassVar["type[Architecture] | None"] = None  # what it is where a window of numbers is read at once
    decoder_settings: ClassVar[type[Section]] = Section  # what only a decoder has that looks at a source
    only_numbers: ClassVar[bool] = False  # whether it reads numbers of which some are missing, and nothing else
    only_classifies: ClassVar[bool] = False  # whether all it can do is to sum up the tokens of a sequence

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # what only some kinds have: ask for `kind` first

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size of each layer."""
        return self.size if isinstance(self.size, tuple) else (self.size,)

    @property
    def width(self) -> int:
        """The number of output features."""
        return self.sizes[-1]

    @property
    def shape(self) -> str:
        """In few words: "gru 128 × 2", or "gru 64, 32" where the layers differ."""
        if isinstance(self.size, tuple):
            return f"{self.kind} {', '.join(map(str, self.size))}"
        return f"{self.kind} {self.size} × {len(self.sizes)}"

    def derive(self) -> dict[str, object]:
        """The settings that follow from others where they are 0."""
        return {}

    def complete(self) -> Self:
        """The settings with every derived value filled in."""
        return self.model_copy(update=self.derive())

    def fault(self) -> str:
        """Why no network can be built of these settings, or nothing."""
        if idle := find_idle(self):
            name, limit = idle
            return f"has {name} {literal(getattr(self, name))}, but it is read only {limit.words}"
        return ""

    def drop_biases(self, net: M) -> M:
        """What was built, without biases if there are to be none."""
        from ..layers.biases import leave_out_biases

        if not getattr(self, "bias", True):
            leave_out_biases(net)
        return net

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        """What reads vectors of so many features; `ahead` says whether it may see what comes later, `pool` what sums it
        up, perhaps by so many learned `queries`. Every kind has one; a table that leaves the kind open has none."""
        raise TypeError(f"{self.kind} has no network of its own")

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: "FinalStateSizes" = (), own: "MakeCell | None" = None
    ) -> "Layer":
        """What writes, about a memory of so many features if there is one. Some kinds only read, and no recipe can have
        them write."""
        raise TypeError(f"{self.kind} reads and does not write")


class LayeredArchitecture(Architecture):
    """Settings of architectures with several layers."""

    depth: int = setting(
        0, "Layers on top of each other; 0 is one, or as many as model.size lists.", ge=0, le=MOST_LAYERS
    )

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.size if isinstance(self.size, tuple) else (self.size,) * (self.depth or 1)

    def derive(self) -> dict[str, object]:
        return {"depth": len(self.sizes)}

    def fault(self) -> str:
        if isinstance(self.size, tuple) and self.depth not in (0, len(self.size)):
            return f"has depth {self.depth}, but its size lists {len(self.size)} layers: depth 0 is as many as listed"
        return super().fault()


def import_attention(name: str) -> Callable[..., "Attention"]:
    """What builds the attention of this name in `layers/attention.py`; settings know no torch, so it comes late."""

    def build(query: int, memory: int, hard: bool = False) -> "Attention":
        from ..layers import attention

        return getattr(attention, name)(query, memory, hard)

    return build


# How a decoder without an attention of its own scores the elements of a source: by the features of a query, those of
# the memory, and whether it is hard.
ATTENTIONS: dict[str, Callable[..., "Attention"]] = {
    "dot": import_attention("DotAttention"),
    "scaled": import_attention("ScaledDotAttention"),
    "additive": import_attention("AdditiveAttention"),
    "projected": import_attention("ProjectedAttention"),
}


WITH_ATTENTION = ReadIf(lambda side: side.attention != "none", "with an attention")


class SourceAttention(Section):
    """How a decoder without an attention of its own looks at the source."""

    attention: Annotated[str, OneOf(ATTENTIONS, ("none",))] = setting(
        "additive",
        "How the decoder scores the elements of the source that it looks at; projected is scaled with projections of "
        "query, key and value.",
    )
    hard_attention: Annotated[bool, WITH_ATTENTION] = setting(
        False,
        "Whether attention looks at the best-scored element only instead of a mean; its gradient is that of the mean.",
    )
    local_attention: Annotated[Literal["none", "monotonic", "predictive"], WITH_ATTENTION] = setting(
        "none",
        "Whether a step looks only around one element of the source: that of its own number (Luong's local-m), or one "
        "that it predicts (local-p).",
    )
    attention_window: Annotated[int, ReadIf(lambda side: side.local_attention != "none", "with local_attention")] = (
        setting(10, "How many elements a local attention sees on each side of its center.", ge=1, le=10**6)
    )


def build_attention(side: Architecture, query: int, memory: int) -> "Attention":
    from ..layers.local_attention import MonotonicAttention, PredictiveAttention

    attention = ATTENTIONS[side.attention](query, memory, side.hard_attention)
    if side.local_attention == "monotonic":
        return MonotonicAttention(attention, side.attention_window)
    if side.local_attention == "predictive":
        return PredictiveAttention(attention, side.attention_window, query)
    return attention
