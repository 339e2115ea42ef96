"""The application: engine, routes, guard."""

import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib import metadata
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from ..errors import SeqloomError
from ..search import Abandoned
from . import looking, oip, openai, ours, pulling, site, spans, tokens
from .direct import Direct
from .document import describe_api
from .engine import Engine
from .limits import Limits
from .metrics import Metrics
from .runs import Runs
from .safety import LOCAL, Guard
from .wire import answer_error

ROUTERS = tuple(part.router for part in (site, ours, looking, pulling, spans, oip, openai, tokens))

DIRECT = (ours.predict, oip.infer)  # the functions whose routes take the short way

SWITCH = 0.0005  # seconds that a thread may keep the interpreter while another wants it


def create_app(folder: Path, limits: Limits | None = None, hosts: Collection[str] = LOCAL, token: str = "") -> ASGIApp:
    """The server of a run, or of all runs in a folder."""
    limits, metrics = limits or Limits(), Metrics()
    engine = Engine(Runs(folder, limits, metrics), limits, metrics)
    routes = FastAPI(
        title="seqloom",
        version=metadata_version(),
        docs_url=None,  # which would load scripts from elsewhere: /docs is ours
        redoc_url=None,
        lifespan=lifespan,
    )
    routes.state.engine = engine
    for mistake in (SeqloomError, Abandoned, RequestValidationError, HTTPException, Exception):
        routes.add_exception_handler(mistake, answer_error)
    for router in ROUTERS:
        routes.include_router(router)
    routes.openapi = partial(describe_api, routes)  # type: ignore[method-assign]
    often = [route for part in ROUTERS for route in part.routes if getattr(route, "endpoint", None) in DIRECT]
    return Guard(Direct(routes, often), limits, metrics, hosts, token, site.PUBLIC, engine.batcher.check_room)


def metadata_version() -> str:
    return metadata.version("seqloom")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The batcher works from the first request to the last answer.

    Its thread gives way to the web server's more often than Python's five milliseconds: one that only has to refuse
    should not wait that long for each piece of its answer.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    app.state.engine.batcher.start()
    yield
    app.state.engine.batcher.close()
    sys.setswitchinterval(before)
