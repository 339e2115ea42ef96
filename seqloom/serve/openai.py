"""OpenAI's completions: texts written on by runs whose task is language, music or draw.

https://platform.openai.com/docs/api-reference/completions; what this server does not do is refused, not ignored.
"""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..errors import SeqloomError
from .choices import Choice, usage_of
from .engine import Engine
from .limits import Refused
from .models import Model
from .openai_requests import Completion
from .prompts import score_prompt
from .wire import as_event, engine_of, error_of
from .writing import Token

router = APIRouter(prefix="/v1", tags=["OpenAI completions"])


@router.get("/models")
async def list_models(request: Request) -> dict[str, Any]:
    """The runs of this server."""
    return {"object": "list", "data": [model_json(name) for name in engine_of(request).runs.find()]}


@router.get("/models/{model}")
async def get_model(request: Request, model: str) -> dict[str, Any]:
    """One run."""
    engine_of(request).runs.check(model)
    return model_json(model)


def model_json(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "seqloom"}


@router.post("/completions", response_model=None)
async def complete(request: Request, body: Completion) -> Response:
    """Texts written on from one or several prompts."""
    engine = engine_of(request)
    body.check(engine)
    prompts: list[Prompt] = await engine.ask(body.model, read_prompts, body.prompts, "prompt")
    read = sum(one.tokens for one in prompts)
    head = {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": body.model,
    }
    if body.stream:
        return StreamingResponse(stream(engine, body, head, prompts, read), media_type="text/event-stream")
    choices = []
    for number, prompt in enumerate(prompts):
        choices += await collect(engine, body, number, prompt)
    usage = usage_of(read, sum(choice.written for choice in choices))
    choices_json = [choice.to_json(body.logprobs is not None) for choice in choices]
    return JSONResponse(head | {"choices": choices_json, "usage": usage})


class Prompt(NamedTuple):
    """A prompt as a run reads it."""

    text: str
    given: str | list[int]  # a text, or tokens by number
    tokens: int  # how many it has


def read_prompts(model: Model, prompts: Sequence[Any]) -> list[Prompt]:
    """Texts with the number of their tokens; refused if the run does not write on."""
    if not model.writes_on:
        reason = f"{model.name} is a run whose task is {model.task}: it answers inputs and writes nothing on"
        raise Refused(400, "task", f"{reason}; ask /predict, or /v2/models/{model.name}/generate")
    return [
        Prompt(one, one, model.count_tokens(one))
        if isinstance(one, str)
        else Prompt(model.read_tokens(one), one, len(one))
        for one in prompts
    ]


def open_choices(body: Completion, number: int, prompt: Prompt, echoed: Sequence[Token]) -> list[Choice]:
    """The choices of one prompt before anything is written."""
    choices = [Choice(number * body.n + place, 0 if body.echo else len(prompt.text)) for place in range(body.n)]
    for choice in choices if body.echo else ():
        for token in echoed:
            choice.add(token, generated=False)
        choice.text = prompt.text
    return choices


async def echo_of(engine: Engine, body: Completion, prompt: Prompt) -> list[Token]:
    if not body.echo or body.logprobs is None:
        return []
    tokens: list[Token] = await engine.call(body.model, score_prompt, prompt.given, body.logprobs)
    return tokens


async def collect(engine: Engine, body: Completion, number: int, prompt: Prompt) -> list[Choice]:
    """The texts of one prompt, whole."""
    choices = open_choices(body, number, prompt, await echo_of(engine, body, prompt))
    if body.max_tokens:
        async for token in engine.generate(body.model, prompt.text, body.writing()):
            choices[token.number].add(token)
    for choice in choices:
        choice.finish = choice.finish or "length"
    return choices


async def stream(
    engine: Engine, body: Completion, head: dict[str, Any], prompts: Sequence[Prompt], read: int
) -> AsyncIterator[bytes]:
    """The same, a chunk a token; what goes wrong on the way is said in the stream."""
    written, logprobs = 0, body.logprobs is not None
    try:
        for number, prompt in enumerate(prompts):
            choices = open_choices(body, number, prompt, await echo_of(engine, body, prompt))
            places = [choice.start for choice in choices]
            for choice in choices if body.echo else ():
                choice.finish = None if body.max_tokens else "length"
                yield as_event(head | {"choices": [choice.to_json(logprobs)]})
                places[choice.index % body.n] = len(prompt.text)
            if not body.max_tokens:
                continue
            async for token in engine.generate(body.model, prompt.text, body.writing()):
                chunk = Choice(number * body.n + token.number, places[token.number])
                chunk.add(token)
                written += 1
                places[token.number] += len(token.text)
                if chunk.text or chunk.finish or (logprobs and chunk.tokens):
                    yield as_event(head | {"choices": [chunk.to_json(logprobs)]})
        if body.stream_options and body.stream_options.include_usage:
            yield as_event(head | {"choices": [], "usage": usage_of(read, written)})
    except SeqloomError as error:
        yield as_event(error_of(error))
    yield b"data: [DONE]\n\n"
