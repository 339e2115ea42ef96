"""BERT (Devlin et al., 2019): the names of its weights."""

from pydantic import Field

from .encoders import NEXT_SENTENCE, BertConfig, Names
from .family import Size

BLOCK = (
    "attention.self.<query+key+value>.*",
    "attention.output.dense.*",
    "attention.output.LayerNorm.*",
    "intermediate.dense.*",
    "output.dense.*",
    "output.LayerNorm.*",
)


class Config(BertConfig):
    vocabulary: Size = Field(30522, alias="vocab_size")


BERT = Names(
    prefix="bert.",
    block="encoder.layer.{n}",
    within=BLOCK,
    masked=("cls.predictions.transform.dense.*", "cls.predictions.transform.LayerNorm.*", "cls.predictions.bias"),
    tokens=("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
    sequence=("classifier.*",),
    extras={"pooler": "bert.pooler.dense.", NEXT_SENTENCE: "cls.seq_relationship."},
).family(
    "bert",
    Config,
    {
        "BertForMaskedLM": "masked",
        "BertForPreTraining": "masked",
        "BertForSequenceClassification": "sequence",
        "BertForTokenClassification": "token",
        "BertModel": "none",
    },
    needed={
        "BertForPreTraining": frozenset({"pooler", NEXT_SENTENCE}),
        "BertForSequenceClassification": frozenset({"pooler"}),
        "BertModel": frozenset({"pooler"}),
    },
)
