"""All codecs there are, read back from JSON."""

from seqloom.data.codec import Codec
from seqloom.data.frames import Frames
from seqloom.data.labels import Labels, LabelSets, Rating
from seqloom.data.tokenizers import read_tokenizer

CODECS = {codec.kind: codec.read for codec in (Labels, LabelSets, Rating, Frames)}


def read_codec(found: object) -> Codec:
    """The codec that `to_json` described; RunError in one sentence if a file says something else."""
    kind = found.get("kind") if isinstance(found, dict) else None
    if isinstance(found, dict) and isinstance(kind, str) and kind in CODECS:
        return CODECS[kind](found)
    return read_tokenizer(found)
