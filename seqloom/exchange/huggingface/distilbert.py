"""DistilBERT (Sanh et al., 2019): BERT's shape without segments and pooler, under names of its own."""

from collections.abc import Mapping
from functools import partial

from pydantic import Field
from torch import nn

from ...layers.base import first_pool
from ...models import Labeler
from .encoders import EncoderConfig, build_body, build_embedding, build_head, number_blocks, number_positions
from .family import Activation, Depth, Family, Parts, Share, Size
from .model import EncoderModel
from .table import Row, repeat_rows

EMBEDDINGS = (
    Row("distilbert.embeddings.word_embeddings.weight", "network.embed.weight"),
    Row("distilbert.embeddings.position_embeddings.weight", "network.encoder.layer.layers.0.table"),
    Row("distilbert.embeddings.LayerNorm.*", "network.encoder.layer.layers.1.module.0.*"),
)
BLOCK = (
    Row(
        "distilbert.transformer.layer.{n}.attention.<q_lin+k_lin+v_lin>.*",
        "network.encoder.layer.layers.{attention}.layer.project.*",
    ),
    Row(
        "distilbert.transformer.layer.{n}.attention.out_lin.*",
        "network.encoder.layer.layers.{attention}.layer.attend.out.*",
    ),
    Row("distilbert.transformer.layer.{n}.sa_layer_norm.*", "network.encoder.layer.layers.{attention}.norm.*"),
    Row("distilbert.transformer.layer.{n}.ffn.lin1.*", "network.encoder.layer.layers.{net}.layer.module.0.*"),
    Row("distilbert.transformer.layer.{n}.ffn.lin2.*", "network.encoder.layer.layers.{net}.layer.module.2.*"),
    Row("distilbert.transformer.layer.{n}.output_layer_norm.*", "network.encoder.layer.layers.{net}.norm.*"),
)
HEADS: Mapping[str, tuple[Row, ...]] = {
    "masked": (
        Row("vocab_transform.*", "network.head.hidden.0.*"),
        Row("vocab_layer_norm.*", "network.head.hidden.2.*"),
        Row("vocab_projector.bias", "network.head.head.project.bias"),
    ),
    "sequence": (
        Row("pre_classifier.*", "network.head.hidden.0.*"),
        Row("classifier.*", "network.head.head.project.*"),
    ),
    "token": (Row("classifier.*", "network.head.project.*"),),
    "none": (),
}


class Config(EncoderConfig):
    vocabulary: Size = Field(30522, alias="vocab_size")
    size: Size = Field(768, alias="dim")
    depth: Depth = Field(6, alias="n_layers")
    heads: Depth = Field(12, alias="n_heads")
    hidden: Size = Field(3072, alias="hidden_dim")
    activation: Activation = "gelu"
    dropout: Share = 0.1
    attention_dropout: Share = 0.1
    head_dropout: Share | None = Field(0.2, alias="seq_classif_dropout")
    positions: Size = Field(512, alias="max_position_embeddings")
    epsilon: float = 1e-12  # theirs is fixed


def build(config: Config, head: str, extras: frozenset[str]) -> Parts:
    embed, tokens = build_embedding(config)
    answer = build_head(config, head, tokens, [nn.ReLU(), nn.Dropout(config.head_dropout or 0.0)])
    dropout = config.dropout if head == "token" else 0.0
    return Parts(Labeler(embed, build_body(config, first_pool), answer, head != "sequence", dropout))


def rows(config: Config, head: str, extras: frozenset[str]) -> list[Row]:
    return [*EMBEDDINGS, *repeat_rows(BLOCK, number_blocks(config.depth)), *HEADS[head]]


def ties(config: Config) -> Mapping[str, str]:
    return {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}


DISTILBERT = Family(
    name="distilbert",
    prefix="distilbert.",
    config=Config,
    architectures={
        "DistilBertForMaskedLM": "masked",
        "DistilBertForSequenceClassification": "sequence",
        "DistilBertForTokenClassification": "token",
        "DistilBertModel": "none",
    },
    extras={},
    needed={},
    model=EncoderModel,
    build=build,
    rows=rows,
    ties=ties,
    constants=partial(number_positions, "distilbert."),
)
