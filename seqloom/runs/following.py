"""Reading an input piece by piece: what is kept between two pieces, and what is answered after each.

The answers are those of `predict` on all that was read. A state is never changed, only replaced, so that a fork is
another name for the same one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from ..arguments import describe_value
from ..arrays import Doubles
from ..data.pretokenized import SEPARATOR, split_elements
from ..errors import DataError, RunError
from ..layers.state import State
from ..models import device_of
from ..tasks.results import Predictions
from ..tasks.text_writer import LISTED, rank_next

if TYPE_CHECKING:
    from .run import Run


@dataclass(frozen=True)
class ReaderState:
    """What is remembered of the pieces so far."""

    read: int = 0  # elements
    state: State = None
    rows: tuple[tuple[float, ...], ...] = ()  # the last rows of a series


class PieceReader(Protocol):
    def start(self) -> ReaderState: ...

    def read(self, reader_state: ReaderState, piece: Any) -> tuple[Predictions, ReaderState]:
        """The answer after one piece more, and what is kept then."""

    def count_missing(self, reader_state: ReaderState) -> int:
        """How many elements are still to come before there is an answer."""


class Follower:
    """A run that is fed piece by piece."""

    def __init__(self, run: "Run") -> None:
        self._reader = make_piece_reader(run, str(run.folder))
        self._state = self._reader.start()

    def read(self, piece: Any) -> Predictions:
        """What is answered after one piece more; nothing while it is too little for an answer."""
        predictions, self._state = self._reader.read(self._state, piece)
        return predictions

    def restart(self) -> None:
        """Begin another sequence."""
        self._state = self._reader.start()

    @property
    def missing(self) -> int:
        """How many elements are still to come before there is an answer."""
        return self._reader.count_missing(self._state)


def make_piece_reader(run: "Run", name: str) -> PieceReader:
    """How a run reads piece by piece; refused where what comes later changes what was answered before."""
    task = run.recipe.task
    if run.task.writer is not None and run.task.target.is_text:
        return TextReader(run)
    if task in READERS:
        return READERS[task](run, name)
    raise RunError(
        f"{name}: its task is {task}, which needs a whole input; language, tag and forecast can follow a stream"
    )


class TextReader:
    """Reads a text, and says what comes next."""

    def __init__(self, run: "Run") -> None:
        self.model, self.task = run.model, run.task
        self.shape, self.writer = self.task.shape, self.task.writer

    def start(self) -> ReaderState:
        return ReaderState(0, self.model.initial_state(1))

    def count_missing(self, reader_state: ReaderState) -> int:
        return 0

    @torch.no_grad()
    def read(self, reader_state: ReaderState, piece: Any) -> tuple[Predictions, ReaderState]:
        task = self.task
        piece = task.shape.accept_input(piece)
        ids: list[int] = task.target.encode(piece).tolist()
        if not reader_state.read and (ids or not self.shape.one_text):
            ids = self.writer.encode_opening(piece)  # a document has a beginning, which can be read by itself
        if not ids:
            raise DataError("a piece of a text is empty: there is nothing to read")
        if not self.shape.carries and reader_state.read + len(ids) > self.shape.window:
            raise DataError(
                f"this session would have read {reader_state.read + len(ids)} tokens, but the model's attention sees "
                f"{self.shape.window} (train.bptt_window): begin another"
            )
        logits, state = self.model(torch.tensor([ids], device=device_of(self.model)), reader_state.state)
        predictions = Predictions(rank_next(task.target, logits[0, -1], LISTED))
        return predictions, ReaderState(reader_state.read + len(ids), state)


class TagReader:
    """A tag for every element as it comes."""

    def __init__(self, run: "Run", name: str) -> None:
        self.task, self.shape = run.task, run.task.shape
        self.model: Any = run.model
        if not self.model.encoder.layer.causal:
            raise RunError(f"{name}: reads in both directions, so a tag depends on words that are still to come")
        if self.model.head.outcome == "path":
            raise RunError(f"{name}: chooses all tags together (model.crf), so a tag depends on those still to come")
        if self.task.source.depends_on_past(self.task.recipe.model):
            raise RunError(f"{name}: reads for how long a value has been missing, which takes the whole series")

    def start(self) -> ReaderState:
        return ReaderState(0, self.model.encoder.layer.initial_state(1))

    def count_missing(self, reader_state: ReaderState) -> int:
        return 0

    @torch.no_grad()
    def read(self, reader_state: ReaderState, piece: Any) -> tuple[Predictions, ReaderState]:
        task, model, tags, score = self.task, self.model, list[str](), 0.0
        piece = task.shape.accept_input(piece)
        rest: Sequence[Any] = split_elements(piece) if task.shape.reads_text else list(piece)
        if not rest:
            raise DataError("a piece holds no element: there is nothing to tag")
        while rest:
            if reader_state.read and reader_state.read % self.shape.most == 0:  # as `predict` begins a new piece
                reader_state = replace(self.start(), read=reader_state.read)
            room = self.shape.most - reader_state.read % self.shape.most
            some, rest = rest[:room], rest[room:]
            raw = SEPARATOR.join(some) + SEPARATOR if task.shape.reads_text else np.asarray(some, np.float32)
            read = task.source.collate(task.source.encode_many([raw]), [0], task.recipe.model)
            inputs, mask = (part.to(device_of(model)) for part in read)
            features, state = model.encoder.layer(model.embed(inputs), reader_state.state, mask)
            logs, places = model.head(features)[0].double().log_softmax(-1).max(-1)
            tags += [task.target.names[place] for place in places.tolist()]
            score += float(logs.sum())
            reader_state = ReaderState(reader_state.read + len(some), state)
        return Predictions([self.shape.prediction(piece, tags, score)]), reader_state


class SeriesReader:
    """The forecast after every row, from as many of the last rows as the model reads."""

    def __init__(self, run: "Run", name: str) -> None:
        self.run, self.context = run, run.recipe.data.context

    def start(self) -> ReaderState:
        return ReaderState()

    def count_missing(self, reader_state: ReaderState) -> int:
        return self.context - len(reader_state.rows)

    def read(self, reader_state: ReaderState, piece: Any) -> tuple[Predictions, ReaderState]:
        rows, columns = to_rows(piece), len(self.run.task.fields["series"].columns)
        rows = rows.reshape(-1, 1) if rows.ndim == 1 and columns == 1 else np.atleast_2d(rows)
        if rows.ndim != 2 or rows.shape[1] != columns or not len(rows):
            shape = " × ".join(map(str, rows.shape))
            raise DataError(
                f"a piece of the series is an array of {shape}, but rows of {columns} numbers were expected"
            )
        recent = (*reader_state.rows, *map(tuple, rows.tolist()))[-self.context :]
        reader_state = ReaderState(reader_state.read + len(rows), None, recent)
        predictions = Predictions([]) if self.count_missing(reader_state) else self.run.predict(np.array(recent))
        return predictions, reader_state


def to_rows(piece: Any) -> Doubles:
    try:
        return np.asarray(piece, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"a piece of the series is {describe_value(piece)}, but numbers were expected") from None


READERS: dict[str, Callable[["Run", str], PieceReader]] = {"tag": TagReader, "forecast": SeriesReader}
