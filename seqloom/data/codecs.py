"""All codecs there are, read back from JSON."""

from collections.abc import Callable
from typing import Any

from seqloom.data.codec import Codec
from seqloom.data.frames import Frames
from seqloom.data.image_codebook import Mosaic
from seqloom.data.labels import Labels, LabelSets, Rating
from seqloom.data.numbers import Numbers
from seqloom.data.pictures import Pictures
from seqloom.data.pretokenized import Listed, Spelled, TagLists
from seqloom.data.tokenizers import read_tokenizer

CODECS: dict[str, Callable[[dict[str, Any]], Codec]] = {
    codec.kind: codec.read
    for codec in (Labels, LabelSets, Rating, Listed, Spelled, TagLists, Numbers, Pictures, Mosaic, Frames)
}


def read_codec(found: object) -> Codec:
    """The codec that `to_json` described; RunError in one sentence if a file says something else."""
    kind = found.get("kind") if isinstance(found, dict) else None
    if isinstance(found, dict) and isinstance(kind, str) and kind in CODECS:
        return CODECS[kind](found)
    return read_tokenizer(found)
