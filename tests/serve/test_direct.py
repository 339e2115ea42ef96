"""The short way of the routes that are asked often: it answers as the framework's own way does."""

import pytest
from starlette.testclient import TestClient

from seqloom.serve import app as application
from seqloom.serve.app import create_app

INPUT = {"name": "input", "shape": [1], "datatype": "BYTES", "data": ["a good film"]}
INFER = "/v2/models/mood/infer"
ASKED = {
    "an answer": ("/predict", {"run": "mood", "inputs": ["a good film", "the plot"], "beam": 2}),
    "gaps": ("/predict", {"run": "walk", "inputs": [[1.0, None, 2.5, 3.0, None, 4.0, 1.0, 2.0]]}),
    "a tensor": (INFER, {"id": "é", "inputs": [INPUT]}),
    "a version": ("/v2/models/mood/versions/1/infer", {"inputs": [INPUT]}),
    "another version": ("/v2/models/mood/versions/7/infer", {"inputs": [INPUT]}),
    "a name with a blank": ("/v2/models/no%20such/infer", {"inputs": [INPUT]}),
    "no such run": ("/predict", {"run": "nowhere", "inputs": ["a"]}),
    "no input": ("/predict", {"run": "mood", "inputs": []}),
    "no list": ("/predict", {"run": "mood", "inputs": "a good film"}),
    "a field too many": ("/predict", {"run": "mood", "inputs": ["a"], "width": 2}),
    "a field of another kind": ("/predict", {"run": 3, "inputs": ["a"], "beam": "many"}),
    "no object": ("/predict", ["mood", "a good film"]),
    "no shape": (INFER, {"inputs": [{"name": "input", "datatype": "BYTES", "data": ["a"]}]}),
    "a refused beam": ("/predict", {"run": "mood", "inputs": ["a"], "beam": 1000}),
}


@pytest.fixture(scope="module")
def framework(runs):
    """The same server, where no route takes the short way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(application, "DIRECT", ())
        app = create_app(runs)
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("name", ASKED)
def test_both_ways_answer_the_same(client, framework, name):
    path, body = ASKED[name]
    short, long = (one.post(path, json=body) for one in (client, framework))
    assert (short.status_code, short.json()) == (long.status_code, long.json())
    own = {"x-request-id", "content-length"}  # a number is written as 1e-05 or 0.00001
    assert {name: value for name, value in short.headers.items() if name not in own} == {
        name: value for name, value in long.headers.items() if name not in own
    }


def test_other_methods_of_these_paths_are_refused_as_before(client, framework):
    for path in ("/predict", INFER):
        short, long = client.get(path), framework.get(path)
        assert (short.status_code, short.json()) == (long.status_code, long.json()) and short.status_code == 405


def test_requests_of_the_short_way_are_counted_by_their_route(serving):
    client = serving()
    client.post("/predict", json={"run": "mood", "inputs": ["a"]})
    client.post(INFER, json={"inputs": []})
    told = client.get("/metrics").text
    assert 'seqloom_requests_total{route="/predict",status="200"} 1' in told
    assert 'seqloom_requests_total{route="/v2/models/{model}/infer",status="400"} 1' in told


@pytest.mark.parametrize("short", [True, False])
def test_a_mistake_of_the_program_is_a_500_that_tells_nothing_and_is_logged(runs, monkeypatch, short):
    if not short:
        monkeypatch.setattr(application, "DIRECT", ())
    monkeypatch.setattr("seqloom.serve.engine.Engine.check_inputs", lambda *_: 1 / 0)

    def ask(**client_options):
        with TestClient(create_app(runs), base_url="http://localhost", **client_options) as client:
            return client.post("/predict", json={"run": "mood", "inputs": ["a"]})

    answer = ask(raise_server_exceptions=False)
    assert answer.status_code == 500 and "zero" not in answer.text
    with pytest.raises(ZeroDivisionError):  # which the web server writes into its log
        ask()
