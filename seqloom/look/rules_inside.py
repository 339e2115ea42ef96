"""Rules about what is inside the model: memory, gradients, gates, units, attention. Each says when it speaks.

None of them speaks about a model that has learnt: a gate that is mostly closed, or a memory of three words, may be just
what the task needs.
"""

import numpy as np

from ..recipe import Recipe
from .findings import Checkup, Finding


def short_memory(checkup: Checkup) -> Finding | None:
    """What lies further back than a third of the longest sequence does not move the answer."""
    spans = [span for span in checkup.anatomy.memories if span.longest >= 16 and span.length < span.longest / 3]
    if not spans:
        return None
    worst = min(spans, key=lambda span: span.length / span.longest)
    share = worst.length / worst.longest
    return Finding(
        "short memory",
        0.6 + 0.3 * (1 - share),
        f"The {worst.part or 'model'} remembers about {worst.length} steps of sequences of up to {worst.longest}.",
        {"memory length": float(worst.length), "longest": float(worst.longest)},
        *_remembers(checkup.recipe, worst.part),
    )


def _remembers(recipe: Recipe, part: str) -> tuple[str, str]:
    """The setting that lengthens this body's memory, and why."""
    body = recipe.model.side("encoder" if part == "encoder" else "decoder")
    if body.kind in ("transformer", "convolution", "linear"):
        if body.kind == "transformer":
            return "model.window=0", "Nothing outside the window can be seen, except through the layers between."
        return "model.kind=lstm", "A window cannot see further than it is wide, times the number of layers."
    if body.kind in ("lstm", "peephole", "coupled"):
        return (
            f"model.forget_bias={max(2.0, body.forget_bias + 2):g}",
            "The higher the bias, the longer the memory c lives.",
        )
    if body.kind in ("gru", "mingru", "minlstm"):
        return "model.kind=lstm", "An LSTM's forget gate can be opened from the start by model.forget_bias."
    return "model.kind=lstm", "Without gates, every step multiplies what is remembered by the same matrix."


def vanishing(checkup: Checkup) -> Finding | None:
    """The gradient of one part's lowest layer is a thousandth of its highest one's, or a thousand times it."""
    by_part: dict[str, list[float]] = {}
    for level, norm in checkup.anatomy.gradients.items():
        by_part.setdefault(level.split(" ")[0], []).append(norm)
    ratios = {part: (norms[0] + 1e-30) / (norms[-1] + 1e-30) for part, norms in by_part.items() if len(norms) > 1}
    if not ratios:
        return None
    part, ratio = max(ratios.items(), key=lambda pair: abs(np.log(pair[1])))
    if 1e-3 < ratio < 1e3:
        return None
    transformer = checkup.recipe.model.kind == "transformer"
    explodes = ratio > 1
    cure = "model.norm=pre" if transformer else "train.clip=1" if explodes else "model.kind=lstm"
    return Finding(
        "exploding gradient" if explodes else "vanishing gradient",
        0.75,
        f"From the {part}'s highest layer to its lowest the gradient changes by a factor of {ratio:.1e}.",
        {"ratio": float(ratio)},
        cure,
        "Layers that get no gradient do not learn; layers that get too much of it learn nothing else.",
    )


def forgetting(checkup: Checkup) -> Finding | None:
    """The gate that keeps is open by less than a third on average, at every step."""
    keeps = [use for use in checkup.anatomy.gates if use.keeps]
    worst = min(keeps, key=lambda use: use.mean, default=None)
    if worst is None or worst.mean > 0.33:
        return None
    return Finding(
        "forgets at once",
        0.7,
        f"Gate {worst.gate} of {worst.level} keeps {worst.mean:.0%}: after three steps {worst.mean**3:.1%} is left.",
        {"mean": worst.mean, "closed": worst.closed},
        "model.forget_bias=1" if worst.gate == "f" else "model.kind=lstm",
        "What is forgotten at every step cannot be learnt to be remembered: no gradient comes back along it.",
    )


def saturated(checkup: Checkup) -> Finding | None:
    """More than nine in ten openings of a gate are as good as closed or open."""
    worst = max(checkup.anatomy.gates, key=lambda use: use.closed + use.open, default=None)
    if worst is None or worst.closed + worst.open < 0.9:
        return None
    return Finding(
        "saturated gates",
        0.5,
        f"Gate {worst.gate} of {worst.level} is closed in {worst.closed:.0%}, open in {worst.open:.0%} of all cases.",
        {"closed": worst.closed, "open": worst.open},
        f"train.rate={checkup.recipe.train.rate / 3:.2g}",
        "Where a gate is saturated its slope is nearly zero, so it cannot change its mind any more.",
    )


def dead_units(checkup: Checkup) -> Finding | None:
    """More than three in ten units of a level say the same whatever is read."""
    level, share = max(checkup.anatomy.dead.items(), key=lambda pair: pair[1], default=("", 0.0))
    if share < 0.3:
        return None
    relu = checkup.recipe.model.activation == "relu"
    return Finding(
        "dead units",
        0.45,
        f"{share:.0%} of the units of {level} say the same whatever is read.",
        {"share": share},
        "model.activation=" + ("gelu" if checkup.recipe.model.kind == "transformer" else "tanh")
        if relu
        else f"train.rate={checkup.recipe.train.rate / 3:.2g}",
        "A unit whose slope is zero everywhere gets no gradient and stays dead.",
    )


def starved(checkup: Checkup) -> Finding | None:
    """Queries and keys get less than a hundredth of the gradient that values get, each by the size of its weights."""
    shares = {}
    for one in checkup.anatomy.attention:
        query, key, value = (
            g / max(w, 1e-12) for g, w in zip((one.query, one.key, one.value), one.weights, strict=True)
        )
        if value > 0:
            shares[one.name] = max(query, key) / value
    if not shares:
        return None
    name, share = min(shares.items(), key=lambda pair: pair[1])
    if share > 0.01:
        return None
    return Finding(
        "starved attention",
        0.55,
        f"In {name} queries and keys get {share:.1e} of the gradient that values get: it cannot learn where to look.",
        {"share": share},
        "model.norm=pre",
        "Attention that is uniform, or all on one place, has almost no slope.",
    )
