"""Settings that a recipe leaves open ("auto"), settled from the data before training: the rules, and nothing else.

Each rule looks at a few numbers about the training examples. docs/data.md has the same rules as a table, with what
they were measured on. A setting that the person has typed is never changed, and the others follow it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from ..config.recipe import About, Recipe
from ..data.datasets import open_dataset
from ..data.formats.tables import SkippedRows
from ..data.pretokenized import split_elements
from ..data.schema import FieldKind
from ..data.series_datasets import load_series_by_part
from . import declare
from .task import Declaration

SAMPLED = 20_000  # examples that are looked at; the others are only counted
SENTENCE = 3.0  # words, on average: shorter ones are names or codes
FEW, MANY = 2_000, 20_000  # examples of little and of much data
SHORT_TEXT = 300_000  # tokens
SYMBOLS, OFTEN = 200, 20  # different words of a closed set, and how often each has to occur, on average
LONG_TEXT = 50  # words, on average: reviews and letters, not sentences
SEASONS = {60_000: 60, 600_000: 144, 900_000: 96, 1_800_000: 48, 3_600_000: 24, 86_400_000: 7, 604_800_000: 52}  # by ms
MONTHS = 12

NEIGHBORS = 64  # different tags up to which every pair of neighbors is weighed
MOST_WEIGHTS = 1 << 22  # of a linear forecaster that reads all variables together
RATES = {"transformer": 1e-3, "linear": 5e-3}  # where it is not what other nets learn at

Values = dict[str, Any]  # settings by their dotted name


@dataclass(frozen=True)
class Profile:
    """What the rules know of the training examples."""

    rows: int
    words: float  # between blanks, on average, of the source
    characters: float
    longest: int  # characters of one of the longest: only one of a hundred has more
    target_words: float
    closed: bool  # whether the words of the source are few symbols that come again and again, such as phonemes
    target_closed: bool
    labels: int  # different targets among those looked at
    tags: int  # different ones
    entities: bool  # whether targets are tags such as B-PER and I-PER

    @property
    def sentences(self) -> bool:
        return self.words >= SENTENCE


class SettledRecipe(NamedTuple):
    recipe: Recipe  # with nothing left open
    sentence: str = ""  # what was settled; nothing if nothing was
    most_steps: int = 0  # that are worth the time where a budget is given; 0 is any number


def settle(recipe: Recipe, examples: object = None, fields: Mapping[str, FieldKind] | None = None) -> SettledRecipe:
    """Settle what a recipe leaves open; `examples` from Python take the place of its files."""
    open_names = recipe.find_open(examples is not None)
    if not open_names or recipe.model.start:  # then the settings are those of the run that it starts from
        return SettledRecipe(recipe)
    explicit = {name: value for name, value in flatten(recipe).items() if name not in open_names}
    proposals = RULES[recipe.task](recipe, explicit, declare(recipe, fields), examples)
    values = {name: value for name, value in proposals.items() if name in open_names}
    shown = ", ".join(f"{name}={format_value(value)}" for name, value in values.items())
    sample = {"data.sample": ""} if examples is not None and recipe.data.sample else {}
    settled = recipe.settle(values | sample, About(title=name_data(recipe, examples)))
    sentence = f"settled from the data, where nothing was typed: {shown}"
    bounded = recipe.train.time and "model.kind" in open_names  # who chooses a net and a time gets all of it
    return SettledRecipe(settled, sentence, proposals["train.steps"] if bounded else 0)


def name_data(recipe: Recipe, examples: object) -> str:
    """A title that says whose data this is."""
    names = "data from Python" if examples is not None else ", ".join(PurePath(name).name for name in recipe.data.train)
    return f"{recipe.task}: {names}"


def flatten(recipe: Recipe) -> Values:
    """The settings of [data], [model] and [train] by their dotted names."""
    tables = {"data": recipe.data, "model": recipe.model, "train": recipe.train}
    return {f"{table}.{key}": getattr(one, key) for table, one in tables.items() for key in type(one).model_fields}


def format_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- looking -----------------------------------------------------------------------------------------------------


def look(declaration: Declaration, examples: object) -> Profile:
    """Read all training examples once; what is not text counts as one word."""
    rows = open_dataset(declaration.schema, examples).read("train", SkippedRows())
    first = list(islice(rows, SAMPLED))
    count = len(first) + sum(1 for _ in rows)
    sources = [row[0] if isinstance(row[0], str) else "" for row in first]
    last = len(declaration.schema.sides) - 1
    targets = [row[last] if isinstance(row[last], str) else "" for row in first]
    lengths = np.array([len(text) for text in sources])
    return Profile(
        rows=count,
        words=float(np.mean([len(text.split()) for text in sources])),
        characters=float(lengths.mean()),
        longest=int(np.percentile(lengths, 99)),
        target_words=float(np.mean([len(text.split()) for text in targets])),
        closed=is_closed(sources),
        target_closed=is_closed(targets),
        labels=len(set(targets)),
        tags=len({tag for text in targets for tag in split_elements(text)}),
        entities=any(tag.startswith("B-") for text in targets[:100] for tag in split_elements(text)),
    )


def is_closed(texts: Sequence[str]) -> bool:
    """Whether texts are made of few words, each of which occurs often."""
    words = [word for text in texts for word in text.split()]
    different = len(set(words))
    return different <= SYMBOLS and len(words) >= OFTEN * different


def clip(value: float, low: int, high: int) -> int:
    return int(min(max(round(value), low), high))


def choose_steps(epochs: int, rows: int, tokens: float, batch: int, low: int, high: int) -> int:
    """So many passes over the data, within bounds."""
    return clip(epochs * rows * tokens / batch, low, high)


def choose_net(rows: int, kind: str) -> Values:
    """A net: the fewer the examples, the smaller it is and the more is left out in training."""
    size = 64 if rows < FEW else 128
    dropout = 0.5 if rows < FEW else 0.3 if rows < MANY else 0.2
    return {"model.size": size, "model.dropout": dropout, "train.learning_rate": RATES.get(kind, 3e-3)}


# --- the rules, one a task ---------------------------------------------------------------------------------------


def settle_classify(recipe: Recipe, explicit: Mapping[str, Any], declaration: Declaration, examples: object) -> Values:
    """Sentences are a bag of words and pairs of words, names and codes are read character by character."""
    facts = look(declaration, examples)
    if explicit.get("data.source_type", "tokens") != "tokens":
        steps = choose_steps(30, facts.rows, 32, 4096, 400, 3000)
        kind = explicit.get("model.kind", "gru")
        return {"model.kind": kind, **choose_net(facts.rows, kind), "train.batch_tokens": 4096, "train.steps": steps}
    kind = explicit.get("model.kind") or ("bag" if facts.sentences else "gru")
    token = "characters" if not facts.sentences else "ngrams" if kind == "bag" else "words"
    tokenizer = explicit.get("data.source_tokenizer", token)
    if "model.kind" not in explicit and tokenizer in ("characters", "bpe", "wordpiece", "unigram"):
        kind = "gru"
    share = (
        2.0 * facts.words if tokenizer == "ngrams" else facts.characters if tokenizer == "characters" else facts.words
    )
    most = facts.longest * share / max(facts.characters, 1)  # tokens of all but one example in a hundred
    values: Values = {
        "data.source_tokenizer": tokenizer,
        "data.lowercase": tokenizer in ("ngrams", "words"),
        "data.vocabulary_size": {"ngrams": 200_000, "words": 30_000}.get(tokenizer, 0),
        "data.min_count": 1,
        "data.max_length": clip(2 ** math.ceil(math.log2(max(1.2 * most, 1))), 32, 4096 if kind == "bag" else 512),
        "data.too_long": "cut",
        "model.kind": kind,
    }
    if kind == "bag":
        batch, long = clip(64 * share, 1024, 16384), facts.words >= LONG_TEXT
        net: Values = {
            "model.size": clip(facts.labels + 16, 24, 512),
            "model.dropout": 0.3,
            "train.learning_rate": 3e-3 if long else 4e-3,
            "train.beta2": 0.9 if long else 0.999,  # what is rare in long texts learns too fast otherwise
        }
        return (
            values
            | net
            | {
                "train.batch_tokens": batch,
                "train.steps": choose_steps(3 if long else 5, facts.rows, share, batch, 200, 5000),
                "train.validation_tokens": 200_000,  # it is quick, and few examples are too noisy to choose by
                "train.select_by": "loss",  # its labels go on changing long after it has learned all it can
            }
        )
    values |= {"data.max_length": 512, "data.too_long": "drop"} if "model.kind" in explicit else {}
    values["model.nb_svm"] = facts.sentences and explicit.get("data.target_type", "label") == "label"
    steps = choose_steps(20, facts.rows, share, 4096, 400, 2000)
    return values | choose_net(facts.rows, kind) | {"train.batch_tokens": 4096, "train.steps": steps}


def settle_tag(recipe: Recipe, explicit: Mapping[str, Any], declaration: Declaration, examples: object) -> Values:
    """Words are known by their letters too, and tags by their neighbors, unless there are very many."""
    facts = look(declaration, examples)
    text, kind = explicit.get("data.source_type", "tokens") == "tokens", explicit.get("model.kind", "lstm")
    steps = choose_steps(20, facts.rows, max(facts.words, 1), 2048, 300, 1500)
    counted = text and not recipe.model.hidden and explicit.get("model.bias", True)
    counted = explicit.get("model.lexicon", counted)
    weighed = explicit.keys() & {"train.label_smoothing", "train.class_weights"}  # of single tags, not of a path
    return {
        "data.characters": 16 if text else 0,
        "data.endings": 4 if counted else 0,
        "data.min_count": 1,
        "model.kind": kind,
        **choose_net(facts.rows, kind),
        "model.crf": facts.entities or bool(counted and facts.tags <= NEIGHBORS and not weighed),
        "model.lexicon": counted,
        "train.batch_tokens": 2048,
        "train.steps": steps,
    }


def settle_seq2seq(recipe: Recipe, explicit: Mapping[str, Any], declaration: Declaration, examples: object) -> Values:
    """Sentences are cut into subwords, names and codes into characters, sequences of few symbols at their blanks."""
    facts = look(declaration, examples)
    cut = [
        "characters" if words < SENTENCE else "words" if closed else "bpe"
        for words, closed in ((facts.words, facts.closed), (facts.target_words, facts.target_closed))
    ]
    if "data.source_tokenizer" in explicit or "data.target_tokenizer" in explicit:
        known = explicit.get("data.source_tokenizer") or explicit.get("data.target_tokenizer")
        cut = [str(known)] * 2 if explicit.get("data.shared") else cut
    pieces = "bpe" in cut
    tokens = 2 * (facts.words * 1.5 if pieces else facts.characters)
    kind = explicit.get("model.kind", "gru")
    net = choose_net(facts.rows, kind) | {
        "model.size": 128 if facts.rows < MANY else 256,
        "train.learning_rate": RATES.get(kind, 2e-3),
    }
    net["model.dropout"] = 0.3 if pieces and facts.rows < MANY else 0.1
    return {
        "data.source_tokenizer": cut[0],
        "data.target_tokenizer": cut[1],
        "data.vocabulary_size": clip(facts.rows / 4, 1000, 8000) if pieces else 0,
        "data.min_count": 1,
        "data.max_length": 128 if pieces else clip(1.5 * facts.longest, 32, 512),
        "data.too_long": "drop",
        "model.kind": kind,
        **net,
        "train.batch_tokens": 2048,
        "train.steps": choose_steps(20, facts.rows, tokens, 2048, 1000, 4000),
    }


def settle_language(recipe: Recipe, explicit: Mapping[str, Any], declaration: Declaration, examples: object) -> Values:
    """Prose and tunes: an n-gram model is mixed in, and the shorter the text, the more is left out in training."""
    rows = open_dataset(declaration.schema, examples).read("train", SkippedRows())
    texts = [row[0] for row in rows]
    if not all(isinstance(text, str) for text in texts):  # chords
        return {"model.dropout": 0.1, "model.ngram": 0, "train.steps": recipe.train.steps}
    letters = explicit.get("data.target_tokenizer", recipe.data.target_tokenizer) == "characters"
    tokens = sum(map(len, texts)) / (1 if letters else 5)
    steps = choose_steps(15, 1, tokens, recipe.train.batch_tokens, 300, recipe.train.steps)
    dropout = 0.3 if tokens < SHORT_TEXT else 0.1
    return {"model.dropout": dropout, "model.ngram": 6 if letters else 4, "train.steps": steps}


def settle_forecast(recipe: Recipe, explicit: Mapping[str, Any], declaration: Declaration, examples: object) -> Values:
    """The season follows from the time between rows; a forecast reaches over one of them and reads several."""
    series = load_series_by_part(recipe.data, examples, SkippedRows())["train"]
    rows, shortest = sum(len(one.times) for one in series), min(len(one.times) for one in series)
    season = explicit.get("data.season") or find_season(series[0].step, shortest)
    room = max(shortest // 10, 2)  # the smallest part must hold a window
    horizon = explicit.get("data.horizon") or clip(season if season > 3 else 24, 1, min(96, max(room // 3, 1)))
    kind = explicit.get("model.kind", "linear")
    seasons = 7 if kind == "linear" else 4
    context = explicit.get("data.context") or max(min(seasons * max(season, horizon), shortest // 8), 1)
    context -= 0 if "data.context" in explicit else context % recipe.model.patch_length
    batch = clip(64 * context, 1024, 32768)
    variables = len(series[0].columns) - len(recipe.data.inputs)
    fits = context * horizon * variables**2 * max(len(recipe.model.quantiles), 1) <= MOST_WEIGHTS
    # At least squares there is hardly anything left to learn: more than a touch unlearns what validation has chosen.
    least_squares = kind == "linear" and recipe.model.hidden == 0 and explicit.get("model.relative") != "mean"
    least_squares = least_squares and explicit.get("model.least_squares", True) and explicit.get("model.bias", True)
    return {
        "data.context": context,
        "data.horizon": horizon,
        "data.season": season,
        "model.kind": kind,
        "model.channel_independent": kind == "linear" and not fits,
        "model.relative": "none" if kind == "linear" and fits else "last",
        "model.size": 64,
        "model.dropout": 0.1,
        "train.batch_tokens": batch,
        "train.learning_rate": 1e-6 if least_squares else RATES.get(kind, 3e-3),
        "train.steps": 100 if least_squares else choose_steps(20, rows, context, batch, 300, 3000),
    }


def find_season(step: str, rows: int) -> int:
    """Rows after which a series repeats itself, by the time between two: a day of hours, a week of days, a year of
    weeks or months; 1 where that is not known, or where the series is too short to show it twice."""
    number, _, unit = step.partition(" ")
    season = 1
    if unit == "months":
        season = max(MONTHS // int(number), 1)
    elif unit == "ms":
        season = SEASONS.get(int(number), 1)
    return season if 3 * season <= rows else 1


Rule = Callable[[Recipe, Mapping[str, Any], Declaration, object], Values]
RULES: dict[str, Rule] = {
    "classify": settle_classify,
    "tag": settle_tag,
    "seq2seq": settle_seq2seq,
    "language": settle_language,
    "music": settle_language,
    "forecast": settle_forecast,
}
