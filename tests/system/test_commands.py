"""Through the command line, as a person: train, score, predict; and what is said when something is wrong."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from seqloom.cli import main
from seqloom.recipe import Recipe
from seqloom.runs import train

from ..recipes import backwards

SMALL = ("model.size=32", "train.batch=1024", "train.rate=0.01", "search.width=3")


@pytest.fixture
def seqloom(monkeypatch, capsys):
    """Type a command: its exit code, standard output and standard error."""

    def typed(*words, stdin=""):
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return typed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Trained as a person would, until it has learnt."""
    folder = tmp_path_factory.mktemp("commands")
    path = backwards(folder, count=3000)
    command = [sys.executable, "-m", "seqloom", "train", "transduce", f"data.train={path}", "train.steps=400", *SMALL]
    done = subprocess.run([*command, "--into", str(folder / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "exact" in done.stdout and "copy" in done.stdout and "most frequent" in done.stdout
    return folder / "run"


def test_a_copying_task_is_learnt_and_scored_beside_its_baselines(seqloom, run):
    code, out, _ = seqloom("score", run, "--json")
    [report] = json.loads(out)
    assert code == 0 and report["task"] == "transduce" and report["split"] == "test" and report["examples"] > 100
    exact = report["scores"]["exact"]
    assert exact["value"] > 0.95 > max(exact["baselines"].values())
    low, high = exact["interval"]
    assert low <= exact["value"] <= high


def test_a_run_is_scored_on_a_file_of_ones_own(seqloom, run, tmp_path):
    with gzip.open(tmp_path / "own.tsv.gz", "wt") as file:
        file.write("source\ttarget\nabc\tcba\nab\tnever\nab\tba\n")
    code, out, _ = seqloom("score", run, "--on", tmp_path / "own.tsv.gz", "--json")
    [report] = json.loads(out)
    assert code == 0 and report["scores"]["exact"]["value"] == 1.0  # a source on two lines has two right answers
    code, out, _ = seqloom("score", run, run, "--on", tmp_path / "own.tsv.gz")
    assert code == 0 and out.count("exact") == 2


def test_predictions_from_arguments_a_file_and_standard_input_are_the_same(seqloom, run, tmp_path):
    words = ["abc", "hgf", "", "a b", "日本"]
    (tmp_path / "in.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    _, arguments, _ = seqloom("predict", run, *words)
    _, file, _ = seqloom("predict", run, "--file", tmp_path / "in.txt")
    _, stdin, _ = seqloom("predict", run, stdin="\n".join(words) + "\n")
    assert arguments == file == stdin and arguments.splitlines()[:2] == ["cba", "fgh"]
    code, shown, _ = seqloom("predict", run, "abc", "--width", 3)
    assert code == 0 and shown.splitlines()[0] == "abc" and len(shown.splitlines()) == 4


def test_predictions_for_programs_add_up(seqloom, run):
    code, out, _ = seqloom("predict", run, "abcd", "ef", "--width", 3, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [line["input"] for line in lines] == ["abcd", "ef"]
    for line in lines:
        scores = [one["score"] for one in line["predictions"]]
        assert len(scores) == 3 and scores == sorted(scores, reverse=True)
        for one in line["predictions"]:
            assert one["score"] == pytest.approx(sum(one["logs"]) / len(one["logs"]))


def test_a_printed_config_trains_the_same_model(seqloom, tmp_path):
    path = backwards(tmp_path)
    settings = (f"data.train={path}", "train.steps=5", *SMALL)
    code, out, _ = seqloom("config", "transduce", *settings)
    assert code == 0
    (tmp_path / "saved.toml").write_text(out, encoding="utf-8")
    seqloom("train", "transduce", *settings, "--into", tmp_path / "a")
    seqloom("train", tmp_path / "saved.toml", "--into", tmp_path / "b")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_training_for_programs_prints_records(seqloom, tmp_path):
    path = backwards(tmp_path)
    code, out, _ = seqloom(
        "train", "transduce", f"data.train={path}", "train.steps=4", *SMALL, "--into", tmp_path / "run", "--json"
    )
    records = [json.loads(line) for line in out.splitlines()]
    kept = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert code == 0 and records == kept and records[-1]["kind"] == "end"


def test_parallel_files_train_with_one_command(seqloom, tmp_path):
    words = [f"{a}{b} {c}" for a in "abc" for b in "def" for c in "gh"] * 5
    (tmp_path / "train.en").write_text("\n".join(words) + "\n")
    with gzip.open(tmp_path / "train.de.gz", "wt") as file:
        file.write("\n".join(word.upper() for word in words) + "\n")
    pair = f"data.train={tmp_path / 'train.en'},{tmp_path / 'train.de.gz'}"
    for kind in ("lstm", "transformer"):
        code, out, _ = seqloom(
            "train",
            "translate",
            pair,
            f"model.kind={kind}",
            "model.size=32",
            "train.steps=3",
            "--into",
            tmp_path / kind,
        )
        assert code == 0 and "exact" in out


def test_recipes_and_schema_are_told(seqloom):
    code, out, _ = seqloom("recipes", "--json")
    assert code == 0 and "transduce" in json.loads(out)
    code, out, _ = seqloom("recipes")
    assert code == 0 and "transduce" in out
    code, out, _ = seqloom("config", "transduce", "--schema")
    assert code == 0 and "model" in json.loads(out)["properties"]
    code, out, _ = seqloom("config", "transduce", "model.kind=lstm", "--json")
    assert code == 0 and json.loads(out)["model"]["kind"] == "lstm"


WRONG = [
    (("train", "transduse"), "transduce"),
    (("train", "transduce", "model.knid=lstm"), "kind"),
    (("train", "transduce", "model.kind=lstn"), "lstm"),
    (("train", "transduce", "model.decoder.both_ways=true"), "future"),
    (("train", "transduce", "model.kind=transformer", "model.heads=7"), "heads"),
    (("train", "translate"), "data.train"),
    (("train", "transduce", "data.train=nowhere.csv"), "nowhere.csv"),
    (("train",), "recipe"),
    (("train", "--resume"), "--into"),
    (("train", "transduce", "--changed-data"), "--resume"),
    (("predict", "nowhere", "text"), "nowhere"),
    (("score", "nowhere"), "nowhere"),
    (("config", "nothing"), "nothing"),
]


@pytest.mark.parametrize(("words", "hint"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_mistake_is_one_sentence_and_exit_code_2(seqloom, tmp_path, monkeypatch, words, hint):
    monkeypatch.chdir(tmp_path)
    code, out, err = seqloom(*words)
    assert code == 2 and not out
    assert err.startswith("error: ") and err.count("\n") == 1 and hint in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_one_sentence(seqloom, tmp_path):
    code, out, err = seqloom("train", "transduce", "train.device=cuda", "--into", tmp_path / "run")
    assert code == 2 and not out
    assert err == 'error: train.device is "cuda", but torch finds no such device on this machine: say "auto"\n'


def test_bad_data_names_file_and_line_and_leaves_no_run(seqloom, tmp_path):
    (tmp_path / "bad.csv").write_text("source,target\na,b\nc\n")
    code, _, err = seqloom("train", "transduce", f"data.train={tmp_path / 'bad.csv'}", "--into", tmp_path / "run")
    assert code == 2 and "bad.csv, line 3" in err.splitlines()[-1]
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_bad_input_to_predict_is_one_sentence(seqloom, run, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\xfe\n")
    code, _, err = seqloom("predict", run, "--file", tmp_path / "bad.txt")
    assert code == 2 and "bad.txt, line 2" in err
    assert seqloom("predict", run, "--file", tmp_path / "missing.txt")[0] == 2
    assert seqloom("predict", run, "text", "--file", tmp_path / "bad.txt")[0] == 2
    assert seqloom("predict", run, "text", "--width", 0)[0] == 2


def test_debug_shows_the_trace(seqloom, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["seqloom", "config", "nothing", "--debug"])
    with pytest.raises(Exception, match="nothing"):
        main()


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    path = backwards(tmp_path, count=2000)
    command = [
        sys.executable,
        "-m",
        "seqloom",
        "train",
        "transduce",
        f"data.train={path}",
        "train.steps=100000",
        *SMALL,
    ]
    process = subprocess.Popen(
        [*command, "--into", str(tmp_path / "run"), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in err
    last = json.loads(out.splitlines()[-1]) if out.strip() else first
    [newest] = (tmp_path / "run" / "checkpoints").iterdir()
    assert int(newest.name.removeprefix("step-")) >= last["step"]


def test_the_recipe_of_a_run_is_resolved(run):
    recipe = Recipe.read(run / "recipe.toml")
    assert recipe == recipe.resolved() and recipe.search.max_length > 0 and recipe.train.warmup > 0


def test_predict_streams_its_answers(run):
    """The first answer comes while the input is still open."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seqloom", "predict", str(run)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("abc\n" * 256)
    process.stdin.flush()
    assert process.stdout.readline() == "cba\n"  # otherwise it would wait for ever
    process.communicate()


# --- writing freely -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writing")
    (folder / "text.txt").write_text("".join(f"{number} green bottles on the wall.\n" for number in range(200)))
    settings = ("model.size=32", "train.steps=60", "train.batch=512", "train.window=32", "train.rate=0.02")
    list(train(Recipe.read("language", f"data.train={folder / 'text.txt'}", *settings), folder / "run"))
    return folder / "run"


def test_a_text_is_written_on_and_the_same_seed_writes_the_same(seqloom, writer):
    words = ("generate", writer, "--prompt", "7 green", "--length", "30", "--temperature", "0.5", "--seed", "3")
    code, out, err = seqloom(*words)
    assert code == 0 and out.startswith("7 green") and not err
    assert seqloom(*words, "--top-k", "5", "--top-p", "1")[0] == 0
    assert seqloom(*words)[1] == seqloom(*words, "--stream")[1] == out


def test_texts_come_as_json_with_tokens_and_what_else_was_likely(seqloom, writer, tmp_path):
    words = ("generate", writer, "--length", "5", "--count", "2", "--json", "--alternatives", "2")
    code, out, err = seqloom(*words, "--into", tmp_path / "texts")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and len(found) == 2
    for text in found:
        assert text["output"] == text["prompt"] + text["text"] and len(text["tokens"]) == len(text["logs"]) == 5
        assert all(len(step) == 2 for step in text["alternatives"]) and abs(text["score"] - sum(text["logs"])) < 1e-9
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == ["text-1.txt", "text-2.txt"]
    assert "text-1.txt" in err
    pieces = [json.loads(line) for line in seqloom(*words, "--stream")[1].splitlines()]
    assert {piece["number"] for piece in pieces if "number" in piece} == {0, 1}


def test_what_cannot_be_written_is_one_sentence(seqloom, writer, run):
    assert seqloom("generate", run)[2] == (
        f"error: {run}: a run whose task is transduce answers what it is asked: seqloom predict; "
        "only language and music are written freely\n"
    )
    code, _, err = seqloom("generate", writer, "--count", "2", "--stream")
    assert code == 2 and err == "error: 2 texts at once cannot be streamed as plain text: say --count 1, or --json\n"
    code, _, err = seqloom("generate", writer, "--top-p", "0")
    assert code == 2 and err.startswith("error: top_p is 0")
