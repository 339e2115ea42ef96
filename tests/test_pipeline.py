"""Training from a command to its last record: nothing is done twice, nothing is left behind, a run can go on."""

import hashlib
import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from seqloom.config.recipe import Recipe
from seqloom.data.prepare import FEWEST, Split
from seqloom.data.ragged import Ragged, Texts
from seqloom.errors import DataError, RecipeError
from seqloom.runs import pipeline, workers
from seqloom.runs.notes import yield_notes
from seqloom.runs.run import load, train
from seqloom.tasks.conditional_generation import ConditionalGeneration
from seqloom.tasks.task import Declaration
from seqloom.training import files, manifests, tensors
from seqloom.training.probe import Stopped

from .recipes import backwards, measured, small, texts

TIMINGS = ("seconds", "tokens_per_second")


@pytest.fixture
def seqloom(monkeypatch, capsys):
    """The command line, as a person types it: the exit code, and what it says on either side."""
    from seqloom.cli.main import main

    def typed(*words):
        monkeypatch.setattr("sys.argv", ["seqloom", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return typed


def write_recipe(folder: Path, *overrides: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(small(folder, *overrides).to_toml(comments=False), encoding="utf-8")
    return path


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_note_comes_while_the_work_goes_on():
    heard, work_on = [], threading.Event()

    def work(note):
        note("begun")
        assert work_on.wait(10)
        return "done"

    notes = yield_notes(work, None, str)
    heard.append(next(notes))
    work_on.set()
    with pytest.raises(StopIteration) as end:
        next(notes)
    assert heard == ["begun"] and end.value.value == "done"


def test_work_that_nobody_waits_for_ends_with_its_next_note_and_an_error_is_the_callers():
    ended = threading.Event()

    def endless(note):
        try:
            while True:
                note("on")
        finally:
            ended.set()

    notes = yield_notes(endless, None, str)
    next(notes)
    notes.close()
    assert ended.is_set()
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        next(yield_notes(endless, stop, str))

    def broken(note):
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        next(yield_notes(broken, None, str))


def test_what_is_written_is_what_is_yielded_whoever_listens(tmp_path):
    recipe = small(tmp_path)
    records = list(train(recipe, tmp_path / "one"))
    lines = (tmp_path / "one" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == [record.kind for record in records]
    said = [json.loads(line).get("text") for line in lines]
    assert [text for text in said if text] == texts(records)
    assert any("rows read" in text for text in texts(records))
    assert records[-1].kind == "end" and records[-1].final["scores"] == load(tmp_path / "one").scores["scores"]
    [details] = [record.details for record in records if record.details]
    assert details["steps"] == 12 and details["threads"] >= 1 and details["seconds"] > 0
    assert all(str(record) for record in records)


# --- nothing is done twice --------------------------------------------------------------------------------------------


class Counting:
    """Counts the calls of a function by what it is called with."""

    def __init__(self, monkeypatch, *places):
        self.calls = Counter()
        for owner, name in places:
            monkeypatch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, function):
        def call(*words, **more):
            self.calls[getattr(words[0], "name", str(words[0]))] += 1
            return function(*words, **more)

        return call


def test_training_reads_no_weights_back_and_hashes_each_file_once(tmp_path, monkeypatch):
    opened = Counting(monkeypatch, (files, "open_limited"), (tensors, "open_limited"))
    hashed = Counter()
    plain = hashlib.sha256

    def sha256(data=b"", **more):
        hashed[bytes(data)] += 1
        return plain(data, **more)

    monkeypatch.setattr(manifests.hashlib, "sha256", sha256)
    digests = Counting(monkeypatch, (pipeline, "sha256"), (manifests, "sha256"))
    list(train(small(tmp_path), tmp_path / "run"))
    assert opened.calls["model.safetensors"] == 0
    assert digests.calls == {"records.jsonl": 1}
    folder = tmp_path / "run"
    for name in ("recipe.toml", "config.json", "task.json", "model.safetensors", "scores.json", "README.md"):
        assert hashed[(folder / name).read_bytes()] == 1, name


def test_loading_reads_and_hashes_the_weights_once(tmp_path, monkeypatch):
    list(train(small(tmp_path), tmp_path / "run"))
    read = Counting(monkeypatch, (manifests, "read_bytes"))
    digests = Counting(monkeypatch, (manifests, "sha256"))
    load(tmp_path / "run")
    assert read.calls == {"model.safetensors": 1} and digests.calls["model.safetensors"] == 0
    assert set(digests.calls.values()) == {1}


def test_training_prepares_the_data_once_and_loads_no_run_to_print_it(tmp_path, monkeypatch, seqloom):
    write_recipe(tmp_path)
    monkeypatch.setattr("seqloom.runs.run.load", None)
    built = Counting(monkeypatch, (ConditionalGeneration, "build"))
    code, out, said = seqloom("train", tmp_path / "recipe.toml", "--into", tmp_path / "run")
    assert code == 0 and "exact" in out and "seqloom predict" in said
    assert sum(built.calls.values()) == 1


def test_a_report_prepares_the_data_once(tmp_path, monkeypatch):
    monkeypatch.setattr("seqloom.look.charts.base.make_library_tag", lambda: "")
    list(train(small(tmp_path), tmp_path / "run"))
    run, count = load(tmp_path / "run"), Counter()
    prepare = Declaration.prepare

    def counted(self, *words, **more):
        count["prepared"] += 1
        return prepare(self, *words, **more)

    monkeypatch.setattr(Declaration, "prepare", counted)
    loaded = Counting(monkeypatch, (manifests, "read_bytes"))
    run.report(tmp_path / "page.html")
    assert count["prepared"] == 1 and loaded.calls["model.safetensors"] == 0


def test_predicting_encodes_each_input_once(tmp_path, monkeypatch, seqloom):
    list(train(small(tmp_path), tmp_path / "run"))
    encoded, field = [], type(load(tmp_path / "run").task.source)
    encode_many = field.encode_many

    def counted(self, raws):
        encoded.extend(raws)
        return encode_many(self, raws)

    monkeypatch.setattr(field, "encode_many", counted)
    code, out, _ = seqloom("predict", tmp_path / "run", "abc", "cab", "--json")
    assert code == 0 and len(out.splitlines()) == 2 and encoded == ["abc", "cab"]


# --- nothing is left behind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mistake",
    ["data.target=none", "data.train=none.tsv", "train.freeze=nothing", "model.size=7 model.kind=transformer"],
)
def test_after_an_error_nothing_is_left_and_the_corrected_command_works(tmp_path, seqloom, mistake):
    path = tmp_path / "recipe.toml"
    path.write_text(
        small(tmp_path, "train.steps=2", "train.validate_every=2").to_toml(comments=False), encoding="utf-8"
    )
    folder = tmp_path / "runs" / "one"
    code, _, said = seqloom("train", path, *mistake.split(), "--into", folder)
    assert code == 2 and said.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "runs").exists()
    code, _, said = seqloom("train", path, "--into", folder)
    assert code == 0, said


def test_what_was_in_the_folder_before_stays_there_after_an_error(tmp_path, seqloom):
    (tmp_path / "run").mkdir()
    code, _, _ = seqloom("train", "seq2seq", "data.train=none.tsv", "--into", tmp_path / "run")
    assert code == 2 and list((tmp_path / "run").iterdir()) == []
    (tmp_path / "run" / "mine.txt").write_text("mine")
    code, _, said = seqloom("train", "seq2seq", "--into", tmp_path / "run")
    assert code == 2 and "not an empty folder" in said
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine.txt"]


def test_resuming_where_nothing_began_begins(tmp_path, seqloom):
    path = tmp_path / "recipe.toml"
    path.write_text(
        small(tmp_path, "train.steps=2", "train.validate_every=2").to_toml(comments=False), encoding="utf-8"
    )
    for folder in (tmp_path / "new", tmp_path / "killed"):
        if folder.name == "killed":  # after it had said something, before it had begun
            folder.mkdir()
            (folder / "records.jsonl").write_text('{"kind": "note", "step": 0, "text": "reading"}\n{"kind": "no')
            (folder / ".recipe.toml.partial").write_text("half")
        code, _, said = seqloom("train", path, "--into", folder, "--resume")
        assert code == 0, said
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "records.jsonl").write_text('{"kind": "no')
    assert seqloom("train", path, "--into", tmp_path / "again")[0] == 0  # no work of anybody is in it


