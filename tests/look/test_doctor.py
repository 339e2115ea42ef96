"""The doctor: each rule speaks about its own illness, prescribes a setting that exists, and is silent on health."""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.config.recipe import Recipe
from seqloom.layers.base import Encoder, last_pool
from seqloom.layers.cells import CELLS
from seqloom.layers.heads import Categorical
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import TransformerConfig, transformer
from seqloom.look.doctor import diagnosis, rules_tried
from seqloom.look.doctor.anatomy import Anatomy, GateUse, MemorySpan, examine, measure_memory_spans
from seqloom.look.doctor.dependence import Dependence
from seqloom.look.doctor.diagnosis import RULES, diagnose
from seqloom.look.doctor.evidence import Evidence, LabelShare, Weights
from seqloom.look.doctor.findings import Checkup, can_change
from seqloom.look.doctor.memory import MemoryReach
from seqloom.look.doctor.perturbation import Perturbation
from seqloom.look.doctor.rules_tried import TRIED_RULES
from seqloom.look.measures.gates import record_traces
from seqloom.look.measures.gradients import QueryKeyValue
from seqloom.look.measures.reading import take_row
from seqloom.look.measures.receptive_field import REACH
from seqloom.look.measures.schedules import read_curves
from seqloom.models import Batch, Labeler

from ..laws.zoo import writer
from .models import MODELS, SIDES, batch_for

SOUND = Anatomy(
    memories=[MemorySpan("decoder", 30, 40)],
    gradients={"decoder layer 1": 0.1, "decoder layer 2": 0.2},
    gates=[GateUse("decoder layer 1", "f", True, 0.8, 0.1, 0.2)],
    dead={"decoder layer 1": 0.0},
    attention=[QueryKeyValue("a", 0.1, 0.1, 0.2, (1.0, 1.0, 1.0))],
    radius={"decoder layer 1, W_h": 1.0},
)


class Tried:
    """Trials whose outcome is known beforehand: the loss is `now`, and with one of `better` settings it is `then`."""

    def __init__(self, better=(), now=1.9, then=1.0, by_heart=0.1):
        self.better, self.now, self.then, self.by_heart = better, now, then, by_heart

    def after(self, *settings):
        return self.then if set(settings) & set(self.better) else self.now


