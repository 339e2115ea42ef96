"""Reading, dividing, learning and encoding: what happens to the data once, before the first training on it.

Everything goes through files in pieces, so the memory it takes does not grow with the data. Knows where examples come
from and where they are written only as an `Origin` and a folder.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqloom.data.origins import PARTS, Origin, Pair
from seqloom.data.ragged import Ragged, Rows, Texts, spans
from seqloom.data.readers import Skipped
from seqloom.data.report import DataReport, SideReport, SkippedReport, SplitReport
from seqloom.data.splits import draw
from seqloom.data.stores import FlatWriter, open_flat
from seqloom.data.tokenizers import Tokenizer, Tokenizers, learn_tokenizer
from seqloom.data.vocabulary import UNKNOWN
from seqloom.errors import DataError
from seqloom.recipe import Data

SIDES = ("source", "target")
SPOOLED = 1 << 22  # characters in memory before they go to the disk
TOLD_EVERY = 250_000  # rows

Tell = Callable[[str], object]


class _Raw(NamedTuple):
    """Texts as read: both sides of the same rows."""

    source: Texts
    target: Texts

    def sizes(self, rows: Rows) -> Rows:
        return self.source.lengths[rows] + self.target.lengths[rows]


def build(data: Data, origin: Origin, folder: Path, tell: Tell) -> tuple[Tokenizers, DataReport]:
    """Write ids and texts of every part into `folder`, as `PART-SIDE-ids` and `PART-SIDE-texts`."""
    skipped = Skipped()
    raw = {part: _spool(origin.read(part, skipped), folder, part, tell) for part in origin.parts}
    rows = _divide(data, {part: len(texts.source) for part, texts in raw.items()})
    tokenizers = _learn(data, raw["train"], rows["train"], tell)
    splits = {}
    for part in PARTS:
        tell(f"encoding {part}: {len(rows[part]):,} examples")
        texts = raw[part] if part in raw else raw["train"]
        sides = [_Side(folder, f"{part}-{side}", getattr(tokenizers, side), data.max_length) for side in SIDES]
        splits[part] = _encode(texts, rows[part], sides, drop=part == "train" and data.too_long == "drop")
    if not splits["train"].examples:
        raise DataError(f"every training example is longer than data.max_length = {data.max_length} tokens")
    for spooled in folder.glob("raw-*"):
        spooled.unlink()
    return tokenizers, DataReport(
        rows_read=sum(len(texts.source) for texts in raw.values()) + skipped.counts.total(),
        skipped={reason: SkippedReport(rows, skipped.first[reason]) for reason, rows in skipped.counts.items()},
        splits=splits,
        vocabulary={"source": len(tokenizers.source), "target": len(tokenizers.target)},
    )


def _spool(pairs: Iterable[Pair], folder: Path, part: str, tell: Tell) -> _Raw:
    """Put the texts of all rows on the disk, as they are read."""
    writers = [FlatWriter(folder, f"raw-{part}-{side}", np.dtype(np.uint8)) for side in SIDES]
    rows = told = 0
    for batch in _batched(pairs):
        for writer, texts in zip(writers, zip(*batch, strict=True), strict=True):
            flat = Texts.of(texts)
            writer.append(flat.bytes, flat.lengths)
        rows += len(batch)
        if rows // TOLD_EVERY > told:
            told = rows // TOLD_EVERY
            tell(f"reading {part}: {rows:,} rows")
    for writer in writers:
        writer.finish()
    source, target = (Texts(*open_flat(folder, f"raw-{part}-{side}")) for side in SIDES)
    return _Raw(source, target)


def _batched(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    batch: list[Pair] = []
    size = 0
    for pair in pairs:
        batch.append(pair)
        size += len(pair[0]) + len(pair[1]) + 64
        if size >= SPOOLED:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _divide(data: Data, counts: dict[str, int]) -> dict[str, Rows]:
    """The rows of each part: all of a file's own, or drawn from those of the training file."""
    wanted = {"validation": data.validation_share, "test": data.test_share}
    shares = {part: share for part, share in wanted.items() if part not in counts}
    drawn = draw(counts["train"], shares, data.split_seed)
    return {part: drawn[part] if part in drawn else np.arange(counts[part]) for part in PARTS}


def _learn(data: Data, raw: _Raw, rows: Rows, tell: Tell) -> Tokenizers:
    """Tokenizers of the training rows, and of nothing else."""
    learnt = []
    for side, texts, kind in zip(SIDES, raw, (data.source_tokens, data.target_tokens), strict=True):
        tell(f"learning the {side}'s {kind} from {len(rows):,} examples")
        seen = (text for piece in spans(texts.lengths[rows]) for text in texts.take(rows[piece]).to_list())
        learnt.append(
            learn_tokenizer(kind, seen, lowercase=data.lowercase, max_size=data.max_size, min_count=data.min_count)
        )
    return Tokenizers(*learnt)


class _Side:
    """One side of a split while it is written and counted."""

    def __init__(self, folder: Path, name: str, tokenizer: Tokenizer, max_length: int) -> None:
        self._tokenizer = tokenizer
        self._max_length = max_length
        narrow = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.int32)
        self._ids = FlatWriter(folder, f"{name}-ids", narrow)
        self._texts = FlatWriter(folder, f"{name}-texts", np.dtype(np.uint8))
        self._examples = self._tokens = self._longest = self._cut = self._dropped = self._unknown = 0

    def encode(self, texts: Sequence[str]) -> tuple[Ragged, Texts]:
        """Ids, and the texts that a perfect model would write."""
        normal = [self._tokenizer.normalise(text) for text in texts]
        return self._tokenizer.encode_many(normal), Texts.of(normal)

    def too_long(self, ids: Ragged) -> Rows:
        return np.flatnonzero(ids.lengths > self._max_length)

    def write(self, ids: Ragged, texts: Texts, kept: Rows) -> None:
        """Append the kept rows, their ids cut to the greatest length."""
        long = self.too_long(ids)
        cut = np.isin(long, kept, assume_unique=True).sum()
        self._cut += int(cut)
        self._dropped += len(long) - int(cut)
        ids, texts = ids.take(kept).cut(self._max_length), texts.take(kept)
        self._examples += len(ids)
        self._tokens += len(ids.values)
        self._longest = max(self._longest, int(ids.lengths.max(initial=0)))
        self._unknown += int((ids.values == UNKNOWN).sum())
        self._ids.append(ids.values, ids.lengths)
        self._texts.append(texts.bytes, texts.lengths)

    def finish(self) -> SideReport:
        self._ids.finish()
        self._texts.finish()
        mean, unknown = self._tokens / max(1, self._examples), self._unknown / max(1, self._tokens)
        return SideReport(self._tokens, self._longest, mean, self._cut, self._dropped, unknown)


def _encode(raw: _Raw, rows: Rows, sides: Sequence[_Side], drop: bool) -> SplitReport:
    """Write the ids and texts of a part. What is too long is dropped, or else cut."""
    examples = 0
    for piece in spans(raw.sizes(rows)):
        encoded = [side.encode(texts.take(rows[piece]).to_list()) for side, texts in zip(sides, raw, strict=True)]
        kept = np.arange(len(piece))
        if drop:
            long = [side.too_long(ids) for side, (ids, _) in zip(sides, encoded, strict=True)]
            kept = np.setdiff1d(kept, np.concatenate(long))
        for side, (ids, texts) in zip(sides, encoded, strict=True):
            side.write(ids, texts, kept)
        examples += len(kept)
    source, target = (side.finish() for side in sides)
    return SplitReport(examples, len(rows) - examples, source, target)
