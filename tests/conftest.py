"""What every test stands on: one thread, fixed random searches, a cache of its own, and where real data lies."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from seqloom.cli.main import main
from seqloom.layers.fast.native import library

ROOT = Path(__file__).resolve().parent.parent
# Begun first, or one worker is left with them at the end: pages and lessons train, and the others draw everything.
LONGEST = ("test_readme.py", "test_course.py", "look/test_views.py", "look/test_inputs.py", "look/test_browser.py")

# Two workers share two cores, and a sum in one thread is the same sum every time.
torch.set_num_threads(1)

# `make test` tries the same few cases every time; `make soak` looks for new ones.
settings.register_profile("quick", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("soak", max_examples=2000, deadline=None, print_blob=True)
settings.load_profile("quick")


def pytest_runtest_setup() -> None:
    """Every test draws the same numbers, whichever tests ran before it: torch begins with a seed from the clock."""
    torch.manual_seed(0)


def pytest_configure(config: pytest.Config) -> None:
    """The native kernels are built once, into the user's cache, before there are workers that would each build them."""
    if not hasattr(config, "workerinput"):
        library.status()


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
