"""The Transformer (Vaswani et al., 2017): settings, and how its encoder and decoder are built of them."""

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Literal

from ..config.section import ReadIf, setting
from .base import BIAS, LayeredArchitecture
from .pooling import POOLS, PooledFeatures

if TYPE_CHECKING:
    from ..layers.base import Encoder, Layer
    from ..layers.cells import MakeCell
    from ..layers.recurrent import FinalStateSizes


class Transformer(LayeredArchitecture):
    kind: Literal["transformer"] = "transformer"
    heads: int = setting(4, "Attention heads.", ge=1, le=1000)
    key_size: int = setting(
        0, "Features of a query and of a key in each head; 0 is the size divided by the heads.", ge=0, le=2**16
    )
    value_size: int = setting(0, "Features of a value in each head; 0 is as many as a key has.", ge=0, le=2**16)
    feed_forward: int = setting(0, "Features inside the feed-forward blocks; 0 is four times the size.", ge=0, le=2**20)
    attention_dropout: float = setting(
        0.0, "The share of attention weights that dropout sets to 0 in training.", ge=0, lt=1
    )
    hard_attention: bool = setting(
        False,
        "Whether each head looks at the best-scored element only instead of a mean; its gradient is that of the mean.",
    )
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = setting(
        "gelu",
        "The activation function of the feed-forward blocks; gelu_tanh is its approximation in GPT-2, silu is that of "
        "Marian.",
    )
    norm: Literal["post", "pre", "rezero"] = setting(
        "pre",
        "Where blocks are normalized: behind the residual sum, in front of the block, or nowhere, with a learned "
        "factor that starts at 0.",
    )
    rezero_shared: Annotated[bool, ReadIf(lambda side: side.norm == "rezero", 'with norm "rezero"')] = setting(
        False, "Whether the blocks of a layer share one ReZero factor; else each has its own."
    )
    norm_type: Annotated[
        Literal["layer", "rms"],
        ReadIf(
            lambda side: side.norm != "rezero" or side.embedding_norm, 'unless norm is "rezero" without embedding_norm'
        ),
    ] = setting("layer", "The normalization: LayerNorm or RMSNorm.")
    norm_epsilon: Annotated[
        float,
        ReadIf(
            lambda side: side.norm_type == "layer" and (side.norm != "rezero" or side.embedding_norm),
            'with norm_type "layer", unless norm is "rezero" without embedding_norm',
        ),
    ] = setting(1e-5, "What LayerNorm adds to the variance; BERT has 1e-12.", gt=0, lt=1)
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = setting("rotary", "The position encoding.")
    embedding_norm: bool = setting(
        False, "Whether embeddings are normalized, with their positions, before the first layer."
    )
    max_positions: Annotated[int, ReadIf(lambda side: side.positions == "learned", 'with positions "learned"')] = (
        setting(1024, "The largest number of learned positions.", ge=1, le=10**6)
    )
    window: int = setting(0, "How many elements the self-attention sees at once; 0 is all.", ge=0, le=10**6)
    bias: bool = setting(True, BIAS)

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
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        from ..layers.base import Encoder

        return Encoder(
            self._build(inputs, causal=not ahead), POOLS[pool or "mean"](PooledFeatures(self.width, queries))
        )

    def build_decoder(
        self, inputs: int, memory: int = 0, final_states: "FinalStateSizes" = (), own: "MakeCell | None" = None
    ) -> "Layer":
        return self._build(inputs, causal=True, memory=memory)

    def _build(self, inputs: int, causal: bool, memory: int = 0) -> "Layer":
        from ..layers.transformer import TransformerConfig, transformer

        settings = self.complete().model_dump(include={field.name for field in fields(TransformerConfig)})
        return transformer(inputs, TransformerConfig(**settings), causal=causal, memory=memory)
