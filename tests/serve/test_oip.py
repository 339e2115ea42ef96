"""Open Inference Protocol v2: metadata, tensors in and out for every task, and Triton's own client."""

import json

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from ..recipes import walks
from .conftest import TAGGED

ROWS = np.nan_to_num(walks()[:20], nan=10.0)


def tensor(data, shape=None, datatype="BYTES", **more):
    return {
        "name": "input",
        "shape": [len(data)] if shape is None else shape,
        "datatype": datatype,
        "data": data,
    } | more


def infer(client, run, *inputs, **more):
    return client.post(f"/v2/models/{run}/infer", json={"inputs": list(inputs)} | more)


def outputs(answer):
    assert answer.status_code == 200, answer.text
    return {one["name"]: one["data"] for one in answer.json()["outputs"]}


def test_the_server_and_its_models_are_described(client):
    assert client.get("/v2").json()["name"] == "seqloom"
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("/v2/models/mood", "/v2/models/mood/versions/1"):
        found = client.get(path).json()
        assert (found["name"], found["versions"], found["platform"]) == ("mood", ["1"], "seqloom")
        assert found["inputs"] == [{"name": "input", "datatype": "BYTES", "shape": [-1]}]
        assert {one["name"]: one["datatype"] for one in found["outputs"]} == {
            **{"output": "BYTES", "score": "FP64", "prediction": "BYTES"}
        }
    assert client.get("/v2/models/walk").json()["inputs"][0] == {
        **{"name": "input", "datatype": "FP64", "shape": [-1, -1, -1]}
    }
    assert client.get("/v2/models/mood/ready").json()["ready"] is True


@pytest.mark.parametrize(
    ("run", "given"),
    [
        ("mood", ["a good film", "the plot"]),
        ("tags", [TAGGED[0][0], TAGGED[1][0]]),
        ("backwards", ["abc", "hg"]),
        ("text", ["1 green", "2"]),
        ("walk", [ROWS[:8].tolist(), ROWS[8:16].tolist()]),
    ],
)
def test_every_task_answers_as_it_does_without_a_server(client, offline, run, given):
    shape, datatype = ([2], "BYTES") if isinstance(given[0], str) else ([2, 8, 2], "FP64")
    told = outputs(infer(client, run, tensor(given, shape, datatype)))
    raw = [one if isinstance(one, str) else np.array(one) for one in given]
    expected = [best for best, *_ in offline(run).predict_many(raw)]
    assert told["output"] == [best.output for best in expected]
    assert told["score"] == pytest.approx([best.score for best in expected], abs=1e-5)
    whole = [json.loads(one)["predictions"][0] for one in told["prediction"]]
    assert [one["output"] for one in whole] == told["output"]


def test_data_may_be_nested_or_flat_and_a_column(client):
    nested = outputs(infer(client, "walk", tensor([ROWS[:8].tolist()], [1, 8, 2], "FP64")))
    flat = outputs(infer(client, "walk", tensor(ROWS[:8].ravel().tolist(), [1, 8, 2], "FP32")))
    assert nested["output"] == flat["output"]
    texts = ["a film", "a plot"]
    column = outputs(infer(client, "mood", tensor([[text] for text in texts], [2, 1])))
    assert column == outputs(infer(client, "mood", tensor(texts)))


