"""The doctor: each rule speaks about its own illness, prescribes a setting that exists, and is silent on health."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.layers.base import Encoder, final
from seqloom.layers.cells import CELLS
from seqloom.layers.heads import Categorical
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import transformer
from seqloom.look.anatomy import Anatomy, GateUse, MemorySpan, examine, memories
from seqloom.look.doctor import INSIDE, TRAINING, diagnose
from seqloom.look.findings import Checkup
from seqloom.look.gates import traces
from seqloom.look.gradients import QueryKeyValue
from seqloom.look.reading import single
from seqloom.look.schedules import curves
from seqloom.models import Batch, Labeller
from seqloom.recipe import Recipe

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


def history(training, validation=None, gradient=1.0):
    validation = training if validation is None else validation
    every = len(training) // len(validation)
    return curves(
        [
            {"step": 10 * n, "loss": float(loss), "gradient_norm": gradient}
            | ({"scores": {"loss": float(validation[n // every])}} if n % every == every - 1 else {})
            for n, loss in enumerate(training)
        ]
    )


def score(value, rival, better):
    return {"value": value, "better": better, "baselines": {"copy": rival}}


def cut(source):
    return {"examples": 100, "dropped": 1, "source": {"cut": source}, "target": {"cut": 1}}


FALL = 0.3 + 2 * np.exp(-np.arange(40) / 6)
HEALTHY = Checkup(
    Recipe(),
    SOUND,
    history(FALL, FALL[::4] + 0.05),
    0,
    {
        "exact": {"value": 0.8, "better": "higher", "baselines": {"copy": 0.1}},
        "errors": {"value": 0.1, "better": "lower", "baselines": {"copy": 0.9}},
    },
    {
        "padded_share": 0.1,
        "splits": {"train": {"examples": 100, "dropped": 1, "source": {"cut": 0}, "target": {"cut": 1}}},
    },
)


POOR = history(np.concatenate([np.linspace(2.3, 2.0, 5), np.full(35, 2.0)]))


def inside(**changes):
    return replace(HEALTHY, anatomy=replace(SOUND, **changes), curves=POOR)


def recipe(*settings):
    return Recipe().override(*settings)


DEEP = ("model.kind=transformer", "model.norm=post", "model.depth=12", "train.steps=2000", "train.warmup=1")
KINDS = ("rnn", "lstm", "peephole", "coupled", "gru", "mingru", "minlstm", "orthogonal", "transformer", "convolution")
ILL = {
    "no better than a baseline": replace(HEALTHY, scores={"errors": score(0.9, 0.5, "lower")}),
    "nothing to learn": replace(HEALTHY, curves=history(np.linspace(2, 1, 40), np.linspace(2, 2.5, 10))),
    "unstable training": replace(HEALTHY, curves=history(np.concatenate([FALL[:20], np.full(20, 2.0)]))),
    "no warm-up": replace(
        HEALTHY,
        recipe=recipe(
            "model.kind=transformer", "model.norm=post", "model.depth=12", "train.steps=2000", "train.warmup=1"
        ),
        curves=history(np.linspace(2.3, 2.2, 40)),
    ),
    "too much is left out": replace(HEALTHY, recipe=recipe("model.dropout=0.9"), curves=history(FALL + 1, FALL[::4])),
    "learns by heart": replace(HEALTHY, curves=history(FALL, np.concatenate([FALL[:20:4], np.linspace(0.4, 0.9, 5)]))),
    "still learning when it stopped": replace(HEALTHY, curves=history(np.linspace(2.3, 2.0, 40))),
    "short memory": inside(memories=[MemorySpan("decoder", 5, 40)]),
    "vanishing gradient": inside(gradients={"decoder layer 1": 1e-9, "decoder layer 2": 0.1}),
    "exploding gradient": inside(gradients={"decoder layer 1": 1e6, "decoder layer 2": 0.1}),
    "forgets at once": inside(gates=[GateUse("decoder layer 1", "f", True, 0.1, 0.4, 0.0)]),
    "examples are cut off": replace(HEALTHY, data={"splits": {"train": cut(30)}}),
    "starved attention": inside(attention=[QueryKeyValue("a", 1e-6, 1e-6, 0.2, (1.0, 1.0, 1.0))]),
    "saturated gates": inside(gates=[GateUse("decoder layer 1", "o", False, 0.5, 0.5, 0.49)]),
    "dead units": inside(dead={"decoder layer 1": 0.6}),
    "padding": replace(HEALTHY, data={"padded_share": 0.6}),
}


def test_health_is_silent():
    assert diagnose(HEALTHY) == []
    assert diagnose(replace(HEALTHY, curves=curves([]), scores={}, data={})) == []


@pytest.mark.parametrize("name", ILL)
def test_each_illness_is_named_with_numbers_and_a_setting_that_exists(name):
    found = {finding.name: finding for finding in diagnose(ILL[name])}
    assert name in found, list(found)
    finding = found[name]
    assert 0 < finding.severity <= 1 and finding.measured and finding.says.endswith(".")
    if finding.change:
        ILL[name].recipe.override(finding.change)


def test_a_model_that_has_learnt_is_not_searched_for_what_keeps_it_from_learning():
    for name in ("short memory", "forgets at once", "dead units", "vanishing gradient"):
        assert diagnose(replace(ILL[name], curves=HEALTHY.curves)) == []
    assert diagnose(replace(HEALTHY, curves=POOR)) == []  # nor is anything found where nothing is wrong


def test_findings_come_the_worst_first():
    ill = replace(
        ILL["padding"], curves=POOR, anatomy=ILL["dead units"].anatomy, scores=ILL["no better than a baseline"].scores
    )
    assert [finding.name for finding in diagnose(ill)] == ["no better than a baseline", "dead units", "padding"]
    assert len({*TRAINING, *INSIDE}) == len(TRAINING) + len(INSIDE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["short memory", "vanishing gradient", "exploding gradient", "forgets at once", "dead units"]
)
def test_what_is_prescribed_fits_every_kind_of_body(name, kind):
    ill = replace(ILL[name], recipe=recipe(f"model.kind={kind}"))
    [finding] = [finding for finding in diagnose(ill) if finding.name == name]
    ill.recipe.override(finding.change)


def test_an_exploding_recurrence_without_clipping_is_to_be_clipped():
    ill = replace(ILL["unstable training"], recipe=recipe("train.clip=0"), anatomy=replace(SOUND, radius={"W_h": 3.0}))
    assert diagnose(ill)[0].change == "train.clip=1"
    assert diagnose(ILL["unstable training"])[0].change == "train.rate=0.0001"


def labeller(layer, size=8):
    return Labeller(nn.Embedding(9, 4), Encoder(layer, final), Categorical(size, 3), each=False)


BATCH = Batch(torch.randint(9, (4, 30)), torch.ones(4, 30, dtype=torch.bool), torch.zeros(4, dtype=torch.long))


def test_memory_is_measured_as_long_as_it_was_made():
    torch.manual_seed(0)
    leaky = recurrent_encoder(CELLS["rnn-identity"], 4, [8], merge="none")
    for share in (0.5, 0.8, 0.9):
        nn.init.eye_(leaky.layers[0].cell.U.weight).data.mul_(share)
        [span] = memories(labeller(leaky), BATCH)
        assert span.length == int(np.log(0.05) / np.log(share)) and span.longest == 30
    [span] = memories(labeller(transformer(4, 8, 2, 2, causal=True, window=4)), BATCH)
    assert span.length <= 6  # two layers of a window of four see six steps back


def test_an_encoder_need_not_remember_what_the_decoder_can_look_at():
    def parts_of(name):
        model = MODELS[name]()
        return [span.part for span in memories(model, batch_for(model, SIDES["right"]))]

    assert parts_of("write lstm-luong-dot") == parts_of("write transformer-rotary") == ["decoder"]
    blind = writer("lstm", "gru-both")
    assert [span.part for span in memories(blind, batch_for(blind, SIDES["right"]))] == ["decoder", "encoder"]


def test_gates_and_units_are_measured_over_the_batch_without_its_padding():
    torch.manual_seed(0)
    model = labeller(recurrent_encoder(CELLS["lstm"], 4, [8], merge="none"))
    cell = model.encoder.layer.layers[0].cell
    for parameter in cell.parameters():
        nn.init.zeros_(parameter)
    for place, value in zip(cell.W.bias.data.chunk(4), (10.0, -2.0, 1.0, -10.0), strict=True):
        nn.init.constant_(place, value)
    found = examine(model, BATCH._replace(mask=BATCH.mask & (torch.arange(30) < 20)))
    gates = {use.gate: use for use in found.gates}
    assert gates["f"].keeps and gates["f"].mean == pytest.approx(1 / (1 + np.exp(2)), rel=1e-5)
    assert (gates["i"].open, gates["i"].closed, gates["o"].closed) == (1, 0, 1)
    assert "forgets at once" in [finding.name for finding in diagnose(replace(HEALTHY, anatomy=found, curves=POOR))]


def test_what_is_measured_over_a_batch_is_what_its_rows_show_one_by_one():
    torch.manual_seed(0)
    model = MODELS["label gru-both"]()
    batch = batch_for(model, SIDES["left"])
    rows = [traces(model, single(batch, row)) for row in range(3)]
    for use in examine(model, batch).gates:
        values = [trace.gates[use.gate] for row in rows for trace in row if trace.name == use.level]
        assert use.mean == pytest.approx(float(np.concatenate(values).mean()), rel=1e-4)


def test_a_unit_that_never_moves_is_dead():
    torch.manual_seed(0)
    model = labeller(recurrent_encoder(CELLS["rnn"], 4, [8], merge="none"))
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
