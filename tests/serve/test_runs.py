"""Runs in memory: the longest unused leaves, what is trained anew is read anew; and what the server tells of itself."""

import re
import shutil

import pytest

from seqloom.config.recipe import Recipe
from seqloom.runs.folder import WEIGHTS
from seqloom.runs.run import load, train
from seqloom.serve import runs as served

from .conftest import FEW, LABELED
from .test_looking import GIVEN


def ask(client, run):
    return client.post("/predict", json={"run": run, "inputs": [GIVEN[run]]})


def loaded(client):
    return {run["name"] for run in client.get("/runs").json()["runs"] if run["loaded"]}


def size(runs, *names):
    return sum((runs / name / WEIGHTS).stat().st_size for name in names)


def test_the_longest_unused_run_leaves_when_memory_is_short(serving, runs):
    client = serving(memory=size(runs, "mood", "tags", "text") - 1)
    for run in ("mood", "tags", "mood", "text"):
        assert ask(client, run).status_code == 200
    assert loaded(client) == {"mood", "text"}
    assert 'seqloom_loads_total{what="unloaded"} 1' in client.get("/metrics").text
    assert ask(client, "tags").status_code == 200  # and comes back when it is asked


def test_a_run_that_is_larger_than_the_memory_is_refused_and_others_stay(serving, runs):
    client = serving(memory=size(runs, "mood"))
    assert ask(client, "mood").status_code == 200
    answer = ask(client, "text")
    assert answer.status_code == 503 and "--memory" in answer.json()["error"]
    assert loaded(client) == {"mood"}


def test_a_run_that_is_trained_anew_is_read_anew(serving, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(served, "FRESH", 0.0)
    shutil.copytree(runs / "mood", tmp_path / "runs" / "mood")
    client = serving(tmp_path / "runs")
    before = ask(client, "mood").json()["answers"][0]["predictions"]
    recipe = Recipe.of({"task": "classify"}).override(*FEW, "data.source_tokenizer=words", "train.seed=5")
    list(train(recipe, tmp_path / "new", examples={part: LABELED for part in ("train", "validation", "test")}))
    shutil.rmtree(tmp_path / "runs" / "mood")
    shutil.copytree(tmp_path / "new", tmp_path / "runs" / "mood")
    after = ask(client, "mood").json()["answers"][0]["predictions"]
    expected = load(tmp_path / "new").predict(GIVEN["mood"])[0]
    assert after[0]["probability"] == pytest.approx(expected.probability, abs=1e-5)
    assert after != before


LINE = re.compile(r'([a-z_]+)(\{[a-z_]+="(?:[^"\\]|\\.)*"(?:,[a-z_]+="(?:[^"\\]|\\.)*")*\})? (\S+)')


def read_metrics(client):
    """By name and labels; every line has to be one of the format, and every name a type."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    types = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    found = {}
    for line in lines:
        if not line.startswith("#"):
            name, labels, value = LINE.fullmatch(line).groups()
            assert name in types or name.rpartition("_")[0] in types
            found[name + (labels or "")] = float(value)
    return found


def test_metrics_tell_what_was_done(serving):
    client = serving()
    assert client.post("/predict", json={"run": "mood", "inputs": ["good film"] * 3}).status_code == 200
    asked = {"model": "text", "prompt": "7", "max_tokens": 5, "temperature": 0}
    written = client.post("/v1/completions", json=asked).json()["usage"]["completion_tokens"]
    assert client.post("/predict", json={"run": "nowhere", "inputs": ["a"]}).status_code == 404
    told = read_metrics(client)
    inputs = 3 + 1 + 1  # three texts, one prompt that is read, one that is written on
    assert told["seqloom_queue_wait_seconds_count"] == told['seqloom_queue_wait_seconds_bucket{le="+Inf"}'] == inputs
    assert told["seqloom_batch_size_sum"] == inputs
    assert told['seqloom_batches_total{left="nothing else waiting"}'] == told["seqloom_batch_size_count"]
    assert told["seqloom_tokens_total"] == written == 5
    assert told['seqloom_refusals_total{reason="unknown run"}'] == 1
    assert told['seqloom_requests_total{route="/predict",status="200"}'] == 1
    assert told["seqloom_runs_loaded"] == 2


@pytest.mark.parametrize("run", ["mood", "tags", "text", "backwards", "walk"])
def test_every_kind_is_explained_in_one_form_with_its_faithfulness(client, run):
    told = client.post("/explain", json={"run": run, "input": GIVEN[run]}).json()
    first = client.post("/explain", json={"run": "mood", "input": GIVEN["mood"]}).json()
    assert told.keys() == first.keys()
    for method in told["methods"]:
        assert method.keys() == first["methods"][0].keys()
        assert len(method["shares"]) == len(told["elements"])
        assert 0 <= method["faithfulness"]["better_than_random"] <= 1


def test_of_a_text_that_is_written_on_the_answer_is_what_comes_next(client):
    """Its probability is that of the list of next tokens, and its shares are those of the longer text's last step."""
    told = client.post("/explain", json={"run": "text", "input": "7 gree", "answer": "n"}).json()
    expected = client.post("/next", json={"run": "text", "input": "7 gree"}).json()
    listed = expected["logs"][expected["tokens"].index("n")]  # where what is never written has no share
    assert told["log_probability"] == pytest.approx(listed, abs=0.01)
    longer = client.post("/explain", json={"run": "text", "input": "7 green", "step": 6}).json()
    whole = client.post("/explain", json={"run": "text", "input": "7 green"}).json()
    assert told["methods"] == longer["methods"] != whole["methods"]
