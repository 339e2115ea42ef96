"""Two shapes: an answer once a sequence, and a label for each of its elements."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_labeler
from ..arrays import Doubles
from ..config.recipe import Recipe
from ..counts import format_count
from ..data import batching
from ..data.pretokenized import SEPARATOR, split_elements
from ..data.ragged import Ragged
from ..errors import DataError
from ..fields import Prediction
from ..fields.base import pick_evenly
from ..fields.labels import NONE
from ..layers.lexicon import LexiconEmbedding
from ..metrics.classes import calibrate
from ..models import Batch, Labeler, device_of
from .counted_tags import begin_with_counts, find_closest
from .linear_probe import begin_with_probe
from .naive_bayes import begin_with_naive_bayes
from .results import Inspection, Likelihood, Predictions, ScoreWithBaselines
from .scoring import score_answers
from .shape import ROOM, Encoded, Shape, check_length, check_positions

PROBED = 5000  # training labels that a new head begins with at most
LISTED = 5  # labels of a prediction, unless somebody asks for more


class SequenceLabeling(Shape):
    """One answer to the whole of a sequence: a label, several, a number."""

    def settle(self, prepared: Any) -> Recipe:
        model, source = self.recipe.model, prepared.splits["train"].ids["source"]
        lengths = self.source.lengths(source, model)
        check_positions("encoder", model.side("encoder"), lengths, ahead=not model.causal)
        if len(names := self.task.target.symbols) == 1:
            raise DataError(f"every training example has the label {names[0]!r}: there is nothing to tell apart")
        return self.recipe

    def build(self) -> Labeler:
        return build_for(self, each=False)

    def initialize(self, model: Labeler, note: Callable[[str], object]) -> bool:
        settings, task = self.recipe.model, self.task
        if settings.kind != "bag" or not settings.naive_bayes or self.recipe.data.target_type != "label":
            return False
        if settings.hidden:
            note("model.naive_bayes begins nothing: model.hidden puts a layer before the labels")
            return False
        if settings.pool not in ("", "sqrtn"):
            note(f'model.naive_bayes begins nothing: model.pool is "{settings.pool}", and "sqrtn" adds evidence up')
            return False
        if task.prepared is None:
            note("model.naive_bayes begins nothing: the training examples are not at hand")
            return False
        splits, names = task.prepared.splits, len(task.target)
        initialized = begin_with_naive_bayes(model, splits["train"].ids, splits["validation"].ids, names)
        if not initialized:
            note(
                f"model.naive_bayes begins nothing: the target has {format_count(names, 'label')}, and "
                f"model.size is {settings.size}"
            )
        return initialized

    def begin_head(self, model: Labeler, note: Callable[[str], object]) -> None:
        if self.recipe.data.target_type == "label":
            probe_head(self, model, note)

    @torch.no_grad()
    def read_features(self, model: Labeler, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """What the head sees of examples (N, D), and their labels (N,)."""
        features, training = [], model.training
        model.eval()
        plan = list(batching.plan_scoring(self.lengths(encoded), ROOM))
        for rows in plan:
            batch = self.collate(encoded, rows)
            features.append(model.features(batch.inputs, batch.mask))
        model.train(training)
        back = torch.from_numpy(np.argsort(np.concatenate(plan)))  # batches are made by length
        return torch.cat(features)[back], self.task.target.targets(encoded["target"], np.arange(len(back)))

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return self.source.lengths(encoded["source"], self.recipe.model)[:, None]

    def collate(self, encoded: Encoded, rows: Any) -> Batch:
        inputs, mask = self.source.collate(encoded["source"], rows, self.recipe.model)
        return Batch(inputs, mask, self.task.target.targets(encoded["target"], rows))

    def validate(self, model: Labeler, prepared: Any) -> dict[str, float]:
        part = prepared.splits["validation"]
        known = self.task.target.find_known_rows(part.ids["target"])
        scores = {"loss": self.loss(model, {side: ids.take(known) for side, ids in part.ids.items()})}
        answers = [best.exact for best, *_ in self.answer(model, part.ids["source"], 1)]
        for name, metric in (self.task.declaration.quick or {}).items():
            scores[name] = metric(answers, list(part.raws["target"]), intervals=False).value
        return scores

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        declared, (inputs, targets) = self.task.declaration, zip(*examples, strict=True)
        encoded = self.source.encode_many(inputs)
        predictions = [best for best, *_ in self.predict_encoded(model, encoded, 1)]
        answers, lengths = [one.exact for one in predictions], self.source.lengths(encoded, self.recipe.model)
        baselines = declared.baselines(self.task, inputs)
        scores = score_answers(declared.metrics(self.task), answers, targets, baselines, lengths)
        for scored in scores.values():
            if "classes" in scored.score.details:  # of one label, whose score is its log-probability
                right = [answer == target for answer, target in zip(answers, targets, strict=True)]
                scored.score.details["calibration"] = calibrate(np.exp([one.score for one in predictions]), right)
        return scores

    @property
    def classes(self) -> tuple[str, ...]:
        return self.task.target.symbols

    def probabilities(self, model: Labeler, inputs: Sequence[Any]) -> Doubles:
        """The probability of every class, (N, classes)."""
        predictions = self.predict(model, inputs, len(self.classes))
        return np.array([[one.probabilities[name] for name in self.classes] for one in predictions]).reshape(
            len(predictions), -1
        )

    def predict(self, model: Labeler, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The likeliest labels; all at once, or a number, where that is what the model was taught: one answer."""
        return self.predict_encoded(model, self.source.encode_many(list(inputs)), beam or LISTED)

    def predict_encoded(self, model: Labeler, encoded: Ragged, count: int) -> list[Predictions]:
        cut, unread = encoded.cut(self.most), self.unread(encoded)
        check_length(self.source.lengths(cut, self.recipe.model), self.recipe.model.side("encoder"))
        answers = self.answer(model, cut, count)
        return [Predictions(*one) for one in zip(answers, unread, strict=True)]

    @torch.no_grad()
    def answer(self, model: Labeler, encoded: Ragged, count: int) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = [[] for _ in range(len(encoded))]
        for rows in batching.plan_scoring(self.source.lengths(encoded, self.recipe.model), ROOM):
            expected = model(*self.source.collate(encoded, rows, self.recipe.model))
            for number, row in enumerate(rows):
                one = tuple(part[number] for part in expected) if isinstance(expected, tuple) else expected[number]
                answers[row] = self.task.target.predictions(one, count)
        return answers

    def inspect(self, raw: Any, answer: str) -> Inspection:
        target, model = self.task.target, self.recipe.model
        target.check_answer(target.normalize(answer))
        encoded = self.encode([(raw, target.normalize(answer))])
        names = self.source.element_names(raw, encoded["source"], model)
        batch, picture = self.collate(encoded, [0]), self.source.picture(raw)
        return Inspection(batch, names, [answer], self.source.symbols, target.symbols, picture)


