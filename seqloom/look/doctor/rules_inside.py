"""Rules about what is inside the model: memory, gradients, gates, units, attention. Each says when it speaks.

A gate that is mostly closed, or a memory of three words, may be just what the task needs: so they speak about memory
only where the data asks for more, and about the rest only where the model has learned little.
"""

import numpy as np

from ...architectures import Architecture
from ...config.recipe import Recipe
from .findings import Checkup, Finding
from .rules_tried import get_architecture

LITTLE = 0.3  # of the blind loss: a model that saved more is not searched for what keeps it from learning
NEAR = 4  # steps: what is needed from nearer than this is learned in time
FACTOR = 1.5  # how far off the memory length may be, as measured in docs/doctor.md


def check_memory_length(checkup: Checkup) -> Finding | None:
    """The answer depends on elements further back than the model remembers, and it is not known well without them."""
    evidence = checkup.evidence
    if evidence is None or evidence.memory is None or checkup.skill > 0.9:
        return None
    reach, memory = evidence.dependence.reach, evidence.memory.length
    if reach <= FACTOR * memory or reach < NEAR:
        return None
    visible = compute_reach(get_architecture(checkup.recipe), checkup.recipe.model.reads_ahead)
    change, why = suggest_longer_memory(checkup.recipe, visible is not None and visible < reach)
    blind = f"; it cannot see further than {visible}" if visible is not None and visible < reach else ""
    return Finding(
        "short memory",
        0.9 if blind else 0.85,
        f"The answer depends on the input {reach} steps back ({evidence.dependence.bits[reach]:.2f} bits), but the "
        f"model remembers {memory:.0f}{blind}.",
        {"memory length": memory, "needed": float(reach), "bits": float(evidence.dependence.bits[reach])},
        change,
        why,
    )


