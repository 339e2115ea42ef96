"""A whole sequence to a label, to several, or to a number: reviews, questions, series, images."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..baselines import most_frequent
from ..baselines.bags import NaiveBayes, split_words
from ..baselines.labels import NearestCentroid, predict_uniform
from ..baselines.nb_svm import NBSVM
from ..config.recipe import Recipe
from ..data.schema import FieldKind, Schema, Side, find_no_fault
from ..fields import Label, LabelSet, Number, source_side
from ..fields.labels import parse_number, split_names
from ..metrics import Score
from ..metrics.classes import class_accuracy
from ..metrics.labels import accuracy, f1, multilabel_f1, subset_accuracy
from ..metrics.numbers import mae, r2, rmse
from ..models import Labeler
from ..schemas import MostFrequentLabel
from .labeling import SequenceLabeling
from .nb_svm_mixture import NBSVMMixture
from .scoring import Metric
from .task import Declaration, Mixing, Task, check_per_symbol

Answers = dict[str, list[str]]


class Target(NamedTuple):
    """What is measured of one kind of answer, and against what."""

    field: FieldKind
    metrics: dict[str, Metric]
    quick: dict[str, Metric]
    baselines: Callable[[Task, Sequence[Any]], Answers]
    fault: Callable[[Sequence[Any]], str] = find_no_fault
    stratified: bool = False  # whether drawn parts have each answer in equal shares


def declare(recipe: Recipe) -> Declaration:
    data, target = recipe.data, TARGETS[recipe.data.target_type]
    sides = {"source": source_side(data), "target": Side((data.target,), target.field)}
    return Declaration(
        schema=Schema("classify", data, sides, "target" if target.stratified else "", fault=target.fault),
        shape=SequenceLabeling,
        facts=MostFrequentLabel,
        learn=learn,
        baselines=target.baselines,
        metrics=lambda task: target.metrics,
        quick=target.quick,
        check=lambda task: check_per_symbol(task, weights=task.facts.weights),
        mixing=Mixing(fit_mixture, load_mixture),
    )


def learn(task: Task, prepared: Any) -> MostFrequentLabel:
    """The most frequent answer, and what each label counts where all are to count alike."""
    counts = np.array(list(prepared.report.splits["train"].sides["target"].balance.values()), dtype=np.float64)
    weights = counts.sum() / (len(counts) * counts) if len(counts) and counts.all() else counts
    most = most_frequent(prepared.splits["train"].raws["target"])
    return MostFrequentLabel(most_frequent=most, weights=weights.tolist())


def fit_mixture(task: Task, net: Labeler, prepared: Any) -> tuple[NBSVMMixture, list[str]] | None:
    """NB-SVM of the training texts, believed as much as the validation part says; and what it brings, in a sentence."""
    if not task.recipe.model.nb_svm:
        return None
    train, held_out = (prepared.splits[part].ids for part in ("train", "validation"))
    known = task.target.find_known_rows(held_out["target"])
    if not len(known):
        return None
    held_out = {side: ids.take(known) for side, ids in held_out.items()}
    labels = train["target"].values.astype(np.int64)
    mixture = NBSVMMixture.fit(train["source"], labels, len(task.source), len(task.target))
    features, truth = task.shape.read_features(net, held_out)
    own = net.head(features).detach().double().log_softmax(-1).cpu()
    counted = torch.from_numpy(mixture.score(held_out["source"]))
    mixture = mixture.weigh(own, counted, truth)
    own_share, other_share = mixture.shares.tolist()
    both = own_share * own + other_share * counted
    net_right, other_right, right = (float((one.argmax(1) == truth).double().mean()) for one in (own, counted, both))
    return mixture, [
        f"NB-SVM of tokens and pairs is mixed in: on validation the accuracy of the network alone is {net_right:.3f}, "
        f"of NB-SVM alone {other_right:.3f}, of both together {right:.3f}"
    ]


def load_mixture(task: Task, tensors: dict[str, Tensor], place: object) -> NBSVMMixture:
    return NBSVMMixture.from_tensors(tensors, len(task.source), len(task.target), place)


def constant_baselines(task: Task, inputs: Sequence[Any]) -> Answers:
    return {"most frequent": [task.facts.most_frequent] * len(inputs)}


def label_baselines(task: Task, inputs: Sequence[Any]) -> Answers:
    """What needs no reading, or hardly any; the latter only while the training examples are at hand."""
    answers = constant_baselines(task, inputs) | {"chance": predict_uniform(task.target.names, len(inputs))}
    if task.prepared is not None:
        train = task.prepared.splits["train"].raws
        sources, labels = list(train["source"]), list(train["target"])
        if task.shape.reads_text:
            cut = list if task.recipe.data.source_tokenizer == "characters" else split_words
            answers["bag of pairs"] = NaiveBayes.fit(sources, labels, cut).predict(inputs)
            answers["NB-SVM"] = NBSVM.fit(sources, labels, cut).predict(inputs)
        elif task.recipe.data.source_type in ("numbers", "sound"):
            answers["nearest mean"] = NearestCentroid.fit(sources, labels).predict(inputs)
    return answers


def number_baselines(task: Task, inputs: Sequence[Any]) -> Answers:
    return {"mean": [str(task.target.mean)] * len(inputs)}


def parse_all(parse: Callable[[str], Any], metric: Callable[..., Score]) -> Metric:
    """A metric of numbers, applied to texts."""

    def measure(predictions: Sequence[str], targets: Sequence[str], /, *, intervals: bool = True) -> Score:
        return metric(*([parse(text) for text in texts] for texts in (predictions, targets)), intervals=intervals)

    return measure


def find_fault(example: Sequence[Any]) -> str:
    """What is wrong with an answer that is to be a number."""
    sentence = Number.check(example[1])
    return f"the target {sentence}" if sentence else ""


absolute_error = parse_all(parse_number, mae)
TARGETS = {
    "label": Target(
        Label, {"accuracy": class_accuracy, "macro F1": f1}, {"accuracy": accuracy}, label_baselines, stratified=True
    ),
    "labels": Target(
        LabelSet,
        {
            "all right": parse_all(split_names, subset_accuracy),
            "micro F1": parse_all(split_names, partial(multilabel_f1, average="micro")),
            "macro F1": parse_all(split_names, multilabel_f1),
        },
        {"accuracy": accuracy},
        constant_baselines,
    ),
    "number": Target(
        Number,
        {
            "absolute error": absolute_error,
            "root mean square error": parse_all(parse_number, rmse),
            "R²": parse_all(parse_number, r2),
        },
        {"absolute error": absolute_error},
        number_baselines,
        find_fault,
    ),
}