@dataclass(frozen=True)
class TagsPrediction(Prediction):
    """A tag for each element; the score is the log-probability of all of them together, given what was read."""

    words: list[str]  # as they were cut; numbers have none
    tags: list[str]

    def measures(self) -> dict[str, float]:
        return {"probability": math.exp(self.score)}

    def rows(self) -> list[dict[str, Any]]:
        return [{"prediction": self.output, "tags": " ".join(self.tags)} | self.measures()]


class ElementLabeling(Shape):
    """A label for each element of a sequence. What is longer than an example of training is read in pieces of that
    length: every element has its label."""

    def settle(self, prepared: Any) -> Recipe:
        body, source = self.recipe.model.side("encoder"), prepared.splits["train"].ids["source"]
        check_positions("encoder", body, source.lengths, ahead=not self.recipe.model.causal)
        return self.recipe

    def build(self) -> Labeler:
        return build_for(self, each=True, lexicon=self.recipe.model.lexicon)

    def initialize(self, model: Labeler, note: Callable[[str], object]) -> bool:
        if not self.recipe.model.lexicon:
            return False
        if self.task.prepared is None:
            note("model.lexicon begins with nothing: the training examples are not at hand")
            return False
        alike = self.source.look_alikes()
        begin_with_counts(model, self.task.prepared.splits["train"].ids, len(self.task.target), alike)
        return True

    def begin_head(self, model: Labeler, note: Callable[[str], object]) -> None:
        probe_head(self, model, note)

    @torch.no_grad()
    def read_features(self, model: Labeler, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """What the head sees of elements (N, D), and their labels (N,)."""
        features, labels, training = [], [], model.training
        model.eval()
        for rows in batching.plan_scoring(self.lengths(encoded), ROOM):
            batch = self.collate(encoded, rows)
            features.append(model.features(batch.inputs, batch.mask)[batch.loss_mask])
            labels.append(batch.target[batch.loss_mask])
        model.train(training)
        return torch.cat(features), torch.cat(labels)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return encoded["source"].lengths[:, None]

    def collate(self, encoded: Encoded, rows: Any) -> Batch:
        """A label that was never seen in training is not counted: the mask leaves it out."""
        inputs, mask = self.source.collate(encoded["source"], rows, self.recipe.model)
        labels = self.task.target.targets(encoded["target"], rows)
        labels = torch.nn.functional.pad(labels, (0, mask.shape[1] - labels.shape[1]), value=NONE)
        return Batch(inputs, mask, labels.clamp(min=0), loss_mask=mask & (labels != NONE))

    def validate(self, model: Labeler, prepared: Any) -> dict[str, float]:
        part = prepared.splits["validation"]
        answers = [labels for labels, _ in self.answer(model, part.ids["source"])]
        targets = (split_elements(text) for text in part.raws["target"])  # which are whole, while what is long was cut
        cut = [labels[: len(own)] for labels, own in zip(targets, answers, strict=True)]
        scores = {"loss": self.loss(model, part.ids)}
        for name, metric in (self.task.declaration.quick or {}).items():
            scores[name] = metric(answers, cut, intervals=False).value
        return scores

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        declared, (inputs, texts) = self.task.declaration, zip(*examples, strict=True)
        answers = [labels for labels, _ in self.label(model, inputs)]
        targets = [split_elements(text) for text in texts]
        baselines = declared.baselines(self.task, inputs, targets)
        lengths = np.array(list(map(len, targets)), dtype=np.int64)
        return score_answers(declared.metrics(self.task, targets), answers, targets, baselines, lengths)

    def answer_of(self, example: Sequence[Any]) -> str:
        """The target as `predict` would output it."""
        return self.prediction(example[0], split_elements(example[1]), 0.0).output

    def count_cut(self, examples: Sequence[Any]) -> int:
        return 0

    def predict(self, model: Labeler, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """One answer each: the labels. A text is cut at tabs, or else at blanks."""
        answers = zip(inputs, self.label(model, inputs), strict=True)
        return [Predictions([self.prediction(raw, *answer)]) for raw, answer in answers]

    def label(self, model: Labeler, inputs: Sequence[Any]) -> list[tuple[list[str], float]]:
        """The labels of each input, and their log-probability."""
        pieces, owner = split_long(self.source.encode_many(list(inputs)), self.most)
        check_length(pieces.lengths, self.recipe.model.side("encoder"))
        labels: list[list[str]] = [[] for _ in inputs]
        logs = [0.0] * len(labels)
        for row, (some, log) in zip(owner.tolist(), self.answer(model, pieces), strict=True):
            labels[row] += some
            logs[row] += log
        return list(zip(labels, logs, strict=True))

    @torch.no_grad()
    def answer(self, model: Labeler, encoded: Ragged) -> list[tuple[list[str], float]]:
        """The labels of each sequence and their log-probability, all together."""
        answers: list[tuple[list[str], float]] = [([], 0.0)] * len(encoded)
        names = self.task.target.names
        for rows in batching.plan_scoring(encoded.lengths, ROOM):
            read = self.source.collate(encoded, rows, self.recipe.model)
            inputs, mask = (part.to(device_of(model)) for part in read)
            expected = model(inputs, mask)
            best = model.head.sample(expected, 0, mask)
            logs = model.head.log_probability(expected, best, mask).tolist()
            for number, row in enumerate(rows):
                answers[row] = [names[place] for place in best[number][mask[number]].tolist()], logs[number]
        return answers

    def measure_likelihoods(self, model: Labeler, pairs: Sequence[tuple[Any, str]]) -> list[Likelihood]:
        """How probable the tags of inputs are: a path of a CRF, or each by itself."""
        return [self.measure_likelihood(model, given, text) for given, text in pairs]

    @torch.no_grad()
    def measure_likelihood(self, model: Labeler, given: Any, text: str) -> Likelihood:
        """The text is words with their tags as `predict` gives them, or tags alone where the input is given."""
        parts = [part.rpartition("/") for part in split_elements(text)]
        tags, target = [tag for _, _, tag in parts], self.task.target
        if given is None and not all(word for word, _, _ in parts):
            raise DataError(f"words with their tags were expected, such as the/DET cat/NOUN, but not {text!r:.60}")
        given = SEPARATOR.join([*(word for word, _, _ in parts), ""]) if given is None else self.accept_input(given)
        target.check_answer(SEPARATOR.join(tags))
        encoded = self.encode([(given, SEPARATOR.join([*tags, ""]))])
        if (elements := int(encoded["source"].lengths[0])) != len(tags):
            raise DataError(f"{format_count(len(tags), 'tag')} for {format_count(elements, 'element')}: {text!r:.60}")
        pieces = {side: split_long(ids, self.most)[0] for side, ids in encoded.items()}
        check_length(pieces["source"].lengths, self.recipe.model.side("encoder"))
        logs: list[float] = []
        for row in range(len(pieces["source"])):
            batch = self.collate(pieces, [row]).to(device_of(model))
            log_probabilities = model.head.log_probabilities(model(batch.inputs, batch.mask), batch.target, batch.mask)
            logs += log_probabilities[batch.mask].tolist()
        return Likelihood(text, tags, logs)

    def prediction(self, raw: Any, tags: list[str], score: float) -> TagsPrediction:
        words = split_elements(raw) if self.source.is_text else []
        output = " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)) if words else " ".join(tags)
        return TagsPrediction(output, score, words, tags)

    def inspect(self, raw: Any, answer: str) -> Inspection:
        """The answer is tags, or words with their tags as `predict` gives them."""
        tags = [part.rpartition("/")[2] for part in split_elements(answer)]
        self.task.target.check_answer(SEPARATOR.join(tags))
        encoded = self.encode([(raw, SEPARATOR.join(tags))])
        names = self.source.element_names(raw, encoded["source"], self.recipe.model)
        return Inspection(self.collate(encoded, [0]), names, tags, self.source.symbols, self.task.target.symbols)


def probe_head(shape: SequenceLabeling | ElementLabeling, model: Labeler, note: Callable[[str], object]) -> None:
    """Begin a new head on a body that was taught before as a logistic regression on what that body knows."""
    recipe, prepared = shape.recipe, shape.task.prepared
    if not recipe.train.linear_probe:
        return
    if recipe.model.hidden or prepared is None:
        why = "model.hidden puts a layer before the labels"
        note(f"the head begins at random: {why if recipe.model.hidden else 'the examples are not at hand'}")
        return
    encoded = prepared.splits["train"].ids
    each = len(encoded["target"].values) / len(encoded["target"])  # labels an example has
    chosen = np.array(pick_evenly(len(encoded["target"]), max(1, int(PROBED / each))))
    features, labels = shape.read_features(model, {side: ids.take(chosen) for side, ids in encoded.items()})
    penalty = begin_with_probe(model.head.project, features, labels, recipe.train.seed)
    note(
        "the head begins as a logistic regression on what the body knows of "
        f"{format_count(len(labels), 'training label')} "
        f"(penalty {penalty:g}, by cross-validation)"
    )


def build_for(shape: Shape, each: bool, lexicon: bool = False) -> Labeler:
    """A model that answers once a sequence, or once for `each` element; with a `lexicon` of what words were tagged."""
    task, recipe, source = shape.task, shape.recipe, shape.source
    head = partial(task.target.head, recipe=recipe, weights=task.facts.weights if recipe.train.class_weights else ())
    embed, names = source.embedding(recipe.model), len(task.target) if lexicon else 0
    if lexicon:
        embed = LexiconEmbedding(embed, names, torch.from_numpy(find_closest(source.look_alikes())))
    return build_labeler(recipe.model, embed, head, each, task.cell, source.features(recipe.model), names)


def split_long(encoded: Ragged, longest: int) -> tuple[Ragged, NDArray[np.int64]]:
    """Sequences in pieces of at most `longest` elements, end to end as before, and whose each piece is."""
    counts = np.maximum(-(-encoded.lengths // longest), 1)
    owner = np.repeat(np.arange(len(encoded)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = encoded.offsets[owner] + number * longest
    return Ragged(encoded.values, np.append(starts, encoded.offsets[-1])), owner
