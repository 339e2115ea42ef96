"""Rules about how training went, its scores and its data. Each docstring says when the rule speaks."""

from .findings import Checkup, Finding
from .schedules import Curves


def unstable(checkup: Checkup) -> Finding | None:
    """Steps were skipped, or the loss ended more than a fifth of its fall above its lowest: the steps are too large."""
    losses, train = checkup.curves.training[:, 1], checkup.recipe.train
    if len(losses) < 3:
        return None
    fall = max(float(losses[0] - losses.min()), 1e-9)
    rise = float(losses[-1] - losses.min()) / fall
    never = losses.min() > 0.97 * losses[0] and _gradient_growth(checkup.curves) > 3
    if not checkup.skipped and rise < 0.2 and not never:
        return None
    radius = max(checkup.anatomy.radius.values(), default=0.0)
    clip = not train.clip and radius > 1.2
    return Finding(
        "unstable training",
        0.95,
        f"The loss ended {rise:.0%} of its whole fall above its lowest point; {checkup.skipped} steps were skipped.",
        {"rise": rise, "skipped": float(checkup.skipped), "spectral radius": radius},
        "train.clip=1" if clip else f"train.rate={train.rate / 10:.2g}",
        "A recurrent matrix that stretches what it remembers makes gradients explode; clipping shortens them."
        if clip
        else "Steps that are too large jump over what they look for.",
    )


def too_slow(checkup: Checkup) -> Finding | None:
    """More than a tenth of the whole fall came in the last quarter, and all of it was below two fifths of the loss."""
    losses, train = checkup.curves.training, checkup.recipe.train
    if len(losses) < 8:
        return None
    quarter = len(losses) // 4
    first, before, last = (
        float(losses[part, 1].mean()) for part in (slice(0, 2), slice(-2 * quarter, -quarter), slice(-quarter, None))
    )
    fall = first - last
    late = (before - last) / fall if fall > 0 else 0.0
    share = fall / first if first > 0 else 0.0
    if late < 0.1 or share > 0.4:
        return None
    return Finding(
        "still learning when it stopped",
        0.7,
        f"The loss fell by only {share:.0%} in all, and {late:.0%} of that in the last quarter of training.",
        {"late share of the fall": late, "share of the loss": share},
        f"train.rate={min(train.rate * 10, 100):.2g}",
        "The steps are so small that training ends on the way; more steps would help, too, but take longer.",
    )


def overfitting(checkup: Checkup) -> Finding | None:
    """The validation loss ended a tenth above its best while the training loss went on falling."""
    validation, training = checkup.curves.validation, checkup.curves.training
    if len(validation) < 4 or len(training) < 4:
        return None
    best = int(validation[:, 1].argmin())
    worse = float(validation[-1, 1] / max(validation[best, 1], 1e-9)) - 1
    later = training[training[:, 0] > validation[best, 0], 1]
    if worse < 0.1 or best > 0.8 * len(validation) or not len(later) or later[-1] > later[0]:
        return None
    dropout = checkup.recipe.model.dropout
    return Finding(
        "learns by heart",
        min(0.9, 0.5 + worse),
        f"The validation loss was best at step {validation[best, 0]:.0f} and ended {worse:.0%} above that, "
        "while the training loss went on falling.",
        {"best step": float(validation[best, 0]), "worse by": worse},
        f"model.dropout={min(0.6, max(0.2, dropout + 0.2)):.1g}",
        "What is left out at random cannot be relied on; the best weights are kept anyway, so fewer steps would do.",
    )


