"""Every picture that the specification asks for, by its view, for every task and kind that it applies to.

The table says for each V which views show it, and whom each applies to. Each is drawn from Python for every task with
several kinds; the same list is what the command line takes and what the report shows.
"""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from seqloom.architectures import ARCHITECTURES
from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.look.charts.base import render
from seqloom.look.charts.drawing import Drawing
from seqloom.look.report import page as reports
from seqloom.look.views import VIEWS
from seqloom.runs.run import load, train

from ..recipes import forecasting, walks

WORDS = ["ab c", "ba d", "cd a", "dc b"] * 8
PICTURES = [np.random.default_rng(n).integers(0, 255, (1, 8, 8, 3), np.uint8) for n in range(8)]
TASKS = {
    "classify": ([(text, "glad" if text[0] in "ab" else "sad") for text in WORDS], ["data.source_tokenizer=words"]),
    "tag": ([(text, "A N") for text in WORDS], []),
    "seq2seq": ([(text, text[::-1]) for text in WORDS], []),
    "caption": ([(PICTURES[n % 8], text) for n, text in enumerate(WORDS)], ["model.patch=4"]),
    "draw": ([(PICTURES[n % 8], text) for n, text in enumerate(WORDS)], ["data.square=4"]),
    "language": ([(text,) for text in WORDS], ["data.documents=lines", "train.bptt_window=16"]),
    "music": ([(f"X:1\nK:C\n{text}|",) for text in ("CDEF", "GABc", "cBAG") * 8], ["train.bptt_window=16"]),
    "forecast": (walks(), []),
}
WRITES = {"seq2seq", "caption", "draw"}  # about a source
SYMBOLS = set(TASKS) - {"forecast", "caption"}  # read symbols
TELLS = set(TASKS) - {"forecast"}  # tell symbols
GATED = {"lstm", "peephole", "coupled", "gru", "mingru", "minlstm"}
WALKS = {*GATED, "rnn", "orthogonal"}
MATRICES = WALKS - {"mingru", "minlstm"}  # whose state is multiplied
KINDS = (*sorted(WALKS), "convolution", "transformer")
ALL = set(KINDS)

# V of the specification -> its views, each with the tasks and the kinds that it applies to.
SPECIFIED: dict[str, dict[str, tuple[set[str], set[str]]]] = {
    "V1 attention": {"attention": (WRITES, ALL), "heads": (set(TASKS), {"transformer"})},
    "V2 gates and states": {
        "gates": (set(TASKS), GATED),
        "states": (set(TASKS), WALKS),
        "units": (set(TASKS), WALKS),
    },
    "V3 gradient flow": {
        "gradients": (set(TASKS), ALL),
        "gradient-history": (set(TASKS), ALL),
        "flow": (set(TASKS), ALL),
    },
    "V4 spectra and memory": {
        "spectrum": (set(TASKS), MATRICES),
        "spectrum-history": (set(TASKS), MATRICES),
        "jacobians": (set(TASKS), WALKS),
        "scalar": (set(TASKS), MATRICES),
        "memory-path": (set(TASKS), GATED),
    },
    "V5 who gets the gradient": {"query-key-value": (set(TASKS), {"transformer"}), "updates": (set(TASKS), ALL)},
    "V6 receptive field": {"field": (set(TASKS), ALL)},
    "V7 positions": {"positions": (set(TASKS), {"transformer"})},
    "V8 schedules": {"schedule": (set(TASKS), ALL)},
    "V9 beam search": {"beam": (WRITES | {"language", "music"}, ALL)},
    "V10 next symbols": {"next": (TELLS, ALL)},
    "V11 embedding": {
        "embedding": (SYMBOLS, ALL),
        "neighbors": (SYMBOLS, ALL),
        "orthogonality": (SYMBOLS, ALL),
    },
    "V12 curves": {"curves": (set(TASKS), ALL)},
    "V13 attribution": {"attribution": (set(TASKS), ALL), "faithfulness": (set(TASKS), ALL)},
    "V14 the model drawn": {"model": (set(TASKS), ALL)},
    "V15 probes": {"probe": (TELLS, ALL)},
    "V16 cost": {"cost": (set(TASKS), ALL)},
    "V17 order": {"order": (set(TASKS) - {"caption"}, ALL)},
    "classes": {"confusion": ({"classify"}, ALL), "calibration": ({"classify"}, ALL)},
    "forecasts": {"forecast": ({"forecast"}, ALL)},
}
FOR_ALL_TASKS = ("gru", "transformer")  # every task with these; the other kinds with the tasks below
FOR_ALL_KINDS = ("classify",)
CASES = [(task, kind) for task in TASKS for kind in KINDS if kind in FOR_ALL_TASKS or task in FOR_ALL_KINDS]


