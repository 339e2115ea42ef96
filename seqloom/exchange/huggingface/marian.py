"""Marian (Junczys-Dowmunt et al., 2018): the Transformer of Vaswani et al., norm last, that the OPUS models are."""

from collections.abc import Mapping
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from ...layers.attention import MultiHeadAttention
from ...layers.base import Encoder, Layer, Pointwise, Stack, mean_pool
from ...layers.embeddings import TokenEmbedding
from ...layers.heads import Categorical
from ...layers.positions import NoRotation, SinusoidalPositions, frequencies, sinusoids
from ...layers.residual import PostNorm
from ...layers.transformer import CausalAttention, CrossAttention, SelfAttention
from ...models import Generator, Source
from .family import ACTIVATIONS, Activation, Depth, Family, FolderConfig, Parts, Share, Size, Token
from .model import TranslationModel
from .table import ROW, Transform, WeightRow, repeat_rows


def interleave(features: Tensor) -> Tensor:
    """The last axis in the order of our positions: theirs have all sines before all cosines, ours in turns."""
    ours, sines = torch.empty_like(features), (features.shape[-1] + 1) // 2
    ours[..., ::2], ours[..., 1::2] = features[..., :sines], features[..., sines:]
    return ours


def separate(features: Tensor) -> Tensor:
    """The last axis in their order again."""
    return torch.cat([features[..., ::2], features[..., 1::2]], -1)


# Nothing but the positions depends on the order of the features, so the weights that read them or make them take it.
READS = Transform(
    lambda weight: interleave(weight) if weight.dim() > 1 else weight,  # a bias is of what is made
    lambda weight: separate(weight) if weight.dim() > 1 else weight,
)
MAKES = Transform(lambda weight: interleave(weight.t()).t(), lambda weight: separate(weight.t()).t())

SHARED = (WeightRow("model.shared.weight", "network.embed.weight", READS),)
SEPARATE = (
    WeightRow("model.encoder.embed_tokens.weight", "network.source.embed.weight", READS),
    WeightRow("model.decoder.embed_tokens.weight", "network.embed.weight", READS),
)
OURS = {"encoder": "network.source.encoder.layer.layers", "decoder": "network.decoder.layers"}


def attention_rows(side: str, theirs: str, ours: str) -> tuple[WeightRow, ...]:
    """Of attention to itself, whose three products are one of ours, and of its norm."""
    name = f"model.{side}.layers.{{n}}.{theirs}"
    return (
        WeightRow(f"{name}.<q_proj+k_proj+v_proj>.*", f"{OURS[side]}.{{{ours}}}.layer.project.*", READS),
        WeightRow(f"{name}.out_proj.*", f"{OURS[side]}.{{{ours}}}.layer.attend.out.*", MAKES),
        WeightRow(f"{name}_layer_norm.*", f"{OURS[side]}.{{{ours}}}.norm.*", MAKES),
    )


def net_rows(side: str) -> tuple[WeightRow, ...]:
    name = f"model.{side}.layers.{{n}}"
    return (
        WeightRow(f"{name}.fc1.*", f"{OURS[side]}.{{net}}.layer.module.0.*", READS),
        WeightRow(f"{name}.fc2.*", f"{OURS[side]}.{{net}}.layer.module.3.*", MAKES),
        WeightRow(f"{name}.final_layer_norm.*", f"{OURS[side]}.{{net}}.norm.*", MAKES),
    )


CROSS, OUR_CROSS = "model.decoder.layers.{n}.encoder_attn", "network.decoder.layers.{cross}"
ENCODER_BLOCK = (*attention_rows("encoder", "self_attn", "attention"), *net_rows("encoder"))
DECODER_BLOCK = (
    *attention_rows("decoder", "self_attn", "attention"),
    WeightRow(f"{CROSS}.q_proj.*", f"{OUR_CROSS}.layer.query.*", READS),
    WeightRow(f"{CROSS}.<k_proj+v_proj>.*", f"{OUR_CROSS}.layer.key_value.*", READS),
    WeightRow(f"{CROSS}.out_proj.*", f"{OUR_CROSS}.layer.attend.out.*", MAKES),
    WeightRow(f"{CROSS}_layer_norm.*", f"{OUR_CROSS}.norm.*", MAKES),
    *net_rows("decoder"),
)
HEAD = (WeightRow("final_logits_bias", "network.head.project.bias", ROW),)
UNTIED = (WeightRow("lm_head.weight", "network.head.project.weight", READS),)