# --- a run goes on to more steps --------------------------------------------------------------------------------------


def outcome(folder: Path) -> tuple[object, ...]:
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    records = [{k: v for k, v in line.items() if k not in TIMINGS} for line in lines if line["kind"] != "note"]
    return (
        records,
        (folder / "model.safetensors").read_bytes(),
        json.loads((folder / "scores.json").read_text())["scores"],
    )


CONSTANT = ("train.schedule=constant", "train.warmup=2", "train.checkpoint_every=4")


def test_a_finished_run_goes_on_as_if_it_had_been_begun_for_more_steps(tmp_path, seqloom):
    write_recipe(tmp_path, *CONSTANT)
    for folder, steps in (("whole", 12), ("longer", 8)):
        code, _, _ = seqloom("train", tmp_path / "recipe.toml", f"train.steps={steps}", "--into", tmp_path / folder)
        assert code == 0
    code, out, said = seqloom("train", "train.steps=12", "--into", tmp_path / "longer", "--resume")
    assert code == 0 and "goes on to 12, as if begun for these" in said and "exact" in out
    assert outcome(tmp_path / "longer") == outcome(tmp_path / "whole")
    assert load(tmp_path / "longer").recipe == load(tmp_path / "whole").recipe
    code, _, said = seqloom("train", "train.steps=12", "--into", tmp_path / "longer", "--resume")
    assert code == 0 and "finished" in said
    code, _, said = seqloom("train", "train.steps=6", "--into", tmp_path / "longer", "--resume")
    assert code == 2 and "has made 12 steps already" in said
    code, _, said = seqloom("train", "train.seed=6", "--into", tmp_path / "longer", "--resume")
    assert code == 2 and "train.seed" in said


