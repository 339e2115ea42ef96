"""What BERT, DistilBERT and RoBERTa share: a post-norm Transformer encoder, and the heads on top of it.

The layers of the body are the positions, the norm of the embeddings, and then two to a block: attention and the small
net. A family says how it calls their weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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
from ...models import Labeler
from .family import ACTIVATIONS, Activation, Depth, Family, FolderConfig, Parts, Share, Size
from .model import EncoderModel, NoHead
from .table import WeightRow, repeat_rows


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

    def label_dropout(self, head: str) -> float:
        """The dropout before the product that gives labels."""
        return self.dropout if self.head_dropout is None else self.head_dropout


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


def number_blocks(depth: int) -> list[dict[str, int]]:
    """Where the layers of each block stand in the stack."""
    return [{"n": n, "attention": 2 + 2 * n, "net": 3 + 2 * n} for n in range(depth)]


def number_positions(prefix: str, config: EncoderConfig) -> Mapping[str, Tensor | None]:
    """The numbers of the positions, which old folders hold besides the weights."""
    return {f"{prefix}embeddings.position_ids": torch.arange(config.positions)[None]}


# Our names of the weights, in the order in which `Names` has theirs.
LAYERS = "network.encoder.layer.layers"
BLOCK = (
    f"{LAYERS}.{{attention}}.layer.project.*",
    f"{LAYERS}.{{attention}}.layer.attend.out.*",
    f"{LAYERS}.{{attention}}.norm.*",
    f"{LAYERS}.{{net}}.layer.module.0.*",
    f"{LAYERS}.{{net}}.layer.module.2.*",
    f"{LAYERS}.{{net}}.norm.*",
)
MASKED = ("network.head.hidden.0.*", "network.head.hidden.2.*", "network.head.head.project.bias")
ONE_PRODUCT, TWO_PRODUCTS = ("network.head.project.*",), ("network.head.hidden.0.*", "network.head.head.project.*")
NEXT_SENTENCE = "next_sentence"
EXTRAS = {"pooler": "network.encoder.pool.dense.*", NEXT_SENTENCE: f"others.{NEXT_SENTENCE}.*"}


@dataclass(frozen=True)
class Names:
    """What a family calls the weights of such an encoder."""

    prefix: str  # of the body
    block: str  # of the names within one, which are attention's products, its output and norm, then the net's
    within: tuple[str, str, str, str, str, str]
    masked: tuple[str, str, str]  # the product of the hidden layer, its norm, and the bias of each token
    tokens: tuple[str, str | None]  # a second name of the vectors of the tokens, and of that bias
    sequence: tuple[str, ...]  # of the labels of a text: one product or two
    extras: Mapping[str, str]
    activation: Callable[[], nn.Module] = nn.Identity  # between the two products

    def rows(self, config: EncoderConfig, head: str, extras: frozenset[str]) -> list[WeightRow]:
        theirs = f"{self.prefix}embeddings."
        embeddings = [
            WeightRow(f"{theirs}word_embeddings.weight", f"network.embed.{'tokens.' if config.segments else ''}weight"),
            WeightRow(f"{theirs}position_embeddings.weight", f"{LAYERS}.0.table"),
            WeightRow(f"{theirs}LayerNorm.*", f"{LAYERS}.1.module.0.*"),
        ]
        if config.segments:
            embeddings.append(WeightRow(f"{theirs}token_type_embeddings.weight", "network.embed.weight"))
        block = [
            WeightRow(f"{self.prefix}{self.block}.{name}", own) for name, own in zip(self.within, BLOCK, strict=True)
        ]
        heads: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
            "masked": (self.masked, MASKED),
            "sequence": (self.sequence, ONE_PRODUCT if len(self.sequence) == 1 else TWO_PRODUCTS),
            "token": (("classifier.*",), ONE_PRODUCT),
            "none": ((), ()),
        }
        answers = [WeightRow(*pair) for pair in zip(*heads[head], strict=True)]
        more = [WeightRow(f"{self.extras[name]}*", EXTRAS[name]) for name in sorted(extras)]
        return [*embeddings, *repeat_rows(block, number_blocks(config.depth)), *answers, *more]

    def build(self, config: EncoderConfig, head: str, extras: frozenset[str]) -> Parts:
        embed, tokens = build_embedding(config)
        body = build_body(config, Pooler(config.size) if "pooler" in extras else first_pool)
        others = {NEXT_SENTENCE: nn.Linear(config.size, 2)} if NEXT_SENTENCE in extras else {}
        dropout = config.label_dropout(head) if head in ("sequence", "token") else 0.0
        return Parts(Labeler(embed, body, self.build_head(config, head, tokens), head != "sequence", dropout), others)

    def build_head(self, config: EncoderConfig, head: str, tokens: TokenEmbedding) -> Head:
        """The labels, by one product or two; or, masked, a hidden layer with a norm and the tokens' vectors again."""
        if head == "none":
            return NoHead()
        if head == "masked":
            answer = Categorical(config.size, config.vocabulary)
            answer.project.weight = tokens.weight
            after = [ACTIVATIONS[config.activation](), nn.LayerNorm(config.size, config.epsilon)]
            return MLPHead(config.size, config.size, answer, after=after)
        labels = Categorical(config.size, config.labels)
        if head == "token" or len(self.sequence) == 1:
            return labels
        dropout = config.dropout if config.head_dropout is None else config.head_dropout
        return MLPHead(config.size, config.size, labels, after=[self.activation(), nn.Dropout(dropout)])

    def ties(self, config: EncoderConfig) -> Mapping[str, str]:
        weight, bias = self.tokens
        again = {weight: f"{self.prefix}embeddings.word_embeddings.weight"}
        return again if bias is None else again | {bias: self.masked[2]}

    def family(
        self,
        name: str,
        config: type[EncoderConfig],
        architectures: Mapping[str, str],
        needed: Mapping[str, frozenset[str]],
    ) -> Family:
        return Family(
            name=name,
            prefix=self.prefix,
            config=config,
            architectures=architectures,
            extras=self.extras,
            needed=needed,
            model=EncoderModel,
            build=self.build,
            rows=self.rows,
            ties=self.ties,
            constants=partial(number_positions, self.prefix),
        )
