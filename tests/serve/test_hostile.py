"""What nobody sends by accident: hundreds of malformed requests, and run folders that are made to do harm."""

import json
import os
import shutil
import time

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from seqloom.training.manifests import replace_file

from .conftest import Server, tell

NAMES = ("text", "backwards", "mood", "tags", "walk", "nowhere")
INPUTS = st.one_of(
    st.text(max_size=40),
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.lists(st.floats(-1e3, 1e3), max_size=3)), max_size=12),
    st.sampled_from(["a good film", "abc", "7 green", "", [["a"]], {"a": 1}, None, 3, True, ["a", "b"]]),
)


def throw(session, url, body_name, requests_wanted, number=0):
    """So many requests by the document of all routes, half of them against it; 0 of them may fail the server.

    `body_name` is what the session calls the bytes of a body.
    """
    schema = schemathesis.openapi.from_dict(session.get(f"{url}/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    each, sent, statuses = -(-requests_wanted // len(operations)), 0, set()
    for operation in operations:
        modes = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

        @seed(number)
        @given(st.one_of(modes), st.sampled_from(NAMES), INPUTS)
        @settings(
            max_examples=each,
            deadline=None,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def one(case, name, meant):
            nonlocal sent
            for place in (case.body, case.path_parameters):  # a run that is there, more often than chance would have it
                for key in ("run", "model"):
                    if isinstance(place, dict) and isinstance(place.get(key), str):
                        place[key] = name
            if isinstance(case.body, dict) and "input" in case.body:
                case.body["input"] = meant
            asked = case.as_transport_kwargs(base_url=url)
            body = json.dumps(asked["json"]).encode() if "json" in asked else asked.get("data")
            asked["headers"]["content-type"] = "application/json"
            more = {"params": asked["params"], "headers": dict(asked["headers"]), body_name: body}
            answer = session.request(asked["method"], asked["url"], **more)
            sent += 1
            statuses.add(answer.status_code)
            assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.status_code} {answer.text[:300]}"
            if answer.status_code >= 400 and case.method != "HEAD":
                told = answer.json()["error"]
                assert len(told["message"] if isinstance(told, dict) else told) > 5
            assert "Traceback" not in answer.text

        one()
    assert {200, 400, 404} <= statuses
    return sent, len(operations)


@pytest.mark.parametrize("number", range(26, 30))
def test_two_thousand_malformed_requests_and_no_failure(client, number):
    """In parts of 500, within this process, where a request costs less than over HTTP."""
    sent, operations = throw(client, "http://localhost", "content", 500, number)
    assert sent >= 500 and operations >= 24


@pytest.mark.soak
@pytest.mark.parametrize("number", range(1, 26))
def test_fifty_thousand_malformed_requests_and_no_failure(server, number):
    """In parts of 2,000, each of which can be run alone."""
    sent, operations = throw(requests.Session(), server.url, "data", 2_000, number)
    tell(f"{sent:,} malformed requests to {operations} operations, none failed")
    assert sent >= 2_000


# --- folders ---


def change(name, edit):
    """A file of the folder as JSON, changed; the manifest agrees."""

    def act(folder, canary):
        values = json.loads((folder / name).read_bytes())
        edit(values, canary)
        replace_file(folder, name, json.dumps(values).encode())

    return act


def put(name, content):
    """Other bytes in the place of a file; the manifest agrees."""
    return lambda folder, canary: replace_file(folder, name, content)


def append(name, line):
    def act(folder, canary):
        text = (folder / name).read_text() + line.replace("CANARY", str(canary))
        replace_file(folder, name, text.encode())

    return act


def link(name, target="/etc/passwd"):
    def act(folder, canary):
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return act


def pipe(name):
    def act(folder, canary):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return act


PICKLE = b"cos\nsystem\n(S'touch CANARY'\ntR."
DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
LINKED = ("recipe.toml", "task.json", "config.json", "model.safetensors", "version")
PIPED = ("recipe.toml", "task.json", "records.jsonl", "scores.json", "manifest.json")
NO_FILE = ("recipe.toml", "config.json", "scores.json", "version")
NESTED = ("task.json", "config.json", "scores.json", "data.json")
LEADING_OUT = '{"files": {"../../etc/passwd": ["' + "0" * 64 + '"]}}'


def pickled(folder, canary):
    replace_file(folder, "model.safetensors", PICKLE.replace(b"CANARY", str(canary).encode()))


def cut(folder, canary):
    replace_file(folder, "model.safetensors", (folder / "model.safetensors").read_bytes()[:-9])


EVIL = {
    **{f"{name} is a link": link(name) for name in LINKED},
    **{f"{name} is a pipe": pipe(name) for name in PIPED},
    **{f"{name} is no file": put(name, b"\x00\xff" * 100) for name in NO_FILE},
    **{f"{name} is deep": put(name, DEEP) for name in NESTED},
    "weights are a pickle": pickled,
    "weights are cut": cut,
    "weights are elsewhere": lambda folder, canary: (folder / "model.safetensors").unlink(),
    "another format": put("version", b"99\n"),
    "an enormous network": append("recipe.toml", "\n[model.encoder]\nsize = 1000000\n"),
    "a setting that is code": append("recipe.toml", '\n[hook]\n_target_ = "os.system"\ncommand = "touch CANARY"\n'),
    "data that is a command": append("recipe.toml", '\n[data2]\ntrain = "|touch CANARY"\n'),
    "a cell by name": change("config.json", lambda found, canary: found.update(cell=f"os.system('touch {canary}')")),
    "a task of somebody": change("config.json", lambda found, canary: found.update(task="__import__('os')")),
    "parameters without end": change("config.json", lambda found, canary: found.update(parameters=10**18)),
    "a tokenizer as a list": change("task.json", lambda found, canary: found.update(dict.fromkeys(found, ["a"] * 9))),
    "scores as text": change("scores.json", lambda found, canary: found.update(scores="<script>alert(1)</script>")),
    "a manifest that leads out": lambda folder, canary: (folder / "manifest.json").write_text(LEADING_OUT),
    "a manifest that is a list": lambda folder, canary: (folder / "manifest.json").write_text("[]"),
    "records that are none": put("records.jsonl", b'{"kind": "step"}\n'),
}


@pytest.fixture(scope="module")
def haunted(runs, tmp_path_factory):
    """A folder of evil runs around a good one, and a server of it."""
    folder = tmp_path_factory.mktemp("haunted")
    canary = folder / "canary"
    for number, act in enumerate(EVIL.values()):
        act(shutil.copytree(runs / "mood", folder / "runs" / f"evil-{number}"), canary)
    shutil.copytree(runs / "mood", folder / "runs" / "good")
    (folder / "runs" / "a link").symlink_to("/etc")
    (folder / "runs" / "<b>empty").mkdir()
    server = Server(folder / "runs")
    server.canary = canary
    yield server
    server.stop()


def test_there_are_thirty_evil_folders():
    assert len(EVIL) >= 30


@pytest.mark.parametrize("number", range(len(EVIL)), ids=list(EVIL))
def test_an_evil_folder_harms_nobody(haunted, number):
    name, begun = f"evil-{number}", time.monotonic()
    answers = [
        requests.post(f"{haunted.url}/predict", json={"run": name, "inputs": ["a good film"]}, timeout=30),
        requests.get(f"{haunted.url}/runs/{name}/records", timeout=30),
        requests.get(f"{haunted.url}/runs/{name}/examples", timeout=30),
    ]
    listed = requests.get(f"{haunted.url}/runs", timeout=30)
    assert listed.status_code == 200 and "good" in {run["name"] for run in listed.json()["runs"]}
    for answer in answers:
        assert answer.status_code in (200, 400, 404, 503)
        assert "root:" not in answer.text and "Traceback" not in answer.text
        assert str(haunted.canary.parent / "runs") not in answer.text
    # What answers are the weights, and those are sound.
    harmless = ("records that are none", "records.jsonl is a pipe", "data.json is deep", "a task of somebody")

    assert answers[0].status_code != 200 or list(EVIL)[number] in harmless
    good = requests.post(f"{haunted.url}/predict", json={"run": "good", "inputs": ["a good film"]}, timeout=30)
    assert good.status_code == 200 and time.monotonic() - begun < 20
    assert not haunted.canary.exists()


def test_links_and_empty_folders_are_no_runs(haunted):
    told = requests.get(f"{haunted.url}/runs", timeout=30).json()
    assert "a link" not in told["refused"] and "<b>empty" in told["refused"]
