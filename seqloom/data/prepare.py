"""From the data settings of a recipe to arrays that training reads.

What was prepared is kept in a cache whose key is the content of the files and every setting: it is found there the next
time, mapped into memory, and never stale. Knows no network and no training.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from seqloom.data import stores
from seqloom.data.building import SIDES, Tell, build
from seqloom.data.origins import PARTS, Origin, origin_of
from seqloom.data.ragged import Ragged, Texts
from seqloom.data.report import DataReport
from seqloom.data.tokenizers import Tokenizers, read_tokenizer
from seqloom.errors import DataError, RunError
from seqloom.recipe import Data

FORMAT = 1  # of the cache's entries; another number, other keys


@dataclass(frozen=True, eq=False)
class Split:
    """Examples: ids of source and target without start or end, and the texts they stand for.

    The texts are normalised as the tokenizers do it: what a perfect model would write. Where examples are scored, long
    ones have their ids cut, but never their texts.
    """

    source: Ragged
    target: Ragged
    sources: Texts
    targets: Texts

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, eq=False)
class Prepared:
    tokenizers: Tokenizers
    splits: dict[str, Split]  # train, validation, test
    report: DataReport
    fingerprint: str  # of the content and all settings, but not of the files' names


def prepare(data: Data, cache: Path | None = None, tell: Tell = lambda line: None) -> Prepared:
    """The examples of a recipe, ready to train on; from the cache if they were prepared before.

    `tell` gets a line of progress now and then.
    """
    origin = origin_of(data)
    fingerprint = _fingerprint(data, origin)
    where = cache or stores.cache_folder()
    name = hashlib.sha256("\0".join([fingerprint, *origin.names]).encode("utf-8", "surrogateescape")).hexdigest()
    entry = where / name
    there = entry.exists()
    if (found := _load(entry)) is not None:
        return found
    if there:
        stores.discard(entry)  # damaged
    return _prepare(data, origin, fingerprint, entry, tell)


def _prepare(data: Data, origin: Origin, fingerprint: str, entry: Path, tell: Tell) -> Prepared:
    with stores.building(entry) as folder:
        tokenizers, report = build(data, origin, folder, tell)
        if _fingerprint(data, origin) != fingerprint:
            raise DataError("the data changed while it was being prepared; try again when it is complete")
        saved = {side: getattr(tokenizers, side).to_json() for side in SIDES}
        stores.write_index(folder, {"fingerprint": fingerprint, "tokenizers": saved, "report": report.to_json()})
        # Before the folder takes its name or goes: what is mapped stays, whatever becomes of the files.
        prepared = _load(folder)
    assert prepared is not None
    return prepared


def _fingerprint(data: Data, origin: Origin) -> str:
    settings = data.model_dump(mode="json", exclude={*PARTS, "format"})
    whole = {"format": FORMAT, "settings": settings, "content": origin.content()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _load(entry: Path) -> Prepared | None:
    """What is in an entry of the cache; None if it is not there or damaged."""
    index = stores.read_index(entry)
    if index is None:
        return None
    try:
        tokenizers = Tokenizers(*(read_tokenizer(index["tokenizers"][side]) for side in SIDES))
        splits = {part: _load_split(entry, part) for part in PARTS}
        return Prepared(tokenizers, splits, DataReport.from_json(index["report"]), index["fingerprint"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RunError):
        return None


def _load_split(entry: Path, part: str) -> Split:
    source, target = (Ragged(*stores.open_flat(entry, f"{part}-{side}-ids")) for side in SIDES)
    sources, targets = (Texts(*stores.open_flat(entry, f"{part}-{side}-texts")) for side in SIDES)
    return Split(source, target, sources, targets)
