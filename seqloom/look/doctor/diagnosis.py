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
    rules_data.check_truncation,
    rules_data.check_unknown_tokens,
    rules_data.check_shuffling,
    rules_data.check_batch_variety,
    rules_data.check_collapse,
    rules_data.check_leakage,
    rules_data.check_repetition,
    rules_data.check_distribution_shift,
    rules_data.check_padding,
    rules_training.check_overfitting,
    rules_training.check_patience,
    rules_training.check_weight_decay,
    rules_training.check_gradient_clipping,
    rules_inside.check_memory_length,
    rules_inside.check_forget_gate,
    rules_inside.check_gradient_flow,
    rules_inside.check_saturation,
    rules_inside.check_dead_units,
    rules_inside.check_query_key_gradients,
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
        if (nothing := rules_training.check_learnability(checkup)) is not None:
            data = [finding for finding in findings if not finding.change.startswith(("model.", "train."))]
            return _rank([nothing, *data, *_apply_rules([rules_training.check_baselines], checkup)])
        findings += _apply_rules(rules_tried.UNUSUAL, checkup)
    return _rank([*findings, *_apply_rules([rules_training.check_baselines], checkup)])


def _apply_rules(rules: "tuple[Rule, ...] | list[Rule]", checkup: Checkup) -> list[Finding]:
    findings = [finding for rule in rules if (finding := rule(checkup)) is not None]
    return [one if can_change(checkup.recipe, one.change) else replace(one, change="") for one in findings]


def _rank(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: -finding.severity)
