"""The doctor speaks where docs/doctor.md and the sentences of its rules say: every threshold tried from both sides."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from seqloom.look.doctor.anatomy import GateUse
from seqloom.look.doctor.evidence import LabelShare, Weights
from seqloom.look.doctor.findings import Checkup
from seqloom.look.measures.gradients import QueryKeyValue

from .test_doctor import (
    EVIDENCE,
    FALL,
    HEALTHY,
    ILL,
    Tried,
    classify,
    depends,
    history,
    ill,
    names,
    recipe,
    remembers,
    sides,
    splits,
)

MANY = 100_000  # examples, so that any share of them is a whole number
RATES = [
    f"train.learning_rate={rate}" for rate in (0.001, 0.002, 0.005)
]  # where a step moves weights of 0.05 as it should


class Edge(NamedTuple):
    """A finding, a value at which nothing is said of it, one at which it is, and a run that has the value."""

    finding: str
    quiet: float
    speaks: float
    make: Callable[[Any], Checkup]


def part(split: str, **report: Any) -> Checkup:
    return replace(HEALTHY, data=splits(**{split: {"examples": MANY, "dropped": 0} | report}))


def count(share: float) -> int:
    return round(share * MANY)


def evident(given: Any = HEALTHY.recipe, **evidence: Any) -> Checkup:
    return replace(HEALTHY, recipe=given, evidence=replace(EVIDENCE, **evidence))


def labels(moved: float) -> Checkup:
    ours, theirs = {"a": 50_000, "b": 50_000}, {"a": 50_000 - count(moved), "b": 50_000 + count(moved)}
    report = splits(train={"sides": sides(balance=ours)}, validation={"sides": sides(balance=theirs)})
    return replace(HEALTHY, recipe=recipe("data.train=a.tsv", "data.validation=b.tsv"), data=report)


def saving(share: float, sick: Checkup) -> Checkup:
    """The same run, whose best validation took this share of the blind loss, 2, away."""
    return replace(sick, curves=history(np.append(np.full(39, 2.0), 2.0 * (1 - share))))


def ended(worse: float, best: int = 15) -> Checkup:
    """Of forty validation losses one was the best; the last was so much above it."""
    validation = np.full(40, 1.0 + worse)
    validation[best] = 1.0
    return replace(HEALTHY, curves=history(FALL, validation))


def gate(mean: float = 0.5, extreme: float = 0.1, keeps: bool = True) -> Checkup:
    return ill(anatomy={"gates": [GateUse("decoder layer 1", "f", keeps, mean, extreme / 2, extreme / 2)]})


def gradients(lowest: float) -> Checkup:
    return ill(anatomy={"gradients": {"decoder layer 1": lowest, "decoder layer 2": 1.0}})


def memory(reach: int, length: int) -> Checkup:
    return ill(evidence={"dependence": depends(reach), "memory": remembers(length)})


def gaining(gain: float, moves: float) -> Checkup:
    """Steps that move the weights by so much, and a trial that leaves so much less of the blind loss."""
    tried = Tried(RATES, now=1.9, then=1.9 - 2.0 * gain)
    return saving(0.2, replace(ill(f"train.learning_rate={0.05 * moves}"), trying=tried))


def risen(share: float) -> Checkup:
    """The training loss ended this share of its fall above its lowest."""
    losses = np.array([2.0, 1.6, 1.3, 1.0, 1.0, 1.0 + share])
    return replace(ill("train.learning_rate=0.004", better=RATES), curves=history(losses, losses + 0.4))


def falling(late: float) -> Checkup:
    """This share of the fall came on the second half of the way, which was walked at one pace."""
    losses = np.concatenate([np.linspace(2.0, 1.0 + late, 40), np.linspace(1.0 + late, 1.0, 41)[1:]])
    pace = ("train.learning_rate=2e-4", "train.steps=4000", "train.warmup=0", "train.schedule=constant")
    return replace(ill(*pace, better=RATES), curves=history(losses, losses + 0.5))


def spiked(peak: float) -> Checkup:
    """Without a limit, the largest gradient was so many times the usual one."""
    sick = ill("model.kind=rnn", "train.clip_norm=0", better=["train.clip_norm=1"])
    norms = np.array([[step, peak if step == 7 else 1.0] for step in range(40)])
    return replace(sick, curves=replace(sick.curves, gradients=norms))


def cut_short(times: float) -> Checkup:
    return replace(ill("train.clip_norm=0.01"), curves=history(np.full(40, 2.0), gradient=0.01 * times))


def stretching(radius: float) -> Checkup:
    weights = {"weights": Weights(0.1, 0.1, radius)}
    return ill("model.kind=rnn", "model.init_gain=3", better=["model.init_gain=1"], evidence=weights)


def stopped(share: float) -> Checkup:
    """At step 2000, after so much of what was meant."""
    return replace(ILL["stopped too early"], recipe=recipe(f"train.steps={round(2000 / share)}", "train.patience=2"))


def warming(share: float, depth: int = 4) -> Checkup:
    """A Transformer that normalizes behind its layers."""
    body = ("model.kind=transformer", "model.norm=post", f"model.depth={depth}")
    better = ["model.norm=pre", "train.warmup=500"]
    return ill(*body, "train.steps=10000", f"train.warmup={round(10_000 * share)}", better=better)


def dropping(share: float, known: float = 0.0) -> Checkup:
    """The training examples are known so much better than others."""
    return ill(f"model.dropout={share}", better=["model.dropout=0.1"], evidence={"loss": 2.0 * (1 - known)})


def wide(size: int, embedding: int) -> Checkup:
    better = ["model.size=64", f"model.embedding={size}"]
    return ill(f"model.size={size}", f"model.embedding={embedding}", better=better)


ONE_LABEL, TAUGHT = "only the most frequent label", "training examples in the scores"
EDGES = {
    # of the data
    "cut": Edge("examples are cut off", 0.049, 0.051, lambda x: part("train", sides=sides(cut=count(x)))),
    "dropped": Edge(
        "examples are cut off", 0.049, 0.051, lambda x: part("train", examples=MANY - count(x), dropped=count(x))
    ),
    "unknown": Edge("unknown tokens", 0.099, 0.101, lambda x: part("train", sides=sides(unknown_share=x))),
    "unknown there": Edge("unknown tokens", 0.099, 0.101, lambda x: part("validation", sides=sides(unknown_share=x))),
    "unmixed": Edge(
        "not shuffled", 0.81, 0.79, lambda x: evident(recipe("train.shuffle=false"), mixed=0.9 * x, drawn=0.9)
    ),
    "alike": Edge("batches too much alike", 0.61, 0.59, lambda x: evident(mixed=x)),
    "nearly every answer": Edge(ONE_LABEL, 0.965, 0.975, lambda x: evident(classify(), usual=LabelShare(x, 0.9))),
    "more than half": Edge(ONE_LABEL, 0.49, 0.51, lambda x: evident(classify(), usual=LabelShare(1.0, x))),
    "but not all": Edge(ONE_LABEL, 0.99, 0.97, lambda x: evident(classify(), usual=LabelShare(1.0, x))),
    "leak": Edge(TAUGHT, 0.099, 0.101, lambda x: part("validation", overlap=count(x))),
    "leak of the test": Edge(TAUGHT, 0.099, 0.101, lambda x: part("test", overlap=count(x))),
    "repeated": Edge("repeated examples", 0.33, 0.34, lambda x: part("train", repeated=count(x))),
    "other labels": Edge("validation data differs", 0.24, 0.26, labels),
    "padding": Edge("padding", 0.39, 0.41, lambda x: replace(HEALTHY, data={"padded_share": x})),
    # of training
    "saved": Edge("nothing to learn", 0.021, 0.019, lambda x: saving(x, ILL["nothing to learn"])),
    "by heart": Edge(
        "nothing to learn", 0.51, 0.49, lambda x: replace(ILL["nothing to learn"], trying=Tried(by_heart=x))
    ),
    "validation rose": Edge("overfitting", 0.09, 0.11, ended),
    "before the last fifth": Edge("overfitting", 34, 31, lambda x: ended(0.5, x)),
    "stopped": Edge("stopped too early", 0.67, 0.65, stopped),
    "shrunk": Edge(
        "decay too strong",
        0.51,
        0.49,
        lambda x: ill("train.weight_decay=5", evidence={"weights": Weights(0.1, 0.1 * x, 0.6)}),
    ),
    "cut short": Edge("gradients clipped too much", 99, 101, cut_short),
    # of what is inside
    "needed lag": Edge("short memory", 15, 16, lambda x: memory(x, 10)),
    "near lag": Edge("short memory", 3, 4, lambda x: memory(x, 1)),
    "forgets": Edge("forgets at once", 0.34, 0.32, gate),
    "vanishing": Edge("vanishing gradient", 1.1e-3, 0.9e-3, gradients),
    "exploding": Edge("exploding gradient", 0.9e3, 1.1e3, gradients),
    "saturated": Edge("saturated gates", 0.89, 0.91, lambda x: gate(extreme=x, keeps=False)),
    "dead": Edge("dead units", 0.29, 0.31, lambda x: ill(anatomy={"dead": {"decoder layer 1": x}})),
    "starved": Edge(
        "starved attention",
        0.011,
        0.009,
        lambda x: ill(anatomy={"attention": [QueryKeyValue("a", x, x / 2, 0.5, (1.0, 1.0, 0.5))]}),
    ),
    # of what is tried
    "large steps": Edge("rate too high", 0.14, 0.16, lambda x: gaining(0.3, x)),
    "gain": Edge("rate too high", 0.049, 0.051, lambda x: gaining(x, 0.2)),
    "gain above a movement": Edge("rate too high", 0.024, 0.026, lambda x: gaining(x, 0.6)),
    "movement": Edge("rate too high", 0.49, 0.51, lambda x: gaining(0.035, x)),
    "rose again": Edge("rate too high", 0.19, 0.21, risen),
    "small steps": Edge(
        "rate too low", 0.011, 0.009, lambda x: replace(falling(0.5), recipe=recipe(f"train.learning_rate={0.05 * x}"))
    ),
    "in full descent": Edge("rate too low", 0.29, 0.33, falling),
    "peak": Edge("exploding gradients", 9.9, 10.1, spiked),
    "radius": Edge("exploding gradients", 1.19, 1.21, stretching),
    "no warm-up": Edge("no warm-up", 0.021, 0.019, warming),
    "few layers": Edge("no warm-up", 3, 4, lambda x: warming(0.01, x)),
    "endless warm-up": Edge(
        "endless warm-up",
        0.49,
        0.51,
        lambda x: ill("train.steps=10000", f"train.warmup={round(10_000 * x)}", better=["train.warmup=500"]),
    ),
    "left out": Edge("too much dropout", 0.39, 0.41, dropping),
    "known no better": Edge("too much dropout", 0.11, 0.09, lambda x: dropping(0.5, x)),
    "few examples": Edge(
        "batches too small",
        5,
        4,
        lambda x: ill(better=["train.batch_tokens=24576", "train.batch_tokens=20480"], evidence={"rows": x}),
    ),
    "few features": Edge("model too small", 10, 8, lambda x: wide(x, 64)),
    "small vectors": Edge("model too small", 5, 4, lambda x: wide(16, x)),
    "short windows": Edge(
        "short windows", 16, 15, lambda x: ill(f"train.bptt_window={x}", better=["train.bptt_window=64"])
    ),
}
# "A run with a skill above 0.9 has no illness; what is inside a model is searched only below 0.3."
INSIDE = ("forgets at once", "vanishing gradient", "exploding gradient", "saturated gates", "dead units")
SKILLED = {
    **{name: 0.3 for name in (*INSIDE, "starved attention")},
    **{name: 0.9 for name in ("short memory", "decay too strong", "rate too high", "exploding gradients")},
    **{name: 0.9 for name in ("no warm-up", "endless warm-up", "too much dropout", "batches too small")},
    **{name: 0.9 for name in ("no positions", "short windows")},
    **{name: 0.5 for name in ("gradients clipped too much", "unusual train.label_smoothing", "unusual train.freeze")},
}


@pytest.mark.parametrize("name", EDGES)
def test_a_rule_speaks_on_one_side_of_its_threshold_and_not_on_the_other(name: str) -> None:
    edge = EDGES[name]
    assert edge.finding not in names(edge.make(edge.quiet))
    assert edge.finding in names(edge.make(edge.speaks))


@pytest.mark.parametrize("name", SKILLED)
def test_a_rule_is_silent_about_a_run_that_has_learned_enough(name: str) -> None:
    assert name not in names(saving(SKILLED[name] + 0.01, ILL[name]))
    assert name in names(saving(SKILLED[name] - 0.01, ILL[name]))
