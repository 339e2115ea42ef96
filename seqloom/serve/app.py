"""The application: engine, routes, guard. And the server around it, which hears slow clients and signals."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from importlib import metadata
from pathlib import Path

import h11
import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import SeqloomError
from ..search import Abandoned
from . import looking, oip, openai, ours, pulling, site, spans, tokens
from .document import describe_api
from .engine import Engine
from .limits import Limits
from .metrics import Metrics
from .runs import Runs
from .safety import LOCAL, Guard
from .wire import answer_error

ROUTERS = tuple(part.router for part in (site, ours, looking, pulling, spans, oip, openai, tokens))


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
    return Guard(routes, limits, metrics, hosts, token, site.PUBLIC)


def metadata_version() -> str:
    return metadata.version("seqloom")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """The batcher works from the first request to the last answer."""
    app.state.engine.batcher.start()
    yield
    app.state.engine.batcher.close()


class Protocol(H11Protocol):
    """HTTP/1.1, for clients that finish their headers in time: uvicorn itself would wait for ever."""

    header_seconds = Limits.header_seconds

    def connection_made(self, transport) -> None:  # type: ignore[no-untyped-def]
        super().connection_made(transport)
        self._late = self.loop.call_later(self.header_seconds, self._hang_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:  # the headers are there
            self._late.cancel()
        elif self._late.cancelled():
            self._late = self.loop.call_later(self.header_seconds, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


def create_server(app: ASGIApp, limits: Limits, host: str, port: int) -> uvicorn.Server:
    """It ends on SIGTERM after all that is in flight is answered."""
    protocol = type("Protocol", (Protocol,), {"header_seconds": limits.header_seconds})
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=protocol,
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=int(limits.seconds) + 1,
        )
    )
