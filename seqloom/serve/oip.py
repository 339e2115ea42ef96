"""Open Inference Protocol v2, as KServe and Triton speak it, for every task; sessions with Triton's sequence_id.

https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol. Tensors are JSON; BYTES are strings.
"""

import json
from importlib import metadata
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from ..errors import DataError
from .engine import Engine
from .json_check import check_json
from .limits import Refused
from .models import Model
from .oip_requests import OUTPUTS, Generate, GenerateParameters, Inference
from .tensors import rows_of, tensor
from .wire import engine_of
from .writing import Writing

router = APIRouter(prefix="/v2", tags=["Open Inference Protocol v2"])

VERSION = "1"  # every run has this one
# --- metadata -------------------------------------------------------------------------------------------------------


@router.get("")
async def server_metadata() -> dict[str, Any]:
    """The server's name, version and extensions."""
    return {"name": "seqloom", "version": metadata.version("seqloom"), "extensions": ["sequence", "generate"]}


@router.get("/health/live", response_model=None)
async def live(request: Request) -> JSONResponse:
    """Whether the batcher's heart beats, not only the web server's."""
    alive = engine_of(request).batcher.alive
    return JSONResponse({"live": alive}, 200 if alive else 503)


@router.get("/health/ready", response_model=None)
async def ready(request: Request) -> JSONResponse:
    """Whether there is a run to ask, and a batcher that answers."""
    able = engine_of(request).batcher.alive and bool(engine_of(request).runs.find())
    return JSONResponse({"ready": able}, 200 if able else 503)


@router.get("/models/{model}/ready", response_model=None)
@router.get("/models/{model}/versions/{version}/ready", response_model=None)
async def model_ready(request: Request, model: str, version: str = VERSION) -> JSONResponse:
    """Whether this run can be asked; it is loaded with the first question."""
    check(request, model, version)
    return JSONResponse({"name": model, "ready": True})


@router.get("/models/{model}")
@router.get("/models/{model}/versions/{version}")
async def model_metadata(request: Request, model: str, version: str = VERSION) -> dict[str, Any]:
    """What goes in and comes out; −1 is any size."""
    engine = check(request, model, version)
    described: dict[str, Any] = await engine.call(model, describe)
    return {"name": model, "versions": [VERSION], "platform": "seqloom"} | described


def describe(model: Model) -> dict[str, Any]:
    images = model.run.task.reads_images
    input_type = ("BYTES", [-1]) if model.reads_text else ("UINT8", [-1] * 4) if images else ("FP64", [-1] * 3)
    outputs = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in OUTPUTS.items()]
    return {"inputs": [{"name": "input", "datatype": input_type[0], "shape": input_type[1]}], "outputs": outputs}


def check(request: Request, model: str, version: str) -> Engine:
    engine = engine_of(request)
    engine.runs.check(model)
    if version != VERSION:
        raise Refused(404, "unknown run", f"{model} has no version {version[:40]!r}, only {VERSION}")
    return engine


# --- inference ------------------------------------------------------------------------------------------------------


@router.post("/models/{model}/infer", response_model=None)
@router.post("/models/{model}/versions/{version}/infer", response_model=None)
async def infer(request: Request, model: str, body: Inference, version: str = VERSION) -> dict[str, Any]:
    """Answers to a batch of inputs; with sequence_id, to the next pieces of a session."""
    engine = check(request, model, version)
    names = [output.name for output in body.outputs] if body.outputs else list(OUTPUTS)
    if unknown := set(names) - set(OUTPUTS):
        raise DataError(f"there is no output {min(unknown)!r}; there are {', '.join(OUTPUTS)}")
    inputs = rows_of(body.inputs[0])
    session, how = body.parameters.sequence_id, body.parameters
    if session:
        engine.check_inputs(inputs)
        engine.limits.check_work(len(inputs), 1, 1, 1)
        piece = str(session), inputs, how.sequence_start, how.sequence_end
        answers = await engine.call(model, lambda loaded: engine.sessions.feed(loaded, *piece))
    elif how.sequence_start or how.sequence_end:
        raise DataError("sequence_start and sequence_end belong to a sequence_id, and there is none")
    else:
        answers = await engine.predict(model, inputs, how.beam)
    id_field = {"id": body.id} if body.id is not None else {}
    return {
        "model_name": model,
        "model_version": VERSION,
        **id_field,
        "outputs": [tensor(name, answers) for name in names],
    }


# --- generation -----------------------------------------------------------------------------------------------------


@router.post("/models/{model}/generate", response_model=None)
@router.post("/models/{model}/versions/{version}/generate", response_model=None)
async def generate(request: Request, model: str, body: Generate, version: str = VERSION) -> dict[str, Any]:
    """A text: written on, where that is the task, and else the best answer to the input."""
    engine = check(request, model, version)
    writes_on, in_text, reads = await engine.call(
        model, lambda loaded: (loaded.writes_on, loaded.answers_in_text, loaded.reads_text)
    )
    parameters, how = body.parameters, body.parameters.writing()
    details: dict[str, Any] = {}
    read = body.text_input if reads else numbers_of(body.text_input, engine.limits.depth)
    engine.check_inputs([read])
    if writes_on:
        how = Writing(**(how.__dict__ | {"max_tokens": how.max_tokens or 16}))
        engine.check_writing(1, how)
        tokens = [token async for token in engine.generate(model, body.text_input, how)]
        text = "".join(token.text for token in tokens)
        logs = [{"token": token.name, "logprob": token.log} for token in tokens if token.name]
        details = {"finish_reason": tokens[-1].finish, "tokens": logs}
    elif in_text or parameters == GenerateParameters(details=parameters.details):
        [answer] = await (engine.answer(model, [read], how) if in_text else engine.predict(model, [read]))
        details, text = answer, answer["predictions"][0]["output"]
    else:
        raise DataError(f"{model} does not write its answers token by token, so it takes no parameters but details")
    id_field = {"id": body.id} if body.id is not None else {}
    answer_json = {"model_name": model, "model_version": VERSION, **id_field, "text_output": text}
    return answer_json | ({"details": details} if parameters.details else {})


def numbers_of(text: str, depth: int) -> Any:
    """The input of a run that reads a series or an image: nested lists of numbers, written as JSON."""
    try:
        check_json(text.encode(), depth)
    except Refused:
        raise DataError("this run reads numbers, and text_input is not JSON of nested lists of them") from None
    return json.loads(text)
