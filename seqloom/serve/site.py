"""The page at `/` and its files, and `/docs`: what can be asked. They need nothing from elsewhere.

The files are read once, when the server starts; a request names one of them, never a path.
"""

import asyncio
import json
from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from ..look.charts.base import read_library
from .limits import Refused

router = APIRouter(include_in_schema=False)

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {
    path.name: (path.read_bytes(), KINDS[path.suffix])
    for path in sorted((Path(__file__).parent / "page").iterdir())
    if path.suffix in KINDS
}
PUBLIC = {"/", "/vega.js", *(f"/static/{name}" for name in FILES)}  # what is the same on every server
DAY = {"cache-control": "private, max-age=86400"}


@router.get("/")
async def home() -> Response:
    return answer_file("index.html")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    return answer_file(name)


def answer_file(name: str) -> Response:
    if name not in FILES:
        raise Refused(404, "route", f"the page has no file {name[:80]!r}")
    data, kind = FILES[name]
    return Response(data, media_type=f"{kind}; charset=utf-8")


@router.get("/vega.js")
async def vega(request: Request) -> Response:
    """What draws the charts. It takes seconds to put together for the first time ever, so not in the server's loop.

    On a busy machine that may be longer than a request may take: it goes on, and whoever asks again waits for the rest.
    """
    state = request.app.state
    task: asyncio.Task[str] | None = getattr(state, "library", None)
    if task is None or (task.done() and task.exception() is not None):
        state.library = task = asyncio.create_task(asyncio.to_thread(read_library))
    return Response(await asyncio.shield(task), media_type="text/javascript; charset=utf-8", headers=DAY)


# --- what can be asked -----------------------------------------------------------------------------------------------


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """The routes of the OpenAPI document, with their fields and an example of each."""
    api = request.app.openapi()
    parts = ['<p>For programs: <a href="/openapi.json">openapi.json</a>. Errors are one sentence.</p>']
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(route.get('description', ''))}</p>")
            schema = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            parts += body_of(api["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {}))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>What can be asked</title>'
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head>{head}<link rel="stylesheet" href="/static/style.css"></head>'
        f"<body><main><p><a href='/'>The page</a></p><h1>What can be asked</h1>{''.join(parts)}</main></body></html>"
    )


def body_of(schema: dict[str, Any]) -> list[str]:
    """A table of the fields of a request, and its example."""
    if not schema:
        return []
    needed = schema.get("required", [])
    rows = [
        [name, "needed" if name in needed else json.dumps(field.get("default")), field.get("description", "")]
        for name, field in schema.get("properties", {}).items()
    ]
    shown = "".join(f"<pre>{escape(json.dumps(one, ensure_ascii=False))}</pre>" for one in schema.get("examples", []))
    return [table(["field", "default", "what it is"], rows), shown]


def table(titles: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
