"""Sequences with labels that are not tables of texts: .ts, IDX, CoNLL, FASTA."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.recipe import Recipe
from seqloom.data.formats.conll import ConllReading, Sentence, read_conll
from seqloom.data.formats.fasta import read_fasta
from seqloom.data.formats.idx import read_idx, read_labeled
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.formats.ts import read_ts
from seqloom.errors import DataError
from tests.preparing import prepare_task


def write(folder: Path, name: str, content: str | bytes) -> str:
    raw = content if isinstance(content, bytes) else content.encode()
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def refusal(read, *given) -> str:
    with pytest.raises(DataError) as caught:
        list(read(*given))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- .ts ---------------------------------------------------------------------------------------------------------

HEAD = (
    "# a comment\n@problemName P\n@timeStamps false\n@dimensions 2\n@equalLength false\n@classLabel true a b\n@data\n"
)


def test_cases_have_steps_by_dimensions_and_a_label(tmp_path):
    file = write(tmp_path, "p.ts.gz", HEAD + "1,2,3:4,5,6:a\n7:?:b\n")
    first, second = read_ts(file, SkippedRows())
    assert first.values.tolist() == [[1, 4], [2, 5], [3, 6]] and (first.label, first.line) == ("a", 8)
    np.testing.assert_array_equal(second.values, [[7, np.nan]])
    assert first.values.dtype == np.float32 and second.label == "b"


def test_one_dimension_without_labels(tmp_path):
    file = write(tmp_path, "p.ts", "@univariate true\n@classLabel false\n@data\n1.5,,-2e1\n")
    [case] = read_ts(file, SkippedRows())
    np.testing.assert_array_equal(case.values, [[1.5], [np.nan], [-20]])
    assert case.label == ""


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "no line @data"),
        (HEAD, "is empty"),
        ("1,2:a\n", "line 1: a header line beginning with @"),
        ("@timeStamps true\n@data\n", "line 1: series with time stamps"),
        ("@dimensions many\n@data\n", "line 1: a count was expected, not 'many'"),
        ("@equalLength\n@data\n", "line 1: true or false"),
        (HEAD + "1,2:a\n", "line 8: the case has 1 dimension, but 2 were expected"),
        (HEAD + "1,2:3:a\n", "line 8: the dimensions of the case are 1 to 2 long"),
        (HEAD + "1:2:c\n", "line 8: the class 'c' is not in the header; there are 'a', 'b'"),
        (HEAD + "1:x:a\n", "line 8: a value is not a number"),
        (HEAD + "1:1_0:a\n", "line 8: a value is not a number"),
        (HEAD + "1:1e99:a\n", "line 8: a value is too large"),
        (HEAD.replace("equalLength false", "equalLength true") + "1:2:a\n1,2:2,3:a\n", "line 9: the case has 2 steps"),
    ],
)
def test_ts_refusals(tmp_path, content, part):
    assert part in refusal(read_ts, write(tmp_path, "p.ts", content), SkippedRows())


def test_bad_cases_can_be_skipped(tmp_path):
    skipped = SkippedRows()
    cases = list(read_ts(write(tmp_path, "p.ts", HEAD + "1:2:c\n1:2:a\n"), skipped, skip=True))
    assert len(cases) == 1 and skipped.counts == {"unknown class": 1}


@given(st.binary(max_size=100) | st.text("@#:,\n1.a?-e", max_size=60).map(lambda text: (HEAD + text).encode()))
def test_any_bytes_are_cases_or_a_sentence(tmp_path_factory, raw):
    file = write(tmp_path_factory.mktemp("ts"), "p.ts", raw)
    try:
        assert all(case.values.ndim == 2 for case in read_ts(file, SkippedRows()))
    except DataError as error:
        assert str(error).startswith(file)


def test_japanese_vowels(shared_data):
    for part, count in [("TRAIN", 270), ("TEST", 370)]:
        cases = list(read_ts(str(shared_data / f"japanese_vowels/JapaneseVowels_{part}.ts.gz"), SkippedRows()))
        assert len(cases) == count and {case.values.shape[1] for case in cases} == {12}
        assert {case.label for case in cases} == set("123456789")
        assert min(len(case.values) for case in cases) == 7 and max(len(case.values) for case in cases) <= 29


# --- IDX ---------------------------------------------------------------------------------------------------------

CODES = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}


def idx(array: np.ndarray) -> bytes:
    kind = array.dtype.str[1:]
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, CODES[kind], array.ndim, *array.shape)
    return head + array.astype(">" + kind).tobytes()


@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
@given(kind=st.sampled_from(sorted(CODES)), shape=st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_arrays_come_back(tmp_path_factory, name, kind, shape):
    array = np.random.default_rng(1).integers(0, 100, shape).astype(kind)
    found = read_idx(write(tmp_path_factory.mktemp("idx"), name, idx(array)))
    assert found.dtype == array.dtype and found.shape == tuple(shape)
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"", "begins with 00 00"),
        (b"\x89PNG....", "begins with 00 00, a type and a count, this one with '89 50 4e 47'"),
        (b"\0\0\x08\0", "0 dimensions"),
        (b"\0\0\x08\xff" + b"\1" * 200, "255 dimensions"),
        (b"\0\0\x08\x03\0\0\0\1", "ends within its header"),
        (b"\0\0\x0e\x03" + b"\xff" * 12 + b"abc", "which takes 633,8"),
        (idx(np.zeros((2, 3), "u1")) + b"x", "but it has more"),
        (idx(np.zeros((2, 3), "u1"))[:-1], "2 × 3, which takes 18 bytes, but"),
    ],
)
def test_headers_that_do_not_fit_are_refused(tmp_path, name, raw, part):
    with pytest.raises(DataError) as caught:
        read_idx(write(tmp_path, name, raw))
    assert part in str(caught.value)


@given(cut=st.integers(0, 60), flip=st.integers(0, 59), bit=st.integers(0, 255), packed=st.booleans())
def test_damaged_files_give_an_array_or_a_sentence(tmp_path_factory, cut, flip, bit, packed):
    raw = bytearray(idx(np.arange(40, dtype="u1").reshape(4, 10)))
    raw = bytearray(gzip.compress(bytes(raw))) if packed else raw
    raw[flip % len(raw)] ^= bit
    path = tmp_path_factory.mktemp("idx") / ("a.gz" if packed else "a")
    path.write_bytes(bytes(raw[: max(cut, 0)]))
    try:
        read_idx(str(path))
    except DataError as error:
        assert str(error).startswith(str(path))


def test_images_and_labels_must_be_as_many(tmp_path):
    images = write(tmp_path, "i", idx(np.zeros((3, 2, 2), "u1")))
    labels = write(tmp_path, "l", idx(np.zeros(2, "u1")))
    with pytest.raises(DataError, match="2 labels, but .* has 3 items"):
        read_labeled(images, labels)


def test_mnist(shared_data):
    folder = shared_data / "mnist"
    names = [str(folder / f"t10k-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1")]
    images, labels = read_labeled(names[0], names[1])
    assert images.shape == (10000, 28, 28) and np.bincount(labels).tolist()[:3] == [980, 1135, 1032]


# --- CoNLL -------------------------------------------------------------------------------------------------------

COLUMNS = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n\nPeter NNP B-PER\n"
UNIVERSAL = (
    "# sent_id = 1\n# text = vámonos ya\n1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_\n2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_\n"
    "2.1\tx\tx\tX\tX\t_\t_\t_\t_\t_\n3\tya mismo\tya\tADV\tR\t_\t1\tadvmod\t_\t_\n\n"
)


def sentences(file: str, *, skipped: SkippedRows | None = None, **how) -> list[Sentence]:
    return list(read_conll(file, ConllReading(**how), skipped or SkippedRows()))


@pytest.mark.parametrize("separator", [" ", "\t", "  "])
def test_columns_give_sentences(tmp_path, separator):
    file = write(tmp_path, "a.conll.gz", COLUMNS.replace(" ", separator))
    assert sentences(file) == [(("EU", "rejects"), ("B-ORG", "O"), 3), (("Peter",), ("B-PER",), 7)]
    assert [tags for _, tags, _ in sentences(file, tag="2")] == [("NNP", "VBZ"), ("NNP",)]


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz", "A.CONLLU.gz"])
def test_universal_columns_by_name_without_ranges_empty_nodes_and_comments(tmp_path, name):
    file = write(tmp_path, name, UNIVERSAL)
    expected = (("vamos", "nos", "ya mismo"), ("VERB", "PRON", "ADV"), 4)
    assert sentences(file, word="form", tag="upos") == [expected]
    assert sentences(file, word="2", tag="4") == [expected]
    assert sentences(file, word="lemma", tag="XPOS")[0].tags == ("V", "P", "R")


@pytest.mark.parametrize(
    ("name", "content", "how", "part"),
    [
        ("a.conll", "", {}, "is empty"),
        ("a.conll", "a b\nc\n", {}, "line 2: the line has 1 column, but 2 were expected"),
        ("a.conll", "a b\n", {"tag": "5"}, "line 1: there is no column '5'; there are '1', '2'"),
        ("a.conll", "a b\n", {"tag": "1"}, "words and tags are both taken from column 1"),
        ("a.conll", "a\t\n", {}, "line 1: the tag of the line is empty"),
        ("a.conllu", UNIVERSAL, {"word": "form", "tag": "uops"}, "did you mean 'upos'?"),
        ("a.conllu", "1\ta\tb\n", {"word": "form", "tag": "upos"}, "line 1: the line has 3 columns, but 10"),
        ("a.conllu", "x\ta\tb\n", {"word": "form", "tag": "upos"}, "line 1: the line begins with 'x'"),
    ],
)
def test_conll_refusals(tmp_path, name, content, how, part):
    assert part in refusal(read_conll, write(tmp_path, name, content), ConllReading(**how), SkippedRows())


def test_a_sentence_with_a_bad_line_is_skipped_whole(tmp_path):
    skipped = SkippedRows()
    file = write(tmp_path, "a.conll", b"a X\nb Y\n\nc\nd Z\n\n\xff Q\n\ne W\n")
    assert [words for words, _, _ in sentences(file, skip=True, skipped=skipped)] == [("a", "b"), ("e",)]
    assert skipped.counts == {"wrong number of columns": 1, "not utf-8": 1}


@given(
    raw=st.binary(max_size=100) | st.text("ab \t\n1-.#_", max_size=80).map(str.encode),
    name=st.sampled_from(["a.conll", "a.conllu"]),
    skip=st.booleans(),
)
def test_any_bytes_are_sentences_or_a_refusal(tmp_path_factory, raw, name, skip):
    file = write(tmp_path_factory.mktemp("conll"), name, raw)
    try:
        for words, tags, _ in sentences(file, word="1", tag="2", skip=skip):
            assert len(words) == len(tags) > 0 and all(words) and all(tags)
    except DataError as error:
        assert str(error).startswith(file)


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz"])
def test_universal_columns_are_tagged_by_the_ending_of_their_file(tmp_path, name):
    recipe = Recipe.of({"task": "tag"}).override(f"data.train={write(tmp_path, name, UNIVERSAL * 20)}")
    task, prepared = prepare_task(recipe.resolved(), print)
    assert {*task.target.names} == {"VERB", "PRON", "ADV"}
    assert task.shape.examples(prepared, "test")[0] == ("vamos\tnos\tya mismo", "VERB\tPRON\tADV")


def test_english_web_treebank(shared_data):
    file = str(shared_data / "ud_english_ewt/en_ewt-ud-dev.conllu.gz")
    found = sentences(file, word="form", tag="upos")
    assert len(found) == 2001 and len({tag for _, tags, _ in found for tag in tags}) == 17


# --- FASTA -------------------------------------------------------------------------------------------------------


def test_fasta_entries(tmp_path):
    file = write(tmp_path, "a.fa.gz", ">sp|P1 first protein\nMKV\nLL*\n\n; note\n>two\nac gt\nNN-\n")
    assert list(read_fasta(file, SkippedRows())) == [("sp|P1", "MKVLL*", 1), ("two", "acgtNN-", 6)]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "is empty"),
        ("ACGT\n>a\nAC\n", "line 1: letters stand before"),
        (">a\n>b\nAC\n", "line 1: the entry 'a' has no letters"),
        (">a\nAC1\n", "line 2: '1' is no letter"),
        (">a\nAC\0\n", "line 2: the line holds a NUL byte"),
    ],
)
def test_fasta_refusals(tmp_path, content, part):
    assert part in refusal(read_fasta, write(tmp_path, "a.fa", content), SkippedRows())


def test_bad_entries_can_be_skipped(tmp_path):
    skipped = SkippedRows()
    file = write(tmp_path, "a.fa", "XX\n>a\nA1\n>b\nAC\n>c\n")
    assert [entry.name for entry in read_fasta(file, skipped, skip=True)] == ["b"]
    assert skipped.counts == {"no name": 1, "strange letter": 1, "empty sequence": 1}


@given(raw=st.binary(max_size=100) | st.text(">;A c\n1*", max_size=60).map(str.encode), skip=st.booleans())
def test_any_bytes_are_entries_or_a_sentence(tmp_path_factory, raw, skip):
    file = write(tmp_path_factory.mktemp("fasta"), "a.fa", raw)
    try:
        assert all(entry.sequence for entry in read_fasta(file, SkippedRows(), skip=skip))
    except DataError as error:
        assert str(error).startswith(file)