def test_a_run_is_taken_up_without_typing_again_what_it_was_begun_with(tmp_path, typed):
    rows = "".join(f"a {'good' if n % 2 else 'bad'} day {n},{'yes' if n % 2 else 'no'}\n" for n in range(20))
    for name in ("days.csv", "others.csv"):
        (tmp_path / name).write_text("text,label\n" + rows)
    settings = ["data.train=days.csv", "data.source=text", "data.target=label", "model.kind=gru", "model.size=8"]
    assert typed("train", "classify", *settings, "train.steps=2", "--into", "run")[2] == 0
    assert "finished" in typed("train", "classify", "--into", "run", "--resume")[1]
    _, error, code = typed("train", "classify", "data.target=label", "train.steps=3", "--into", "run", "--resume")
    assert code == 0 and "going on from step 2 of 3" in error, error
    own = load(tmp_path / "run").recipe
    assert own.train.steps == 3 and own.data.train == ("days.csv",) and own.model.size == 8
    before = (tmp_path / "run" / "recipe.toml").read_text()
    for recipe, other, said in (
        ("classify", "data.train=others.csv", 'was begun with data.train = ["days.csv"], not ["others.csv"]'),
        ("classify", "train.learning_rate=0.5", "was begun with train.learning_rate"),
        ("classify", "model.kind=lstm", 'was begun with model.kind = "gru", not "lstm"'),
        ("classify", "model.size=9", "goes on with the settings it was begun with"),
        ("tag", "train.steps=4", "was begun with the task classify, not tag"),
    ):
        out, error, code = typed("train", recipe, other, "--into", "run", "--resume")
        assert code == 2 and not out and len(error.splitlines()) == 1 and said in error, error
    (tmp_path / "own.toml").write_text('task = "classify"\n[data]\ntrain = "others.csv"\n')
    assert "data.train" in typed("train", "own.toml", "--into", "run", "--resume")[1]  # what a file says is typed, too
    (tmp_path / "own.toml").write_text('task = "classify"\n[model]\nsize = 8\n')
    assert "finished" in typed("train", "own.toml", "--into", "run", "--resume")[1]
    assert (tmp_path / "run" / "recipe.toml").read_text() == before


