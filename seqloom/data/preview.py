"""Some training examples to be checked by eye: as they were read, and as the model sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seqloom.data.schema import FittedField, Raw

PREVIEWED = 3  # examples
READ_TEXT = 1 << 16  # characters of a text that are read for it
SHOWN_TEXT, SHOWN_ELEMENTS = 2000, 200  # what of it is kept


@dataclass(frozen=True)
class SidePreview:
    """One side of an example; both forms are cut where they are very long."""

    raw: str
    elements: list[str]
    length: int  # elements that the model reads
    whole: int  # elements that there are: more than `length` where data.max_length cuts or drops


Preview = dict[str, SidePreview]  # by side


def preview_example(example: Sequence[Raw], fields: Mapping[str, FittedField], longest: int) -> Preview:
    """An example with one raw value a side; of no side are more than the `longest` elements read."""
    sides = zip(fields.items(), example, strict=True)
    return {side: _preview_side(raw, field, longest) for (side, field), raw in sides}


def _preview_side(raw: Raw, field: FittedField, longest: int) -> SidePreview:
    part: Any = raw[:READ_TEXT] if isinstance(raw, str) else raw
    encoded = field.encode_many([part])[0]
    read = encoded[:longest]
    shown = field.describe_encoded(read[:SHOWN_ELEMENTS])
    return SidePreview(field.describe(part)[:SHOWN_TEXT], shown, len(read), len(encoded))
