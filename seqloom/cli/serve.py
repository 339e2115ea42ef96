"""The command that serves runs over HTTP."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import MissingExtra, RecipeError, RunError
from ..stopping import Stop
from .options import Debug, Json, expand_groups

if TYPE_CHECKING:
    from ..serve.limits import Limits

LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN = "SEQLOOM_TOKEN"  # not an option: what is typed can be read by everybody on the machine


@dataclass(frozen=True)
class LimitOptions:
    """Limits of a request."""

    memory: Annotated[int, typer.Option(min=1, help="At most this many megabytes of weights are kept loaded.")] = 4096
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="How long an answer may take.")] = 30.0
    header_seconds: Annotated[
        float, typer.Option(min=0.1, max=60, help="How long a client may take to send a request.")
    ] = 10.0
    batch: Annotated[int, typer.Option(min=1, max=1024, help="Batch size: inputs answered together.")] = 64

    def limits(self) -> "Limits":
        from ..serve.limits import Limits

        return Limits(
            memory=self.memory << 20, seconds=self.seconds, header_seconds=self.header_seconds, batch=self.batch
        )


@expand_groups
def serve(
    context: typer.Context,
    runs: Annotated[Path, typer.Argument(help="A run folder, or a folder of them.")],
    limits: LimitOptions,
    host: Annotated[str, typer.Option(help="The address to listen on; any but this machine's own needs a token.")] = (
        LOOPBACK[0]
    ),
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    allow: Annotated[
        list[str] | None, typer.Option(help="A name by which clients may call this server, beside localhost.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Serve runs over HTTP: predictions, generation, sessions, explanations; three protocols, see /docs."""
    stop: Stop = context.obj
    stop.watch(lambda: "stopped before everything was answered")
    token = os.environ.get(TOKEN, "")
    if host not in LOOPBACK and not token:
        raise RecipeError(f"--host {host} can be reached from elsewhere, so a token is needed: set {TOKEN}")
    if not runs.is_dir():
        raise RunError(f"{runs}: is no folder")
    try:
        from ..serve.app import create_app
        from ..serve.server import create_server
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "h11"):
            raise
        raise MissingExtra(error.name, "serve") from None
    from ..serve.safety import LOCAL

    stop.patience = limits.seconds + 5
    bounds = limits.limits()
    server = create_server(create_app(runs, bounds, (*LOCAL, host, *(allow or [])), token), bounds, host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    print(json.dumps({"url": url}) if as_json else f"{url} serves {runs}; /docs says what can be asked", flush=True)
    stop.check()
    server.run()
    if stop.is_set():
        print("stopped; what was in flight is answered", file=sys.stderr)
    if not server.started:
        raise RecipeError(f"{url} cannot be listened on: is something else there? Name another --port")
