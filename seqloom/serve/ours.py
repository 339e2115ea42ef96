"""Routes of our own: predictions and their reasons as the command line tells them, the runs, sessions, metrics."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import PlainTextResponse

from .engine import Engine
from .wire import engine_of

router = APIRouter(tags=["seqloom"])

Given = Any  # a text, [text, tag], or nested lists of numbers, where null is a gap
SessionName = Annotated[str, Field(min_length=1, max_length=200)]


class PredictRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"run": "dates", "inputs": ["3 mai 2024"], "beam": 2}]}
    )
    run: str = Field(description="The name of a run.")
    inputs: list[Given] = Field(min_length=1, description="Texts, [text, tag], or arrays of numbers with null as gaps.")
    beam: int | None = Field(default=None, ge=1, description="The beam size, or how many labels are told.")


class ExplainRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"run": "sentiment", "input": "a fine film"}]}
    )
    run: str = Field(description="The name of a run.")
    input: Given = Field(description="A text, [text, tag], or an array of numbers with null as gaps.")
    answer: str | None = Field(
        default=None,
        description="The answer to explain, the model's own if not given; of a run that writes on, what comes next.",
    )
    step: int | None = Field(
        default=None, ge=0, le=10_000, description="One element of the answer; all of it if not given."
    )


class SavedSession(BaseModel):
    """A session as `save` gives it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"run": "climate", "weights": "0" * 64, "read": 2, "state": "", "rows": [[1.5], [None]]}]
        },
    )
    run: str = Field(description="The run that read it.")
    weights: str = Field(max_length=200, description="The SHA-256 sum of its weights.")
    read: int = Field(ge=0, description="Elements that it has read.")
    state: str = Field(description="Its state: safetensors in base64, or nothing.")
    rows: list[list[float | None]] = Field(max_length=100_000, description="The last rows of a series.")


class ForkRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"into": "another"}]})
    into: SessionName = Field(description="What the second session is called.")


@router.get("/runs")
async def list_runs(request: Request) -> dict[str, Any]:
    """The runs with their scores and baselines, and the folders that are no runs, each with the reason."""
    runs = engine_of(request).runs
    descriptions = [runs.describe(name) for name in runs.list()]
    return {"folder": runs.shown, "runs": descriptions, "refused": runs.refused}


@router.get("/runs/{run}")
async def get_run(request: Request, run: str) -> dict[str, Any]:
    """One run: its task, network, scores with baselines, and whether it trains right now."""
    return engine_of(request).runs.describe(run)


@router.post("/predict")
async def predict(request: Request, body: PredictRequest) -> dict[str, Any]:
    """The best answers to each input, as `seqloom predict --json` tells them."""
    return {"run": body.run, "answers": await engine_of(request).predict(body.run, body.inputs, body.beam)}


@router.post("/explain")
async def explain(request: Request, body: ExplainRequest) -> dict[str, Any]:
    """Which elements of the input spoke for an answer, by several methods, each with its faithfulness."""
    explanation = await engine_of(request).explain(body.run, body.input, body.answer, body.step)
    return {"run": body.run, **explanation}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> PlainTextResponse:
    """Counters and histograms for Prometheus."""
    return PlainTextResponse(engine_of(request).metrics.text(), media_type="text/plain; version=0.0.4")


# --- sessions: they are fed by /v2/models/RUN/infer with a sequence_id ------------------------------------------------


def session(request: Request, run: str) -> Engine:
    engine = engine_of(request)
    engine.runs.check(run)
    return engine


@router.post("/runs/{run}/sessions/{name}/save")
async def save(request: Request, run: str, name: SessionName) -> dict[str, Any]:
    """A session as JSON, which `restore` takes: here, or on another server of the same run."""
    engine = session(request, run)
    return await engine.call(run, lambda model: engine.sessions.save(model, name))


@router.post("/runs/{run}/sessions/{name}/restore")
async def restore(request: Request, run: str, name: SessionName, saved: SavedSession) -> dict[str, Any]:
    """A saved session again, under any name."""
    engine = session(request, run)
    return await engine.call(run, lambda model: engine.sessions.restore(model, name, saved.model_dump()))


@router.post("/runs/{run}/sessions/{name}/fork")
async def fork(request: Request, run: str, name: SessionName, body: ForkRequest) -> dict[str, Any]:
    """A second session that goes on from where this one is."""
    engine = session(request, run)
    return await engine.call(run, lambda model: engine.sessions.fork(model, name, body.into))


@router.delete("/runs/{run}/sessions/{name}")
async def end(request: Request, run: str, name: SessionName) -> dict[str, Any]:
    """End a session."""
    engine = session(request, run)
    return await engine.call(run, lambda model: engine.sessions.end(model, name))
