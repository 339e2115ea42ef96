"""What a run says to programs: the JSON of a prediction, a text, a score and a record, made here and nowhere else.

The command line prints it, a run folder keeps some of it, a server answers with it. JSON has no word for a number that
is none, such as the logarithm of zero: it is null.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from ..fields import Prediction
    from ..tasks.generation import Continuation, Piece
    from ..tasks.results import Likelihood, ScoreWithBaselines
    from ..tasks.task import Task
    from ..training.records import Record


def print_line(value: object) -> None:
    """One value a line, at once: whoever reads may be waiting for it."""
    print(to_line(value), flush=True)


def print_whole(value: object) -> None:
    """One value, over several lines."""
    print(json.dumps(replace_nonfinite(value), ensure_ascii=False, allow_nan=False, indent=2))


def to_line(value: object) -> str:
    return json.dumps(replace_nonfinite(value), ensure_ascii=False, allow_nan=False)


def replace_nonfinite(value: Any) -> Any:
    """The same with null in the place of numbers that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: replace_nonfinite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(one) for one in value]
    return value


def make_prediction_json(raw: str, predictions: "Sequence[Prediction]", unread: int = 0) -> dict[str, Any]:
    """The answers to one input, best first; `unread` is how much of it was left unread, where some was."""
    return {"input": raw} | make_answers_json(predictions) | ({"unread": unread} if unread else {})


def make_answers_json(predictions: "Sequence[Prediction]") -> dict[str, Any]:
    """Answers alone, where what they answer is known."""
    return replace_nonfinite({"predictions": [asdict(one) | one.measures() for one in predictions]})


def make_text_json(prompt: str, text: "Continuation") -> dict[str, Any]:
    """A text that was written on from a prompt."""
    return {"prompt": prompt} | asdict(text)


def make_likelihood_json(run: str, given: str | None, one: "Likelihood") -> dict[str, Any]:
    """How probable a text is to a run."""
    measures = {"log_probability": one.log_probability, "perplexity": one.perplexity}
    return {"run": run} | ({"given": given} if given is not None else {}) | asdict(one) | measures


def make_piece_json(piece: "Piece") -> dict[str, Any]:
    """Some characters of a text, while it is being written."""
    return asdict(piece)


def make_score_report(
    folder: "Path", task: "Task", split: str, examples: Sequence[Any], scores: "Mapping[str, ScoreWithBaselines]"
) -> dict[str, Any]:
    """The scores of a run, as they are stored and as `score --json` prints them."""
    return {
        "run": str(folder),
        "task": task.recipe.task,
        "split": split,
        "examples": len(examples),
        "cut": task.shape.count_cut(examples),  # of how many examples not all was read
        "scores": {name: make_score_json(one) for name, one in drop_undefined(scores).items()},
    }


def make_score_json(one: "ScoreWithBaselines") -> dict[str, Any]:
    baselines = {name: value for name, value in one.baselines.items() if math.isfinite(value)}
    lengths = {name: of for name, of in one.by_length.items() if math.isfinite(of["value"])}
    lead = one.ahead and {name: list(of) if name == "interval" and of else of for name, of in asdict(one.ahead).items()}
    ahead = {"ahead": lead} if lead else {}
    return one.score.to_json() | {"baselines": baselines} | ahead | ({"by_length": lengths} if lengths else {})


def drop_undefined(scores: "Mapping[str, ScoreWithBaselines]") -> "dict[str, ScoreWithBaselines]":
    """The scores that are numbers: R² is none where all targets are alike, an error is none where none is known."""
    return {name: one for name, one in scores.items() if math.isfinite(one.score.value)}


def make_record_json(record: "Record") -> dict[str, Any]:
    """A record: of a note its sentence, of other kinds all numbers; scores only of a validation, and what was watched
    and what the run came to only where something was."""
    if record.kind == "note":
        note = {"kind": record.kind, "step": record.step, "text": record.text}
        return note | ({"details": record.details} if record.details else {})
    values = asdict(record)
    del values["text"], values["details"]
    if record.kind == "step":
        del values["scores"], values["best"]
    for name in ("watched", "final"):
        if not values[name]:
            del values[name]
    return values
