"""What in the data is hardly meant so, in sentences with the setting to type: said before the wait of a training."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.dividing import FEW_SOURCES, find_shares
from seqloom.data.formats.delimited import Record
from seqloom.data.formats.dialects import Dialect, open_table
from seqloom.data.formats.lines import read_lines
from seqloom.data.formats.tables import list_paths, look_up
from seqloom.data.headers import find_table
from seqloom.data.likeness import compare_neighbors, find_near_duplicates
from seqloom.data.pretokenized import SEPARATOR
from seqloom.data.ragged import Rows, Texts
from seqloom.data.schema import Schema
from seqloom.data.sides import Side, take_raws
from seqloom.errors import DataError
from seqloom.schemas import SplitReport

LOOKED_AT = 2_000  # rows
MOST_LABELS = 0.5  # labels a row: with more, nearly every row has its own
FEWEST = 20  # rows with which such shares say something
NEAR = 0.05  # share of a part that is nearly the same as training
SHOWN = 3  # labels, or columns, in a sentence
MISSING_WORDS = frozenset(["na", "n/a", "#n/a", "<na>", "nan", "null"])  # that people write where nothing is known
UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
ID = re.compile(UUID + r"|(?=[a-f]*\d)[0-9a-f]{16,64}|[A-Za-z]{0,5}[-_#]?\d+")
DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ]\d\d?:\d\d.*)?|\d\d?[-/.]\d\d?[-/.](\d\d){1,2}( \d\d?:\d\d.*)?")
# What columns are called whose rows belong together.
GROUPS = re.compile(
    r"(^|.*[_ .-])(id|ids|user|author|film|movie|session|patient|speaker|document|doc|group|url|link|customer|product|"
    r"item|thread|conversation|dialogue|subject|recording|article|title|image|photo|file|book|game|match)$",
    re.IGNORECASE,
)


def check_labels(schema: Schema, train: Mapping[str, Side]) -> None:
    """Refuse examples that all have one label: there is nothing to learn."""
    if schema.label and schema.label == "target":
        labels = Counter(train[schema.label])
        if len(labels) == 1:
            [(label, count)] = labels.items()
            raise DataError(
                f"all {format_count(count, 'example')} have the target {label!r:.50}: there is nothing to tell apart; "
                f"data.target names the column of the labels{_list_others(schema)}"
            )


def find_warnings(
    schema: Schema, raw: Mapping[str, Mapping[str, Side]], rows: Mapping[str, Rows], splits: Mapping[str, SplitReport]
) -> tuple[str, ...]:
    """Every warning about these examples."""
    return (
        *_judge_labels(schema, raw, rows),
        *_judge_spellings(schema, raw["train"]),
        *_judge_columns(schema, raw["train"]),
        *_judge_parts(schema, raw, rows, splits),
        *_judge_draw(schema, raw, rows),
    )


# --- source and target ----------------------------------------------------------------------------------------------


def _judge_labels(schema: Schema, raw: Mapping[str, Mapping[str, Side]], rows: Mapping[str, Rows]) -> Iterator[str]:
    """The labels of the training file, of which other parts may be drawn."""
    if schema.label != "target":
        return
    used = np.concatenate([rows[part] for part in rows if part == "train" or part not in raw])
    labels = Counter(take_raws(raw["train"]["target"], used))
    count, once = labels.total(), [label for label, times in labels.items() if times == 1]
    if count >= FEWEST and len(labels) > MOST_LABELS * count:
        number = all(_is_number(str(label)) for label in islice(labels, LOOKED_AT))
        says = "data.target_type=number if they are quantities, " if number else ""
        yield (
            f"the target has {format_count(len(labels), 'different label')} in {format_count(count, 'row')}, so "
            "that hardly one can be learned: "
            f"{says}data.target names another column{_list_others(schema)}"
        )
    elif once:
        shown = ", ".join(f"{label!r:.40}" for label in once[:SHOWN]) + (", …" if len(once) > SHOWN else "")
        yield (
            f"{len(once):,} of {len(labels):,} labels occur{'s' * (len(once) == 1)} only once ({shown}) and cannot be "
            "both learned and scored: data.min_label_count=2 leaves such rows out"
        )


def _judge_spellings(schema: Schema, train: Mapping[str, Side]) -> Iterator[str]:
    """Labels that a person would take for one, or for none at all."""
    if schema.label != "target" or not isinstance(train["target"], Texts):
        return
    alike: dict[str, list[str]] = {}
    for label in sorted(set(train["target"].to_list())):
        alike.setdefault(label.casefold(), []).append(label)
    if several := [labels for labels in alike.values() if len(labels) > 1]:
        shown = ", ".join(map(repr, several[0]))
        yield f"the labels {shown} differ only in upper and lower case, and each is a class of its own"
    if absent := [label for key, labels in alike.items() for label in labels if key in MISSING_WORDS]:
        shown = ", ".join(map(repr, absent))
        yield f"the target is {shown} in some rows, which is a label like any other: only an empty cell is missing"


def _judge_columns(schema: Schema, train: Mapping[str, Side]) -> Iterator[str]:
    """A side that is an id or a date; of pairs of sequences, where dates are often what is wanted, only an id."""
    for name, side in train.items():
        if name not in schema.sides or not isinstance(side, Texts):
            continue
        texts = side.take(np.arange(min(len(side), LOOKED_AT))).to_list()
        kind = describe_kind(texts)
        if kind and not (kind == "dates" and not schema.label):
            yield (
                f"the {name} seems to be {kind}, such as {texts[0]!r:.50}, from which nothing can be learned for new "
                f"rows: data.{name} names another column{_list_others(schema)}"
            )


def describe_kind(texts: Sequence[str]) -> str:
    """Ids or dates, if nearly all texts are that; ids are all different, and plain numbers are ids if they count up."""
    if len(texts) < FEWEST:
        return ""
    if sum(bool(DATE.fullmatch(text)) for text in texts) >= 0.9 * len(texts):
        return "dates"
    if len(set(texts)) < len(texts) or not all(map(ID.fullmatch, texts)):
        return ""
    digits = [re.search(r"\d{1,18}$", text) for text in texts]
    steps = np.diff([int(match.group()) for match in digits if match])
    counting = len(steps) == len(texts) - 1 and float((steps == 1).mean()) > 0.9
    return "ids" if counting or not any(text.isdecimal() for text in texts) and len(texts[0]) >= 16 else ""


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


# --- parts ----------------------------------------------------------------------------------------------------------


def _judge_parts(
    schema: Schema, raw: Mapping[str, Any], rows: Mapping[str, Rows], splits: Mapping[str, SplitReport]
) -> Iterator[str]:
    """Parts that share examples with training, and drawn ones that are much smaller than asked for."""
    shares = find_shares(schema.data, raw)
    total = sum(len(rows[part]) for part in ("train", *shares))
    first = next(iter(schema.sides))
    for part in ("validation", "test"):
        split = splits[part]
        if split.overlap:
            share = split.overlap / max(len(rows[part]), 1)
            apart = schema.data.split_duplicates == "apart"
            few = f"; there are fewer than {FEW_SOURCES} different ones, so equal ones were drawn into several parts"
            drawn = (
                "" if part not in shares else "; data.split_duplicates=together draws none of them" if apart else few
            )
            yield (
                f"{split.overlap:,} of {len(rows[part]):,} {part} examples ({share:.0%}) have a {first} that is one of "
                f"training, too: on them, a score says what was memorized{drawn}"
            )
        expected = round(
            total * (1 / schema.data.folds if schema.data.folds and part == "test" else shares.get(part, 0))
        )
        if expected > 2 * len(rows[part]) and not schema.ordered:
            yield (
                f"the {part} part has {format_count(len(rows[part]), 'row')} where {expected:,} were asked for: "
                "what stays together "
                "(data.group, data.split_blocks, data.split_duplicates) comes in large groups"
            )


def _judge_draw(schema: Schema, raw: Mapping[str, Mapping[str, Side]], rows: Mapping[str, Rows]) -> Iterator[str]:
    """A random draw that puts what belongs together on both sides of the split."""
    data = schema.data
    drawn_parts = [rows[part] for part in ("validation", "test") if part not in raw and len(rows[part])]
    if not drawn_parts or schema.ordered or data.group or data.split_blocks or data.split_time:
        return
    if not schema.pictured and (column := _find_group_column(schema)):  # an image stays together with its captions
        yield (
            f"rows with the same {column!r} are in several parts, which makes scores better than on new ones: "
            f"data.group={column} keeps them together"
        )
    texts = raw["train"][next(iter(schema.sides))]
    if not isinstance(texts, Texts):
        return
    drawn = np.concatenate(drawn_parts)
    near = find_near_duplicates(texts, drawn, rows["train"])
    if len(near) >= max(NEAR * min(len(drawn), LOOKED_AT), 3):
        shown = texts[int(near[0])].replace(SEPARATOR, " ").strip()
        way_out = "data.group=COLUMN keeps together what belongs together"
        if data.train and not find_table(data)[0]:  # only tables have columns
            way_out = "a score on them says partly what was memorized, and data.test names a file of others"
        yield (
            f"at least {len(near):,} of {len(drawn):,} validation and test examples are nearly the same as one of "
            f"training, such as {shown!r:.60}: {way_out}"
        )
    if alike := compare_neighbors(texts, np.sort(np.concatenate([drawn, rows["train"]]))):
        yield (
            f"neighbors in the file belong together: a row shares {alike.near:.2g} rare words with the next rows and "
            f"{alike.far:.2g} with others, so that scores on a random draw are too good: data.split_blocks=100 keeps "
            "neighbors together"
        )


# --- columns that are not read ---------------------------------------------------------------------------------------


def _list_others(schema: Schema) -> str:
    """The columns that the recipe does not name, for a sentence."""
    others = [name for name in read_head(schema.data)[0] if name not in schema.columns]
    return f"; there are {', '.join(map(repr, others[:20]))}" if others else ""


def _find_group_column(schema: Schema) -> str:
    """A column that is called as if rows with the same value belonged together, if many rows have the same."""
    names, records = read_head(schema.data)
    used = {*schema.columns, schema.data.series}
    for place, name in enumerate(names):
        if name in used or not GROUPS.fullmatch(name):
            continue
        counts = Counter(record[place] for record in records if place < len(record) and record[place].strip())
        rows = counts.total()
        if rows >= FEWEST and 10 <= len(counts) <= rows / 1.5 and max(counts.values()) <= 0.2 * rows:
            return name
    return ""


def read_head(data: Data) -> tuple[list[str], list[Sequence[str]]]:
    """The names of all columns of the training table, and its first rows; nothing if it is no table."""
    file, format = find_table(data)
    if not file:
        return [], []
    if format == "jsonl":
        return _read_objects(file, data)
    written = Dialect(format, data.encoding, data.separator, data.header)
    table = open_table(file, written, () if format == "parquet" else (*data.source, data.target), [])
    records = islice((one for one in table.records if isinstance(one, Record)), LOOKED_AT)
    return table.names, [record.fields for record in records]


def _read_objects(file: str, data: Data) -> tuple[list[str], list[Sequence[str]]]:
    objects = []
    for line in islice(read_lines(file, data.encoding), LOOKED_AT):
        try:
            record = json.loads(line.text)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            objects.append(record)
    names = list(dict.fromkeys(name for one in objects[:100] for name in list_paths(one)))
    return names, [[str(look_up(one, name)) for name in names] for one in objects]
