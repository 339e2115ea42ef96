"""Which files are read: patterns, several files, pairs, and folders whose folders are classes."""

from pathlib import Path

import numpy as np
import pytest

from seqloom import Recipe
from seqloom.data.datasets import Files
from seqloom.data.documents import Documents
from seqloom.data.files import digest_file, find_files
from seqloom.data.formats.tables import SkippedRows
from seqloom.errors import DataError
from seqloom.tasks import declare


def read(task: str, part: str = "train", *overrides: str) -> tuple[list, list[str]]:
    recipe = Recipe.read(task, *overrides)
    skipped = SkippedRows()
    origin = (Documents if task == "language" else Files)(declare(recipe).schema)
    return list(origin.read(part, skipped)), skipped.notes


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number in (2, 1, 10):
        (tmp_path / f"part-{number}.csv").write_text(f"text,label\nrow {number},{'ab'[number % 2]}\n")
    for label in ("pos", "neg", "unsup"):
        (tmp_path / "reviews" / label).mkdir(parents=True)
        for number in range(3):
            (tmp_path / "reviews" / label / f"{number}.txt").write_text(f"{label} {number}\nsecond line\n")
    (tmp_path / "reviews" / "urls.txt").write_text("http://nowhere\n")
    return tmp_path


def test_a_pattern_stands_for_all_its_files_in_order(folder):
    rows, _ = read("classify", "train", "data.train=part-*.csv", "data.source=text", "data.target=label")
    assert rows == [("row 1", "b"), ("row 10", "a"), ("row 2", "a")]
    with pytest.raises(DataError, match=r"part-x\*\.csv: no file has a name of this pattern"):
        read("classify", "train", "data.train=part-x*.csv", "data.source=text", "data.target=label")


def test_two_tables_are_read_one_after_the_other_and_two_texts_side_by_side(folder):
    rows, _ = read("classify", "train", "data.train=part-1.csv,part-2.csv", "data.source=text", "data.target=label")
    assert rows == [("row 1", "b"), ("row 2", "a")]
    (folder / "a.de").write_text("ein\nzwei\n")
    (folder / "a.en").write_text("one\ntwo\n")
    rows, _ = read("seq2seq", "train", "data.train=a.de,a.en")
    assert rows == [("ein", "one"), ("zwei", "two")]
    assert find_files(["a.de", "a.en"], "txt") == [("a.de",), ("a.en",)]


def test_texts_of_a_language_model_are_read_one_after_the_other(folder):
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("two\n")
    rows, _ = read("language", "train", "data.train=a.txt,b.txt")
    assert rows == [("one",), ("two",)]


def test_folders_are_classes(folder):
    rows, notes = read("classify", "train", "data.train=reviews")
    assert rows == [(f"{label} {number}\nsecond line", label) for label in ("neg", "pos") for number in range(3)]
    assert notes == [
        "reviews: unsup was not read, as it names no class",
        "reviews: not read, as beside the folders of classes: 1 file",
        "reviews: its folders are the classes (neg 3, pos 3)",
    ]


def test_folders_of_images_are_classes(folder):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for label, color in (("dark", 10), ("light", 200)):
        (folder / "photos" / label).mkdir(parents=True)
        Image.fromarray(np.full((20, 30, 3), color, np.uint8)).save(folder / "photos" / label / "a.png")
    how = ["data.train=photos", "data.source_type=image"]
    rows, notes = read("classify", "train", *how)
    assert [label for _, label in rows] == ["dark", "light"]
    scaled = "2 of 2 images were cut and scaled, for example from 30 × 20 to 64 × 64 pixels (data.image_size)"
    assert notes[-1] == f"photos: {scaled}"
    Image.fromarray(np.zeros((64, 64, 3), np.uint8)).save(folder / "photos" / "dark" / "b.png")
    assert read("classify", "train", *how)[1][-1].startswith("photos: 2 of 3 images were cut and scaled")
    assert [image.shape for image, _ in rows] == [(1, 64, 64, 3)] * 2 and int(rows[0][0].max()) == 10
    (folder / "photos" / "dark" / "b.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"b\.png: 'b\.png' cannot be read as an image"):
        read("classify", "train", *how)


def test_a_table_beside_which_images_are_learned_names_them(folder):
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for number in range(2):
        Image.fromarray(np.full((8, 8, 3), number, np.uint8)).save(folder / f"{number}.png")
    (folder / "captions.csv").write_text("image,caption\n0.png,all black\n1.png,hardly gray\n1.png,nearly black\n")
    how = ["data.train=captions.csv", "data.image_size=8"]
    rows, notes = read("caption", "train", *how)
    assert [(int(image.max()), caption) for image, caption in rows] == [
        (0, "all black"),
        (1, "hardly gray"),
        (1, "nearly black"),
    ]
    assert not notes  # they have the size already
    assert rows[2][1] == read("caption", "train", *how, "data.format=images")[0][2][1]
    before = Files(declare(Recipe.read("caption", *how)).schema).content()
    Image.fromarray(np.full((8, 8, 3), 9, np.uint8)).save(folder / "1.png")
    assert Files(declare(Recipe.read("caption", *how)).schema).content() != before  # though the table is the same


def test_a_folder_without_classes_is_refused(folder):
    with pytest.raises(DataError, match=r"at least two classes; there is none"):
        read("classify", "train", "data.train=reviews/pos")
    with pytest.raises(DataError, match="only classify reads those"):
        read("seq2seq", "train", "data.train=reviews")


def test_what_is_in_a_folder_changes_its_digest(folder):
    before = digest_file("reviews")
    assert digest_file("reviews") == before
    (folder / "reviews" / "pos" / "0.txt").rename(folder / "reviews" / "neg" / "9.txt")
    assert digest_file("reviews") != before
