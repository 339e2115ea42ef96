"""A run with weights of eight bits: how it is made, and what it costs in scores."""

from collections.abc import Sequence
from copy import deepcopy
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import RunError
from .json_output import drop_undefined

if TYPE_CHECKING:
    from .run import Run


def score_quantized(run: "Run", examples: Sequence[Any]) -> dict[str, Any]:
    """Scores and seconds with weights of eight bits beside those with all of them; the run goes on with eight bits."""
    values, seconds = [], {}
    for eight in (False, True):
        if eight:  # answers that are under way are finished with the weights that they were begun with
            run.use(quantize_model(run, deepcopy(run.net)))
        start = perf_counter()
        scores = drop_undefined(run.task.score(run.model, examples))
        seconds["int8" if eight else "float32"] = round(perf_counter() - start, 3)
        values.append({name: one.score.value for name, one in scores.items()})
    plain, rounded = values
    measured = {
        name: {"float32": plain[name], "int8": rounded[name], "change": rounded[name] - plain[name]} for name in plain
    }
    return {"scores": measured, "seconds": seconds}


def quantize_model(run: "Run", model: Any) -> Any:
    """A model of the run, which from now on answers with weights of eight bits."""
    if not hasattr(model, "quantize_weights"):
        raise RunError(f"{run.folder}: weights of eight bits are for what writes and labels, not for {run.recipe.task}")
    model.quantize_weights()
    return model
