"""The Transformer (Vaswani et al., 2017): settings, and how its encoder and decoder are built of them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from ..config.section import ReadIf
from .base import BIAS, LayeredArchitecture
from .pooling import POOLS, PooledFeatures

if TYPE_CHECKING:
    from ..layers.base import Encoder, Layer
    from ..layers.cells import MakeCell
    from ..layers.recurrent import FinalStateSizes


class Transformer(LayeredArchitecture):
    kind: Literal["transformer"] = "transformer"
    heads: int = Field(default=4, ge=1, le=1000, description="Attention heads.")
    key_size: int = Field(
        default=0,
        ge=0,
        le=2**16,
        description="Features of a query and of a key in each head; 0 is the size divided by the heads.",
    )
    value_size: int = Field(
        default=0, ge=0, le=2**16, description="Features of a value in each head; 0 is as many as a key has."
    )
    feed_forward: int = Field(
        default=0, ge=0, le=2**20, description="Features inside the feed-forward blocks; 0 is four times the size."
    )
    attention_dropout: float = Field(
        default=0.0, ge=0, lt=1, description="The share of attention weights that dropout sets to 0 in training."
    )
    hard_attention: bool = Field(
        default=False,
        description="Whether each head looks at the best-scored element only instead of a mean; its gradient is "
        "that of the mean.",
    )
    activation: Literal["relu", "gelu", "gelu_tanh", "swiglu"] = Field(
        default="gelu",
        description="The activation function of the feed-forward blocks; gelu_tanh is its approximation in GPT-2.",
    )
    norm: Literal["post", "pre", "rezero"] = Field(
        default="pre",
        description="Where blocks are normalized: behind the residual sum, in front of the block, or nowhere, with a "
        "learned factor that starts at 0.",
    )
    rezero_shared: Annotated[bool, ReadIf(lambda side: side.norm == "rezero", 'with norm "rezero"')] = Field(
        default=False, description="Whether the blocks of a layer share one ReZero factor; else each has its own."
    )
    norm_type: Annotated[
        Literal["layer", "rms"],
        ReadIf(
            lambda side: side.norm != "rezero" or side.embedding_norm, 'unless norm is "rezero" without embedding_norm'
        ),
    ] = Field(default="layer", description="The normalization: LayerNorm or RMSNorm.")
    norm_epsilon: Annotated[
        float,
        ReadIf(
            lambda side: side.norm_type == "layer" and (side.norm != "rezero" or side.embedding_norm),
            'with norm_type "layer", unless norm is "rezero" without embedding_norm',
        ),
    ] = Field(default=1e-5, gt=0, lt=1, description="What LayerNorm adds to the variance; BERT has 1e-12.")
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = Field(
        default="rotary", description="The position encoding."
    )
    embedding_norm: bool = Field(
        default=False, description="Whether embeddings are normalized, with their positions, before the first layer."
    )
    max_positions: Annotated[int, ReadIf(lambda side: side.positions == "learned", 'with positions "learned"')] = Field(
        default=1024, ge=1, le=10**6, description="The largest number of learned positions."
    )
    window: int = Field(
        default=0, ge=0, le=10**6, description="How many elements the self-attention sees at once; 0 is all."
    )
    bias: bool = Field(default=True, description=BIAS)

    def derive(self) -> dict[str, object]:
        return super().derive() | {"feed_forward": self.feed_forward or 4 * self.width}

    def fault(self) -> str:
        if isinstance(self.size, tuple):
            return "lists sizes, but all layers of a Transformer have the same"
        if not self.key_size and self.size % self.heads:
            return f"has size {self.size} and heads {self.heads}, which must divide it evenly unless key_size is given"
        width = self.key_size or self.size // self.heads
        if self.positions == "rotary" and width % 2:
            return f'has positions "rotary", which rotate pairs of features, but {width} in each head'
        return super().fault()

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: MakeCell | None = None
    ) -> Encoder:
        from ..layers.base import Encoder

        return Encoder(
            self._build(inputs, causal=not ahead), POOLS[pool or "mean"](PooledFeatures(self.width, queries))
        )

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: FinalStateSizes = (), own: MakeCell | None = None
    ) -> Layer:
        return self._build(inputs, causal=True, memory=memory)

    def _build(self, inputs: int, causal: bool, memory: int = 0) -> Layer:
        from ..layers.transformer import TransformerConfig, transformer

        settings = self.complete().model_dump(include={field.name for field in fields(TransformerConfig)})
        return transformer(inputs, TransformerConfig(**settings), causal=causal, memory=memory)
