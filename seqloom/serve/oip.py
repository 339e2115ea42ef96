"""Open Inference Protocol v2, as KServe and Triton speak it, for every task; sessions with Triton's sequence_id.

https://kserve.github.io/website/docs/concepts/architecture/data-plane/v2-protocol. Tensors are JSON; BYTES are strings.
"""

import json
import math
from importlib import metadata
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from ..errors import DataError
from ..runs.json_output import to_line
from .engine import Engine
from .limits import Refused
from .models import Model, Writing
from .safety import check_json
from .wire import engine_of

router = APIRouter(prefix="/v2", tags=["Open Inference Protocol v2"])

VERSION = "1"  # every run has this one
OUTPUTS = {"output": "BYTES", "score": "FP64", "prediction": "BYTES"}

Datatype = (
    Literal["BYTES", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64"]
    | Literal["INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
)
Size = Annotated[int, Field(ge=0, le=1 << 31)]
Name = Annotated[str, Field(max_length=200)]


class Sequenced(BaseModel):
    """Parameters of a request; what belongs to extensions that are not served has no effect and is not refused."""

    model_config = ConfigDict(extra="allow")
    sequence_id: int | Name = Field(default=0, description="The session that this input continues; 0 or empty is none.")
    sequence_start: bool = Field(default=False, description="Begin the session.")
    sequence_end: bool = Field(default=False, description="End it after this input.")
    beam: int | None = Field(default=None, ge=1, description="The beam size, of what searches for its answer.")


class InputTensor(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Name = Field(description="input.")
    shape: list[Size] = Field(max_length=8, description="The first axis counts the inputs.")
    datatype: Datatype = Field(description="BYTES for text.")
    parameters: dict[str, Any] = Field(default={}, description="Of extensions that are not served: no effect.")
    data: list[Any] = Field(description="Nested, or flat in row-major order.")


class OutputName(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Name = Field(description=f"One of {', '.join(OUTPUTS)}.")
    parameters: dict[str, Any] = Field(default={}, description="Of extensions that are not served: no effect.")


class Inference(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"inputs": [{"name": "input", "shape": [1], "datatype": "BYTES", "data": ["3 mai 2024"]}]}]
        },
    )
    id: Name | None = Field(default=None, description="Comes back with the answer.")
    parameters: Sequenced = Field(default=Sequenced(), description="Of the session, and of the search.")
    inputs: list[InputTensor] = Field(min_length=1, max_length=1, description="One tensor: a batch of inputs.")
    outputs: list[OutputName] | None = Field(default=None, max_length=8, description="Which are wanted; all if none.")


class GenerateParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")
    temperature: float | None = Field(
        default=None, ge=0, le=100, description="0 takes the likeliest token; none, the beam."
    )
    top_p: float = Field(default=1.0, gt=0, le=1, description="Draw from the fewest tokens with this share together.")
    top_k: int = Field(default=0, ge=0, description="Draw from so many tokens; 0 is from all.")
    max_tokens: int | None = Field(default=None, ge=1, description="The most tokens to write; else the recipe's.")
    stop: list[str] | str = Field(default=[], description="The text ends before any of these.")
    seed: int = Field(default=0, description="The same seed draws the same.")
    details: bool = Field(default=False, description="Tell tokens, their log-probabilities and why the text ended.")


class Generate(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text_input": "Once upon", "parameters": {"temperature": 0.8}}]},
    )
    id: Name | None = Field(default=None, description="Comes back with the answer.")
    text_input: str = Field(
        description="What is answered, or written on; for a run that reads numbers, nested lists of them as JSON."
    )
    parameters: GenerateParameters = Field(default=GenerateParameters(), description="How it is written.")


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
    given = ("BYTES", [-1]) if model.reads_text else ("UINT8", [-1] * 4) if images else ("FP64", [-1] * 3)
    told = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in OUTPUTS.items()]
    return {"inputs": [{"name": "input", "datatype": given[0], "shape": given[1]}], "outputs": told}


def check(request: Request, model: str, version: str) -> Engine:
    engine = engine_of(request)
    engine.runs.check(model)
    if version != VERSION:
        raise Refused(404, "unknown run", f"{model} has no version {version[:40]!r}, only {VERSION}")
    return engine


# --- inference ------------------------------------------------------------------------------------------------------


