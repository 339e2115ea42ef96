"""lm-eval, as it is, evaluates a recurrent model over HTTP: its perplexities are those of `seqloom score`."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqloom.cli.main import build_app

from .conftest import Server

FOLDER = "SEQLOOM_LM_EVAL"  # names the folder that holds lm-eval, where it is not installed
METRICS = ("word_perplexity", "byte_perplexity", "bits_per_byte")
LINES = ["7 green bottles hanging on the wall, é.", "no wall", "8 bottles on the green wall, 9 on 1 wall, é."]
Evaluate = Callable[[str, list[str]], dict[str, float]]


@pytest.fixture
def evaluate(runs: Path, tmp_path: Path) -> Iterator[Evaluate]:
    """What lm-eval says of these texts to a run that a server of its own serves."""
    if not os.environ.get(FOLDER) and find_spec("lm_eval") is None:
        pytest.skip(
            "lm-eval is not here: pip install --no-deps --target FOLDER --requirement .ci/lm-eval.txt, then "
            f"{FOLDER}=FOLDER make test"
        )
    started = []

    def run(name: str, texts: list[str]) -> dict[str, float]:
        server = Server(runs / name)  # alone, because lm-eval asks for tokens without naming a model
        started.append(server)
        return run_lm_eval(tmp_path, name, server.url, texts)

    yield run
    for server in started:
        server.stop()


def run_lm_eval(folder: Path, name: str, url: str, texts: list[str]) -> dict[str, float]:
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    task = {
        "task": "texts",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(folder / "texts.jsonl")}},
        "test_split": "test",
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "text",
        "metric_list": [{"metric": metric} for metric in METRICS],
    }
    (folder / "tasks").mkdir()
    (folder / "tasks" / "texts.yaml").write_text(json.dumps(task))  # which is YAML, too
    model = f"model={name},base_url={url}/v1/completions,tokenizer_backend=remote,max_length=100000"
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args", model]
    command += ["--tasks", "texts", "--include_path", str(folder / "tasks"), "--output_path", str(folder / "told")]
    done = subprocess.run(command, cwd=folder, env=make_environment(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    [results] = (folder / "told").rglob("results_*.json")
    told = json.loads(results.read_text())["results"]["texts"]
    return {metric: told[f"{metric},none"] for metric in METRICS}


def make_environment(folder: Path) -> dict[str, str]:
    """Nothing is asked of anybody but the server, and nothing is left outside the folder of the test."""
    paths = [path for path in (os.environ.get(FOLDER), os.environ.get("PYTHONPATH")) if path]
    offline = dict.fromkeys(["HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "OMP_NUM_THREADS"], "1")
    alone = dict.fromkeys(["no_proxy", "NO_PROXY"], "127.0.0.1") | {"HF_HOME": str(folder / "home")}
    return os.environ | offline | alone | {"PYTHONPATH": os.pathsep.join(paths)}


def score(*typed: str | Path) -> str:
    """What `seqloom score --json` prints."""
    done = CliRunner().invoke(build_app(), ["score", *map(str, typed), "--json"])
    assert done.exit_code == 0, done.output
    return done.stdout


def check_units(told: dict[str, float], texts: list[str]) -> float:
    """The nats of all texts, which every unit that lm-eval shares them out to must agree on."""
    size = sum(len(text.encode()) for text in texts)
    words = sum(len(re.split(r"\s+", text)) for text in texts)
    nats = math.log(told["byte_perplexity"]) * size
    assert math.log(told["word_perplexity"]) * words == pytest.approx(nats, rel=1e-6)
    assert told["bits_per_byte"] * math.log(2) * size == pytest.approx(nats, rel=1e-6)
    return nats


def test_perplexity_of_a_text_is_that_of_seqloom_score(evaluate, runs):
    text = "\n".join(LINES) + "\n"
    scored = json.loads(score(runs / "text", "--text", text))
    nats = check_units(evaluate("text", [text]), [text])
    assert len(scored["tokens"]) == len(text)  # characters
    assert math.exp(nats / len(text)) == pytest.approx(scored["perplexity"], rel=1e-5)


def test_perplexity_of_documents_and_their_ends_is_that_of_seqloom_score(evaluate, runs, tmp_path):
    """lm-eval does not ask how probable it is that a document ends: that is added to what it says."""
    file = tmp_path / "lines.txt"
    file.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    [report] = json.loads(score(runs / "lines", "--on", file))
    ends = [json.loads(line)["logs"][-1] for line in score(runs / "lines", "--texts", file).splitlines()]
    nats = check_units(evaluate("lines", LINES), LINES) - sum(ends)
    tokens = sum(len(line) + 1 for line in LINES)
    assert math.exp(nats / tokens) == pytest.approx(report["scores"]["perplexity"]["value"], rel=1e-5)
