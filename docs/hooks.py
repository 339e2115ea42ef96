"""Pages of the site that are made from the code when it is built, so that they cannot fall behind it: every setting,
the functions and classes of the Python interface, every view with its picture, the changelog."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from seqloom.architectures import ARCHITECTURES
from seqloom.config.messages import Setting, literal, settings
from seqloom.config.recipe import class_of, list_kinds
from seqloom.config.tasks import USES
from seqloom.course import DOCS

MODULES = (
    "seqloom",
    "seqloom.layers",
    "seqloom.models",
    "seqloom.search",
    "seqloom.runs.run",
    "seqloom.look",
)
TABLES = {
    "data": "Where the examples come from and how they become tokens or numbers.",
    "model": "The network. `model.kind` chooses the architecture; a model that reads and writes has the same settings "
    "once more in `model.encoder` and `model.decoder`, where they may differ.",
    "train": "How it is trained.",
    "search": "How answers are searched for.",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for uri, make in PAGES.items():
        files.append(File.generated(config, uri, content=make()))
    return files


# --- settings -----------------------------------------------------------------------------------------------------


def settings_page() -> str:
    lines = [
        "# Every setting",
        "",
        "A setting is written in a recipe (`[train]`, `steps = 500`) or typed behind a command (`train.steps=500`). "
        "`seqloom config RECIPE` prints those of one recipe with their values. The table says which tasks and kinds "
        "have a setting, where not all of them do; a default may differ from task to task.",
    ]
    found = list_settings()
    for table, about in TABLES.items():
        lines += [
            "",
            f"## {table}",
            "",
            about,
            "",
            "| setting | default | what it does | of |",
            "|---|---|---|---|",
        ]
        lines += [row(name, *found[name]) for name in found if name.startswith(f"{table}.")]
    return "\n".join(lines) + "\n"


def list_settings() -> dict[str, tuple[Setting, Any, dict[str, set[str]]]]:
    """By dotted name: the setting, its default, and by task the kinds that have it."""
    found: dict[str, tuple[Setting, Any, dict[str, set[str]]]] = {}
    for task in USES:
        for kind in list_kinds(task):
            values = {"task": task, "model": {"kind": kind}}
            made = class_of(values)
            for name, setting in settings(made).items():
                if not name.startswith(("model.encoder.", "model.decoder.")):
                    entry = found.setdefault(name, (setting, default_of(made, name), {}))
                    entry[2].setdefault(task, set()).add(kind)
    return found


def default_of(made: Any, name: str) -> Any:
    *tables, last = name.split(".")
    for table in tables:
        made = made.model_fields[table].annotation
    return made.model_fields[last].get_default(call_default_factory=True)


def row(name: str, setting: Setting, default: Any, owners: dict[str, set[str]]) -> str:
    help = without_markup(f"{setting.help} Takes {setting.allowed}.").replace("|", "\\|")
    return f"| `{name}` | `{literal(default)}` | {help} | {name_owners(owners)} |"


def name_owners(owners: dict[str, set[str]]) -> str:
    """The tasks, where not all have it; the kinds, where not all that fit these tasks do."""
    kinds = set().union(*owners.values())
    possible = {kind for task in owners for kind in list_kinds(task)}
    told = [] if len(owners) == len(USES) else [", ".join(owners)]
    if kinds != possible:
        told.append("kinds " + ", ".join(kind for kind in ARCHITECTURES if kind in kinds))
    return "; ".join(told) or "all"


# --- the Python interface -----------------------------------------------------------------------------------------


def api_page() -> str:
    lines = [
        "# Python interface",
        "",
        "The public names of the package with their signatures, from the code itself. [Layers](../layers.md), "
        "[Cells](../cells.md) and [Generating](../generating.md) explain how they fit together.",
    ]
    for name in MODULES:
        module = import_module(name)
        lines += ["", f"## {name}", "", as_text(module)]
        for public, value in public_names(module):
            lines += ["", *entry_lines(f"### {public}", public, value)]
            if inspect.isclass(value):
                for method, function in public_methods(value):
                    lines += [
                        "",
                        *entry_lines(f"**{public}.{method}**", method, function),
                    ]
    return "\n".join(lines) + "\n"


def public_names(module: Any) -> Iterator[tuple[str, Any]]:
    """What a module declares itself or, where it is the front of a package, hands on."""
    front = hasattr(module, "__path__")
    for name in getattr(module, "__all__", None) or list(vars(module)):
        value = getattr(module, name)
        whole = inspect.isclass(value) or inspect.isfunction(value)
        home = getattr(value, "__module__", "")
        if (
            whole
            and not name.startswith("_")
            and (home.startswith(module.__name__) if front else home == module.__name__)
        ):
            yield name, value


def public_methods(value: Any) -> Iterator[tuple[str, Any]]:
    for name, member in vars(value).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and not name.startswith("_") and function.__doc__:
            yield name, function


def entry_lines(head: str, name: str, value: Any) -> list[str]:
    return [head, "", "```text", signature_of(name, value), "```", "", as_text(value)]


def signature_of(name: str, value: Any) -> str:
    try:
        return f"{name}{inspect.signature(value)}"
    except (TypeError, ValueError):
        return name


def as_text(value: Any) -> str:
    """A docstring as prose."""
    return without_markup(inspect.cleandoc(value.__doc__ or ""))


def without_markup(text: str) -> str:
    """What looks like markup in a sentence of the code is none."""
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*")


# --- views --------------------------------------------------------------------------------------------------------


def views_page() -> str:
    from seqloom.look.views import VIEWS

    lines = [
        "# All views",
        "",
        "Every picture that `seqloom look RUN INPUT --view NAME --out FILE` draws, with how to read it. "
        "`--view all` writes one page with all that fit a run. [Looking inside](../look.md) explains options, parts "
        "and what the pictures can and cannot prove.",
    ]
    for name, view in VIEWS.items():
        lines += ["", f"## {name}", "", view.reading]
        for picture in (DOCS / "pictures" / "views").glob(f"{name}.*"):
            lines += ["", f"![The view {name}](../pictures/views/{picture.name})"]
    return "\n".join(lines) + "\n"


def changelog_page() -> str:
    """The changelog of the project, whose links are those of the project's folder."""
    return (DOCS.parent / "CHANGELOG.md").read_text("utf-8").replace("](docs/", "](")


PAGES = {
    "reference/settings.md": settings_page,
    "reference/api.md": api_page,
    "reference/views.md": views_page,
    "changelog.md": changelog_page,
}
