"""A shape: every element of a sequence says a token or nothing, and what they say in a row is the answer (CTC)."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures.build import build_labeler
from ..config.recipe import Recipe
from ..counts import format_count
from ..data import batching
from ..data.ragged import Ragged
from ..data.vocabulary import END, START, UNKNOWN
from ..errors import DataError
from ..fields import Prediction, Text
from ..layers.ctc import CTC, count_needed
from ..models import Batch, Labeler
from ..search import Hypothesis
from ..search.ctc import best_path, prefix_beam, prefix_logs
from .results import Inspection, Likelihood, Predictions, ScoreWithBaselines
from .scoring import score_answers
from .shape import QUICK, ROOM, Encoded, Shape, check_length, check_positions, group_references

SILENT = [START, END, UNKNOWN]  # never written


class Transcription(Shape):
    @property
    def target(self) -> Text:
        return self.task.target

    # --- training ---

    def settle(self, prepared: Any) -> Recipe:
        """Examples whose source is too short for its target have no loss: they are refused, or left out and counted."""
        model, splits = self.recipe.model, prepared.splits
        lengths = self.source.lengths(splits["train"].ids["source"], model)
        check_positions("encoder", model.side("encoder"), lengths, ahead=not model.causal)
        short = {part: np.flatnonzero(~self.fits(splits[part].ids)) for part in ("train", "validation")}
        if len(short["train"]) == len(splits["train"]):
            raise DataError(f"every training example has too few elements for its target: {WHY}")
        if self.recipe.data.on_bad_row == "error":
            for part, rows in short.items():
                if len(rows):
                    row, ids = int(rows[0]), splits[part].ids
                    elements = int(self.source.lengths(ids["source"].take([row]), model)[0])
                    target = splits[part].raws["target"][row]
                    raise DataError(
                        f"{len(rows):,} of {len(splits[part]):,} {part} examples have too few elements for their "
                        f"target, such as {elements} for {target!r:.60}: {WHY}; data.on_bad_row=skip leaves them out"
                    )
        return self.recipe

    def initialize(self, model: Labeler, note: Callable[[str], object]) -> bool:
        for part in ("train", "validation") if self.task.prepared is not None else ():
            ids = self.task.prepared.splits[part].ids
            if short := int((~self.fits(ids)).sum()):
                note(f"{part}: {format_count(short, 'example')} left out, with too few elements for the target")
        return False

    def fits(self, encoded: Encoded) -> NDArray[np.bool_]:
        """Of which examples the source has as many elements as the target needs."""
        targets = encoded["target"]
        if not len(targets):
            return np.ones(0, np.bool_)
        pieces = (targets.pad(rows)[0] for rows in np.array_split(np.arange(len(targets)), -(-len(targets) // 4096)))
        needed = np.concatenate([count_needed(torch.from_numpy(piece)).numpy() for piece in pieces])
        model = self.recipe.model
        return model.frames * self.source.lengths(encoded["source"], model) >= np.maximum(needed, 1)

    def build(self) -> Labeler:
        model = self.recipe.model
        features = self.source.features(model)
        embed, tokens = self.source.embedding(model), len(self.target)
        return build_labeler(model, embed, lambda size: CTC(size, tokens, model.frames), True, self.task.cell, features)

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return self.source.lengths(encoded["source"], self.recipe.model)[:, None]

    def order(self, prepared: Any, epoch: int) -> Sequence[Any]:
        fits = self.fits(prepared.splits["train"].ids)
        kept = (np.asarray(rows)[fits[rows]] for rows in super().order(prepared, epoch))
        return [rows for rows in kept if len(rows)]

    def collate(self, encoded: Encoded, rows: Any) -> Batch:
        """The target is padded at least to the length of the source."""
        inputs, mask = self.source.collate(encoded["source"], rows, self.recipe.model)
        tokens = torch.from_numpy(encoded["target"].pad(rows)[0]).long()
        width = max(mask.shape[1], tokens.shape[1])
        return Batch(inputs, mask, torch.nn.functional.pad(tokens, (0, width - tokens.shape[1])))

    def validate(self, model: Labeler, prepared: Any) -> dict[str, float]:
        part = prepared.splits["validation"]
        known = np.flatnonzero(self.fits(part.ids))
        scores = {"loss": self.loss(model, {side: ids.take(known) for side, ids in part.ids.items()})}
        rows = np.linspace(0, len(part), min(QUICK, len(part)), endpoint=False).astype(np.int64)
        answers, targets = self.answer(model, part.ids["source"].take(rows), 1), part.raws["target"]
        right = sum(best.output == targets[row] for row, [best, *_] in zip(rows.tolist(), answers, strict=True))
        return scores | {"exact": right / max(len(rows), 1)}

    def score(self, model: Labeler, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        """Inputs that stand on several lines have several right answers."""
        declared, (inputs, references) = self.task.declaration, group_references(self, examples)
        encoded = self.source.encode_many(inputs)
        answers = [best.output for best, *_ in self.predict_encoded(model, encoded, self.recipe.search.beam_size)]
        lengths = self.source.lengths(encoded, self.recipe.model)
        return score_answers(
            declared.metrics(self.task), answers, references, declared.baselines(self.task, inputs), lengths
        )

    # --- answers ---

    def predict(self, model: Labeler, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """As many answers as the beam is wide, best first; a beam of 1 is the best path."""
        return self.predict_encoded(model, self.source.encode_many(list(inputs)), beam or self.recipe.search.beam_size)

    def predict_encoded(self, model: Labeler, encoded: Ragged, beam: int) -> list[Predictions]:
        cut, unread = encoded.cut(self.most), self.unread(encoded)
        check_length(self.source.lengths(cut, self.recipe.model), self.recipe.model.side("encoder"))
        return [Predictions(*one) for one in zip(self.answer(model, cut, beam), unread, strict=True)]

    def answer(self, model: Labeler, encoded: Ragged, beam: int) -> list[list[Prediction]]:
        answers: list[list[Prediction]] = [[] for _ in range(len(encoded))]
        for rows in batching.plan_scoring(self.source.lengths(encoded, self.recipe.model), ROOM):
            for row, logs in zip(rows, self.read(model, encoded, rows), strict=True):
                start, allowed = perf_counter(), logs.copy()
                allowed[:, SILENT] = -np.inf
                hypotheses = [best_path(allowed)] if beam == 1 else prefix_beam(allowed, beam)
                known = zip(hypotheses, prefix_logs(logs, hypotheses), strict=True)
                ranked = sorted((Hypothesis(tokens, each, sum(each), "end") for tokens, each in known), key=rank)
                seconds = perf_counter() - start
                answers[row] = [self.target.read_hypothesis(one, seconds=seconds) for one in ranked]
        return answers

    @torch.no_grad()
    def read(self, model: Labeler, encoded: Ragged, rows: Any) -> list[NDArray[np.float64]]:
        """The log-probabilities (frames, tokens) of what the elements of these rows say."""
        inputs, mask = self.source.collate(encoded, rows, self.recipe.model)
        logs = model(inputs, mask).double().log_softmax(-1).cpu().numpy()
        there = mask.repeat_interleave(self.recipe.model.frames, 1).numpy()
        return [row[own] for row, own in zip(logs, there, strict=True)]

    def measure_likelihoods(self, model: Labeler, pairs: Sequence[tuple[Any, str]]) -> list[Likelihood]:
        """How probable answers are, each to its input, over all paths that say it."""
        if any(given is None for given, _ in pairs):
            raise DataError("an answer is scored beside what it answers: give its source (--given)")
        likelihoods = []
        for given, text in pairs:
            encoded = self.encode_pair(self.accept_input(given), text)
            ids, [logs] = encoded["target"][0].tolist(), self.read(model, encoded["source"], [0])
            [each] = prefix_logs(logs, [ids])
            likelihoods.append(Likelihood(text, [*self.target.names(ids), "<eos>"], each, ids.count(UNKNOWN)))
        return likelihoods

    def encode_pair(self, raw: Any, answer: str) -> Encoded:
        """An input and an answer that it can say."""
        encoded = self.encode([(raw, self.target.normalize(answer))])
        encoded["source"] = encoded["source"].cut(self.most)
        if not self.fits(encoded).all():
            raise DataError(f"the answer {answer!r:.60} has more tokens than its input can say: {WHY}")
        return encoded

    def inspect(self, raw: Any, answer: str) -> Inspection:
        encoded = self.encode_pair(raw, answer)
        names = self.source.element_names(raw, encoded["source"], self.recipe.model)
        target_names = self.target.names(encoded["target"][0])
        shown = [*target_names, *[""] * (len(names) - len(target_names))]
        return Inspection(self.collate(encoded, [0]), names, shown, self.source.symbols, self.target.symbols)


def rank(one: Hypothesis) -> float:
    return -one.score


WHY = (
    "CTC needs a frame for each token and one more between equal neighbors; several frames an element (model.frames), "
    "smaller steps (data.frame_hop), larger tokens (data.target_tokenizer) or the task seq2seq help"
)
