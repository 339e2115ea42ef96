"""Lines of Python's standard library and what each of their tokens is: a sample for tagging, with exact answers."""

import io
import keyword
import random
import sysconfig
import tokenize
from pathlib import Path

# Modules that every Python has, of many authors and subjects.
MODULES = (
    *("argparse", "ast", "bdb", "calendar", "cmd", "codecs", "configparser", "copy", "csv", "datetime", "difflib"),
    *("dis", "doctest", "enum", "fileinput", "fractions", "ftplib", "functools", "getopt", "gzip", "heapq", "imaplib"),
    *("inspect", "ipaddress", "locale", "mailbox", "mimetypes", "optparse", "os", "pathlib", "pdb", "pickletools"),
    *("platform", "plistlib", "pprint", "profile", "pydoc", "queue", "random", "sched", "shelve", "shutil", "smtplib"),
    *(
        "socket",
        "statistics",
        "string",
        "subprocess",
        "tarfile",
        "tempfile",
        "textwrap",
        "threading",
        "timeit",
        "trace",
    ),
    *("traceback", "turtle", "typing", "unittest/case", "uuid", "warnings", "weakref", "zipfile"),
)
KINDS = {tokenize.STRING: "STRING", tokenize.NUMBER: "NUMBER", tokenize.COMMENT: "COMMENT", tokenize.OP: "OPERATOR"}
SHARES = {"validation": 0.1, "test": 0.1}
LONGEST = 40  # tokens of a line
SEED = 1991


def tokens() -> dict[str, list[tuple[str, str]]]:
    """Pairs of (tokens, kinds) by split; the parts are of different modules, so a name of one is new to the other."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    modules = [name for name in MODULES if (folder / f"{name}.py").is_file()]
    random.Random(SEED).shuffle(modules)
    parts: dict[str, list[tuple[str, str]]] = {}
    for part, share in SHARES.items():
        size = max(1, round(len(MODULES) * share))
        parts[part], modules = _read_lines(folder, modules[:size]), modules[size:]
    return {"train": _read_lines(folder, modules)} | parts


def _read_lines(folder: Path, modules: list[str]) -> list[tuple[str, str]]:
    pairs: dict[tuple[str, str], None] = {}  # in order, each once
    for module in modules:
        source = (folder / f"{module}.py").read_text(encoding="utf-8")
        words: list[str] = []
        kinds: list[str] = []
        before = ""
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            kind = _name_kind(token, before)
            text = "".join(token.string.split())  # a string may hold anything, a token of ours no blank
            if kind and text and len(text) <= 60:
                words.append(text)
                kinds.append(kind)
                before = token.string
            if token.type == tokenize.NEWLINE:
                if 2 <= len(words) <= LONGEST:
                    pairs["\t".join(words), "\t".join(kinds)] = None
                words, kinds, before = [], [], ""
    return list(pairs)


def _name_kind(token: tokenize.TokenInfo, before: str) -> str:
    """What a token is, in a person's words; nothing for what leaves no mark."""
    if token.type != tokenize.NAME:
        return KINDS.get(token.type, "")
    if keyword.iskeyword(token.string):
        return "KEYWORD"
    if before in ("def", "class"):
        return "DEFINITION"
    return "ATTRIBUTE" if before == "." else "NAME"
