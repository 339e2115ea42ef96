"""Whatever chance makes of a file, it is read, or refused in one sentence; and so is what nobody would think of."""

import json
import random
import sys
from pathlib import Path

import pytest

from seqloom.cli.main import main
from seqloom.config.recipe import Recipe
from seqloom.errors import SeqloomError
from seqloom.runs.folder import build_report
from seqloom.runs.run import train
from seqloom.tasks import declare

from .mutations import kinds, tables_of_numbers, write

KINDS, NUMERIC = kinds(), tables_of_numbers()
FEW, MANY = 10, 1000


def work(recipe: Recipe) -> None:
    """All that reads data before the first step of a training, and one validation."""
    task, prepared = declare(recipe).prepare(recipe.resolved(), lambda line: None)
    json.dumps([task.to_json(), build_report(task, prepared)], allow_nan=False)
    model = task.shape.build()
    task.initialize(model, lambda line: None)
    loss, _, _ = task.objective(model)(task.shape.batch(prepared, task.shape.order(prepared, 0)[0]), None)
    loss.backward()
    task.shape.validate(model.eval(), prepared)


def refused(recipe: Recipe) -> str:
    """The sentence, or nothing."""
    try:
        work(recipe)
    except SeqloomError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", KINDS)
def test_a_table_as_it_should_be_is_read(name, tmp_path):
    assert refused(write(KINDS[name], tmp_path, None)) == ""


@pytest.mark.parametrize("seeds", [range(FEW), pytest.param(range(FEW, MANY), marks=pytest.mark.soak)], ids=len)
@pytest.mark.parametrize("name", KINDS)
def test_whatever_becomes_of_a_file_it_is_read_or_refused_in_one_line(name, seeds, tmp_path):
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert len(refused(write(KINDS[name], folder, seed)).splitlines()) <= 1, seed


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if "task=music" not in kind.settings])
def test_a_training_on_it_ends_in_scores_or_in_one_line(name, tmp_path):
    for seed in range(MANY, MANY + 50):
        folder = tmp_path / str(seed)
        folder.mkdir()
        try:
            assert list(train(write(KINDS[name], folder, seed), folder / "run"))[-1].kind == "end", seed
        except SeqloomError as error:
            assert len(str(error).splitlines()) == 1, seed


# --- numbers that no computation can bear -----------------------------------------------------------------------------


def spoilt(name: str, folder: Path, value: str, lines: slice) -> Recipe:
    """A table of numbers with this value in place of the last number of some lines."""
    recipe = write(KINDS[name], folder, None)
    file = folder / next(iter(KINDS[name].files))
    rows = file.read_text().split("\n")
    for place in range(len(rows))[lines]:
        cells = rows[place].split(",")
        number = max((n for n, cell in enumerate(cells) if cell[:1].isdigit()), default=0)
        cells[number] = value
        rows[place] = ",".join(cells)
    file.write_text("\n".join(rows))
    return recipe


TABLES = [name for name in (*NUMERIC, "csv, rated") if name.startswith("csv")]


@pytest.mark.parametrize("value", ["inf", "-inf", "1e300", "-1e300", "3e38", "1e36"])
@pytest.mark.parametrize("name", TABLES)
def test_a_number_that_is_too_large_is_refused_with_its_line(name, value, tmp_path):
    told = refused(spoilt(name, tmp_path, value, slice(5, 6)))
    assert "line 6: " in told and repr(value) in told and "number" in told


@pytest.mark.parametrize(
    ("name", "value", "lines", "lacking"),
    [
        ("csv, rated", "2", slice(1, -1), {"R²"}),  # all targets are alike
        ("csv, rated", "1e20", slice(1, -1), {"R²"}),
        ("csv, forecast", "", slice(-14, -1), {"MAE of b", "RMSE of b"}),  # none is known in the test part
    ],
)
def test_a_score_that_is_not_defined_is_left_out_and_said(name, value, lines, lacking, tmp_path):
    recipe = spoilt(name, tmp_path, value, lines).changed("train.watch_every", 0)
    said = [record.text for record in train(recipe, tmp_path / "run") if record.kind == "note"]
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["scores"]
    assert scores and not lacking & set(scores)
    assert f"not defined on these examples, and left out: {', '.join(sorted(lacking))}" in said


def test_a_number_far_from_those_of_training_is_refused(tmp_path):
    told = refused(spoilt("csv, forecast", tmp_path, "1e30", slice(-3, -2)))  # which is in the test part
    assert told.startswith("the number 1e+30 is more than 1e+15 times as far from the mean of training")


# --- names that no file can have --------------------------------------------------------------------------------------

LONG = "x" * 5000


@pytest.fixture
def said(monkeypatch, capsys):
    """Type a command that is a mistake: its one sentence."""

    def typed(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2, told
        [sentence] = [line for line in told if line.startswith("error: ")]
        assert "Traceback" not in "".join(told)
        return sentence

    return typed


@pytest.mark.parametrize("images", ["~nobody/images", "~nobody", LONG, f"a/{LONG}/b", "~/none"])
def test_a_folder_of_images_that_cannot_be_is_one_sentence(images, tmp_path, monkeypatch, said):
    monkeypatch.delenv("HOME", raising=False)
    files = KINDS["images"].files
    (tmp_path / "train.tsv").write_bytes(files["train.tsv"])
    settings = (f"data.train={tmp_path / 'train.tsv'}", "data.format=images", f"data.images={images}")
    told = said("train", "caption", "data.sample=", *settings, "--into", tmp_path / "run")
    assert told.endswith("there is no such folder of images")


def test_an_image_whose_name_is_too_long_is_one_sentence(tmp_path):
    recipe = write(KINDS["images"], tmp_path, None)
    (tmp_path / "train.tsv").write_text(f"image\tcaption\n{LONG}\tword\n")
    assert "there is no image 'xxx" in refused(recipe)


@pytest.mark.parametrize("file", [f"{LONG}.csv", f"{LONG}/a.csv", f"~nobody/{LONG}.csv", f"a.csv,{LONG}.csv"])
def test_a_file_whose_name_is_too_long_is_one_sentence(file, tmp_path, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("a\n")
    assert "File name too long" in said("train", "seq2seq", f"data.train={file}", "--into", tmp_path / "run")


@pytest.mark.parametrize("words", [("train", "seq2seq", "--into"), ("score",), ("predict",), ("look",), ("doctor",)])
def test_a_run_folder_whose_name_is_too_long_is_one_sentence(words, said):
    assert "File name too long" in said(*words, LONG)


def test_vectors_whose_name_is_too_long_are_one_sentence(tmp_path, said):
    write(KINDS["vectors"], tmp_path, None)
    settings = (f"data.train={tmp_path / 'train.csv'}", "data.source_tokenizer=words", f"data.vectors={LONG}")
    told = said("train", "classify", "data.sample=", *settings, "--into", tmp_path / "run")
    assert "File name too long" in told


def test_the_same_seed_spoils_a_file_in_the_same_way(tmp_path):
    for name in ("csv", "idx", "images"):
        found = []
        for folder in (tmp_path / f"{name} 1", tmp_path / f"{name} 2"):
            folder.mkdir()
            write(KINDS[name], folder, random.Random(name).randrange(10**6))
            found.append([(folder / file).read_bytes() for file in KINDS[name].files])
        assert found[0] == found[1] != list(KINDS[name].files.values())
