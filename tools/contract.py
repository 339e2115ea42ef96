"""Write docs/contract.md, the table of capabilities, from docs/contract.toml: `python tools/contract.py`."""

import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """# Capabilities

Every capability with what to type, or its name in Python, and the tests that hold it. Words in capitals stand for your
own: a run folder, a recipe, a file, a text. The page is generated from `docs/contract.toml` by `tools/contract.py`; a
test fails if a command, an option, a setting, a view, a Python name or a test that it names does not exist.

{summary}
"""


def read_entries() -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The titles of the groups by letter, and the entries by their ID."""
    values = tomllib.loads((DOCS / "contract.toml").read_text("utf-8"))
    return values.pop("groups"), values


def write_page(groups: dict[str, str], entries: dict[str, dict[str, Any]]) -> str:
    missing = [f"{name} ({entry['open']})" for name, entry in entries.items() if "open" in entry]
    summary = f"{len(entries)} capabilities; open: {'; '.join(missing) or 'none'}."
    parts = [HEAD.format(summary=summary)]
    for letter, title in groups.items():
        rows = [format_row(name, entry) for name, entry in entries.items() if name[0] == letter]
        parts.append("\n".join([f"## {title}\n", "| ID | what | how | tests |", "|---|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def format_row(name: str, entry: dict[str, Any]) -> str:
    how = [f"`{one}`" for one in entry["use"]]
    if "open" in entry:
        how.append(f"**open**: {entry['open']}")
    tests = [f"`{one.removeprefix('tests/')}`" for one in entry["tests"]]
    cells = (name, entry["what"], "<br>".join(how), "<br>".join(tests))
    return f"| {' | '.join(cell.replace('<sos>', '`<sos>`').replace('<eos>', '`<eos>`') for cell in cells)} |"


if __name__ == "__main__":
    (DOCS / "contract.md").write_text(write_page(*read_entries()), encoding="utf-8")
