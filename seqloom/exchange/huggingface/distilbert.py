"""DistilBERT (Sanh et al., 2019): BERT's shape without segments and pooler, under names of its own."""

from pydantic import Field
from torch import nn

from .encoders import EncoderConfig, Names
from .family import Activation, Depth, Share, Size


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

    def label_dropout(self, head: str) -> float:
        return self.dropout if head == "token" else 0.0  # of a text it stands between the two products alone


DISTILBERT = Names(
    prefix="distilbert.",
    block="transformer.layer.{n}",
    within=(
        "attention.<q_lin+k_lin+v_lin>.*",
        "attention.out_lin.*",
        "sa_layer_norm.*",
        "ffn.lin1.*",
        "ffn.lin2.*",
        "output_layer_norm.*",
    ),
    masked=("vocab_transform.*", "vocab_layer_norm.*", "vocab_projector.bias"),
    tokens=("vocab_projector.weight", None),
    sequence=("pre_classifier.*", "classifier.*"),
    extras={},
    activation=nn.ReLU,
).family(
    "distilbert",
    Config,
    {
        "DistilBertForMaskedLM": "masked",
        "DistilBertForSequenceClassification": "sequence",
        "DistilBertForTokenClassification": "token",
        "DistilBertModel": "none",
    },
    needed={},
)
