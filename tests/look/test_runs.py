"""Every picture that fits, of runs of every task that reads and answers, from Python and by command."""

import json

import pytest

from seqloom.config.recipe import Recipe
from seqloom.look.charts.base import render
from seqloom.runs.run import load, train

WORDS = ["good film", "bad plot", "fine film", "awful plot"] * 8
CASES = {
    "classify": ([(text, "glad" if text[0] in "gf" else "sad") for text in WORDS], ["data.source_tokenizer=words"]),
    "tag": ([(text, "A N") for text in WORDS], ["data.characters=4"]),
    "seq2seq": ([(text, text[::-1]) for text in WORDS], []),
    "language": ([(text,) for text in WORDS], ["data.documents=lines", "train.bptt_window=16"]),
}
QUICK = ("model.size=16", "train.steps=2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for task, (examples, overrides) in CASES.items():
        for kind in ("lstm", "transformer"):
            recipe = Recipe.of({"task": task}).override(f"model.kind={kind}", *QUICK, *overrides)
            list(train(recipe, folder / f"{task}-{kind}", examples=examples))
    return folder


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_every_view_of_a_run_is_drawn_from_the_real_tokens(runs, task, kind):
    run = load(runs / f"{task}-{kind}")
    look = run.look("good film")
    views = look.views
    assert {"model", "gradients", "field", "attribution"} <= set(views)
    assert ("gates" in views) == (kind == "lstm") and ("heads" in views) == (kind == "transformer")
    assert ("beam" in views) == (task in ("seq2seq", "language"))
    read = [name for name in look.names.source or look.names.inputs if name != "<start>"]
    assert "".join(read).replace("␣", "") == "goodfilm"
    for name, draw in views.items():
        assert len(render(draw(), ".json")) > 100, name
    assert isinstance(run.diagnose(CASES[task][0], seconds=0.1), list)


def test_a_view_is_written_by_command_and_a_wrong_name_is_told(runs, typed, tmp_path):
    folder, out = runs / "classify-lstm", tmp_path / "gates.svg"
    said, _, code = typed("look", folder, "good film", "--view", "gates", "--out", out)
    assert code == 0 and said.strip() == str(out) and out.read_text().startswith("<svg")
    _, error, code = typed("look", folder, "good film", "--view", "gate")
    assert code == 2 and "there is no view 'gate'" in error and "gates" in error
    assert isinstance(json.loads(typed("doctor", folder, "--json")[0]), list)
