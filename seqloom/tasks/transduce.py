"""One sequence of tokens into another: translation, spelling to sound, dates. Knows texts, not files."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import build
from ..baselines import most_frequent, transduction
from ..data import batches
from ..data.prepare import Prepared, Split, prepare
from ..data.ragged import Ragged
from ..data.readers import Reading, Skipped, read_rows
from ..data.tokenizers import Tokenizer, read_tokenizer
from ..data.vocabulary import END, START
from ..errors import DataError, RecipeError, RunError
from ..layers.padding import mask_of
from ..metrics import Score, bleu, chrf, exact_match, token_error_rate
from ..models import Batch, Generator, Objective, Writing
from ..recipe import Recipe
from ..search import Hypothesis, beam, greedy
from .base import Prediction, Scored, Task, Tell

Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], Score]
QUICK = 256  # validation examples that are written out each time
ROOM = 16384  # padded source tokens that are read at once when nothing is trained


class Transduce(Task):
    def __init__(self, recipe: Recipe, source: Tokenizer, target: Tokenizer, usual: str) -> None:
        self.recipe, self.source, self.target = recipe, source, target
        self.usual = usual  # the most frequent target of the training part, a baseline

    @classmethod
    def prepare(cls, recipe: Recipe, tell: Tell) -> tuple[Self, Prepared]:
        prepared = prepare(recipe.data, tell=tell)
        train = prepared.splits["train"]
        most = check_positions(recipe, train)
        if not recipe.search.max_length:
            recipe = recipe.changed("search.max_length", min(2 * int(train.target.lengths.max()) + 10, most))
        return cls(recipe, *prepared.tokenizers, most_frequent(train.targets)), prepared

    @classmethod
    def restore(cls, recipe: Recipe, saved: dict[str, Any]) -> Self:
        if set(saved) != {"source", "target", "usual"} or not isinstance(saved["usual"], str):
            raise RunError("task.json is not that of a transduction: it must hold source, target and usual")
        return cls(recipe, read_tokenizer(saved["source"]), read_tokenizer(saved["target"]), saved["usual"])

    def saved(self) -> dict[str, Any]:
        return {"source": self.source.to_json(), "target": self.target.to_json(), "usual": self.usual}

    def vocabularies(self) -> dict[str, int]:
        return {"source": len(self.source), "target": len(self.target)}

    def build(self) -> Generator:
        model, smoothing = self.recipe.model, self.recipe.train.smoothing
        return build.generator(model, len(self.target), len(self.source), smoothing, self.cell)

    def objective(self, model: Generator) -> Objective:
        return Writing(model)

    def order(self, prepared: Prepared, epoch: int) -> Sequence[Any]:
        lengths = sides(prepared.splits["train"])
        return batches.order(lengths, self.recipe.train.batch, self.recipe.train.seed, epoch)

    def padded_share(self, prepared: Prepared) -> float:
        return batches.padded_share(sides(prepared.splits["train"]), self.order(prepared, 0))

    def batch(self, prepared: Prepared, rows: Any, split: str = "train") -> Batch:
        part = prepared.splits[split]
        return paired(part.source, part.target, rows)

    @torch.no_grad()
    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        part, objective = prepared.splits["validation"], self.objective(model)
        total, count = 0.0, 0
        for rows in batches.sequential(sides(part), ROOM):
            loss, tokens, _ = objective(paired(part.source, part.target, rows))
            total, count = total + loss.item(), count + int(tokens)
        quick = range(min(QUICK, len(part.sources)))
        written = self.predict(model, [part.sources[row] for row in quick], 1)
        right = sum(best.output == part.targets[row] for row, (best, *_) in zip(quick, written, strict=True))
        return {"loss": total / max(count, 1), "exact": right / max(len(quick), 1)}

    def read(self, files: Sequence[str]) -> list[tuple[str, str]]:
        rows = read_rows(files, Reading.of(self.recipe.data), Skipped())
        return [(self.source.normalise(row.values[0]), self.target.normalise(row.values[1])) for row in rows]

    def score(self, model: Generator, pairs: Sequence[tuple[str, str]]) -> dict[str, Scored]:
        """A source that stands on several lines has several right answers."""
        answers: dict[str, list[str]] = {}
        for source, target in pairs:
            answers.setdefault(source, []).append(target)
        sources, references = list(answers), list(answers.values())
        written = self.predict(model, sources, self.recipe.search.width)
        outputs = [best.output for best, *_ in written]
        rivals = transduction(sources, self.usual)
        return {
            name: Scored(
                measure(outputs, references),
                {rival: measure(given, references).value for rival, given in rivals.items()},
            )
            for name, measure in self.measures().items()
        }

    def measures(self) -> dict[str, Measure]:
        """Errors are counted in characters where the model writes characters, otherwise in words."""
        data = self.recipe.data
        cut = list if data.target_tokens == "characters" else str.split
        return {
            "exact": exact_match,
            "token error rate": partial(token_error_rate, tokens=cut),
            "BLEU": partial(bleu, lowercase=data.lowercase),
            "chrF": partial(chrf, lowercase=data.lowercase),
        }

    @torch.no_grad()
    def predict(self, model: Generator, inputs: Sequence[str], width: int) -> list[list[Prediction]]:
        encoded, reads = self.source.encode_many(list(inputs)), self.recipe.model.side("encoder")
        if (
            reads.kind == "transformer"
            and reads.positions == "learnt"
            and encoded.lengths.max(initial=0) > reads.longest
        ):
            raise DataError(
                f"an input has {encoded.lengths.max()} tokens, but this model knows {reads.longest} positions"
            )
        answers: list[list[Prediction]] = [[] for _ in inputs]
        for rows in batches.sequential(encoded.lengths, ROOM // max(width, 1)):
            for row, found in zip(rows, self.write(model, encoded, rows, width), strict=True):
                answers[row] = [self.read_out(hypothesis) for hypothesis in found]
        return answers

    def write(self, model: Generator, encoded: Ragged, rows: Any, width: int) -> Iterator[list[Hypothesis]]:
        search = self.recipe.search
        state = model.start(len(rows), *padded(encoded, rows))
        last, step = torch.full((len(rows), 1), START), model.stepper()
        if width == 1:
            return ([one] for one in greedy(step, last, state, steps=search.max_length, end=END))
        return iter(
            beam(
                step,
                last,
                state,
                width=width,
                steps=search.max_length,
                end=END,
                length_penalty=search.length_penalty,
            )
        )

    def read_out(self, found: Hypothesis) -> Prediction:
        return Prediction(self.target.decode(found.tokens), found.score, self.target.names(found.tokens), found.logs)

    def example(self, source: str, target: str) -> tuple[Batch, list[str], list[str]]:
        """One pair as a batch, with the names of what is read and of what is written."""
        one = self.source.encode_many([source]), self.target.encode_many([target])
        return paired(*one, [0]), self.source.names(one[0][0]), [*self.target.names(one[1][0]), "<eos>"]


def check_positions(recipe: Recipe, train: Split) -> int:
    """Refuse learnt positions that do not reach as far as the examples; the most that a decoder can write."""
    reads, writes = recipe.model.side("encoder"), recipe.model.side("decoder")
    parts = (("encoder", reads, train.source.lengths), ("decoder", writes, train.target.lengths + 1))
    for name, body, lengths in parts:
        if body.kind == "transformer" and body.positions == "learnt" and lengths.max() > body.longest:
            raise RecipeError(
                f"model.{name}.longest is {body.longest}, but a training example has {lengths.max()} elements there"
            )
    return writes.longest if writes.kind == "transformer" and writes.positions == "learnt" else 10**6


def sides(part: Split) -> NDArray[np.int64]:
    """The lengths that a batch is made of: what is read, and what is written with its end. (N, 2)"""
    return np.stack([part.source.lengths, part.target.lengths + 1], 1)


def padded(sequences: Ragged, rows: Any) -> tuple[Tensor, Tensor]:
    """Sequences side by side with their mask; at least one wide, so that an empty one can be read as nothing."""
    tokens, lengths = map(torch.from_numpy, sequences.padded(rows))
    if not tokens.shape[1]:
        tokens = tokens.new_zeros(len(tokens), 1)
    return tokens, mask_of(lengths, tokens.shape[1])


def paired(source: Ragged, target: Ragged, rows: Any) -> Batch:
    """The start goes in front of what the decoder reads, the end behind what it is to tell (SPEC D7)."""
    tokens, lengths = map(torch.from_numpy, target.padded(rows))
    framed = tokens.new_zeros(len(tokens), tokens.shape[1] + 2)
    framed[:, 0], framed[:, 1:-1] = START, tokens
    framed[torch.arange(len(tokens)), lengths + 1] = END
    return Batch.shifted(framed, mask_of(lengths + 2, framed.shape[1]), padded(source, rows))
