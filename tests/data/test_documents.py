"""Files to documents, and one long text to parts."""

import gzip

import pytest

from seqloom.config.recipe import Recipe
from seqloom.data.documents import is_text, read_documents
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.prepare import prepare
from seqloom.errors import DataError
from seqloom.tasks import declare

TEXT = "One line.\nAnother.\n\n  A paragraph.\n\n\nThe last one,\nof two lines."


def read(path, *settings):
    recipe = Recipe.read("language", f"data.train={path}", *settings)
    return [text for (text,) in read_documents([str(path)], recipe.data, SkippedRows())]


def written(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_a_text_file_is_one_document_or_its_paragraphs_or_its_lines(name, tmp_path):
    path = written(tmp_path, name, TEXT)
    assert read(path) == [TEXT]
    assert read(path, "data.documents=paragraphs") == [
        "One line.\nAnother.",
        "A paragraph.",
        "The last one,\nof two lines.",
    ]
    assert read(path, "data.documents=lines") == [
        "One line.",
        "Another.",
        "A paragraph.",
        "The last one,",
        "of two lines.",
    ]


def test_tunes_entries_and_columns_are_documents(tmp_path):
    abc = written(tmp_path, "a.abc", "X:1\nT:One\nK:D\nabc|\n\nX:2\nK:G\nGAB|\ncd|\n")
    assert read(abc) == ["X:1\nT:One\nK:D\nabc|", "X:2\nK:G\nGAB|\ncd|"]
    assert read(written(tmp_path, "a.fasta", ">a\nMKV\nLL\n>b\nAA\n")) == ["MKVLL", "AA"]
    assert read(written(tmp_path, "a.jsonl", '{"text": "one"}\n{"text": "two"}\n'), "data.target=text") == [
        "one",
        "two",
    ]
    assert read(written(tmp_path, "a.csv", "n,text\n1,one\n"), "data.target=text") == ["one"]


def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good\n\xff\n")
    with pytest.raises(DataError, match=r"bad.txt, line 2: byte 0xff is not utf-8"):
        read(path)
    assert read(path, "data.on_bad_row=skip") == ["good"]
    with pytest.raises(DataError, match="the ending .odt says nothing about the format; set data.format to one of txt"):
        read(written(tmp_path, "a.odt", "text"))
    with pytest.raises(DataError, match="empty"):
        read(written(tmp_path, "b.txt", " \n\n"))


def parts(folder, text, *settings):
    path = written(folder, "long.txt", text)
    recipe = Recipe.read("language", f"data.train={path}", *settings)
    prepared = prepare(declare(recipe).schema, folder / "cache")
    return {part: "".join(text for (text,) in split.examples()) for part, split in prepared.splits.items()}, prepared


def test_one_text_is_cut_in_its_order(tmp_path):
    text = "".join(chr(0x100 + number) for number in range(1000))  # of two bytes each
    found, prepared = parts(tmp_path, text)
    assert found["train"] + found["validation"] + found["test"] == text
    assert [len(part) for part in found.values()] == [800, 100, 100]
    assert prepared.fields["target"].unknown in prepared.splits["test"].ids["target"][0]  # learned from training alone


def test_words_are_not_cut(tmp_path):
    lines = [f"line {number} of the text" for number in range(200)]
    found, _ = parts(tmp_path, "\n".join(lines), "data.target_tokenizer=words", "data.line_breaks=true")
    assert [line for part in found.values() for line in part.strip().split("\n")] == lines


def test_documents_are_drawn_but_a_text_is_not(tmp_path):
    assert is_text(Recipe.read("language").data)
    assert is_text(Recipe.read("language", "data.train=a.txt.gz").data)
    for other in ("data.documents=lines", "data.train=a.abc", "data.train=a.csv", "data.format=jsonl data.train=x"):
        assert not is_text(Recipe.read("language", *other.split()).data)


def test_a_part_that_gets_nothing_is_said(tmp_path):
    with pytest.raises(DataError, match="the text is too short to cut a part for"):
        parts(tmp_path, "abc")