def trained(folder, task, kind):
    examples, more = TASKS[task]
    recipe = forecasting() if task == "forecast" else Recipe.of({"task": task})
    quick = ("model.size=8", "train.steps=2", "train.watch_every=1", "train.batch_tokens=256")
    heads = ("model.heads=2",) if kind == "transformer" else ()
    list(train(recipe.override(f"model.kind={kind}", *quick, *heads, *more), folder, examples=examples))
    return load(folder)


@pytest.mark.parametrize(("task", "kind"), CASES)
def test_every_view_that_applies_is_drawn_and_every_other_says_why_not(task, kind, tmp_path):
    run = trained(tmp_path / "run", task, kind)
    look = run.look(answer="ab" if task in ("seq2seq", "caption") else None, examples=TASKS[task][0])
    views, lacking = look.views, look.missing
    assert set(views) | set(lacking) == set(VIEWS) and not set(views) & set(lacking)
    for number, asked in SPECIFIED.items():
        for name, (tasks, kinds) in asked.items():
            if task in tasks and kind in kinds:
                assert name in views, f"{number}: {name} is missing: {lacking.get(name)}"
            elif name != "attention":  # a Transformer attends to itself without a source
                assert name in lacking, f"{number}: {name} should not fit"
    for name, draw in views.items():
        if name != "cost":  # measured, and the same for all: tried below
            drawn = draw()
            assert drawn.svg if isinstance(drawn, Drawing) else drawn.to_dict(validate=False)["datasets"], name
    assert all(reason and not reason.endswith(".") for reason in lacking.values())


def test_the_cost_is_measured_beside_other_bodies(tmp_path):
    look = trained(tmp_path / "run", "seq2seq", "gru").look("ab c")
    rows = [row for rows in json.loads(render(look.cost((4, 8)), ".json"))["datasets"].values() for row in rows]
    bodies = {row["body"].split(" (")[0] for row in rows}
    assert bodies == set(ARCHITECTURES) - {"gru-d", "linear", "bag"} and {row["length"] for row in rows} == {4, 8}
    parameters = {row["body"].split(" (")[0]: int(re.sub(r"\D", "", row["body"])) for row in rows}
    assert 4 * parameters["coupled"] == 3 * parameters["lstm"] == 12 * parameters["rnn"]
    styles = json.loads(render(look.cost((4, 8)), ".json"))["hconcat"][0]["encoding"]
    drawn = list(zip(styles["color"]["scale"]["range"], map(str, styles["strokeDash"]["scale"]["range"]), strict=True))
    assert len(set(drawn)) == len(drawn) == len(bodies)  # no two lines look alike


def test_the_table_names_every_view_and_every_view_stands_in_the_table():
    assert {name for asked in SPECIFIED.values() for name in asked} <= set(VIEWS)
    known = {name for asked in SPECIFIED.values() for name in asked} | {"norms", "lengths"}
    assert set(VIEWS) == known
    assert all(view.reading.endswith(".") for view in VIEWS.values())


def test_the_command_line_takes_every_view_and_the_report_shows_each_that_fits(tmp_path, monkeypatch):
    monkeypatch.setattr(reports, "read_library", lambda: "")
    run = trained(tmp_path / "run", "classify", "lstm")
    look = run.look("ab c")
    page = run.report(tmp_path / "page.html", "ab c", examples=TASKS["classify"][0]).read_text()
    shown = set(re.findall(r'id="(?:chart|view)-([\w-]+)"', page)) - {"scores", "lengths"}
    assert shown == set(look.views) | {"probe"}  # which needs the examples
    assert all(f"{name}: {reason}." in page for name, reason in look.missing.items() if name != "probe")
    for name in look.views:
        if name != "cost":
            asked = ["look", str(tmp_path / "run"), "ab c", "--view", name, "--out", str(tmp_path / f"{name}.json")]
            assert CliRunner().invoke(build_app(), asked).exit_code == 0 and json.loads(
                (tmp_path / f"{name}.json").read_text()
            )
    with pytest.raises(RecipeError, match="does not fit this model: only a Transformer has heads"):
        CliRunner().invoke(
            build_app(), ["look", str(tmp_path / "run"), "ab c", "--view", "heads"], catch_exceptions=False
        )
    with pytest.raises(RecipeError, match="there is no view 'gate'; did you mean gates"):
        CliRunner().invoke(
            build_app(), ["look", str(tmp_path / "run"), "ab c", "--view", "gate"], catch_exceptions=False
        )
