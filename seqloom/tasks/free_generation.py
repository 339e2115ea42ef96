"""A shape: sequences are written without a source. In which pieces they are read, trained on and scored.

One long text is read in streams whose state is carried on, documents each from its own beginning. What has no state to
carry (a Transformer that sees all) reads windows instead, in training at drawn places, and when it is scored so that
every place has at least half a window before it. Knows places, not what they hold.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures import Architecture
from ..architectures.build import build_generator
from ..arrays import Doubles
from ..config.recipe import Recipe
from ..data import batching, streams
from ..data.datasets import read_frame
from ..data.formats.tables import ENDINGS, SkippedRows
from ..data.inputs import ALONE, TABLES, Input, InputFile, InputReading, ending_of, read_inputs
from ..data.streams import Places, Spans
from ..errors import DataError, RecipeError
from ..fields import Field, Text
from ..fields.base import pick_evenly
from ..metrics import blocks
from ..models import Batch, Generator, device_of
from ..search import Recorder
from .generation import SamplingOptions
from .results import Example, Inspection, Likelihood, Predictions, ScoreWithBaselines
from .scoring import score_losses
from .shape import ROOM, Encoded, Shape, check_window, count_positions, is_several

SOME = 1000  # batches that say how much is padding
LOGITS = 1 << 24  # numbers that are looked at together when something is scored
SEARCHED, BEAM = 16, 4  # tokens of a beam search that is shown, and its places
FEW = 30  # documents: scores of fewer are resampled by stretches of their text


class FreeGeneration(Shape):
    @property
    def target(self) -> Field:
        return self.task.target

    @property
    def body(self) -> Architecture:
        return self.recipe.model.side("decoder")

    @property
    def window(self) -> int:
        return self.recipe.train.bptt_window

    @property
    def half(self) -> int:
        """The tokens read again when a window is full."""
        return max(1, self.window // 2)

    def room(self, read: int) -> int:
        """How many elements can be written after so many, before something has to be read again."""
        if self.carries:
            return 1 << 30
        return max(1, self.window - (read if read < self.window else self.half) + 1)

    @property
    def carries(self) -> bool:
        """Whether a state goes on for ever: not if attention sees all of it, or its positions come to an end."""
        return self.body.kind != "transformer" or (self.body.window > 0 and self.body.positions != "learned")

    @property
    def one_text(self) -> bool:
        """Whether the examples are one text, and not documents of their own."""
        return self.task.schema.ordered

    def places(self, encoded: Encoded) -> Places:
        return self.target.places(encoded["target"])

    # --- training ---

    def settle(self, prepared: Any) -> Recipe:
        if count_positions(self.body) < self.window:
            raise RecipeError(
                f"model.decoder.max_positions is {self.body.max_positions}, but train.bptt_window is {self.window}"
            )
        lengths = self.lengths(prepared.splits["train"].ids)
        check_window("decoder", self.body, lengths if self.carries else np.minimum(lengths, self.window))
        return self.recipe

    def build(self) -> Generator:
        embed = self.target.embedding(self.recipe.model, "decoder")
        return build_generator(self.recipe.model, embed, partial(self.target.head, recipe=self.recipe), self.task.cell)

    def order(self, prepared: Any, epoch: int) -> Sequence[Spans]:
        places, settings = self.places(prepared.splits["train"].ids), self.recipe.train
        drawn = settings.bptt_window, settings.seed, epoch
        if self.carries and self.one_text:
            return streams.plan_streams(len(places), max(1, settings.batch_tokens // settings.bptt_window), *drawn)
        plan = streams.plan_documents if self.carries else streams.plan_windows
        return plan(places.begins, settings.batch_tokens, *drawn)

    def collate(self, encoded: Encoded, rows: Spans) -> Batch:
        inputs, targets, mask = map(torch.from_numpy, self.places(encoded).read(rows))
        return Batch(inputs, mask, targets, starts_sequence=not rows[0, 2])

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return np.diff(self.places(encoded).begins)[:, None]

    def padded_share(self, prepared: Any) -> float:
        order = self.order(prepared, 0)
        some = range(0, len(order), -(-len(order) // SOME))
        extents = [rows[:, 1] - rows[:, 0] for rows in (order[number] for number in some)]
        return 1 - sum(extent.sum() for extent in extents) / sum(len(extent) * extent.max() for extent in extents)

    # --- scores ---

    def plan(self, places: Places) -> Spans:
        """How all of it is read to be scored: from where, what counts, up to where."""
        if not self.carries:
            return streams.plan_all_windows(places.begins, self.window)
        return streams.plan_all_streams(len(places)) if self.one_text else streams.plan_all_documents(places.begins)

    @torch.no_grad()
    def losses(self, model: Generator, encoded: Encoded) -> Doubles:
        """The loss of every place, read as it would be by someone who reads all."""
        places, window = self.places(encoded), self.window
        losses, plan, here = np.zeros(len(places)), self.plan(places), device_of(model)
        for rows in batching.plan_scoring(plan[:, 2] - plan[:, 0], ROOM, window):
            reads, counts, stops = plan[rows].T
            state = model.initial_state(len(rows))
            for first in range(0, int((stops - reads).max()), window):
                begins, ends = np.minimum(reads + first, stops), np.minimum(reads + first + window, stops)
                inputs, targets, mask = places.read(np.stack([begins, ends, begins], 1))
                read, valid = torch.from_numpy(inputs).to(here), torch.from_numpy(mask).to(here)
                features, state = model.features(read, state, valid)
                numbers = begins[:, None] + np.arange(mask.shape[1])
                counted = mask & (numbers >= counts[:, None])
                chosen, target = torch.from_numpy(counted), torch.from_numpy(targets)
                losses[numbers[counted]] = compute_losses(
                    model, features[chosen.to(here)], target[chosen].to(here), len(self.target)
                )
        return losses

    def validate(self, model: Generator, prepared: Any) -> dict[str, float]:
        loss = float(self.losses(model, prepared.splits["validation"].ids).mean())
        quick = self.task.declaration.quick or {}
        return {"loss": loss} | {name: float(measure(loss)) for name, measure in quick.items()}

    def score(self, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
        declared, encoded = self.task.declaration, self.encode(examples)
        metrics, baselines = declared.metrics(self.task, encoded, examples), declared.baselines(self.task, encoded)
        return score_losses(metrics, self.losses(model, encoded), baselines, partial(self.shares, encoded))

    def shares(self, encoded: Encoded, losses: Doubles) -> tuple[Doubles, Doubles]:
        """Sums and counts to resample: of documents, or of stretches of a text."""
        begins = self.places(encoded).begins
        if len(begins) > FEW or not self.target.is_text:
            return np.add.reduceat(losses, begins[:-1]), np.diff(begins).astype(np.float64)
        return blocks(losses, max(1, min(1000, len(losses) // FEW)))

    # --- examples and inputs ---

    def read_files(self, files: Sequence[str]) -> list[tuple[Any]]:
        dataset: Any = self.task.schema.dataset
        return [(self.target.normalize(raw),) for raw in dataset.read_files(files, self.recipe.data)]

    def pick_examples(self, examples: Sequence[Any], at_most: int) -> list[Example]:
        """Beginnings, and what comes after each."""
        places = pick_evenly(len(examples), at_most)
        each = max(1, at_most // max(len(places), 1))
        pairs = (pair for place in places for pair in self.target.beginnings(examples[place][0], each))
        return [Example(prompt, prompt, answer) for prompt, answer in pairs]

    @property
    def reads_text(self) -> bool:
        return True

    def accept_input(self, raw: Any) -> Any:
        if sentence := Text.check(raw):
            raise DataError(f"an input {sentence}")
        return raw

    def split_inputs(self, raw: Any) -> list[Any] | None:
        if hasattr(raw, "columns"):
            return read_frame(raw, self.task.schema)
        return list(raw) if is_several(raw) else None

    def read_inputs(self, file: str, reading: InputReading, skipped: SkippedRows) -> InputFile:
        """Whole documents; of a table those of one column, with the rows that they stand in."""
        if self.target.is_text and (reading.format or ENDINGS.get(ending_of(file))) in TABLES:
            return read_inputs(file, self.task.schema.only("target"), reading, skipped)
        dataset: Any = self.task.schema.dataset
        raws = dataset.read_files([file], reading.apply(self.recipe.data))
        texts = (self.target.prompt(self.target.normalize(raw)) for raw in raws)
        inputs = (Input(text, text, {ALONE: text}, file, number) for number, text in enumerate(texts, 1))
        return InputFile((ALONE,), inputs)

    def count_cut(self, examples: Sequence[Any]) -> int:
        return 0

    def predict(self, model: Generator, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """What is likeliest to come next after each text."""
        return [Predictions(self.task.writer.predict(model, text, beam)) for text in inputs]

    @property
    def searches(self) -> bool:  # type: ignore[override]
        return self.target.is_text

    def record_search(self, model: Generator, raw: str, beam: int | None, recorder: Recorder) -> None:
        """Let a recorder watch the beam search for what comes after a text, as far as it can be shown."""
        options = SamplingOptions(SEARCHED, beam_size=BEAM if beam is None else beam)
        self.task.writer.search(model, raw, options, recorder)

    def measure_likelihoods(self, model: Generator, pairs: Sequence[tuple[Any, str]]) -> list[Likelihood]:
        """How probable texts are, each after what stands before it, which may be nothing."""
        accept, writer = self.accept_input, self.task.writer
        return [writer.measure_likelihood(model, accept(given or ""), accept(text)) for given, text in pairs]

    def inspect(self, raw: Any, answer: str) -> Inspection:
        """What is written is read as well: the answer, which comes after it, is not looked at."""
        encoded = self.encode([(self.target.parse(raw),)])
        batch = self.collate(encoded, np.array([[0, len(self.places(encoded)), 0]]))
        names, symbols = self.target.place_names(encoded["target"]), self.target.symbols
        return Inspection(batch, ["<start>", *names[:-1]], names, symbols, symbols)


def compute_losses(model: Generator, features: torch.Tensor, targets: torch.Tensor, outputs: int) -> NDArray[Any]:
    """The losses of elements (N, D), a piece of them at a time where there are many `outputs` to choose from."""
    piece = max(1, LOGITS // outputs)
    pairs = zip(features.split(piece), targets.split(piece), strict=True)
    losses = (model.head.negative_log_likelihood(*pair) for pair in pairs)
    return torch.cat([features.new_empty(0), *losses]).cpu().numpy()
