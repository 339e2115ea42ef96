"""Rules that suspect a setting by a measurement, and speak only if a short trial with another value goes better.

A suspicion may be cheap and broad, because the trial judges. Where there is none (the examples are not at hand), only
what `certain` says is said.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ...architectures import Architecture
from ...config.owners import settings_of
from ...config.recipe import Recipe
from ...config.tasks import USES
from .findings import Checkup, Finding, can_change

ROOM = 0.9  # a model that has taken more than this of the surprise away has nothing to gain
STUCK = 0.05  # one that has taken less has learned next to nothing
HELPS = 0.05  # of the blind loss: a trial that gains less shows nothing
LARGE = 0.5  # a step of which no healthy run makes the like
MOVES = (0.1, 0.03)  # how far a step moves the weights, as a share of their size, where training goes well
NEARLY = 0.02  # of the blind loss: of changes that gain the same, the smaller one


@dataclass(frozen=True)
class Suspicion:
    """A measurement that may explain why a run did not learn, and changes that would mend it, the smallest first."""

    says: str
    measured: dict[str, float]
    changes: Sequence[str]
    certain: bool = False  # whether it is said without a trial, too
    helps: float = field(default=HELPS)
    slow: bool = False  # whether a trial is too short to tell against it


@dataclass(frozen=True)
class TriedRule:
    name: str
    suspects: Callable[[Checkup], Suspicion | None]
    why: str

    def __call__(self, checkup: Checkup) -> Finding | None:
        if checkup.skill > ROOM:
            return None
        suspicion = self.suspects(checkup)
        changes = [] if suspicion is None else [one for one in suspicion.changes if can_change(checkup.recipe, one)]
        if suspicion is None or not changes:
            return None
        best_change = find_best_change(checkup, changes)
        if best_change is None or (suspicion.slow and -suspicion.helps < best_change[1] < suspicion.helps):
            says, change, measured = suspicion.says, changes[0], suspicion.measured
            return Finding(self.name, 0.6, says, measured, change, self.why) if suspicion.certain else None
        change, gain = best_change
        if gain < suspicion.helps:
            return None
        says = f"{suspicion.says} In a short trial, {change} left {gain:.0%} less of the loss."
        measured = suspicion.measured | {"gain in a trial": gain}
        return Finding(self.name, 0.6 + 0.4 * min(1.0, gain), says, measured, change, self.why)


def find_best_change(checkup: Checkup, changes: Sequence[str]) -> tuple[str, float] | None:
    """The change whose trial left least of the loss, and how much less than nothing changed, as a share of what
    reading nothing leaves. Of several that are nearly as good, the first; nothing, if none could be tried."""
    if checkup.trying is None or checkup.evidence is None:
        return None
    blind = max(abs(checkup.evidence.blind), 1e-9)
    now = checkup.trying.after()
    tried = [(change, checkup.trying.after(*change.split())) for change in changes]
    gains = [
        (change, (min(now, 2 * blind) - min(left, 2 * blind)) / blind)
        for change, left in tried
        if left is not None and now is not None
    ]
    top = max((gain for _, gain in gains), default=0.0)
    return next((pair for pair in gains if pair[1] >= top - NEARLY), None)


def get_architecture(recipe: Recipe) -> Architecture:
    """The body that reads, or else the one that writes."""
    return recipe.model.side("encoder" if recipe.use.encodes else "decoder")


def measure_movement(checkup: Checkup) -> float:
    """How far one step moves a weight, as a share of the weights' own size, at the highest rate.

    Adam and its kin move every weight by about the rate, whatever the gradient.
    """
    if checkup.evidence is None or not checkup.evidence.weights.start:
        return 0.0
    train, size = checkup.recipe.train, checkup.evidence.weights.start
    if train.optimizer != "sgd":
        return train.learning_rate / size
    norms = checkup.curves.gradients[:, 1]
    norm = min(float(np.median(norms)) if len(norms) else 0.0, train.clip_norm or np.inf)
    count = float(checkup.data.get("parameters", 1e4))
    return train.learning_rate * norm / (1 - train.momentum) / (size * count**0.5)


def _suggest_rates(checkup: Checkup, moves: float, factors: Sequence[float]) -> list[str]:
    """Rates at which a step would move the weights as it does in runs that go well; if that is not known, by guess."""
    rate = checkup.recipe.train.learning_rate
    aims = [rate * aim / moves for aim in MOVES] if moves else [rate * factor for factor in factors]
    return [f"train.learning_rate={min(aim, 100):.1g}" for aim in aims if (aim < rate / 2) == (factors[0] < 1) and aim]


def suspect_high_rate(checkup: Checkup) -> Suspicion | None:
    """A step moves the weights by a seventh of their size or more, or training broke, rose again or got nowhere."""
    moves, rise = measure_movement(checkup), checkup.rise
    broke = checkup.skipped > 0 or rise > 0.2
    if moves < 0.15 and not broke and checkup.skill > STUCK:
        return None
    says = f"A step moves the weights by {moves:.1%} of their size"
    if broke:
        above = f"{rise:.0%} of its fall" if rise < 10 else "far"
        says += f"; the loss ended {above} above its lowest, {checkup.skipped} steps were skipped"
    measured = {"movement": moves, "rise": rise, "skipped": float(checkup.skipped)}
    changes = _suggest_rates(checkup, moves, (1 / 3, 1 / 10))
    large = broke or moves > LARGE
    return Suspicion(f"{says}.", measured, changes, large, HELPS / 2 if large else HELPS) if changes else None


def suspect_low_rate(checkup: Checkup) -> Suspicion | None:
    """A step moves the weights by less than a hundredth, and the loss was still falling, or had not begun to."""
    moves, late = measure_movement(checkup), checkup.late
    if not 0 < moves < 0.01 or (late < 0.3 and checkup.skill > STUCK):
        return None
    return Suspicion(
        f"A step moves the weights by {moves:.2%} of their size, and {late:.0%} of the fall of the loss came in the "
        "second half of training.",
        {"movement": moves, "late": late},
        _suggest_rates(checkup, moves, (3, 10))[::-1],
        moves < 1e-3,
    )


def suspect_exploding_gradients(checkup: Checkup) -> Suspicion | None:
    """Without a limit, the largest gradient was ten times the usual one; or the recurrence starts by stretching."""
    train, norms, body = checkup.recipe.train, checkup.curves.gradients[:, 1], get_architecture(checkup.recipe)
    radius = 0.0 if checkup.evidence is None else checkup.evidence.weights.radius
    peak = float(norms.max() / max(float(np.median(norms)), 1e-12)) if len(norms) else 0.0
    free = not train.clip_norm and not train.clip_value
    if not (free and (peak > 10 or checkup.skipped)) and radius < 1.2:
        return None
    clip = ["train.clip_norm=1"] if free else []
    start = (
        ["model.init_gain=1"]
        if getattr(body, "init_gain", 1) > 1
        else ["model.init=orthogonal"]
        if radius > 1.2
        else []
    )
    return Suspicion(
        f"The largest gradient was {peak:.0f} times the median one, {'unlimited' if free else 'limited'}; the "
        f"recurrent matrix starts with a spectral radius of {radius:.2f}.",
        {"peak": peak, "radius at the start": radius},
        [" ".join(clip + start)] if start else clip,
        bool(free and peak > 10),
    )


def suspect_missing_warmup(checkup: Checkup) -> Suspicion | None:
    """A Transformer of four or more layers normalizes behind them, and warms up for less than a fiftieth."""
    train, body = checkup.recipe.train.resolved(), get_architecture(checkup.recipe)
    share = train.warmup / max(train.steps, 1)
    if body.kind != "transformer" or body.norm != "post" or body.depth < 4 or share > 0.02:
        return None
    return Suspicion(
        f"{body.depth} layers with post-norm, and the warm-up is {share:.1%} of all steps.",
        {"warm-up share": share, "depth": float(body.depth)},
        ["model.norm=pre", f"train.warmup={max(2, train.steps // 10)}"],
        checkup.skill < 0.3,
        slow=True,
    )


def suspect_long_warmup(checkup: Checkup) -> Suspicion | None:
    """The rate rises for more than half of the training."""
    train = checkup.recipe.train.resolved()
    share = train.warmup / max(train.steps, 1)
    change = f"train.warmup={max(1, train.steps // 20)}"
    says = f"The warm-up is {share:.0%} of all steps."
    return Suspicion(says, {"warm-up share": share}, [change], True) if share > 0.5 and train.steps > 20 else None


def suspect_dropout(checkup: Checkup) -> Suspicion | None:
    """Two fifths or more are left out, and the model does not know its training examples better than others."""
    body, evidence = get_architecture(checkup.recipe), checkup.evidence
    names = ("dropout", "recurrent_weight_dropout", "attention_dropout", "zoneout")
    name, share = max(((one, getattr(body, one, 0.0)) for one in names), key=lambda pair: pair[1])
    if share < 0.4 or (evidence is not None and checkup.fitted - checkup.skill > 0.1):
        return None
    gap = 0.0 if evidence is None else (evidence.dropped - evidence.loss) / max(abs(evidence.blind), 1e-9)
    return Suspicion(
        f"With model.{name} {share:g} the loss in training is {gap:.0%} of the blind loss above the loss without it.",
        {name: share, "gap": gap},
        [f"model.{name}=0.1"],
        gap > 0.2,
    )


def suspect_small_batches(checkup: Checkup) -> Suspicion | None:
    """Four examples a step, or fewer."""
    evidence, train = checkup.evidence, checkup.recipe.train
    if evidence is None or evidence.rows * train.accumulate_batches > 4:
        return None
    times = round(24 / max(evidence.rows, 1))
    return Suspicion(
        f"A step sees {evidence.rows * train.accumulate_batches:.1f} examples.",
        {"rows": evidence.rows},
        [f"train.batch_tokens={train.batch_tokens * times}"],
    )


def suspect_small_model(checkup: Checkup) -> Suspicion | None:
    """Eight features or fewer, or vectors of four, training had arrived, or had hardly left, and its examples are known
    no better than others."""
    body, model = get_architecture(checkup.recipe), checkup.recipe.model.resolved()
    if not (width := min(body.sizes)):  # a linear function of the whole window has no layers
        return None
    under_way = checkup.late > 0.3 and checkup.skill > 0.1
    if checkup.evidence is None or checkup.fitted - checkup.skill > 0.1 or under_way:
        return None
    if 0 < model.embedding <= 4 < width:
        return Suspicion(
            f"A token's vector has {model.embedding} features.",
            {"embedding": float(model.embedding)},
            [f"model.embedding={width}"],
        )
    heads = f" model.heads={min(4, body.heads)}" if body.kind == "transformer" and 64 % body.heads else ""
    says, change = f"A layer has {width} features.", f"model.size=64{heads}"
    vector = " model.embedding=64" if model.embedding < 16 else ""
    return Suspicion(says, {"size": float(width)}, [change + vector], helps=2 * HELPS) if width <= 8 else None


def suspect_missing_positions(checkup: Checkup) -> Suspicion | None:
    """A Transformer that cannot tell the order of what it reads."""
    body = get_architecture(checkup.recipe)
    if body.kind != "transformer" or body.positions != "none":
        return None
    says = "Without positions, a Transformer that sees both sides reads a bag of elements."
    return Suspicion(says, {"positions": 0.0}, ["model.positions=rotary"])


def suspect_short_windows(checkup: Checkup) -> Suspicion | None:
    """Backpropagation goes back fewer than sixteen steps of a text."""
    window = checkup.recipe.train.bptt_window
    says = f"Backpropagation goes back {window} steps."
    return Suspicion(says, {"window": float(window)}, ["train.bptt_window=64"]) if 0 < window < 16 else None


# Settings that say what is learned, how much of it and how long, or that other rules speak about.
APART = """
kind size depth embedding bidirectional encoder decoder patch crf hidden quantiles relative channel_independent
patch_length spelling window feed_forward heads max_positions pool tied steps time seed batch_tokens
learning_rate validate_every checkpoint_every shard patience keep_checkpoints bptt_window shuffle warmup ema
class_weights schedule momentum accumulate_batches attention attention_style
"""


def suspect_unusual_setting(name: str, checkup: Checkup) -> Suspicion | None:
    """A setting of the model or of training that is not at its default, where the model has learned less than half."""
    section, key = name.split(".")
    table = getattr(checkup.recipe, section)
    field = type(table).model_fields.get(key)
    if field is None or checkup.skill > 0.5:
        return None
    default, now = field.get_default(call_default_factory=True), getattr(table, key)
    if now == default:
        return None
    written = ",".join(default) if isinstance(default, tuple) else str(default).lower() if default != "" else '""'
    return Suspicion(f"{name} is {now}, not {written or 'empty'}.", {}, [f"{name}={written}"], helps=2 * HELPS)


def _list_setting_names() -> list[str]:
    """Of all tasks and architectures."""
    names = [name.split(".") for task in USES for name in sorted(settings_of(task))]
    unusual = [".".join(path) for path in names if len(path) == 2 and path[0] in ("model", "train")]
    return [name for name in dict.fromkeys(unusual) if name.split(".")[1] not in APART.split()]


UNUSUAL = tuple(
    TriedRule(
        f"unusual {name}",
        partial(suspect_unusual_setting, name),
        "The default went better in a short trial.",
    )
    for name in _list_setting_names()
)
TRIED_RULES = (
    TriedRule("rate too high", suspect_high_rate, "Steps that are too large overshoot the minimum."),
    TriedRule(
        "rate too low", suspect_low_rate, "The steps are so small that training ends before the loss has converged."
    ),
    TriedRule(
        "exploding gradients",
        suspect_exploding_gradients,
        "A recurrent matrix with a spectral radius above 1 makes gradients explode; one such step undoes many others.",
    ),
    TriedRule(
        "no warm-up",
        suspect_missing_warmup,
        "At the start the upper layers' gradients are far larger than the lower ones'; pre-norm or warm-up helps.",
    ),
    TriedRule(
        "endless warm-up", suspect_long_warmup, "Most of training used a learning rate far below the one that is set."
    ),
    TriedRule(
        "too much dropout",
        suspect_dropout,
        "The model does not fit its training examples, so it needs less regularization.",
    ),
    TriedRule("batches too small", suspect_small_batches, "The gradient of a few examples is too noisy."),
    TriedRule("model too small", suspect_small_model, "Its capacity is too small for the task."),
    TriedRule(
        "no positions",
        suspect_missing_positions,
        "A Transformer without positions cannot learn what depends on the order.",
    ),
    TriedRule(
        "short windows",
        suspect_short_windows,
        "Elements further back get no gradient, so the model cannot learn to remember them.",
    ),
)
