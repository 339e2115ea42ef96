"""What a generator is given to write about: a source, and where a recipe has tags, one of them in front."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..arguments import check_text, describe_value
from ..data.ragged import Ragged
from ..errors import DataError
from ..layers.embeddings import TokenEmbedding

if TYPE_CHECKING:
    from .task import Task

Encoded = dict[str, Ragged]


class SourceInput:
    """An input is a source; with tags, a pair of source and tag. A tag is one more token, numbered after the others."""

    def __init__(self, task: "Task") -> None:
        self.field, self.tag, self.model = task.source, task.fields.get("tag"), task.recipe.model

    @property
    def tags(self) -> tuple[str, ...]:
        """The languages or styles that the target may be asked for in."""
        return self.tag.symbols if self.tag is not None else ()

    @property
    def symbols(self) -> tuple[str, ...]:
        """All that can be read, by number."""
        return (*self.field.symbols, *(f"<{tag}>" for tag in self.tags))

    def from_sides(self, source: Any, tag: Any) -> Any:
        return (source, tag) if self.tag is not None else source

    def accept(self, raw: Any) -> Any:
        if not isinstance(raw, tuple):
            return self.field.accept(raw)
        if len(raw) != 2:
            raise DataError(
                f"an input is {describe_value(raw)}, but a source was expected, or a pair of source and tag"
            )
        return self.field.accept(raw[0]), check_text("a tag", raw[1])

    def source_of(self, raw: Any) -> Any:
        return raw[0] if isinstance(raw, tuple) else raw

    def encode(self, inputs: Sequence[Any]) -> Encoded:
        encoded = {"source": self.field.encode_many([self.source_of(raw) for raw in inputs])}
        tags = [raw[1] if isinstance(raw, tuple) else None for raw in inputs]
        if self.tag is None:
            if any(tags):
                raise DataError("a tag is given, but this model was trained without one (data.tag)")
            return encoded
        if unknown := [tag for tag in tags if tag not in self.tags]:
            actual = f"the tag {unknown[0]!r}" if unknown[0] else "no tag"
            raise DataError(f"this model needs a tag: one of {', '.join(self.tags)}, not {actual}")
        return encoded | {"tag": self.tag.encode_many(tags)}

    def embedding(self) -> nn.Module:
        if self.tag is None:
            return self.field.embedding(self.model)
        symbols = len(self.field) + len(self.tags)
        return TokenEmbedding(
            symbols, self.model.embedding, self.model.side("encoder").dropout, self.model.scaled_embedding
        )

    def lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return self.field.lengths(encoded["source"], self.model) + (self.tag is not None)

    def collate(self, encoded: Encoded, rows: Any) -> tuple[Tensor, Tensor]:
        """The sources side by side with their masks."""
        tokens, mask = self.field.collate(encoded["source"], rows, self.model)
        if self.tag is None:
            return tokens, mask
        tags = torch.from_numpy(encoded["tag"].pad(rows)[0]) + len(self.field)
        return torch.cat([tags, tokens], 1), torch.cat([torch.ones_like(mask[:, :1]), mask], 1)

    def element_names(self, raw: Any, encoded: Encoded) -> list[str]:
        front = [f"<{raw[1]}>"] if isinstance(raw, tuple) else []
        return [*front, *self.field.element_names(self.source_of(raw), encoded["source"], self.model)]
