"""The run folder: it is whole or refused, and it answers alone."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save

from seqloom.config.recipe import Recipe
from seqloom.errors import DataError, RecipeError, RunError
from seqloom.runs.folder import find_free_folder, flatten
from seqloom.runs.json_output import make_record_json
from seqloom.runs.run import load, train
from seqloom.training.files import json_bytes
from seqloom.training.manifests import replace_file

from .recipes import backwards, forecasting, measured, small, walks


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    list(train(small(folder), folder / "run"))
    return folder / "run"


@pytest.fixture
def run(trained, tmp_path):
    """A copy that may be damaged."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def refused(folder, *words):
    with pytest.raises(RunError) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_run_answers_alone_in_another_process_after_the_data_is_gone(run, tmp_path):
    here = [p.output for p in load(run).predict("abc", beam=2)]
    code = f"import seqloom; print(*[p.output for p in seqloom.load({str(run)!r}).predict('abc', beam=2)], sep='\\n')"
    (tmp_path / "elsewhere").mkdir()
    environment = {"PATH": "/usr/bin:/bin", "SEQLOOM_CACHE": str(tmp_path / "none"), "SEQLOOM_NATIVE": "0"}
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "elsewhere",
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split("\n")[:-1] == here
    assert not Path(load(run).recipe.data.train[0]).exists() or not (tmp_path / "none").exists()


def test_a_run_folder_holds_what_the_docs_say_and_vouches_for_it(run):
    names = {path.name for path in run.iterdir() if not path.name.startswith((".", "events"))}
    sums = json.loads((run / "manifest.json").read_text())["files"]
    assert names == {*sums, "manifest.json", "checkpoints"}
    for name, [expected] in sums.items():
        assert hashlib.sha256((run / name).read_bytes()).hexdigest() == expected
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert records[-1]["kind"] == "end" and records[-1]["step"] == 12
    assert "| exact |" in (run / "README.md").read_text()


def test_the_kept_weights_are_those_of_the_best_validation(tmp_path):
    seen = {}
    recipe = small(tmp_path)
    for record in train(recipe, tmp_path / "run"):
        if record.best:
            seen[record.step] = load_file(tmp_path / "run" / "model.safetensors")
    best = max(seen)
    kept = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(kept[name], seen[best][name]) for name in kept)


