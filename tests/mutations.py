"""Run folders as an attacker would leave them: one file changed in one place, and the manifest agrees."""

import json
import random
import re
from pathlib import Path
from typing import Any

from seqloom.training.manifests import MANIFEST, replace_file

DEEP = "deep-nesting-goes-here"
VALUES: list[Any] = [
    *("", "x", "[/bold]", "[bold red]", "\x1b[31m", "two\nlines", ":smile:", "\u2028", "-1", "nan", "1e5", DEEP),
    *(0, 1, -1, 3, 0.5, -0.0, 1e-300, 1e308, -1e308, 10**15, 2**63, 10**30, 10**400),
    *(float("nan"), float("inf"), float("-inf"), True, False, None),
    *([], {}, [0], [1.0], [1.0, 2.0, 3.0], ["x"], [[]], {"": 0}, {"x": "y"}, {"[/b]": {}}),
]
TOML = [
    *("0", "1", "-1", "3", "0.5", "-0.0", "1e308", "nan", "inf", "10000000", "1000000000000000000", "true", "false"),
    *('""', '"x"', '"[/bold]"', '"two\\nlines"', "[]", "[1]", '["x"]', "[[]]", "{}", "1979-05-27", "2", "7", "64"),
]
LINE = re.compile(r"^([a-z_]+) = (.*)$", re.MULTILINE)


def mutate(folder: Path, chance: random.Random) -> str:
    """Change one file of the folder, vouch for it, and say what was done."""
    kinds = (".json", ".jsonl", ".toml", ".safetensors")
    names = sorted(path.name for path in folder.iterdir() if path.suffix in kinds)
    name = chance.choice([*names, "version", *[one for one in names if one.endswith((".json", ".jsonl"))] * 2])
    before = (folder / name).read_bytes()
    after, said = changed(name, before, chance)
    if name == MANIFEST:
        (folder / name).write_bytes(after)
    else:
        replace_file(folder, name, after)
    return f"{name}: {said}"


def changed(name: str, content: bytes, chance: random.Random) -> tuple[bytes, str]:
    if name == "version":
        after = chance.choice([b"", b"0\n", b"-1\n", b"999\n", b"1", b"\xff\n", b"1" * 5000, b"\n1\n", b"1\n[/bold]\n"])
        return after, repr(after[:20])
    if chance.random() < 0.1 or name.endswith(".safetensors"):
        return damaged(content, chance)
    if name.endswith(".toml"):
        return rewritten(content.decode(), chance)
    if name.endswith(".jsonl"):
        lines = content.splitlines()
        place = chance.randrange(len(lines))
        lines[place], said = restructured(json.loads(lines[place]), chance, None)
        return b"\n".join(lines) + b"\n" * chance.randrange(2), f"line {place + 1}: {said}"
    return restructured(json.loads(content), chance, 2)


def damaged(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """Cut short, or a few bytes that are others."""
    after = bytearray(content)
    if chance.random() < 0.5:
        del after[chance.randrange(len(after)) :]
        return bytes(after), f"cut to {len(after)} bytes"
    for _ in range(chance.randint(1, 3)):
        after[chance.randrange(min(len(after), 4096))] = chance.randrange(256)
    return bytes(after), "bytes flipped"


def rewritten(text: str, chance: random.Random) -> tuple[bytes, str]:
    """Another value for a setting, or a line less."""
    lines = list(LINE.finditer(text))
    found = chance.choice(lines)
    line = chance.choice(["", f"{found[1]} = {chance.choice(TOML)}", f"{found[1]} = {chance.choice(lines)[2]}"])
    return (text[: found.start()] + line + text[found.end() :]).encode(), f"{found[0]!r} became {line!r}"


def restructured(value: Any, chance: random.Random, indent: int | None) -> tuple[bytes, str]:
    """The JSON value with one or two places in it changed."""
    said = [change(value, chance) for _ in range(chance.choice([1, 1, 2]))]
    if chance.random() < 0.02:
        value, said = chance.choice(VALUES), ["all of it"]
    deep = chance.choice(["[", '{"a":']), chance.choice([50, 900, 100_000])
    text = json.dumps(value, indent=indent).replace(f'"{DEEP}"', deep[0] * deep[1])
    if DEEP in json.dumps(value) and chance.random() < 0.7:  # else it is not even JSON
        text = json.dumps(value, indent=indent).replace(f'"{DEEP}"', "[" * deep[1] + "]" * deep[1])
    return text.encode(), " and ".join(said)


def change(value: Any, chance: random.Random) -> str:
    """One place of a JSON value, chosen by going down from the top."""
    place, path = value, ""
    while isinstance(place, dict | list) and place:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        path += f".{key!s:.30}"
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.25:
            return alter(place, key, path, chance)
        place = place[key]
    return "nothing"


def alter(place: Any, key: Any, path: str, chance: random.Random) -> str:
    what = chance.randrange(5)
    if what == 0:
        del place[key]
        return f"{path} is gone"
    if what == 1 and isinstance(place, dict):
        new = chance.choice(["", "x", "[/bold]", "two\nlines", "value", "run", key * 3])
        place[new] = place.pop(key)
        return f"{path} is called {new!r}"
    if what == 2 and isinstance(place, list):
        place += [place[key]] * chance.choice([1, 3, 100])
        return f"{path} again and again"
    place[key] = chance.choice(VALUES)
    return f"{path} became {repr(place[key])[:30]}"
