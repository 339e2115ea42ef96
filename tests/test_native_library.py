"""The library of native kernels is built once, found again, never in the way, and not a way in."""

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from seqloom.layers.fast import native_steps
from seqloom.layers.fast.native import build, library

SAY = "import torch; from seqloom.layers.fast.native import library as l; print(l.status().library is not None)"


@pytest.fixture
def own_cache(tmp_path, monkeypatch, native, quick_compiler):
    """An empty folder for the library, and a compiler that writes a line whenever it is called."""
    script = tmp_path / "counted-cc"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {quick_compiler} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "native"


@pytest.fixture
def count_calls(tmp_path):
    return lambda: len((tmp_path / "calls").read_text().splitlines())


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("CC", "no-such-compiler", "no C compiler 'no-such-compiler' was found"),
        ("CC", "false", "the C compiler failed"),
        ("SEQLOOM_NATIVE", "0", "SEQLOOM_NATIVE=0"),
        ("SEQLOOM_CACHE", "/proc/nowhere", "cannot hold the library"),
    ],
)
def test_where_there_can_be_no_library_the_reason_is_known(variable, value, reason, own_cache, monkeypatch):
    monkeypatch.setenv(variable, value)
    found = library.find_library()
    assert found.library is None and reason in found.reason and "plain kernels" in str(found)


def test_a_library_that_does_not_load_is_no_obstacle(own_cache, monkeypatch):
    monkeypatch.setattr(build, "build", lambda target, wanted: target.write_bytes(b"not a library"))
    assert "cannot be loaded" in library.find_library().reason


def test_a_library_for_another_processor_is_not_used(own_cache, monkeypatch):
    real = build.build
    monkeypatch.setattr(build, "build", lambda target, wanted: real(target, ["baseline"]))
    monkeypatch.setattr(build, "choose_level", lambda at_most="": "avx2")
    assert library.find_library().reason == "the library has no kernels for avx2"


def test_it_is_built_once_and_again_only_when_something_has_changed(own_cache, count_calls, monkeypatch):
    assert library.find_library().library is not None
    first = count_calls()
    assert first and library.find_library().library is not None
    assert count_calls() == first
    [made] = own_cache.iterdir()
    assert stat.S_IMODE(own_cache.stat().st_mode) == 0o700 and not made.stat().st_mode & 0o022
    monkeypatch.setattr(build, "source_key", lambda: "other")
    assert library.find_library().library is not None
    assert count_calls() == 2 * first


def test_a_damaged_library_is_built_anew(own_cache, count_calls):
    library.find_library()
    [made], first = own_cache.iterdir(), count_calls()
    whole = made.read_bytes()
    made.unlink()  # this process has it mapped
    made.write_bytes(whole[:-1] + b"?")
    assert library.find_library().library is not None
    assert count_calls() == 2 * first and made.read_bytes() == whole


def test_a_library_that_others_can_write_is_not_loaded(own_cache, count_calls):
    library.find_library()
    [made], first = own_cache.iterdir(), count_calls()
    made.chmod(0o666)
    assert library.find_library().library is not None
    assert count_calls() == 2 * first and not made.stat().st_mode & 0o022


def test_a_folder_that_others_can_write_into_is_refused(own_cache):
    own_cache.mkdir(parents=True)
    own_cache.chmod(0o777)
    assert library.find_library().reason == f"{own_cache} can be written into by others"


def test_a_folder_of_somebody_else_is_refused(own_cache, monkeypatch):
    own_cache.mkdir(parents=True)
    someone = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: someone)
    assert library.find_library().reason == f"{own_cache} is not a folder of this user"


def test_a_folder_that_is_a_link_is_refused(own_cache, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    own_cache.parent.mkdir()
    own_cache.symlink_to(tmp_path / "elsewhere")
    assert library.find_library().reason == f"{own_cache} is not a folder of this user"


def test_two_processes_at_once_end_with_one_library(own_cache):
    both = [subprocess.Popen([sys.executable, "-c", SAY], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0].strip() for process in both] == ["True", "True"]
    assert [path.suffix for path in own_cache.iterdir()] == [".so"]


def test_threads_find_the_same_library(own_cache, count_calls, monkeypatch):
    monkeypatch.setattr(library, "_status", None)
    together = threading.Barrier(4)

    def ask(_):
        together.wait()
        return library.status()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len({id(one) for one in found}) == 1 and found[0].library is not None


OTHERS = [level for level in build.levels() if build.choose_level(level) == level != build.choose_level()]


@pytest.mark.parametrize("level", OTHERS)
def test_every_level_that_this_processor_has_obeys_the_laws(level, own_cache, monkeypatch):
    monkeypatch.delenv("CC")
    laws = [str(Path(__file__).parent / "laws" / name) for name in ("test_native.py", "test_steps.py")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-k",
        "right-37 or 65-14 or gelu or leading or bytes",
        *laws,
    ]
    done = subprocess.run(command, env=os.environ | {"SEQLOOM_NATIVE": level}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_law_that_asks_for_kernels_is_tried_without_them_as_well_and_any_other_once(native):
    laws, asks = Path(__file__).parent / "laws" / "test_layers.py", "test_reading_both_ways_agrees_with_pytorch[gru]"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"{laws}::{asks}", f"{laws}::test_positions_do_not_end"]
    surroundings = {name: value for name, value in os.environ.items() if name != library.VARIABLE}
    for found, kernels in (("3 passed", {}), ("2 passed", {library.VARIABLE: "0"})):
        done = subprocess.run(command, env=surroundings | kernels, capture_output=True, text=True)
        assert found in done.stdout, done.stdout


FORK = """
import os, torch
from seqloom.layers.fast import native_steps
torch.set_num_threads(2)
weight, x = torch.randn(700, 300), torch.randn(9, 300)
change = native_steps.product(weight, None)
expected = change(x)
child = os.fork()
if not child:
    os._exit(0 if torch.equal(change(x), expected) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_computes_the_same(native):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], env=environment, timeout=60).returncode == 0


# --- odd sizes, and many threads ---


@pytest.mark.parametrize("rows", [0, 1, 7, 33])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (7, 33), (33, 7), (64, 128)])
def test_products_of_odd_sizes_and_strides(rows, inputs, outputs, native):
    weight = torch.randn(inputs, outputs).T  # not contiguous
    for x in (torch.randn(rows, inputs), torch.randn(inputs, rows).T, torch.randn(2 * rows, inputs)[::2]):
        torch.testing.assert_close(native_steps.product(weight, None)(x), F.linear(x, weight))


def test_what_does_not_fit_is_refused_before_anything_is_read(native):
    change = native_steps.product(torch.randn(5, 4), None)
    for x in (torch.randn(2, 3), torch.randn(2, 5), torch.randn(4), torch.randn(2, 4).double()):
        with pytest.raises(ValueError, match="expected"):
            change(x)
    with pytest.raises(ValueError, match="likeliest"):
        native_steps.find_largest(torch.randn(2, 3), 4)


@pytest.mark.parametrize("size", [1, 7, 33])
def test_many_threads_compute_as_one(size, native):
    weights = [torch.randn(size, 3 * size) for _ in range(8)]
    x = torch.randn(5, 3 * size)
    changes = [native_steps.product(weight, None) for weight in weights]
    expected = [change(x) for change in changes]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: changes[number % 8](x), range(200)))
    assert all(torch.equal(one, expected[number % 8]) for number, one in enumerate(found))
