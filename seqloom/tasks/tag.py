"""A label for every element of a sequence: parts of speech, entities, frames of a series. Knows no files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures.build import build_labeler
from ..baselines.labels import TagOfWord
from ..config.recipe import Recipe
from ..data import batching
from ..data.prepare import Prepared
from ..data.pretokenized import BETWEEN, elements
from ..data.ragged import Ragged
from ..data.schema import Raw, Schema, Side
from ..fields import Field, Prediction, Tags, word_side
from ..fields.labels import NONE
from ..layers.crf import CRF
from ..layers.heads import Categorical, Head, MLPHead
from ..metrics.tags import entity_f1, spell_entities, tag_accuracy
from ..models import Batch, Labeler, LabelingObjective, Objective, device_of
from ..schemas import TagsOfWords
from .base import Scored, Shown
from .rows import ROOM, Encoded, Rows, check_positions
from .scoring import Measure, scored


@dataclass(frozen=True)
class TaggedSequence(Prediction):
    """A tag for each element; the score is the log-probability of all of them together, given what was read."""

    words: list[str]  # as they were cut; numbers have none
    tags: list[str]


class Tag(Rows):
    learned = TagsOfWords

    @property
    def source(self) -> Field:
        return self.fields["source"]

    @property
    def target(self) -> Tags:
        return cast(Tags, self.fields["target"])

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        sides = {"source": word_side(data), "target": Side((data.target,), Tags)}
        return Schema("tag", data, sides, fault=uneven)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        train = prepared.splits["train"]
        check_positions("encoder", recipe.model.side("encoder"), train.ids["source"].lengths)
        tags = [elements(text) for text in train.raws["target"]]
        if not prepared.fields["source"].is_text:
            return recipe, {"usual": TagOfWord.fit(tags, tags).usual, "tags": {}}
        known = TagOfWord.fit([elements(text) for text in train.raws["source"]], tags)
        return recipe, {"usual": known.usual, "tags": known.tags}

    @property
    def reads_text(self) -> bool:
        return self.source.is_text

    def build(self) -> Labeler:
        model = self.recipe.model
        first, width = self.source.embedding(model), self.source.features(model)
        return build_labeler(model, first, self.head, each=True, own=self.cell, inputs=width)

    def head(self, inputs: int) -> Head:
        return self.target.head(inputs, self.recipe)

    def objective(self, model: Labeler) -> Objective:
        return LabelingObjective(model)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return encoded["source"].lengths[:, None]

    def batch_of(self, encoded: Encoded, rows: Any) -> Batch:
        """A tag that was never seen in training is not counted: the mask leaves it out."""
        inputs, mask = self.source.collate(encoded["source"], rows, self.recipe.model)
        tags = self.target.targets(encoded["target"], rows)
        tags = torch.nn.functional.pad(tags, (0, mask.shape[1] - tags.shape[1]), value=NONE)
        return Batch(inputs, mask, tags.clamp(min=0), loss_mask=mask & (tags != NONE))

    @torch.no_grad()
    def validate(self, model: Labeler, prepared: Prepared) -> dict[str, float]:
        part = prepared.splits["validation"]
        told = [tags for tags, _ in self.answer(model, part.ids["source"])]
        true = (elements(text) for text in part.raws["target"])  # which are whole, while what is long was cut
        right = tag_accuracy(told, [tags[: len(own)] for tags, own in zip(true, told, strict=True)], intervals=False)
        return {"loss": self.loss(model, part.ids), "accuracy": right.value}

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        given, texts = zip(*examples, strict=True)
        told = [answer.tags for [answer] in self.predict(model, given)]
        targets = [elements(text) for text in texts]
        rivals = self.rivals(given, targets)
        measures: dict[str, Measure] = {"accuracy": tag_accuracy}
        if spell_entities({tag for tags in targets for tag in tags} | set(self.target.names)):
            measures["entity F1"] = entity_f1
        return scored(measures, told, targets, rivals, np.array(list(map(len, targets)), dtype=np.int64))

    def rivals(self, given: Sequence[Raw], targets: Sequence[Sequence[str]]) -> dict[str, list[list[str]]]:
        usual = [[self.facts["usual"]] * len(tags) for tags in targets]
        if not self.reads_text:
            return {"most frequent": usual}
        by_word = TagOfWord(self.facts["usual"], self.facts["tags"]).predict([elements(text) for text in given])
        return {"most frequent": usual, "tag of the word": by_word}

    def truth_of(self, example: Sequence[Any]) -> str:
        """As `predict` would say it."""
        return self.read_out(example[0], elements(example[1]), 0.0).output

    def show(self, given: Any, answer: str) -> Shown:
        """The answer is tags, or words with their tags as `predict` gives them."""
        tags = [part.rpartition("/")[2] for part in elements(answer)]
        encoded = self.encode([(given, BETWEEN.join(tags))])
        names = self.source.element_names(given, encoded["source"], self.recipe.model)
        return Shown(self.batch_of(encoded, [0]), names, tags, self.source.symbols, self.target.names)

    @torch.no_grad()
    def predict(self, model: Labeler, inputs: Sequence[Raw], beam: int | None = None) -> list[list[TaggedSequence]]:
        """One answer each: the tags. A text is cut at tabs, or else at blanks.

        What is longer than an example of training is read in pieces of that length: every element has its tag.
        """
        encoded = self.source.encode_many(list(inputs))
        pieces, owner = in_pieces(encoded, self.most)
        self.check_length(pieces.lengths, self.recipe.model.side("encoder"))
        told: list[list[str]] = [[] for _ in inputs]
        logs = [0.0] * len(told)
        for row, (tags, log) in zip(owner.tolist(), self.answer(model, pieces), strict=True):
            told[row] += tags
            logs[row] += log
        return [[self.read_out(*answer)] for answer in zip(inputs, told, logs, strict=True)]

    @torch.no_grad()
    def answer(self, model: Labeler, encoded: Ragged) -> list[tuple[list[str], float]]:
        """The tags of each sequence and their log-probability, all together."""
        answers: list[tuple[list[str], float]] = [([], 0.0)] * len(encoded)
        head = model.head.head if isinstance(model.head, MLPHead) else model.head
        assert isinstance(head, CRF | Categorical)
        for rows in batching.sequential(encoded.lengths, ROOM):
            read = self.source.collate(encoded, rows, self.recipe.model)
            inputs, mask = (part.to(device_of(model)) for part in read)
            expected = model(inputs, mask)
            best = head.sample(expected, 0, mask)
            logs = head.log_probability(expected, best, mask).tolist()
            for number, row in enumerate(rows):
                tags = [self.target.names[place] for place in best[number][mask[number]].tolist()]
                answers[row] = tags, logs[number]
        return answers

    def read_out(self, given: Raw, tags: list[str], score: float) -> TaggedSequence:
        words = elements(given) if isinstance(given, str) else []
        output = " ".join(f"{word}/{tag}" for word, tag in zip(words, tags, strict=True)) if words else " ".join(tags)
        return TaggedSequence(output, score, words, tags)


def in_pieces(encoded: Ragged, longest: int) -> tuple[Ragged, NDArray[np.int64]]:
    """Sequences in pieces of at most `longest` elements, end to end as before, and whose each piece is."""
    counts = np.maximum(-(-encoded.lengths // longest), 1)
    owner = np.repeat(np.arange(len(encoded)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = encoded.offsets[owner] + number * longest
    return Ragged(encoded.values, np.append(starts, encoded.offsets[-1])), owner


def uneven(example: Sequence[Raw]) -> str:
    """What is wrong with elements and tags that do not belong together."""
    source, target = example
    count = len(elements(source)) if isinstance(source, str) else len(source)
    tags = elements(target)
    if count != len(tags):
        return (
            f"{count} elements have {len(tags)} tags: there must be a tag for each, with {BETWEEN!r} or a blank between"
        )
    return ""
