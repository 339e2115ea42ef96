"""The training loop. It knows a model only as an `Objective`, data only as a `Feed`, and tells what happens by
yielding it:

    for record in fit(objective, feed, settings, validate, checkpoints):
        print(record.step, record.loss, record.scores)

Where the records go, what is validated and what a run folder looks like is not its business.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config.recipe import Train
from ..errors import DataError, RecipeError, RunError
from ..layers.state import State
from ..models import Batch, Objective, device_of
from .checkpoints import Checkpoint, Checkpoints
from .depths import find_held_back, measure_depths
from .devices import autocast
from .ema import EMA
from .freezing import freeze
from .optimizer import build_optimizer, get_optimizer_state, load_optimizer_state, set_learning_rate
from .processes import ProcessGroup
from .randomness import Draw, draw_from
from .records import Kind, Progress, Record, selection_criteria
from .schedules import learning_rate_at, teacher_forcing_at
from .tensors import copy_weights, gather_whole, load_weights
from .update import ALONE, Update, count_tokens, update
from .watching import MakeWatch

RECORD_EVERY = 10  # steps: often enough for a progress bar, seldom enough for a file that is kept
SKIPPED_AT_MOST = 10  # in a row; then it is no accident any more

Rows = NDArray[np.integer[Any]]
Schedule = Callable[[int, Train], float]  # the learning rate of a step, counted from 1
Validate = Callable[[], dict[str, float]]  # scores by name, "loss" among them: see `selection_criteria`


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
    ranks: ProcessGroup = ALONE,
    changed: int = -1,
    watch: MakeWatch | None = None,
    schedule: Schedule = learning_rate_at,
    judge_start: bool = False,
) -> Iterator[Record]:
    """Train, from the newest checkpoint if there is one. The settings are resolved: steps, warm-up and so on are known.

    When a record says `best`, the objective holds the best weights until the next record is asked for: whoever keeps
    them writes them then. A checkpoint is training as it stood before its step was told, so on resuming the
    record of that step comes again: records from that step on are to be forgotten, whatever was killed in between.

    Once `stop` is set, training ends after the step it is in, with a checkpoint and without a record.

    With several processes, all of them train and tell the same; only the first needs checkpoints and validates.

    Checkpoints up to the step `changed` are of other data: from these it goes on with the beginning of the next epoch.

    A `schedule` of one's own takes the place of the settings' one; what resumes has to be given it again.
    With `judge_start` the weights it begins with are validated too, and stay the best until others are better.
    """
    training = Training(objective, feed, settings, ranks, watch, schedule)
    checkpoint = find_checkpoint(checkpoints, ranks)
    if checkpoint is not None:
        training.restore(checkpoint, checkpoint.step <= changed)
    if checkpoint is not None or judge_start:
        yield from training.report(validate)
    while not training.finished:
        try:
            training.advance()
        except RunError:  # what led to it is told before: whoever looks for the reason reads the records
            yield training.make_final_record()
            raise
        [stops] = ranks.all_reduce(stop is not None and stop.is_set())
        if stops or training.checkpoint_due:
            checkpoint = training.checkpoint()
            if checkpoints is not None:
                checkpoints.save(checkpoint)
        if stops:
            return
        yield from training.report(validate)


def find_checkpoint(checkpoints: Checkpoints | None, ranks: ProcessGroup) -> Checkpoint | None:
    """The newest checkpoint of the first process, for all of them."""
    checkpoint = None
    if checkpoints is not None:
        checkpoints.sweep()
        checkpoint = checkpoints.find_newest()
    if ranks.count == 1:
        return checkpoint
    own = checkpoint.files() if checkpoint else {}
    about = {"step": checkpoint.step, "place": checkpoint.place} if checkpoint else {}
    header = json.loads(ranks.broadcast(json.dumps({**about, "files": list(own)}).encode()))
    files = {name: ranks.broadcast(own.get(name, b"")) for name in header["files"]}
    return Checkpoint.parse(header["step"], files, header["place"]) if files else None


class BatchWindow(NamedTuple):
    """A window of a batch, or all of it; `chance` (B, T) decides where a generator reads its own last element."""

    batch: Batch
    chance: Tensor

    def at(self, truth: float) -> Batch:
        return self.batch if truth >= 1 else self.batch._replace(teacher_forced=self.chance < truth)


class Training:
    """An objective on its way: its weights, the optimizer, the position in the data, the counters."""

    def __init__(
        self,
        objective: Objective,
        feed: Feed,
        settings: Train,
        ranks: ProcessGroup = ALONE,
        watch: MakeWatch | None = None,
        schedule: Schedule = learning_rate_at,
    ) -> None:
        self.schedule = schedule
        check_can_carry(objective, settings)
        self.objective, self.feed, self.settings, self.ranks = objective, feed, settings, ranks
        freeze(objective, settings.freeze)
        self.learner = ranks.learner(objective, settings.shard)
        self.trained = ranks.wrap(self.learner, settings.shard)
        self.depths = measure_depths(objective)
        self.optimizer = build_optimizer(self.learner, settings, self.depths)
        self.average = EMA(self.learner, settings.ema)
        self.watch = watch(self.learner) if watch is not None and settings.watch_every else None
        self.progress = Progress()
        self.state: State = None  # where the last batch has arrived, for one that goes on from there
        self.begun = perf_counter()
        self._read_ahead = 0.0  # seconds
        self._known_order: tuple[int, Sequence[Rows]] | None = None
        self._known_pieces: tuple[tuple[int, int], list[BatchWindow]] | None = None
        self.trained.train()

    # --- the data ---

    @property
    def order(self) -> Sequence[Rows]:
        """The batches of the epoch that is being read."""
        epoch = self.progress.epoch
        if self._known_order is None or self._known_order[0] != epoch:
            order = self.feed.order(epoch)
            if not len(order):
                raise DataError("there are no examples to train on")
            self._known_order = epoch, order
        return self._known_order[1]

    @property
    def pieces(self) -> list[BatchWindow]:
        """The windows of the batch that is being read."""
        now = self.progress
        place = now.epoch, now.batch
        if self._known_pieces is None or self._known_pieces[0] != place:
            draw_from(self.settings.seed, Draw.BATCH, *place)
            batch = self.feed.batch(self.order[now.batch])
            length = self.settings.bptt_window or max(1, batch.mask.shape[1])
            windows = batch.windows(length) if self.settings.bptt_window else [batch]
            rows, steps = batch.mask.shape
            drawn = torch.rand(rows, 1 if self.settings.teacher_forcing_per == "sequence" else steps)
            chances = torch.split(drawn.expand(rows, steps), length, 1)
            self._known_pieces = place, list(map(BatchWindow, windows, chances))
        return self._known_pieces[1]

    def read(self) -> tuple[Rows, list[Batch]]:
        """The batches, or windows of them, that make the next step together, and the rows of the last."""
        now = self.progress
        batches: list[Batch] = []
        truth = teacher_forcing_at(now.step + 1, self.settings)
        while len(batches) < self.settings.accumulate_batches:
            rows = self.order[now.batch]
            batches.append(self.pieces[now.window].at(truth))
            now.window += 1
            if now.window == len(self.pieces):
                now.batch, now.window = now.batch + 1, 0
            if now.batch == len(self.order):
                now.epoch, now.batch = now.epoch + 1, 0
                break
        return rows, batches

    # --- one step ---

    def advance(self) -> None:
        """Read on and make one step, or skip it if something in it is not finite."""
        start, now = perf_counter() - self._read_ahead, self.progress
        rows, batches = self.read()
        set_learning_rate(self.optimizer, self.schedule(now.step + 1, self.settings))
        draw_from(self.settings.seed, Draw.DROPOUT, now.step, self.ranks.rank)
        half = self.settings.precision == "float16"
        magnified = now.loss_scale if half else 1.0
        watch = self.watch if self.watch is not None and (now.step + 1) % self.settings.watch_every == 0 else None
        before = watch.before() if watch is not None else []
        held = self.list_held_back(now.step + 1)
        result = update(self.trained, self.optimizer, batches, self.settings, self.state, self.ranks, magnified, held)
        if watch is not None and result.finite:
            now.watched = watch.after(before, result.norm)
        if half:
            now.update_loss_scale(result.finite)
        self.state = result.state if result.finite else None  # what is not finite would spoil all that goes on from it
        now.step += 1
        self._count(result, rows)
        tokens = sum(map(count_tokens, batches))
        now.tokens += tokens
        now.recent_tokens += tokens
        now.recent_seconds += perf_counter() - start
        self._read_ahead = 0.0

    def list_held_back(self, step: int) -> list[nn.Parameter]:
        """The parameters that do not learn yet, while layers are unfrozen one after the other."""
        held = find_held_back(self.depths, step, self.settings.unfreeze_every)
        return [parameter for name, parameter in self.learner.named_parameters() if name in held] if held else []

    def _count(self, result: Update, rows: Rows) -> None:
        now = self.progress
        if result.finite:
            self.average.add(now.step - now.skipped)
            now.skipped_in_a_row = 0
            now.loss_sum += result.loss
            now.loss_count += result.count
            now.largest_norm = max(result.norm, now.largest_norm or 0.0)
            return
        now.skipped += 1
        now.skipped_in_a_row += 1
        if now.skipped_in_a_row == SKIPPED_AT_MOST:
            raise RunError(
                f"training stopped at step {now.step}: the loss or the gradient was not finite {SKIPPED_AT_MOST} times "
                f"in a row, the last time on {_describe_rows(rows)}; the weights of the last good step and the "
                "checkpoints are untouched, look at these examples or lower train.learning_rate"
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
        """All of it; with several processes, all must ask for it together."""
        self.progress.seconds = perf_counter() - self.begun
        return Checkpoint(
            self.progress.step,
            copy_weights(self.learner),
            get_optimizer_state(self.optimizer, self.learner),
            {name: gather_whole(tensor).clone() for name, tensor in self.average.weights.items()},
            state=self.progress.model_dump(),
            carried=self.ranks.gather_state(self.state, self._rows) if self._next_carries_on() else {},
        )

    @property
    def _rows(self) -> int:
        """How many rows a state that is carried has, over all processes."""
        return len(self.pieces[self.progress.window].batch.mask)

    def _next_carries_on(self) -> bool:
        """Whether the next piece needs the state of the last one: it is read to see, for the step to come."""
        if self.state is None or self.progress.step >= self.settings.steps:
            return False
        start = perf_counter()
        fresh = self.pieces[self.progress.window].batch.starts_sequence
        self._read_ahead += perf_counter() - start
        return not fresh

    def restore(self, checkpoint: Checkpoint, other_data: bool = False) -> None:
        """Go on from there. Chance needs no restoring: see `randomness`."""
        place = checkpoint.place
        self.progress = now = Progress.read(checkpoint.state, place)
        if now.step != checkpoint.step:
            raise RunError(f"{place}: holds step {now.step}, which is not what its name says")
        if other_data:
            now.epoch, now.batch, now.window = now.epoch + bool(now.batch or now.window), 0, 0
        if now.batch >= len(self.order):
            raise RunError(
                f"{place}: stands at batch {now.batch} of an epoch, but the data has {len(self.order)} "
                "batches an epoch: it is not the data this run began with"
            )
        if now.window and now.window >= len(self.pieces):
            raise RunError(f"{place}: stands at window {now.window} of a batch that has {len(self.pieces)}")
        if checkpoint.carried and not other_data:
            self.state = self.ranks.scatter_state(checkpoint.carried, self._example_state(), place)
        load_weights(self.learner, checkpoint.weights, place)
        load_optimizer_state(self.optimizer, self.learner, checkpoint.optimizer, place)
        self.average.load(checkpoint.average, place)
        self.begun = perf_counter() - now.seconds

    def _example_state(self) -> State:
        """A state of the shape that is carried into the next piece."""
        part, _ = self.ranks.part(self.pieces[self.progress.window].batch)
        with evaluation_mode(self.objective), autocast(device_of(self.objective), self.settings.precision):
            return self.objective(part, None)[2]

    # --- records ---

    def report(self, validate: Validate) -> Iterator[Record]:
        """The record of this step, if it has one. Averaged weights stay shown until the next record is asked for."""
        step = self.progress.step
        if step >= self.settings.steps or step % self.settings.validate_every == 0:
            with self.average.average_parameters():
                scores = self._validate(validate)
                best = self.progress.judge(*selection_criteria(scores, self.settings.select_by))
                yield self._finish_record("end" if self.finished else "validation", scores, best)
        elif step == 1 or step % RECORD_EVERY == 0 or self.progress.watched:
            yield self._finish_record("step", {}, False)
        self.trained.train()  # whoever looked at it may have left it in another mode

    def make_final_record(self) -> Record:
        """The record of a step after which training cannot go on."""
        return self._finish_record("step", {}, False)

    def _validate(self, validate: Validate) -> dict[str, float]:
        """The scores that the first process finds, in all of them."""
        if self.learner is not self.objective:
            load_weights(self.objective, copy_weights(self.learner), "shards")
        scores: dict[str, float] = {}
        if self.ranks.first:
            with evaluation_mode(self.objective):
                scores = validate()
        return scores if self.ranks.count == 1 else dict(json.loads(self.ranks.broadcast(json.dumps(scores).encode())))

    def _finish_record(self, kind: Kind, scores: dict[str, float], best: bool) -> Record:
        record = self._record(kind, scores, best)
        self.progress.reset()
        return record

    def _record(self, kind: Kind, scores: dict[str, float], best: bool) -> Record:
        now = self.progress
        return Record(
            kind,
            now.step,
            round(now.epoch + (now.batch / len(self.order) if now.batch else 0), 6),
            now.loss_sum / now.loss_count if now.loss_count else None,
            self.schedule(now.step, self.settings),
            now.largest_norm,
            now.tokens,
            now.recent_tokens / now.recent_seconds if now.recent_seconds else 0.0,
            perf_counter() - self.begun,
            now.skipped,
            scores,
            best,
            now.watched,
        )


def check_can_carry(objective: Objective, settings: Train) -> None:
    """Refuse what only a model that writes one element after the other can do."""
    for name, enabled in (
        ("train.bptt_window", settings.bptt_window > 0),
        ("train.teacher_forcing", settings.teacher_forcing < 1),
    ):
        if enabled and not objective.carries:
            raise RecipeError(f"{name} is for models that write one element after the other; leave it at its default")


@contextmanager
def evaluation_mode(objective: nn.Module) -> Iterator[None]:
    """Without dropout and gradients inside; in its former mode afterwards."""
    mode = objective.training
    objective.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        objective.train(mode)


def _describe_rows(rows: Rows, most: int = 8) -> str:
    shown = ", ".join(map(str, rows[:most].tolist()))
    return f"the examples {shown}" + (f" and {len(rows) - most} more" if len(rows) > most else "")
