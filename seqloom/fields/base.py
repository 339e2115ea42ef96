"""One side of an example, and everything that depends on what that side is.

A field is fitted on the training rows and kept as JSON. It turns raw values into numbers and back, puts them side by
side in a batch, makes the first layer where it is read and the head where it is answered, and names its elements. A
new kind of data is one class: nothing else asks what a side is. Knows no file and no task.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..arguments import explain_no_text
from ..arrays import Integers
from ..config.recipe import Data, Model, Recipe
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..data.streams import Places
from ..data.vocabulary import NEVER_WRITTEN, UNKNOWN
from ..errors import DataError, RecipeError
from ..layers.embeddings import SegmentEmbedding, TokenEmbedding, one_hot_embedding
from ..layers.heads import Categorical, Head
from ..layers.padding import lengths_to_mask
from ..layers.sampled_softmax import SampledSoftmax
from ..search import Constraint, Hypothesis

LARGE = 1 << 13  # symbols from which on the loss is taken in pieces
FIGURES = 8  # of an element's numbers that are shown
LOGITS = 1 << 25  # numbers in such a piece

Rows = Sequence[int] | NDArray[np.int64]
Body = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class Prediction:
    """One answer: what a person reads, and how sure the model is of it; others add what else there is to say."""

    output: str
    score: float  # what answers are ranked by: a log-probability, unless it is said otherwise

    @property
    def exact(self) -> str:
        """What is scored of it: of a number all of its digits, not as it is shown."""
        return self.output

    def measures(self) -> dict[str, float]:
        """How sure the model is of it, from 0 to 1, by name; nothing where there is no such number."""
        return {}

    def get_class_probabilities(self) -> dict[str, float]:
        """The probabilities of classes that it says."""
        return {}

    def rows(self) -> list[dict[str, Any]]:
        """The answer as rows of a table, here one."""
        return [{"prediction": self.output} | self.measures()]

    def __str__(self) -> str:
        return self.output


class Field(ABC):
    """What it knows was learned from training rows and from nothing else."""

    kind: ClassVar[str]
    dtype: np.dtype[Any]  # of the numbers, on disk
    shape: tuple[int, ...] = ()  # of one element
    unknown: int | None = None  # the number of what was never learned
    suffixes: int = 0  # of the last symbols, which are what something unknown is read as
    symbols: tuple[str, ...] = ()  # by number, where numbers stand for symbols
    is_text: ClassVar[bool] = False  # whether a raw value is a text that a person can type
    is_image: ClassVar[bool] = False
    endings: ClassVar[frozenset[str]] = frozenset()  # of the names of files that hold one raw value each
    per_element: ClassVar[bool] = False  # whether a raw value has a part for each element of the side beside it

    # --- learning ---

    @classmethod
    @abstractmethod
    def fit(cls, raws: Iterator[Raw], settings: Data) -> Self:
        """The field of these training values."""

    @classmethod
    @abstractmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The field that `to_json` described; RunError in one sentence if a file says something else."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything learned, with its kind."""

    @abstractmethod
    def __len__(self) -> int:
        """How many different numbers there are, or how many of them make an element."""

    def sizes(self, side: str) -> dict[str, int]:
        """The sizes that a model's first or last layer must have, by name."""
        return {side: len(self)}

    # --- raw values ---

    @classmethod
    def check(cls, raw: Raw) -> str:
        """What is wrong with a raw value, as the end of a sentence; nothing if it can be encoded."""
        return explain_no_text(raw)

    def accept(self, raw: Any) -> Raw:
        """An input from Python as a raw value; DataError says what was expected in place of another."""
        if sentence := self.check(raw):
            raise DataError(f"an input {sentence}")
        return raw

    def is_one(self, raw: Any) -> bool:
        """Whether what was given from Python is one input, and not several."""
        return not self.check(raw)

    @classmethod
    def convert(cls, value: Any) -> Raw:
        """A value from Python as a raw one, here a text; what cannot be converted is given back for `check`."""
        return str(value).strip() if isinstance(value, str | int | float | np.generic) else value

    def normalize(self, raw: Raw) -> Raw:
        """`raw` as a perfect model would give it."""
        return raw

    def check_answer(self, raw: Raw) -> None:  # noqa: B027  # most kinds of fields have none to refuse
        """Refuse what is no answer at all, such as a label that there is not."""

    def describe(self, raw: Raw) -> str:
        """A raw value in a few words."""
        return str(raw)

    def picture(self, raw: Raw) -> NDArray[Any] | None:
        """The pixels (height, width, channels), if the raw value is an image."""
        return None

    def prompt(self, raw: Raw) -> str:
        """A raw value as the text that free generation begins with."""
        return str(raw)

    def parse(self, text: str) -> Raw:
        """The raw value that an answer, or such a text, says."""
        return text

    def beginnings(self, raw: Raw, at_most: int) -> Iterator[tuple[str, str]]:
        """Some beginnings of a raw value that can be written freely, and what comes after each."""
        raise RecipeError(f"what is written is {self.kind}, which has no beginnings")

    # --- numbers ---

    @abstractmethod
    def encode_many(self, raws: Sequence[Raw]) -> Ragged:
        """The numbers of raw values. Of arrays these numbers are all that is kept of an example: what is scaled, is
        scaled in `collate`, or `restore` has to undo it."""

    def encode(self, raw: Raw) -> NDArray[Any]:
        return self.encode_many([raw])[0]

    def restore(self, stored: Raw) -> Raw:
        """The raw value of an example as it is stored beside its numbers."""
        return stored

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        """The elements of one encoded value as a model sees them, each in words or figures."""
        return [format_numbers(element) for element in encoded]

    def find_known_rows(self, encoded: Ragged) -> NDArray[np.int64]:
        """The rows that hold nothing but what was learned: the others have no loss."""
        return np.arange(len(encoded))

    def check_known(self, encoded: Ragged, raws: Sequence[Raw], side: str) -> None:
        """Refuse to train on what a field that was fitted before does not know."""
        known = self.find_known_rows(encoded)
        if len(known) < len(encoded):
            row = int(np.setdiff1d(np.arange(len(encoded)), known)[0])
            raise DataError(f"the training examples have the {side} {raws[row]!r}, which this run has never learned")

    def balance(self, counts: NDArray[np.int64]) -> dict[str, int]:
        """How often each number occurs, by name, where that is worth a look; `counts` is by number."""
        return {}

    # --- where it is read ---

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        """The first layer for it."""
        raise RecipeError(f"what is read is {self.kind}, which has no embedding")

    @property
    def one_hot_size(self) -> int:
        """The features of an element as a one-hot vector; 0 for what are no symbols."""
        return 0

    def features(self, model: Model) -> int:
        """The features of an element behind the first layer."""
        return model.embedding

    def lengths(self, encoded: Ragged, model: Model) -> NDArray[np.int64]:
        """How many elements each row has for the network."""
        return encoded.lengths

    def collate(self, encoded: Ragged, rows: Rows, model: Model) -> tuple[Tensor, Tensor]:
        """Rows side by side as the first layer takes them, with the mask (B, T) of what comes out of it."""
        values, lengths = encoded.pad(rows)
        return pad_to_one(torch.from_numpy(values), lengths)

    def depends_on_past(self, model: Model) -> bool:
        """Whether what is collated of an element depends on the elements before it."""
        return False

    def element_names(self, raw: Raw, encoded: Ragged, model: Model) -> list[str]:
        """The elements of one raw value as a chart names them, here by their number."""
        return [str(number) for number in range(1, int(self.lengths(encoded, model)[0]) + 1)]

    def look_alikes(self) -> Integers:
        """By number, the symbols that a word is read as where it is unknown (symbols, levels), the closest first."""
        return np.full((len(self.symbols), 1), UNKNOWN)

    def load_vectors(self, embedding: nn.Module, file: str) -> float:
        """Begin an embedding with the vectors of a file; the share of the symbols that it has."""
        raise RecipeError(f"data.vectors is set, but the source is {self.kind}: only words have vectors")

    # --- where it is written freely ---

    def places(self, encoded: Ragged) -> Places:
        """What is to be predicted one after the other, and what is read right before that."""
        raise RecipeError(f"what is written is {self.kind}, which cannot be written without a source")

    def place_names(self, encoded: Ragged) -> list[str]:
        """The places of one document as a chart names them."""
        return [str(number) for number in range(1, len(self.places(encoded)) + 1)]

    # --- where it is answered ---

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        """The last layer for it; `weights` of each class, where they are to count differently."""
        raise RecipeError(f"what is answered is {self.kind}, which has no head")

    def targets(self, encoded: Ragged, rows: Rows) -> Tensor:
        """What the head is to predict of these rows."""
        raise RecipeError(f"what is answered is {self.kind}, which has no target")

    def predictions(self, expected: Any, count: int) -> list[Prediction]:
        """The best `count` answers that the output of the head for one row says, best first."""
        raise RecipeError(f"what is answered is {self.kind}, which is not read from a head")

    def error(self, prediction: Prediction, answer: str) -> float:
        """How wrong a prediction is: 0 or 1; of numbers, how far off."""
        return float(prediction.output != answer)


