"""Music as frames: files, places, and lines of text."""

import gzip
import json

import numpy as np
import pytest

from seqloom.config.recipe import Recipe
from seqloom.data.frames import KEYS, LOWEST, FramePlaces, read_pieces
from seqloom.data.prepare import prepare
from seqloom.data.ragged import Ragged
from seqloom.errors import DataError
from seqloom.fields.frames import Frames, format_frame, parse_frames
from seqloom.tasks import declare

PIECES = {"train": [[[60, 64], []], [[21], [108], [60]]], "valid": [[[61]]], "test": [[[62]], [[63], [64]]]}


def saved(folder, content, name="pieces.json"):
    path = folder / name
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_file_holds_pieces_by_part(name, tmp_path):
    found = read_pieces(str(saved(tmp_path, PIECES, name)), "utf-8")
    sounding = {
        part: [[(LOWEST + np.flatnonzero(frame)).tolist() for frame in piece] for piece in pieces]
        for part, pieces in found.items()
    }
    assert sounding == {
        "train": [[[60, 64], []], [[21], [108], [60]]],
        "validation": [[[61]]],
        "test": [[[62]], [[63], [64]]],
    }


def test_the_parts_of_one_file_or_of_several_are_prepared(tmp_path):
    def sizes(*settings):
        schema = declare(Recipe.read("chorales", *settings)).schema
        return {part: len(split) for part, split in prepare(schema, tmp_path / "cache").splits.items()}

    whole = saved(tmp_path, PIECES)
    assert sizes(f"data.train={whole}") == {"train": 2, "validation": 1, "test": 2}
    only = saved(tmp_path, {"train": PIECES["test"] * 10}, "only.json")
    assert sizes(f"data.train={only}") == {"train": 16, "validation": 2, "test": 2}
    assert sizes(f"data.train={only}", f"data.test={whole}") == {"train": 18, "validation": 2, "test": 2}
    with pytest.raises(DataError, match="only.json: the file has no test; there are train"):
        sizes(f"data.train={whole}", f"data.test={only}")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[1, 2", "bad.json, line 1: the file is not JSON"),
        ({"train": []}, "bad.json: the file has no pieces"),
        ({"other": [[[60]]]}, "bad.json: 'other' is none of train, valid, validation, test"),
        (
            {"train": [[[60]], [[60], [61, 7]]]},
            "train, piece 2, step 2: the pitch 7 is not between 21 and 108",
        ),
    ],
)
def test_what_is_no_music_is_said(content, sentence, tmp_path):
    with pytest.raises(DataError, match=sentence):
        read_pieces(str(saved(tmp_path, content, "bad.json")), "utf-8")


def test_each_frame_is_told_from_the_one_before_and_the_first_from_one_of_all_keys():
    chance = np.random.default_rng(0)
    pieces = [(chance.random((length, KEYS)) < 0.1).astype(np.uint8) for length in (3, 1, 4)]
    places = FramePlaces(Ragged.stack(pieces))
    everywhere = np.arange(len(places))
    assert (places.targets(everywhere) == np.concatenate(pieces)).all()
    start = np.ones((1, KEYS))
    assert (places.inputs(everywhere) == np.concatenate([p for piece in pieces for p in (start, piece[:-1])])).all()


def test_frames_are_lines_of_pitches_and_back():
    text = "60 64 67\n-\n21 108\n"
    assert "".join(f"{format_frame(frame)}\n" for frame in parse_frames(text)) == text
    assert parse_frames("").shape == (0, KEYS)
    for wrong in ("60 C", "60\n200"):
        with pytest.raises(DataError):
            parse_frames(wrong)


def test_the_field_keeps_what_it_is_given():
    field = Frames.from_json(Frames().to_json())
    frames = parse_frames("60\n61")
    assert (field.encode_many([frames])[0] == frames).all() and len(field) == KEYS
