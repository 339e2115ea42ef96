"""Routes that show what is inside a run: its records, examples, views and attention. The page is made of them."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from . import examples, guessing, inspection, snapshots
from .models import Model
from .ours import Given
from .records import read_on
from .wire import engine_of

router = APIRouter(tags=["seqloom: what is inside"])


class InputRequest(BaseModel):
    """An input of a run."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"run": "dates", "input": "3 mai 2024"}]})
    run: str = Field(description="The name of a run.")
    input: Given = Field(description="A text, [text, tag], or an array of numbers with null as gaps.")


class AnswerRequest(InputRequest):
    """An input, and the answer that is looked at."""

    answer: str | None = Field(default=None, description="The answer to look at; the model's own if not given.")


class ViewRequest(AnswerRequest):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"run": "dates", "input": "3 mai 2024", "view": "attention"}]}
    )
    view: str = Field(max_length=40, description="The name of a view, as `/views` lists them.")


class TuneRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"text": "X:1\nL:1/8\nK:D\nDEFA|"}]})
    text: str = Field(max_length=16_384, description="A tune in ABC notation.")


@router.get("/runs/{run}/records")
async def list_records(
    request: Request,
    run: str,
    after: Annotated[int, Query(ge=0, le=1 << 53, description="The byte that the last answer named; 0 at first.")] = 0,
) -> dict[str, Any]:
    """What training has told behind this byte, as `seqloom train --json` does: ask again with the new `after`."""
    runs = engine_of(request).runs
    return runs.describe(run) | read_on(runs.check(run, servable=False).folder, after)


@router.get("/runs/{run}/examples")
async def list_examples(request: Request, run: str) -> dict[str, Any]:
    """Examples of the run's own test part with their right answers, where its data is still at hand."""
    return await engine_of(request).call(run, examples.list_examples)


@router.get("/runs/{run}/input")
async def describe_input(request: Request, run: str) -> dict[str, Any]:
    """Whether the run reads a text or numbers, writes on from a beginning (a text of tokens, or something else), and
    searches for its answers."""
    return await engine_of(request).call(run, inspection.describe_input)


@router.post("/next")
async def list_next(request: Request, body: InputRequest) -> dict[str, Any]:
    """Every token that may come after a text with its log-probability, the likeliest first: for any temperature."""
    engine = engine_of(request)
    engine.check_inputs([body.input])
    return await engine.call(body.run, inspection.list_next, body.input)


@router.post("/views")
async def list_views(request: Request, body: AnswerRequest) -> dict[str, Any]:
    """The views that fit this run, each with how to read it, and why the others do not."""
    return await engine_of(request).inspect(body.run, body.input, body.answer, inspection.list_views)


@router.post("/look")
async def look(request: Request, body: ViewRequest) -> dict[str, Any]:
    """One view as a Vega-Lite definition (`spec`), or as a drawing (`svg`)."""
    return await engine_of(request).inspect(body.run, body.input, body.answer, inspection.draw_view, body.view)


@router.post("/attention")
async def attention(request: Request, body: AnswerRequest) -> dict[str, Any]:
    """The attention weights behind an answer: `weights[map][target][source]`."""
    return await engine_of(request).inspect(body.run, body.input, body.answer, inspection.attend)


@router.post("/tune")
async def tune(request: Request, body: TuneRequest) -> dict[str, Any]:
    """The sounds of a tune in ABC notation: start and end in seconds, pitch by MIDI's number, and the note's name."""
    return await asyncio.to_thread(inspection.read_tune, body.text)


@router.post("/over-training")
async def answer_over_training(request: Request, body: InputRequest) -> dict[str, Any]:
    """The answers to one input of every kept checkpoint, from step 0; `step` null is the run as it is served."""
    answer = await engine_of(request).inspect(body.run, body.input, None, over_training)
    return answer


def over_training(model: Model, raw: Any, answer: str | None) -> dict[str, Any]:
    return snapshots.answer_over_training(model, raw)


@router.get("/runs/{run}/passage")
async def choose_passage(
    request: Request, run: str, seed: Annotated[int, Query(ge=0, le=1 << 31, description="Which passage.")] = 0
) -> dict[str, Any]:
    """Some tokens of the test text, and what each costs the model and the strongest baseline, in bits."""
    return await engine_of(request).call(run, guessing.choose_passage, seed)
