"""Charts: every one is valid, says its tokens, stays small when sequences are long, and is saved in every form."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from seqloom.look import Look
from seqloom.look.charts.base import make_token_axis, pool, render, save, split_axis
from seqloom.look.charts.classes import lengths_chart
from seqloom.look.charts.drawing import choose_steps, draw_model
from seqloom.look.charts.lines import cost_chart, decay_chart, gates_chart, memory_path_chart, scalar_chart
from seqloom.look.charts.maps import (
    attention_chart,
    field_chart,
    flow_chart,
    flow_history_chart,
    heads_chart,
    units_chart,
)
from seqloom.look.charts.tokens import attribution_chart, map_chart, neighbors_chart, next_chart, probe_chart
from seqloom.look.charts.training import (
    curves_chart,
    schedule_chart,
    training_flow_chart,
    training_spectra_chart,
    updates_chart,
)
from seqloom.look.measures.attention import AttentionMap
from seqloom.look.measures.attribution import Attribution
from seqloom.look.measures.costs import Cost
from seqloom.look.measures.gates import Trace, UnitValues
from seqloom.look.measures.gradients import GradientFlow
from seqloom.look.measures.jacobians import Decay
from seqloom.look.measures.next_tokens import NextTokens, predict_next_tokens
from seqloom.look.measures.probes import Probe
from seqloom.look.measures.reading import Names
from seqloom.look.measures.receptive_field import ReceptiveField
from seqloom.look.measures.schedules import LearningRates, read_curves
from seqloom.look.measures.spectra import compute_scalar_decay
from seqloom.look.measures.vectors import Map, Neighbors
from seqloom.look.parts import list_parts
from seqloom.look.watching import WatchedTraining
from seqloom.models import Generator

from .models import MODELS, SIDES, batch_for

WORDS = [f"w{number}" for number in range(1000)]


def rows_of(chart):
    """All data of a chart, wherever it stands."""
    return [row for rows in json.loads(render(chart, ".json"))["datasets"].values() for row in rows]


def look_at(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    batch = batch_for(model, SIDES["right"])
    source = isinstance(model, Generator) and model.source is not None
    read = list("abcdef")[: int(batch.source[1][0].sum())] if source else list("abcdef")
    told = list("uvwxyz") if isinstance(model, Generator) or model.per_element else ["good"]
    return Look(model, (batch, read, told), "a title")


@pytest.mark.parametrize(
    "name", ["label pooled", "tag transformer-window", "write transformer-rotary", "talk mingru", "talk convolution"]
)
def test_every_view_that_fits_a_model_can_be_drawn(name):
    look = look_at(name)
    views = look.views
    assert {"model", "gradients", "field", "attribution"} <= set(views)
    assert ("order" in views) == (len(look.names.source or look.names.inputs) > 1)
    for view, make in views.items():
        chart = make()
        if view == "model":
            ElementTree.fromstring(chart.svg)
            assert "image/svg+xml" in chart._repr_mimebundle_()
        else:
            spec = json.loads(render(chart, ".json"))  # Altair has checked it against the schema
            assert spec["title"]["text"].strip() and any(spec["datasets"].values()), view
    assert ("gates" in views) == (name in ("label pooled", "write transformer-rotary", "talk mingru"))
    assert ("heads" in views) == ("transformer" in name)
    assert {"next", "embedding"} <= set(views) and rows_of(look.neighbors("3"))


OVER_TRAINING = WatchedTraining(
    np.arange(1, 5001), ["a", "b"], np.ones((5000, 2)), np.zeros((5000, 2)), ["W"], np.ones((5000, 1, 4))
)
LONG = {
    "attention": lambda: attention_chart(
        AttentionMap(WORDS, WORDS, np.full((1, 1000, 1000), 1e-3, np.float32), ["one"])
    ),
    "heads": lambda: heads_chart(
        [
            AttentionMap(
                WORDS[:200],
                WORDS[:200],
                np.full((144, 200, 200), 5e-3, np.float32),
                [f"layer {1 + n // 12}, head {1 + n % 12}" for n in range(144)],
            )
        ]
    ),
    "all heads": lambda: attention_chart(
        AttentionMap(
            WORDS[:200],
            WORDS[:200],
            np.full((144, 200, 200), 5e-3, np.float32),
            [f"layer {1 + n // 12}, head {1 + n % 12}" for n in range(144)],
        )
    ),
    "gradients": lambda: flow_chart([GradientFlow("inputs", ["a", "b"], WORDS, np.ones((2, 1000)))]),
    "field": lambda: field_chart(ReceptiveField(WORDS, WORDS[:64], np.ones((64, 1000)))),
    "units": lambda: units_chart([UnitValues("a", "h", "a.h", WORDS, np.ones((1000, 512)), False)]),
    "gradients over training": lambda: flow_history_chart(
        [(f"step {n}", [GradientFlow("inputs", ["a", "b"], WORDS, np.ones((2, 1000)))]) for n in range(24)]
    ),
    "gates": lambda: gates_chart([Trace("a", WORDS, {"f": np.ones((1000, 8))}, {})]),
    "kept": lambda: memory_path_chart([Trace("a", WORDS, {"f": np.full((1000, 8), 0.5)}, {})]),
    "decay": lambda: decay_chart([Decay("a", 2.0 ** -np.arange(1000.0), np.ones(1000), np.inf * np.ones(1000))]),
    "scalar": lambda: scalar_chart(compute_scalar_decay([0.5, 2.0], lags=2000)),
    "flow": lambda: training_flow_chart(OVER_TRAINING),
    "updates": lambda: updates_chart(OVER_TRAINING),
    "spectra": lambda: training_spectra_chart(OVER_TRAINING),
    "map": lambda: map_chart(Map(WORDS * 30, np.ones((30000, 2)), (0.5, 0.1))),
    "next": lambda: next_chart(
        NextTokens(
            WORDS, WORDS, (1.0,), np.zeros((1000, 5), int), np.ones((1, 1000, 5)), np.ones((1, 1000)), np.ones(1000)
        ),
        WORDS,
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_thousand_steps_and_a_hundred_heads_stay_usable(name):
    chart = LONG[name]()
    assert len(json.dumps(chart.to_dict())) < 2_500_000
    assert 0 < len(rows_of(chart)) <= 24_000


def test_pooling_keeps_the_mass_of_attention_and_the_largest_influence():
    values = np.random.default_rng(0).random((50, 70))
    rows, columns = split_axis(50, 7), split_axis(70, 9)
    assert [part.start for part in rows] == [0, *[part.stop for part in rows][:-1]] and rows[-1].stop == 50
    np.testing.assert_allclose(pool(values, rows, columns, "sum").sum(1), [values[part].sum(1).mean() for part in rows])
    assert pool(values, split_axis(50, 50), columns, "max").max() == values.max()
    assert pool(values, split_axis(50, 50), split_axis(70, 70)) is values
    assert split_axis(0, 5) == []


def test_a_map_can_be_picked_and_shows_the_mean_at_first():
    weights = np.stack([np.eye(3), np.ones((3, 3)) / 3]).astype(np.float32)
    chart = attention_chart(AttentionMap(list("abc"), list("xyz"), weights, ["layer 1, head 1", "layer 1, head 2"]))
    spec = chart.to_dict()
    [param] = spec["params"]
    assert param["bind"]["options"] == ["mean of all", "layer 1, head 1", "layer 1, head 2"]
    assert param["value"] == "mean of all"
    first = [row for row in rows_of(chart) if row["map"] == "mean of all" and row["row"] == row["column"] == 0]
    assert first[0]["value"] == pytest.approx(2 / 3, abs=1e-3)


def test_small_charts_say_what_they_are_given():
    record = {"step": 10, "loss": 2.0, "gradient_norm": 1.0, "scores": {"loss": 1.5}}
    assert [row["of"] for row in rows_of(curves_chart(read_curves([record])))] == ["training", "validation"]
    assert rows_of(schedule_chart(LearningRates(np.array([1, 2]), np.array([0.1, 0.2]), np.ones(2)))) == [
        {"step": 1, "rate": 0.1},
        {"step": 2, "rate": 0.2},
    ]
    assert rows_of(probe_chart([Probe("a", 0.9, 0.5, 10)])) == [{"layer": "a", "accuracy": 0.9, "majority": 0.5}]
    assert rows_of(neighbors_chart([Neighbors("x", [" "], np.array([0.5]))])) == [
        {"asked": "x", "symbol": "␣", "rank": 0, "cosine": 0.5}
    ]
    cost = cost_chart([Cost("gru", 8, 100, 0.001, 0.002, 1_000_000)])
    assert rows_of(cost)[0]["body"] == "gru (100 parameters)" and rows_of(cost)[0]["memory"] == 1
    assert attribution_chart([]).to_dict()


def test_an_attribution_of_a_certain_answer_says_why_it_has_no_bars():
    certain = Attribution("occlusion", "x", ["a", "b"], np.zeros(2), -1e-20, -0.8)
    drawn = json.dumps(attribution_chart([certain]).to_dict())
    assert "no bars: the answer is as sure without any one" in drawn
    assert "Log-probability of x: 0 nats (100.0%); with nothing read -0.8 nats (44.9%)" in drawn


HOSTILE = '</script><script>alert("x")</script>'


def test_no_text_of_a_chart_becomes_part_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.look.charts.base.make_library_tag", lambda: "<script>const vegaEmbed = 1</script>")
    found = AttentionMap([HOSTILE, '"', "\\"], [HOSTILE], np.full((1, 1, 3), 0.3, np.float32), ["one"], HOSTILE)
    page = render(attention_chart(found), ".html").decode()
    assert page.count("<script") == page.count("</script>") == 2 and "<title>&lt;/script" in page
    spec = json.loads(re.search(r'vegaEmbed\("#chart", (.*), \{theme', page)[1])
    assert spec == attention_chart(found).to_dict()
    assert not re.search(r'(src|href)="', page)
    names = Names([HOSTILE] * 6, [HOSTILE] * 6, [HOSTILE])
    model = MODELS["write lstm-luong-dot"]()
    ElementTree.fromstring(draw_model(model, batch_for(model, SIDES["right"]), names, HOSTILE).svg)


@pytest.mark.parametrize(("ending", "beginning"), [(".png", b"\x89PNG"), (".svg", b"<svg"), (".json", b"{")])
def test_charts_are_saved(tmp_path, ending, beginning):
    path = save(gates_chart([Trace("a", ["x", "y"], {"f": np.ones((2, 8))}, {})]), tmp_path / "new" / f"gates{ending}")
    assert path.read_bytes().startswith(beginning)
    if ending == ".svg":
        ElementTree.fromstring(path.read_text())
        assert "prefers-color-scheme: dark" in path.read_text()


def test_gates_of_several_layers_over_a_long_input_can_be_zoomed_and_pointed_at(tmp_path):
    gates = {name: np.ones((100, 8)) for name in "rz"}
    chart = gates_chart([Trace(layer, WORDS[:100], gates, {}) for layer in ("forwards", "backwards")])
    assert save(chart, tmp_path / "gates.png").read_bytes().startswith(b"\x89PNG")
    spec = chart.to_dict()
    named = [view["name"] for row in spec["vconcat"] for panel in row["hconcat"] for view in panel["layer"][-1:]]
    assert len(set(named)) == 4
    for param in spec["params"]:  # the cursor is that of all panels, a zoom that of one
        assert len(set(named) & set(param["views"])) == (4 if param["name"] == "cursor_0" else 1)


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_what_no_picture_can_hold_is_drawn_as_a_sign_for_it(tmp_path, ending):
    tokens = ["a\x1e", "\x00", "\ufffe", "d"]
    chart = attention_chart(AttentionMap(tokens, tokens, np.full((1, 4, 4), 0.25, np.float32), ["\x1b head"]))
    drawn = save(chart, tmp_path / f"attention{ending}").read_bytes()  # the converter ended the process
    assert (
        drawn.startswith(b"\x89PNG") if ending == ".png" else all(sign in drawn.decode() for sign in ("a␞", "␀", "␛"))
    )


@pytest.mark.parametrize(
    ("ending", "beginning"), [(".html", b"<!DOCTYPE"), (".png", b"\x89PNG"), (".svg", b"<svg"), (".json", b"[")]
)
def test_drawings_are_saved(tmp_path, ending, beginning):
    model = MODELS["write transformer-rotary"]()
    drawing = draw_model(model, batch_for(model, SIDES["right"]))
    assert save(drawing, tmp_path / f"model{ending}").read_bytes().startswith(beginning)


@pytest.mark.parametrize("name", MODELS)
def test_a_drawing_counts_every_parameter_once(name):
    model = MODELS[name]()
    batch = batch_for(model, SIDES["right"])
    found = list_parts(model, batch)
    assert sum(part.parameters for part in found) == sum(parameter.numel() for parameter in model.parameters())
    svg = draw_model(model, batch).svg
    ElementTree.fromstring(svg)
    assert all(part.name.replace("&", "&amp;") in svg for part in found)


def test_a_drawing_has_a_box_for_each_step_and_arrows_in_time():
    model = MODELS["talk gru"]()
    batch = batch_for(model, SIDES["right"])
    svg = ElementTree.fromstring(draw_model(model, batch, Names(list("abcdef"), list("bcdefg"), [])).svg)
    boxes = [part for part in svg.iter() if part.tag.endswith("rect")]
    assert len(boxes) == 6 * 4  # embedding, two layers, head
    level = [part.get("d") for part in svg.iter() if part.tag.endswith("path") and part.get("class") == "arrow"]
    assert sum(1 for path in level if path.split()[1] == path.split()[3]) == 2 * 5
    assert choose_steps(10) == [0, 1, 2, 3, None, 9] and choose_steps(3) == [0, 1, 2]


def test_a_legend_names_only_lines_that_are_drawn():
    plain, gated = (Decay("a", np.ones(3), np.ones(3), bound) for bound in (np.ones(3), None))
    for decays, count in (([plain, gated], 3), ([gated], 2)):
        encoding = decay_chart(decays).to_dict()["concat"][0]["encoding"]
        assert (
            len(encoding["color"]["scale"]["domain"])
            == count
            == len({row["kind"] for row in rows_of(decay_chart(decays))})
        )


def test_self_attention_has_tokens_on_both_axes():
    tokens = [f"token{n}" for n in range(20)]
    maps = AttentionMap(tokens, tokens, np.full((2, 20, 20), 0.05, np.float32), ["layer 1, head 1", "layer 1, head 2"])
    [panel] = heads_chart([maps]).to_dict()["vconcat"]
    for axis in ("x", "y"):
        assert "token19" in panel["encoding"][axis]["axis"]["labelExpr"]
        assert len(panel["encoding"][axis]["axis"]["values"]) == 20
    assert "attends" in panel["title"]["subtitle"][0] and "attended to" in panel["title"]["subtitle"][0]


@pytest.mark.parametrize("length", [1, 2, 3, 12])
def test_labels_of_an_axis_do_not_collide(length):
    names = ["a" * length] * 500
    axis = make_token_axis(names, "element", across=True)
    between = 640 / len(names) * (axis.values[1] - axis.values[0])
    assert between >= (7 * length if axis.labelAngle == 0 else 12)


def test_a_slider_moves_the_temperature():
    model = MODELS["talk gru"]()
    batch = batch_for(model, SIDES["right"])
    spec = next_chart(predict_next_tokens(model, batch), [str(n) for n in range(100)]).to_dict()
    [slider] = spec["params"]
    expression = spec["layer"][0]["transform"][0]["calculate"]
    place = eval(re.search(r"\[(.*)\]", expression)[1], {"temperature": 0.7, "round": round})
    step = slider["bind"]["step"]
    assert slider["bind"]["min"] + place * step == pytest.approx(0.7)
    [one] = predict_next_tokens(model, batch, temperatures=[0.7]).probabilities
    rows = rows_of(next_chart(predict_next_tokens(model, batch), [str(n) for n in range(100)]))
    found = {(row["step"], row["rank"] - 1): row["at"][place] for row in rows}
    np.testing.assert_allclose([found[place] for place in np.ndindex(one.shape)], one.ravel(), rtol=1e-3)


def test_names_on_a_map_do_not_lie_on_each_other():
    places = np.random.default_rng(0).normal(size=(300, 2))
    rows = [row for row in rows_of(map_chart(Map(WORDS[:300], places, (0.5, 0.1)))) if row["label"]]
    spread = places.max(0) - places.min(0)
    points = [np.array([row["x"], row["y"]]) / spread * (560, 460) for row in rows]
    apart = [abs(a - b) for n, a in enumerate(points) for b in points[:n]]
    assert len(rows) > 20 and all(x > 20 or y > 12 for x, y in apart)


def test_quality_by_length_has_a_panel_for_each_score():
    bins = {"1–4": {"value": 0.5, "examples": 10}, "5–9": {"value": 0.25, "examples": 30}}
    chart = lengths_chart({"exact": {"value": 0.3125, "by_length": bins}, "BLEU": {"value": 20.0, "by_length": bins}})
    assert len(chart.to_dict()["vconcat"]) == 2
    rows = rows_of(chart)
    assert {"length": "5–9 (30)", "value": 0.25} in rows and {"whole": 0.3125} in rows
