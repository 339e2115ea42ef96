"""Language: prose, verse, proteins; characters, words or subwords; one long text, or documents of their own."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from torch import Tensor

from ..arrays import Doubles, Integers
from ..baselines.language import NGram, compute_uniform_losses
from ..config.recipe import Recipe
from ..data.cache import release
from ..data.documents import Documents, is_text
from ..data.schema import Schema
from ..data.vocabulary import END, NEVER_WRITTEN, UNKNOWN
from ..fields import text_side
from ..metrics import Score, bits_per_character, perplexity
from ..models import Generator
from ..schemas import SymbolCounts
from .continuous_cache import ContinuousCache
from .free_generation import FreeGeneration
from .mixture import TokenMixture
from .ngram_mixture import NGramMixture, number_tokens
from .scoring import Metric
from .shape import Encoded
from .task import Declaration, Mixing, Task, check_per_symbol
from .text_writer import TextWriter

LETTERS, OTHERS = 6, 4  # the order of the n-gram model to beat: of characters, and of anything longer
COUNTED = 3_000_000  # tokens it counts at most: each takes about a hundred bytes


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    sides = {"target": text_side((data.target,), data.target_tokenizer)}
    ordered = recipe.task in ("language", "pretrain") and is_text(data)
    return Declaration(
        schema=Schema(recipe.task, data, sides, dataset=Documents, ordered=ordered, limited=False),
        shape=FreeGeneration,
        facts=SymbolCounts,
        learn=learn,
        baselines=baselines,
        metrics=metrics,
        quick={"perplexity": np.exp},
        writer=TextWriter,
        mixing=None if recipe.task == "pretrain" else Mixing(fit_mixture, load_mixture),
        check=lambda task: check_per_symbol(task, counts=task.facts.counts),
    )


def learn(task: Task, prepared: Any) -> SymbolCounts:
    """How often each token occurs in training, the end of a document being one."""
    texts = prepared.splits["train"].ids["target"]
    counts = np.zeros(len(task.target), dtype=np.int64)
    for rows in np.array_split(texts.values, max(1, len(texts.values) >> 22)):
        counts += np.bincount(rows, minlength=len(counts))
        release(texts.values)
    counts[END] = len(texts)
    return SymbolCounts(counts=counts.tolist())


def baselines(task: Task, encoded: Encoded) -> dict[str, Doubles]:
    """The losses of models that only count; that of longer stretches only where the training text is at hand.

    They too know what is never written: tokens are counted without it.
    """
    field = task.target
    places, size = field.places(encoded["target"]), len(field) - len(NEVER_WRITTEN)
    number = number_tokens(len(field))
    targets = number[places.targets(np.arange(len(places)))]
    counts = np.delete(np.array(task.facts.counts, dtype=np.float64), NEVER_WRITTEN) + 1  # any of them may come
    losses = {"uniform": compute_uniform_losses(targets, size), "unigram": -np.log(counts / counts.sum())[targets]}
    if task.prepared is not None:
        text = field.places(task.prepared.splits["train"].ids["target"])
        order = LETTERS if field.unit == "character" else OTHERS
        counted = number[text.targets(np.arange(min(len(text), COUNTED)))]
        if len(counted) >= order:
            losses[f"{order}-gram"] = NGram.fit(counted, size, order).losses(targets)
    return losses


def load_mixture(task: Task, tensors: dict[str, Tensor], place: object) -> TokenMixture:
    return TokenMixture.from_tensors(tensors, len(task.target) - len(NEVER_WRITTEN), place)


def fit_mixture(task: Task, net: Generator, prepared: Any) -> tuple[TokenMixture, list[str]] | None:
    """What is mixed in, believed as much as the validation part says; and what each brings, in a sentence."""
    settings, held_out = task.recipe.model, prepared.splits["validation"].ids
    if not (settings.cache or settings.ngram) or not len(task.target.places(held_out["target"])):
        return None
    losses, cache, ngram, sentences = task.shape.losses(net, held_out), None, None, []
    if settings.cache:
        alone = losses
        cache, losses = ContinuousCache.fit(
            settings.cache, alone, lambda tried: task.shape.losses(tried.wrap(net), held_out)
        )
        sentences.append(
            f"a cache of {cache.length:,} tokens is mixed in with a weight of {cache.share:.2f}: on validation the "
            f"perplexity is {np.exp(losses.mean()):.3f} with it and {np.exp(alone.mean()):.3f} without"
        )
    if settings.ngram and (counted := count_ngrams(task, prepared)) is not None:
        held = losses, *read_contexts(task, counted, held_out)
        ngram = NGramMixture.fit(counted, *held)
        sentences.append(ngram.describe(*held, of="the network and its cache" if cache else "the network alone"))
    return (TokenMixture(cache, ngram), sentences) if sentences else None


def count_ngrams(task: Task, prepared: Any) -> NGram | None:
    """An n-gram model of the training text, if that is long enough for one."""
    field, order = task.target, task.recipe.model.ngram
    text = field.places(prepared.splits["train"].ids["target"])
    counted = np.arange(min(len(text), COUNTED))
    if len(counted) < order:
        return None
    return NGram.fit(number_tokens(len(field))[text.targets(counted)], len(field) - len(NEVER_WRITTEN), order)


def read_contexts(task: Task, ngram: NGram, encoded: Encoded) -> tuple[Integers, Integers]:
    """For every place of a text what an n-gram model knows of what stands before it, and what comes."""
    places, numbers = task.target.places(encoded["target"]), number_tokens(len(task.target))
    pieces = []
    for first, last in pairwise(places.begins):
        read = numbers[places.inputs(np.arange(first, last))]
        pieces.append(ngram.read(read[None], ngram.begin(1))[0])
    return np.concatenate(pieces), numbers[places.targets(np.arange(len(places)))]


def metrics(task: Task, encoded: Encoded, examples: Sequence[Sequence[str]]) -> Mapping[str, Metric]:
    """Perplexity a token; bits per character where nothing is unknown, since that would not have been spelled."""
    measures: dict[str, Metric] = {"perplexity": partial(perplexity, unit=task.target.unit)}
    if (encoded["target"].values != UNKNOWN).all():
        places = len(task.target.places(encoded["target"]))
        letters = sum(len(text) for (text,) in examples) / places  # characters a token

        def bits(sums: Doubles, counts: Doubles, /, *, intervals: bool = True) -> Score:
            return bits_per_character(sums, counts * letters, intervals=intervals)

        measures["bits per character"] = bits
    return measures
