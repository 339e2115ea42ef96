"""What a command does not need, it does not import: most of a short command's time is importing."""

import gc
import json
import os
import subprocess
import sys

import pytest

from seqloom.__main__ import STARTING, collect_late
from seqloom.tasks import TASKS
from tests.recipes import small

# Runs one command as a person does, then says what was imported for it.
PROGRAM = """
import atexit, gc, json, os, sys
answer = os.dup(1)


def tell():
    sys.stdout.flush()  # what was printed comes first, also where it is held back
    os.write(answer, ("\\n" + json.dumps([sorted(sys.modules), gc.get_stats()[-1]["collections"]])).encode())


atexit.register(tell)
sys.argv = ["seqloom", *json.loads(sys.argv[1])]
from seqloom.__main__ import main
main()
"""
TORCH_COMPILER = ("torch._dynamo", "torch._inductor", "sympy")
# What only training, scoring, drawing, searching over settings or other tasks need.
NOT_FOR_A_PREDICTION = (
    *TORCH_COMPILER,
    *("altair", "vl_convert", "optuna", "sqlalchemy", "sacrebleu", "statsmodels", "statsforecast", "sklearn", "pandas"),
    *("pyarrow", "babel", "rich", "tensorboard", "torch.utils.tensorboard", "tokenizers", "mido", "PIL"),
)


def imported(*arguments: str) -> tuple[int, set[str], int]:
    """The exit code of a command, the modules it imported, and how often it went through all objects for garbage."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert "Traceback" not in done.stderr
    modules, searches = json.loads(done.stdout.splitlines()[-1])
    return done.returncode, set(modules), searches


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("train --help", 0),
        ("predict --help", 0),
        ("recipes", 0),
        ("recipes --json", 0),
        ("config seq2seq", 0),
        ("config seq2seq --schema", 0),
        ("config seq2seq model.knd=lstm", 2),
        ("train seq2seq model.knd=lstm", 2),
        ("train seq2seq --resume", 2),
        ("tune seq2seq model.size=64..32", 2),
        ("train classify data.train=nosuch.csv", 2),
        ("predict nosuch text", 2),
        ("score nosuch", 2),
        ("look nosuch", 2),
        ("compare classify --kinds lstm,nosuch", 2),
        ("study nosuch", 2),
        ("serve nosuch", 2),
        ("train classify data.train=FILE data.source=txt data.target=label", 2),
        ("data classify data.train=FILE data.source=text data.target=lable", 2),
        ("train forecast data.train=FILE data.time=day data.variables=number", 2),
    ],
)
def test_what_needs_no_tensors_imports_no_torch(arguments, code, tmp_path):
    (tmp_path / "rows.csv").write_text("text;label\na;b\n" * 30)
    found, modules, _ = imported(*arguments.replace("FILE", str(tmp_path / "rows.csv")).split())
    assert found == code
    assert modules.isdisjoint({"torch", "numpy"})


def test_a_command_imports_no_other_and_no_plugin_of_pydantic(tmp_path, monkeypatch):
    about = tmp_path / "plugged-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:plugin\n")
    (tmp_path / "plugged.py").write_text("plugin = None\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    found, modules, _ = imported("config", "seq2seq")
    assert found == 0
    commands = {name for name in modules if name.startswith("seqloom.cli.")}
    assert commands == {f"seqloom.cli.{name}" for name in ("main", "launch", "options", "recipes")}
    assert "plugged" not in modules


def test_who_has_a_setting_is_told_without_building_their_classes():
    program = """
from seqloom.architectures import Architecture
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError

count = lambda root: 1 + sum(map(count, root.__subclasses__()))
recipe = Recipe.read("seq2seq", "model.kind=gru")
before = count(Architecture)
try:
    recipe.override("model.nonesuch=1")
except RecipeError:
    assert count(Architecture) == before, count(Architecture) - before
else:
    raise AssertionError("there is no such setting")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_prediction_imports_only_what_it_needs(tmp_path):
    from seqloom import train

    list(train(small(tmp_path), tmp_path / "run"))
    found, modules, searches = imported("predict", str(tmp_path / "run"), "abc")
    assert found == 0
    assert searches == 0
    assert "torch" in modules
    assert modules.isdisjoint(NOT_FOR_A_PREDICTION)
    assert modules.isdisjoint(f"seqloom.tasks.{task}" for task in TASKS if task != "seq2seq")


def test_the_shape_of_a_file_is_built_when_a_file_is_held_against_it():
    program = """
import seqloom.tasks, seqloom.training.files
from seqloom.schemas import JsonShape, Manifest, check_shape

built = lambda: [shape.__name__ for shape in JsonShape.__subclasses__() if shape.__pydantic_complete__]
assert len(JsonShape.__subclasses__()) > 10
assert built() == [], built()
check_shape(Manifest, {"files": {}}, "manifest.json")
assert built() == ["Manifest"], built()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_training_imports_no_compiler(tmp_path):
    recipe = tmp_path / "own.toml"
    recipe.write_text(small(tmp_path).to_toml(comments=False))
    found, modules, _ = imported("train", str(recipe), "train.steps=1", "--into", str(tmp_path / "run"))
    assert found == 0
    assert "torch" in modules
    assert modules.isdisjoint(TORCH_COMPILER)


def test_what_a_start_imports_is_set_aside_by_the_first_search_for_garbage():
    usual, before = gc.get_threshold(), gc.get_freeze_count()
    collect_late()
    try:
        assert gc.get_threshold() == (STARTING, *usual[1:])
        gc.collect(0)
        assert gc.get_threshold() == usual
        assert gc.get_freeze_count() > before
        frozen = gc.get_freeze_count()
        gc.collect(0)
        assert gc.get_freeze_count() <= frozen  # some of it may be gone by now, but nothing was added
    finally:
        gc.unfreeze()
