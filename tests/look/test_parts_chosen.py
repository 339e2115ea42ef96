"""One part of a model in a view: a kind of attention, or a level of a recurrence."""

import json

import pytest
from typer.testing import CliRunner

from seqloom import Recipe, load, train
from seqloom.cli.main import build_app
from seqloom.errors import RecipeError

PAIRS = [(text, text[::-1]) for text in ("abc", "bca", "cab", "abcd") * 6]


@pytest.fixture(scope="module")
def looks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for kind in ("transformer", "gru"):
        recipe = Recipe.of({"task": "seq2seq"}).override("model.size=8", f"model.kind={kind}", "train.steps=1")
        list(train(recipe, folder / kind, examples=PAIRS))
    return {kind: load(folder / kind).look("abc", answer="cba") for kind in ("transformer", "gru")}, folder


def test_every_kind_of_attention_can_be_chosen(looks):
    look = looks[0]["transformer"]
    parts = [found.part for found in look.measure("heads")]
    assert sorted(parts) == ["decoder.cross", "decoder.self", "encoder.self"]
    whole = json.dumps(look.heads().to_dict())
    for part in parts:
        alone = json.dumps(look.heads(part=part).to_dict())
        assert len(alone) < len(whole)
    with pytest.raises(RecipeError, match="the view heads has no part 'encoder.cross'; it has encoder.self"):
        look.heads(part="encoder.cross")


def test_every_level_of_a_recurrence_can_be_chosen(looks):
    look = looks[0]["gru"]
    parts = [found.part for found in look.measure("gates")]
    assert len(set(parts)) == len(parts) == 3 and {part.split(".")[0] for part in parts} == {"encoder", "decoder"}
    for view in ("gates", "states"):
        sizes = [len(json.dumps(look.draw(view, part=part).to_dict())) for part in ("", "encoder", parts[-1])]
        assert sizes[0] > max(sizes[1:])
    with pytest.raises(RecipeError, match="the view model shows the model as a whole"):
        look.draw("model", part="decoder")


def test_every_gate_and_state_of_every_level_can_be_chosen_unit_by_unit(looks):
    look = looks[0]["gru"]
    traces = {trace.part: trace for trace in look.measure("gates")}
    found = {one.part: one for one in look.measure("units")}
    assert set(found) == {f"{part}.{name}" for part, trace in traces.items() for name in (*trace.gates, *trace.entries)}
    for part, one in found.items():
        level, _, quantity = part.rpartition(".")
        assert (one.values == traces[level].of(quantity)).all() and one.gate == (quantity in traces[level].gates)
    last = list(found)[-1]
    assert len(json.dumps(look.units(part=last).to_dict())) != len(json.dumps(look.units().to_dict()))
    with pytest.raises(RecipeError, match="the view units has no part"):
        look.units(part="encoder.9.f")


def test_the_command_line_chooses_a_part(looks, tmp_path):
    typed = ["look", str(looks[1] / "transformer"), "abc", "--view", "heads", "--out", str(tmp_path / "part.json")]
    assert CliRunner().invoke(build_app(), [*typed, "--part", "decoder.cross"]).exit_code == 0
    text = (tmp_path / "part.json").read_text()
    assert "over the source" in text and "Self-attention" not in text
