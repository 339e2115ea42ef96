"""The training loop. It knows a model only as an `Objective`, data only as a `Feed`, and tells what happens by
yielding it:

    for record in fit(objective, feed, settings, validate, checkpoints):
        print(record.step, record.loss, record.scores)

Where the records go, what is validated and what a run folder looks like is not its business.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..errors import DataError, RunError
from ..layers.state import State, detach
from ..models import Batch, Objective
from ..recipe import Train
from .checkpoints import Checkpoint, Checkpoints
from .optimiser import adamw, load_memory, memory_of, rate_at, set_rate
from .randomness import random_states, set_random_states, undisturbed
from .records import Kind, Progress, Record
from .tensors import load_weights, weights_of

RECORD_EVERY = 10  # steps: often enough for a progress bar, seldom enough for a file that is kept
SKIPPED_AT_MOST = 10  # in a row; then it is no accident any more

Rows = NDArray[np.integer[Any]]
Validate = Callable[[], dict[str, float]]  # scores by name; "loss", the lower the better, says which weights are best


class Feed(Protocol):
    """The training data, as rows that together make a batch."""

    def order(self, epoch: int) -> Sequence[Rows]:
        """The batches of this epoch: a pure function of the seed and the epoch, so a position is two integers."""

    def batch(self, rows: Rows) -> Batch: ...


def fit(
    objective: Objective,
    feed: Feed,
    settings: Train,
    validate: Validate,
    checkpoints: Checkpoints | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Record]:
    """Train, from the newest checkpoint if there is one. The settings are resolved: steps, warm-up and so on are known.

    When a record says `best`, the objective holds the best weights until the next record is asked for: whoever keeps
    them writes them then. A checkpoint is training as it stood before its step was told, so on resuming the
    record of that step comes again: records from that step on are to be forgotten, whatever was killed in between.

    Once `stop` is set, training ends after the step it is in, with a checkpoint and without a record.
    """
    training = Training(objective, feed, settings)
    checkpoint = None
    if checkpoints is not None:
        checkpoints.sweep()
        checkpoint = checkpoints.newest()
    if checkpoint is None:
        torch.manual_seed(settings.seed)
    else:
        training.restore(checkpoint)
        yield from training.tell(validate)
    while not training.finished:
        training.advance()
        stopping = stop is not None and stop.is_set()
        if checkpoints is not None and (stopping or training.checkpoint_due):
            checkpoints.save(training.checkpoint())
        if stopping:
            return
        yield from training.tell(validate)


class Training:
    """An objective on its way: its weights, the optimiser, the position in the data, the counters."""

    def __init__(self, objective: Objective, feed: Feed, settings: Train) -> None:
        self.objective, self.feed, self.settings = objective, feed, settings
        self.optimiser = adamw(objective, settings)
        self.progress = Progress()
        self.begun = perf_counter()
        self._known_order: tuple[int, Sequence[Rows]] | None = None
        objective.train()

    @property
    def order(self) -> Sequence[Rows]:
        """The batches of the epoch that is being read."""
        epoch = self.progress.epoch
        if self._known_order is None or self._known_order[0] != epoch:
            order = self.feed.order(epoch)
            if not len(order):
                raise DataError("there is not a single example to train on")
            self._known_order = epoch, order
        return self._known_order[1]

    # --- one step ---

    def advance(self) -> None:
        """Read the next batch and make one step, or skip it if something in it is not finite."""
        begun, now = perf_counter(), self.progress
        rows = self.order[now.batch]
        set_rate(self.optimiser, rate_at(now.step + 1, self.settings))
        batches = [self.feed.batch(rows)]
        made = update(self.objective, self.optimiser, batches, self.settings.clip)
        now.step += 1
        now.batch += 1
        if now.batch == len(self.order):
            now.epoch, now.batch = now.epoch + 1, 0
        self._count(made, rows)
        tokens = sum(map(tokens_in, batches))
        now.tokens += tokens
        now.recent_tokens += tokens
        now.recent_seconds += perf_counter() - begun

    def _count(self, made: "Update", rows: Rows) -> None:
        now = self.progress
        if made.finite:
            now.skipped_in_a_row = 0
            now.loss_sum += made.loss
            now.loss_count += made.count
            now.largest_norm = max(made.norm, now.largest_norm or 0.0)
            return
        now.skipped += 1
        now.skipped_in_a_row += 1
        if now.skipped_in_a_row == SKIPPED_AT_MOST:
            raise RunError(
                f"training stopped at step {now.step}: the loss or the gradient was not finite {SKIPPED_AT_MOST} times "
                f"in a row, the last time on {_named(rows)}; the weights of the last good step and the checkpoints are "
                "untouched, look at these examples or lower train.rate"
            )

    # --- where it stands ---

    @property
    def finished(self) -> bool:
        patience = self.settings.patience
        exhausted = patience > 0 and self.progress.validations_since_best >= patience
        return exhausted or self.progress.step >= self.settings.steps

    @property
    def checkpoint_due(self) -> bool:
        step = self.progress.step
        return step % self.settings.checkpoint_every == 0 or step >= self.settings.steps

    def checkpoint(self) -> Checkpoint:
        self.progress.seconds = perf_counter() - self.begun
        return Checkpoint(
            self.progress.step,
            weights_of(self.objective),
            memory_of(self.optimiser, self.objective),
            random_states(),
            self.progress.model_dump(),
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from there. The random states come last: everything before might draw."""
        place = checkpoint.place
        self.progress = Progress.read(checkpoint.state, place)
        if self.progress.step != checkpoint.step:
            raise RunError(f"{place}: holds step {self.progress.step}, which is not what its name says")
        if self.progress.batch >= len(self.order):
            raise RunError(
                f"{place}: stands at batch {self.progress.batch} of an epoch, but the data has {len(self.order)} "
                "batches an epoch: it is not the data this run began with"
            )
        load_weights(self.objective, checkpoint.weights, place)
        load_memory(self.optimiser, self.objective, checkpoint.optimiser, place)
        self.begun = perf_counter() - self.progress.seconds
        set_random_states(checkpoint.random, place)

    # --- telling ---

    def tell(self, validate: Validate) -> Iterator[Record]:
        """The record of this step, if it has one. Neither the validation nor the reader disturbs what is drawn."""
        step = self.progress.step
        last = step >= self.settings.steps
        with undisturbed():
            if last or step % self.settings.validate_every == 0:
                with evaluating(self.objective):
                    scores = validate()
                best = self.progress.judge(scores["loss"])
                record = self._record("end" if self.finished else "validation", scores, best)
            elif step == 1 or step % RECORD_EVERY == 0:
                record = self._record("step", {}, False)
            else:
                return
            self.progress.begin_anew()
            yield record
        self.objective.train()  # whoever looked at it may have left it in another mode

    def _record(self, kind: Kind, scores: dict[str, float], best: bool) -> Record:
        now = self.progress
        return Record(
            kind,
            now.step,
            round(now.epoch + (now.batch / len(self.order) if now.batch else 0), 6),
            now.loss_sum / now.loss_count if now.loss_count else None,
            rate_at(now.step, self.settings),
            now.largest_norm,
            now.tokens,
            now.recent_tokens / now.recent_seconds if now.recent_seconds else 0.0,
            perf_counter() - self.begun,
            now.skipped,
            scores,
            best,
        )


