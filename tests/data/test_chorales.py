"""Polyphonic pieces in JSON: keys that sound, and what is no such file."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.formats.chorales import read_chorales
from seqloom.errors import DataError


def write(folder, content) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "c.json.gz").write_bytes(gzip.compress(raw))
    return str(folder / "c.json.gz")


@given(st.lists(st.lists(st.integers(30, 40), max_size=4), min_size=1, max_size=8))
def test_keys_are_the_pitches_of_each_step(tmp_path_factory, steps):
    file = write(tmp_path_factory.mktemp("c"), {"train": [steps], "test": [[[30]], steps]})
    pieces = list(read_chorales(file, 30, 40))
    assert [(piece.split, piece.number) for piece in pieces] == [("train", 1), ("test", 1), ("test", 2)]
    assert pieces[0].keys.shape == (len(steps), 11)
    for step, keys in zip(steps, pieces[0].keys, strict=True):
        assert set(np.flatnonzero(keys) + 30) == set(step)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "not JSON"),
        (b'{"train": [', "line 1: the file is not JSON"),
        (b"[" * 100_000, "too deep"),
        (b'{"train": [[[' + b"9" * 5000 + b"]]]}", "too long to be a pitch"),
        ([], "an object of splits"),
        ({"train": 3}, "'train' is not a list of pieces"),
        ({"train": [[]]}, "train, piece 1: a list of time steps"),
        ({"train": [[[60], [True]]]}, "train, piece 1, step 2: a list of MIDI pitches"),
        ({"train": [[[60.5]]]}, "a list of MIDI pitches"),
        ({"train": [[[60]], [[60], [999]]]}, "train, piece 2, step 2: the pitch 999"),
    ],
)
def test_refusals(tmp_path, content, part):
    with pytest.raises(DataError) as caught:
        list(read_chorales(write(tmp_path, content)))
    assert part in str(caught.value)


def test_a_low_pitch_is_refused(tmp_path):
    with pytest.raises(DataError, match="the pitch -1 is not between 21 and 108"):
        list(read_chorales(write(tmp_path, {"a": [[[-1]]]})))


@given(st.binary(max_size=60) | st.text('{}[]"a:,1-', max_size=40).map(str.encode))
def test_any_bytes_are_pieces_or_a_sentence(tmp_path_factory, raw):
    folder = tmp_path_factory.mktemp("c")
    (folder / "c.json").write_bytes(raw)
    try:
        list(read_chorales(str(folder / "c.json")))
    except DataError as error:
        assert str(error).startswith(str(folder))


def test_the_real_chorales(shared_data):
    folder = shared_data / "jsb_chorales"
    pieces = list(read_chorales(str(folder / "jsb-chorales-quarter.json.gz")))
    steps = {split: sum(len(piece.keys) for piece in pieces if piece.split == split) for split in ("train", "valid")}
    assert len(pieces) == 382 and steps == {"train": 13807, "valid": 4602}
