"""Why a view may not fit a model: a sentence, or nothing if it does."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .measures.next_tokens import predicts_symbols
from .measures.reading import is_image
from .measures.vectors import get_symbol_vectors

if TYPE_CHECKING:
    from . import Look

NO_RECURRENCE = "no part of this model is recurrent"
NO_HISTORY = "it needs a run's records, and this model was given alone"


def find(name: str, otherwise: str) -> "Callable[[Look], str]":
    """Fits where the measure of the view of this name finds something."""
    return lambda look: "" if look.measure(name) else otherwise


def have_gates(look: "Look") -> str:
    return "" if any(trace.gates for trace in look.measure("gates")) else "a plain recurrence has no gates"


def have_forget_gate(look: "Look") -> str:
    return "" if any(trace.keeping for trace in look.measure("gates")) else "no gate here keeps a state"


def predict_symbols(look: "Look") -> str:
    return "" if predicts_symbols(look.model) else "its target is not one of several symbols"


def embed_symbols(look: "Look") -> str:
    vectors = get_symbol_vectors(look.model, look.side)
    return "" if vectors is not None else "it reads no symbols that have a learned vector each"


def have_examples(look: "Look") -> str:
    return "" if look.batches else "it needs several examples, and the run's own data is not at hand"


def have_order(look: "Look") -> str:
    if is_image(look.batch.source[0] if look.batch.source else look.batch.inputs):
        return "an image has no order"
    return "" if len(look.names.of(look.side)) > 1 else "a single element has no order"


def use_search(look: "Look") -> str:
    return "" if look.search is not None else "only an answer that is generated token by token is searched for"


def have_snapshots(look: "Look") -> str:
    return "" if look.snapshots is not None else "it needs a run with its checkpoints, and this model was given alone"


def have_recipe(look: "Look") -> str:
    return "" if look.history is not None else NO_HISTORY


def have_records(look: "Look") -> str:
    return "" if look.history is not None and look.history.records else NO_HISTORY


def have_watched(look: "Look") -> str:
    if look.history is None:
        return NO_HISTORY
    every, steps = look.history.recipe.train.watch_every, look.history.recipe.train.steps
    nothing = f"no step was watched: train.watch_every is {every}, of {steps} steps"
    return "" if len(look.history.watched.steps) else nothing


def forecast_series(look: "Look") -> str:
    return "" if look.forecast_fan is not None else "it forecasts no series"


def have_scores(key: str, otherwise: str) -> "Callable[[Look], str]":
    """Fits where a final score of the run has such details."""
    return lambda look: "" if find_details(look, key) else otherwise


def find_details(look: "Look", key: str) -> Mapping[str, Any]:
    scores = look.history.scores if look.history is not None else {}
    return next((score for score in scores.values() if score.get(key)), {})


def require(*needs: "Callable[[Look], str]") -> "Callable[[Look], str]":
    """All of these; the first that is missing is named."""
    return lambda look: next(filter(None, (need(look) for need in needs)), "")


RECURRENT = find("gates", NO_RECURRENCE)
RECURRENT_MATRIX = require(RECURRENT, find("spectrum", "its recurrence multiplies the state with no matrix"))
HEADS = find("query-key-value", "only a Transformer has heads, and queries, keys and values to compare")
