"""A whole sequence to a label, to several, or to a number: reviews, tweets, questions. Knows texts, not files."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import build
from ..baselines import most_frequent
from ..data import batches
from ..data.codec import Raw
from ..data.labels import NONE, Labels, LabelSets, Rating, number_in, written
from ..data.layout import Layout, Side, no_fault, tokens
from ..data.prepare import Prepared
from ..data.ragged import Ragged
from ..data.tokenizers import Tokenizer
from ..errors import DataError
from ..layers.embeddings import Tokens
from ..layers.heads import Bernoulli, Categorical, Head, Normal
from ..layers.padding import mask_of
from ..metrics import exact_match
from ..models import Batch, Labeller, Labelling, Objective
from ..recipe import Recipe
from .base import Prediction, Scored
from .rows import ROOM, Encoded, Rows, check_positions, padded

SHOWN = 5  # labels of an answer, unless somebody asks for more
TARGETS = {codec.kind: codec for codec in (Labels, LabelSets, Rating)}


@dataclass(frozen=True)
class Labelled(Prediction):
    """A label, or several, and how probable it is; an answer is ranked by the logarithm."""

    probability: float


@dataclass(frozen=True)
class Tagged(Prediction):
    """All labels that are likelier than not, and how probable each one is."""

    probabilities: dict[str, float]


@dataclass(frozen=True)
class Estimated(Prediction):
    """A number and how far off it may be: one standard deviation. It has no rank."""

    value: float
    spread: float


class Classify(Rows):
    @property
    def source(self) -> Tokenizer:
        return cast(Tokenizer, self.codecs["source"])

    @property
    def target(self) -> Labels | LabelSets | Rating:
        return cast(Labels | LabelSets | Rating, self.codecs["target"])

    @classmethod
    def layout(cls, recipe: Recipe) -> Layout:
        data = recipe.data
        kind = TARGETS[data.target_type]
        sides = {
            "source": tokens(data, data.source, data.source_tokens),
            "target": Side((data.target,), kind.kind, kind.learn),
        }
        label = "target" if kind is Labels else ""
        return Layout("classify", data, sides, label, fault=no_number if kind is Rating else no_fault)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        train = prepared.splits["train"]
        check_positions("encoder", recipe.model.side("encoder"), train.ids["source"].lengths)
        if isinstance(target := prepared.codecs["target"], Labels) and len(target) < 2:
            raise DataError(f"every training example has the label {target.names[0]!r}: there is nothing to tell apart")
        counts = np.array(list(prepared.report.splits["train"].sides["target"].balance.values()), dtype=np.float64)
        weights = counts.sum() / (len(counts) * counts) if len(counts) and counts.all() else counts
        return recipe, {"usual": most_frequent(train.raws["target"]), "weights": weights.tolist()}

    def build(self) -> Labeller:
        model = self.recipe.model
        embed = Tokens(len(self.source), model.embedding, model.side("encoder").dropout)
        return build.labeller(model, embed, self.head, each=False, own=self.cell)

    def head(self, inputs: int) -> Head:
        match self.target:
            case Labels():
                weights = self.facts["weights"] if self.recipe.train.balanced else ()
                return Categorical(inputs, len(self.target), 0, self.recipe.train.smoothing, weights)
            case LabelSets():
                return Bernoulli(inputs, len(self.target))
        return Normal(inputs, 1)

    def objective(self, model: Labeller) -> Objective:
        return Labelling(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return encoded["source"].lengths[:, None]

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        return Batch(*padded(encoded["source"], rows), self.answers(encoded["target"], rows))

    def answers(self, targets: Ragged, rows: Any) -> Tensor:
        """What the head is to tell: a class (B,), which classes (B, K), or a number on the scale of training (B, 1)."""
        values, lengths = map(torch.from_numpy, targets.padded(rows))
        if isinstance(self.target, Rating):
            return (values - self.target.mean) / self.target.spread
        if isinstance(self.target, Labels):
            return values[:, 0]
        told = torch.zeros(len(values), len(self.target))
        row, place = torch.nonzero(mask_of(lengths, values.shape[1]) & (values != NONE), as_tuple=True)
        told[row, values[row, place]] = 1
        return told

    @torch.no_grad()
    def validate(self, model: Labeller, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        known = np.flatnonzero(part.ids["target"].values != NONE) if isinstance(self.target, Labels) else slice(None)
        loss = self.loss(model, {side: ids.take(np.arange(len(part))[known]) for side, ids in part.ids.items()})
        answers, targets = self.answer(model, part.ids["source"]), list(part.raws["target"])
        if isinstance(self.target, Rating):
            errors = np.abs(
                [float(answer.output) - number_in(text) for [answer], text in zip(answers, targets, strict=True)]
            )
            return {"loss": loss, "absolute error": float(errors.mean())}
        right = [best.output == text for [best, *_], text in zip(answers, targets, strict=True)]
        return {"loss": loss, "accuracy": float(np.mean(right))}

    def score(self, model: Labeller, examples: Sequence[Sequence[str]]) -> dict[str, Scored]:
        sources, targets = zip(*examples, strict=True)
        answers = self.predict(model, sources, 1)
        outputs = [best.output for best, *_ in answers]
        return {"accuracy": Scored(exact_match(outputs, [[target] for target in targets]), {})}

    @torch.no_grad()
    def predict(self, model: Labeller, inputs: Sequence[Raw], width: int | None = None) -> list[list[Prediction]]:
        """The likeliest labels; all at once, or a number, where that is what the model was taught: one answer."""
        encoded = self.source.encode_many(list(inputs))
        self.check_length(encoded.lengths, self.recipe.model.side("encoder"))
        return self.answer(model, encoded, width or SHOWN)

    @torch.no_grad()
    def answer(self, model: Labeller, encoded: Ragged, width: int = 1) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = [[] for _ in range(len(encoded))]
        for rows in batches.sequential(encoded.lengths, ROOM):
            expected = model(*padded(encoded, rows))
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
                chances = expected.double().sigmoid()
                told = written(sorted(name for name, chance in zip(names, chances, strict=True) if chance > 0.5))
                sure = float(torch.maximum(chances, 1 - chances).log().sum())
                return [Tagged(told, sure, dict(zip(names, chances.tolist(), strict=True)))]
            case Labels(names=names):
                logs, places = expected.double().log_softmax(-1).topk(min(width, len(names)))
                found = zip(logs.tolist(), places.tolist(), strict=True)
                return [Labelled(names[place], log, math.exp(log)) for log, place in found]


def no_number(example: Sequence[Raw]) -> str:
    """What is wrong with a target that is to be a number."""
    try:
        number_in(example[1])
    except DataError as error:
        return str(error)
    return ""
