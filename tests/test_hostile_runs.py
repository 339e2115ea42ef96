"""A run folder from elsewhere: what does not fit, is too large or leads out of it is refused in one sentence."""

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from seqloom.cli import terminal
from seqloom.cli.terminal import show_scores, show_table
from seqloom.data import preprocess as building
from seqloom.data import vocabulary
from seqloom.data.vocabulary import SPECIALS, Vocabulary
from seqloom.errors import RunError, SeqloomError
from seqloom.runs.folder import RecordLog
from seqloom.runs.run import diagnose, load, train
from seqloom.tasks.conditional_generation import ConditionalGeneration
from seqloom.training import files
from seqloom.training.checkpoints import Checkpoints
from seqloom.training.files import get_size_limit
from seqloom.training.manifests import replace_file
from seqloom.training.records import Record

from .recipes import forecasting, small, texts, walks


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    list(train(small(folder, "train.checkpoint_every=4"), folder / "run"))
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy that may be tampered with."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run that was stopped after its first checkpoints."""
    for record in train(small(tmp_path, "train.checkpoint_every=2"), tmp_path / "run"):
        if record.step == 8:
            break
    return tmp_path / "run"


def refused(ask: Callable[[], Any], *words: str) -> None:
    with pytest.raises(SeqloomError) as caught:
        ask()
    sentence = str(caught.value)
    assert len(sentence.splitlines()) == 1 and len(sentence) < 500
    for word in words:
        assert word in sentence, sentence


