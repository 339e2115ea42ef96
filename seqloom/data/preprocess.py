"""Reading, dividing, learning and encoding: what happens to the data once, before the first training on it.

Everything goes through files in pieces, so the memory it takes does not grow with the data. Knows where examples come
from and where they are written only as a `Dataset` and a folder, and what they are only as a `Schema`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqloom.counts import format_count
from seqloom.data.cache import FlatWriter, open_flat
from seqloom.data.chunked_text import TextContinuation, split_into_pieces
from seqloom.data.datasets import PARTS, Dataset
from seqloom.data.dividing import count_rows, divide, divide_in_order
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.guards import check_labels, find_warnings
from seqloom.data.preview import PREVIEWED, Preview, preview_example
from seqloom.data.ragged import Ragged, Rows, Texts, split_rows
from seqloom.data.readers import Example
from seqloom.data.schema import FittedField, Raw, Schema
from seqloom.data.sides import Side, compute_digests, measure_rows, release_sides, take_raws
from seqloom.errors import DataError
from seqloom.schemas import MOST_SYMBOLS, DataReport, SideReport, SplitReport

SPOOLED = 1 << 22  # characters in memory before they go to the disk
NOTED_EVERY = 250_000  # rows
BARS = 12  # of the histogram of lengths
NO_LIMIT = 1 << 62

Note = Callable[[str], object]  # takes a sentence about what goes on


class PreprocessedDataset(NamedTuple):
    fields: dict[str, FittedField]
    report: DataReport
    examples: list[Preview]  # some of the training part


def preprocess_dataset(schema: Schema, dataset: Dataset, folder: Path, note: Note) -> PreprocessedDataset:
    """Write ids of every part into `folder`, as `PART-SIDE-ids`, and of what is read as text `PART-SIDE-texts`."""
    data, skipped = schema.data, SkippedRows()
    raw = {part: _spool(dataset.read(part, skipped), schema, folder, part, note) for part in dataset.parts}
    read = sum(map(count_rows, raw.values())) + skipped.counts.total()
    check_labels(schema, raw["train"])
    if schema.ordered:
        raw["train"], rows = divide_in_order(schema, raw)
    else:
        everything = np.arange(count_rows(raw["train"]))
        rows = divide(schema, raw, compute_digests(raw["train"], everything, [next(iter(schema.sides))]), skipped)
        raw["train"] = {side: raw["train"][side] for side in schema.sides}  # the keys have served
    fields = _learn(schema, raw["train"], rows["train"], note)
    [first, *_] = sides = tuple(schema.sides)
    trained = compute_digests(raw["train"], rows["train"], [first])
    splits = {}
    for part in PARTS:
        note(f"encoding {part}: {format_count(len(rows[part]), 'example')}")
        raw_sides = raw[part] if part in raw else raw["train"]
        longest = data.max_length if schema.limited else NO_LIMIT
        writers = {side: _Writer(folder, f"{part}-{side}", fields[side], longest, raw_sides[side]) for side in sides}
        worked = _split_pieces(schema, raw_sides, rows[part])
        examples = _encode(*worked, writers, drop=schema.limited and part == "train" and data.too_long == "drop")
        whole, sources = compute_digests(raw_sides, rows[part], sides), compute_digests(raw_sides, rows[part], [first])
        splits[part] = SplitReport(
            examples=examples,
            dropped=len(rows[part]) - examples,
            repeated=len(whole) - len(np.unique(whole)),
            overlap=0 if part == "train" else int(np.isin(sources, trained).sum()),
            sides={side: writer.finish() for side, writer in writers.items()},
        )
    if not splits["train"].examples:
        raise DataError(f"every training example is longer than data.max_length = {data.max_length} tokens")
    previews = _preview(schema, raw["train"], rows["train"], fields)
    for spooled in folder.glob("raw-*"):
        spooled.unlink()
    report = DataReport(
        rows_read=read,
        skipped=skipped.report(),
        splits=splits,
        vocabulary={side: len(field) for side, field in fields.items()},
        notes=list(skipped.unique_notes()),
        warnings=list(find_warnings(schema, raw, rows, splits)),
    )
    return PreprocessedDataset(fields, report, previews)


def _preview(schema: Schema, raw: Mapping[str, Side], rows: Rows, fields: Mapping[str, FittedField]) -> list[Preview]:
    """Some training examples, evenly over all of them."""
    raw, rows, _ = _split_pieces(schema, raw, rows)
    chosen = rows[np.linspace(0, len(rows), min(PREVIEWED, len(rows)), endpoint=False).astype(np.int64)]
    longest = schema.data.max_length if schema.limited else NO_LIMIT
    columns = [take_raws(raw[side], chosen) for side in fields]
    return [preview_example(example, fields, longest) for example in zip(*columns, strict=True)]


# --- reading ----------------------------------------------------------------------------------------------------


def _spool(examples: Iterable[Example], schema: Schema, folder: Path, part: str, note: Note) -> dict[str, Side]:
    """Write all rows to disk as they are read."""
    spools: dict[str, _Spool] = {}
    rows = noted = 0
    for batch in _make_batches(examples):
        names = [*schema.sides, *(schema.with_keys().keys if part == "train" else ())]
        for side, raws in zip(names, zip(*batch, strict=True), strict=True):
            if side not in spools:
                spools[side] = _Spool(folder, f"raw-{part}-{side}", raws[0])
            spools[side].append(raws)
        rows += len(batch)
        if rows // NOTED_EVERY > noted:
            noted = rows // NOTED_EVERY
            note(f"reading {part}: {format_count(rows, 'row')}")
    if not spools:
        raise DataError(f"there are no examples for {part}")
    return {side: spool.finish() for side, spool in spools.items()}


class _Spool:
    """One side of the rows of a part on its way to the disk; the first row says what they are like."""

    def __init__(self, folder: Path, name: str, first: Raw) -> None:
        self._folder, self._name, self._text = folder, name, isinstance(first, str)
        dtype, shape = (np.dtype(np.uint8), ()) if self._text else (first.dtype, first.shape[1:])
        self._dtype, self._shape = dtype, shape
        self._writer = FlatWriter(folder, name, dtype, shape)

    def append(self, raws: Sequence[Raw]) -> None:
        if self._text:
            flat = Texts.of(raws)
            starts = np.fromiter((not isinstance(raw, TextContinuation) for raw in raws), np.bool_, len(raws))
            self._writer.append(flat.bytes, flat.lengths, starts)
            return
        for raw in raws:
            if raw.shape[1:] != self._shape or raw.dtype != self._dtype:
                raise DataError(f"an example has elements of shape {raw.shape[1:]}, but the first one {self._shape}")
        arrays = Ragged.stack(raws)
        self._writer.append(arrays.values, arrays.lengths)

    def finish(self) -> Side:
        self._writer.finish()
        return (Texts if self._text else Ragged)(*open_flat(self._folder, self._name))


def _make_batches(examples: Iterable[Example]) -> Iterator[list[Example]]:
    batch: list[Example] = []
    size = 0
    for example in examples:
        batch.append(example)
        size += 64 + sum(len(raw) if isinstance(raw, str) else raw.nbytes for raw in example)
        if size >= SPOOLED:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


# --- learning ------------------------------------------------------------------------------------------------


def _learn(schema: Schema, raw: Mapping[str, Side], rows: Rows, note: Note) -> dict[str, FittedField]:
    """Fields of the training rows, and of nothing else."""

    raw, rows, starts = _split_pieces(schema, raw, rows)

    def iterate_raws(*sides: str) -> Iterator[Raw]:
        for side in sides:
            for piece in split_rows(measure_rows({side: raw[side]}, rows)):
                yield from take_raws(raw[side], rows[piece])
                release_sides(raw)

    learned: dict[str, FittedField] = {}
    for name, side in schema.sides.items():
        together = schema.shared if name in schema.shared else (name,)
        if name not in learned:
            note(f"fitting the {' and '.join(together)} ({side.field.kind}) on {format_count(starts.sum(), 'example')}")
            learned |= dict.fromkeys(together, side.field.fit(iterate_raws(*together), schema.data))
            if len(learned[name]) > MOST_SYMBOLS:  # which would not be read again
                size = (
                    f"the training examples' {' and '.join(together)} has "
                    f"{format_count(len(learned[name]), 'different symbol')}"
                )
                raise DataError(
                    f"{size}, but a vocabulary has at most {MOST_SYMBOLS:,}: leave out rare ones "
                    "with data.vocabulary_size "
                    "or data.min_count"
                )
    return learned


def _split_pieces(
    schema: Schema, raw: Mapping[str, Side], rows: Rows
) -> tuple[Mapping[str, Side], Rows, NDArray[np.bool_]]:
    """The rows as they are worked on, and which of them begin one: a long text comes in pieces."""
    if not schema.ordered:
        return raw, rows, np.ones(len(rows), dtype=np.bool_)
    [(name, texts)] = raw.items()
    assert isinstance(texts, Texts), "only texts are cut"
    cut, starts = split_into_pieces(texts, rows)
    return {name: cut}, np.arange(len(starts)), starts


# --- encoding ---------------------------------------------------------------------------------------------------


class _Writer:
    """One side of a split while it is written and counted."""

    def __init__(self, folder: Path, name: str, field: FittedField, longest: int, like: Side) -> None:
        self._field, self._longest_allowed = field, longest
        self._ids = FlatWriter(folder, f"{name}-ids", field.dtype, field.shape)
        self._texts = FlatWriter(folder, f"{name}-texts", np.dtype(np.uint8)) if isinstance(like, Texts) else None
        self._counts = np.zeros(len(field), dtype=np.int64)
        self._whole = self._cut = self._dropped = self._unknown = self._missing = self._numbers = 0

    def encode(self, raws: Sequence[Raw], starts: NDArray[np.bool_]) -> tuple[Ragged, Texts | None]:
        """Ids, and the texts that a perfect model would write; what goes on begins with the blank it was cut at."""
        normal = [self._field.normalize(raw) for raw in raws]
        for number in np.flatnonzero(~starts).tolist():
            if normal[number] and not normal[number][0].isspace():
                normal[number] = f" {normal[number]}"
        return self._field.encode_many(normal), Texts.of(normal) if self._texts else None

    def too_long(self, ids: Ragged) -> Rows:
        return np.flatnonzero(ids.lengths > self._longest_allowed)

    def write(self, ids: Ragged, texts: Texts | None, kept: Rows, starts: NDArray[np.bool_]) -> None:
        """Append the kept rows, their ids cut to the greatest length."""
        self._whole = max(self._whole, int(ids.lengths.max(initial=0)))
        long = self.too_long(ids)
        cut = np.isin(long, kept, assume_unique=True).sum()
        self._cut += int(cut)
        self._dropped += len(long) - int(cut)
        ids = ids.take(kept).cut(self._longest_allowed)
        self._count(ids.values)
        self._ids.append(ids.values, ids.lengths, starts[kept])
        if self._texts and texts:
            texts = texts.take(kept)
            self._texts.append(texts.bytes, texts.lengths, starts[kept])

    def _count(self, values: NDArray[Any]) -> None:
        if values.dtype.kind == "f":
            self._missing += int(np.isnan(values).sum())
            self._numbers += values.size
        elif values.ndim == 1:
            whole = not len(values) or (values.min() >= 0 and values.max() < len(self._field))
            known = values if whole else values[(values >= 0) & (values < len(self._field))]
            counts = np.bincount(known, minlength=len(self._field))
            self._counts += counts
            unknown = self._field.unknown
            self._unknown += (
                0 if unknown is None else int(counts[unknown] if unknown >= 0 else (values == unknown).sum())
            )
            self._unknown += int(counts[len(counts) - self._field.suffixes :].sum())  # unknown, and read by an ending

    def finish(self) -> SideReport:
        self._ids.finish()
        if self._texts:
            self._texts.finish()
        lengths = np.diff(self._ids.offsets)
        tokens, longest = int(lengths.sum()), int(lengths.max(initial=0))
        return SideReport(
            tokens=tokens,
            longest=longest,
            mean=tokens / max(1, len(lengths)),
            cut=self._cut,
            dropped=self._dropped,
            unknown_share=self._unknown / max(1, tokens),
            missing_share=self._missing / max(1, self._numbers),
            lengths=compute_histogram(lengths),
            balance=self._field.balance(self._counts),
            whole=max(self._whole, longest),  # what came in pieces is longer than each
        )


def _encode(
    raw: Mapping[str, Side], rows: Rows, starts: NDArray[np.bool_], writers: Mapping[str, _Writer], drop: bool
) -> int:
    """Write the ids and texts of a part and say how many. What is too long is dropped, or else cut."""
    examples = 0
    for piece in split_rows(measure_rows(raw, rows)):
        raws = {side: take_raws(raw[side], rows[piece]) for side in writers}
        encoded = {side: writer.encode(raws[side], starts[piece]) for side, writer in writers.items()}
        release_sides(raw)
        kept = np.arange(len(piece))
        if drop:
            long = [writer.too_long(encoded[side][0]) for side, writer in writers.items()]
            kept = np.setdiff1d(kept, np.concatenate(long))
        for side, writer in writers.items():
            writer.write(*encoded[side], kept, starts[piece])
        examples += int(starts[piece][kept].sum())
    return examples


def compute_histogram(lengths: Rows) -> dict[str, int]:
    """How many are how long, in about a dozen equal ranges; nothing where all are of one length."""
    if not len(lengths) or lengths.min() == lengths.max():
        return {}
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // BARS)
    counts = np.bincount((lengths - low) // width)
    starts = [low + width * number for number in range(len(counts))]
    names = [f"{start}" if width == 1 else f"{start}–{start + width - 1}" for start in starts]
    return dict(zip(names, counts.tolist(), strict=True))
