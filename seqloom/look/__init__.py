"""What is inside a model: measures (arrays with labels) and charts of them."""

from typing import TYPE_CHECKING

from ..models import Batch, Generator
from .charts import attention_chart
from .attention import AttentionMap, source_attention

if TYPE_CHECKING:
    import altair as alt


class Look:
    """One input and one answer, ready to be looked at."""

    def __init__(self, model: Generator, example: tuple[Batch, list[str], list[str]], title: str) -> None:
        self.model, self.example, self.title = model, example, title

    def attention_weights(self) -> AttentionMap:
        """Which source tokens each written token looked at."""
        return source_attention(self.model, *self.example)

    def attention(self) -> "alt.Chart":
        """The same as a chart."""
        return attention_chart(self.attention_weights(), self.title)
