"""What ails a model, from measurements: a ranked list of findings, each with its numbers and the setting to change.

A rule looks at a `Checkup` and finds something or nothing. It reads measurements alone, so it can be tried on illnesses
that were planted; healthy runs must stay below the threshold of every rule.
"""

from collections.abc import Callable

from . import rules_inside, rules_training
from .findings import Checkup, Finding

LEARNT = 0.5  # of the first loss: a model that got rid of more is not searched for what keeps it from learning

TRAINING: tuple[Callable[[Checkup], Finding | None], ...] = (
    rules_training.below_baseline,
    rules_training.nothing_to_learn,
    rules_training.unstable,
    rules_training.warmup_needed,
    rules_training.too_much_dropout,
    rules_training.overfitting,
    rules_training.too_slow,
    rules_training.cut_off,
    rules_training.padding,
)
INSIDE: tuple[Callable[[Checkup], Finding | None], ...] = (
    rules_inside.short_memory,
    rules_inside.vanishing,
    rules_inside.forgetting,
    rules_inside.starved,
    rules_inside.saturated,
    rules_inside.dead_units,
)


def diagnose(checkup: Checkup) -> list[Finding]:
    """What the rules find, the worst first. A healthy run gives nothing."""
    rules = TRAINING if checkup.learnt > LEARNT else TRAINING + INSIDE
    found = [finding for rule in rules if (finding := rule(checkup)) is not None]
    return sorted(found, key=lambda finding: -finding.severity)
