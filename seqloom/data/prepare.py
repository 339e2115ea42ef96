"""From the data settings of a recipe to arrays that training reads.

What was prepared is kept in a cache whose key is the content of the files and every setting: it is found there the next
time, mapped into memory, and never stale. Knows no network and no training.
"""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.data import cache as store
from seqloom.data.datasets import PARTS, Dataset, open_dataset
from seqloom.data.preprocess import Note, preprocess_dataset
from seqloom.data.preview import Preview, SidePreview
from seqloom.data.ragged import Ragged, Texts
from seqloom.data.schema import Raw, Schema
from seqloom.errors import DataError, RunError
from seqloom.schemas import DataReport

FEWEST = 50  # examples of a sample: of fewer, a score says little
FORMAT = 7  # of the cache's entries; another number, other keys


@dataclass(frozen=True, eq=False)
class Split:
    """Examples: each side as ids without start or end, and as it is read: texts, or the same numbers.

    The texts are normalized as the fields do it: what a perfect model would write. Where examples are scored, long
    ones have their ids cut, but never their texts.
    """

    ids: dict[str, Ragged]
    raws: dict[str, Any]  # Texts or Ragged

    def __len__(self) -> int:
        return len(next(iter(self.ids.values())))

    def examples(self) -> list[tuple[Raw, ...]]:
        return list(zip(*self.raws.values(), strict=True))

    def sample(self, tokens: int) -> "Split":
        """Examples of about so many tokens together, from all over the split: files are often sorted. At least FEWEST,
        unless there is one side only, as a text has it: then the beginnings of a few."""
        alone, total = len(self.ids) == 1, sum(int(ids.offsets[-1]) for ids in self.ids.values())
        count = min(len(self), max(1 if alone else FEWEST, len(self) * tokens // max(total, 1)))
        if total <= tokens or (count == len(self) and not alone):
            return self
        rows = np.linspace(0, len(self), count, endpoint=False).astype(np.int64)
        ids = {side: ids.take(rows) for side, ids in self.ids.items()}
        if alone:
            ids = {side: one.cut(max(2, tokens // count)) for side, one in ids.items()}
        return Split(ids, {side: raws.take(rows) for side, raws in self.raws.items()})


@dataclass(frozen=True, eq=False)
class PreparedData:
    fields: dict[str, Any]  # by side
    splits: dict[str, Split]  # train, validation, test
    report: DataReport
    fingerprint: str  # of the content and all settings, but not of the files' names
    examples: list[Preview] = field(default_factory=list)  # some of the training part, as they were read

    def sample_validation(self, tokens: int) -> "PreparedData":
        """The same with no more of the validation split than about so many tokens."""
        return replace(self, splits={**self.splits, "validation": self.splits["validation"].sample(tokens)})


def ignore_note(line: str) -> None:
    """Discard a note."""


def prepare(
    schema: Schema, cache: Path | None = None, note: Note = ignore_note, examples: object = None
) -> PreparedData:
    """The examples of a recipe, or those given from Python, ready to train on; from the cache if it has them.

    `note` gets a line of progress now and then.
    """
    dataset = open_dataset(schema, examples)
    fingerprint = _compute_fingerprint(schema, dataset)
    where = cache or store.find_cache_folder()
    name = hashlib.sha256("\0".join([fingerprint, *dataset.names]).encode("utf-8", "surrogateescape")).hexdigest()
    entry = where / name
    there = os.path.exists(entry)
    if (prepared := _load(entry, schema)) is not None:
        return prepared
    if there:
        store.discard(entry)  # damaged
    return _prepare(schema, dataset, fingerprint, entry, note)


def _prepare(schema: Schema, dataset: Dataset, fingerprint: str, entry: Path, note: Note) -> PreparedData:
    with store.open_entry(entry) as folder:
        built = preprocess_dataset(schema, dataset, folder, note)
        if _compute_fingerprint(schema, dataset) != fingerprint:
            raise DataError("the data changed while it was being prepared; try again when it is complete")
        store.write_index(
            folder,
            {
                "fingerprint": fingerprint,
                "fields": {side: fitted.to_json() for side, fitted in built.fields.items()},
                "report": built.report.model_dump(),
                "examples": [{side: asdict(one) for side, one in example.items()} for example in built.examples],
            },
        )
        # Before the folder takes its name or goes: what is mapped stays, whatever becomes of the files.
        prepared = _load(folder, schema)
    assert prepared is not None
    return prepared


def _compute_fingerprint(schema: Schema, dataset: Dataset) -> str:
    settings = schema.data.model_dump(mode="json", exclude={*PARTS, "format"})
    kinds = {name: side.field.kind for name, side in schema.sides.items()}
    whole = {"format": FORMAT, "task": schema.task, "fields": kinds, "settings": settings, "content": dataset.content()}
    whole |= {"known": schema.known} if schema.known else {}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _load(entry: Path, schema: Schema) -> PreparedData | None:
    """What is in an entry of the cache; None if it is not there or damaged."""
    index = store.read_index(entry)
    if index is None:
        return None
    try:
        fields = schema.read_fields(index["fields"])
        splits = {part: _load_split(entry, part, tuple(schema.sides)) for part in PARTS}
        examples = [{side: SidePreview(**one) for side, one in example.items()} for example in index["examples"]]
        return PreparedData(fields, splits, DataReport.model_validate(index["report"]), index["fingerprint"], examples)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RunError):
        return None


def _load_split(entry: Path, part: str, sides: tuple[str, ...]) -> Split:
    ids = {side: Ragged(*store.open_flat(entry, f"{part}-{side}-ids")) for side in sides}
    raws: dict[str, Any] = dict(ids)
    for side in sides:
        if (entry / f"{part}-{side}-texts.npy").exists():
            raws[side] = Texts(*store.open_flat(entry, f"{part}-{side}-texts"))
    return Split(ids, raws)