@router.post("/models/{model}/infer", response_model=None)
@router.post("/models/{model}/versions/{version}/infer", response_model=None)
async def infer(request: Request, model: str, asked: Inference, version: str = VERSION) -> dict[str, Any]:
    """Answers to a batch of inputs; with sequence_id, to the next pieces of a session."""
    engine = check(request, model, version)
    wanted = [output.name for output in asked.outputs] if asked.outputs else list(OUTPUTS)
    if unknown := set(wanted) - set(OUTPUTS):
        raise DataError(f"there is no output {min(unknown)!r}; there are {', '.join(OUTPUTS)}")
    inputs = rows_of(asked.inputs[0])
    session, how = asked.parameters.sequence_id, asked.parameters
    if session:
        engine.check_inputs(inputs)
        engine.limits.check_work(len(inputs), 1, 1, 1)
        given = str(session), inputs, how.sequence_start, how.sequence_end
        found = await engine.call(model, lambda loaded: engine.sessions.feed(loaded, *given))
    elif how.sequence_start or how.sequence_end:
        raise DataError("sequence_start and sequence_end belong to a sequence_id, and there is none")
    else:
        found = await engine.predict(model, inputs, how.beam)
    named = {"id": asked.id} if asked.id is not None else {}
    return {"model_name": model, "model_version": VERSION, **named, "outputs": [tensor(name, found) for name in wanted]}


def rows_of(given: InputTensor) -> list[Any]:
    """The inputs in a tensor: its first axis. Data may be nested, or flat."""
    shape, count = given.shape, math.prod(given.shape)
    flat = list(flattened(given.data))
    if given.name != "input" or not shape or len(flat) != count or not shape[0]:
        said = f"named {given.name!r} of shape {shape} with {len(flat)} elements"
        raise DataError(f"the tensor is {said}, but one named 'input' was expected, of shape [inputs, …], and as many")
    kind = str if given.datatype == "BYTES" else (int, float, bool, type(None))
    if not all(isinstance(one, kind) for one in flat):
        raise DataError(f"the data of the tensor holds what is not {given.datatype}")
    if given.datatype == "BYTES" and count == shape[0]:
        return flat  # also [inputs, 1], as many clients send it
    return nested(flat, shape)


def flattened(data: Any) -> Any:
    if not isinstance(data, list):
        yield data
        return
    for one in data:
        yield from flattened(one)


def nested(flat: list[Any], shape: list[int]) -> list[Any]:
    if len(shape) == 1:
        return flat
    size = len(flat) // shape[0]
    return [nested(flat[start : start + size], shape[1:]) for start in range(0, len(flat), size)] if size else []


def tensor(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    best = [(answer["predictions"] or [{"output": "", "score": 0.0}])[0] for answer in found]
    data = [to_line(answer) for answer in found] if name == "prediction" else [one[name] for one in best]
    return {"name": name, "datatype": OUTPUTS[name], "shape": [len(found)], "data": data}


# --- generation -----------------------------------------------------------------------------------------------------


@router.post("/models/{model}/generate", response_model=None)
@router.post("/models/{model}/versions/{version}/generate", response_model=None)
async def generate(request: Request, model: str, asked: Generate, version: str = VERSION) -> dict[str, Any]:
    """A text: written on, where that is the task, and else the best answer to the input."""
    engine = check(request, model, version)
    writes_on, in_text, reads = await engine.call(
        model, lambda loaded: (loaded.writes_on, loaded.answers_in_text, loaded.reads_text)
    )
    given, how = asked.parameters, writing(asked.parameters)
    details: dict[str, Any] = {}
    read = asked.text_input if reads else numbers_of(asked.text_input, engine.limits.depth)
    engine.check_inputs([read])
    if writes_on:
        how = Writing(**(how.__dict__ | {"max_tokens": how.max_tokens or 16}))
        engine.check_writing(1, how)
        tokens = [token async for token in engine.generate(model, asked.text_input, how)]
        text = "".join(token.text for token in tokens)
        logs = [{"token": token.name, "logprob": token.log} for token in tokens if token.name]
        details = {"finish_reason": tokens[-1].finish, "tokens": logs}
    elif in_text or given == GenerateParameters(details=given.details):
        [found] = await (engine.answer(model, [read], how) if in_text else engine.predict(model, [read]))
        details, text = found, found["predictions"][0]["output"]
    else:
        raise DataError(f"{model} does not write its answers token by token, so it takes no parameters but details")
    named = {"id": asked.id} if asked.id is not None else {}
    told = {"model_name": model, "model_version": VERSION, **named, "text_output": text}
    return told | ({"details": details} if given.details else {})


def numbers_of(text: str, depth: int) -> Any:
    """The input of a run that reads a series or an image: nested lists of numbers, written as JSON."""
    try:
        check_json(text.encode(), depth)
    except Refused:
        raise DataError("this run reads numbers, and text_input is not JSON of nested lists of them") from None
    return json.loads(text)


def writing(given: GenerateParameters) -> Writing:
    return Writing(
        max_tokens=given.max_tokens or 0,
        temperature=given.temperature,
        top_k=given.top_k,
        top_p=given.top_p,
        seed=given.seed,
        stop=(given.stop,) if isinstance(given.stop, str) else tuple(given.stop),
    )
