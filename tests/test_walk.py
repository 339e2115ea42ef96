"""The walk of one line from its file to a picture, as docs/architecture.md tells it: those functions are called."""

import re
import sys
import threading
from pathlib import Path

import pytest

from seqloom.cli import main as command_line

ROOT = Path(__file__).resolve().parent.parent
HOP = re.compile(r"\| \d+ \| `([\w/]+\.py):([\w.]+)` \|")
MOST = {"Training": 20, "Predicting": 10, "Looking": 10}


def walks() -> dict[str, list[tuple[str, str]]]:
    """The hops of each walk: the file and the name of a function."""
    _, *sections = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").split("\n### ")
    return {section.split(":")[0]: HOP.findall(section) for section in sections}


def called_while(*words: object) -> set[tuple[str, str]]:
    """The functions of the package that a command calls, in any thread."""
    found: set[tuple[str, str]] = set()
    package = str(ROOT / "seqloom") + "/"

    def note(frame, event, _) -> None:
        if frame.f_code.co_filename.startswith(package):
            found.add((frame.f_code.co_filename.removeprefix(package), frame.f_code.co_qualname))

    before = sys.gettrace()
    threading.settrace(note)  # examples are read in a thread of their own
    sys.settrace(note)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["seqloom", *map(str, words)])
            command_line.main()
    except SystemExit as done:
        assert not done.code
    finally:
        sys.settrace(before)
        threading.settrace(before)
    return found


def test_the_walk_of_a_line_is_as_told_and_short(tmp_path):
    table, run = tmp_path / "x.csv", tmp_path / "run"
    rows = [f"{mood} film {number},{mood}\n" for number in range(20) for mood in ("fine", "awful")]
    table.write_text("text,label\n" + "".join(rows))
    data = (f"data.train={table}", "data.source=text", "data.target=label", "model.kind=gru")
    called = {
        "Training": called_while("train", "classify", *data, "model.size=8", "train.steps=2", "--into", run),
        "Predicting": called_while("predict", run, "fine film"),
        "Looking": called_while("look", run, "fine film", "--view", "gates", "--out", tmp_path / "gates.json"),
    }
    told = walks()
    assert told.keys() == called.keys()
    for name, hops in told.items():
        assert 5 < len(hops) <= MOST[name] and set(hops) <= called[name]
