"""HTML put together from pieces: text is escaped unless it is HTML already. Knows no model, chart or run."""

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML already: only what is made here may claim so."""


def html(*parts: str) -> Html:
    """The parts one after the other, each escaped unless it is HTML."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def tag(name: str, *inside: str, kind: str = "", id: str = "", href: str = "", src: str = "", alt: str = "") -> Html:
    """An element with what is inside; `kind` is its class."""
    values = {"class": kind, "id": id, "href": href, "src": src, "alt": alt}
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in values.items() if value)
    if name == "img":
        return Html(f"<img{attributes}>")
    return Html(f"<{name}{attributes}>{html(*inside)}</{name}>")


def items(lines: Iterable[str]) -> Html:
    return tag("ul", *(tag("li", line) for line in lines))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> Html:
    """Wide tables scroll by themselves, so that the page does not."""
    head = tag("tr", *(tag("th", column) for column in columns))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), kind=f"wide {kind}".strip())


def section(id: str, title: str, *inside: str) -> Html:
    return tag("section", tag("h2", title), *inside, id=id)


def details(title: str, *inside: str) -> Html:
    """Something to open."""
    return tag("details", tag("summary", title), *inside)


def script(text: str, kind: str = "", id: str = "") -> Html:
    """A script, or data for one; no text in it may end it. JSON and the scripts here mean the same with `\\u003c`."""
    type_ = f' type="{escape(kind)}"' if kind else ""
    name = f' id="{escape(id)}"' if id else ""
    safe = text.replace("<", "\\u003c") if kind else text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return Html(f"<script{type_}{name}>{safe}</script>")


def page(title: str, style: str, *body: str) -> Html:
    """A whole document that asks no network for anything, and is not allowed to."""
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
    )
    return Html(
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}<title>{escape(title)}</title><style>{style}</style></head>'
        f"<body>{html(*body)}</body></html>\n"
    )