def compute_reach(body: Architecture, ahead: bool) -> int | None:
    """How far a body that sees through a window can see at all; None if there is no limit."""
    layers = len(body.sizes)
    if body.kind == "transformer":
        return layers * (body.window if ahead else body.window - 1) if body.window else None
    if hasattr(body, "kernel_size"):
        both = ahead and body.bidirectional
        return layers * (body.kernel_size // 2 if both else body.kernel_size - 1)
    return None


def suggest_longer_memory(recipe: Recipe, blind: bool) -> tuple[str, str]:
    """The setting that lengthens this body's memory, and why."""
    body = get_architecture(recipe)
    if blind and body.kind == "transformer":
        return "model.window=0", "Nothing outside the window can be seen, except through the layers between."
    if blind:
        return "model.kind=lstm", "A window cannot see further than it is wide, times the number of layers."
    if body.kind in ("lstm", "peephole", "coupled") and body.forget_bias < 3:
        bias = 1.0 if body.forget_bias < 0 else body.forget_bias + 2
        return f"model.forget_bias={bias:g}", "The higher the bias, the longer the memory c lives."
    if body.kind == "transformer":
        steps = 3 * recipe.train.resolved().steps
        return f"train.steps={steps}", "A Transformer sees all of it; to find the place takes time."
    return "model.kind=lstm model.forget_bias=3", "An LSTM's memory passes through a gate that starts out open."


def check_forget_gate(checkup: Checkup) -> Finding | None:
    """The gate that keeps is open by less than a third on average, at every step."""
    keeps = [use for use in checkup.anatomy.gates if use.keeps]
    worst = min(keeps, key=lambda use: use.mean, default=None)
    if worst is None or worst.mean > 0.33 or checkup.skill > LITTLE:
        return None
    bias: float | None = getattr(get_architecture(checkup.recipe), "forget_bias", None)
    return Finding(
        "forgets at once",
        0.88 if bias is not None and bias < 0 else 0.7,
        f"Gate {worst.gate} of {worst.level} keeps {worst.mean:.0%}: after three steps {worst.mean**3:.1%} is left.",
        {"mean": worst.mean, "closed": worst.closed},
        "model.forget_bias=1" if bias is not None else "model.kind=lstm model.forget_bias=1",
        "With a closed forget gate no gradient flows back, so the network cannot learn to remember.",
    )


def check_gradient_flow(checkup: Checkup) -> Finding | None:
    """The gradient of one part's lowest layer is a thousandth of its highest one's, or a thousand times it."""
    by_part: dict[str, list[float]] = {}
    for level, norm in checkup.anatomy.gradients.items():
        by_part.setdefault(level.split(" ")[0], []).append(norm)
    ratios = {part: (norms[0] + 1e-30) / (norms[-1] + 1e-30) for part, norms in by_part.items() if len(norms) > 1}
    if not ratios or checkup.skill > LITTLE:
        return None
    part, ratio = max(ratios.items(), key=lambda pair: abs(np.log(pair[1])))
    if 1e-3 < ratio < 1e3:
        return None
    transformer = get_architecture(checkup.recipe).kind == "transformer"
    explodes = ratio > 1
    cure = "model.norm=pre" if transformer else "train.clip_norm=1" if explodes else "model.kind=lstm"
    return Finding(
        "exploding gradient" if explodes else "vanishing gradient",
        0.7,
        f"From the {part}'s highest layer to its lowest the gradient changes by a factor of {ratio:.1e}.",
        {"ratio": float(ratio)},
        cure,
        "Layers with a vanished gradient do not learn; an exploding one makes training unstable.",
    )


def check_saturation(checkup: Checkup) -> Finding | None:
    """More than nine in ten openings of a gate are as good as closed or open."""
    worst = max(checkup.anatomy.gates, key=lambda use: use.closed + use.open, default=None)
    if worst is None or worst.closed + worst.open < 0.9 or checkup.skill > LITTLE:
        return None
    return Finding(
        "saturated gates",
        0.56,
        f"Gate {worst.gate} of {worst.level} is closed in {worst.closed:.0%}, open in {worst.open:.0%} of all cases.",
        {"closed": worst.closed, "open": worst.open},
        f"train.learning_rate={checkup.recipe.train.learning_rate / 3:.2g}",
        "The derivative of a saturated gate is nearly zero, so it hardly learns any more.",
    )


def check_dead_units(checkup: Checkup) -> Finding | None:
    """More than three in ten units of a level have the same value for every input."""
    level, share = max(checkup.anatomy.dead.items(), key=lambda pair: pair[1], default=("", 0.0))
    if share < 0.3 or checkup.skill > LITTLE:
        return None
    body = get_architecture(checkup.recipe)
    squash = f"model.activation={'gelu' if body.kind == 'transformer' else 'tanh'}"
    return Finding(
        "dead units",
        0.55,
        f"{share:.0%} of the units of {level} have the same value for every input.",
        {"share": share},
        squash
        if getattr(body, "activation", "") == "relu"
        else f"train.learning_rate={checkup.recipe.train.learning_rate / 3:.2g}",
        "A unit whose derivative is zero everywhere gets no gradient and stays dead.",
    )


def check_query_key_gradients(checkup: Checkup) -> Finding | None:
    """Queries and keys get less than a hundredth of the gradient that values get, each by the size of its weights."""
    shares = {}
    for one in checkup.anatomy.attention:
        query, key, value = (
            g / max(w, 1e-12) for g, w in zip((one.query, one.key, one.value), one.weights, strict=True)
        )
        if value > 0:
            shares[one.name] = max(query, key) / value
    name, share = min(shares.items(), key=lambda pair: pair[1], default=("", 1.0))
    if share > 0.01 or checkup.skill > LITTLE:
        return None
    return Finding(
        "starved attention",
        0.57,
        f"In {name} queries and keys get {share:.1e} of the gradient that values get: it cannot learn where to attend.",
        {"share": share},
        "model.norm=pre"
        if getattr(get_architecture(checkup.recipe), "norm", "pre") != "pre"
        else f"train.steps={3 * checkup.recipe.train.steps}",
        "Attention that is uniform, or all on one position, has almost no gradient.",
    )
