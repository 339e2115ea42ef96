"""A whole sequence to a label, to several, or to a number: reviews, questions, series, images. Knows no files."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures.build import build_labeler
from ..baselines import most_frequent
from ..baselines.bags import NaiveBayes, words
from ..baselines.labels import NearestCentroid, uniform
from ..config.recipe import Recipe
from ..data import batching
from ..data.prepare import Prepared
from ..data.ragged import Ragged
from ..data.schema import Raw, Schema, Side, no_fault
from ..errors import DataError
from ..fields import Field, Label, LabelSet, Number, Prediction, source_side
from ..fields.labels import NumberPrediction, parse_number, split_names
from ..layers.heads import Head
from ..metrics import Score
from ..metrics.labels import accuracy, f1, multilabel_f1, subset_accuracy
from ..metrics.numbers import mae, r2, rmse
from ..models import Batch, Labeler, LabelingObjective, Objective
from ..schemas import UsualLabel
from .base import Question, Scored, Shown
from .rows import ROOM, Encoded, Rows, check_positions
from .scoring import Measure, scored

SHOWN = 5  # labels of an answer, unless somebody asks for more
TARGETS: dict[str, type[Field]] = {field.kind: field for field in (Label, LabelSet, Number)}


class Classify(Rows):
    learned = UsualLabel

    @property
    def source(self) -> Field:
        return self.fields["source"]

    @property
    def target(self) -> Field:
        return self.fields["target"]

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        kind = TARGETS[data.target_type]
        sides = {"source": source_side(data), "target": Side((data.target,), kind)}
        label = "target" if kind is Label else ""
        return Schema("classify", data, sides, label, fault=no_number if kind is Number else no_fault)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        train, source = prepared.splits["train"], prepared.fields["source"]
        lengths = source.lengths(train.ids["source"], recipe.model)
        check_positions("encoder", recipe.model.side("encoder"), lengths)
        if isinstance(target := prepared.fields["target"], Label) and len(target) < 2:
            raise DataError(f"every training example has the label {target.names[0]!r}: there is nothing to tell apart")
        counts = np.array(list(prepared.report.splits["train"].sides["target"].balance.values()), dtype=np.float64)
        weights = counts.sum() / (len(counts) * counts) if len(counts) and counts.all() else counts
        return recipe, {"usual": most_frequent(train.raws["target"]), "weights": weights.tolist()}

    @property
    def reads_text(self) -> bool:
        return self.source.is_text

    def build(self) -> Labeler:
        model = self.recipe.model
        first, width = self.source.embedding(model), self.source.features(model)
        return build_labeler(model, first, self.head, each=False, own=self.cell, inputs=width)

    def head(self, inputs: int) -> Head:
        weights = self.facts["weights"] if self.recipe.train.class_weights else ()
        return self.target.head(inputs, self.recipe, weights)

    def objective(self, model: Labeler) -> Objective:
        return LabelingObjective(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return self.source.lengths(encoded["source"], self.recipe.model)[:, None]

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        read = self.source.collate(encoded["source"], rows, self.recipe.model)
        return Batch(*read, self.target.targets(encoded["target"], rows))

    @torch.no_grad()
    def validate(self, model: Labeler, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        known = self.target.known_rows(part.ids["target"])
        loss = self.loss(model, {side: ids.take(known) for side, ids in part.ids.items()})
        outputs = [measured(best) for best, *_ in self.answer(model, part.ids["source"])]
        targets = list(part.raws["target"])
        if isinstance(self.target, Number):
            return {"loss": loss, "absolute error": mae(*ratings(outputs, targets), intervals=False).value}
        return {"loss": loss, "accuracy": accuracy(outputs, targets, intervals=False).value}

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        given, targets = zip(*examples, strict=True)
        outputs = [measured(best) for best, *_ in self.predict(model, given, 1)]
        lengths = self.source.lengths(self.source.encode_many(given), self.recipe.model)
        return scored(MEASURES[self.target.kind], outputs, targets, self.rivals(given), lengths)

    def unread(self, inputs: Sequence[Raw]) -> list[int]:
        return self.beyond(self.source.encode_many(list(inputs)))

    def rivals(self, given: Sequence[Any]) -> dict[str, list[str]]:
        """What needs no reading, or hardly any; the bag of words only while the training examples are at hand."""
        if isinstance(self.target, Number):
            return {"mean": [str(self.target.mean)] * len(given)}
        told = {"most frequent": [self.facts["usual"]] * len(given)}
        if isinstance(self.target, LabelSet):
            return told
        told["chance"] = uniform(self.target.symbols, len(given))
        if self.prepared is None:
            return told
        train = self.prepared.splits["train"].raws
        if self.reads_text:
            cut = list if self.recipe.data.source_tokenizer == "characters" else words
            told["bag of pairs"] = NaiveBayes.fit(list(train["source"]), list(train["target"]), cut).predict(given)
        elif self.source.kind == "numbers":
            told["nearest mean"] = NearestCentroid.fit(list(train["source"]), list(train["target"])).predict(given)
        return told

    def wrong(self, answer: Prediction, asked: Question) -> float:
        return self.target.error(answer, asked.truth)

    def show(self, given: Any, answer: str) -> Shown:
        encoded = self.encode([(given, self.target.normalize(answer))])
        elements = self.source.element_names(given, encoded["source"], self.recipe.model)
        batch, picture = self.batch_of(encoded, [0]), self.source.picture(given)
        return Shown(batch, elements, [answer], self.source.symbols, self.target.symbols, picture)

    @torch.no_grad()
    def predict(self, model: Labeler, inputs: Sequence[Raw], beam: int | None = None) -> list[list[Prediction]]:
        """The likeliest labels; all at once, or a number, where that is what the model was taught: one answer."""
        encoded = self.within(self.source.encode_many(list(inputs)))
        lengths = self.source.lengths(encoded, self.recipe.model)
        self.check_length(lengths, self.recipe.model.side("encoder"))
        return self.answer(model, encoded, beam or SHOWN)

    @torch.no_grad()
    def answer(self, model: Labeler, encoded: Ragged, width: int = 1) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = [[] for _ in range(len(encoded))]
        for rows in batching.sequential(self.source.lengths(encoded, self.recipe.model), ROOM):
            expected = model(*self.source.collate(encoded, rows, self.recipe.model))
            for number, row in enumerate(rows):
                one = tuple(part[number] for part in expected) if isinstance(expected, tuple) else expected[number]
                answers[row] = self.target.predictions(one, width)
        return answers


def measured(answer: Prediction) -> str:
    """What is scored of an answer: a number with all of its digits, not as it is shown."""
    return repr(answer.value) if isinstance(answer, NumberPrediction) else answer.output


def ratings(outputs: Sequence[str], targets: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers that are written, as numbers."""
    told, true = (np.array([parse_number(text) for text in texts]) for texts in (outputs, targets))
    return told, true


def of_numbers(metric: Callable[..., Score]) -> Measure:
    def measure(told: Sequence[str], true: Sequence[str], /, *, intervals: bool = True) -> Score:
        return metric(*ratings(told, true), intervals=intervals)

    return measure


def of_sets(metric: Callable[..., Score]) -> Measure:
    def measure(told: Sequence[str], true: Sequence[str], /, *, intervals: bool = True) -> Score:
        return metric(*([split_names(text) for text in texts] for texts in (told, true)), intervals=intervals)

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
        parse_number(example[1])
    except DataError as error:
        return str(error)
    return ""