def test_names_ids_and_versions_come_back(client):
    answer = infer(client, "mood", tensor(["a"]), id="mine", outputs=[{"name": "score"}]).json()
    assert answer["id"] == "mine" and answer["model_name"] == "mood" and answer["model_version"] == "1"
    assert [one["name"] for one in answer["outputs"]] == ["score"]
    again = client.post("/v2/models/mood/versions/1/infer", json={"inputs": [tensor(["a"])]}).json()
    assert again["outputs"][1] == answer["outputs"][0]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"inputs": []}, 400, "inputs"),
        ({"inputs": [tensor(["a"], [2])]}, 400, "shape"),
        ({"inputs": [tensor([1])]}, 400, "BYTES"),
        ({"inputs": [tensor(["a"]) | {"name": "other"}]}, 400, "other"),
        ({"inputs": [tensor([], [0])]}, 400, "shape"),
        ({"inputs": [tensor(["a"], [-1])]}, 400, "shape"),
        ({"inputs": [tensor(["a"], datatype="TEXT")]}, 400, "datatype"),
        ({"inputs": [tensor([1.0], [1], "FP32")]}, 400, "reads text"),
        ({"inputs": [tensor(["a"])], "outputs": [{"name": "x"}]}, 400, "no output"),
        ({"inputs": [tensor(["a"] * 300)]}, 400, "256"),
        ({"inputs": [tensor(["a"])], "parameters": {"sequence_start": True}}, 400, "sequence_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_one_sentence(client, body, status, says):
    answer = client.post("/v2/models/mood/infer", json=body)
    assert answer.status_code == status
    assert says in answer.json()["error"]


def test_unknown_models_and_versions_are_not_found(client):
    for path in ("/v2/models/nobody", "/v2/models/mood/versions/2", "/v2/models/..%2Fmood", "/v2/elsewhere"):
        answer = client.get(path)
        assert answer.status_code == 404 and isinstance(answer.json()["error"], str)


def test_texts_are_generated_by_every_task(client, offline):
    def generate(run, text, **parameters):
        answer = client.post(f"/v2/models/{run}/generate", json={"text_input": text, "parameters": parameters})
        assert answer.status_code == 200, answer.text
        return answer.json()

    [written] = offline("text").generate("1 green", length=12, temperature=0.5, seed=4).finish()
    told = generate("text", "1 green", temperature=0.5, max_tokens=12, seed=4, details=True)
    assert told["text_output"] == written.text
    assert [one["logprob"] for one in told["details"]["tokens"]] == pytest.approx(
        written.logs[: len(written.tokens)], abs=1e-5
    )
    assert told["details"]["finish_reason"] == written.finish
    cut = generate("text", "1 green", temperature=0.5, max_tokens=12, seed=4, stop=[written.text[3:5]])
    assert cut["text_output"] == written.text[: written.text.index(written.text[3:5])]
    assert generate("backwards", "abc")["text_output"] == offline("backwards").predict("abc")[0].output
    assert (
        generate("backwards", "abc", temperature=0)["text_output"] == offline("backwards").predict("abc", 1)[0].output
    )
    assert generate("mood", "a good film")["text_output"] == offline("mood").predict("a good film")[0].output
    assert generate("tags", "a good film")["text_output"] == offline("tags").predict("a good film")[0].output
    rows = ROWS[:8].tolist()
    assert generate("walk", json.dumps(rows))["text_output"] == offline("walk").predict(ROWS[:8])[0].output
    image = np.full((8, 8, 3), 90, np.uint8)
    assert generate("caption", json.dumps(image.tolist()))["text_output"] == offline("caption").predict(image)[0].output
    for run, beginning in (("tune", "X:1\nM:4/4\n"), ("draw", "a red square")):
        [written] = offline(run).generate(beginning, length=16, temperature=0.5, seed=4).finish()
        assert generate(run, beginning, temperature=0.5, max_tokens=16, seed=4)["text_output"] == written.text
    refused = client.post("/v2/models/mood/generate", json={"text_input": "a", "parameters": {"temperature": 1}})
    assert refused.status_code == 400 and "token by token" in refused.json()["error"]


@pytest.mark.parametrize("run", ["walk", "caption"])
def test_a_text_is_never_the_name_of_a_file(client, runs, run):
    """What reads images from Python takes a path for one: from a request it must not."""
    picture = str(next(runs.parent.parent.rglob("1.png")))
    for given in (picture, [picture, "tag"], [picture], {"path": picture}):
        for path, body in (
            ("/predict", {"inputs": [given]}),
            ("/explain", {"input": given}),
            ("/places", {"input": given}),
        ):
            answer = client.post(path, json={"run": run, **body})
            assert answer.status_code == 400 and "numbers" in answer.json()["error"], (path, given)
    bytes_ = client.post(f"/v2/models/{run}/infer", json={"inputs": [tensor([picture])]})
    assert bytes_.status_code == 400 and "numbers" in bytes_.json()["error"]
    for text in (picture, "NaN", "[1e999]", "{", "[" * 5000):
        answer = client.post(f"/v2/models/{run}/generate", json={"text_input": text})
        assert answer.status_code == 400 and "not JSON of nested lists" in answer.json()["error"]


def test_images_are_asked_as_tensors(client, offline):
    image = np.full((2, 8, 8, 3), 90, np.uint8)
    image[1] = 20
    told = client.get("/v2/models/caption").json()["inputs"]
    assert told == [{"name": "input", "datatype": "UINT8", "shape": [-1, -1, -1, -1]}]
    found = outputs(infer(client, "caption", tensor(image.tolist(), list(image.shape), "UINT8")))
    assert found["output"] == [best.output for best, *_ in offline("caption").predict_many(list(image))]


def test_tritons_client_works(server, offline):
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("mood")
        assert client.get_server_metadata()["name"] == "seqloom"
        assert client.get_model_metadata("mood")["platform"] == "seqloom"
        given = triton.InferInput("input", [2], "BYTES")
        given.set_data_from_numpy(np.array([b"a good film", "é".encode()], dtype=object), binary_data=False)
        asked = [triton.InferRequestedOutput(name, binary_data=False) for name in ("output", "score")]
        for outputs in (asked, None):
            found = client.infer("mood", [given], outputs=outputs, request_id="7")
            expected = offline("mood").predict_many(["a good film", "é"])
            assert found.as_numpy("output").tolist() == [best.output for best, *_ in expected]
            assert found.as_numpy("score") == pytest.approx([best.score for best, *_ in expected], abs=1e-5)
            assert found.get_response()["id"] == "7"
        with pytest.raises(InferenceServerException, match="no run"):
            client.infer("nobody", [given])
        piece = triton.InferInput("input", [1], "BYTES")
        for number, text in enumerate(["1 gr", "een"]):
            piece.set_data_from_numpy(np.array([text], dtype=object), binary_data=False)
            ends = number == 1
            found = client.infer("text", [piece], sequence_id=9, sequence_start=not number, sequence_end=ends)
        assert found.as_numpy("output")[0] == offline("text").predict("1 green")[0].output


def test_binary_tensors_are_refused_in_words(server):
    with triton.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        given = triton.InferInput("input", [1], "BYTES")
        given.set_data_from_numpy(np.array([b"a"], dtype=object))
        with pytest.raises(InferenceServerException, match="JSON"):
            client.infer("mood", [given])
