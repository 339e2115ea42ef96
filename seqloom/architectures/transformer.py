"""The Transformer (Vaswani et al., 2017): settings, and how its encoder and decoder are built of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from .base import Layered, build_pool

if TYPE_CHECKING:
    from ..layers.base import Encoder, Layer
    from ..layers.cells import MakeCell
    from ..layers.recurrent import FinalStateSizes


class Transformer(Layered):
    kind: Literal["transformer"] = "transformer"
    heads: int = Field(default=4, ge=1, le=1000, description="Attention heads; each has its part of the size.")
    feed_forward: int = Field(
        default=0, ge=0, le=2**20, description="Features inside the feed-forward blocks; 0 is four times the size."
    )
    attention_dropout: float = Field(
        default=0.0, ge=0, lt=1, description="The share of attention weights that dropout sets to 0 in training."
    )
    activation: Literal["relu", "gelu", "swiglu"] = Field(
        default="gelu", description="The activation function of the feed-forward blocks."
    )
    norm: Literal["post", "pre", "rezero"] = Field(
        default="pre",
        description="Where blocks are normalized: behind the residual sum, in front of the block, or nowhere, with a "
        "learned factor that starts at 0.",
    )
    norm_type: Literal["layer", "rms"] = Field(default="layer", description="What normalizes: LayerNorm or RMSNorm.")
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = Field(
        default="rotary", description="How the position of an element is told."
    )
    max_positions: int = Field(
        default=1024, ge=1, le=10**6, description="The most elements that learned positions are there for."
    )
    window: int = Field(
        default=0, ge=0, le=10**6, description="How many elements the self-attention sees at once; 0 is all."
    )
    bias: bool = Field(default=True, description="Whether linear layers have a bias.")

    def derived(self) -> dict[str, object]:
        return super().derived() | {"feed_forward": self.feed_forward or 4 * self.width}

    def fault(self) -> str:
        if isinstance(self.size, tuple):
            return "lists sizes, but all layers of a Transformer have the same"
        if self.size % self.heads:
            return f"has size {self.size} and heads {self.heads}, which must divide it evenly"
        if self.positions == "rotary" and self.size // self.heads % 2:
            return f'has positions "rotary", which rotate pairs of features, but {self.size // self.heads} in each head'
        return ""

    def build_encoder(self, inputs: int, *, ahead: bool = True, pool: str = "", own: MakeCell | None = None) -> Encoder:
        from ..layers.base import Encoder

        return Encoder(self._build(inputs, causal=not ahead), build_pool(pool or "mean", self.width))

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: FinalStateSizes = (), own: MakeCell | None = None
    ) -> Layer:
        return self._build(inputs, causal=True, memory=memory)

    def _build(self, inputs: int, causal: bool, memory: int = 0) -> Layer:
        from ..layers.transformer import transformer

        full = self.complete()
        return transformer(
            inputs,
            full.width,
            full.depth,
            full.heads,
            causal=causal,
            memory=memory,
            feed_forward=full.feed_forward,
            norm=full.norm,
            norm_type=full.norm_type,
            activation=full.activation,
            positions=full.positions,
            max_positions=full.max_positions,
            window=full.window,
            dropout=full.dropout,
            attention_dropout=full.attention_dropout,
            bias=full.bias,
        )
