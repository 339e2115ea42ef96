"""The OpenAPI document: what FastAPI finds, with this server's errors and examples of answers."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

LABELED = {"output": "positive", "score": -0.06, "probability": 0.94}
TOKEN = {"index": 0, "text": " a time", "logprobs": None, "finish_reason": "length"}
ANSWERS: dict[str, Any] = {
    "/predict": {"run": "reviews", "answers": [{"input": "a fine film", "predictions": [LABELED]}]},
    "/explain": {
        "run": "reviews",
        "about": "positive",
        "elements": ["a", "fine", "film"],
        "log_probability": -0.06,
        "without_input": -0.69,
        "methods": [
            {
                "method": "integrated gradients",
                "shares": [0.01, 0.6, 0.02],
                "gap": 0.0,
                "faithfulness": {
                    "score": 0.2,
                    "better_than_random": 1.0,
                    "deletion": [0.94, 0.5, 0.5, 0.5],
                    "insertion": [0.5, 0.9, 0.93, 0.94],
                },
            }
        ],
    },
    "/next": {"tokens": ["e", " "], "logs": [-0.1, -2.4], "left_out": 0.0},
    "/attention": {
        "grid": None,
        "maps": [
            {
                "title": "Attention of the decoder over the source",
                "kind": "source",
                "source": ["a", "b"],
                "target": ["x"],
                "names": ["layer 1"],
                "weights": [[[0.9, 0.1]]],
            }
        ],
    },
    "/pull": {
        "before": {"input": "a fine film", "predictions": [LABELED]},
        "after": {"input": "a fine film", "predictions": [LABELED | {"score": -0.5, "probability": 0.61}]},
    },
    "/similar-spans": {
        "units": [{"unit": 7, "high": True, "bounded": True, "values": [0.1, 1.8, -0.2]}],
        "matches": [{"example": 3, "steps": ["a", "good", "one"], "start": 1, "share": 1.0, "shares": [1.0]}],
        "usual": 0.16,
        "part": "test",
        "examples": 100,
        "elements": 2542,
    },
    "/tune": {"sounds": [{"start": 0.0, "end": 0.25, "pitch": 62, "note": "D4"}]},
    "/v1/completions": {
        "id": "cmpl-1",
        "object": "text_completion",
        "created": 1800000000,
        "model": "prose",
        "choices": [TOKEN],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    },
    "/v2/models/{model}/infer": {
        "model_name": "dates",
        "model_version": "1",
        "outputs": [{"name": "output", "datatype": "BYTES", "shape": [1], "data": ["2024-05-03"]}],
    },
    "/v2/models/{model}/generate": {"model_name": "dates", "model_version": "1", "text_output": "2024-05-03"},
}
# Fields that the example of their request leaves out, and what stands in the path or behind the question mark.
FIELDS: dict[str, Any] = {
    "answer": "2024-05-03",
    "step": 0,
    "best_of": 1,
    "stream_options": {"include_usage": True},
    "logprobs": 5,
    "stop": ["\n"],
    "id": "mine",
    "temperature": 0.8,
    "max_tokens": 16,
    "name": "input",
    "shape": [1],
    "datatype": "BYTES",
    "data": ["3 mai 2024"],
    "outputs": [{"name": "output"}],
    "sequence_id": "mine",
    "place": "source.encoder.layer.cell.taps.r",
    "unit": 3,
    "to": 0.5,
    "beam": 4,
    "model": "prose",
}
PARAMETERS: dict[str, tuple[str, Any]] = {
    "run": ("The name of a run.", "dates"),
    "model": ("The name of a run.", "dates"),
    "version": ("Every run has the version 1.", "1"),
    "name": ("The name of a session.", "mine"),
    "after": ("", 0),
    "seed": ("", 7),
}
SENTENCE = {"error": "inputs: Field required"}
OBJECT = {
    "error": {"message": "n is 99", "type": "invalid_request_error", "param": None, "code": "work"},
}


def describe_api(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, built once."""
    if app.openapi_schema is None:
        api = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path, methods in api["paths"].items():
            for route in methods.values():
                add_answers(path, route["responses"])
                add_parameters(route.get("parameters", []))
        for schema in api["components"]["schemas"].values():
            add_examples(schema)
        for unused in ("HTTPValidationError", "ValidationError"):
            api["components"]["schemas"].pop(unused, None)
        app.openapi_schema = api
    return app.openapi_schema


def add_answers(path: str, responses: dict[str, Any]) -> None:
    responses.pop("422", None)  # FastAPI's own; here, what is wrong with a request is a 400
    example = OBJECT if path.startswith("/v1") else SENTENCE
    response = {"description": "What is wrong, in one sentence.", "content": {"application/json": {"example": example}}}
    responses["400"] = response
    if path in ANSWERS:
        responses["200"].setdefault("content", {}).setdefault("application/json", {})["example"] = ANSWERS[path]


def add_parameters(parameters: list[dict[str, Any]]) -> None:
    for one in parameters:
        says, example = PARAMETERS[one["name"]]
        one.setdefault("description", says)
        one["example"] = example


def add_examples(schema: dict[str, Any]) -> None:
    """An example of every field: from that of the whole request, or else from the table above, or the default."""
    [whole, *_] = schema.get("examples") or [{}]
    for name, field in schema.get("properties", {}).items():
        example = whole[name] if name in whole else FIELDS[name] if name in FIELDS else field.get("default")
        field.setdefault("examples", [example])
