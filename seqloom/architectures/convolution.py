"""Windows that slide over a sequence: convolutions upon convolutions, or one linear filter."""

from typing import TYPE_CHECKING, ClassVar, Literal

from ..config.section import Section, setting
from .base import BIAS, Architecture, LayeredArchitecture, SourceAttention, build_attention
from .pooling import POOLS, PooledFeatures

if TYPE_CHECKING:
    from ..layers.base import Encoder, Layer
    from ..layers.cells import MakeCell
    from ..layers.recurrent import FinalStateSizes


class BothSides(Section):
    bidirectional: bool = setting(
        True, "Whether the encoder's window reaches to both sides of an element, or only back."
    )


class SlidingWindow(Architecture):
    """Settings that convolutional and linear architectures share."""

    kernel_size: int = setting(5, "How many elements a window holds.", ge=1, le=10**6)
    bias: bool = setting(True, BIAS)

    encoder_settings: ClassVar[type[Section]] = BothSides
    decoder_settings: ClassVar[type[Section]] = SourceAttention
    activates: ClassVar[bool] = True

    def fault(self) -> str:
        if isinstance(self.size, tuple):
            return f'lists sizes, but all layers of kind "{self.kind}" have the same'
        if getattr(self, "bidirectional", False) and self.kernel_size % 2 == 0:
            return f"has the even kernel_size {self.kernel_size}, but with bidirectional a window has a middle"
        if getattr(self, "attention", "") == "none":
            return 'needs an attention, because windows have no state to start from, but attention is "none"'
        return super().fault()

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        from ..layers.base import Encoder

        causal = not (ahead and getattr(self, "bidirectional", False))
        return Encoder(self._build(inputs, causal), POOLS[pool or "mean"](PooledFeatures(self.width, queries)))

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: "FinalStateSizes" = (), own: "MakeCell | None" = None
    ) -> "Layer":
        from ..layers.attention_decoders import Luong
        from ..layers.base import Stack

        layer = self._build(inputs, causal=True)
        if not memory:
            return layer
        return Stack(layer, Luong(self.width, memory, build_attention(self, self.width, memory)))

    def _build(self, inputs: int, causal: bool) -> "Layer":
        from ..layers.convolution import convolution

        return self.drop_biases(
            convolution(
                inputs,
                self.width,
                len(self.sizes),
                self.kernel_size,
                causal=causal,
                dropout=self.dropout,
                act=self.activates,
            )
        )


class Convolution(SlidingWindow, LayeredArchitecture):
    kind: Literal["convolution"] = "convolution"


class WholeWindow(Architecture):
    """A linear function of a whole window: it has no features of its own."""

    kind: Literal["linear"] = "linear"
    size: ClassVar[int] = 0  # type: ignore[misc]
    bias: bool = setting(True, BIAS)
    least_squares: bool = setting(
        True,
        "Whether weights begin with the mean of an autoregression and of ridge regressions, as far as model.relative "
        "and model.channel_independent let them, which training then improves.",
    )

    @property
    def shape(self) -> str:
        return self.kind

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        from ..layers.base import Encoder, Stack, flatten_pool

        return Encoder(Stack(), flatten_pool)


class Linear(SlidingWindow):
    """One linear filter; a forecast is a linear function of the whole window."""

    kind: Literal["linear"] = "linear"

    activates: ClassVar[bool] = False
    whole_window: ClassVar["type[Architecture] | None"] = WholeWindow
