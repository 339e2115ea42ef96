"""What the protocols share: the engine behind a request, server-sent events, and mistakes as answers."""

import json
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ..errors import SeqloomError
from ..search import Abandoned
from .answers import error_response
from .engine import Engine
from .limits import Refused


def engine_of(request: Request) -> Engine:
    return request.app.state.engine


def as_event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n\n"


def error_of(error: SeqloomError) -> dict[str, Any]:
    """A mistake inside a stream, as OpenAI tells it."""
    return {"error": {"message": str(error), "type": "invalid_request_error", "param": None, "code": None}}


def as_refusal(error: Exception) -> Refused:
    """Any mistake as a refusal with a status; those of the program itself say nothing of what is inside."""
    match error:
        case Refused():
            return error
        case SeqloomError():
            return Refused(400, "input", str(error))
        case Abandoned():
            return Refused(503, "time", "the request was given up", retry_after=5)
        case RequestValidationError():
            return Refused(400, "schema", sentence_of(error))
        case HTTPException(status_code=status, detail=detail):
            return Refused(status, "route", f"{detail}; /docs lists what there is")
    return Refused(500, "failure", "the server failed at this request; its log says why")


def sentence_of(error: RequestValidationError) -> str:
    """The first of what is wrong with a request, in one sentence."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return f"{place[:120] or 'the body'}: {str(first['msg'])[:200]}"


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    refused = as_refusal(error)
    refused.sentence = engine_of(request).runs.hide(refused.sentence)
    request.app.state.engine.metrics.count("refusals", reason=refused.reason)
    return error_response(request.url.path, refused)
