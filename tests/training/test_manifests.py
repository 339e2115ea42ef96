"""Damage is seen, and replacing a file never makes a folder look damaged."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from seqloom.errors import RunError
from seqloom.training.files import json_bytes, sha256
from seqloom.training.manifests import (
    MANIFEST,
    check_manifest,
    compute_sums,
    manifest_bytes,
    read_manifest,
    replace_file,
    write_manifest,
)

from .faults import Killed, at_every_call


def folder_of(folder: Path, **files: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name in os.listdir(folder):
        (folder / name).unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_manifest(folder, compute_sums(files))
    return folder


def test_a_whole_folder_checks_and_both_ways_of_making_a_manifest_agree(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, one=b"1", two=b"")
    check_manifest(folder, needed=["one", "two"])
    assert (folder / MANIFEST).read_bytes() == manifest_bytes(compute_sums({"two": b"", "one": b"1"}))


def test_a_file_that_nobody_vouches_for_does_not_matter_unless_it_is_needed(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, one=b"1")
    (folder / "other").touch()
    check_manifest(folder)
    with pytest.raises(RunError, match="does not list other"):
        check_manifest(folder, needed=["other"])


@pytest.mark.parametrize("content", [b"", b"11", b"2", None])
def test_a_changed_cut_or_missing_file_is_named(tmp_path: Path, content: bytes | None) -> None:
    folder = folder_of(tmp_path, one=b"1", two=b"2")
    (folder / "one").unlink()
    if content is not None:
        (folder / "one").write_bytes(content)
    with pytest.raises(RunError, match="one: is missing" if content is None else "one: is damaged"):
        check_manifest(folder)


SUM = "0" * 64


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"files": []},
        {"files": {}, "more": 1},
        {"files": {"../outside": [SUM]}},
        {"files": {"/etc/passwd": [SUM]}},
        {"files": {".hidden": [SUM]}},
        {"files": {"a\n": [SUM]}},
        {"files": {"a": []}},
        {"files": {"a": SUM}},
        {"files": {"a": [SUM[1:]]}},
        {"files": {"a": [SUM + "\n"]}},
        {"files": {"a": [0]}},
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path: Path, content: object) -> None:
    (tmp_path / MANIFEST).write_bytes(json_bytes(content))
    with pytest.raises(RunError, match=MANIFEST):
        read_manifest(tmp_path)


def test_no_manifest_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="manifest.json: cannot be read"):
        check_manifest(tmp_path)


@pytest.mark.parametrize("name", ["model", "scores"])
@pytest.mark.parametrize("killed_before", [False, True])
def test_a_kill_at_any_moment_of_replacing_or_adding_leaves_a_folder_that_checks(
    tmp_path: Path, name: str, killed_before: bool
) -> None:
    folder = tmp_path / "run"

    def prepare() -> Callable[[], None]:
        folder_of(folder, model=b"old", other=b"o")
        if killed_before:  # after the file was put there, before the manifest knew only it
            write_manifest(folder, compute_sums({"model": b"old", "other": b"o"}))
            rounds = at_every_call(lambda: lambda: replace_file(folder, name, b"between"), Killed())
            while not (folder / name).exists() or (folder / name).read_bytes() != b"between":
                assert isinstance(next(rounds), Killed)
        return lambda: replace_file(folder, name, b"new")

    seen = set()
    for came in at_every_call(prepare, Killed()):
        check_manifest(folder, needed=["model", "other"])
        found = (folder / name).read_bytes() if (folder / name).exists() else None
        seen.add(found)
        if came is None:
            assert read_manifest(folder)[name] == [sha256(folder / name)] and found == b"new"
    assert seen == {b"between" if killed_before else b"old" if name == "model" else None, b"new"}


def test_replacing_vouches_for_nothing_that_never_was(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, model=b"old")
    replace_file(folder, "model", b"new")
    (folder / "model").write_bytes(b"old")
    with pytest.raises(RunError, match="damaged"):
        check_manifest(folder)


def test_the_first_file_of_a_folder_makes_its_manifest(tmp_path: Path) -> None:
    replace_file(tmp_path, "model", b"new")
    check_manifest(tmp_path, needed=["model"])