def history(training, validation=None, gradient=1.0):
    validation = training if validation is None else validation
    every = len(training) // len(validation)
    return read_curves(
        [
            {"step": 50 * n + 50, "loss": float(loss), "gradient_norm": gradient}
            | ({"scores": {"loss": float(validation[n // every])}} if n % every == every - 1 else {})
            for n, loss in enumerate(training)
        ]
    )


def remembers(length, longest=40, moved=0.9):
    lags = np.arange(longest)
    return MemoryReach(Perturbation(lags, np.where(lags <= length, moved, 0.0)), np.ones(longest))


def depends(*lags, longest=40):
    return Dependence(np.array([1.0 if lag in lags else 0.0 for lag in range(longest)]))


FALL = 0.3 + 2 * np.exp(-np.arange(40) / 6)
STUCK = history(2.0 + 0.3 * np.exp(-np.arange(40) / 3))
EVIDENCE = Evidence(
    blind=2.0,
    loss=0.3,
    dropped=0.4,
    rows=32.0,
    mixed=0.97,
    drawn=0.97,
    usual=LabelShare(0.2, 0.2),
    weights=Weights(0.05, 0.08, 0.6),
    dependence=depends(0, 3),
    memory=remembers(10),
)


def sides(**source):
    return {"source": {"cut": 0, "unknown_share": 0.0, "whole": 60} | source, "target": {"cut": 0}}


def splits(**changes):
    train = {"examples": 100, "dropped": 1, "repeated": 2, "overlap": 0, "sides": sides()}
    parts = {"train": train, "validation": train | {"overlap": 2}, "test": train}
    return {"padded_share": 0.1, "splits": {part: parts[part] | changes.get(part, {}) for part in parts}}


HEALTHY = Checkup(
    Recipe().resolved(),
    SOUND,
    history(FALL, FALL[::4] + 0.05),
    0,
    {
        "exact": {"value": 0.8, "better": "higher", "baselines": {"copy": 0.1}},
        "errors": {"value": 0.1, "better": "lower", "baselines": {"copy": 0.9}},
    },
    splits(),
    EVIDENCE,
    Tried(),
)
POOR = replace(HEALTHY, curves=STUCK, evidence=replace(EVIDENCE, loss=1.95, dropped=1.95))  # for no reason


def score(value, rival, better):
    return {"value": value, "better": better, "baselines": {"copy": rival}}


def recipe(*settings):
    return Recipe().override(*settings).resolved()


def ill(*settings, better=(), anatomy=(), evidence=(), **changes):
    """A run that has not learned: with these settings, measurements, and a trial that goes well with others."""
    return replace(
        POOR,
        recipe=recipe(*settings),
        anatomy=replace(SOUND, **dict(anatomy)),
        evidence=replace(POOR.evidence, **dict(evidence)),
        trying=Tried(better),
        **changes,
    )


def classify(*settings):
    return Recipe.of({"task": "classify"}).override(*settings).resolved()


LATE = history(np.linspace(2.3, 1.9, 40))
KINDS = ("rnn", "lstm", "peephole", "coupled", "gru", "mingru", "minlstm", "orthogonal", "transformer", "convolution")
ILL = {
    "no better than a baseline": replace(HEALTHY, scores={"errors": score(0.9, 0.5, "lower")}),
    "nothing to learn": ill(evidence={"dependence": depends()}),
    "rate too high": ill("train.learning_rate=0.1", better=["train.learning_rate=0.005"]),
    "rate too low": replace(ill("train.learning_rate=1e-5", better=["train.learning_rate=0.002"]), curves=LATE),
    "exploding gradients": ill(
        "model.kind=rnn",
        "model.init_gain=3",
        "train.clip_norm=0",
        better=["train.clip_norm=1", "model.init_gain=1"],
        evidence={"weights": Weights(0.1, 0.1, 1.7)},
    ),
    "no warm-up": ill(
        *("model.kind=transformer", "model.norm=post", "model.depth=12", "train.steps=2000", "train.warmup=1"),
        better=["model.norm=pre"],
    ),
    "endless warm-up": ill("train.steps=2000", "train.warmup=1500", better=["train.warmup=100"]),
    "too much dropout": ill("model.dropout=0.9", better=["model.dropout=0.1"]),
    "batches too small": ill(better=["train.batch_tokens=49152"], evidence={"rows": 2.0}),
    "model too small": ill("model.size=4", better=["model.size=64"]),
    "no positions": ill("model.kind=transformer", "model.positions=none", better=["model.positions=rotary"]),
    "short windows": ill("train.bptt_window=4", better=["train.bptt_window=64"]),
    "unusual train.label_smoothing": ill("train.label_smoothing=0.9", better=["train.label_smoothing=0.0"]),
    "unusual train.freeze": ill("train.freeze=embed", better=["train.freeze="]),
    "overfitting": replace(HEALTHY, curves=history(FALL, np.concatenate([FALL[:20:4], np.linspace(0.4, 0.9, 5)]))),
    "stopped too early": replace(
        HEALTHY,
        recipe=recipe("train.steps=9000", "train.patience=2"),
        curves=history(FALL + 0.9, FALL[::4] + 0.9),
        evidence=replace(EVIDENCE, loss=1.1),
    ),
    "decay too strong": ill("train.weight_decay=5", evidence={"weights": Weights(0.1, 0.01, 0.6)}),
    "gradients clipped too much": ill("train.clip_norm=0.001"),
    "short memory": ill(evidence={"dependence": depends(30), "memory": remembers(5)}),
    "vanishing gradient": ill(anatomy={"gradients": {"decoder layer 1": 1e-9, "decoder layer 2": 0.1}}),
    "exploding gradient": ill(anatomy={"gradients": {"decoder layer 1": 1e6, "decoder layer 2": 0.1}}),
    "forgets at once": ill(anatomy={"gates": [GateUse("decoder layer 1", "f", True, 0.1, 0.4, 0.0)]}),
    "starved attention": ill(anatomy={"attention": [QueryKeyValue("a", 1e-6, 1e-6, 0.2, (1.0, 1.0, 1.0))]}),
    "saturated gates": ill(anatomy={"gates": [GateUse("decoder layer 1", "o", False, 0.5, 0.5, 0.49)]}),
    "dead units": ill(anatomy={"dead": {"decoder layer 1": 0.6}}),
    "examples are cut off": replace(HEALTHY, data=splits(train={"sides": sides(cut=30, whole=900)})),
    "unknown tokens": replace(HEALTHY, data=splits(validation={"sides": sides(unknown_share=0.4)})),
    "not shuffled": replace(HEALTHY, recipe=recipe("train.shuffle=false"), evidence=replace(EVIDENCE, mixed=0.1)),
    "batches too much alike": replace(HEALTHY, evidence=replace(EVIDENCE, mixed=0.1)),
    "only the most frequent label": replace(
        HEALTHY, recipe=classify(), evidence=replace(EVIDENCE, usual=LabelShare(1.0, 0.9))
    ),
    "training examples in the scores": replace(HEALTHY, data=splits(test={"overlap": 50})),
    "repeated examples": replace(HEALTHY, data=splits(train={"repeated": 60})),
    "validation data differs": replace(
        HEALTHY,
        recipe=recipe("data.train=a.tsv", "data.validation=b.tsv"),
        data=splits(
            train={"sides": sides(balance={"a": 50, "b": 50})}, validation={"sides": sides(balance={"a": 99, "b": 1})}
        ),
    ),
    "padding": replace(HEALTHY, data={"padded_share": 0.6}),
}


def names(checkup):
    return [finding.name for finding in diagnose(checkup)]


def test_health_is_silent():
    assert names(HEALTHY) == []
    assert names(replace(HEALTHY, curves=read_curves([]), scores={}, data={}, evidence=None, trying=None)) == []


@pytest.mark.parametrize("name", ILL)
def test_each_illness_is_named_with_numbers_and_a_setting_that_exists(name):
    found = {finding.name: finding for finding in diagnose(ILL[name])}
    assert name in found, list(found)
    finding = found[name]
    assert 0 < finding.severity <= 1 and finding.says.endswith(".") and finding.why.endswith(".")
    assert finding.measured or name.startswith("unusual")
    ILL[name].recipe.override(*finding.settings)


@pytest.mark.parametrize("name", sorted({*ILL} - {"no better than a baseline"}))
def test_an_illness_comes_first(name):
    assert names(ILL[name])[0] == name


def test_what_no_trial_confirms_is_not_said():
    """The same suspicions, but nothing that is tried goes better. Only a missing warm-up takes longer to show."""
    for name in [cure.name for cure in TRIED_RULES]:
        assert names(replace(ILL[name], trying=Tried())) == (["no warm-up"] if name == "no warm-up" else []), name
    worse = Tried(["model.norm=pre", "train.warmup=200"], then=2.5)
    assert names(replace(ILL["no warm-up"], trying=worse)) == []


def test_without_trials_only_what_is_certain_is_said():
    assert names(replace(ILL["rate too high"], trying=None))[0] == "rate too high"
    mild = replace(ILL["rate too high"], recipe=recipe("train.learning_rate=0.006"), trying=None)
    assert names(mild) == []


def test_a_model_that_has_learned_is_not_searched_for_what_keeps_it_from_learning():
    for name in ("short memory", "forgets at once", "dead units", "vanishing gradient", "rate too high", "no warm-up"):
        learned = replace(ILL[name], curves=history(FALL / 4))
        assert diagnose(learned) == [], name
    assert names(POOR) == []  # nor is anything found where nothing is wrong


def test_where_nothing_can_be_learned_nothing_about_the_model_is_said():
    """A gate that is saturated is no reason, and no setting would help."""
    gates = [GateUse("decoder layer 1", "o", False, 0.5, 0.5, 0.49)]
    drawn = ill(evidence={"dependence": depends()}, anatomy={"gates": gates})
    assert [(finding.name, finding.change) for finding in diagnose(drawn)] == [("nothing to learn", "")]


def test_what_cannot_even_learn_a_few_examples_by_heart_does_not_say_that_there_is_nothing_to_learn():
    assert names(replace(ILL["nothing to learn"], trying=Tried(by_heart=0.95))) == []


@pytest.mark.parametrize(
    ("value", "interval", "better", "baselines", "says"),
    [
        (0.8, [0.7, 0.9], "higher", {"chance": 0.1, "most frequent": 0.3}, None),
        (0.2, [0.1, 0.3], "lower", {"chance": 0.9}, None),
        (0.452, [0.4, 0.5], "higher", {"chance": 0.1, "bag of words": 0.722}, "no better than a baseline"),
        (0.3, [0.2, 0.4], "higher", {"most frequent": 0.35}, "no better than a baseline"),
        (0.8, [0.7, 0.9], "higher", {"bag of words": 0.75}, "not clearly better than a baseline"),
        (1.0, [0.9, 1.1], "lower", {"seasonal": 1.05, "mean": 3.0}, "not clearly better than a baseline"),
        (2.0, None, "lower", {"6-gram": 1.0}, "no better than a baseline"),
        (2.0, None, "nearer", {"random": 1.0}, None),  # what is nearer to a figure is neither above nor below
        (0.5, None, "higher", {}, None),
    ],
)
def test_a_score_that_is_not_clearly_above_its_best_baseline_is_named(value, interval, better, baselines, says):
    """Beside any number of scores that are."""
    one = {"value": value, "better": better, "baselines": baselines} | ({"interval": interval} if interval else {})
    found = diagnose(replace(HEALTHY, scores={**HEALTHY.scores, "this": one}))
    assert [finding.name for finding in found] == ([says] if says else [])
    assert all(f"this is {value:.3g}" in finding.says and not finding.change for finding in found)


def test_of_changes_that_help_alike_the_smallest_is_prescribed():
    better = ["train.learning_rate=0.005", "train.learning_rate=0.002"]
    assert diagnose(ill("train.learning_rate=0.1", better=better))[0].change == better[0]
    assert diagnose(ill("train.learning_rate=0.1", better=better[1:]))[0].change == better[1]


def test_findings_come_the_worst_first():
    both = replace(
        ILL["dead units"], scores=ILL["no better than a baseline"].scores, data=splits() | {"padded_share": 0.6}
    )
    assert names(both) == ["dead units", "no better than a baseline", "padding"]
    assert len({*RULES}) == len(RULES)


@pytest.mark.parametrize("task", ["classify", "seq2seq", "tag", "language", "forecast", "music"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_recipe_takes_whatever_is_prescribed(kind, task, monkeypatch):
    """Every illness on every kind and task: with trials that confirm all, and without."""
    own = Recipe.read(task, f"model.kind={kind}").resolved()
    everything = type("All", (), {"after": lambda self, *settings: 0.5 if settings else 1.9, "by_heart": 0.1})()
    known = cache(lambda change: can_change(own, change))  # asked once for what many illnesses have in common
    for rules in (diagnosis, rules_tried):
        monkeypatch.setattr(rules, "can_change", lambda _, change: known(change))
    prescribed = {
        tuple(finding.settings)
        for sick, trying in itertools.product(ILL.values(), (None, everything))
        for finding in diagnose(replace(sick, recipe=own, trying=trying))
    }
    assert len(prescribed) > 1
    for changes in prescribed:
        own.override(*changes).resolved()


def test_a_change_that_a_kind_does_not_have_is_not_prescribed():
    assert can_change(recipe("model.kind=transformer"), "model.norm=pre")
    assert not can_change(recipe("model.kind=lstm"), "model.norm=pre")
    sick = replace(ILL["dead units"], recipe=recipe("model.kind=rnn", "model.activation=relu"))
    assert [finding.change for finding in diagnose(sick) if finding.name == "dead units"] == ["model.activation=tanh"]


def test_a_window_that_is_too_short_is_opened_and_one_that_is_long_enough_is_not():
    short = ill("model.kind=transformer", "model.window=4", evidence=ILL["short memory"].evidence.__dict__)
    assert diagnose(short)[0].change == "model.window=0" and "cannot see further than 4" in diagnose(short)[0].says
    wide = replace(short, recipe=recipe("model.kind=transformer", "model.window=50"))
    assert "window" not in diagnose(wide)[0].change


def test_a_limit_is_lifted_to_the_longest_example():
    [finding] = diagnose(ILL["examples are cut off"])
    assert finding.change == "data.max_length=900"


def labeler(layer, size=8):
    return Labeler(nn.Embedding(9, 4), Encoder(layer, last_pool), Categorical(size, 3), per_element=False)


BATCH = Batch(torch.randint(9, (4, 30)), torch.ones(4, 30, dtype=torch.bool), torch.zeros(4, dtype=torch.long))


def test_memory_is_measured_as_long_as_it_was_made():
    torch.manual_seed(0)
    leaky = recurrent_encoder(CELLS["rnn-identity"], 4, [8], merge="none")
    for share in (0.5, 0.7, 0.78):
        nn.init.eye_(leaky.layers[0].cell.U.weight).data.mul_(share)
        [span] = measure_memory_spans(labeler(leaky), BATCH)
        assert span.length == int(np.log(REACH) / np.log(share)) and span.longest == 30
    [span] = measure_memory_spans(labeler(transformer(4, TransformerConfig(8, 2, 2, window=4), causal=True)), BATCH)
    assert span.length <= 6  # two layers of a window of four see six steps back


def test_an_encoder_need_not_remember_what_the_decoder_can_look_at():
    def parts_of(name):
        model = MODELS[name]()
        return [span.part for span in measure_memory_spans(model, batch_for(model, SIDES["right"]))]

    assert parts_of("write lstm-luong-dot") == parts_of("write transformer-rotary") == ["decoder"]
    blind = writer("lstm", "gru-both")
    assert [span.part for span in measure_memory_spans(blind, batch_for(blind, SIDES["right"]))] == [
        "decoder",
        "encoder",
    ]


def test_gates_and_units_are_measured_over_the_batch_without_its_padding():
    torch.manual_seed(0)
    model = labeler(recurrent_encoder(CELLS["lstm"], 4, [8], merge="none"))
    cell = model.encoder.layer.layers[0].cell
    for parameter in cell.parameters():
        nn.init.zeros_(parameter)
    for place, value in zip(cell.W.bias.data.chunk(4), (10.0, -2.0, 1.0, -10.0), strict=True):
        nn.init.constant_(place, value)
    found = examine(model, BATCH._replace(mask=BATCH.mask & (torch.arange(30) < 20)))
    gates = {use.gate: use for use in found.gates}
    assert gates["f"].keeps and gates["f"].mean == pytest.approx(1 / (1 + np.exp(2)), rel=1e-5)
    assert (gates["i"].open, gates["i"].closed, gates["o"].closed) == (1, 0, 1)
    assert "forgets at once" in [finding.name for finding in diagnose(replace(POOR, anatomy=found))]


def test_what_is_measured_over_a_batch_is_what_its_rows_show_one_by_one():
    torch.manual_seed(0)
    model = MODELS["label gru-both"]()
    batch = batch_for(model, SIDES["left"])
    rows = [record_traces(model, take_row(batch, row)) for row in range(3)]
    for use in examine(model, batch).gates:
        values = [trace.gates[use.gate] for row in rows for trace in row if trace.name == use.level]
        assert use.mean == pytest.approx(float(np.concatenate(values).mean()), rel=1e-4)


def test_a_unit_that_never_moves_is_dead():
    torch.manual_seed(0)
    model = labeler(recurrent_encoder(CELLS["rnn"], 4, [8], merge="none"))
    cell = model.encoder.layer.layers[0].cell
    cell.W.weight.data[:4] = cell.U.weight.data[:4] = 0
    assert examine(model, BATCH).dead == {"encoder layer 1": 0.5}


@pytest.mark.parametrize(
    "name",
    ["write lstm-bahdanau-additive", "write transformer-rotary", "label gru-both", "talk convolution", "label pooled"],
)
@pytest.mark.parametrize("side", ["left", "empty", "nothing", "one"])
def test_any_model_can_be_examined_on_any_batch(name, side):
    torch.manual_seed(0)
    model = MODELS[name]()
    assert isinstance(diagnose(replace(HEALTHY, anatomy=examine(model, batch_for(model, SIDES[side])))), list)