class Config(FolderConfig):
    vocabulary: Size = Field(58101, alias="vocab_size")
    decoder_vocabulary: Size | None = Field(None, alias="decoder_vocab_size")
    size: Size = Field(1024, alias="d_model")
    encoder_depth: Depth = Field(12, alias="encoder_layers")
    encoder_heads: Depth = Field(16, alias="encoder_attention_heads")
    encoder_hidden: Size = Field(4096, alias="encoder_ffn_dim")
    decoder_depth: Depth = Field(12, alias="decoder_layers")
    decoder_heads: Depth = Field(16, alias="decoder_attention_heads")
    decoder_hidden: Size = Field(4096, alias="decoder_ffn_dim")
    activation: Activation = Field("gelu", alias="activation_function")
    dropout: Share = 0.1
    attention_dropout: Share = 0.0
    activation_dropout: Share = 0.0
    positions: Size = Field(1024, alias="max_position_embeddings")
    scaled: bool = Field(False, alias="scale_embedding")
    start: Token = Field(58100, alias="decoder_start_token_id")
    end: Token | list[Token] | None = Field(0, alias="eos_token_id")
    shared: bool = Field(True, alias="share_encoder_decoder_embeddings")

    @property
    def targets(self) -> int:
        return self.vocabulary if self.shared else self.decoder_vocabulary or self.vocabulary


def build_side(config: Config, side: str) -> Stack:
    own: Any = CausalAttention if side == "decoder" else SelfAttention
    depth, heads, hidden = (getattr(config, f"{side}_{name}") for name in ("depth", "heads", "hidden"))

    def attend() -> MultiHeadAttention:
        return MultiHeadAttention(config.size, heads, dropout=config.attention_dropout)

    with torch.device("cpu"):  # what it holds is computed, not loaded
        positions = SinusoidalPositions(config.size)
    layers: list[Layer] = [positions, Pointwise(nn.Dropout(config.dropout))]
    for _ in range(depth):
        inner: list[Layer] = [own(config.size, attend(), NoRotation())]
        inner += [CrossAttention(config.size, config.size, attend())] if side == "decoder" else []
        into, out = nn.Linear(config.size, hidden), nn.Linear(hidden, config.size)
        inner.append(Pointwise(into, ACTIVATIONS[config.activation](), nn.Dropout(config.activation_dropout), out))
        layers += [PostNorm(config.size, layer, config.dropout) for layer in inner]
    return Stack(*layers)


def build(config: Config, head: str, extras: frozenset[str]) -> Parts:
    embed = TokenEmbedding(config.targets, config.size, scaled=config.scaled)
    reads = embed if config.shared else TokenEmbedding(config.vocabulary, config.size, scaled=config.scaled)
    source = Source(reads, Encoder(build_side(config, "encoder"), mean_pool))
    words = Categorical(config.size, config.targets)
    if config.tied:
        words.project.weight = embed.weight
    return Parts(Generator(embed, build_side(config, "decoder"), words, source))


def rows(config: Config, head: str, extras: frozenset[str]) -> list[WeightRow]:
    encoder = [{"n": n, "attention": 2 + 2 * n, "net": 3 + 2 * n} for n in range(config.encoder_depth)]
    decoder = [
        {"n": n, "attention": 2 + 3 * n, "cross": 3 + 3 * n, "net": 4 + 3 * n} for n in range(config.decoder_depth)
    ]
    body = [*(SHARED if config.shared else SEPARATE), *repeat_rows(ENCODER_BLOCK, encoder)]
    return [*body, *repeat_rows(DECODER_BLOCK, decoder), *HEAD, *(() if config.tied else UNTIED)]


def ties(config: Config) -> Mapping[str, str]:
    shared = {"model.encoder.embed_tokens.weight": "model.shared.weight"}
    shared |= {"model.decoder.embed_tokens.weight": "model.shared.weight"}
    vectors = "model.shared.weight" if config.shared else "model.decoder.embed_tokens.weight"
    return {**(shared if config.shared else {}), **({"lm_head.weight": vectors} if config.tied else {})}


def constants(config: Config) -> Mapping[str, Tensor | None]:
    if config.positions * config.size > 1 << 27:
        return {}
    waves = sinusoids(torch.arange(config.positions), frequencies(config.size), config.size)
    return {f"model.{side}.embed_positions.weight": separate(waves) for side in OURS}


MARIAN = Family(
    name="marian",
    prefix="model.",
    config=Config,
    architectures={"MarianMTModel": "translation"},
    extras={},
    needed={},
    model=TranslationModel,
    build=build,
    rows=rows,
    ties=ties,
    constants=constants,
)
