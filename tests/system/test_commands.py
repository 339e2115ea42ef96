"""Through the command line, as a person: train, score, predict; and what is said when something is wrong."""

import gzip
import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from seqloom.certify.checks import list_checks
from seqloom.cli.main import main
from seqloom.config.recipe import Recipe
from seqloom.layers.cells import ResetBeforeGRUCell
from seqloom.runs.run import load, train

from ..recipes import backwards

SMALL = ("model.size=32", "train.batch_tokens=1024", "train.learning_rate=0.01", "search.beam_size=3")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Trained as a person would, until it has learned."""
    folder = tmp_path_factory.mktemp("commands")
    path = backwards(folder, count=3000)
    steps = "train.steps=400", "train.validate_every=200", "train.checkpoint_every=200"
    command = [sys.executable, "-m", "seqloom", "train", "seq2seq", f"data.train={path}", *steps, *SMALL]
    done = subprocess.run([*command, "--into", str(folder / "run")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "exact" in done.stdout and "copy" in done.stdout and "most frequent" in done.stdout
    return folder / "run"


def test_a_copying_task_is_learned_and_scored_beside_its_baselines(seqloom, run):
    code, out, _ = seqloom("score", run, "--json")
    [report] = json.loads(out)
    assert code == 0 and report["task"] == "seq2seq" and report["split"] == "test" and report["examples"] > 100
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
    assert code == 0 and out.count("exact") == 1  # one table


def test_predictions_from_arguments_a_file_and_standard_input_are_the_same(seqloom, run, tmp_path):
    words = ["abc", "hgf", "", "a b", "日本"]
    (tmp_path / "in.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    _, arguments, _ = seqloom("predict", run, *words)
    _, file, _ = seqloom("predict", run, "--file", tmp_path / "in.txt")
    _, stdin, _ = seqloom("predict", run, stdin="\n".join(words) + "\n")
    assert arguments == file == stdin and arguments.splitlines()[:2] == ["cba", "fgh"]
    code, shown, _ = seqloom("predict", run, "abc", "--beam", 3)
    assert code == 0 and shown.splitlines()[0] == "abc" and len(shown.splitlines()) == 4


def test_predictions_for_programs_add_up(seqloom, run):
    code, out, _ = seqloom("predict", run, "abcd", "ef", "--beam", 3, "--json")
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
    code, out, _ = seqloom("config", "seq2seq", *settings)
    assert code == 0
    (tmp_path / "saved.toml").write_text(out, encoding="utf-8")
    seqloom("train", "seq2seq", *settings, "--into", tmp_path / "a")
    seqloom("train", tmp_path / "saved.toml", "--into", tmp_path / "b")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0] == weights[1]


def test_training_for_programs_prints_records(seqloom, tmp_path):
    path = backwards(tmp_path)
    code, out, _ = seqloom(
        "train", "seq2seq", f"data.train={path}", "train.steps=4", *SMALL, "--into", tmp_path / "run", "--json"
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
    assert code == 0 and "seq2seq" in json.loads(out)
    code, out, _ = seqloom("recipes")
    assert code == 0 and "seq2seq" in out
    code, out, _ = seqloom("config", "seq2seq", "--schema")
    assert code == 0 and "model" in json.loads(out)["properties"]
    code, out, _ = seqloom("config", "seq2seq", "model.kind=lstm", "--json")
    assert code == 0 and json.loads(out)["model"]["kind"] == "lstm"


WRONG = [
    (("train", "transduse"), "seq2seq"),
    (("train", "seq2seq", "model.knid=lstm"), "kind"),
    (("train", "seq2seq", "model.kind=lstn"), "lstm"),
    (("train", "seq2seq", "model.decoder.bidirectional=true"), "future"),
    (("train", "seq2seq", "model.kind=transformer", "model.heads=7"), "heads"),
    (("train", "translate"), "data.train"),
    (("train", "seq2seq", "data.train=nowhere.csv"), "nowhere.csv"),
    (("train",), "recipe"),
    (("train", "--resume"), "--into"),
    (("train", "seq2seq", "--changed-data"), "--resume"),
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


def test_a_device_that_is_not_there_is_one_sentence(seqloom, tmp_path):
    missing = "mps" if torch.cuda.is_available() else "cuda"  # no machine has both
    code, out, err = seqloom("train", "seq2seq", f"train.device={missing}", "--into", tmp_path / "run")
    assert code == 2 and not out
    assert err == f'error: train.device is "{missing}", but torch finds no such device on this machine: say "auto"\n'


def test_bad_data_names_file_and_line_and_leaves_no_run(seqloom, tmp_path):
    (tmp_path / "bad.csv").write_text("source,target\na,b\nc\n")
    code, _, err = seqloom("train", "seq2seq", f"data.train={tmp_path / 'bad.csv'}", "--into", tmp_path / "run")
    assert code == 2 and "bad.csv, line 3" in err.splitlines()[-1]
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_bad_input_to_predict_is_one_sentence(seqloom, run, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\xfe\n")
    code, _, err = seqloom("predict", run, "--file", tmp_path / "bad.txt")
    assert code == 2 and "bad.txt, line 2" in err
    assert seqloom("predict", run, "--file", tmp_path / "missing.txt")[0] == 2
    assert seqloom("predict", run, "text", "--file", tmp_path / "bad.txt")[0] == 2
    assert seqloom("predict", run, "text", "--beam", 0)[0] == 2


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
        "seq2seq",
        f"data.train={path}",
        "train.steps=100000",
        *SMALL,
    ]
    process = subprocess.Popen(
        [*command, "--into", str(tmp_path / "run"), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    while (first := json.loads(process.stdout.readline()))["kind"] == "note":
        pass
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


def answers(out):
    return [[one["output"] for one in json.loads(line)["predictions"]] for line in out.splitlines()]


def test_predictions_obey_the_rules_they_are_given(seqloom, run):
    def asked(*options):
        code, out, err = seqloom("predict", run, "abcd", "feg", "--json", *options)
        assert code == 0, err
        return answers(out)

    plain = asked("--beam", 4)
    assert plain[0][0] == "dcba" and len(plain[0]) == 4
    assert not any("c" in text for found in asked("--ban", "c") for text in found)
    assert not any("dc" in text for found in asked("--ban", "dc") for text in found)
    assert all("h" in text for found in asked("--require", "h") for text in found)
    assert all(text.startswith("gg") for found in asked("--prefix", "gg") for text in found)
    assert asked("--beam", 1, "--stop", "cb")[0] == ["d"]
    assert all(len(text) <= 2 for found in asked("--max-length", 2) for text in found)
    assert all(len(text) >= 6 for found in asked("--min-length", 6) for text in found)
    assert all(len(set(text)) == len(text) for found in asked("--no-repeat", 1, "--min-length", 6) for text in found)
    assert [len(found) for found in asked("--beam", 4, "--groups", 2, "--best", 2)] == [2, 2]
    drawn = asked("--draw", 3, "--temperature", 3, "--seed", 5)
    assert drawn == asked("--draw", 3, "--temperature", 3, "--seed", 5) and [len(found) for found in drawn] == [3, 3]
    code, out, _ = seqloom("predict", run, "feg", "--json", "--draw", 3, "--temperature", 3, "--seed", 5)
    assert answers(out) == drawn[1:]  # whatever stands beside it


def test_predictions_tell_what_else_was_likely_and_how_long_it_took(seqloom, run):
    _, out, _ = seqloom("predict", run, "abcd", "--beam", 1, "--alternatives", 3, "--json")
    [best] = json.loads(out)["predictions"]
    assert best["finish"] == "end" and best["seconds"] > 0 and len(best["alternatives"]) == len(best["logs"]) == 5
    for log, others in zip(best["logs"], best["alternatives"], strict=True):
        assert abs(max(others.values()) - log) < 1e-6 and len(others) == 3


def test_a_streamed_answer_is_the_answer(seqloom, run):
    for options in (("--beam", 1), ("--beam", 1, "--stop", "cb"), ("--draw", 1, "--temperature", 2, "--seed", 3)):
        whole = seqloom("predict", run, "abcd", "feg", *options)
        assert seqloom("predict", run, "abcd", "feg", "--stream", *options) == whole and whole[0] == 0
    pieces = load(run).stream("abcd")
    assert next(pieces) == "d" and "".join(pieces) == "cba"
    code, _, err = seqloom("predict", run, "abcd", "--stream", "--beam", 4)
    assert code == 2 and "one answer at a time" in err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--temperature", 0.5), "add --draw 1 or more"),
        (("--require", "ab"), "a token can be required, but 'ab' is 2 of them: a b"),
        (("--ban", "%"), "holds what this model never writes"),
        (("--beam", 3, "--alternatives", 2), "a beam of 1"),
        (("--beam", 3, "--groups", 2), "cannot be divided evenly"),
    ],
)
def test_rules_that_cannot_be_are_one_sentence(options, expected, seqloom, run):
    code, _, err = seqloom("predict", run, "abcd", *options)
    assert code == 2 and expected in err and err.count("\n") == 1


@pytest.mark.filterwarnings("ignore:no C compiler")  # without one it is slower, and the same
def test_weights_of_eight_bits_are_measured_and_kept_in_the_run(seqloom, run, tmp_path):
    code, out, err = seqloom("quantize", run, "--json")
    assert code == 0, err
    told = json.loads(out)
    exact = told["scores"]["exact"]
    assert told["split"] == "validation" and abs(exact["change"]) < 0.05 < exact["int8"]
    assert exact["change"] == exact["int8"] - exact["float32"]
    assert json.loads((run / "int8.json").read_text()) == told
    plain, rounded = (json.loads(seqloom("predict", run, "abcd", "--json", *more)[1]) for more in ((), ("--int8",)))
    first, second = plain["predictions"][0], rounded["predictions"][0]
    assert first["output"] == second["output"] and first["logs"] != second["logs"]
    assert seqloom("score", run)[0] == 0  # the folder still vouches for itself


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_labels_of_eight_bits_are_those_of_rounded_weights_and_their_loss_is_measured(seqloom, tmp_path, task):
    """By hand: every weight of the body and the head is a whole number from -127 to 127 times the scale of its row."""
    pairs = [("a b c", "x y x"), ("b a", "y x"), ("c b a d", "x x y y")] * 8
    examples = pairs if task == "tag" else [(text, tags[0]) for text, tags in pairs]
    recipe = Recipe.of({"task": task}).override("model.kind=gru", "model.size=16", "train.steps=20")
    list(train(recipe.override("data.source_tokenizer=words") if task == "classify" else recipe, tmp_path / "run",
               examples=examples))  # fmt: skip
    (tmp_path / "own.tsv").write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in examples))
    code, out, err = seqloom("quantize", tmp_path / "run", "--on", tmp_path / "own.tsv", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["seconds"].keys() == {"float32", "int8"} and told["scores"]["accuracy"]["int8"] <= 1
    plain, rounded = load(tmp_path / "run"), load(tmp_path / "run", int8=True)
    for name, part in rounded.model.named_modules():
        if type(part) is torch.nn.Linear and not name.startswith("embed"):
            whole = dict(plain.model.named_modules())[name].weight
            scale = whole.abs().amax(1, keepdim=True) / 127
            torch.testing.assert_close(part.weight, (whole / scale).round() * scale)
    code, out, _ = seqloom("predict", tmp_path / "run", "a b c", "--int8", "--json")
    assert json.loads(out)["predictions"][0]["score"] == pytest.approx(rounded.predict("a b c")[0].score, abs=1e-5)
    assert rounded.predict("a b c")[0].score != plain.predict("a b c")[0].score


# --- writing freely -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("writing")
    (folder / "text.txt").write_text("".join(f"{number} green bottles on the wall.\n" for number in range(200)))
    settings = (
        "model.size=32",
        "train.steps=60",
        "train.batch_tokens=512",
        "train.bptt_window=32",
        "train.learning_rate=0.02",
    )
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


def test_texts_obey_the_rules_they_are_given(seqloom, writer):
    """Over the end of the model's window, too."""

    def text(*options):
        code, out, err = seqloom("generate", writer, "--prompt", "7 green", "--length", 60, "--json", *options)
        assert code == 0, err
        return json.loads(out)

    assert "e" not in text("--ban", "e")["text"]
    assert "on" not in text("--ban", "on")["text"]
    assert text("--prefix", " wall")["text"].startswith(" wall")
    stopped = text("--temperature", 0, "--stop", "tt")
    assert stopped["finish"] == "stop" and "bo".endswith(stopped["text"][-2:]) and "tt" not in stopped["text"]
    written = text("--no-repeat", 3, "--seed", 2)["text"]
    parts = [written[place : place + 3] for place in range(len(written) - 2)]
    assert len(parts) == len(set(parts)) > 40


