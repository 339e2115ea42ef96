"""Search over settings: what is searched over, what is cut short, what a killed search finds again."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqloom.cli.main import main
from seqloom.config.ranges import Over, is_list, is_range, parse_over
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.runs.folder import read_scores
from seqloom.runs.tune import SettingSearch, Trial

from .recipes import small
from .training.together import free_port

# Optuna tells of its plans; forking tells of its dangers.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning", "ignore:.*fork.*")
OVERS = ("model.size=4..16:2", "train.learning_rate=1e-4..1e-1:log", "model.kind=gru,rnn")


def search(folder: Path, storage: str = "") -> SettingSearch:
    recipe = small(folder, "train.steps=4", "train.validate_every=2")
    return SettingSearch(recipe, [parse_over(text, recipe) for text in OVERS], folder / "search", storage)


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("model.size=4..16", Over("model.size", 4, 16)),
        ("model.size=4..16:4", Over("model.size", 4, 16, step=4)),
        ("train.learning_rate=1e-4..1e-2:log", Over("train.learning_rate", 1e-4, 1e-2, True)),
        ("model.dropout=.1..0.5", Over("model.dropout", 0.1, 0.5)),
        ("model.kind=gru, lstm", Over("model.kind", choices=("gru", "lstm"))),
    ],
)
def test_what_is_searched_over(text: str, over: Over) -> None:
    assert parse_over(text, Recipe()) == over


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("model.size=16..4", "from a lower to a higher"),
        ("train.learning_rate=0..1:log", "above 0 if it is :log"),
        ("train.learning_rate=0.1..1:2", "whole numbers"),
        ("model.size=4..16:0", "whole numbers"),
        ("model.siez=4..16", "did you mean model.size"),
        ("model.size=0..16", "model.size must be"),
        ("model.kind=gru,lstn", "did you mean"),
        ("model.kind=gru", "nothing to search over"),
        ("model.kind", "nothing to search over"),
    ],
)
def test_what_cannot_be_searched_over_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        parse_over(text, Recipe())


@pytest.mark.parametrize("values", ["0.1|0.3", "0.1;0.3", "0.1 0.3", "0.1:0.3", "0.1-0.3", "{0.1,0.3}", "0.1...0.3"])
@pytest.mark.parametrize("name", ["model.dropout", "train.dropout"])
def test_who_writes_several_values_as_elsewhere_is_told_how_they_are_written_here(
    typed, name: str, values: str
) -> None:
    said, error, code = typed("tune", "classify", f"{name}={values}")
    assert code == 2 and not said and "several values are written name=a,b,c, and a range name=low..high" in error
    assert "?;" not in error


def test_values_in_brackets_are_a_list_where_one_value_is_asked_for() -> None:
    assert is_list("model.dropout=[0.1, 0.3]", Recipe()) and not is_list("model.size=[64, 128]", Recipe())
    assert parse_over("model.dropout=[0.1, 0.3]", Recipe()) == Over("model.dropout", choices=("0.1", "0.3"))


def test_a_range_is_not_taken_for_a_path() -> None:
    assert is_range("model.size=4..16") and not is_range("data.train=../a.csv") and not is_range("data.train=a,b")


def test_a_search_tells_its_trials_and_said_again_does_no_more(tmp_path: Path) -> None:
    asked = search(tmp_path)
    told = list(asked.run(5))
    assert [trial.number for trial in told] == [0, 1, 2, 3, 4]
    for trial in told:
        assert 4 <= trial.settings["model.size"] <= 16 and 1e-4 <= trial.settings["train.learning_rate"] <= 1e-1
        own = Recipe.read(trial.folder / "recipe.toml")
        assert (own.model.size, own.model.kind) == (trial.settings["model.size"], trial.settings["model.kind"])
        if trial.state == "complete":
            assert trial.value == read_scores(trial.folder)["validation"]["loss"]
    assert list(asked.run(5)) == []
    best, *others = asked.trials()
    assert best.state == "complete" and all(best.value <= one.value for one in others if one.state == "complete")
    assert set(asked.importances()) <= {over.name for over in asked.overs}


def run(words: list[str]) -> int:
    """What a person types, in this process: its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["seqloom", *words])
        main()
    return int(ended.value.code or 0)


