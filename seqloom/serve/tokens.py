"""Texts to tokens and back, by the routes that evaluation harnesses ask for: a text is scored as the run cuts it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from ..data.vocabulary import END, SPECIALS, START
from .engine import Engine
from .limits import Refused
from .models import Model
from .wire import engine_of

router = APIRouter(tags=["tokens"])
WRITING = ("language", "music")  # the tasks that write on texts

Name = Annotated[str | None, Field(description="The name of a run; needed where several write texts.")]


class Text(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"prompt": "Once upon"}]})
    prompt: str = Field(
        max_length=1 << 20, description="A text; the name of a special token alone is that token, such as <eos>."
    )
    model: Name = None
    add_special_tokens: bool = Field(default=False, description="Put the token in front that a document begins with.")


class Tokens(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"tokens": [17, 5, 9]}]})
    tokens: list[int] = Field(max_length=1 << 20, description="Numbers of tokens.")
    model: Name = None


@router.get("/tokenizer_info")
async def describe_tokenizer(
    request: Request, model: Annotated[str | None, Query(description="The name of a run.")] = None
) -> dict[str, Any]:
    """How a run cuts texts: the kind of its tokens, and what a text begins and ends with."""
    engine = engine_of(request)
    return await engine.call(choose_run(engine, model), describe)


@router.post("/tokenize")
async def tokenize(request: Request, body: Text) -> dict[str, Any]:
    """The numbers of a text's tokens."""
    engine = engine_of(request)
    engine.check_inputs([body.prompt])
    tokens = await engine.call(choose_run(engine, body.model), encode, body.prompt, body.add_special_tokens)
    return {"tokens": tokens, "count": len(tokens)}


@router.post("/detokenize")
async def detokenize(request: Request, body: Tokens) -> dict[str, Any]:
    """The text of tokens."""
    engine = engine_of(request)
    engine.check_inputs([body.tokens])
    return {"prompt": await engine.call(choose_run(engine, body.model), Model.read_tokens, body.tokens)}


def choose_run(engine: Engine, name: str | None) -> str:
    """The run of this name, or the only one that writes texts."""
    if name is not None:
        return name
    names = [run for run, entry in engine.runs.find().items() if entry.recipe.task in WRITING]
    if len(names) == 1:
        return names[0]
    known = f"those that write texts are {', '.join(sorted(names)[:10])}" if names else "none here writes texts"
    raise Refused(400, "run", f"model does not name a run, and {known}")


def describe(model: Model) -> dict[str, Any]:
    first = model.language.writer.encode_opening("")[0]
    kind = model.language.target.kind
    begin = SPECIALS[START] if first == START else model.language.target.decode([first])
    return {"model": model.name, "tokenizer_class": kind, "bos_token": begin, "eos_token": SPECIALS[END]}


def encode(model: Model, text: str, special: bool) -> list[int]:
    field = model.language.target
    if text in SPECIALS:
        return [SPECIALS.index(text)]
    return model.language.writer.encode_opening(text) if special else field.encode(text).tolist()
