"""What is inside a model: measures (arrays with labels) and charts of them.

`Look` gathers them for one example of a run. Each measure and chart is also there by itself, for any model or layer.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from torch import Tensor

from ..models import Batch, Generator, Labeler
from ..search.tree import Tree
from .charts.beam import beam_chart
from .charts.drawing import Drawing, draw_model
from .charts.lines import (
    cost_chart,
    decay_chart,
    gates_chart,
    kept_chart,
    query_key_value_chart,
    scalar_chart,
    shrinkage_chart,
    spectrum_chart,
    states_chart,
)
from .charts.maps import attention_chart, field_chart, flow_chart, heads_chart, position_chart, units_chart
from .charts.picture import Picture, picture_chart
from .charts.tokens import (
    attribution_chart,
    faithfulness_chart,
    map_chart,
    neighbors_chart,
    next_chart,
    order_chart,
    probe_chart,
)
from .charts.training import (
    curves_chart,
    schedule_chart,
    training_flow_chart,
    training_spectra_chart,
    updates_chart,
)
from .history import History
from .measures.attention import AttentionMap, attention_maps, source_attention
from .measures.attribution import METHODS, Attribution, question
from .measures.costs import LENGTHS, bodies_beside, costs
from .measures.faithfulness import Faithfulness, faithfulness
from .measures.gates import Trace, traces
from .measures.gradients import GradientFlow, QueryKeyValue, gradient_flow, query_key_value
from .measures.jacobians import Decay, decays
from .measures.next_tokens import Expectations, next_tokens
from .measures.norms import Shrinkage, shrinkage
from .measures.order import OrderMatters, Swaps, order_matters, swaps
from .measures.positions import PositionVectors, position_vectors
from .measures.probes import Probe, probes
from .measures.reading import INPUTS, SOURCE, Names
from .measures.receptive_field import Field, receptive_field
from .measures.spectra import Spectrum, scalar_decay, spectra
from .measures.vectors import Vectors
from .views import VIEWS

if TYPE_CHECKING:
    import altair as alt

AT_ONCE = 12  # symbols whose neighbors are shown together


class Look:
    """One input and one answer, ready to be looked at. What gives arrays is a property; what draws is a method."""

    def __init__(
        self,
        model: Labeler | Generator,
        example: tuple[Batch, list[str], list[str]],
        title: str,
        read: Sequence[str] = (),
        told: Sequence[str] = (),
        history: History | None = None,
        more: Callable[[], Sequence[Batch]] = tuple,
        picture: Picture | None = None,
        searched: Callable[[], Tree] | None = None,
    ) -> None:
        """The example is a batch of one row, the names of what is read, and those of what is written or told.

        `read` and `told` name all symbols of the vocabularies, in order; without them, symbols go by their numbers.
        A run adds its `history`, `more` examples for what needs several, and the `picture` that is written about.
        It also tells how the answer is `searched` for.
        """
        self.model, self.example, self.title = model, example, title
        self.batch, elements, target = example
        writes = isinstance(model, Generator) and model.source is not None
        self.names = Names(["<start>", *target[:-1]], target, elements) if writes else Names(elements, target, [])
        self.read, self.told, self.searched = read, told, searched
        self.history, self._more, self.picture = history, more, picture
        self._attributed: dict[int | None, list[tuple[Attribution, Faithfulness]]] = {}

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

    @cached_property
    def batches(self) -> Sequence[Batch]:
        """Several examples of the run's own, if they are at hand."""
        return self._more()

    @cached_property
    def swaps(self) -> Swaps:
        return swaps(self.model, self.batch, self.names.source or self.names.inputs)

    @cached_property
    def probes(self) -> list[Probe]:
        """How well each layer knows what is to be told, on several examples."""
        return probes(self.model, self.batches, [labels_of(batch) for batch in self.batches])

    def field_of(self, side: str = "") -> Field:
        """How far the model sees: in the source if it has one, else in what it reads."""
        side = side or (SOURCE if self.names.source else INPUTS)
        return receptive_field(self.model, self.batch, self.names, side)

    def attributions(self, step: int | None = None) -> list[tuple[Attribution, Faithfulness]]:
        """What drove the answer, or one step of it, by every method, each with its faithfulness."""
        if step not in self._attributed:
            self._attributed[step] = self._attributions(step)
        return self._attributed[step]

    def _attributions(self, step: int | None) -> list[tuple[Attribution, Faithfulness]]:
        asked = question(self.model, self.batch, self.names, step)
        return [(found, faithfulness(asked, found)) for found in (method(asked) for method in METHODS.values())]

    @cached_property
    def vectors(self) -> Vectors:
        """The learned vectors of what is read."""
        weight = self.embedded
        assert weight is not None, "what this model reads are no symbols"
        return Vectors(weight, self.read or list(map(str, range(len(weight)))))

    @property
    def embedded(self) -> Tensor | None:
        """The learned vectors of the symbols that are read, if it reads symbols."""
        source = self.model.source if isinstance(self.model, Generator) else None
        weight = getattr(self.model.embed if source is None else source.embed, "weight", None)
        return weight if isinstance(weight, Tensor) else None

    # --- charts ---

    def attention(self) -> "alt.Chart | alt.FacetChart":
        """Where the model looked; over the picture, if it writes about one."""
        if self.picture is not None and self.attention_weights().names:
            return picture_chart(self.attention_weights(), self.picture, self.title)
        if not self.attention_weights().names:
            return self.heads()
        return attention_chart(self.attention_weights(), self.title)

    def heads(self, kind: int = 0) -> "alt.Chart":
        """Every layer and head of one kind of attention as a small picture."""
        return heads_chart(self.attention_maps[kind], self.title)

    def gates(self) -> "alt.VConcatChart":
        return gates_chart(self.traces)

    def states(self) -> "alt.VConcatChart":
        return states_chart(self.traces)

    def units(self, level: int = 0, quantity: str = "") -> "alt.Chart":
        """Every unit of one gate or state of one level."""
        return units_chart(self.traces[level], quantity or next(iter(self.traces[level].entries)))

    def kept(self) -> "alt.VConcatChart":
        return kept_chart(self.traces)

    def gradients(self) -> "alt.VConcatChart":
        return flow_chart(self.gradient_flow)

    def jacobians(self) -> "alt.Chart":
        return decay_chart(self.decays)

    def spectrum(self) -> "alt.ConcatChart":
        return spectrum_chart(self.spectra)

    def scalar(self) -> "alt.Chart":
        """The scalar experiment, for some weights and for the stretch of this model's own matrices."""
        own = max(one.norm if one.radius is None else one.radius for one in self.spectra)
        return scalar_chart(scalar_decay([0.5, 0.9, 1.0, 1.1]), own)

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

    def neighbors(self, *symbols: str) -> "alt.Chart":
        """Who lies nearest to these symbols, or to those of the example."""
        known = set(self.vectors.symbols)
        read = [name for name in self.names.source or self.names.inputs if name in known]
        asked = list(dict.fromkeys(symbols or read))[:AT_ONCE] or self.vectors.symbols[-1:]
        return neighbors_chart([self.vectors.neighbors(symbol) for symbol in asked])

    def analogy(self, a: str, b: str, c: str) -> "alt.Chart":
        """a is to b as c is to …"""
        return neighbors_chart([self.vectors.analogy(a, b, c)], f"{a} is to {b} as {c} is to …")

    def position(self) -> "alt.HConcatChart":
        return position_chart(self.positions[0])

    def order(self) -> "alt.VConcatChart":
        return order_chart(self.order_matters, self.swaps)

    def probe(self) -> "alt.LayerChart":
        return probe_chart(self.probes)

    def curves(self) -> "alt.VConcatChart":
        return curves_chart(self._history.curves)

    def schedule(self) -> "alt.VConcatChart":
        return schedule_chart(self._history.rates)

    def flow(self) -> "alt.VConcatChart":
        """What was watched in training: the gradient of every layer."""
        return training_flow_chart(self._history.watched)

    def updates(self) -> "alt.VConcatChart":
        return updates_chart(self._history.watched)

    def training_spectra(self) -> "alt.FacetChart":
        return training_spectra_chart(self._history.watched)

    def cost(self, lengths: Sequence[int] = LENGTHS) -> "alt.HConcatChart":
        """What this run's body costs beside others; it is measured now, here."""
        recipe = self._history.recipe
        inputs = recipe.model.embedding or recipe.model.side("encoder").width
        return cost_chart(costs(bodies_beside(recipe, inputs), inputs, lengths, batch=4, repeats=2))

    @property
    def _history(self) -> History:
        assert self.history is not None, "a model that was given alone has no history"
        return self.history

    def beam(self) -> "alt.LayerChart":
        """The search for the answer: what was kept at every step, what was not, and why."""
        assert self.searched is not None, "this model searches for no answers"
        return beam_chart(self.searched(), self.told)

    def drawing(self) -> Drawing:
        """The model unrolled over this example."""
        return draw_model(self.model, self.batch, self.names)

    def views(self) -> "dict[str, Callable[[], alt.TopLevelMixin | Drawing]]":
        """The pictures that fit this model, by name."""
        return {view.name: partial(view.draw, self) for view in VIEWS if not view.lacks(self)}

    def lacking(self) -> dict[str, str]:
        """The pictures that do not fit it, and why."""
        return {view.name: reason for view in VIEWS if (reason := view.lacks(self))}


def labels_of(batch: Batch) -> Tensor:
    """What is to be told at each element; the one label of a sequence is that of all its elements."""
    target = batch.target
    return target if target.dim() > 1 else target[:, None].expand(batch.mask.shape)