class Limits(NamedTuple):
    """How many symbols are written at most, which of them ends it, and what may not be written."""

    steps: int
    end: int | None
    constraints: Sequence[Constraint]


class SymbolField(Field):
    """Numbers that stand for symbols, which can be written one after the other; the special ones come first."""

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def one_hot_size(self) -> int:
        return len(self)

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        size, dropout = model.embedding, model.side(body).dropout
        if model.one_hot:
            return one_hot_embedding(len(self), size, dropout)
        tokens = TokenEmbedding(len(self), size, dropout, model.scaled_embedding)
        return SegmentEmbedding(tokens, model.segments) if getattr(model, "segments", 0) else tokens

    @property
    def never_written(self) -> tuple[int, ...]:
        """The numbers that have no probability."""
        return NEVER_WRITTEN

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        """The next symbol; where there are many, their logits are never held all at once."""
        chunk, train = LOGITS // len(self) if len(self) > LARGE else 0, recipe.train
        never, bias = self.never_written, recipe.model.output_bias
        head = Categorical(features, len(self), chunk, train.label_smoothing, impossible=never, bias=bias)
        return SampledSoftmax(head, train.sampled_softmax) if train.sampled_softmax else head

    def describe_encoded(self, encoded: NDArray[Any]) -> list[str]:
        return self.names(encoded)

    @abstractmethod
    def names(self, ids: Sequence[int] | NDArray[Any]) -> list[str]:
        """Each symbol as a person sees it in a chart."""

    @abstractmethod
    def decode(self, ids: Any) -> Raw:
        """The raw value of numbers."""

    @abstractmethod
    def limits(self, recipe: Recipe) -> Limits:
        """What bounds a value that is written about a source."""

    @abstractmethod
    def read_hypothesis(self, hypothesis: Hypothesis, stop: Sequence[str] = (), seconds: float = 0.0) -> Prediction:
        """What a search has found, for a person; it may have ended at a `stop` text, and took so many seconds."""

    def meaning(self, stop: Sequence[str]) -> Callable[[Hypothesis], Hashable] | None:
        """What makes two hypotheses of a beam the same one, if not their symbols."""
        return None


