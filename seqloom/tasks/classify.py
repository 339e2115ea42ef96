"""A whole sequence to a label, to several, or to a number: reviews, questions, series, images. Knows no files."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_labeler
from ..baselines import most_frequent
from ..baselines.bags import NaiveBayes, words
from ..baselines.labels import NearestCentroid, uniform
from ..config.recipe import Recipe
from ..data import batching
from ..data.codec import Codec, Raw
from ..data.labels import NONE, Labels, LabelSets, Rating, names_in, number_in, written
from ..data.layout import Layout, Side, no_fault
from ..data.numbers import Numbers
from ..data.prepare import Prepared
from ..data.ragged import Ragged
from ..errors import DataError
from ..layers.heads import Bernoulli, Categorical, Head, Normal
from ..layers.padding import lengths_to_mask
from ..metrics import Score
from ..metrics.labels import accuracy, f1, multilabel_f1, subset_accuracy
from ..metrics.numbers import mae, r2, rmse
from ..models import Batch, Labeler, LabelingObjective, Objective
from ..schemas import UsualLabel
from . import sources
from .base import Prediction, Question, Scored, Shown
from .rows import ROOM, Encoded, Rows, check_positions
from .scoring import Measure, scored

SHOWN = 5  # labels of an answer, unless somebody asks for more
TARGETS = {codec.kind: codec for codec in (Labels, LabelSets, Rating)}


@dataclass(frozen=True)
class Labeled(Prediction):
    """A label, or several, and how probable it is; an answer is ranked by the logarithm."""

    probability: float


@dataclass(frozen=True)
class Tagged(Prediction):
    """All labels that are likelier than not, and how probable each one is; the score is the log-probability of just
    these, each label told apart."""

    probabilities: dict[str, float]


@dataclass(frozen=True)
class Estimated(Prediction):
    """A number and how far off it may be: one standard deviation. It has no rank."""

    value: float
    spread: float


class Classify(Rows):
    learned = UsualLabel

    @property
    def source(self) -> Codec:
        return self.codecs["source"]

    @property
    def target(self) -> Labels | LabelSets | Rating:
        return cast(Labels | LabelSets | Rating, self.codecs["target"])

    @classmethod
    def layout(cls, recipe: Recipe) -> Layout:
        data = recipe.data
        kind = TARGETS[data.target_type]
        sides = {"source": sources.side_of(data), "target": Side((data.target,), kind.kind, kind.learn)}
        label = "target" if kind is Labels else ""
        return Layout("classify", data, sides, label, fault=no_number if kind is Rating else no_fault)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        train, source = prepared.splits["train"], prepared.codecs["source"]
        lengths = sources.lengths(source, train.ids["source"], recipe.model.patch)
        check_positions("encoder", recipe.model.side("encoder"), lengths)
        if isinstance(target := prepared.codecs["target"], Labels) and len(target) < 2:
            raise DataError(f"every training example has the label {target.names[0]!r}: there is nothing to tell apart")
        counts = np.array(list(prepared.report.splits["train"].sides["target"].balance.values()), dtype=np.float64)
        weights = counts.sum() / (len(counts) * counts) if len(counts) and counts.all() else counts
        return recipe, {"usual": most_frequent(train.raws["target"]), "weights": weights.tolist()}

    @property
    def reads_text(self) -> bool:
        return sources.is_text(self.source)

    def build(self) -> Labeler:
        model = self.recipe.model
        first, width = sources.embed(self.source, model), sources.width(self.source, model)
        return build_labeler(model, first, self.head, each=False, own=self.cell, inputs=width)

    def head(self, inputs: int) -> Head:
        match self.target:
            case Labels():
                weights = self.facts["weights"] if self.recipe.train.class_weights else ()
                return Categorical(inputs, len(self.target), 0, self.recipe.train.label_smoothing, weights)
            case LabelSets():
                return Bernoulli(inputs, len(self.target))
        return Normal(inputs, 1)

    def objective(self, model: Labeler) -> Objective:
        return LabelingObjective(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return sources.lengths(self.source, encoded["source"], self.recipe.model.patch)[:, None]

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        read = sources.read(self.source, encoded["source"], rows, self.recipe.model)
        return Batch(*read, self.answers(encoded["target"], rows))

    def answers(self, targets: Ragged, rows: Any) -> Tensor:
        """What the head is to tell: a class (B,), which classes (B, K), or a number on the scale of training (B, 1)."""
        values, lengths = map(torch.from_numpy, targets.padded(rows))
        if isinstance(self.target, Rating):
            return (values - self.target.mean) / self.target.spread
        if isinstance(self.target, Labels):
            return values[:, 0]
        told = torch.zeros(len(values), len(self.target))
        row, place = torch.nonzero(lengths_to_mask(lengths, values.shape[1]) & (values != NONE), as_tuple=True)
        told[row, values[row, place]] = 1
        return told

    @torch.no_grad()
    def validate(self, model: Labeler, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        known = np.flatnonzero(part.ids["target"].values != NONE) if isinstance(self.target, Labels) else slice(None)
        loss = self.loss(model, {side: ids.take(np.arange(len(part))[known]) for side, ids in part.ids.items()})
        outputs = [measured(best) for best, *_ in self.answer(model, part.ids["source"])]
        targets = list(part.raws["target"])
        if isinstance(self.target, Rating):
            return {"loss": loss, "absolute error": mae(*ratings(outputs, targets), intervals=False).value}
        return {"loss": loss, "accuracy": accuracy(outputs, targets, intervals=False).value}

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        given, targets = zip(*examples, strict=True)
        outputs = [measured(best) for best, *_ in self.predict(model, given, 1)]
        lengths = sources.lengths(self.source, self.source.encode_many(given), self.recipe.model.patch)
        return scored(MEASURES[self.target.kind], outputs, targets, self.rivals(given), lengths)

    def unread(self, inputs: Sequence[Raw]) -> list[int]:
        return self.beyond(self.source.encode_many(list(inputs)))

    def rivals(self, given: Sequence[Any]) -> dict[str, list[str]]:
        """What needs no reading, or hardly any; the bag of words only while the training examples are at hand."""
        if isinstance(self.target, Rating):
            return {"mean": [str(self.target.mean)] * len(given)}
        told = {"most frequent": [self.facts["usual"]] * len(given)}
        if isinstance(self.target, LabelSets):
            return told
        told["chance"] = uniform(self.target.names, len(given))
        if self.prepared is None:
            return told
        train = self.prepared.splits["train"].raws
        if self.reads_text:
            cut = list if self.recipe.data.source_tokenizer == "characters" else words
            told["bag of pairs"] = NaiveBayes.fit(list(train["source"]), list(train["target"]), cut).predict(given)
        elif isinstance(self.source, Numbers):
            told["nearest mean"] = NearestCentroid.fit(list(train["source"]), list(train["target"])).predict(given)
        return told

    def wrong(self, answer: Prediction, asked: Question) -> float:
        if isinstance(answer, Estimated):
            return abs(answer.value - number_in(asked.truth))
        if isinstance(self.target, LabelSets):
            return float(set(names_in(answer.output)) != set(names_in(asked.truth)))
        return super().wrong(answer, asked)

    def show(self, given: Any, answer: str) -> Shown:
        encoded = self.encode([(given, self.target.normalize(answer))])
        names = () if isinstance(self.target, Rating) else self.target.names
        elements = sources.names(self.source, given, encoded["source"], self.recipe.model.patch)
        return Shown(self.batch_of(encoded, [0]), elements, [answer], sources.symbols(self.source), names)

    @torch.no_grad()
    def predict(self, model: Labeler, inputs: Sequence[Raw], beam: int | None = None) -> list[list[Prediction]]:
        """The likeliest labels; all at once, or a number, where that is what the model was taught: one answer."""
        encoded = self.within(self.source.encode_many(list(inputs)))
        lengths = sources.lengths(self.source, encoded, self.recipe.model.patch)
        self.check_length(lengths, self.recipe.model.side("encoder"))
        return self.answer(model, encoded, beam or SHOWN)

    @torch.no_grad()
    def answer(self, model: Labeler, encoded: Ragged, width: int = 1) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = [[] for _ in range(len(encoded))]
        patch = self.recipe.model.patch
        for rows in batching.sequential(sources.lengths(self.source, encoded, patch), ROOM):
            expected = model(*sources.read(self.source, encoded, rows, self.recipe.model))
            for number, row in enumerate(rows):
                one = tuple(part[number] for part in expected) if isinstance(expected, tuple) else expected[number]
                answers[row] = self.read_out(one, width)
        return answers

    def read_out(self, expected: Any, width: int) -> list[Prediction]:
        match self.target:
            case Rating(mean=mean, spread=scale):
                value, spread = (float(part) * scale for part in expected)
                return [Estimated(f"{value + mean:.4g}", 0.0, value + mean, spread)]
            case LabelSets(names=names):
                chances = expected.cpu().double().sigmoid()
                told = written(sorted(name for name, chance in zip(names, chances, strict=True) if chance > 0.5))
                sure = float(torch.maximum(chances, 1 - chances).log().sum())
                return [Tagged(told, sure, dict(zip(names, chances.tolist(), strict=True)))]
            case Labels(names=names):
                logs, places = expected.cpu().double().log_softmax(-1).topk(min(width, len(names)))
                found = zip(logs.tolist(), places.tolist(), strict=True)
                return [Labeled(names[place], log, math.exp(log)) for log, place in found]


def measured(answer: Prediction) -> str:
    """What is scored of an answer: a number with all of its digits, not as it is shown."""
    return repr(answer.value) if isinstance(answer, Estimated) else answer.output


def ratings(outputs: Sequence[str], targets: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers that are written, as numbers."""
    told, true = (np.array([number_in(text) for text in texts]) for texts in (outputs, targets))
    return told, true


def of_numbers(metric: Callable[..., Score]) -> Measure:
    def measure(told: Sequence[str], true: Sequence[str], /, *, intervals: bool = True) -> Score:
        return metric(*ratings(told, true), intervals=intervals)

    return measure


def of_sets(metric: Callable[..., Score]) -> Measure:
    def measure(told: Sequence[str], true: Sequence[str], /, *, intervals: bool = True) -> Score:
        return metric(*([names_in(text) for text in texts] for texts in (told, true)), intervals=intervals)

    return measure


MEASURES: dict[str, dict[str, Measure]] = {
    "label": {"accuracy": accuracy, "macro F1": f1},
    "labels": {
        "all right": of_sets(subset_accuracy),
        "micro F1": of_sets(partial(multilabel_f1, average="micro")),
        "macro F1": of_sets(multilabel_f1),
    },
    "number": {
        "absolute error": of_numbers(mae),
        "root mean square error": of_numbers(rmse),
        "R²": of_numbers(r2),
    },
}


def no_number(example: Sequence[Raw]) -> str:
    """What is wrong with a target that is to be a number."""
    try:
        number_in(example[1])
    except DataError as error:
        return str(error)
    return ""
