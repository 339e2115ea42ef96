"""How many steps a time budget buys, measured by a few trial steps that leave no trace."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from ..config.recipe import Train
from ..config.train import DEFAULT_STEPS
from ..errors import DataError
from ..models import Batch, Objective
from .loop import Feed, Rows, Training, evaluation_mode
from .randomness import preserve_random_state
from .tensors import copy_weights, load_weights

TRIALS = 8
SOME = 1 << 16  # batches that the trial ones are chosen from
TRIALS_AT_LEAST = 3
SHARE = 0.05  # of the budget: what the trial steps may take
LOOKS = 0.1  # of the budget: what validations may take, where nothing says how often they come
FEWEST = 2  # validations all the same


def fit_steps_to_time(
    seconds: float, objective: Objective, feed: Feed, settings: Train, validate: Callable[[Train], object]
) -> tuple[int, int]:
    """The most steps that, with their validations, take no more than this time; at least one. And how often to look.

    One validation is tried, with the settings of about so many steps. From then on only steps count: the caller stores
    both in the recipe, so that a run can be repeated.
    """
    with leave_untouched(objective):
        step = measure_step(objective, feed, settings, seconds * SHARE)
        likely = settings.model_copy(update={"steps": max(1, int(seconds / step)), "time": ""}).resolved()
        start = perf_counter()
        with evaluation_mode(objective):
            validate(likely)
        validation = perf_counter() - start
    return count_steps(seconds, step, validation, settings)


def estimate_seconds(objective: Objective, feed: Feed, settings: Train) -> float:
    """The seconds that all steps will take on this machine, as a few trial steps have it; validations not counted."""
    with leave_untouched(objective):
        return settings.steps * measure_step(objective, feed, settings, 0.0)


def count_steps(seconds: float, step: float, validation: float, settings: Train) -> tuple[int, int]:
    """The number of steps of such a length that fit in with their validations, and the steps between these."""
    looks = max(FEWEST, int(LOOKS * seconds / max(validation, 1e-9)))

    def every(steps: int) -> int:
        usual = settings.model_copy(update={"steps": steps, "time": ""}).resolved().validate_every
        return usual if settings.validate_every else usual * -(-steps // (looks * usual))  # checkpoints stay usual

    def duration(steps: int) -> float:
        return steps * step + -(-steps // every(steps)) * validation

    # As the validations are counted out of the steps, a few steps more may take a little less time; what is found
    # fits in all the same.
    at_most = max(1, int(seconds / step))
    steps = max(1, bisect_right(range(1, at_most + 1), seconds, key=duration))
    return steps, every(steps)


def pick_trial_batches(order: Sequence[Rows], trials: int = TRIALS) -> list[Rows]:
    """Batches of all lengths, so chosen that already the first few are far apart.

    Batches are filled up to a number of tokens: those of few rows are the ones of long rows.
    """
    some = range(0, len(order), -(-len(order) // SOME))  # a long text has more batches than memory
    by_length = sorted((order[number] for number in some), key=len)
    middles = [by_length[(2 * part + 1) * len(by_length) // (2 * trials)] for part in range(trials)]
    return [middles[3 * turn % trials] for turn in range(trials)]  # 3 and 8 share no factor: each comes once


class Stopped(Exception):
    """Somebody wants to stop before the first step: a feed of trial steps says so."""


class TrialFeed:
    """A feed of the trial batches only; the first comes twice, because the first step of all also sets up."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def order(self, epoch: int) -> Sequence[Rows]:
        order = self.feed.order(0)
        if not len(order):
            raise DataError("there are no examples to train on")
        trials = pick_trial_batches(order)
        return [trials[0], *trials]

    def batch(self, rows: Rows) -> Batch:
        return self.feed.batch(rows)


def measure_step(
    objective: Objective, feed: Feed, settings: Train, seconds: float, at_least: int = TRIALS_AT_LEAST
) -> float:
    """The seconds of a step; where a model reads its own output more and more often, of the slowest, last ones."""
    slowest = {"steps": DEFAULT_STEPS, "time": "", "accumulate_batches": 1, "teacher_forcing_schedule": "constant"}
    training = Training(objective, TrialFeed(feed), settings.model_copy(update=slowest).resolved())
    while training.progress.batch == 0:  # not counted
        training.advance()
    start, steps = perf_counter(), 0
    while training.progress.epoch == 0 and (steps < at_least or perf_counter() - start <= seconds):
        training.advance()
        steps += 1
    return settings.accumulate_batches * (perf_counter() - start) / steps


@contextmanager
def leave_untouched(objective: Objective) -> Iterator[None]:
    """Weights, gradients, mode and random states are afterwards what they were before."""
    weights, mode = copy_weights(objective), objective.training
    try:
        with preserve_random_state():
            yield
    finally:
        load_weights(objective, weights, "probe")
        objective.zero_grad()
        objective.train(mode)


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{rest} s" if not minutes else f"{minutes} min {rest} s" if minutes < 60 else f"{minutes / 60:.1f} h"
