"""What ails a model, from measurements: a ranked list of findings, each with its numbers and what to type.

A rule looks at a `Checkup` and finds something or nothing. It reads measurements alone, so it can be tried on illnesses
that were planted; healthy runs must stay below the threshold of every rule. `docs/doctor.md` has the measurements that
the thresholds were taken from.
"""

from collections.abc import Callable
from dataclasses import replace

from . import rules_data, rules_inside, rules_training, rules_tried
from .findings import Checkup, Finding, can_change

Rule = Callable[[Checkup], Finding | None]
RULES: tuple[Rule, ...] = (
    rules_data.cut_off,
    rules_data.unknown,
    rules_data.unmixed,
    rules_data.alike,
    rules_data.collapsed,
    rules_data.leak,
    rules_data.repeated,
    rules_data.other_kind,
    rules_data.padding,
    rules_training.overfitting,
    rules_training.gave_up,
    rules_training.weights_shrunk,
    rules_training.gradients_cut,
    rules_inside.short_memory,
    rules_inside.forgetting,
    rules_inside.vanishing,
    rules_inside.saturated,
    rules_inside.dead_units,
    rules_inside.starved,
    *rules_tried.TRIED_RULES,
)
EXPLAINS = 0.58  # of the severity: what is found above it keeps a model from learning


def diagnose(checkup: Checkup) -> list[Finding]:
    """What the rules find, the worst first. A healthy run gives nothing.

    A change that the recipe refuses is not prescribed. Whether there is anything to learn is asked only where nothing
    found says why it was not learned; if there is not, nothing about the model is said. Settings that are merely
    unusual are tried last.
    """
    findings = _apply_rules(RULES, checkup)
    if not any(finding.severity > EXPLAINS for finding in findings):
        if (nothing := rules_training.nothing_to_learn(checkup)) is not None:
            data = [finding for finding in findings if not finding.change.startswith(("model.", "train."))]
            return _rank([nothing, *data, *_apply_rules([rules_training.below_baseline], checkup)])
        findings += _apply_rules(rules_tried.UNUSUAL, checkup)
    return _rank([*findings, *_apply_rules([rules_training.below_baseline], checkup)])


def _apply_rules(rules: "tuple[Rule, ...] | list[Rule]", checkup: Checkup) -> list[Finding]:
    findings = [finding for rule in rules if (finding := rule(checkup)) is not None]
    return [one if can_change(checkup.recipe, one.change) else replace(one, change="") for one in findings]


def _rank(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity)
