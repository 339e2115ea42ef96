"""What changes from step to step: the learning rate, and how often a decoder is given the truth. Plain formulas."""

import math

from ..config.recipe import Train


def learning_rate_at(step: int, settings: Train) -> float:
    """The learning rate of this step, counted from 1: a line up to `rate`, and then as the schedule says.

    Cosine and line end at zero rather than at a share of `rate`, because small last steps let the weights settle and
    the best ones are kept anyway; the step after the last would be the one of rate zero, so that none is made in vain.
    """
    rise = min(1.0, step / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "ramp-times-cosine":  # both from the first step on, as the course's notebook has it
        return settings.learning_rate * rise * _compute_half_cosine(step / (settings.steps + 1))
    if step <= settings.warmup:
        return settings.learning_rate * rise
    way = min(1.0, (step - settings.warmup) / (settings.steps + 1 - settings.warmup))
    match settings.schedule:
        case "cosine":
            return settings.learning_rate * _compute_half_cosine(way)
        case "linear":
            return settings.learning_rate * (1 - way)
        case "inverse-root":  # Vaswani et al. (2017), scaled to be `rate` at the end of the warm-up
            return settings.learning_rate * math.sqrt(max(settings.warmup, 1) / step)
        case "constant":
            return settings.learning_rate


def _compute_half_cosine(way: float) -> float:
    return (1 + math.cos(math.pi * min(way, 1.0))) / 2


def teacher_forcing_at(step: int, settings: Train) -> float:
    """The probability that a decoder reads the true token at this step and not its own (Bengio et al., 2015).

    It falls from 1 at the first step to `teacher` at the last: as a line, as a power, or as k / (k + exp(i / k)), whose
    k is chosen so that half of the way down is made at half of the steps.
    """
    least: float = settings.teacher_forcing
    way = (step - 1) / (settings.steps - 1) if settings.steps > 1 else 1.0
    match settings.teacher_forcing_schedule:
        case "constant":
            return least
        case "linear":
            return 1 + (least - 1) * way
        case "exponential":
            return math.exp(way * math.log(least))
    pace = _compute_pace(settings.steps / 2)  # of an inverse sigmoid
    return least + (1 - least) * pace / (pace + math.exp(step / pace))


def _compute_pace(half: float) -> float:
    """The k whose k · ln k is `half`: Newton's method on a convex function, from above."""
    pace = max(half, 2.0)
    for _ in range(60):
        pace -= (pace * math.log(pace) - half) / (math.log(pace) + 1)
    return pace
