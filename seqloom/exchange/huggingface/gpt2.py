"""GPT-2 (Radford et al., 2019): a pre-norm decoder that shares its vectors with its head."""

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ...layers.attention import MultiHeadAttention
from ...layers.base import Layer, Pointwise, Stack
from ...layers.embeddings import TokenEmbedding
from ...layers.heads import Categorical, Head
from ...layers.positions import LearnedPositions, NoRotation
from ...layers.residual import PreNorm
from ...layers.transformer import CausalAttention, set_epsilon
from ...models import Generator
from .encoders import number_blocks
from .family import ACTIVATIONS, Activation, Depth, Family, FolderConfig, Parts, Share, Size, Token
from .model import LanguageModel, NoHead
from .table import TRANSPOSED, WeightRow, repeat_rows

EMBEDDINGS = (
    WeightRow("transformer.wte.weight", "network.embed.weight"),
    WeightRow("transformer.wpe.weight", "network.decoder.layers.0.table"),
)
BLOCK = (  # their products are stored the other way round
    WeightRow("transformer.h.{n}.ln_1.*", "network.decoder.layers.{attention}.norm.*"),
    WeightRow("transformer.h.{n}.attn.c_attn.*", "network.decoder.layers.{attention}.layer.project.*", TRANSPOSED),
    WeightRow("transformer.h.{n}.attn.c_proj.*", "network.decoder.layers.{attention}.layer.attend.out.*", TRANSPOSED),
    WeightRow("transformer.h.{n}.ln_2.*", "network.decoder.layers.{net}.norm.*"),
    WeightRow("transformer.h.{n}.mlp.c_fc.*", "network.decoder.layers.{net}.layer.module.0.*", TRANSPOSED),
    WeightRow("transformer.h.{n}.mlp.c_proj.*", "network.decoder.layers.{net}.layer.module.2.*", TRANSPOSED),
)
END = (WeightRow("transformer.ln_f.*", "network.decoder.layers.{end}.module.0.*"),)
UNTIED = (WeightRow("lm_head.weight", "network.head.project.weight"),)


class Config(FolderConfig):
    vocabulary: Size = Field(50257, alias="vocab_size")
    size: Size = Field(768, alias="n_embd")
    depth: Depth = Field(12, alias="n_layer")
    heads: Depth = Field(12, alias="n_head")
    hidden: Size | None = Field(None, alias="n_inner")
    activation: Activation = Field("gelu_new", alias="activation_function")
    dropout: Share = Field(0.1, alias="resid_pdrop")
    embedding_dropout: Share = Field(0.1, alias="embd_pdrop")
    attention_dropout: Share = Field(0.1, alias="attn_pdrop")
    positions: Size = Field(1024, alias="n_positions")
    epsilon: float = Field(1e-5, alias="layer_norm_epsilon", gt=0, lt=1)
    end: Token | list[Token] | None = Field(50256, alias="eos_token_id")
    scale_attn_weights: Literal[True] = True
    scale_attn_by_inverse_layer_idx: Literal[False] = False


def build(config: Config, head: str, extras: frozenset[str]) -> Parts:
    embed, hidden = TokenEmbedding(config.vocabulary, config.size, scaled=False), config.hidden or 4 * config.size
    layers: list[Layer] = [
        LearnedPositions(config.size, config.positions),
        Pointwise(nn.Dropout(config.embedding_dropout)),
    ]
    for _ in range(config.depth):
        attend = MultiHeadAttention(config.size, config.heads, dropout=config.attention_dropout)
        layers.append(PreNorm(config.size, CausalAttention(config.size, attend, NoRotation()), config.dropout))
        bend = ACTIVATIONS[config.activation]()
        net = Pointwise(nn.Linear(config.size, hidden), bend, nn.Linear(hidden, config.size))
        layers.append(PreNorm(config.size, net, config.dropout))
    layers.append(Pointwise(nn.LayerNorm(config.size)))
    answer: Head = NoHead()
    if head == "language":
        answer = words = Categorical(config.size, config.vocabulary, bias=False)
        if config.tied:
            words.project.weight = embed.weight
    return Parts(Generator(embed, set_epsilon(Stack(*layers), config.epsilon), answer))


def rows(config: Config, head: str, extras: frozenset[str]) -> list[WeightRow]:
    blocks = repeat_rows(BLOCK, number_blocks(config.depth))
    end = repeat_rows(END, [{"end": 2 + 2 * config.depth}])
    return [*EMBEDDINGS, *blocks, *end, *(UNTIED if head == "language" and not config.tied else ())]


def ties(config: Config) -> Mapping[str, str]:
    return {"lm_head.weight": "transformer.wte.weight"} if config.tied else {}


def constants(config: Config) -> Mapping[str, Tensor | None]:
    """The masks that folders of old versions hold: what is before each place, and the number for what is not."""
    before = torch.ones(config.positions, config.positions).tril()[None, None] if config.positions <= 1 << 13 else None
    masks: dict[str, Tensor | None] = {}
    for n in range(config.depth):
        masks |= {f"transformer.h.{n}.attn.bias": before, f"transformer.h.{n}.attn.masked_bias": torch.tensor(-1e4)}
    return masks


GPT2 = Family(
    name="gpt2",
    prefix="transformer.",
    config=Config,
    architectures={"GPT2LMHeadModel": "language", "GPT2Model": "none"},
    extras={},
    needed={},
    model=LanguageModel,
    build=build,
    rows=rows,
    ties=ties,
    constants=constants,
)
