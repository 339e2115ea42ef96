"""From files to arrays: what is in them, what was left out, and the cache between."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqloom.config.task_data import Seq2SeqData
from seqloom.data import cache as stores
from seqloom.data import prepare as prepare_module
from seqloom.data import preprocess as building
from seqloom.data.datasets import open_dataset
from seqloom.data.prepare import PreparedData
from seqloom.data.schema import Schema
from seqloom.data.vocabulary import UNKNOWN
from seqloom.errors import DataError
from seqloom.fields import text_side
from tests.tokenizing import learn_tokenizer

PAIRS = [(f"source {n} ä", f"target {n * n}") for n in range(100)]


def write(path: Path, pairs=PAIRS) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


def pairs(data) -> Schema:
    """Source and target, both in tokens."""
    source = text_side(data.source, data.source_tokenizer)
    return Schema("test", data, {"source": source, "target": text_side((data.target,), data.target_tokenizer)})


def prepare(data, cache=None, tell=print) -> PreparedData:
    return prepare_module.prepare(pairs(data), cache, tell)


def settings(**data):
    return Seq2SeqData.model_validate(data)


@pytest.fixture
def file(tmp_path) -> str:
    return write(tmp_path / "train.txt")


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


def pairs_of(prepared: PreparedData, part: str) -> list[tuple[str, str]]:
    split = prepared.splits[part]
    return split.examples()


def content(prepared: PreparedData) -> object:
    """Everything there is to see, for comparison."""
    splits = {
        name: [[row.tolist() for row in side] for side in (split.ids["source"], split.ids["target"])]
        + [list(split.raws["source"]), list(split.raws["target"])]
        for name, split in prepared.splits.items()
    }
    tokenizers = [tokenizer.to_json() for tokenizer in prepared.fields.values()]
    return splits, tokenizers, prepared.report.model_dump(), prepared.fingerprint


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if not path.name.startswith(stores.BUILDING))


# --- what is in it -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_ids_and_texts_belong_together(file, cache, kind):
    prepared = prepare(settings(train=[file], source_tokenizer=kind, target_tokenizer=kind), cache)
    for split in prepared.splits.values():
        assert len(split) == len(split.ids["target"]) == len(split.raws["source"]) == len(split.raws["target"])
        for tokenizer, ids, texts in zip(
            prepared.fields.values(),
            (split.ids["source"], split.ids["target"]),
            (split.raws["source"], split.raws["target"]),
            strict=True,
        ):
            assert [row.tolist() for row in ids] == [tokenizer.encode(text).tolist() for text in texts]


def test_drawn_parts_hold_every_row_once_in_the_order_of_the_file(file, cache):
    prepared = prepare(settings(train=[file], validation_share=0.2, test_share=0.1), cache)
    parts = {part: pairs_of(prepared, part) for part in ("train", "validation", "test")}
    assert {part: len(pairs) for part, pairs in parts.items()} == {"train": 70, "validation": 20, "test": 10}
    assert sorted(sum(parts.values(), [])) == sorted(PAIRS)
    for pairs in parts.values():
        assert pairs == sorted(pairs, key=PAIRS.index)


def test_given_parts_are_taken_as_they_are(tmp_path, file, cache):
    test = write(tmp_path / "test.txt", PAIRS[:7])
    prepared = prepare(settings(train=[file], test=[test], validation_share=0.1), cache)
    assert pairs_of(prepared, "test") == PAIRS[:7]
    assert len(prepared.splits["validation"]) == 10 and len(prepared.splits["train"]) == 90
    again = prepare(settings(train=[file], validation=[test], test=[test]), cache)
    assert pairs_of(again, "train") == PAIRS and pairs_of(again, "validation") == PAIRS[:7]


def test_a_part_with_no_share_is_there_and_empty(file, cache):
    prepared = prepare(settings(train=[file], validation_share=0.0, test_share=0.0), cache)
    assert pairs_of(prepared, "train") == PAIRS
    assert len(prepared.splits["test"]) == 0 == len(prepared.splits["validation"].ids["source"].lengths)


def test_the_seed_of_the_split_changes_the_parts(file, cache):
    one, other = (pairs_of(prepare(settings(train=[file], split_seed=seed), cache), "test") for seed in (0, 1))
    assert one != other


def test_tokenizers_learn_from_the_training_part_alone(tmp_path, cache):
    train, test = write(tmp_path / "a.txt", [("ab", "x")] * 9), write(tmp_path / "b.txt", [("abc", "xyz")])
    prepared = prepare(settings(train=[train], validation=[test], test=[test]), cache)
    assert prepared.fields["source"].symbols[4:] == ("a", "b")
    assert prepared.splits["test"].ids["source"][0].tolist() == [4, 5, UNKNOWN]
    side = prepared.report.splits["test"].sides["target"]
    assert (
        side.unknown_share == pytest.approx(2 / 3)
        and prepared.report.splits["train"].sides["target"].unknown_share == 0
    )


def test_tokenizers_learn_nothing_from_rows_that_are_drawn_away(file, cache):
    prepared = prepare(settings(train=[file], source_tokenizer="words"), cache)
    seen = learn_tokenizer("words", prepared.splits["train"].raws["source"])
    assert prepared.fields["source"].to_json() == seen.to_json()
    assert prepared.report.splits["test"].sides["source"].unknown_share > 0


def test_tokenizers_are_made_as_the_settings_say(file, cache):
    prepared = prepare(
        settings(
            train=[file], source_tokenizer="words", vocabulary_size=5, min_count=2, lowercase=True, test_share=0.0
        ),
        cache,
    )
    texts = [pair[0] for pair in pairs_of(prepared, "train")]
    expected = learn_tokenizer("words", texts, max_size=5, min_count=2, lowercase=True)
    assert prepared.fields["source"].to_json() == expected.to_json()


def test_texts_are_what_a_perfect_model_would_write(tmp_path, cache):
    train = write(tmp_path / "a.txt", [("A  b", "C \u00a0d.")] * 9)
    given = {"train": [train]}
    prepared = prepare(settings(**given, source_tokenizer="words", target_tokenizer="words", lowercase=True), cache)
    assert prepared.splits["train"].raws["source"][0] == "a b" and prepared.splits["train"].raws["target"][0] == "c d."
    kept = prepare(settings(**given), cache)
    assert kept.splits["train"].raws["target"][0] == "C \u00a0d."


def test_ids_are_kept_as_narrow_as_the_vocabulary_allows(tmp_path, cache):
    narrow = prepare(settings(train=[write(tmp_path / "a.txt")]), cache)
    assert narrow.splits["train"].ids["source"].values.dtype == np.uint16
    many = [(f"w{n}", "x") for n in range(90_000)]
    wide = prepare(settings(train=[write(tmp_path / "b.txt", many)], source_tokenizer="words"), cache)
    assert len(wide.fields["source"]) > 1 << 16
    assert wide.splits["train"].ids["source"].values.dtype == np.int32
    split = wide.splits["train"]
    assert wide.fields["source"].decode(split.ids["source"][-1]) == split.raws["source"][-1]


def test_a_sample_is_prepared_in_its_own_parts(cache, monkeypatch):
    parts = {"train": PAIRS[:50], "validation": PAIRS[50:60], "test": PAIRS[60:]}
    monkeypatch.setattr("seqloom.data.samples.SAMPLES", {"dates": lambda: parts})
    prepared = prepare(settings(sample="dates"), cache)
    assert {part: pairs_of(prepared, part) for part in parts} == parts
    parts["test"] = PAIRS[:5]  # another version of what the sample is made from
    assert pairs_of(prepare(settings(sample="dates"), cache), "test") == PAIRS[:5]


def test_pieces_are_put_together_without_a_seam(file, cache, monkeypatch):
    whole = content(prepare(settings(train=[file], source_tokenizer="words"), cache))
    monkeypatch.setattr(building, "SPOOLED", 200)
    monkeypatch.setattr(building, "split_rows", lambda sizes: stores_spans(sizes, 300))
    assert content(prepare(settings(train=[file], source_tokenizer="words"), cache / "other")) == whole


def stores_spans(sizes, limit):
    from seqloom.data.ragged import split_rows

    return split_rows(sizes, limit)


def test_progress_is_told(file, cache, monkeypatch):
    monkeypatch.setattr(building, "NOTED_EVERY", 10)
    monkeypatch.setattr(building, "SPOOLED", 1000)
    told: list[str] = []
    prepare(settings(train=[file]), cache, told.append)
    assert any("reading train" in line for line in told) and any("encoding test" in line for line in told)
    assert all("\n" not in line for line in told)


# --- lengths -----------------------------------------------------------------------------------------------------

LONG = [("aaaa", "b"), ("a", "bbbbb"), ("aaaaaa", "bbbbbb"), ("aa", "bb")]


@pytest.fixture
def long_files(tmp_path) -> dict[str, list[str]]:
    name = write(tmp_path / "long.txt", LONG)
    return {"train": [name], "validation": [name], "test": [name]}


def test_training_examples_that_are_too_long_are_dropped_and_counted(long_files, cache):
    prepared = prepare(settings(**long_files, max_length=3), cache)
    assert pairs_of(prepared, "train") == [("aa", "bb")]
    report = prepared.report.splits["train"]
    assert (report.examples, report.dropped) == (1, 3)
    assert (report.sides["source"].dropped, report.sides["target"].dropped) == (2, 2)
    assert (report.sides["source"].cut, report.sides["target"].cut) == (0, 0)


def test_training_examples_that_are_too_long_are_cut_and_counted(long_files, cache):
    prepared = prepare(settings(**long_files, max_length=3, too_long="cut"), cache)
    split, report = prepared.splits["train"], prepared.report.splits["train"]
    assert split.ids["source"].lengths.tolist() == [3, 1, 3, 2] and split.ids["target"].lengths.tolist() == [1, 3, 3, 2]
    assert (report.examples, report.dropped, report.sides["source"].cut, report.sides["target"].cut) == (4, 0, 2, 2)
    assert (report.sides["source"].dropped, report.sides["target"].dropped) == (0, 0)


@pytest.mark.parametrize("too_long", ["drop", "cut"])
def test_what_is_scored_is_never_dropped_and_its_texts_stay_whole(long_files, cache, too_long):
    prepared = prepare(settings(**long_files, max_length=3, too_long=too_long), cache)
    for part in ("validation", "test"):
        assert pairs_of(prepared, part) == LONG
        split, report = prepared.splits[part], prepared.report.splits[part]
        assert split.ids["source"].lengths.tolist() == [3, 1, 3, 2] and split.ids["target"].lengths.tolist() == [
            1,
            3,
            3,
            2,
        ]
        assert (report.examples, report.dropped, report.sides["source"].cut, report.sides["target"].cut) == (4, 0, 2, 2)


def test_if_every_training_example_is_too_long_that_is_said(tmp_path, cache):
    name = write(tmp_path / "long.txt", [("aaaa", "b")] * 5)
    with pytest.raises(DataError, match="longer than data.max_length = 3"):
        prepare(settings(train=[name], max_length=3), cache)
    assert entries(cache) == [] == list(cache.iterdir())


@pytest.mark.parametrize("kind", ["characters", "words", "bpe"])
def test_one_line_of_ten_million_characters_is_dropped_like_any_long_one(tmp_path, cache, kind):
    name = write(tmp_path / "long.txt", [*PAIRS, ("ab " * 3_333_333 + "a", "b")])
    prepared = prepare(settings(train=[name], validation_share=0.0, test_share=0.0, source_tokenizer=kind), cache)
    assert pairs_of(prepared, "train") == PAIRS
    assert prepared.report.splits["train"].dropped == 1 == prepared.report.splits["train"].sides["source"].dropped


# --- the report --------------------------------------------------------------------------------------------------


def test_the_report_counts_what_there_is(file, cache):
    prepared = prepare(settings(train=[file]), cache)
    for part, split in prepared.splits.items():
        report = prepared.report.splits[part]
        assert report.examples == len(split)
        for side, ids in ((report.sides["source"], split.ids["source"]), (report.sides["target"], split.ids["target"])):
            lengths = [len(row) for row in ids]
            assert (side.tokens, side.longest) == (sum(lengths), max(lengths))
            assert side.mean == pytest.approx(sum(lengths) / len(lengths))
            assert side.unknown_share == pytest.approx(sum((row == UNKNOWN).sum() for row in ids) / sum(lengths))
    sizes = {side: len(field) for side, field in prepared.fields.items()}
    assert prepared.report.vocabulary == sizes
    assert prepared.report.rows_read == len(PAIRS) and prepared.report.skipped == {}


def test_the_report_says_what_was_skipped_and_where_first(tmp_path, cache):
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    train.write_text("a\tb\nbroken\nc\td\n\te\n" + "f\tg\n" * 10)
    test.write_text("broken\na\tb\nbroken\n")
    report = prepare(settings(train=[str(train)], test=[str(test)], on_bad_row="skip"), cache).report
    assert report.rows_read == 17
    found = {reason: (skipped.rows, skipped.first) for reason, skipped in report.skipped.items()}
    assert found == {"no separator": (3, f"{train}, line 2"), "empty 'source'": (1, f"{train}, line 4")}


def test_the_report_is_json(file, cache):
    report = prepare(settings(train=[file]), cache).report
    assert type(report).model_validate(json.loads(json.dumps(report.model_dump()))) == report


# --- mistakes ----------------------------------------------------------------------------------------------------


def test_mistakes_leave_nothing_in_the_cache(tmp_path, cache):
    broken = tmp_path / "broken.txt"
    broken.write_text("a\tb\nbroken\n")
    with pytest.raises(DataError, match="broken.txt, line 2"):
        prepare(settings(train=[str(broken)]), cache)
    assert list(cache.iterdir()) == []


def test_a_missing_file_is_said_before_anything_is_done(tmp_path, file, cache):
    with pytest.raises(DataError, match="no such file"):
        prepare(settings(train=[file], test=[str(tmp_path / "nowhere.txt")]), cache)
    assert not cache.exists()


def test_no_files_and_no_sample_are_refused(cache):
    with pytest.raises(DataError, match="no examples are given"):
        prepare(settings(), cache)


def test_too_few_rows_for_the_parts_are_refused(tmp_path, cache):
    with pytest.raises(DataError, match="too few"):
        prepare(settings(train=[write(tmp_path / "few.txt", PAIRS[:2])]), cache)


def test_files_that_change_while_they_are_read_are_refused(file, cache):
    def meddle(line: str) -> None:
        if "encoding test" in line:
            Path(file).write_text("x\ty\n" * 50)

    with pytest.raises(DataError, match="changed while"):
        prepare(settings(train=[file]), cache, meddle)
    assert list(cache.iterdir()) == []


# --- the cache ---------------------------------------------------------------------------------------------------


@pytest.fixture
def building_forbidden(monkeypatch):
    """Whatever is prepared from now on must come from the cache."""

    def forbid():
        def build(*_):
            raise AssertionError("built again")

        monkeypatch.setattr(prepare_module, "preprocess_dataset", build)

    return forbid


def test_the_second_time_everything_comes_from_the_cache(file, cache, building_forbidden):
    first = content(prepare(settings(train=[file]), cache))
    building_forbidden()
    assert content(prepare(settings(train=[file]), cache)) == first


def test_an_entry_holds_what_is_needed_and_nothing_else(file, cache):
    prepare(settings(train=[file]), cache)
    [entry] = entries(cache)
    arrays = {
        f"{part}-{side}-{what}{offsets}.npy"
        for part in ("train", "validation", "test")
        for side in ("source", "target")
        for what in ("ids", "texts")
        for offsets in ("", "-offsets")
    }
    assert {path.name for path in entry.iterdir()} == arrays | {"index.json"}


def test_prepared_arrays_are_mapped_not_read(file, cache):
    split = prepare(settings(train=[file]), cache).splits["train"]
    for array in (split.ids["source"].values, split.ids["target"].offsets, split.raws["source"].bytes):
        assert isinstance(array.base, np.memmap) or isinstance(getattr(array.base, "base", None), np.memmap)
        assert not array.flags.writeable


def test_changed_content_of_the_same_size_and_time_is_another_entry(file, cache):
    first = prepare(settings(train=[file]), cache)
    stat = os.stat(file)
    changed = Path(file).read_text().replace("source 1", "Source 1")
    Path(file).write_text(changed)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert os.stat(file).st_size == stat.st_size and os.stat(file).st_mtime_ns == stat.st_mtime_ns
    second = prepare(settings(train=[file]), cache)
    assert second.fingerprint != first.fingerprint
    assert any("Source" in text for split in second.splits.values() for text in split.raws["source"])
    assert len(entries(cache)) == 2


CHANGES = {
    "separator": "  ", "source": "2", "target": "1", "encoding": "latin-1", "on_bad_row": "skip",
    "source_tokenizer": "words", "target_tokenizer": "bpe", "lowercase": True, "min_count": 2, "vocabulary_size": 300,
    "max_length": 99, "too_long": "cut", "validation_share": 0.2, "test_share": 0.2, "split_seed": 1,
    "shared": True, "tag": "x", "source_type": "numbers", "series": "x", "vectors": "x", "header": "yes",
    "decimal": "comma", "split_duplicates": "apart", "group": "1", "split_blocks": 9, "split_time": "1", "folds": 5,
    "fold": 1, "time_format": "%Y", "characters": 8, "target_vectors": "x",
}  # fmt: skip
OF_SOUND = {"sounds": "x", "sample_rate": 8000, "mel_bands": 20, "frame_length": 30.0, "frame_hop": 5.0}


def test_every_setting_changes_the_fingerprint(tmp_path, cache):
    bidirectional = [(f"{source}  x", f"{target}  y") for source, target in PAIRS]  # two blanks and a tab on every line
    train = write(tmp_path / "train.txt", bidirectional)
    base = {"train": [train]}
    fields = set(type(settings()).model_fields) - {"sample", "train", "validation", "test", "format"}
    assert set(CHANGES | OF_SOUND) == fields
    sound = base | {"source_type": "sound"}
    changes = [base, sound, *(sound | {name: value} for name, value in OF_SOUND.items())]
    changes += [{"train": [train], "validation": [train]}, {"train": [train], "test": [train]}]
    for name, value in CHANGES.items():
        more = {"source": "2", "target": "1"} if name in ("source", "target") else {name: value}
        more |= {"folds": 5} if name == "fold" else {}
        more |= {"source_type": "numbers"} if name in ("series", "decimal") else {}
        if name != "target":
            changes.append(base | more)
    schemas = [pairs(settings(**change)) for change in changes]
    fingerprints = [prepare_module._compute_fingerprint(schema, open_dataset(schema)) for schema in schemas]
    assert len(set(fingerprints)) == len(fingerprints)
    assert prepare(settings(**base), cache).fingerprint == fingerprints[0]


def test_the_format_changes_the_fingerprint_however_it_is_known(tmp_path, cache):
    pairs = [("source", "target"), *PAIRS]
    prints = {
        "txt": prepare(settings(train=[write(tmp_path / "a.txt", pairs)]), cache).fingerprint,
        "tsv": prepare(settings(train=[write(tmp_path / "a.tsv", pairs)]), cache).fingerprint,
        "said": prepare(settings(train=[write(tmp_path / "b.txt", pairs)], format="tsv"), cache).fingerprint,
    }
    assert prints["txt"] != prints["tsv"] == prints["said"]


def test_a_file_that_was_moved_has_the_same_fingerprint_and_its_own_places(tmp_path, cache):
    prints, places = set(), []
    for name in ("a.txt", "b.txt"):
        file = tmp_path / name
        file.write_text("broken\n" + "a\tb\n" * 9)
        prepared = prepare(settings(train=[str(file)], on_bad_row="skip"), cache)
        prints.add(prepared.fingerprint)
        places.append(prepared.report.skipped["no separator"].first)
    assert len(prints) == 1
    assert places == [f"{tmp_path / name}, line 1" for name in ("a.txt", "b.txt")]


def test_the_cache_may_be_deleted_while_its_arrays_are_in_use(file, cache):
    prepared = prepare(settings(train=[file]), cache)
    shutil.rmtree(cache)
    before = content(prepared)
    assert content(prepare(settings(train=[file]), cache)) == before


def damage_truncated(entry: Path) -> None:
    path = entry / "train-source-ids.npy"
    path.write_bytes(path.read_bytes()[:-1])


def damage_longer(entry: Path) -> None:
    with (entry / "train-source-ids.npy").open("ab") as file:
        file.write(b"\0")


def damage_missing(entry: Path) -> None:
    (entry / "test-target-texts.npy").unlink()


def damage_index_gone(entry: Path) -> None:
    (entry / "index.json").unlink()


def damage_index_cut(entry: Path) -> None:
    text = (entry / "index.json").read_text()
    (entry / "index.json").write_text(text[: len(text) // 2])


def damage_index_emptied(entry: Path) -> None:
    (entry / "index.json").write_text("[]")


def damage_tokenizer(entry: Path) -> None:
    index = json.loads((entry / "index.json").read_text())
    index["fields"]["source"]["symbols"][5] = "<pad>"
    (entry / "index.json").write_text(json.dumps(index))


def damage_report(entry: Path) -> None:
    index = json.loads((entry / "index.json").read_text())
    del index["report"]["splits"]["train"]["sides"]["source"]["cut"]
    (entry / "index.json").write_text(json.dumps(index))


def damage_header(entry: Path) -> None:
    with (entry / "train-source-ids.npy").open("r+b") as file:
        file.write(b"\0" * 64)


def damage_pickle(entry: Path) -> None:
    """An array of objects, which only a pickle could bring back, of the very size that is expected."""
    path = entry / "train-source-ids.npy"
    size = path.stat().st_size
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])


def damage_offsets(entry: Path) -> None:
    path = entry / "train-source-ids-offsets.npy"
    offsets = np.load(path)
    offsets[-1] -= 1
    np.save(path, offsets)


@pytest.mark.parametrize(
    "damage",
    [value for name, value in sorted(globals().items()) if name.startswith("damage_")],
    ids=lambda f: f.__name__,
)
def test_a_damaged_entry_is_noticed_and_built_again(file, cache, damage, building_forbidden):
    first = content(prepare(settings(train=[file]), cache))
    [entry] = entries(cache)
    damage(entry)
    told: list[str] = []
    assert content(prepare(settings(train=[file]), cache, told.append)) == first
    assert told  # it was work
    assert [path.name for path in cache.iterdir()] == [entry.name]
    building_forbidden()
    assert content(prepare(settings(train=[file]), cache)) == first


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, file, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (tmp_path / "in the way").write_text("a file")
    prepared = prepare(settings(train=[file]), tmp_path / "in the way" / "cache")
    assert list(temporary.iterdir()) == []
    assert sorted(sum((pairs_of(prepared, part) for part in prepared.splits), [])) == sorted(PAIRS)


def test_a_full_disk_is_said_in_a_sentence(file, cache, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stores.FlatWriter, "append", full)
    with pytest.raises(DataError, match="No space left on device.*SEQLOOM_CACHE"):
        prepare(settings(train=[file]), cache)
    assert list(cache.iterdir()) == []


def test_the_cache_is_where_the_environment_says(tmp_path, file, monkeypatch):
    monkeypatch.setenv("SEQLOOM_CACHE", str(tmp_path / "own"))
    prepare(settings(train=[file]))
    assert len(entries(tmp_path / "own")) == 1
    monkeypatch.delenv("SEQLOOM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert stores.find_cache_folder() == tmp_path / "caches" / "seqloom"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert stores.find_cache_folder() == tmp_path / ".cache" / "seqloom"


PROGRAM = """
import sys
from pathlib import Path
from seqloom.data.schema import Schema
from seqloom.fields import text_side
from seqloom.data.datasets import open_dataset
from seqloom.data.prepare import prepare
from seqloom.config.recipe import Recipe
def tell(line):
    print(line, flush=True)
    if sys.argv[3] == "wait" and "encoding train" in line:
        sys.stdin.readline()