def test_a_run_that_cannot_go_on_exactly_says_why(tmp_path):
    recipe = small(tmp_path, "train.steps=6", "train.validate_every=4", "train.teacher_forcing=0.5")
    recipe = recipe.override("train.teacher_forcing_schedule=linear")
    list(train(recipe, tmp_path / "run"))
    said = texts(train(recipe.override("train.steps=12"), tmp_path / "run", resume=True))
    [note] = [text for text in said if "was begun for 6 steps" in text]
    for word in ("learning rate", "teacher forcing", "step 6 was validated"):
        assert word in note
    assert load(tmp_path / "run").recipe.train.steps == 12


def test_a_run_that_goes_on_to_more_steps_is_taken_up_exactly(tmp_path):
    recipe = small(tmp_path, *CONSTANT)
    list(train(recipe, tmp_path / "whole"))
    list(train(recipe.override("train.steps=4"), tmp_path / "cut"))
    records = measured(train(recipe, tmp_path / "cut", resume=True))
    next(records)
    records.close()  # reopened, and stopped before the next checkpoint
    list(train(None, tmp_path / "cut", resume=True))
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


def test_a_run_that_patience_has_ended_is_not_trained_on(tmp_path):
    recipe = small(
        tmp_path, "train.patience=1", "train.learning_rate=1e-9", "train.validate_every=2", "train.ema=0.999"
    )
    *_, end = train(recipe, tmp_path / "run")
    assert end.step < 12
    with pytest.raises(RecipeError, match=f"train.patience has ended this run at step {end.step} of 12"):
        list(train(recipe.override("train.steps=20"), tmp_path / "run", resume=True))
    assert load(tmp_path / "run").scores


# --- processes --------------------------------------------------------------------------------------------------------


def test_processes_are_a_number_or_tried_out_and_only_when_asked(tmp_path, monkeypatch, seqloom):
    path = tmp_path / "recipe.toml"
    path.write_text(
        small(tmp_path, "train.steps=2", "train.validate_every=2").to_toml(comments=False), encoding="utf-8"
    )
    tried = Counting(monkeypatch, (workers, "measure_parallelism"))
    code, _, said = seqloom("train", path, "--into", tmp_path / "run", "--processes", "many")
    assert code == 2 and "a number from 1 to 1024 was expected, or auto" in said
    assert seqloom("train", path, "--into", tmp_path / "plain")[0] == 0 and not tried.calls
    assert seqloom("train", path, "--into", tmp_path / "run", "--processes", "auto")[0] == 0
    assert sum(tried.calls.values()) == 1


# --- validations ------------------------------------------------------------------------------------------------------


def test_validations_read_a_tenth_of_what_is_trained_on_and_all_of_it_at_the_end(tmp_path, monkeypatch):
    sizes, plain = [], ConditionalGeneration.validate

    def validate(self, model, prepared):
        sizes.append(len(prepared.splits["validation"]))
        return plain(self, model, prepared)

    monkeypatch.setattr(ConditionalGeneration, "validate", validate)
    recipe = Recipe.read(write_recipe(tmp_path))
    backwards(tmp_path, count=4000)
    *_, end = train(recipe, tmp_path / "run")
    prepared = load(tmp_path / "run").read_own_data().splits["validation"]
    assert sizes == [FEWEST] * 3 + [len(prepared)] and len(prepared) > FEWEST
    assert load(tmp_path / "run").recipe.train.validation_tokens == 4 * 256 // 10
    assert end.final["validation"].keys() == end.scores.keys()


def test_a_sample_is_from_all_over_the_part_and_of_the_size_asked_for():
    ids = Ragged.of([[number] * 10 for number in range(1000)])
    raws = Texts.of([str(number) for number in range(1000)])
    pairs = Split({"source": ids, "target": ids}, {"source": raws, "target": raws})
    sample = pairs.sample(4000)
    assert len(sample) == 200 and sample.ids["source"][-1][0] >= 990
    assert [int(row[0]) for row in sample.ids["target"]] == [int(text) for text in sample.raws["source"]]
    assert len(pairs.sample(1)) == FEWEST and pairs.sample(20_000) is pairs
    text = Split({"target": Ragged.of([list(range(5000))])}, {"target": Texts.of(["x"])})
    assert text.sample(300).ids["target"][0].tolist() == list(range(300))
