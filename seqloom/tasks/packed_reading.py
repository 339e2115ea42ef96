"""A shape: texts are packed end to end and read in windows, and tokens are predicted from those around them.

Masked: some tokens are hidden, and predicted from all others. Bidirectional: every token is predicted from those before
it and from those after it, by two directions that never see each other.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..architectures.build import tie
from ..config.recipe import Recipe
from ..data import batching, streams
from ..data.formats.tables import SkippedRows
from ..data.inputs import InputFile, InputReading, read_inputs
from ..data.masking import draw_for, draw_masks
from ..data.streams import LazyBatches, Places, Spans
from ..data.vocabulary import NEVER_WRITTEN
from ..errors import DataError, RecipeError
from ..fields import Prediction, Text
from ..fields.base import pick_evenly
from ..layers.heads import Categorical, MLPHead
from ..layers.transformer import ACTIVATIONS
from ..metrics import blocks
from ..metrics.labels import accuracy
from ..models import Batch, BidirectionalLanguageModel, Labeler, NextSentenceModel, device_of
from .filling import FilledBlank, encode_blanks, fill_blanks, join_filled
from .free_generation import FreeGeneration
from .results import Example, Inspection, Predictions, ScoreWithBaselines
from .scoring import score_losses
from .shape import ROOM, Encoded, Shape, check_length, count_positions

HELD_OUT = 0  # the number of the draw that is scored on; those of the epochs come after it
BLOCK = 100  # predictions that are resampled together
WORDS = 12  # of an example
PAIRS = 1  # sets the draws of pairs apart from those of masks


def check_window(recipe: Recipe) -> None:
    """Refuse learned positions that do not reach as far as a window."""
    body, window = recipe.model.side("encoder"), recipe.data.window
    if count_positions(body) < window:
        raise RecipeError(f"model.max_positions is {body.max_positions}, but data.window is {window}")


class PackedReading(Shape):
    """What masked and bidirectional language models share."""

    @property
    def target(self) -> Text:
        return self.task.target

    def places(self, encoded: Encoded) -> Places:
        return self.target.places(encoded["target"])

    def settle(self, prepared: Any) -> Recipe:
        check_window(self.recipe)
        return self.recipe

    # --- windows ---

    def order(self, prepared: Any, epoch: int) -> Sequence[Spans]:
        """Windows over all texts, cut elsewhere in every epoch; each row names the epoch, which its draw depends on."""
        train, total = self.recipe.train, len(self.places(prepared.splits["train"].ids))
        ends = np.array([0, total])
        plan = streams.plan_windows(ends, train.batch_tokens, self.recipe.data.window, train.seed, epoch)
        return LazyBatches(len(plan), lambda number: number_draw(plan[number], 1 + epoch))

    def plan(self, encoded: Encoded) -> Spans:
        """Every window once, for scoring."""
        window = self.recipe.data.window
        return number_draw(streams.cut_windows(np.array([0, len(self.places(encoded))]), window, window), HELD_OUT)

    def read(self, encoded: Encoded, rows: Spans) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        _, ids, mask = self.places(encoded).read(rows)
        return ids, mask

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return np.diff(self.places(encoded).begins)[:, None]

    def padded_share(self, prepared: Any) -> float:
        """Only the last window of a text can be shorter than the others."""
        spans = np.concatenate(list(self.order(prepared, 0)[:100]))
        extents = spans[:, 1] - spans[:, 0]
        return float(1 - extents.sum() / (len(extents) * extents.max()))

    # --- scores ---

    @abstractmethod
    def logits(self, model: Any, batch: Batch) -> Tensor:
        """Of the tokens to predict (N, symbols)."""

    @torch.no_grad()
    def measure(self, model: Any, encoded: Encoded) -> tuple[NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Of every token to predict in a text: its loss, the likeliest token, and the true one."""
        plan, batches = self.plan(encoded), []
        for rows in batching.plan_scoring(plan[:, 1] - plan[:, 0], ROOM):
            batch = self.collate(encoded, plan[rows]).to(device_of(model))
            logits, target = self.logits(model, batch).double(), batch.target[find_predicted(batch)]
            loss = torch.nn.functional.cross_entropy(logits, target, reduction="none")
            batches.append([part.cpu().numpy() for part in (loss, logits.argmax(-1), target)])
        losses, best, true = (np.concatenate(column) for column in zip(*batches, strict=True))
        return losses, best, true

    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        losses, best, true = self.measure(model, prepared.splits["validation"].ids)
        share = float((best == true).mean()) if len(true) else 0.0
        return {"loss": float(losses.mean()) if len(losses) else float("nan"), "accuracy": share}

    def score(self, model: Any, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        """How well tokens are told, against those who know only how often each occurs."""
        declared, encoded = self.task.declaration, self.encode(examples)
        losses, best, true = self.measure(model, encoded)
        if not len(losses):
            raise DataError("there is not a token to predict in the texts that are scored on")
        counts = np.delete(np.array(self.task.facts.counts, dtype=np.float64), NEVER_WRITTEN)
        prior = np.log((counts + 1) / (counts + 1).sum())
        by_number = np.full(len(self.task.facts.counts), -np.inf)
        by_number[np.setdiff1d(np.arange(len(by_number)), NEVER_WRITTEN)] = prior
        unigram = {"unigram": -by_number[true]}
        share = partial(blocks, size=max(1, min(BLOCK, len(losses) // 30)))
        scores = score_losses(declared.metrics(self.task), losses, unigram, share)
        frequent = [str(np.argmax(self.task.facts.counts))] * len(true)
        texts = [[str(one) for one in column.tolist()] for column in (best, true)]
        usual = {"most frequent": accuracy(frequent, texts[1], intervals=False).value}
        return {"accuracy": ScoreWithBaselines(accuracy(*texts), usual)} | scores

    # --- examples and answers ---

    def read_files(self, files: Sequence[str]) -> list[tuple[Any]]:
        dataset: Any = self.task.schema.dataset
        return [(self.target.normalize(raw),) for raw in dataset.read_files(files, self.recipe.data)]

    def count_cut(self, examples: Sequence[Any]) -> int:
        return 0

    @property
    def reads_text(self) -> bool:
        return True

    def accept_input(self, raw: Any) -> Any:
        if sentence := Text.check(raw):
            raise DataError(f"an input {sentence}")
        encode_blanks(self.target, raw)
        return raw

    def read_inputs(self, file: str, reading: InputReading, skipped: SkippedRows) -> InputFile:
        return read_inputs(file, self.task.schema.only("target"), reading, skipped)

    def pick_examples(self, examples: Sequence[Any], at_most: int) -> list[Example]:
        """A few words out of each text, one of them as a blank."""
        chosen = []
        for place in pick_evenly(len(examples), at_most):
            words = examples[place][0].split()
            if len(words) > 2:
                first = max(0, len(words) // 2 - WORDS // 2)
                some = words[first : first + WORDS]
                blank = len(some) // 2
                text = " ".join([*some[:blank], "___", *some[blank + 1 :]])
                chosen.append(Example(text, text, " ".join(some)))
        return chosen

    def fill(self, model: Any, text: str, count: int) -> list[list[FilledBlank]]:
        """For each blank of a text the likeliest words, best first."""
        blanks = encode_blanks(self.target, text)
        inputs = torch.from_numpy(blanks.ids)[None]
        check_length(np.array([len(blanks.ids)]), self.recipe.model.side("encoder"))
        hidden = torch.from_numpy(blanks.hidden)[None]
        batch = Batch(inputs, torch.ones_like(hidden), inputs, loss_mask=hidden).to(device_of(model))
        with torch.no_grad():
            logs = self.logits(model, batch).double().log_softmax(-1).cpu()
        return fill_blanks(self.target, blanks, logs, count)

    def illustrate(self, model: Any, examples: Sequence[Example]) -> str:
        """Blanks as they are filled."""
        lines = []
        for example in examples:
            [[best, *_]] = self.fill(model, example.text, 1)
            lines.append(f"{example.text} → {best.output} ({best.probability:.0%})")
        return "filled in: " + "; ".join(" ".join(one.split()) for one in lines) if lines else ""

    def predict(self, model: Any, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """The text with its blanks filled, in the likeliest ways."""
        return [Predictions(join_filled(text, self.fill(model, text, beam or 5), beam or 5)) for text in inputs]

    def inspect(self, raw: Any, answer: str) -> Inspection:
        blanks = encode_blanks(self.target, raw)
        hidden = torch.from_numpy(blanks.hidden)[None]
        true = self.target.encode(answer).astype(np.int64)
        target = true if true.shape == blanks.ids.shape else blanks.ids
        ids = torch.from_numpy(blanks.ids)[None]
        batch = Batch(ids, torch.ones_like(hidden), torch.from_numpy(target)[None], loss_mask=hidden)
        names = self.target.names(blanks.ids)
        shown = ["___" if gap else name for gap, name in zip(blanks.hidden, names, strict=True)]
        return Inspection(batch, shown, self.target.names(target), self.target.symbols, self.target.symbols)

    def error(self, prediction: Prediction, example: Example) -> float:
        return float(prediction.output != example.answer)


class MaskedReading(PackedReading):
    def build(self) -> Labeler:
        model = self.recipe.model
        body, embed = model.side("encoder"), self.target.embedding(model)
        reader = body.build_encoder(model.embedding, own=self.task.cell)
        head = tie(model, embed, self.target.head(body.width, self.recipe))
        if model.output_transform:
            activation = ACTIVATIONS[getattr(body, "activation", "gelu")]()
            norm = nn.LayerNorm(body.width, getattr(body, "norm_epsilon", 1e-5))
            head = MLPHead(body.width, body.width, head, after=[activation, norm])
        if self.recipe.train.next_sentence:
            return NextSentenceModel(embed, reader, head, Categorical(body.width, 2), body.dropout)
        return Labeler(embed, reader, head, per_element=True, dropout=body.dropout)

    def pair(
        self, encoded: Encoded, rows: Spans, ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Change the second half of about every other window for another place of the texts: the segments of the
        tokens, and of which rows the halves follow each other."""
        segments, follows = np.zeros_like(ids), np.ones(len(rows), dtype=np.int64)
        total = len(self.places(encoded))
        for row, (begin, end, draw) in enumerate(rows.tolist()):
            middle, chance = (end - begin) // 2, draw_for(self.recipe.train.seed, draw, begin, PAIRS)
            length = end - begin - middle
            segments[row, middle : end - begin] = 1
            if middle and chance.random() < 0.5 and total > 2 * length:
                other = int(chance.integers(0, total - length))
                if other != begin + middle:
                    follows[row] = 0
                    ids[row, middle : end - begin] = self.read(encoded, np.array([[other, other + length, draw]]))[0][0]
        return segments, follows

    def collate(self, encoded: Encoded, rows: Spans) -> Batch:
        ids, mask = self.read(encoded, rows)
        paired = self.pair(encoded, rows, ids) if self.recipe.train.next_sentence else None
        train, starts = self.recipe.train, self.target.begins_word() if self.recipe.train.whole_words else None
        inputs, hidden = ids.copy(), np.zeros_like(mask)
        for row, (begin, end, draw) in enumerate(rows.tolist()):
            some = slice(0, end - begin)
            chance = draw_for(train.seed, draw, begin)
            inputs[row, some], hidden[row, some] = draw_masks(
                ids[row, some], starts, len(self.target), train.mask_share, chance
            )
        read, valid, true, loss_mask = (torch.from_numpy(part) for part in (inputs, mask, ids, hidden))
        batch = Batch(read, valid, true, loss_mask=loss_mask)
        if paired is None:
            return batch
        segments, follows = map(torch.from_numpy, paired)
        return batch._replace(inputs=torch.stack([read, segments], -1), follows=follows)

    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        scores = super().validate(model, prepared)
        if self.recipe.train.next_sentence:
            scores["next sentence"] = self.measure_pairs(model, prepared.splits["validation"].ids)
        return scores

    @torch.no_grad()
    def measure_pairs(self, model: Any, encoded: Encoded) -> float:
        """The share of windows of which it is known whether their halves follow each other."""
        plan, right = self.plan(encoded), 0
        for rows in batching.plan_scoring(plan[:, 1] - plan[:, 0], ROOM):
            batch = self.collate(encoded, plan[rows]).to(device_of(model))
            assert batch.follows is not None
            right += int((model.relation(model.summary(batch.inputs, batch.mask)).argmax(-1) == batch.follows).sum())
        return right / max(len(plan), 1)

    def logits(self, model: Labeler, batch: Batch) -> Tensor:
        return model.head(model.features(batch.inputs, batch.mask)[find_predicted(batch)])


class BidirectionalReading(PackedReading):
    def build(self) -> BidirectionalLanguageModel:
        model = self.recipe.model
        body, embed = model.side("encoder"), self.target.embedding(model)
        reader = body.build_encoder(model.embedding, own=self.task.cell)
        return BidirectionalLanguageModel(embed, reader, self.target.head(body.width // 2, self.recipe), body.dropout)

    def collate(self, encoded: Encoded, rows: Spans) -> Batch:
        ids, mask = (torch.from_numpy(part) for part in self.read(encoded, rows))
        return Batch(ids, mask, ids)

    def logits(self, model: BidirectionalLanguageModel, batch: Batch) -> Tensor:
        """What both directions say together: the mean of their log-probabilities, whose loss is at most the mean of
        their losses. At the ends of a text only one of them has read something."""
        here, total = find_predicted(batch), torch.zeros(())
        known = torch.stack([one[here] for one in model.have_read(batch.mask)])
        for features, counts in zip(model.directions(batch.inputs, batch.mask), known, strict=True):
            logs = model.head(features[here]).log_softmax(-1)
            total = total + torch.where(counts[:, None], logs, 0) / known.sum(0).clamp(min=1)[:, None]
        return total

    def validate(self, model: Any, prepared: Any) -> dict[str, float]:
        """The loss is what training makes small: the mean of both directions."""
        encoded = prepared.splits["validation"].ids
        plan, objective, total, count = self.plan(encoded), model.objective(), 0.0, 0
        for rows in batching.plan_scoring(plan[:, 1] - plan[:, 0], ROOM):
            loss, elements, _ = objective(self.collate(encoded, plan[rows]))
            total, count = total + loss.item(), count + int(elements)
        return super().validate(model, prepared) | {"loss": total / max(count, 1)}


class PackedGeneration(FreeGeneration):
    """Texts end to end, each token predicted from those before it."""

    one_text = True

    @property
    def window(self) -> int:
        return self.recipe.data.window

    def settle(self, prepared: Any) -> Recipe:
        check_window(self.recipe)
        return self.recipe

    def order(self, prepared: Any, epoch: int) -> Sequence[Spans]:
        places, train = self.places(prepared.splits["train"].ids), self.recipe.train
        drawn = self.window, train.seed, epoch
        if self.carries:
            return streams.plan_streams(len(places), max(1, train.batch_tokens // self.window), *drawn)
        return streams.plan_windows(np.array([0, len(places)]), train.batch_tokens, *drawn)


def find_predicted(batch: Batch) -> Tensor:
    """The mask of the elements to predict."""
    return batch.mask if batch.loss_mask is None else batch.loss_mask


def number_draw(spans: Spans, number: int) -> Spans:
    """Spans that say which draw they belong to, in the place where those of streams say whether they go on."""
    return np.column_stack([spans[:, :2], np.full(len(spans), number)])
