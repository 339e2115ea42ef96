"""Measures that need more than the model, its example and its names: other measures, or what a run knows besides."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .history import History
from .measures.attention import OVER_SOURCE, AttentionMap
from .measures.attribution import METHODS, Attribution, find_decision
from .measures.costs import LENGTHS, Cost, list_comparable_bodies, measure_body_costs
from .measures.faithfulness import Faithfulness, measure_faithfulness
from .measures.gates import Trace, record_traces
from .measures.gradients import GradientFlow, compute_gradient_flow
from .measures.spectra import ScalarDecay, compute_scalar_decay
from .measures.vectors import Neighbors, Vectors, get_symbol_vectors

if TYPE_CHECKING:
    from . import Look

NEIGHBORS = 12  # symbols whose neighbors are shown together


def history_of(look: "Look") -> History:
    assert look.history is not None, "a model that was given alone has no history"
    return look.history


def list_by_length(look: "Look") -> dict[str, Any]:
    """The final scores that are known for examples of each length."""
    scores = look.history.scores if look.history is not None else {}
    return {name: score for name, score in scores.items() if score.get("by_length")}


def measure_traces(look: "Look") -> list[Trace]:
    return record_traces(look.model, look.batch, look.names)


def measure_attributions(look: "Look", step: int | None = None) -> list[tuple[Attribution, Faithfulness]]:
    """What drove the answer, or one step of it, by every method, each with its faithfulness."""
    decision = find_decision(look.model, look.batch, look.names, step)
    return [
        (attribution, measure_faithfulness(decision, attribution))
        for attribution in (method(decision) for method in METHODS.values())
    ]


def measure_best_faithfulness(look: "Look", *step: int) -> Faithfulness:
    """Of the attribution that is most to be trusted."""
    return max((trust for _, trust in look.measure("attribution", *step)), key=lambda trust: trust.score)


def measure_vectors(look: "Look") -> Vectors:
    """The learned vectors of what is read."""
    weight = get_symbol_vectors(look.model, look.side)
    assert weight is not None, "it reads no symbols"
    known = list(look.read_symbols)[: len(weight)]
    symbols = [*known, *map(str, range(len(known), len(weight)))]
    return Vectors(weight, symbols, [name for name in look.names.of(look.side) if name in set(symbols)])


def measure_neighbors(look: "Look", *symbols: str) -> list[Neighbors]:
    """Which vectors are nearest to those of these symbols, or of the example's."""
    vectors: Vectors = look.measure("embedding")
    read = [name for name in look.names.of(look.side) if name in set(vectors.symbols)]
    queries = list(dict.fromkeys(symbols or read))[:NEIGHBORS] or vectors.symbols[-1:]
    return [vectors.neighbors(symbol) for symbol in queries]


def measure_scalar(look: "Look") -> tuple[ScalarDecay, float]:
    """For some weights, and for the stretch of this model's own matrices."""
    own = max(one.norm if one.radius is None else one.radius for one in look.measure("spectrum"))
    return compute_scalar_decay([0.5, 0.9, 1.0, 1.1]), own


def measure_costs(look: "Look", lengths: tuple[int, ...] = LENGTHS) -> list[Cost]:
    """What this run's body costs beside others; it is measured now, here."""
    recipe = history_of(look).recipe
    inputs = recipe.model.embedding or recipe.model.side("encoder").width or 1
    return measure_body_costs(list_comparable_bodies(recipe, inputs), inputs, lengths, batch=4, repeats=2)


def measure_gradient_history(look: "Look") -> list[tuple[str, list[GradientFlow]]]:
    """The gradient over time and layers for this example: before training, at each kept checkpoint, and of the run."""
    assert look.snapshots is not None, "a model that was given alone has no checkpoints"
    return [
        ("the run" if step is None else f"step {step}", compute_gradient_flow(model, look.batch, look.names))
        for step, model in look.snapshots()
    ]


def measure_attention(look: "Look") -> AttentionMap | None:
    """Over the source if the model attends to one, else of the first kind there is."""
    maps: list[AttentionMap] = look.measure("heads")
    over_source = [replace(one, picture=look.picture) for one in maps if one.kind == OVER_SOURCE]
    return next((replace(one, example=look.title) for one in (*over_source, *maps)), None)
