"""RoBERTa (Liu et al., 2019): BERT's body under another name, with positions that begin after the padding's."""

from collections.abc import Mapping
from functools import partial

from pydantic import Field
from torch import nn

from ...layers.base import first_pool
from ...models import Labeler
from . import bert
from .encoders import BertConfig, Pooler, build_body, build_embedding, build_head, number_blocks, number_positions
from .family import Family, Parts, Size, Token
from .model import EncoderModel
from .table import Row, repeat_rows


def rename(row: Row) -> Row:
    return row._replace(theirs=row.theirs.replace("bert.", "roberta.", 1))


HEADS: Mapping[str, tuple[Row, ...]] = {
    "masked": (
        Row("lm_head.dense.*", "network.head.hidden.0.*"),
        Row("lm_head.layer_norm.*", "network.head.hidden.2.*"),
        Row("lm_head.bias", "network.head.head.project.bias"),
    ),
    "sequence": (
        Row("classifier.dense.*", "network.head.hidden.0.*"),
        Row("classifier.out_proj.*", "network.head.head.project.*"),
    ),
    "token": (Row("classifier.*", "network.head.project.*"),),
    "none": (),
}


class Config(BertConfig):
    vocabulary: Size = Field(50265, alias="vocab_size")
    padding: Token = Field(1, alias="pad_token_id")

    @property
    def offset(self) -> int:
        return self.padding + 1


def build(config: Config, head: str, extras: frozenset[str]) -> Parts:
    embed, tokens = build_embedding(config)
    body = build_body(config, Pooler(config.size) if "pooler" in extras else first_pool)
    dropout = config.dropout if config.head_dropout is None else config.head_dropout
    answer = build_head(config, head, tokens, [nn.Tanh(), nn.Dropout(dropout)])
    return Parts(Labeler(embed, body, answer, head != "sequence", dropout if head in ("sequence", "token") else 0.0))


def rows(config: Config, head: str, extras: frozenset[str]) -> list[Row]:
    body = [*bert.EMBEDDINGS, *repeat_rows(bert.BLOCK, number_blocks(config.depth))]
    return [*map(rename, body), *HEADS[head], *(rename(bert.EXTRAS[name]) for name in sorted(extras))]


def ties(config: Config) -> Mapping[str, str]:
    return {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }


ROBERTA = Family(
    name="roberta",
    prefix="roberta.",
    config=Config,
    architectures={
        "RobertaForMaskedLM": "masked",
        "RobertaForSequenceClassification": "sequence",
        "RobertaForTokenClassification": "token",
        "RobertaModel": "none",
    },
    extras={"pooler": "roberta.pooler."},
    needed={"RobertaModel": frozenset({"pooler"})},
    model=EncoderModel,
    build=build,
    rows=rows,
    ties=ties,
    constants=partial(number_positions, "roberta."),
)
