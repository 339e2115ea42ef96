"""No order but what the tokens themselves hold: their embeddings pooled, as in fastText (Joulin et al., 2017)."""

from typing import TYPE_CHECKING, ClassVar, Literal

from ..config.section import setting
from .base import Architecture
from .pooling import POOLS, PooledFeatures

if TYPE_CHECKING:
    from ..layers.base import Encoder
    from ..layers.cells import MakeCell


class Bag(Architecture):
    """With data.source_tokenizer "ngrams" it knows pairs of words; few texts are enough for it."""

    kind: Literal["bag"] = "bag"
    naive_bayes: bool = setting(
        True,
        "Whether the embeddings begin with the evidence of NB-SVM for each label, naive Bayes weighed by a logistic "
        "regression (Wang and Manning, 2012), which training then improves; it takes as many features of model.size "
        "as there are labels.",
    )

    only_classifies: ClassVar[bool] = True

    def fault(self) -> str:
        return 'lists sizes, but kind "bag" has one' if isinstance(self.size, tuple) else ""

    def build_encoder(
        self, inputs: int, *, ahead: bool = True, pool: str = "", queries: int = 4, own: "MakeCell | None" = None
    ) -> "Encoder":
        from torch import nn

        from ..layers.base import Encoder, Pointwise

        return Encoder(Pointwise(nn.Identity()), POOLS[pool or "sqrtn"](PooledFeatures(self.width, queries)))
