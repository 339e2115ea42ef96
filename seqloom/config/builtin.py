"""The built-in recipes: their names, their texts, and what `seqloom recipes` says of each.

Nothing here builds the classes of settings: that takes longer than all the rest of the command.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "recipes"


class Summary(NamedTuple):
    """A recipe in the words of `seqloom recipes`."""

    title: str
    size: str
    time: str
    data: str


def builtin() -> list[str]:
    """The names of the built-in recipes."""
    return sorted(file.name.removesuffix(".toml") for file in FOLDER.iterdir() if file.name.endswith(".toml"))


def read_builtin(name: str) -> str:
    return FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")


def describe(name: str) -> Summary:
    """What a built-in recipe does, how large its model is, how long it takes, and on what data. A test holds its words
    against the settings that are made of it."""
    values = tomllib.loads(read_builtin(name))
    about, model, sample = values["about"], values["model"], values["data"].get("sample")
    sides = [describe_shape(model | model.get(side, {})) for side in ("encoder", "decoder")]
    data = f"sample {sample}" if sample else "your own files"
    return Summary(about["title"], " → ".join(dict.fromkeys(sides)), about["time"], data)


def describe_shape(side: dict[str, Any]) -> str:
    """Kind, size and depth of an architecture, such as `gru 128 × 2`."""
    return f"{side.get('kind', 'gru')} {side['size']} × {side.get('depth', 1)}"
