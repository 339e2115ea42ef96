"""The routes that programs ask again and again, answered without the framework's stations in between.

They are routes like all others, documented and checked by the same classes; only the way from a body to their function
is short. The framework's own takes longer than everything else that the server does with a request.
"""

import json
from collections.abc import Iterable
from typing import Any, get_type_hints

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..errors import SeqloomError
from ..search import Abandoned
from .bodies import JSON
from .wire import answer_error

ANSWER = TypeAdapter(dict[str, Any])


class Direct:
    """In front of the application: it takes the requests of some routes, and hands all others on."""

    def __init__(self, app: FastAPI, routes: Iterable[APIRoute]) -> None:
        """Their functions take the request, `body`, and the texts that stand in the path."""
        self.app = app
        self._routes = [(route, get_type_hints(route.endpoint)["body"]) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            for route, form in self._routes:
                if match := route.path_regex.match(scope["path"]):
                    scope.update(app=self.app, route=route)
                    await self._answer(route, form, match.groupdict(), scope, receive, send)
                    return
        await self.app(scope, receive, send)

    async def _answer(
        self, route: APIRoute, form: type[BaseModel], names: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        request = Request(scope, receive)
        try:
            answer = await route.endpoint(request, body=parse_body(form, await request.body()), **names)
            response: Response = Response(ANSWER.dump_json(answer), media_type=JSON)
        except (SeqloomError, Abandoned, RequestValidationError) as error:
            response = await answer_error(request, error)
        except Exception as error:
            await (await answer_error(request, error))(scope, receive, send)
            raise  # for the log
        await response(scope, receive, send)


def parse_body(form: type[BaseModel], body: bytes) -> BaseModel:
    try:
        return form.model_validate(json.loads(body), from_attributes=True)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
