"""What every test stands on: one thread, fixed random searches, a cache of its own, and where real data lies."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from _pytest.runner import runtestprotocol
from hypothesis import settings

from seqloom.cli.main import main
from seqloom.layers.fast.native import library

ROOT = Path(__file__).resolve().parent.parent
# Begun first, or one worker is left with them at the end: pages and lessons train, others compile, draw everything,
# or start many processes.
LONGEST = (
    "test_readme.py",
    "test_course.py",
    "look/test_views.py",
    "look/test_inputs.py",
    "look/test_browser.py",
    "system/test_processes.py",
    "serve/test_page.py",
    "test_wheel.py",
    "test_native_library.py",
)

# Two workers share two cores, and a sum in one thread is the same sum every time.
torch.set_num_threads(1)
if not torch.accelerator.is_available():  # looking for other devices would take a millisecond each time
    torch.manual_seed = torch.default_generator.manual_seed

# `make test` tries the same few cases every time; `make soak` looks for new ones.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("quick")


def pytest_runtest_setup() -> None:
    """Every test draws the same numbers, whichever tests ran before it: torch begins with a seed from the clock."""
    torch.manual_seed(0)


# Every test of these that asks whether there are native kernels, and is told yes, runs once more as if there were none.
BOTH_WAYS = [ROOT / "tests" / name for name in ("laws", "search")]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """A test that is never told that there are native kernels is the same without them: once is enough."""
    chosen = library.VARIABLE in os.environ  # by whoever started the tests
    if chosen or needs_native(item) or not any(item.path.is_relative_to(folder) for folder in BOTH_WAYS):
        return None
    kept = [name for name, found in item._fixtureinfo.name2fixturedefs.items() if found[-1].scope == "module"]
    assert not kept, f"{item.nodeid}: {kept} would be made with native kernels, and not anew without them"
    ask, answers = library.is_enabled, set()

    def listen() -> bool:
        answers.add(answer := ask())
        return answer

    place = {"nodeid": item.nodeid, "location": item.location}
    item.ihook.pytest_runtest_logstart(**place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "is_enabled", listen)
        runtestprotocol(item, nextitem=nextitem)
    if True in answers:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(library.VARIABLE, "0")  # for the processes that it starts
            patch.setattr(library, "_status", replace(library.status(), library=None, reason="the second time"))
            item.add_report_section("setup", "kernels", "This was the second time, without native kernels.")
            runtestprotocol(item, nextitem=nextitem)
    item.ihook.pytest_runtest_logfinish(**place)
    return True


def pytest_configure(config: pytest.Config) -> None:
    """The native kernels are built once, into the user's cache, before there are workers that would each build them."""
    if not hasattr(config, "workerinput"):
        library.status()


def pytest_collection_finish() -> None:
    """What is there by now stays: no search for garbage has to go through it again."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Prepared data goes to a temporary folder: tests take nothing but native kernels from the user's cache."""
    folder, kernels = tmp_path_factory.mktemp("cache"), library.cache_folder()
    library.status()
    if kernels.is_dir():
        shutil.copytree(kernels, folder / "native")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEQLOOM_CACHE", str(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_disk() -> Iterator[None]:
    """Tests wait for no disk: what syncing promises is tested by its order, not by its slowness."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which, like it, fails for what is not open
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_measures() -> Iterator[None]:
    """Whoever draws all views measures the cost of every kind: here of short sequences, which take as many steps. What
    has learned tunes is scored by a few of its own."""
    from seqloom.look import measuring
    from seqloom.tasks import music

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring.measure_costs, "__defaults__", ((4, 8),))
        patch.setattr(music, "WRITTEN", 10)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real benchmark sets, which are not part of this project."""
    folder = Path(os.environ.get("SEQLOOM_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not there (set SEQLOOM_DATA to the folder that holds it)")
    return folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest come first. Where native kernels are turned off, tests of them are not chosen: nothing is missing
    that could be there."""
    first = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))
    if os.environ.get(library.VARIABLE) == "0":
        off = [item for item in items if needs_native(item)]
        items[:] = [item for item in items if item not in off]
        config.hook.pytest_deselected(items=off)


def needs_native(item: pytest.Item) -> bool:
    chosen = getattr(item, "callspec", None)
    return "native" in getattr(item, "fixturenames", ()) or (
        chosen is not None and chosen.params.get("kernels") == "native"
    )


@pytest.fixture
def native() -> None:
    """With native kernels, which must be there wherever there is a compiler."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    assert library.status().library is not None, library.status().reason


@pytest.fixture(scope="session")
def quick_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A C compiler in a hurry: nine tenths of its time would be for speed that nobody measures here."""
    script = tmp_path_factory.mktemp("compiler") / "quick-cc"
    script.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
    script.chmod(0o755)
    return script


@pytest.fixture(params=["native", "plain"])
def kernels(request: pytest.FixtureRequest) -> Iterator[str]:
    """Once with native kernels, once without."""
    if request.param == "native":
        request.getfixturevalue("native")
    with library.use_native(request.param == "native"):
        yield request.param


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path):
    """What a command prints, on both streams, and its exit code."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return captured.out, captured.err, int(stopped.value.code or 0)

    return run