def too_much_dropout(checkup: Checkup) -> Finding | None:
    """With a dropout of two fifths or more, training is a quarter harder than validation."""
    training, validation = checkup.curves.training[:, 1], checkup.curves.validation[:, 1]
    dropout = checkup.recipe.model.dropout
    if dropout < 0.4 or not len(training) or not len(validation):
        return None
    gap = float(training[-max(1, len(training) // 10) :].mean() / max(float(validation[-1]), 1e-9)) - 1
    if gap < 0.25:
        return None
    return Finding(
        "too much is left out",
        0.8,
        f"With dropout {dropout:g} the training loss is {gap:.0%} above the validation loss: it is made too hard.",
        {"dropout": dropout, "gap": gap},
        "model.dropout=0.1",
        "Dropout is for models that learn by heart; this one cannot even learn what it is shown.",
    )


def warmup_needed(checkup: Checkup) -> Finding | None:
    """A deep Transformer that normalises behind, with a warm-up below a fiftieth of all steps, hardly learnt."""
    train, body = checkup.recipe.train.resolved(), checkup.recipe.model.side("encoder")
    losses = checkup.curves.training[:, 1]
    if body.kind != "transformer" or body.norm != "post" or body.depth < 6 or len(losses) < 3:
        return None
    share, fall = train.warmup / max(train.steps, 1), float(1 - losses.min() / max(losses[0], 1e-9))
    if share > 0.02 or fall > 0.3:
        return None
    return Finding(
        "no warm-up",
        0.9,
        f"{body.depth} layers normalise behind, the warm-up is {share:.1%} of all steps, the loss fell by {fall:.0%}.",
        {"warm-up share": share, "fall": fall, "depth": float(body.depth)},
        "model.norm=pre",
        "At the start the upper layers' gradients are far larger than the lower ones'; a norm in front evens them out.",
    )


def below_baseline(checkup: Checkup) -> Finding | None:
    """A score is no better than what anyone could do without a model."""
    for name, score in checkup.scores.items():
        rivals = score.get("baselines") or {}
        sign = -1 if score.get("better") == "lower" else 1
        rival = max(rivals, key=lambda one: sign * rivals[one], default="")
        if rival and sign * score["value"] <= sign * rivals[rival]:
            return Finding(
                "no better than a baseline",
                1.0,
                f"{name} is {score['value']:.3g}, but {rival} alone gets {rivals[rival]:.3g}.",
                {"score": float(score["value"]), "baseline": float(rivals[rival])},
            )
    return None


def nothing_to_learn(checkup: Checkup) -> Finding | None:
    """The training loss fell by a tenth or more, but no validation was ever better than the first one by a fiftieth."""
    validation, training = checkup.curves.validation[:, 1], checkup.curves.training[:, 1]
    if len(validation) < 4 or len(training) < 4:
        return None
    learnt = float(1 - training[-1] / max(training[0], 1e-9))
    gained = float(1 - validation.min() / max(validation[0], 1e-9))
    if learnt < 0.1 or gained > 0.02:
        return None
    return Finding(
        "nothing to learn",
        0.98,
        f"The training loss fell by {learnt:.0%}, the validation loss never by more than {gained:.1%}.",
        {"learnt": learnt, "gained": gained},
        "",
        "What the model learnt of the examples does not hold for others: look at the labels before the model.",
    )


def cut_off(checkup: Checkup) -> Finding | None:
    """A twentieth of the training examples or more were cut or dropped for their length."""
    train = checkup.data.get("splits", {}).get("train")
    if not train or not train.get("examples"):
        return None
    cut = sum(train[side].get("cut", 0) for side in ("source", "target") if side in train) + train.get("dropped", 0)
    share = cut / (train["examples"] + train.get("dropped", 0))
    if share < 0.05:
        return None
    return Finding(
        "examples are cut off",
        0.65,
        f"{share:.0%} of the training examples were cut or dropped as longer than {checkup.recipe.data.max_length}.",
        {"share": share},
        f"data.max_length={2 * checkup.recipe.data.max_length}",
        "What the answer depends on may stand behind the cut.",
    )


def padding(checkup: Checkup) -> Finding | None:
    """More than two fifths of what is computed is padding."""
    share = float(checkup.data.get("padded_share", 0.0))
    if share < 0.4:
        return None
    return Finding(
        "padding",
        0.2,
        f"{share:.0%} of the training batches is padding: that much of the time is spent on nothing.",
        {"share": share},
        f"train.batch={2 * checkup.recipe.train.batch}",
        "In larger batches rows of like length find one another; very long examples may be worth dropping.",
    )


def _gradient_growth(found: Curves) -> float:
    """How many times as large the gradient was at its largest as at first."""
    norms = found.gradients[:, 1]
    return float(norms.max() / max(norms[0], 1e-12)) if len(norms) else 1.0
