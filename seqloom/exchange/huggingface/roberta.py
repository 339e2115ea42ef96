"""RoBERTa (Liu et al., 2019): BERT's body under another name, with positions that begin after the padding's."""

from pydantic import Field
from torch import nn

from .bert import BLOCK
from .encoders import BertConfig, Names
from .family import Size, Token


class Config(BertConfig):
    vocabulary: Size = Field(50265, alias="vocab_size")
    padding: Token = Field(1, alias="pad_token_id")

    @property
    def offset(self) -> int:
        return self.padding + 1


ROBERTA = Names(
    prefix="roberta.",
    block="encoder.layer.{n}",
    within=BLOCK,
    masked=("lm_head.dense.*", "lm_head.layer_norm.*", "lm_head.bias"),
    tokens=("lm_head.decoder.weight", "lm_head.decoder.bias"),
    sequence=("classifier.dense.*", "classifier.out_proj.*"),
    extras={"pooler": "roberta.pooler.dense."},
    activation=nn.Tanh,
).family(
    "roberta",
    Config,
    {
        "RobertaForMaskedLM": "masked",
        "RobertaForSequenceClassification": "sequence",
        "RobertaForTokenClassification": "token",
        "RobertaModel": "none",
    },
    needed={"RobertaModel": frozenset({"pooler"})},
)