def pick_evenly(count: int, at_most: int) -> list[int]:
    """So many places out of `count`, evenly over all of them."""
    step = max(1, -(-count // max(at_most, 1)))
    return list(range(0, count, step))


def pad_to_one(values: Tensor, lengths: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Rows (B, T, ...) and their mask (B, T); at least one element wide, so that an empty row can be read."""
    if not values.shape[1]:
        values = values.new_zeros(len(values), 1, *values.shape[2:])
    return values, lengths_to_mask(torch.from_numpy(lengths), values.shape[1])


def as_array(raw: Raw) -> NDArray[Any] | None:
    """The array of numbers that something is, with gaps where there is None; None if it is none at all."""
    kind = raw.dtype.kind if isinstance(raw, np.ndarray) else "O"
    if isinstance(raw, str | bytes) or kind not in "biufO":
        return None
    try:
        array = np.asarray(raw, np.float64 if kind == "O" else None)
    except (TypeError, ValueError):  # lists of unequal lengths, for one
        return None
    return array if array.size else None


def format_numbers(values: NDArray[Any]) -> str:
    """The first few of these numbers, and their shape where there are more."""
    flat = np.ravel(values)
    shown = " ".join(f"{value:.4g}" for value in flat[:FIGURES].tolist())
    return shown if len(flat) <= FIGURES else f"{shown} … ({' × '.join(map(str, np.shape(values)))})"


class ArrayField(Field):
    """A raw value is an array whose first axis is its length."""

    @classmethod
    def convert(cls, value: Any) -> Raw:
        return value if isinstance(value, np.ndarray) or cls.check(value) else np.asarray(value, dtype=np.float32)

    def describe(self, raw: Raw) -> str:
        return f"{' × '.join(map(str, np.shape(raw)))} numbers"
