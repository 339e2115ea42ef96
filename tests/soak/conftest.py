"""The ledger of the long tests: what has passed with this very code need not be done again, so they go on in parts.

One line of JSON a case that passed, with the sum of the code it passed with, in .soak/ledger.jsonl or where
SEQLOOM_LEDGER says. Remove the file to begin anew.
"""

import hashlib
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def ledger() -> Path:
    return Path(os.environ.get("SEQLOOM_LEDGER") or ROOT / ".soak" / "ledger.jsonl")


@cache
def code() -> str:
    """A sum over the package and these tests."""
    files = sorted([*(ROOT / "seqloom").rglob("*.py"), *Path(__file__).parent.rglob("*.py")])
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]


def passed() -> set[str]:
    if not ledger().exists():
        return set()
    lines = map(json.loads, ledger().read_text("utf-8").splitlines())
    return {line["case"] for line in lines if line["code"] == code()}


def pytest_collection_modifyitems(items):
    before = passed()
    for item in items:
        if "tests/soak/" in item.nodeid and item.nodeid in before:
            item.add_marker(pytest.mark.skip(reason="passed before with this very code, says the ledger"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if "tests/soak/" in item.nodeid and report.when == "call" and report.passed:
        ledger().parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"case": item.nodeid, "code": code(), "seconds": round(report.duration, 2)})
        with ledger().open("a", encoding="utf-8") as file:  # one short write: two workers do not mix their lines
            file.write(f"{line}\n")
    return report


def pytest_terminal_summary(terminalreporter):
    if counts := Counter(case.split("::")[1].split("[")[0] for case in passed()):
        terminalreporter.section("ledger of the long tests, with this very code")
        for name, count in sorted(counts.items()):
            terminalreporter.line(f"{count:5}  {name}")