data = Recipe.of({"data": {"train": [sys.argv[1]]}}).data
sides = {side: text_side((side,), "characters") for side in ("source", "target")}
prepared = prepare(Schema("test", data, sides), Path(sys.argv[2]), tell)
print(prepared.fingerprint, list(prepared.splits["test"].raws["source"]), flush=True)
"""


def start(file: str, cache: Path, wait: bool) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, file, str(cache), "wait" if wait else "go"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def until_encoding(process: subprocess.Popen) -> None:
    for line in process.stdout:
        if "encoding train" in line:
            return
    raise AssertionError("it ended early")


def litter(cache: Path) -> list[Path]:
    return list(cache.glob(f"{stores.BUILDING}*"))


def test_two_processes_at_once_build_one_entry_and_see_the_same(file, cache):
    both = [start(file, cache, wait=True) for _ in range(2)]
    for process in both:
        until_encoding(process)
    assert len(litter(cache)) == 2  # neither sweeps the other's work away
    last = [process.communicate("\n", timeout=60)[0].splitlines()[-1] for process in both]
    assert last[0] == last[1] and [process.returncode for process in both] == [0, 0]
    assert len(entries(cache)) == 1 and litter(cache) == []
    prepared = prepare(settings(train=[file]), cache)
    assert last[0] == f"{prepared.fingerprint} {list(prepared.splits['test'].raws['source'])}"


def test_what_a_killed_process_leaves_is_swept_by_the_next(file, cache):
    with start(file, cache, wait=True) as process:
        until_encoding(process)
        process.send_signal(signal.SIGKILL)
    assert len(litter(cache)) == 1 and entries(cache) == []
    prepare(settings(train=[file]), cache)
    assert litter(cache) == [] and len(entries(cache)) == 1


def test_no_heavy_library_is_imported_before_it_is_needed():
    program = (
        "import sys, seqloom.data.prepare, seqloom.data.batching; "
        "print([name for name in ('torch', 'tokenizers', 'babel') if name in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# --- real data ---------------------------------------------------------------------------------------------------


def test_real_parallel_files_are_prepared(shared_data, cache):
    folder = shared_data / "multi30k"
    files = {
        part: [str(folder / f"{name}.{language}.gz") for language in ("en", "de")]
        for part, name in (("train", "val"), ("validation", "test_2017_flickr"), ("test", "test_2016_flickr"))
    }
    prepared = prepare(settings(**files, source_tokenizer="bpe", target_tokenizer="words", vocabulary_size=2000), cache)
    for part, (source, _) in files.items():
        with gzip.open(source, "rt", encoding="utf-8") as lines:
            assert list(prepared.splits[part].raws["source"]) == [line.strip() for line in lines]
    split = prepared.splits["test"]
    for row in random.Random(0).sample(range(len(split)), 50):
        assert prepared.fields["source"].decode(split.ids["source"][row]) == split.raws["source"][row]
    assert 0 < prepared.report.splits["test"].sides["target"].unknown_share < 0.25
