"""What is inside a model: measures (arrays with labels) and charts of them.

`Look` gathers them for one example of a run. Each measure and chart is also there by itself, for any model or layer.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..models import Batch, Generator, Labeller
from ..search.tree import Tree
from .attention import AttentionMap, attention_maps, source_attention
from .attribution import METHODS, Attribution, question
from .chart_beam import beam_chart
from .chart_lines import (
    decay_chart,
    gates_chart,
    kept_chart,
    query_key_value_chart,
    shrinkage_chart,
    spectrum_chart,
    states_chart,
)
from .chart_maps import attention_chart, field_chart, flow_chart, heads_chart, position_chart, units_chart
from .chart_tokens import attribution_chart, faithfulness_chart, map_chart, neighbours_chart, next_chart, order_chart
from .drawing import Drawing, draw_model
from .faithfulness import Faithfulness, faithfulness
from .field import Field, receptive_field
from .gates import Trace, traces
from .gradients import GradientFlow, QueryKeyValue, gradient_flow, query_key_value
from .jacobians import Decay, decays
from .next_tokens import Expectations, next_tokens, tells_symbols
from .norms import Shrinkage, shrinkage
from .order import OrderMatters, order_matters
from .positions import PositionVectors, position_vectors
from .reading import INPUTS, SOURCE, Names
from .spectra import Spectrum, spectra
from .vectors import Vectors

if TYPE_CHECKING:
    import altair as alt


class Look:
    """One input and one answer, ready to be looked at. What gives arrays is a property; what draws is a method."""

    def __init__(
        self,
        model: Labeller | Generator,
        example: tuple[Batch, list[str], list[str]],
        title: str,
        read: Sequence[str] = (),
        told: Sequence[str] = (),
        searched: Callable[[], Tree] | None = None,
    ) -> None:
        """The example is a batch of one row, the names of what is read, and those of what is written or told.

        `read` and `told` name all symbols of the vocabularies, in order; without them, symbols go by their numbers.
        `searched` tells how the answer is searched for.
        """
        self.model, self.example, self.title = model, example, title
        self.batch, elements, target = example
        writes = isinstance(model, Generator) and model.source is not None
        self.names = Names(["<start>", *target[:-1]], target, elements) if writes else Names(elements, target, [])
        self.read, self.told, self.searched = read, told, searched

    # --- arrays ---

    def attention_weights(self) -> AttentionMap:
        """Which source tokens each written token looked at; of a model without a source, the first kind there is."""
        _, read, told = self.example
        if isinstance(self.model, Generator) and self.model.source is not None:
            return source_attention(self.model, self.batch, read, told)
        return next(iter(self.attention_maps), source_attention(self.model, self.batch, [], []))

    @cached_property
    def attention_maps(self) -> list[AttentionMap]:
        """Attention of every kind, layer and head."""
        return attention_maps(self.model, self.batch, self.names)

    @cached_property
    def traces(self) -> list[Trace]:
        """Gates and states of every recurrence over time."""
        return traces(self.model, self.batch, self.names)

    @cached_property
    def gradient_flow(self) -> list[GradientFlow]:
        """The loss's gradient over time and layers."""
        return gradient_flow(self.model, self.batch, self.names)

    @cached_property
    def decays(self) -> list[Decay]:
        """The Jacobian of the last state by lag."""
        return decays(self.model, self.batch)

    @cached_property
    def spectra(self) -> list[Spectrum]:
        """Singular values of every recurrent matrix."""
        return spectra(self.model)

    @cached_property
    def query_key_value(self) -> list[QueryKeyValue]:
        """Gradients of queries, keys and values apart."""
        return query_key_value(self.model, self.batch)

    @cached_property
    def shrinkage(self) -> list[Shrinkage]:
        """What each norm does to the size of things."""
        return shrinkage(self.model, self.batch)

    @cached_property
    def expectations(self) -> Expectations:
        """What the model expects at every position."""
        return next_tokens(self.model, self.batch, self.names)

    @cached_property
    def positions(self) -> list[PositionVectors]:
        return position_vectors(self.model)

    @cached_property
    def order_matters(self) -> OrderMatters:
        return order_matters(self.model, self.batch)

    def field_of(self, side: str = "") -> Field:
        """How far the model sees: in the source if it has one, else in what it reads."""
        side = side or (SOURCE if self.names.source else INPUTS)
        return receptive_field(self.model, self.batch, self.names, side)

    def attributions(self, step: int | None = None) -> list[tuple[Attribution, Faithfulness]]:
        """What drove the answer, or one step of it, by every method, each with its faithfulness."""
        asked = question(self.model, self.batch, self.names, step)
        return [(found, faithfulness(asked, found)) for found in (method(asked) for method in METHODS.values())]

    @cached_property
    def vectors(self) -> Vectors:
        """The learnt vectors of what is read."""
        weight = self._embedding()
        assert weight is not None, "what this model reads are no symbols"
        return Vectors(weight, self.read or list(map(str, range(len(weight)))))

    def _embedding(self) -> Tensor | None:
        source = self.model.source if isinstance(self.model, Generator) else None
        weight = getattr(self.model.embed if source is None else source.embed, "weight", None)
        return weight if isinstance(weight, Tensor) else None

    # --- charts ---

    def attention(self) -> "alt.Chart":
        """Where the model looked."""
        return attention_chart(self.attention_weights(), self.title)

    def heads(self, kind: int = 0) -> "alt.Chart":
        """Every layer and head of one kind of attention as a small picture."""
        return heads_chart(self.attention_maps[kind], self.title)

    def gates(self) -> "alt.VConcatChart":
        return gates_chart(self.traces)

    def states(self) -> "alt.VConcatChart":
        return states_chart(self.traces)

    def units(self, level: int = 0, quantity: str = "h") -> "alt.Chart":
        """Every unit of one gate or state of one level."""
        return units_chart(self.traces[level], quantity)

    def kept(self) -> "alt.VConcatChart":
        return kept_chart(self.traces)

    def gradients(self) -> "alt.VConcatChart":
        return flow_chart(self.gradient_flow)

    def jacobians(self) -> "alt.Chart":
        return decay_chart(self.decays)

    def spectrum(self) -> "alt.ConcatChart":
        return spectrum_chart(self.spectra)

    def starved(self) -> "alt.Chart":
        """Whether queries and keys get as much of the gradient as values."""
        return query_key_value_chart(self.query_key_value)

    def norms(self) -> "alt.Chart":
        return shrinkage_chart(self.shrinkage)

    def field(self, side: str = "") -> "alt.Chart":
        return field_chart(self.field_of(side))

    def next(self) -> "alt.Chart":
        """What the model expects at every position."""
        told = self.told or list(map(str, range(int(self.expectations.symbols.max(initial=0)) + 1)))
        return next_chart(self.expectations, told)

    def attribution(self, step: int | None = None) -> "alt.VConcatChart":
        found = self.attributions(step)
        return attribution_chart([one for one, _ in found], [trust for _, trust in found])

    def faithfulness(self, step: int | None = None) -> "alt.HConcatChart":
        """The deletion and insertion curves of the attribution that is most to be trusted."""
        return faithfulness_chart(max((trust for _, trust in self.attributions(step)), key=lambda trust: trust.score))

    def embedding(self) -> "alt.LayerChart":
        return map_chart(self.vectors.map())

    def neighbours(self, symbol: str) -> "alt.Chart":
        return neighbours_chart(self.vectors.neighbours(symbol))

    def position(self) -> "alt.HConcatChart":
        return position_chart(self.positions[0])

    def order(self) -> "alt.Chart":
        return order_chart(self.order_matters)

    def beam(self) -> "alt.LayerChart":
        """The search for the answer: what was kept at every step, what was not, and why."""
        assert self.searched is not None, "this model searches for no answers"
        return beam_chart(self.searched(), self.told)

    def drawing(self) -> Drawing:
        """The model unrolled over this example."""
        return draw_model(self.model, self.batch, self.names)

    def views(self) -> "dict[str, Callable[[], alt.TopLevelMixin | Drawing]]":
        """The pictures that fit this model and need nothing more than the example, by name."""
        found: dict[str, Callable[[], Any]] = {"model": self.drawing, "gradients": self.gradients, "field": self.field}
        recurrent = bool(self.traces)
        if self.attention_maps:
            found |= {"attention": self.attention if self.attention_weights().names else self.heads}
        if self.query_key_value:
            found |= {"heads": self.heads, "starved": self.starved}
        if any(trace.gates for trace in self.traces):
            found |= {"gates": self.gates}
        if any(trace.keeping for trace in self.traces):
            found |= {"kept": self.kept}
        if recurrent:
            found |= {"states": self.states, "jacobians": self.jacobians}
        if self.spectra:
            found |= {"spectrum": self.spectrum}
        if self.shrinkage:
            found |= {"norms": self.norms}
        if self.positions:
            found |= {"positions": self.position}
        if tells_symbols(self.model):
            found |= {"next": self.next}
        if self.searched is not None:
            found |= {"beam": self.beam}
        if self._embedding() is not None:
            found |= {"embedding": self.embedding}
        return found | {"attribution": self.attribution, "faithfulness": self.faithfulness, "order": self.order}
