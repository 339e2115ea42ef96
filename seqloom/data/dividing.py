"""Which examples train, which validate and which test, as the recipe says it: files of their own, or rows drawn from
those of the training file; of one long text, where a share of it ends. `splits` has what divides rows by number."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.datasets import PARTS
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.formats.times import find_clock
from seqloom.data.ragged import Rows, Texts
from seqloom.data.schema import Schema
from seqloom.data.sides import Side
from seqloom.data.splits import Groups, draw_fold, draw_parts, keep_together, make_blocks, split_by_time
from seqloom.errors import DataError

SAMPLED = 1000  # times that are looked at to see how they are written
FEW_SOURCES = 20  # different ones
LINE = 1 << 16  # bytes in which a line is expected to end
DIVIDING = ("group", "split_blocks", "split_time", "folds")  # settings of how rows are drawn

Part = Mapping[str, Side]  # the sides of a part, and its keys


def count_rows(part: Part) -> int:
    return len(next(iter(part.values())))


def find_shares(data: Data, parts: Mapping[str, Any]) -> dict[str, float]:
    """The share of each part that has no file of its own."""
    shares = {"validation": data.validation_share, "test": data.test_share}
    return {part: share for part, share in shares.items() if part not in parts}


def divide(
    schema: Schema, raw: Mapping[str, Part], digests: NDArray[np.uint64], skipped: SkippedRows
) -> dict[str, Rows]:
    """The rows of each part: all of a file's own, or drawn from those of the training file, whose sources have these
    digests. What is skipped is counted."""
    data, train = schema.data, raw["train"]
    shares = find_shares(data, raw)
    _check_settings(data, drawn=any(shares.values()))
    labels: list[Any] = list(train[schema.label]) if schema.label else []
    frequent = _keep_frequent(labels, data.min_label_count, skipped)
    frequent = np.arange(count_rows(train)) if frequent is None else frequent
    parts = {part: np.arange(count_rows(raw[part])) for part in PARTS if part in raw} | {"train": frequent}
    if not any(shares.values()):
        return parts | {part: frequent[:0] for part in shares}
    groups = _find_groups(data, train, digests)
    groups = None if groups is None else groups[frequent]
    rows: Any = [labels[row] for row in frequent] if labels else len(frequent)
    if data.split_time:
        drawn = split_by_time(_read_times(list(train["time"]), data, skipped.notes)[frequent], shares, groups)
    elif data.folds:
        drawn = draw_fold(rows, data.fold, data.folds, shares.get("validation", 0.0), data.split_seed, groups)
    else:
        drawn = draw_parts(rows, shares, data.split_seed, groups)
    return parts | {part: frequent[some] for part, some in drawn.items()}


def _check_settings(data: Data, drawn: bool) -> None:
    """Refuse settings of how rows are drawn where none are."""
    if not drawn and (names := [name for name in DIVIDING if getattr(data, name)]):
        raise DataError(f"data.{names[0]} says how parts are drawn, but none is: both have files of their own")


def _keep_frequent(labels: Sequence[Any], fewest: int, skipped: SkippedRows) -> Rows | None:
    """The rows whose label occurs often enough; None is all."""
    counts = Counter(labels)
    rare = {label for label, count in counts.items() if count < fewest}
    if not rare:
        return None
    if len(rare) == len(counts):
        raise DataError(f"no label occurs {format_count(fewest, 'time')}, as data.min_label_count asks for")
    reason = f"a label that occurs fewer than {fewest} times (data.min_label_count)"
    skipped.counts[reason] += sum(counts[label] for label in rare)
    skipped.first[reason] = f"the label {next(label for label in labels if label in rare)!r:.50}"
    return np.flatnonzero([label not in rare for label in labels])


def _find_groups(data: Data, train: Part, digests: NDArray[np.uint64]) -> Groups | None:
    """What stays together: equal sources, rows of one group, and neighbors in the file; None if each row is alone.

    Of very few sources, as in a first try, every part needs some: there, equal ones are not kept together.
    """
    distinct = len(np.unique(digests))
    together = data.split_duplicates == "together" and FEW_SOURCES <= distinct < len(digests)
    keys: list[Any] = [digests] if together else []
    if data.group:
        keys.append([value or row for row, value in enumerate(train["group"])])
    if data.split_blocks:
        keys.append(make_blocks(len(digests), data.split_blocks))
    return keep_together(*keys) if keys else None


def _read_times(texts: list[Any], data: Data, notes: list[str]) -> NDArray[np.float64]:
    name = f"the column {data.split_time!r}"
    times: list[Any] = []
    try:
        clock = find_clock([[text] for text in texts[:SAMPLED]], data.time_format, name, notes)
        for text in texts:
            times.append(clock([text]))
    except ValueError as error:
        raise DataError(f"{name} (data.split_time) holds {texts[len(times)]!r:.50}, but {error}") from None
    values = np.array(times)
    return (values.astype("datetime64[ms]") if values.dtype == object else values).astype(np.float64)


# --- one long text ------------------------------------------------------------------------------------------------


def divide_in_order(schema: Schema, raw: Mapping[str, Part]) -> tuple[dict[str, Side], dict[str, Rows]]:
    """One long text: what comes first trains, what follows is for the parts without a file of their own.

    A document is cut where a share ends, at a character; words are not cut, so there it is at the end of the line.
    """
    [(name, texts)] = raw["train"].items()
    assert isinstance(texts, Texts), "only texts are cut"
    data = schema.data
    if names := [name for name in DIVIDING if getattr(data, name)]:
        raise DataError(
            f"data.{names[0]} says how examples are drawn, but this is one text, cut where a share of it ends: "
            "data.documents=paragraphs or lines makes examples of it"
        )
    shares = find_shares(data, raw)
    whole = schema.sides[name].field.kind != "characters"
    ends = np.cumsum([1 - sum(shares.values()), *shares.values()])
    places = [0, *(_cut_near(texts.bytes, int(len(texts.bytes) * end + 1e-6), whole) for end in ends)]
    cut = Texts(texts.bytes, np.unique(np.concatenate([texts.offsets, places])))
    rows = {part: np.arange(count_rows(sides)) for part, sides in raw.items()}
    for part, (start, stop) in zip(("train", *shares), pairwise(places), strict=True):
        rows[part] = np.arange(*np.searchsorted(cut.offsets, [start, stop]))
        if not len(rows[part]) and (part == "train" or shares[part]):
            raise DataError(f"the text is too short to cut a part for {part} from; give more of it, or files")
    return {name: cut}, rows


def _cut_near(text: NDArray[np.uint8], place: int, whole: bool) -> int:
    """The first place from here on where a character begins; with `whole`, where a line does, if one is near."""
    ahead = text[place : place + LINE].tobytes()
    if whole and place and (line := ahead.find(b"\n")) >= 0:
        return place + line + 1
    return place + next((number for number, byte in enumerate(ahead) if byte & 0xC0 != 0x80), 0)
