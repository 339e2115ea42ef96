"""Tasks that write without a source: in which pieces their examples are read, trained on and scored.

One long text is read in streams whose state is carried on, documents each from its own beginning. What has no state to
carry (a Transformer that sees all) reads windows instead, in training at drawn places, and when it is scored so that
every place has at least half a window before it. Knows places, not what they hold.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..architectures import Architecture
from ..arrays import Doubles
from ..config.recipe import Recipe
from ..data import batching, streams
from ..data.prepare import Prepared
from ..data.streams import Places, Spans
from ..layers.heads import Bernoulli, Categorical
from ..layers.sampled_softmax import SampledSoftmax
from ..models import Batch, GenerationObjective, Generator, Objective, device_of
from .base import Shown
from .rows import ROOM, Encoded, Rows

SOME = 1000  # batches that say how much is padding
LOGITS = 1 << 24  # numbers that are looked at together when something is scored


class Writes(Rows):
    """Tasks that write without a source. What their places hold is up to them: tokens, or frames of notes."""

    @classmethod
    @abstractmethod
    def is_text(cls, recipe: Recipe) -> bool:
        """Whether the examples are one text, and not documents of their own."""

    @abstractmethod
    def stream(self, encoded: Encoded) -> Places: ...

    @property
    def body(self) -> Architecture:
        return self.recipe.model.side("decoder")

    @property
    def window(self) -> int:
        return self.recipe.train.bptt_window

    @property
    def half(self) -> int:
        """What is read again where a window is full."""
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

    def objective(self, model: Generator) -> Objective:
        return GenerationObjective(model)

    def order(self, prepared: Prepared, epoch: int) -> Sequence[Spans]:
        stream, settings = self.stream(prepared.splits["train"].ids), self.recipe.train
        place = settings.bptt_window, settings.seed, epoch
        if self.carries and self.is_text(self.recipe):
            return streams.side_by_side(len(stream), max(1, settings.batch_tokens // settings.bptt_window), *place)
        plan = streams.by_document if self.carries else streams.windows
        return plan(stream.begins, settings.batch_tokens, *place)

    def batch(self, prepared: Prepared, rows: Spans, split: str = "train") -> Batch:
        return self.batch_of(prepared.splits[split].ids, rows)

    def batch_of(self, encoded: Encoded, rows: Spans) -> Batch:
        inputs, targets, mask = map(torch.from_numpy, self.stream(encoded).read(rows))
        return Batch(inputs, mask, targets, starts_sequence=not rows[0, 2])

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return np.diff(self.stream(encoded).begins)[:, None]

    def padded_share(self, prepared: Prepared) -> float:
        order = self.order(prepared, 0)
        some = range(0, len(order), -(-len(order) // SOME))
        extents = [rows[:, 1] - rows[:, 0] for rows in (order[number] for number in some)]
        return 1 - sum(extent.sum() for extent in extents) / sum(len(extent) * extent.max() for extent in extents)

    def plan(self, stream: Places) -> Spans:
        """How all of it is read to be scored: from where, what counts, up to where."""
        if not self.carries:
            return streams.all_windows(stream.begins, self.recipe.train.bptt_window)
        return streams.all_streams(len(stream)) if self.is_text(self.recipe) else streams.all_documents(stream.begins)

    @torch.no_grad()
    def losses(self, model: Generator, encoded: Encoded) -> Doubles:
        """The loss of every place, read as it would be by someone who reads all."""
        stream, window = self.stream(encoded), self.recipe.train.bptt_window
        found, plan, here = np.zeros(len(stream)), self.plan(stream), device_of(model)
        for rows in batching.sequential(plan[:, 2] - plan[:, 0], ROOM, window):
            reads, counts, stops = plan[rows].T
            state = model.initial_state(len(rows))
            for first in range(0, int((stops - reads).max()), window):
                begins, ends = np.minimum(reads + first, stops), np.minimum(reads + first + window, stops)
                inputs, targets, mask = stream.read(np.stack([begins, ends, begins], 1))
                read, shown = torch.from_numpy(inputs).to(here), torch.from_numpy(mask).to(here)
                features, state = model.features(read, state, shown)
                places = begins[:, None] + np.arange(mask.shape[1])
                counted = mask & (places >= counts[:, None])
                chosen, told = torch.from_numpy(counted), torch.from_numpy(targets)
                found[places[counted]] = surprises(model, features[chosen.to(here)], told[chosen].to(here))
        return found

    def show(self, given: Any, answer: str) -> Shown:
        """What is written is read as well: the answer, which comes after it, is not looked at."""
        encoded = self.encode([(given,)])
        batch = self.batch_of(encoded, np.array([[0, len(self.stream(encoded)), 0]]))
        told = self.names(encoded)
        return Shown(batch, ["<start>", *told[:-1]], told, self.symbols, self.symbols)

    @property
    def symbols(self) -> tuple[str, ...]:
        """All that can be read and written, by number, where it has names."""
        return ()

    def names(self, encoded: Encoded) -> list[str]:
        """The places of one document as a person sees them in a picture."""
        return [str(number) for number in range(1, len(self.stream(encoded)) + 1)]

    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        return {"loss": float(self.losses(model, prepared.splits["validation"].ids).mean())}


def surprises(model: Generator, features: torch.Tensor, targets: torch.Tensor) -> NDArray[Any]:
    """The losses of elements (N, D), a piece of them at a time where there is much to choose from."""
    head = model.head.head if isinstance(model.head, SampledSoftmax) else model.head
    assert isinstance(head, Categorical | Bernoulli)
    piece = max(1, LOGITS // head.project.out_features)
    pairs = zip(features.split(piece), targets.split(piece), strict=True)
    return torch.cat([features.new_empty(0), *(head.negative_log_likelihood(*pair) for pair in pairs)]).cpu().numpy()
