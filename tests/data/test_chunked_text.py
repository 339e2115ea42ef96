"""One long text in pieces: what is prepared of it is the same as if it had been read at once."""

import numpy as np
import pytest

from seqloom.config.task_data import LanguageData
from seqloom.data import chunked_text as onward
from seqloom.data import documents, sides
from seqloom.data import preprocess as building
from seqloom.data.chunked_text import TextContinuation, join_continuations, split_into_pieces
from seqloom.data.documents import Documents, read_documents, read_whole
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.prepare import prepare
from seqloom.data.ragged import Texts
from seqloom.data.schema import Schema
from seqloom.fields import text_side

LINES = ["  The cat sat.", "", "on  the\tmat; grüße", "\u3000日本語 の 文", "a", "", "", "the end ", "of it all"] * 40
TEXT = "\n".join(LINES)


def schema(folder, kind: str, **more) -> Schema:
    file = folder / "text.txt"
    file.write_text(TEXT, encoding="utf-8")
    data = LanguageData(
        train=(str(file),), target_tokenizer=kind, vocabulary_size=600 if kind in ("bpe", "wordpiece") else 0, **more
    )
    side = text_side((data.target,), kind)
    return Schema("language", data, {"target": side}, dataset=Documents, ordered=True, limited=False)


def small_pieces(monkeypatch, size: int = 100) -> None:
    monkeypatch.setattr(documents, "PIECE", size)
    monkeypatch.setattr(building, "split_into_pieces", lambda texts, rows: split_into_pieces(texts, rows, size))
    monkeypatch.setattr(onward, "LINE_SEARCH", 7)
    monkeypatch.setattr(sides, "HASHED", 64)


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("kind", ["characters", "words", "spaced", "bpe", "wordpiece", "unigram"])
def test_a_text_in_pieces_is_prepared_as_if_it_were_read_at_once(kind, breaks, tmp_path, monkeypatch):
    given = schema(tmp_path, kind, line_breaks=breaks)
    at_once = prepare(given, tmp_path / "one")
    small_pieces(monkeypatch)
    pieces = prepare(given, tmp_path / "other")
    assert pieces.fields["target"].to_json() == at_once.fields["target"].to_json()
    assert pieces.report.model_dump() == at_once.report.model_dump()
    for part in ("train", "validation", "test"):
        for ours, theirs in zip(pieces.splits[part].ids["target"], at_once.splits[part].ids["target"], strict=True):
            assert ours.tolist() == theirs.tolist()
        assert pieces.splits[part].examples() == at_once.splits[part].examples()


@pytest.mark.parametrize("size", [1, 50, 10**6])
def test_pieces_of_a_file_begin_with_the_break_before_them_and_are_one_again(size, tmp_path, monkeypatch):
    given = schema(tmp_path, "characters").data
    monkeypatch.setattr(documents, "PIECE", size)
    found = [text for (text,) in read_documents(given.train, given, SkippedRows())]
    assert "".join(found) == TEXT and [*read_whole(given.train, given, SkippedRows())] == [TEXT]
    assert all(isinstance(text, TextContinuation) == (number > 0) for number, text in enumerate(found))
    assert len(found) == (1 if size > len(TEXT) else len(found)) and (size > len(TEXT) or len(found) > 5)


def test_a_long_text_is_told_apart_as_a_short_one_is(monkeypatch):
    texts = Texts.of(["abcdefgh", "abcdefgx", "abcdefgh"])
    short = sides.compute_digests({"target": texts}, np.arange(3), ["target"]).tolist()
    monkeypatch.setattr(sides, "HASHED", 3)
    assert [sides.digest_long(texts, row) for row in range(3)] == short and len(set(short)) == 2


def test_what_goes_on_is_joined_and_what_does_not_is_apart():
    assert list(
        join_continuations(["a", TextContinuation("\nb"), "c", "d", TextContinuation("\ne"), TextContinuation("\nf")])
    ) == ["a\nb", "c", "d\ne\nf"]
    assert list(join_continuations([])) == []


def test_rows_are_cut_before_breaks_and_nothing_is_lost():
    texts = Texts.of(["skipped", "aa\nbb\ncc", "no break at all", "\n\n"])
    cut, starts = split_into_pieces(texts, np.array([1, 2, 3]), size=2)
    assert list(cut) == ["aa", "\nbb", "\ncc", "no break at all", "\n\n"]
    assert starts.tolist() == [True, False, False, True, True]
    nothing, none = split_into_pieces(texts, np.array([], dtype=np.int64))
    assert len(nothing) == len(none) == 0
