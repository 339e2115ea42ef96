"""Files to examples, whatever their format: one raw value a side, in the order of the schema.

Tables are read row by row, or with `data.series` as sequences of rows; sentences, series and images as their formats
have them. What cannot be used is raised with its file and line, or counted. Knows formats, not what is learned.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.data.formats.conll import ConllReading, read_conll
from seqloom.data.formats.delimited import PAIR
from seqloom.data.formats.dialects import SAMPLED
from seqloom.data.formats.folders import read_classes, read_text
from seqloom.data.formats.idx import read_idx, read_labeled
from seqloom.data.formats.images import ImageReading, Scaling, open_image, read_captioned, read_sheets
from seqloom.data.formats.lines import Fault
from seqloom.data.formats.numerals import detect_decimal, normalize
from seqloom.data.formats.sounds import SoundReading
from seqloom.data.formats.tables import (
    TABLES,
    Reading,
    Row,
    SkippedRows,
    detect_format,
    drop_faults,
    parse_split,
    read_rows,
)
from seqloom.data.formats.ts import read_ts
from seqloom.data.log_mel import LogMel, LogMelSettings
from seqloom.data.numbers import LARGEST, explain_no_number, parse_number_or_gap
from seqloom.data.pretokenized import SEPARATOR
from seqloom.data.schema import COLUMN_SEPARATOR, Raw, Schema
from seqloom.errors import DataError

Example = tuple[Raw, ...]  # one raw value a side, then the keys that the schema asks for
PlacedExample = tuple[Example, str, int]  # with its file and line


def read_files(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[Example]:
    """The examples of one file, or of two that belong together; what cannot be used is raised, or counted."""
    skip, format = schema.data.on_bad_row == "skip", choose_format(files, schema)
    if format in ("ts", "idx") and schema.data.source_type == "tokens" and not schema.pictured:
        raise DataError(f'the format {format} holds numbers: set data.source_type to "numbers"', files[0])
    if schema.data.source_type == "sound" and format in READERS and format != "folders":
        expected = "a table that names sound files, or a folder of classes, was expected"
        raise DataError(f"data.source_type is sound, but the format is {format}: {expected}", files[0])
    if schema.keys and format in (*READERS, "lines", "txt"):
        [(name, column), *_] = schema.keys.items()
        setting = "data.group" if name == "group" else "data.split_time"
        raise DataError(f"{setting} is the column {column!r}, but only tables have such columns", files[0])
    placed = READERS.get(format, read_tables)(files, schema, skipped)
    return drop_faults((_check(one, schema) for one in placed), files[0], skip, skipped, "example")


def choose_format(files: Sequence[str], schema: Schema) -> str:
    """The format as said, or as the ending says; a table beside which images are learned is one of their names."""
    format = detect_format(files, schema.data.format)
    return "images" if schema.pictured and format in TABLES else format


def _check(placed: PlacedExample | Fault, schema: Schema) -> Example | Fault:
    if isinstance(placed, Fault):
        return placed
    example, file, line = placed
    sentence = schema.fault(example[: len(schema.sides)])
    return Fault(sentence.split(":")[0], sentence, file, line) if sentence else example


# --- tables -----------------------------------------------------------------------------------------------------


def read_tables(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """Rows of texts, or of numbers or named sound files in the source and texts in the other sides."""
    rows = read_cells(files, schema, skipped)
    return read_named_sounds(rows, schema, skipped) if schema.data.source_type == "sound" else rows


def read_named_sounds(
    rows: Iterable[PlacedExample | Fault], schema: Schema, skipped: SkippedRows
) -> Iterator[PlacedExample | Fault]:
    """The sounds in the place of the names of their files."""
    reading = SoundReading(LogMel(LogMelSettings.of(schema.data)), skipped.notes)
    for row in rows:
        if isinstance(row, Fault):
            yield row
            continue
        (name, *others), file, line = row
        sound = reading.read(name, find_sound_folder(schema, file), file, line)
        yield sound if isinstance(sound, Fault) else ((sound, *others), file, line)


def find_sound_folder(schema: Schema, table: str) -> Path:
    """Where the files lie that a table names: beside it, or where the recipe says."""
    return Path(os.path.expanduser(schema.data.sounds or os.path.dirname(table)))


def read_cells(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """Rows of texts, or of numbers in the source and texts in the other sides."""
    data = schema.data
    numeric = data.source_type == "numbers"
    series = (data.series,) if data.series else ()
    reading = Reading.of(data, schema.columns + tuple(schema.keys.values()) + series)
    group = tuple(column for name, column in schema.keys.items() if name == "group")  # none is a group of one row
    if numeric:
        reading = reading.allow_blank(schema.sides["source"].columns + group)
    else:  # of several columns that make one text, some may be empty
        several = (name for side in schema.sides.values() if len(side.columns) > 1 for name in side.columns)
        reading = reading.allow_blank((*several, *group))
    ends = accumulate((*(len(side.columns) for side in schema.sides.values()), *[1] * len(schema.keys)), initial=0)
    spans = [slice(*both) for both in pairwise(ends)]
    rows = read_rows(files, reading, skipped)
    if not numeric:
        for row in rows:
            yield read_texts(row, spans, schema)
        return
    first = list(islice(rows, SAMPLED))
    decimal: str = data.decimal
    if decimal == "auto":
        decimal = detect_decimal((cell for row in first for cell in row.values[spans[0]]), files[0])
        if decimal == "comma":
            skipped.notes.append(f"{files[0]}: numbers have a decimal comma (data.decimal)")
    frames = (read_frame(row, spans, schema, decimal) for row in chain(first, rows))
    yield from group_sequences(frames, schema) if series else map(make_single, frames)


def read_texts(row: Row, spans: Sequence[slice], schema: Schema) -> PlacedExample | Fault:
    for side, span in zip(schema.sides.values(), spans, strict=False):
        if not any(row.values[span]):
            columns = " and ".join(map(repr, side.columns))
            return Fault(f"empty {columns}", f"the columns {columns} are empty", row.file, row.line)
    return tuple([COLUMN_SEPARATOR.join(row.values[span]).strip() for span in spans]), row.file, row.line


Frame = tuple[list[float], tuple[str, ...], str, Row]  # numbers, the other sides, the series, and where it stands


def read_frame(row: Row, spans: Sequence[slice], schema: Schema, decimal: str) -> Frame | Fault:
    numbers: list[float] = []
    for name, text in zip(schema.sides["source"].columns, row.values[spans[0]], strict=True):
        try:
            numbers.append(parse_number_or_gap(normalize(text, decimal)))
        except ValueError:
            sentence = f"{name!r} is {text!r:.50}, but {explain_no_number(text)}"
            return Fault(f"{name!r} is not a number", sentence, row.file, row.line)
    others = tuple([COLUMN_SEPARATOR.join(row.values[span]) for span in spans[1:]])
    return numbers, others, row.values[-1] if schema.data.series else "", row


def make_single(frame: Frame | Fault) -> PlacedExample | Fault:
    """A row as a sequence of one element."""
    if isinstance(frame, Fault):
        return frame
    numbers, others, _, row = frame
    return (np.array([numbers], dtype=np.float32), *others), row.file, row.line


def group_sequences(frames: Iterable[Frame | Fault], schema: Schema) -> Iterator[PlacedExample | Fault]:
    """Rows of one series as one sequence; a fault in any of them spoils it. Its rows stand together."""
    seen: set[str] = set()
    for name, group in groupby(frames, lambda frame: None if isinstance(frame, Fault) else frame[2]):
        members = list(group)
        if name is None:
            yield from (frame for frame in members if isinstance(frame, Fault))
            continue
        whole = [frame for frame in members if not isinstance(frame, Fault)]
        first = whole[0][3]
        if name in seen:
            sentence = f"the series {name!r:.50} goes on here, but its rows must stand together"
            yield Fault("a series in pieces", sentence, first.file, first.line)
            continue
        seen.add(name)
        yield _make_sequence(whole, schema)


def _make_sequence(frames: list[Frame], schema: Schema) -> PlacedExample | Fault:
    first = frames[0][3]
    values = np.array([numbers for numbers, *_ in frames], dtype=np.float32)
    sides: list[Any] = [values]
    for number, side in enumerate([*list(schema.sides)[1:], *schema.keys]):
        texts = [others[number] for _, others, _, _ in frames]
        if side in schema.sides and schema.sides[side].field.per_element:
            sides.append(SEPARATOR.join(texts))
        elif len(set(texts)) == 1:
            sides.append(texts[0])
        else:
            sentence = f"the {side} changes within the series {frames[0][2]!r:.50}, but a sequence has one"
            return Fault(f"the {side} changes", sentence, first.file, first.line)
    return tuple(sides), first.file, first.line


# --- other formats ------------------------------------------------------------------------------------------------


def read_sentences(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """Words and their tags."""
    data = schema.data
    universal = detect_format(files, data.format) == "conllu"
    default = ("form", "upos") if universal else ("1", "last")
    columns = (data.source[0], data.target)
    word, tag = (own if name == side else name for own, name, side in zip(default, columns, PAIR, strict=True))
    tag = tag if "target" in schema.sides else ""
    reading = ConllReading(word, tag, "conllu" if universal else "columns", data.encoding, data.on_bad_row == "skip")
    for sentence in read_conll(files[0], reading, skipped):
        both = (SEPARATOR.join(sentence.words), SEPARATOR.join(sentence.tags))
        yield both[: len(schema.sides)], files[0], sentence.line


def read_cases(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """Series of numbers with a label each."""
    data = schema.data
    for case in read_ts(files[0], skipped, data.encoding, data.on_bad_row == "skip"):
        yield (case.values, case.label)[: len(schema.sides)], files[0], case.line


def read_labeled_images(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """Arrays and their labels from two IDX files; an array is an image, or a sequence of its rows."""
    names = schema.data.names
    if len(schema.sides) == 1:
        arrays, labels = read_idx(files[0]), None
    else:
        arrays, labels = read_labeled(*files)
    if arrays.dtype.kind == "f" and not (np.abs(arrays) <= LARGEST).all():
        raise DataError(f"the file holds something that is not a number, or one above {LARGEST:.0e}", files[0])
    for number, array in enumerate(arrays):
        if schema.pictured:
            shown = array.astype(np.uint8)
            raw: Raw = (shown if shown.ndim == 3 else shown[..., None])[None]
        else:
            raw = array.astype(np.float32).reshape(len(array), -1) if array.ndim else array[None, None]
        if labels is None:
            yield (raw,), files[0], number + 1
            continue
        label = str(labels[number])
        if names and not (label.isdecimal() and int(label) < len(names)):
            sentence = f"the label is {label}, but data.names has names for 0 to {len(names) - 1}"
            yield Fault("a label without a name", sentence, files[1], number + 1)
        else:
            yield (raw, names[int(label)] if names else label), files[0], number + 1


def find_image_folder(schema: Schema, table: str) -> str:
    """Where the images lie that a table names: beside it, or where the recipe says."""
    return schema.data.images or str(Path(table).parent)


def read_captioned_images(
    files: Sequence[str], schema: Schema, skipped: SkippedRows
) -> Iterator[PlacedExample | Fault]:
    """An image with each of its captions, from a table of names and captions."""
    folder = find_image_folder(schema, files[0])
    for image in read_captioned(files[0], folder, make_image_reading(schema), skipped):
        for caption in image.captions:
            yield (image.image[None], caption), files[0], image.line


def read_contact_sheets(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """The same from contact sheets: an index of their cells and a table of captions.

    The index says the split of each image, so one index serves all parts: it is named as INDEX#SPLIT.
    """
    index, split = parse_split(files[0])
    folder = find_image_folder(schema, index)
    reading = make_image_reading(schema)
    for image in read_sheets(index, files[1], folder, reading.size[0], reading, skipped, split):
        for caption in image.captions:
            yield (image.image[None], caption), index, image.line


def read_folders(files: Sequence[str], schema: Schema, skipped: SkippedRows) -> Iterator[PlacedExample | Fault]:
    """A text, an image or a sound a file, labeled by the folder it lies in."""
    if list(schema.sides) != ["source", "target"] or schema.task != "classify":
        raise DataError("this is a folder, whose folders would be classes: only classify reads those", files[0])
    scaling = Scaling(make_image_reading(schema).size)
    endings = schema.sides["source"].field.endings
    for item in read_classes(files[0], make_file_reader(schema, skipped.notes, scaling), skipped.notes, endings):
        yield item if isinstance(item, Fault) else ((item.content, item.label), item.file, 0)
    skipped.notes += [f"{files[0]}: {note}" for note in scaling.describe()]


def make_file_reader(schema: Schema, notes: list[str], scaling: Scaling) -> Callable[[Path], Raw | Fault]:
    """What reads a file that is one example."""
    if schema.pictured:
        return lambda path: image if isinstance(image := open_image(path, scaling), Fault) else image[None]
    if schema.data.source_type == "sound":
        sounds = SoundReading(LogMel(LogMelSettings.of(schema.data)), notes)
        return lambda path: sounds.read(path.name, path.parent, str(path), 0)
    return partial(read_text, encoding=schema.data.encoding)


def make_image_reading(schema: Schema) -> ImageReading:
    """What the columns are called, unless the recipe says so: image and caption, whichever of them is the source."""
    data = schema.data
    columns = {"source": data.source[0], "target": data.target}
    image_side = "source" if "source" in schema.sides and schema.sides["source"].field.is_image else "target"
    worded = "target" if image_side == "source" else "source"
    image, caption = (
        own if columns[side] == side else columns[side] for own, side in (("image", image_side), ("caption", worded))
    )
    size = (data.image_size, data.image_size)
    return ImageReading(size, image, caption, "guess", data.encoding, data.on_bad_row == "skip")


Read = Callable[[Sequence[str], Schema, SkippedRows], Iterator[PlacedExample | Fault]]
READERS: dict[str, Read] = {
    **{"conll": read_sentences, "conllu": read_sentences, "ts": read_cases, "idx": read_labeled_images},
    **{"images": read_captioned_images, "sheets": read_contact_sheets, "folders": read_folders},
}
