"""From the data settings of a recipe to arrays that training reads.

What was prepared is kept in a cache whose key is the content of the files and every setting: it is found there the next
time, mapped into memory, and never stale. Knows no network and no training.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqloom.data import cache as store
from seqloom.data.codec import Codec, Raw
from seqloom.data.codecs import read_codec
from seqloom.data.datasets import PARTS, Origin, origin_of
from seqloom.data.layout import Layout
from seqloom.data.preprocess import Tell, build
from seqloom.data.ragged import Ragged, Texts
from seqloom.data.report import DataReport
from seqloom.errors import DataError, RunError

FORMAT = 3  # of the cache's entries; another number, other keys


@dataclass(frozen=True, eq=False)
class Split:
    """Examples: each side as ids without start or end, and as it is read: texts, or the same numbers.

    The texts are normalized as the codecs do it: what a perfect model would write. Where examples are scored, long
    ones have their ids cut, but never their texts.
    """

    ids: dict[str, Ragged]
    raws: dict[str, Any]  # Texts or Ragged

    def __len__(self) -> int:
        return len(next(iter(self.ids.values())))

    def examples(self) -> list[tuple[Raw, ...]]:
        return list(zip(*self.raws.values(), strict=True))


@dataclass(frozen=True, eq=False)
class Prepared:
    codecs: dict[str, Codec]  # by side
    splits: dict[str, Split]  # train, validation, test
    report: DataReport
    fingerprint: str  # of the content and all settings, but not of the files' names


def silent(line: str) -> None:
    """Tell nobody."""


def prepare(layout: Layout, cache: Path | None = None, tell: Tell = silent, examples: object = None) -> Prepared:
    """The examples of a recipe, or those given from Python, ready to train on; from the cache if it has them.

    `tell` gets a line of progress now and then.
    """
    origin = origin_of(layout, examples)
    fingerprint = _fingerprint(layout, origin)
    where = cache or store.cache_folder()
    name = hashlib.sha256("\0".join([fingerprint, *origin.names]).encode("utf-8", "surrogateescape")).hexdigest()
    entry = where / name
    there = os.path.exists(entry)
    if (found := _load(entry, layout)) is not None:
        return found
    if there:
        store.discard(entry)  # damaged
    return _prepare(layout, origin, fingerprint, entry, tell)


def _prepare(layout: Layout, origin: Origin, fingerprint: str, entry: Path, tell: Tell) -> Prepared:
    with store.building(entry) as folder:
        codecs, report = build(layout, origin, folder, tell)
        if _fingerprint(layout, origin) != fingerprint:
            raise DataError("the data changed while it was being prepared; try again when it is complete")
        saved = {side: codec.to_json() for side, codec in codecs.items()}
        store.write_index(folder, {"fingerprint": fingerprint, "codecs": saved, "report": report.to_json()})
        # Before the folder takes its name or goes: what is mapped stays, whatever becomes of the files.
        prepared = _load(folder, layout)
    assert prepared is not None
    return prepared


def _fingerprint(layout: Layout, origin: Origin) -> str:
    settings = layout.data.model_dump(mode="json", exclude={*PARTS, "format"})
    whole = {"format": FORMAT, "task": layout.task, "settings": settings, "content": origin.content()}
    whole |= {"known": layout.known} if layout.known else {}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _load(entry: Path, layout: Layout) -> Prepared | None:
    """What is in an entry of the cache; None if it is not there or damaged."""
    index = store.read_index(entry)
    if index is None:
        return None
    try:
        codecs = {side: read_codec(index["codecs"][side]) for side in layout.sides}
        splits = {part: _load_split(entry, part, tuple(layout.sides)) for part in PARTS}
        return Prepared(codecs, splits, DataReport.from_json(index["report"]), index["fingerprint"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RunError):
        return None


def _load_split(entry: Path, part: str, sides: tuple[str, ...]) -> Split:
    ids = {side: Ragged(*store.open_flat(entry, f"{part}-{side}-ids")) for side in sides}
    raws: dict[str, Any] = dict(ids)
    for side in sides:
        if (entry / f"{part}-{side}-texts.npy").exists():
            raws[side] = Texts(*store.open_flat(entry, f"{part}-{side}-texts"))
    return Split(ids, raws)
