"""What BERT, DistilBERT and RoBERTa share: a post-norm Transformer encoder, and the heads on top of it.

The layers of the body are the positions, the norm of the embeddings, and then two to a block: attention and the small
net. The names below are what the families' tables call ours.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ...layers.attention import MultiHeadAttention
from ...layers.base import Encoder, Layer, Pointwise, Pool, Stack, first_pool
from ...layers.embeddings import SegmentEmbedding, TokenEmbedding
from ...layers.heads import Categorical, Head, MLPHead
from ...layers.positions import LearnedPositions, NoRotation
from ...layers.residual import PostNorm
from ...layers.transformer import SelfAttention, set_epsilon
from .family import ACTIVATIONS, Activation, Depth, FolderConfig, Share, Size
from .model import NoHead


class EncoderConfig(FolderConfig):
    """The sizes of such an encoder; each family says what it calls them."""

    vocabulary: int
    size: int
    depth: int
    heads: int
    hidden: int
    activation: str
    dropout: float
    attention_dropout: float
    head_dropout: float | None
    positions: int
    epsilon: float
    segments: int = 0
    tied: Literal[True] = Field(True, alias="tie_word_embeddings")

    @property
    def offset(self) -> int:
        """Rows of the table of positions that belong to no place."""
        return 0


class BertConfig(EncoderConfig):
    """As BERT and RoBERTa call them."""

    size: Size = Field(768, alias="hidden_size")
    depth: Depth = Field(12, alias="num_hidden_layers")
    heads: Depth = Field(12, alias="num_attention_heads")
    hidden: Size = Field(3072, alias="intermediate_size")
    activation: Activation = Field("gelu", alias="hidden_act")
    dropout: Share = Field(0.1, alias="hidden_dropout_prob")
    attention_dropout: Share = Field(0.1, alias="attention_probs_dropout_prob")
    head_dropout: Share | None = Field(None, alias="classifier_dropout")
    positions: Size = Field(512, alias="max_position_embeddings")
    epsilon: float = Field(1e-12, alias="layer_norm_eps", gt=0, lt=1)
    segments: Size = Field(2, alias="type_vocab_size")


class Pooler(nn.Module):
    """A product and tanh of the first token: BERT's vector of a text."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, size)

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        return torch.tanh(self.dense(first_pool(values, mask)))


def build_embedding(config: EncoderConfig) -> tuple[nn.Module, TokenEmbedding]:
    """The first layer, and the vectors of the tokens within it, which the head may share."""
    tokens = TokenEmbedding(config.vocabulary, config.size, scaled=False)
    return (SegmentEmbedding(tokens, config.segments) if config.segments else tokens), tokens


def build_body(config: EncoderConfig, pool: Pool) -> Encoder:
    layers: list[Layer] = [
        LearnedPositions(config.size, config.positions - config.offset, config.offset),
        Pointwise(nn.LayerNorm(config.size), nn.Dropout(config.dropout)),
    ]
    for _ in range(config.depth):
        attend = MultiHeadAttention(config.size, config.heads, dropout=config.attention_dropout)
        layers.append(PostNorm(config.size, SelfAttention(config.size, attend, NoRotation()), config.dropout))
        net = Pointwise(
            nn.Linear(config.size, config.hidden),
            ACTIVATIONS[config.activation](),
            nn.Linear(config.hidden, config.size),
        )
        layers.append(PostNorm(config.size, net, config.dropout))
    return Encoder(set_epsilon(Stack(*layers), config.epsilon), pool)


def build_masked_head(config: EncoderConfig, tokens: TokenEmbedding, activation: str) -> Head:
    """A hidden layer with a norm, and the vectors of the tokens once more."""
    words = Categorical(config.size, config.vocabulary)
    words.project.weight = tokens.weight
    after = [ACTIVATIONS[activation](), nn.LayerNorm(config.size, config.epsilon)]
    return MLPHead(config.size, config.size, words, after=after)


def build_label_head(config: EncoderConfig, bend: Sequence[nn.Module] = ()) -> Head:
    """The labels, by one product or, with something to do after the first, by two."""
    labels = Categorical(config.size, config.labels)
    return MLPHead(config.size, config.size, labels, after=bend) if bend else labels


def build_head(config: EncoderConfig, head: str, tokens: TokenEmbedding, bend: Sequence[nn.Module] = ()) -> Head:
    if head == "masked":
        return build_masked_head(config, tokens, config.activation)
    if head == "none":
        return NoHead()
    return build_label_head(config, bend if head == "sequence" else ())


def number_blocks(depth: int) -> list[dict[str, int]]:
    """Where the layers of each block stand in the stack."""
    return [{"n": n, "attention": 2 + 2 * n, "net": 3 + 2 * n} for n in range(depth)]


def number_positions(prefix: str, config: EncoderConfig) -> Mapping[str, Tensor | None]:
    """The numbers of the positions, which old folders hold besides the weights."""
    return {f"{prefix}embeddings.position_ids": torch.arange(config.positions)[None]}
