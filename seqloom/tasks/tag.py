"""A label for every element of a sequence: parts of speech, entities, frames of a series."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..baselines.labels import TagOfWord
from ..config.recipe import Recipe
from ..counts import format_count
from ..data.pretokenized import SEPARATOR, split_elements
from ..data.schema import Schema, Side
from ..fields import Tags, word_side
from ..metrics.tags import entity_f1, spell_entities, tag_accuracy
from ..schemas import TagsOfWords
from .labeling import ElementLabeling
from .scoring import Metric
from .task import Declaration, Task, check_per_symbol


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    sides = {"source": word_side(data), "target": Side((data.target,), Tags)}
    return Declaration(
        schema=Schema("tag", data, sides, fault=find_fault),
        shape=ElementLabeling,
        facts=TagsOfWords,
        learn=learn,
        baselines=baselines,
        metrics=metrics,
        quick={"accuracy": tag_accuracy},
        check=lambda task: check_per_symbol(task, weights=task.facts.weights),
    )


def learn(task: Task, prepared: Any) -> TagsOfWords:
    """The tag that each word has most often, the most frequent one, and what each counts where all count alike."""
    train = prepared.splits["train"].raws
    tags = [split_elements(text) for text in train["target"]]
    counts = Counter(tag for some in tags for tag in some)
    weights = [counts.total() / (len(counts) * counts[name]) for name in task.target.names]
    if not task.source.is_text:
        return TagsOfWords(most_frequent=TagOfWord.fit(tags, tags).most_frequent, tags={}, weights=weights)
    known = TagOfWord.fit([split_elements(text) for text in train["source"]], tags)
    return TagsOfWords(most_frequent=known.most_frequent, tags=known.tags, weights=weights)


def baselines(task: Task, inputs: Sequence[Any], targets: Sequence[Sequence[str]]) -> dict[str, list[list[str]]]:
    most_frequent = task.facts.most_frequent
    answers = {"most frequent": [[most_frequent] * len(tags) for tags in targets]}
    if task.source.is_text:
        by_word = TagOfWord(most_frequent, task.facts.tags)
        answers["tag of the word"] = by_word.predict([split_elements(text) for text in inputs])
    return answers


def metrics(task: Task, targets: Sequence[Sequence[str]]) -> Mapping[str, Metric]:
    """Entities are counted where the tags spell some."""
    tags = {tag for some in targets for tag in some} | set(task.target.names)
    return {"accuracy": tag_accuracy} | ({"entity F1": entity_f1} if spell_entities(tags) else {})


def find_fault(example: Sequence[Any]) -> str:
    """What is wrong with elements and tags that do not belong together."""
    source, target = example
    count = len(split_elements(source)) if isinstance(source, str) else len(source)
    tags = split_elements(target)
    if count != len(tags):
        between = f"{SEPARATOR!r} or a blank"
        return (
            f"{format_count(count, 'element')} with {format_count(len(tags), 'tag')}: there must be a tag "
            f"for each, with {between} between"
        )
    return ""
