"""One sequence into another: translation, spelling to sound, dates, sounds to letters."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..baselines import copy_and_most_frequent, most_frequent
from ..config.recipe import Recipe
from ..data.schema import Schema, Side
from ..fields import Label, source_side, text_side
from ..metrics import bleu, chrf, exact_match, mean_sentence_bleu, ter, token_error_rate
from ..schemas import MostFrequent
from .conditional_generation import ConditionalGeneration
from .scoring import Metric
from .task import Declaration, Task


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    sides = {"source": source_side(data), "target": text_side((data.target,), data.target_tokenizer)}
    if data.tag:
        sides["tag"] = Side((data.tag,), Label)
    return Declaration(
        schema=Schema("seq2seq", data, sides, shared=("source", "target") if data.shared else ()),
        shape=ConditionalGeneration,
        facts=MostFrequent,
        learn=learn,
        baselines=baselines,
        metrics=metrics,
    )


def learn(task: Task, prepared: Any) -> MostFrequent:
    return MostFrequent(most_frequent=most_frequent(prepared.splits["train"].raws["target"]))


def baselines(task: Task, sources: Sequence[Any]) -> dict[str, list[str]]:
    """Copying the source is a baseline for text only."""
    answers = copy_and_most_frequent(sources, task.facts.most_frequent)
    return answers if task.shape.reads_text else {"most frequent": answers["most frequent"]}


def metrics(task: Task) -> Mapping[str, Metric]:
    """Errors are counted in characters where the model writes characters, otherwise in words, as translations are."""
    data = task.recipe.data
    of_words: dict[str, Metric] = {}
    if data.target_tokenizer != "characters":
        of_words = {"sentence BLEU": partial(mean_sentence_bleu, lowercase=data.lowercase), "TER": ter}
    scores: dict[str, Metric] = {
        "exact": exact_match,
        "token error rate": partial(
            token_error_rate, tokens=list if data.target_tokenizer == "characters" else str.split
        ),
        "BLEU": partial(bleu, lowercase=data.lowercase),
        "chrF": partial(chrf, lowercase=data.lowercase),
    }
    return scores | of_words
