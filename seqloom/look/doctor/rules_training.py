"""Rules about how training went and what it came to, from the records and the scores. Each docstring says when the
rule speaks.
"""

from typing import Any

from .findings import Checkup, Finding

TRIVIAL = ("most frequent", "chance", "uniform", "unigram", "mean", "constant", "copy")  # what takes no reading
SIGNS = {"higher": 1, "lower": -1}
PERFECT = {"higher": (1.0, 100.0), "lower": (0.0,)}  # of shares, of percentages, of errors: nothing beats them
LEARNED = 0.02  # of the blind loss: a validation that saved less has shown nothing
BY_HEART = 0.5  # of the first loss: a model that gets below this with a few examples can learn


def check_baselines(checkup: Checkup) -> Finding | None:
    """A score that could be better is not clearly above its best baseline: its 95 % interval reaches down to it."""
    findings = [
        one for name, score in checkup.scores.items() if (one := _compare_with_baseline(name, score)) is not None
    ]
    return max(findings, key=lambda finding: finding.severity, default=None)


def _compare_with_baseline(name: str, score: dict[str, Any]) -> Finding | None:
    baselines, better = score.get("baselines") or {}, score.get("better", "higher")
    if not baselines or better not in SIGNS:
        return None
    sign, value = SIGNS[better], float(score["value"])
    best = max(baselines, key=lambda baseline: sign * baselines[baseline])
    beside, interval = float(baselines[best]), score.get("interval") or [value, value]
    surely = min(sign * end for end in interval)
    if surely > sign * beside or value in PERFECT[better]:
        return None
    below = sign * value <= sign * beside
    trivial = best in TRIVIAL or any(sign * value <= sign * baselines[one] for one in TRIVIAL if one in baselines)
    reach = f" (95 % interval {min(interval):.3g} to {max(interval):.3g})" if score.get("interval") else ""
    return Finding(
        "no better than a baseline" if below else "not clearly better than a baseline",
        0.52 if below and trivial else 0.45 if below else 0.25,
        f"{name} is {value:.3g}{reach}; the baseline {best} has {beside:.3g}.",
        {"score": value, "baseline": beside},
        "",
        "A baseline without a network is as good. More examples, or the other findings, may change that."
        if below
        else "The difference may be chance: use a larger validation part to decide.",
    )


def check_learnability(checkup: Checkup) -> Finding | None:
    """Validation saved less than a fiftieth of the blind loss, no element tells anything about the answer by itself,
    and a few examples can be memorized: so it is not training that fails."""
    evidence = checkup.evidence
    if (
        evidence is None
        or len(checkup.curves.validation) < 2
        or checkup.skill > LEARNED
        or evidence.dependence.most > 0
    ):
        return None
    left = checkup.trying.by_heart if checkup.trying is not None else 0.0 if checkup.fitted > 0.1 else 1.0
    if left > BY_HEART:
        return None
    return Finding(
        "nothing to learn",
        0.99,
        f"The validation loss is {max(checkup.skill, 0):.1%} below that of the best constant answer, though a few "
        f"examples are memorized down to {left:.0%} of their loss. No single element predicts the answer.",
        {"saved": checkup.skill, "left when memorized": left},
        "",
        "The target cannot be predicted from the input: check the labels, and leave the model as it is.",
    )


def check_overfitting(checkup: Checkup) -> Finding | None:
    """The validation loss ended a tenth above its best, before the last fifth, and training is known far better."""
    validation, training = checkup.curves.validation, checkup.curves.training
    if len(validation) < 4 or len(training) < 4:
        return None
    best = int(validation[:, 1].argmin())
    worse = float(validation[-1, 1] / max(validation[best, 1], 1e-9)) - 1
    later = training[training[:, 0] > validation[best, 0], 1]
    if worse < 0.1 or best > 0.8 * len(validation) or len(later) < 2 or later[-1] > later[0]:
        return None
    dropout = checkup.recipe.model.dropout
    return Finding(
        "overfitting",
        min(0.7, 0.5 + worse / 2),
        f"The validation loss was best at step {validation[best, 0]:.0f} and ended {worse:.0%} above that, "
        "while the training loss kept falling.",
        {"best step": float(validation[best, 0]), "worse by": worse},
        f"model.dropout={min(0.6, max(0.3, dropout + 0.2)):.1g}",
        "Dropout regularizes the model; the best weights are kept anyway, so fewer steps are enough.",
    )


def check_patience(checkup: Checkup) -> Finding | None:
    """Patience ended training before two thirds of its steps, within three validations, while training went well."""
    train, validation = checkup.recipe.train.resolved(), checkup.curves.validation
    if not 0 < train.patience <= 3 or len(validation) < 2 or not checkup.scores:
        return None
    share = float(validation[-1, 0]) / max(train.steps, 1)
    losses = checkup.curves.training[:, 1]
    falling = len(losses) > 3 and losses[-3:].mean() < losses[:3].mean()
    if share > 0.66 or not falling or checkup.skill > 0.9 or checkup.fitted - checkup.skill > 0.2:
        return None
    return Finding(
        "stopped too early",
        0.65,
        f"Training stopped after {share:.0%} of its steps, because {train.patience} validations were no better.",
        {"share of the steps": share, "patience": float(train.patience)},
        "train.patience=0",
        "One validation may be worse by chance; the best weights are kept anyway.",
    )


def check_weight_decay(checkup: Checkup) -> Finding | None:
    """Decay pulled the matrices to less than half of the size they began with."""
    evidence, train = checkup.evidence, checkup.recipe.train
    if evidence is None or not evidence.weights.start or train.weight_decay < 0.05 or checkup.skill > 0.9:
        return None
    left = evidence.weights.now / evidence.weights.start
    if left > 0.5:
        return None
    return Finding(
        "decay too strong",
        0.6 + 0.3 * (1 - left),
        f"With train.weight_decay {train.weight_decay:g} the matrices have {left:.0%} of their initial size.",
        {"left": left, "decay": train.weight_decay},
        "train.weight_decay=0.01",
        "The decay shrinks the weights faster than they learn.",
    )


def check_gradient_clipping(checkup: Checkup) -> Finding | None:
    """The usual gradient is a hundred times as long as what it is shortened to, and the model has not learned."""
    train, norms = checkup.recipe.train, checkup.curves.gradients[:, 1]
    if not train.clip_norm or len(norms) < 3 or checkup.skill > 0.5:
        return None
    times = float(sorted(norms)[len(norms) // 2]) / train.clip_norm
    if times < 100:
        return None
    return Finding(
        "gradients clipped too much",
        0.7,
        f"The median gradient norm is {times:.0f} times train.clip_norm.",
        {"times": times},
        "train.clip_norm=1",
        "Clipping is meant for a few large gradients; here it shortens every one.",
    )