def test_what_cannot_be_written_is_one_sentence(seqloom, writer, run):
    assert seqloom("generate", run)[2] == (
        f"error: {run}: a run whose task is seq2seq answers what it is asked: seqloom predict; "
        "only language and music are written freely, and images drawn\n"
    )
    code, _, err = seqloom("generate", writer, "--count", "2", "--stream")
    assert code == 2 and err == "error: 2 texts at once cannot be streamed as plain text: use --count 1 or --json\n"
    code, _, err = seqloom("generate", writer, "--top-p", "0")
    assert code == 2 and err.startswith("error: top_p is 0")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_certificate_that_is_lost_is_told_by_the_exit_code(seqloom, monkeypatch, as_json):
    some = [check for check in list_checks() if check.subject in ("gru-before", "additive")]
    monkeypatch.setattr("seqloom.certify.checks.list_checks", lambda: some)

    def held(out):
        if as_json:
            return [one["subject"] for one in json.loads(out) if one["holds"]]
        return [line.split()[1] for line in out.splitlines() if "✓" in line]

    code, out, _ = seqloom("certify", *as_json)
    assert code == 0 and held(out) == [check.subject for check in some]
    forward = ResetBeforeGRUCell.forward
    monkeypatch.setattr(ResetBeforeGRUCell, "forward", lambda *given: (1.01 * forward(*given)[0],))
    code, out, _ = seqloom("certify", *as_json)
    assert code == 1 and 0 < len(held(out)) < len(some) and "additive" in held(out)
