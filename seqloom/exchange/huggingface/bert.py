"""BERT (Devlin et al., 2019): the table of its names, and how it is built."""

from collections.abc import Mapping
from functools import partial

from pydantic import Field
from torch import nn

from ...layers.base import first_pool
from ...models import Labeler
from .encoders import BertConfig, Pooler, build_body, build_embedding, build_head, number_blocks, number_positions
from .family import Family, Parts, Size
from .model import EncoderModel
from .table import Row, repeat_rows

EMBEDDINGS = (
    Row("bert.embeddings.word_embeddings.weight", "network.embed.tokens.weight"),
    Row("bert.embeddings.token_type_embeddings.weight", "network.embed.weight"),
    Row("bert.embeddings.position_embeddings.weight", "network.encoder.layer.layers.0.table"),
    Row("bert.embeddings.LayerNorm.*", "network.encoder.layer.layers.1.module.0.*"),
)
BLOCK = (
    Row(
        "bert.encoder.layer.{n}.attention.self.<query+key+value>.*",
        "network.encoder.layer.layers.{attention}.layer.project.*",
    ),
    Row(
        "bert.encoder.layer.{n}.attention.output.dense.*",
        "network.encoder.layer.layers.{attention}.layer.attend.out.*",
    ),
    Row("bert.encoder.layer.{n}.attention.output.LayerNorm.*", "network.encoder.layer.layers.{attention}.norm.*"),
    Row("bert.encoder.layer.{n}.intermediate.dense.*", "network.encoder.layer.layers.{net}.layer.module.0.*"),
    Row("bert.encoder.layer.{n}.output.dense.*", "network.encoder.layer.layers.{net}.layer.module.2.*"),
    Row("bert.encoder.layer.{n}.output.LayerNorm.*", "network.encoder.layer.layers.{net}.norm.*"),
)
HEADS: Mapping[str, tuple[Row, ...]] = {
    "masked": (
        Row("cls.predictions.transform.dense.*", "network.head.hidden.0.*"),
        Row("cls.predictions.transform.LayerNorm.*", "network.head.hidden.2.*"),
        Row("cls.predictions.bias", "network.head.head.project.bias"),
    ),
    "sequence": (Row("classifier.*", "network.head.project.*"),),
    "token": (Row("classifier.*", "network.head.project.*"),),
    "none": (),
}
EXTRAS = {
    "pooler": Row("bert.pooler.dense.*", "network.encoder.pool.dense.*"),
    "next_sentence": Row("cls.seq_relationship.*", "others.next_sentence.*"),
}


class Config(BertConfig):
    vocabulary: Size = Field(30522, alias="vocab_size")


def build(config: Config, head: str, extras: frozenset[str]) -> Parts:
    embed, tokens = build_embedding(config)
    body = build_body(config, Pooler(config.size) if "pooler" in extras else first_pool)
    answer = build_head(config, head, tokens)
    dropout = config.dropout if config.head_dropout is None else config.head_dropout
    others = {"next_sentence": nn.Linear(config.size, 2)} if "next_sentence" in extras else {}
    return Parts(
        Labeler(embed, body, answer, head != "sequence", dropout if head in ("sequence", "token") else 0.0), others
    )


def rows(config: Config, head: str, extras: frozenset[str]) -> list[Row]:
    blocks = repeat_rows(BLOCK, number_blocks(config.depth))
    return [*EMBEDDINGS, *blocks, *HEADS[head], *(EXTRAS[name] for name in sorted(extras))]


def ties(config: Config) -> Mapping[str, str]:
    return {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }


BERT = Family(
    name="bert",
    prefix="bert.",
    config=Config,
    architectures={
        "BertForMaskedLM": "masked",
        "BertForPreTraining": "masked",
        "BertForSequenceClassification": "sequence",
        "BertForTokenClassification": "token",
        "BertModel": "none",
    },
    extras={"pooler": "bert.pooler.", "next_sentence": "cls.seq_relationship."},
    needed={
        "BertForPreTraining": frozenset({"pooler", "next_sentence"}),
        "BertForSequenceClassification": frozenset({"pooler"}),
        "BertModel": frozenset({"pooler"}),
    },
    model=EncoderModel,
    build=build,
    rows=rows,
    ties=ties,
    constants=partial(number_positions, "bert."),
)
