"""Files are whole or not there; what is read is right or refused."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqloom.errors import RunError
from seqloom.training.files import (
    json_bytes,
    lock_folder,
    parse_json,
    read_bytes,
    read_json,
    sha256,
    sweep,
    write_atomically,
)

from .faults import Killed, at_every_call, events

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)


def test_what_is_written_is_read_and_the_old_content_gone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"", b"first", b"second, and longer", b"3"):
        write_atomically(path, content)
        assert read_bytes(path) == content
    assert os.listdir(tmp_path) == ["file"]


def writing(path: Path, before: bytes | None) -> Callable[[], Callable[[], None]]:
    def prepare() -> Callable[[], None]:
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        return lambda: write_atomically(path, b"new")

    return prepare


@pytest.mark.parametrize("before", [None, b"old"])
def test_a_kill_at_any_moment_leaves_the_old_content_or_the_new(tmp_path: Path, before: bytes | None) -> None:
    path = tmp_path / "file"
    outcomes = set()
    for came in at_every_call(writing(path, before), Killed()):
        found = path.read_bytes() if path.exists() else None
        assert found == b"new" if came is None else found in (before, b"new")
        outcomes.add(found)
        sweep(tmp_path)
        assert {entry.name for entry in tmp_path.iterdir()} <= {"file"}
    assert outcomes == {before, b"new"}


@pytest.mark.parametrize("lasting", [True, False])
def test_a_refusal_at_any_call_is_one_sentence_and_leaves_no_litter(tmp_path: Path, lasting: bool) -> None:
    path = tmp_path / "file"
    refusal = OSError(errno.ENOSPC, "No space left on device")
    for came in at_every_call(writing(path, b"old"), refusal, lasting):
        if came is not None:
            assert isinstance(came, RunError)
            assert "file" in str(came) and "No space left on device" in str(came) and "\n" not in str(came)
        assert path.read_bytes() in (b"old", b"new")
        if not lasting:
            assert os.listdir(tmp_path) == ["file"]


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_it_counts(tmp_path: Path) -> None:
    assert events(lambda: write_atomically(tmp_path / "file", b"new")) == [
        ("sync", ".file.partial"),
        ("rename", "file"),
        ("sync", tmp_path.name),
    ]


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / ".file.partial").symlink_to(victim)
    write_atomically(tmp_path / "file", b"new")
    assert victim.read_bytes() == b"precious" and (tmp_path / "file").read_bytes() == b"new"


def test_sweeping_takes_only_what_is_partial(tmp_path: Path) -> None:
    (tmp_path / ".step-3.partial" / "deep").mkdir(parents=True)
    (tmp_path / ".step-3.partial" / "deep" / "file").touch()
    for name in (".a.partial", "b.partial", ".lock", "model"):
        (tmp_path / name).touch()
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".lock", "b.partial", "model"]


@given(OBJECTS)
def test_json_comes_back_as_it_was(value: dict[str, object]) -> None:
    assert parse_json(json_bytes(value), "here") == value


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"a": 1, "a": 2}', "'a' stands there twice"),
        (b'{"b": {"a": 1, "a": 1}}', "'a' stands there twice"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        (b'{"a": "\\ud800"}', "is not UTF-8"),
        (b'{"a": "\\uD83D"}', "is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is not"),
        (b'\xef\xbb\xbf{"a": 1}', "is not valid JSON"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "an object was expected"),
        (b'{"a": 1', "is not valid JSON"),
        (b"", "is not valid JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "is not valid JSON"),
    ],
)
def test_json_that_is_not_plain_is_refused_in_one_sentence(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "some.json").write_bytes(content)
    with pytest.raises(RunError) as error:
        read_json(tmp_path / "some.json")
    assert "some.json" in str(error.value) and reason in str(error.value)
    assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_whole_surrogate_pairs_are_characters() -> None:
    assert parse_json(b'{"a": "\\ud83d\\ude00"}', "here") == {"a": "\N{GRINNING FACE}"}


@settings(max_examples=300)
@given(OBJECTS, st.data())
def test_mutated_json_is_an_object_or_refused(value: dict[str, object], data: st.DataObject) -> None:
    content = bytearray(json_bytes(value))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    try:
        assert isinstance(parse_json(bytes(content), "here"), dict)
    except RunError as error:
        assert str(error).startswith("here: ")


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "absent"):
        for read in (read_bytes, read_json, sha256):
            with pytest.raises(RunError, match="regular file|cannot be read"):
                read(path)


def test_the_sum_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")  # the example in FIPS 180-4
    assert sha256(tmp_path / "file") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


HOLD = """
import sys, time, pathlib
from seqloom.training.files import lock_folder
with lock_folder(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_held_by_one_process_until_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "held\n"
            with pytest.raises(RunError, match="another process"), lock_folder(tmp_path):
                pass
        finally:
            holder.send_signal(signal.SIGKILL)
    with lock_folder(tmp_path), pytest.raises(RunError, match="another process"), lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass


def test_a_folder_that_is_not_there_cannot_be_held(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"), lock_folder(tmp_path / "absent"):
        pass
