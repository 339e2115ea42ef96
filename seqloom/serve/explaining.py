"""Why this answer: attributions by several methods, each with its faithfulness, in one schema for all tasks."""

from typing import Any

from ..runs.json_output import replace_nonfinite
from .models import Model


def explain(model: Model, raw: Any, answer: str | None, step: int | None) -> dict[str, Any]:
    """Which elements spoke for the answer, by every method, each with its faithfulness, the best first.

    The answer of a run that writes on is what comes next: of text and answer, the last token is asked about.
    """
    if model.writes_text and answer and step is None:
        raw, answer = raw + answer, None
        step = model.count_tokens(raw) - 1
    looked = model.look(raw, answer)
    methods = []
    for one, trust in looked.measure("attribution", step):
        methods.append(
            {
                "method": one.method,
                "shares": one.shares.tolist(),
                "gap": one.gap,
                "faithfulness": {
                    "score": trust.score,
                    "better_than_random": trust.beaten,
                    "deletion": trust.deletion.tolist(),
                    "insertion": trust.insertion.tolist(),
                },
            }
        )
        about, elements, whole, nothing = one.about, one.elements, one.whole, one.nothing
    methods.sort(key=lambda one: -one["faithfulness"]["score"])
    facts = {"about": about, "elements": elements, "log_probability": whole, "without_input": nothing}
    explanation: dict[str, Any] = replace_nonfinite(facts | {"methods": methods})
    return explanation