@dataclass(frozen=True)
class Update:
    """What one step has met: the summed loss over so many target tokens, and the norm of its mean gradient."""

    loss: float
    count: float
    norm: float

    @property
    def finite(self) -> bool:
        return math.isfinite(self.loss) and math.isfinite(self.norm)


def update(objective: Objective, optimiser: torch.optim.Optimizer, batches: Sequence[Batch], clip: float) -> Update:
    """One step on these batches together; none if the loss or the gradient is not finite.

    The sums are backpropagated and the gradient is divided once by the count over all batches: a mean of means would
    give a token in a short batch more weight. Clipping does not help against NaN, hence the look at the norm.
    """
    optimiser.zero_grad()
    loss, count = backpropagate(objective, batches)
    gradients = [parameter.grad for parameter in objective.parameters() if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients).item() / max(count, 1.0)
    made = Update(loss, count, norm)
    if made.finite:
        share = min(1.0, clip / norm) if clip > 0 and norm > 0 else 1.0
        for gradient in gradients:
            gradient.mul_(share / max(count, 1.0))
        optimiser.step()
    return made


def backpropagate(objective: Objective, batches: Sequence[Batch]) -> tuple[float, float]:
    """Leave the gradient of the summed loss of all batches in the parameters; gives the sum and its count."""
    total = count = 0.0
    state: State = None
    for batch in batches:
        loss, number, state = objective(batch, None if batch.fresh else state)
        loss.backward()
        state = detach(state)
        total += loss.item()
        count += number.item()
    return total, count


def tokens_in(batch: Batch) -> int:
    """The tokens of a batch, source and target, without padding."""
    masks = [batch.mask, *(part for part in batch.source if part.dtype is torch.bool)]
    return sum(int(mask.sum()) for mask in masks)


@contextmanager
def evaluating(objective: nn.Module) -> Iterator[None]:
    """Without dropout and gradients inside; in its former mode afterwards."""
    mode = objective.training
    objective.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        objective.train(mode)


def _named(rows: Rows, most: int = 8) -> str:
    shown = ", ".join(map(str, rows[:most].tolist()))
    return f"the examples {shown}" + (f" and {len(rows) - most} more" if len(rows) > most else "")
