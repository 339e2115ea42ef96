"""OpenAI's completions: texts written on by runs whose task is language, music or draw.

https://platform.openai.com/docs/api-reference/completions; what this server does not do is refused, not ignored.
"""

import secrets
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..errors import DataError, SeqloomError
from ..runs.json_output import replace_nonfinite
from .engine import Engine
from .limits import Refused
from .models import Model, Token, Writing
from .wire import as_event, engine_of, error_of

router = APIRouter(prefix="/v1", tags=["OpenAI completions"])

FINISHES = {"end": "stop", "stop": "stop", "length": "length", "time": "length"}

Prompt = Annotated[str, Field(max_length=1 << 20)]
Ids = Annotated[list[StrictInt], Field(min_length=1, max_length=1 << 20)]


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")
    include_usage: bool = Field(default=False, description="Send the usage in a last chunk of its own.")


class Completion(BaseModel):
    """A request for completions."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"model": "language", "prompt": "Once upon", "max_tokens": 16, "seed": 1}]},
    )
    model: str = Field(description="The name of a run.")
    prompt: Prompt | Ids | Annotated[list[Prompt], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)] = (
        Field(default="", description="One beginning, or several: texts, or tokens by number as /tokenize gives them.")
    )
    max_tokens: int = Field(default=16, ge=0, description="The most tokens to write; 0 only with echo.")
    temperature: float = Field(default=1.0, ge=0, le=100, description="0 takes the likeliest token each time.")
    top_p: float = Field(
        default=1.0, gt=0, le=1, description="Draw from the fewest tokens that have this share together."
    )
    n: int = Field(default=1, ge=1, description="Texts for each prompt.")
    best_of: int | None = Field(default=None, description="As n, or not given: texts are not ranked here.")
    stream: bool = Field(default=False, description="Send pieces as server-sent events, `data: [DONE]` at the end.")
    stream_options: StreamOptions | None = Field(default=None, description="Of a stream.")
    logprobs: int | None = Field(
        default=None, ge=0, description="Tell log-probabilities, and so many of the likeliest tokens."
    )
    echo: bool = Field(
        default=False, description="Give the prompt as well, with its log-probabilities if they are asked for."
    )
    stop: str | list[str] | None = Field(default=None, description="Texts end before any of these.")
    seed: int | None = Field(
        default=None, description="The same seed writes the same; a new one is drawn if not given."
    )
    user: str | None = Field(default=None, description="Not used.")
    frequency_penalty: Literal[0] = Field(default=0, description="Not served: 0.")
    presence_penalty: Literal[0] = Field(default=0, description="Not served: 0.")
    suffix: None = Field(default=None, description="Not served: null.")
    logit_bias: None = Field(default=None, description="Not served: null.")

    @property
    def prompts(self) -> list[Any]:
        """Texts, or lists of tokens by number."""
        one = isinstance(self.prompt, str) or isinstance(self.prompt[0], int)
        return [self.prompt] if one else list(self.prompt)

    def writing(self) -> Writing:
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Writing(
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=secrets.randbelow(1 << 31) if self.seed is None else self.seed,
            count=self.n,
            alternatives=self.logprobs or 0,
            stop=tuple(stop),
        )

    def check(self, engine: Engine) -> None:
        if self.best_of not in (None, self.n):
            raise DataError("best_of must equal n: texts are returned as they are sampled")
        if self.max_tokens == 0 and not self.echo:
            raise DataError("max_tokens is 0: without echo there is nothing to return")
        engine.check_inputs(self.prompts)
        engine.check_writing(len(self.prompts), self.writing())


@dataclass
class Choice:
    """One text on its way."""

    index: int
    start: int = 0  # the characters before it, for offsets
    text: str = ""
    finish: str | None = None
    tokens: list[Token] = field(default_factory=list)
    written: int = 0

    def add(self, token: Token, generated: bool = True) -> None:
        self.text += token.text
        self.written += generated
        self.finish = FINISHES[token.finish] if token.finish else None
        if token.name:
            self.tokens.append(token)

    def to_json(self, logprobs: bool) -> dict[str, Any]:
        told: dict[str, Any] | None = None
        if logprobs:
            offsets, offset = [], self.start
            for token in self.tokens:
                offsets.append(offset)
                offset += len(token.text)
            told = {
                "tokens": [token.name for token in self.tokens],
                "token_logprobs": [token.log for token in self.tokens],
                "top_logprobs": [token.alternatives for token in self.tokens],
                "text_offset": offsets,
            }
        shown = {
            "index": self.index,
            "text": self.text,
            "logprobs": replace_nonfinite(told),
            "finish_reason": self.finish,
        }
        return shown


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
async def complete(request: Request, asked: Completion) -> Response:
    """Texts written on from one or several prompts."""
    engine = engine_of(request)
    asked.check(engine)
    prompts: list[Read] = await engine.ask(asked.model, read_prompts, asked.prompts, "prompt")
    read = sum(one.tokens for one in prompts)
    head = {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": asked.model,
    }
    if asked.stream:
        return StreamingResponse(stream(engine, asked, head, prompts, read), media_type="text/event-stream")
    choices = []
    for number, prompt in enumerate(prompts):
        choices += await collect(engine, asked, number, prompt)
    usage = usage_of(read, sum(choice.written for choice in choices))
    told = [choice.to_json(asked.logprobs is not None) for choice in choices]
    return JSONResponse(head | {"choices": told, "usage": usage})


class Read(NamedTuple):
    """A prompt as a run reads it."""

    text: str
    given: str | list[int]  # a text, or tokens by number
    tokens: int  # how many it has


def read_prompts(model: Model, prompts: Sequence[Any]) -> list[Read]:
    """Texts with the number of their tokens; refused if the run does not write on."""
    if not model.writes_on:
        told = f"{model.name} is a run whose task is {model.task}: it answers inputs and writes nothing on"
        raise Refused(400, "task", f"{told}; ask /predict, or /v2/models/{model.name}/generate")
    return [
        Read(one, one, model.count_tokens(one)) if isinstance(one, str) else Read(model.read_tokens(one), one, len(one))
        for one in prompts
    ]


def opening(asked: Completion, number: int, prompt: Read, echoed: Sequence[Token]) -> list[Choice]:
    """The choices of one prompt before anything is written."""
    choices = [Choice(number * asked.n + place, 0 if asked.echo else len(prompt.text)) for place in range(asked.n)]
    for choice in choices if asked.echo else ():
        for token in echoed:
            choice.add(token, generated=False)
        choice.text = prompt.text
    return choices


async def echo_of(engine: Engine, asked: Completion, prompt: Read) -> list[Token]:
    if not asked.echo or asked.logprobs is None:
        return []
    return await engine.call(asked.model, Model.score_prompt, prompt.given, asked.logprobs)


async def collect(engine: Engine, asked: Completion, number: int, prompt: Read) -> list[Choice]:
    """The texts of one prompt, whole."""
    choices = opening(asked, number, prompt, await echo_of(engine, asked, prompt))
    if asked.max_tokens:
        async for token in engine.generate(asked.model, prompt.text, asked.writing()):
            choices[token.number].add(token)
    for choice in choices:
        choice.finish = choice.finish or "length"
    return choices


async def stream(
    engine: Engine, asked: Completion, head: dict[str, Any], prompts: Sequence[Read], read: int
) -> AsyncIterator[bytes]:
    """The same, a chunk a token; what goes wrong on the way is said in the stream."""
    written, logprobs = 0, asked.logprobs is not None
    try:
        for number, prompt in enumerate(prompts):
            choices = opening(asked, number, prompt, await echo_of(engine, asked, prompt))
            places = [choice.start for choice in choices]
            for choice in choices if asked.echo else ():
                choice.finish = None if asked.max_tokens else "length"
                yield as_event(head | {"choices": [choice.to_json(logprobs)]})
                places[choice.index % asked.n] = len(prompt.text)
            if not asked.max_tokens:
                continue
            async for token in engine.generate(asked.model, prompt.text, asked.writing()):
                chunk = Choice(number * asked.n + token.number, places[token.number])
                chunk.add(token)
                written += 1
                places[token.number] += len(token.text)
                if chunk.text or chunk.finish or (logprobs and chunk.tokens):
                    yield as_event(head | {"choices": [chunk.to_json(logprobs)]})
        if asked.stream_options and asked.stream_options.include_usage:
            yield as_event(head | {"choices": [], "usage": usage_of(read, written)})
    except SeqloomError as error:
        yield as_event(error_of(error))
    yield b"data: [DONE]\n\n"


def usage_of(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
