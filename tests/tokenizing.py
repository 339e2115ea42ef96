"""Fields of text for tests, by the name of their tokenizer."""

from types import SimpleNamespace

from seqloom.data.schema import read_field
from seqloom.fields import TEXTS, Text


def learn_tokenizer(kind: str, texts, *, lowercase=False, max_size=0, min_count=1, breaks=False) -> Text:
    settings = SimpleNamespace(
        lowercase=lowercase, vocabulary_size=max_size, min_count=min_count, line_breaks=breaks, characters=0
    )
    return TEXTS[kind].fit(texts, settings)


def read_tokenizer(values) -> Text:
    kind = values.get("kind") if isinstance(values, dict) else None
    return read_field("source", TEXTS[kind] if isinstance(kind, str) and kind in TEXTS else TEXTS["words"], values)