def test_lists_alone_are_a_grid_ranked_by_what_training_selects_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the command line: labels are selected by their accuracy, and the printed command trains the best."""
    table = tmp_path / "names.csv"
    table.write_text("text,label\n" + "".join(f"{'ab'[n % 2] * (1 + n % 5)},{'xy'[n % 2]}\n" for n in range(60)))
    monkeypatch.chdir(tmp_path)
    plain = [f"data.train={table}", "data.source=text", "data.target=label", "train.steps=4", "train.validate_every=2"]
    lists = ["train.learning_rate=1e-9,1e-1", "--over", "model.size=4,8", "--trials", "3"]
    asked = ["tune", "classify", *plain, *lists, "--into", "search"]
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    settings = [
        (trial["settings"]["model.size"], trial["settings"]["train.learning_rate"]) for trial in found["trials"]
    ]
    assert settings and set(settings) == {("4", "1e-1"), ("4", "1e-9"), ("8", "1e-9")} and len(settings) == 3
    assert {trial["measure"] for trial in found["trials"]} == {"accuracy"}
    values = [trial["value"] for trial in found["trials"] if trial["state"] == "complete"]
    assert values == sorted(values, reverse=True)
    for trial in found["trials"]:
        if trial["state"] == "complete":
            assert trial["value"] == read_scores(Path(trial["folder"]))["validation"]["accuracy"]
    program, *words = shlex.split(found["command"])
    assert program == "seqloom" and run(words) == 0
    best, again = (
        Recipe.read(Path(folder) / "recipe.toml") for folder in (found["trials"][0]["folder"], "search-best")
    )
    assert best == again
    capsys.readouterr()
    assert run(asked) == 0  # nothing is left to try
    assert "this trains it again" in capsys.readouterr().out
    assert len(list((tmp_path / "search").glob("trial-*"))) == 3


def test_a_search_names_what_training_selects_by_where_the_data_decides_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bag of sentences is selected by its loss."""
    rows = [f"this film number {n} is {'good' if n % 2 else 'bad'},{'xy'[n % 2]}" for n in range(60)]
    (tmp_path / "films.csv").write_text("source,target\n" + "\n".join(rows))
    monkeypatch.chdir(tmp_path)
    assert run(["tune", "classify", "data.train=films.csv", "train.steps=2", "model.dropout=0.1,0.3", "--json"]) == 0
    for trial in json.loads(capsys.readouterr().out)["trials"]:
        assert trial["measure"] == "loss"
        assert trial["value"] == read_scores(Path(trial["folder"]))["validation"]["loss"]


def test_values_that_do_not_go_together_are_passed_over(tmp_path: Path) -> None:
    recipe = small(tmp_path, "train.steps=2", "train.validate_every=2")
    odd = SettingSearch(
        recipe, [parse_over("model.size=4..5", recipe.override("model.bidirectional=false"))], tmp_path / "search"
    )
    told = list(odd.run(6))
    assert len(told) == 2  # and nothing is tried twice
    assert {trial.settings["model.size"]: trial.state for trial in told} == {4: "complete", 5: "pruned"}


def test_a_stopped_search_takes_up_the_trial_that_was_under_way(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert list(search(tmp_path).run(3, stop)) == []
    [begun] = [trial for trial in search(tmp_path).trials() if trial.state == "running"]
    first: Trial = next(search(tmp_path).run(3))
    assert first.settings == begun.settings and first.folder == begun.folder
    records = [json.loads(line) for line in (first.folder / "records.jsonl").read_text().splitlines()]
    assert [record["step"] for record in records if record["kind"] != "note"] == [1, 2, 4]


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        for _ in search(tmp_path).run(100):
            pass
        os._exit(0)
    while not list((tmp_path / "search").glob("trial-*/records.jsonl")):
        assert os.waitpid(process, os.WNOHANG) == (0, 0)
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    list(search(tmp_path).run(2))
    states = [trial.state for trial in search(tmp_path).trials()]
    assert sum(state in ("complete", "pruned") for state in states) >= 2 and "running" not in states


def test_a_database_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the study cannot be opened") as error:
        list(search(tmp_path, "nosuch://nowhere/db").run(1))
    assert "\n" not in str(error.value)


@pytest.fixture
def postgres() -> Iterator[str]:
    """A PostgreSQL of our own on a free port."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.environ["PATH"].split(os.pathsep))]
    programs = next((folder for folder in folders if (folder / "initdb").exists()), None)
    if programs is None:
        pytest.skip("no PostgreSQL server is installed here")
    port, data = free_port(), Path(tempfile.mkdtemp(prefix="seqloom-postgres-"))
    options: dict[str, object] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if os.getuid() == 0:  # the server refuses to be root
        shutil.chown(data, "postgres")
        options |= {"user": "postgres", "cwd": "/"}
    subprocess.run([programs / "initdb", "-D", data, "-U", "me", "-A", "trust"], check=True, **options)
    server = subprocess.Popen([programs / "postgres", "-D", data, "-p", str(port), "-k", data], **options)
    try:
        while subprocess.run([programs / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], **options).returncode:
            assert server.poll() is None
            time.sleep(0.1)
        yield f"postgresql+psycopg://me@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()
        shutil.rmtree(data)


def test_several_searches_share_a_database(tmp_path: Path, postgres: str) -> None:
    for done in (1, 2):
        [told] = search(tmp_path, postgres).run(done)
        assert told.state == "complete"
    assert len(search(tmp_path, postgres).trials()) == 2
