"""Two pages without a script: the runs at `/`, and at `/docs` what can be asked. They need nothing from elsewhere."""

import json
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from .wire import engine_of

router = APIRouter(include_in_schema=False)

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
pre { overflow-x: auto; padding: .6rem; background: #8882; }
"""


def page(title: str, *parts: str) -> HTMLResponse:
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head>{head}<link rel="stylesheet" href="/style.css"></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )


def table(titles: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@router.get("/style.css")
async def style() -> Response:
    return Response(STYLE, media_type="text/css")


@router.get("/")
async def home(request: Request) -> HTMLResponse:
    runs = engine_of(request).runs
    found = [runs.describe(name) for name in runs.find()]
    rows = [[run["name"], run["task"], run["model"], scores_of(run), "yes" if run["loaded"] else ""] for run in found]
    parts = ['<p><a href="/docs">What can be asked</a> · <a href="/metrics">metrics</a></p>']
    if rows:
        parts.append(table(["run", "task", "model", "scores (best baseline)", "loaded"], rows))
    else:
        parts.append("<p>There is no run in this folder yet. Make one, and load this page again:</p>")
        parts.append(f"<pre>seqloom train seq2seq --into {escape(str(runs.folder))}/dates</pre>")
    if runs.refused:
        parts.append(
            "<h2>Folders that are not served</h2>" + table(["folder", "why"], list(map(list, runs.refused.items())))
        )
    return page("seqloom", *parts)


def scores_of(run: dict[str, Any]) -> str:
    told = []
    for name, score in run["scores"].items():
        best = max if score["better"] == "higher" else min
        beside = best(score["baselines"].values(), default=None)
        told.append(f"{name} {score['value']:.4g}" + ("" if beside is None else f" ({beside:.4g})"))
    return ", ".join(told)


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
    return page("What can be asked", *parts)


def body_of(schema: dict[str, Any]) -> list[str]:
    """A table of the fields of a request, and its example."""
    if not schema:
        return []
    rows = [
        [name, json.dumps(field["default"]) if "default" in field else "needed", field.get("description", "")]
        for name, field in schema.get("properties", {}).items()
    ]
    shown = "".join(f"<pre>{escape(json.dumps(one, ensure_ascii=False))}</pre>" for one in schema.get("examples", []))
    return [table(["field", "default", "what it is"], rows), shown]
