"""One sequence into another: translation, spelling to sound, dates, sounds to letters. Knows texts, not files."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_seq2seq
from ..arguments import described, text
from ..baselines import copy_and_most_frequent, most_frequent
from ..config.recipe import Recipe
from ..data.prepare import Prepared
from ..data.schema import Schema, Side
from ..errors import DataError
from ..fields import Label, source_side, text_side
from ..layers.embeddings import TokenEmbedding
from ..metrics import bleu, chrf, exact_match, token_error_rate
from ..models import Generator
from ..schemas import Usual
from .base import Shown
from .rows import Encoded
from .scoring import Measure
from .tells import Tells


class Seq2Seq(Tells):
    learned = Usual

    @property
    def tags(self) -> tuple[str, ...]:
        """The languages or styles that the target may be asked for in."""
        return cast(Label, self.fields["tag"]).names if "tag" in self.fields else ()

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        sides = {"source": source_side(data), "target": text_side((data.target,), data.target_tokenizer)}
        if data.tag:
            sides["tag"] = Side((data.tag,), Label)
        return Schema("seq2seq", data, sides, shared=("source", "target") if data.shared else ())

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        usual = most_frequent(prepared.splits["train"].raws["target"])
        return cls.settled(recipe, prepared), {"usual": usual}

    def build(self) -> Generator:
        if not self.tags:
            return super().build()
        model, smoothing = self.recipe.model, self.recipe.train.label_smoothing
        symbols = len(self.source) + len(self.tags)
        first = TokenEmbedding(symbols, model.embedding, model.side("encoder").dropout)
        return build_seq2seq(model, len(self.target), first, smoothing, self.cell)

    def read_lengths(self, encoded: Encoded) -> NDArray[np.int64]:
        return super().read_lengths(encoded) + bool(self.tags)

    def about(self, encoded: Encoded, rows: Any) -> tuple[Tensor, Tensor]:
        """A tag is one more token in front, numbered after those of the source."""
        tokens, mask = super().about(encoded, rows)
        if not self.tags:
            return tokens, mask
        tags = torch.from_numpy(encoded["tag"].padded(rows)[0]) + len(self.source)
        return torch.cat([tags, tokens], 1), torch.cat([torch.ones_like(mask[:, :1]), mask], 1)

    def input_of(self, example: Sequence[Any]) -> Any:
        """The source, with its tag where there are tags."""
        source, _, *tag = example
        return (source, *tag) if tag else source

    def accepted(self, given: Any) -> Any:
        """The source, or that and a tag."""
        if not isinstance(given, tuple):
            return super().accepted(given)
        if len(given) != 2:
            raise DataError(f"an input is {described(given)}, but a source was expected, or a pair of source and tag")
        return super().accepted(given[0]), text("a tag", given[1])

    def source_of(self, given: Any) -> Any:
        return given[0] if isinstance(given, tuple) else given

    def encode_inputs(self, inputs: Sequence[Any]) -> Encoded:
        """An input is what is read; where there are tags, that and its tag."""
        if not self.tags:
            if any(isinstance(given, tuple) for given in inputs):
                raise DataError("a tag is given, but this model was trained without one (data.tag)")
            return super().encode_inputs(inputs)
        tags = [given[1] if isinstance(given, tuple) else None for given in inputs]
        if unknown := [tag for tag in tags if tag not in self.tags]:
            asked = f"the tag {unknown[0]!r}" if unknown[0] else "no tag"
            raise DataError(f"this model is told what to write: one of {', '.join(self.tags)}, not {asked}")
        return super().encode_inputs([given[0] for given in inputs]) | {"tag": self.fields["tag"].encode_many(tags)}

    def rivals(self, inputs: Sequence[Any]) -> dict[str, list[str]]:
        """Copying is no answer to numbers."""
        found = copy_and_most_frequent(list(map(self.source_of, inputs)), self.facts["usual"])
        return found if self.reads_text else {"most frequent": found["most frequent"]}

    def measures(self) -> dict[str, Measure]:
        """Errors are counted in characters where the model writes characters, otherwise in words."""
        data = self.recipe.data
        cut = list if data.target_tokenizer == "characters" else str.split
        return {
            "exact": exact_match,
            "token error rate": partial(token_error_rate, tokens=cut),
            "BLEU": partial(bleu, lowercase=data.lowercase),
            "chrF": partial(chrf, lowercase=data.lowercase),
        }

    def show(self, given: Any, answer: Any) -> Shown:
        shown = super().show(given, answer)
        return replace(shown, read=[*shown.read, *(f"<{tag}>" for tag in self.tags)])

    def names_of(self, given: Any, encoded: Encoded) -> list[str]:
        told = [f"<{given[1]}>"] if isinstance(given, tuple) else []
        return [*told, *super().names_of(given, encoded)]