@pytest.mark.parametrize(
    "name", ["recipe.toml", "config.json", "task.json", "model.safetensors", "version", "scores.json"]
)
def test_a_flipped_bit_is_seen(run, name):
    data = bytearray((run / name).read_bytes())
    data[len(data) // 2] ^= 1
    (run / name).write_bytes(bytes(data))
    refused(run, name)


@pytest.mark.parametrize(
    "name", ["recipe.toml", "config.json", "task.json", "model.safetensors", "version", "manifest.json"]
)
def test_a_missing_or_cut_file_is_seen(run, name):
    whole = (run / name).read_bytes()
    (run / name).write_bytes(whole[: len(whole) // 2])
    refused(run, name)
    (run / name).unlink()
    refused(run)


def test_a_folder_that_is_none_is_refused(tmp_path):
    refused(tmp_path / "nothing", "not a run folder")
    refused(tmp_path, "not a run folder")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "not a run folder")


def test_a_newer_version_is_refused(run):
    replace_file(run, "version", b"999\nfrom the future\n")
    refused(run, "newer")


def test_a_run_of_0_1_is_refused_and_to_be_trained_again(run):
    replace_file(run, "version", b"1\nseqloom 0.1.0, torch 2.13.0, python 3.11.7\n")
    refused(run, "older seqloom", "train it again")


def vouched(run, name, content):
    """As an attacker would: the manifest agrees."""
    replace_file(run, name, content)


def test_hostile_weights_are_refused(run):
    weights = load_file(run / "model.safetensors")
    first = next(iter(weights))
    for change in (torch.nan, torch.inf):
        vouched(run, "model.safetensors", save({**weights, first: weights[first] * change}))
        refused(run, "finite")
    vouched(run, "model.safetensors", b"\x80\x04\x95" + b"pickle" * 50)
    refused(run, "pickle")
    vouched(run, "model.safetensors", save({**weights, "extra": torch.zeros(2)}))
    refused(run, "extra")
    del weights[first]
    vouched(run, "model.safetensors", save(weights))
    refused(run)


def test_vocabularies_beyond_the_embedding_are_refused(run):
    task = json.loads((run / "task.json").read_text())
    symbols = next(value for value in task["fields"]["source"].values() if isinstance(value, list))
    symbols.append("one more")
    vouched(run, "task.json", json_bytes(task))
    refused(run, "vocabular")
    config = json.loads((run / "config.json").read_text())
    config["vocabularies"]["source"] += 1
    vouched(run, "config.json", json_bytes(config))
    refused(run)


def test_duplicate_keys_and_strange_json_are_refused(run):
    vouched(run, "config.json", b'{"format": 1, "format": 2}')
    refused(run, "config.json", "twice")
    vouched(run, "config.json", b"[" * 100_000)
    refused(run, "config.json")
    vouched(run, "task.json", b'{"source": 3}')
    refused(run, "task.json")


def test_a_recipe_that_asks_for_more_than_the_weights_hold_is_refused_before_it_is_built(run):
    recipe = (run / "recipe.toml").read_text().replace("size = 16", "size = 60000").replace("depth = 1", "depth = 4")
    vouched(run, "recipe.toml", recipe.encode())
    refused(run, "parameters")


def test_a_recipe_with_an_unknown_key_is_refused(run):
    vouched(run, "recipe.toml", b'task = "seq2seq"\nimport = "os"\n')
    refused(run, "import")


def test_a_half_trained_run_says_how_to_go_on(tmp_path):
    next(measured(train(small(tmp_path), tmp_path / "run")))
    refused(tmp_path / "run", "--resume")


def test_a_folder_in_use_is_refused(tmp_path):
    records = measured(train(small(tmp_path), tmp_path / "run"))
    next(records)
    with pytest.raises(RunError, match="another process"):
        next(measured(train(None, tmp_path / "run", resume=True)))
    records.close()


def test_a_full_folder_is_not_trained_into(run, tmp_path):
    with pytest.raises(RunError, match="not an empty folder"):
        next(measured(train(small(tmp_path), run)))


def timeless(record):
    return {
        name: value for name, value in make_record_json(record).items() if name not in ("seconds", "tokens_per_second")
    }


def bits(folder):
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("model.safetensors", "task.json")
    }


@pytest.mark.parametrize("cut", [1, 3, 4, 5])
@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_stopping_and_resuming_gives_the_same_bits(tmp_path, cut, kind):
    recipe = small(tmp_path, f"model.kind={kind}", "train.checkpoint_every=3")
    whole = [timeless(record) for record in measured(train(recipe, tmp_path / "whole"))]
    records = measured(train(recipe, tmp_path / "cut"))
    for _ in range(cut):
        next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", resume=True))
    lines = [json.loads(line) for line in (tmp_path / "cut" / "records.jsonl").read_text().splitlines()]
    told = [
        {name: value for name, value in line.items() if name not in ("seconds", "tokens_per_second")}
        for line in lines
        if line["kind"] != "note"
    ]
    assert told == whole
    assert bits(tmp_path / "whole") == bits(tmp_path / "cut")
    scores = [json.loads((tmp_path / name / "scores.json").read_text())["scores"] for name in ("whole", "cut")]
    assert scores[0] == scores[1]


def test_the_same_seed_gives_the_same_run_and_another_seed_another(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        list(train(small(tmp_path, f"train.seed={seed}"), tmp_path / name))
    a, b, c = (bits(tmp_path / name)["model.safetensors"] for name in "abc")
    assert a == b != c


def test_resuming_with_other_settings_or_other_data_is_refused(tmp_path):
    recipe = small(tmp_path)
    records = measured(train(recipe, tmp_path / "run"))
    next(records)
    records.close()
    with pytest.raises(RecipeError, match="train.learning_rate"):
        next(measured(train(recipe.override("train.learning_rate=0.5"), tmp_path / "run", resume=True)))
    backwards(tmp_path, count=300)
    with pytest.raises(RunError, match="data has changed.* --changed-data"):
        next(measured(train(recipe, tmp_path / "run", resume=True)))


def begun(folder, steps):
    """A run of this many steps and a checkpoint, on 400 examples."""
    recipe = small(folder, "train.checkpoint_every=3")
    for record in train(recipe, folder / "run"):
        if record.step == steps:
            break
    return recipe


def test_changed_data_is_trained_on_where_that_is_allowed(tmp_path):
    recipe = begun(tmp_path, 4)
    before = json.loads((tmp_path / "run" / "data.json").read_text())
    backwards(tmp_path, count=300)  # one epoch is shorter than what was read of the longer one
    said = []
    for record in train(recipe, tmp_path / "run", resume=True, changed_data=True):
        if record.kind != "note":
            break
        said.append(record.text)
    assert record.epoch == 1 + 1 / 8  # the next epoch has begun, of which one batch has been read
    assert any("changed" in line and "step 3" in line for line in said)
    now = json.loads((tmp_path / "run" / "data.json").read_text())
    assert now["changes"] == [{"step": 3, "fingerprint": before["fingerprint"]}]
    assert now["report"]["rows_read"] == 300 != before["report"]["rows_read"]
    # Killed again before the next checkpoint, it need not be allowed again, and goes on from the same place.
    assert next(measured(train(recipe, tmp_path / "run", resume=True))).epoch == 1 + 1 / 8
    assert list(train(recipe, tmp_path / "run", resume=True))[-1].kind == "end"
    assert load(tmp_path / "run").predict("abc")


def test_changed_data_is_read_as_the_run_has_learned_to(tmp_path):
    recipe = begun(tmp_path, 4)
    path, learned = tmp_path / "backwards.tsv", (tmp_path / "run" / "task.json").read_bytes()
    path.write_text(path.read_text().replace("h", "ß"))
    list(train(recipe, tmp_path / "run", resume=True, changed_data=True))
    assert (tmp_path / "run" / "task.json").read_bytes() == learned  # what is new in it is unknown
    assert load(tmp_path / "run").predict("abcß")


def test_changed_data_with_a_label_that_no_one_has_learned_is_refused(tmp_path):
    path = tmp_path / "labels.tsv"
    path.write_text("source\ttarget\n" + "".join(f"{letter * 3}\t{letter}\n" for letter in "ab" * 60))
    settings = ("model.size=8", "train.steps=4", "train.validate_every=2", f"data.train={path}")
    recipe = Recipe.read("classify", *settings)
    next(measured(train(recipe, tmp_path / "run")))
    path.write_text(path.read_text() + "ccc\tc\n" * 40)
    with pytest.raises(DataError, match="target 'c', which this run has never learned"):
        next(measured(train(recipe, tmp_path / "run", resume=True, changed_data=True)))


def test_changed_series_stay_on_the_scale_that_was_learned(tmp_path):
    values, recipe = walks(), forecasting()
    for record in train(recipe, tmp_path / "run", examples=values):
        if record.step == 2:
            break
    scale = load(tmp_path / "run").task.fields["series"].scale
    with pytest.raises(DataError, match="series are of"):
        next(measured(train(recipe, tmp_path / "run", examples=walks(variables=3), resume=True, changed_data=True)))
    records = list(train(recipe, tmp_path / "run", examples=2 * values + 1, resume=True, changed_data=True))
    assert records[-1].kind == "end"
    assert (load(tmp_path / "run").task.fields["series"].scale.mean == scale.mean).all()


def test_resuming_what_is_finished_changes_nothing(run):
    before = {path: path.stat().st_mtime_ns for path in run.iterdir() if path.name != ".lock"}
    [record] = train(None, run, resume=True)
    assert record.kind == "note" and "finished" in record.text
    assert {path: path.stat().st_mtime_ns for path in run.iterdir() if path.name != ".lock"} == before


def test_resuming_before_anything_was_written_begins(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".recipe.toml.partial").write_text("half")
    assert list(train(small(tmp_path), tmp_path / "run", resume=True))[-1].kind == "end"
    with pytest.raises(RunError, match="nothing to resume"):
        next(measured(train(None, tmp_path / "other", resume=True)))


def test_a_time_budget_becomes_steps_that_are_stored(tmp_path):
    recipe = small(tmp_path).override("train.time=2s")
    last = list(train(recipe, tmp_path / "run"))[-1]
    stored = load(tmp_path / "run").recipe.train
    assert stored.steps == last.step > 0 and stored.time == ""


def test_folders_are_numbered(tmp_path):
    for expected in ("name", "name-2", "name-3"):
        folder = find_free_folder(tmp_path, "name")
        assert folder.name == expected
        folder.mkdir()


def test_flat_names_every_setting_once():
    assert flatten({"a": 1, "b": {"c": 2, "d": {"e": 3}}}) == {"a": 1, "b.c": 2, "b.d.e": 3}