def edit(run: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Change what a JSON file holds, and let the manifest agree."""
    values = json.loads((run / name).read_bytes())
    change(values)
    replace_file(run, name, json.dumps(values).encode())


# --- what the files hold ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found["scores"]["exact"].update(value="0.5"), ["scores.exact", "'value'", "'0.5'"]),
        (lambda found: found["scores"]["exact"].update(value=float("nan")), ["NaN"]),
        (lambda found: found["scores"]["exact"].update(value=10**400), ["'value'", "number"]),
        (lambda found: found["scores"]["exact"].update(interval=[0.5]), ["scores.exact", "'interval'", "at least 2"]),
        (lambda found: found["scores"]["exact"].pop("better"), ["scores.exact", "'better' is missing"]),
        (lambda found: found["scores"]["exact"].update(baselines=3), ["scores.exact", "'baselines' is 3"]),
        (lambda found: found.pop("split"), ["'split' is missing"]),
        (lambda found: found.update(examples=None), ["'examples' is None"]),
        (lambda found: found.update(cut="[/bold]"), ["'cut'", "[/bold]"]),
        (lambda found: found.update(scores=[]), ["'scores' is a list"]),
        (lambda found: found.update(more=1), ["'more' is not known"]),
    ],
)
def test_scores_that_are_none_are_refused_with_their_place(run, change, words):
    edit(run, "scores.json", change)
    refused(lambda: load(run).scores, "scores.json", *words)
    refused(lambda: diagnose(run, seconds=0), "scores.json", *words)


def test_deep_nesting_is_refused_wherever_it_stands(run):
    deep = b"[" * 100_000 + b"]" * 100_000
    for name in ("scores.json", "data.json", "records.jsonl"):
        before = (run / name).read_bytes()
        replace_file(run, name, b'{"scores": ' + deep + b"}\n")
        refused(lambda: (load(run).scores, diagnose(run, seconds=0)), name, "nested too deeply")
        replace_file(run, name, before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda told: told.pop("step"), ["'step' is missing"]),
        (lambda told: told.update(skipped=[1]), ["'skipped' is a list"]),
        (lambda told: told.update(loss={"a": 1}), ["loss", "an object"]),
        (lambda told: told.update(loss=float("inf")), ["Infinity"]),
        (lambda told: told.update(kind="other"), ["'kind'", "'other'"]),
        (lambda told: told.update(watched=3), ["watched", "is 3"]),
    ],
)
def test_a_record_that_is_none_is_refused_with_its_line(run, change, words):
    lines = (run / "records.jsonl").read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if '"kind": "step"' in line)
    told = json.loads(lines[place])
    change(told)
    lines[place] = json.dumps(told)
    replace_file(run, "records.jsonl", "\n".join([*lines, ""]).encode())
    refused(lambda: load(run).history, f"records.jsonl, line {place + 1}", *words)
    refused(lambda: diagnose(run, seconds=0), f"records.jsonl, line {place + 1}", *words)


def test_a_last_line_that_a_kill_has_cut_is_left_out_and_said(run):
    whole = (run / "records.jsonl").read_bytes()
    before = load(run).history
    assert not before.notes
    for cut in (1, 20, len(whole.splitlines()[-1])):
        replace_file(run, "records.jsonl", whole[:-cut])
        history, said = load(run).history, diagnose(run, seconds=0).notes
        if cut == 1:  # only the line break is gone: nothing is lost
            assert list(history.records) == list(before.records) and not history.notes
            continue
        assert list(history.records) == list(before.records)[:-1]
        assert len(history.curves.validation) == len(before.curves.validation) - 1
        [note] = history.notes
        assert note in said and f"line {len(whole.splitlines())}" in note and "cut short" in note


def test_a_damaged_record_is_told_when_a_run_goes_on_without_it(begun):
    path = begun / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b'{"step": "two"}\n', *lines[1:], b'{"kind": "st']))
    said = texts(train(None, begun, resume=True))
    assert sum("damaged record" in line and "line 2" in line for line in said) == 1
    assert sum("cut short" in line and f"line {len(lines) + 2}" in line for line in said) == 1
    assert load(begun).history.records[-1]["kind"] == "end"


def test_a_report_that_is_missing_and_text_for_a_number_are_refused_with_their_place(run):
    edit(run, "data.json", lambda data: data.pop("report"))
    refused(lambda: diagnose(run, seconds=0), "data.json", "'report' is missing")
    edit(run, "config.json", lambda config: config.update(parameters="many"))
    refused(lambda: load(run), "config.json", "'parameters' is the text 'many'")


def test_facts_of_another_type_or_number_are_refused(run):
    edit(run, "task.json", lambda task: task["facts"].update(most_frequent=3))
    refused(lambda: load(run), "task.json", "'most_frequent' is 3")


def test_a_recipe_that_leaves_something_open_is_settled_or_refused(run):
    recipe = (run / "recipe.toml").read_text()
    replace_file(run, "recipe.toml", recipe.replace("embedding = 16", "embedding = 0").encode())
    assert load(run).recipe.model.embedding == 16
    timed = recipe.replace("steps = 12", "steps = 0").replace('time = ""', 'time = "5m"')
    replace_file(run, "recipe.toml", timed.encode())
    refused(lambda: load(run), "recipe.toml", "train.steps")


@pytest.mark.parametrize("step", ["x ms", "0 ms", "1 weeks", "99999999999999999999 ms"])
def test_a_step_from_row_to_row_that_is_none_is_refused(tmp_path, step):
    list(train(forecasting(), tmp_path / "run", examples=walks(90)))

    def repair(task):
        task["fields"]["series"]["step"], task["fields"]["series"]["spread"][0] = "", 0.0

    edit(tmp_path / "run", "task.json", lambda task: task["fields"]["series"].update(step=step))
    refused(lambda: load(tmp_path / "run"), "task.json", "'step'")
    edit(tmp_path / "run", "task.json", repair)
    refused(lambda: load(tmp_path / "run"), "task.json, series, spread", "greater than 0")


def test_a_refusal_is_one_line_whatever_a_file_holds(run):
    edit(run, "config.json", lambda config: config.update(cell="two\nlines\x1b[31m\u2028\x85"))
    with pytest.raises(RunError) as caught:
        load(run)
    assert str(caught.value).isprintable() and r"two\nlines\x1b[31m\u2028\x85" in str(caught.value)


# --- what is printed ----------------------------------------------------------------------------------------------


def test_markup_in_names_is_shown_as_it_stands(run, capsys):
    def rename(found):
        found["scores"] = {"[/bold] :smile:": found["scores"]["exact"]}
        found["scores"]["[/bold] :smile:"]["baselines"] = {"[red]\x1b[31m": 0.5}
        found["split"] = "[/italic]"

    edit(run, "scores.json", rename)
    show_scores([load(run).scores])
    shown = capsys.readouterr().out
    assert "[/bold] :smile:" in shown and r"[red]\x1b[31m" in shown and "examples of [/italic]" in shown
    assert "\x1b" not in shown
    show_table(["[/a]"], [["[/b]"]], "[/c]")
    assert [word for word in capsys.readouterr().out.split() if word[0] != "─"] == ["[/c]", "[/a]", "[/b]"]
    terminal.notes.print("[/bold] :smile:")
    assert capsys.readouterr().err == "[/bold] :smile:\n"


def test_markup_in_the_name_of_a_score_is_shown_while_training_goes_on(tmp_path, monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notes", Console(file=screen, force_terminal=True, width=150))
    list(train(small(tmp_path, "train.steps=1"), tmp_path / "run"))
    told = Record("end", 1, 0.5, 2.0, 1e-3, 0.7, 100, 10.0, 1.0, 0, {"[/bold]\n": 0.25}, True)
    assert terminal.follow([told], as_json=False) is told
    assert r"[/bold]\n 0.250" in screen.getvalue()


def test_a_score_without_an_interval_is_shown(run, capsys):
    edit(run, "scores.json", lambda found: found["scores"]["exact"].pop("interval"))
    show_scores([load(run).scores])
    assert "exact" in capsys.readouterr().out


# --- how large it is ----------------------------------------------------------------------------------------------


def test_a_file_that_is_far_too_large_is_refused_before_it_is_read(run):
    for path in sorted(run.iterdir()):
        if path.is_dir() or path.name.startswith((".", "events")):
            continue
        content = path.read_bytes()
        os.truncate(path, 8 << 30)  # with nothing in it: it takes no room on the disk
        refused(lambda: load(run), path.name, f"{8 << 30:,} bytes")
        path.write_bytes(content)
    assert load(run).predict("abc")


def test_weights_may_be_as_large_as_the_recipe_makes_them_and_no_larger(run):
    path = run / "model.safetensors"
    size = path.stat().st_size
    os.truncate(path, 3 * size + 100_000)
    assert 3 * size + 100_000 < get_size_limit(path)  # so it is the recipe that says so
    refused(lambda: load(run), "model.safetensors", "bytes")


def test_layers_without_weights_are_refused_before_they_are_made(run, monkeypatch):
    recipe = (run / "recipe.toml").read_text().replace("depth = 1\n", "depth = 1000\n")
    replace_file(run, "recipe.toml", recipe.encode())
    monkeypatch.setattr(ConditionalGeneration, "build", lambda shape: pytest.fail("they are made"))
    refused(lambda: load(run), "2,000 layers", "tensors")


def test_a_vocabulary_beyond_the_limit_is_refused_before_it_is_learned_from_and_when_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(vocabulary, "MOST_SYMBOLS", 10)
    assert len(Vocabulary.read([*SPECIALS, *"abcdef"])) == 10
    with pytest.raises(RunError, match="11 symbols"):
        Vocabulary.read([*SPECIALS, *"abcdefg"])
    monkeypatch.setattr(building, "MOST_SYMBOLS", 10)
    refused(lambda: list(train(small(tmp_path), tmp_path / "run")), "12 different symbols", "data.vocabulary_size")
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_what_could_not_be_read_again_is_not_begun(tmp_path, monkeypatch):
    monkeypatch.setitem(files.SIZE_LIMITS, "task.json", 100)
    refused(lambda: list(train(small(tmp_path), tmp_path / "run")), "task.json", "not read again")


# --- where it leads -----------------------------------------------------------------------------------------------


def test_no_file_of_a_run_is_a_link(run, tmp_path):
    for path in sorted(run.iterdir()):
        if path.is_dir() or path.name.startswith((".", "events")):
            continue
        outside = tmp_path / path.name
        path.rename(outside)
        path.symlink_to(outside)
        refused(lambda: (load(run), load(run).history, load(run).scores), path.name, "is a link")
        path.unlink()
        outside.rename(path)
    assert load(run).predict("abc")


def test_a_run_may_be_named_by_a_link(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    assert load(tmp_path / "link").predict("abc")[0].output == load(run).predict("abc")[0].output


def test_records_are_not_written_through_a_link(begun, tmp_path):
    outside = tmp_path / "outside.jsonl"
    (begun / "records.jsonl").unlink()
    (begun / "records.jsonl").symlink_to(outside)
    refused(lambda: list(train(None, begun, resume=True)), "records.jsonl", "is a link")
    (begun / "records.jsonl").unlink()
    log = RecordLog(begun / "records.jsonl")
    (begun / "records.jsonl").symlink_to(outside)
    refused(lambda: log.append({}), "records.jsonl", "is a link")
    assert not outside.exists()


def test_checkpoints_are_neither_read_nor_written_nor_removed_through_a_link(begun, tmp_path):
    outside = tmp_path / "outside"
    (begun / "checkpoints").rename(outside)
    (outside / ".precious.partial").write_text("kept")
    (begun / "checkpoints").symlink_to(outside)
    before = {path: path.stat().st_mtime_ns for path in outside.rglob("*")}
    refused(lambda: list(train(None, begun, resume=True)), "checkpoints", "is a link")
    assert {path: path.stat().st_mtime_ns for path in outside.rglob("*")} == before


def test_a_checkpoint_that_is_a_link_is_passed_over_and_what_it_leads_to_is_left_alone(begun, tmp_path):
    outside, [newest, *_] = tmp_path / "outside", Checkpoints(begun / "checkpoints").steps()
    place = begun / "checkpoints" / f"step-{newest}"
    place.rename(outside)
    place.symlink_to(outside)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    said = texts(train(None, begun, resume=True))
    assert any("passed over" in line and "is a link" in line for line in said)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before and not place.is_symlink()
