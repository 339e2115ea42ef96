"""Reading step by step: what a session keeps between two pieces of its input, and what it answers after each.

A state is never changed, only replaced, so that a fork is another name for the same one.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..data.pretokenized import BETWEEN, elements
from ..data.vocabulary import NEVER_WRITTEN
from ..errors import DataError, RunError
from ..layers.state import Leaf, State
from ..runs.json_output import answers_json
from ..tasks.text_writer import LISTED
from ..training.tensors import parse_tensors, tensor_bytes
from .models import Model


@dataclass(frozen=True)
class Kept:
    """What a session remembers."""

    read: int = 0  # elements so far
    state: State = None
    rows: tuple[tuple[float, ...], ...] = ()  # the last rows of a series


class Reader(Protocol):
    def start(self) -> Kept: ...

    def read(self, kept: Kept, piece: Any) -> tuple[dict[str, Any], Kept]:
        """The answer after one piece more, and what is kept then."""


def reader_of(model: Model) -> Reader:
    """How a run reads step by step; refused where what comes later changes what was answered before."""
    if model.writes_text:
        return TextReader(model)
    if model.task in READERS:
        return READERS[model.task](model)
    raise RunError(
        f"{model.name}: its task is {model.task}, which answers a whole input; step by step go language, tag, forecast"
    )


class TextReader:
    """Reads a text, and tells what comes next: the same as `predict` of all of it."""

    def __init__(self, model: Model) -> None:
        self.model, self.task = model.generator, model.language
        self.shape, self.writer = self.task.shape, self.task.writer

    def start(self) -> Kept:
        return Kept(0, self.model.initial_state(1))

    @torch.no_grad()
    def read(self, kept: Kept, piece: Any) -> tuple[dict[str, Any], Kept]:
        task = self.task
        piece = task.accept_input(piece)
        ids: list[int] = task.target.encode(piece).tolist()
        if not kept.read and (ids or not self.shape.one_text):
            ids = self.writer.opening(piece)  # a document has a beginning, which can be read by itself
        if not ids:
            raise DataError("a piece of a text is empty: there is nothing to read")
        if not self.shape.carries and kept.read + len(ids) > self.shape.window:
            raise DataError(
                f"this session would have read {kept.read + len(ids)} tokens, but the model's attention sees "
                f"{self.shape.window} (train.bptt_window): begin another"
            )
        logits, state = self.model(torch.tensor([ids]), kept.state)
        logs, places = logits[0, -1].double().log_softmax(-1).topk(min(LISTED, len(task.target) - len(NEVER_WRITTEN)))
        found = zip(task.target.names(places.tolist()), logs.tolist(), logs.exp().tolist(), strict=True)
        told = [{"output": name, "score": log, "probability": chance} for name, log, chance in found]
        return {"predictions": told}, Kept(kept.read + len(ids), state)


class TagReader:
    """A tag for every element as it comes: the same as `predict` of all of them."""

    def __init__(self, model: Model) -> None:
        self.task, self.shape, name = model.run.task, model.run.task.shape, model.name
        self.model: Any = model.run.model
        if not self.model.encoder.layer.causal:
            raise RunError(f"{name}: reads in both directions, so a tag depends on words that are still to come")
        if self.model.head.outcome == "path":
            raise RunError(f"{name}: chooses all tags together (model.crf), so a tag depends on those still to come")
        if self.task.source.depends_on_past(self.task.recipe.model):
            raise RunError(f"{name}: reads for how long a value has been missing, which takes the whole series")

    def start(self) -> Kept:
        return Kept(0, self.model.encoder.layer.initial_state(1))

    @torch.no_grad()
    def read(self, kept: Kept, piece: Any) -> tuple[dict[str, Any], Kept]:
        task, model, tags, score = self.task, self.model, list[str](), 0.0
        rest = elements(task.accept_input(piece)) if task.reads_text else list(task.accept_input(piece))
        if not rest:
            raise DataError("a piece holds no element: there is nothing to tag")
        while rest:
            if kept.read and kept.read % self.shape.most == 0:  # where `predict` begins a new piece, too
                kept = replace(self.start(), read=kept.read)
            room = self.shape.most - kept.read % self.shape.most
            some, rest = rest[:room], rest[room:]
            raw = BETWEEN.join(some) + BETWEEN if task.reads_text else np.asarray(some, np.float32)
            inputs, mask = task.source.collate(task.source.encode_many([raw]), [0], task.recipe.model)
            features, state = model.encoder.layer(model.embed(inputs), kept.state, mask)
            expected = model.head(features)
            logs, places = expected[0].double().log_softmax(-1).max(-1)
            tags += [task.target.names[place] for place in places.tolist()]
            score += float(logs.sum())
            kept = Kept(kept.read + len(some), state)
        return answers_json([self.shape.prediction(piece, tags, score)]), kept


class SeriesReader:
    """The forecast after every row, from as many of the last rows as the model reads: that of `predict`."""

    def __init__(self, model: Model) -> None:
        self.model, self.task = model, model.run.task
        self.context = self.task.recipe.data.context

    def start(self) -> Kept:
        return Kept()

    def read(self, kept: Kept, piece: Any) -> tuple[dict[str, Any], Kept]:
        rows = np.asarray(self.model.read_input(piece), np.float64)
        columns = len(self.task.fields["series"].columns)
        rows = rows.reshape(-1, 1) if rows.ndim == 1 and columns == 1 else np.atleast_2d(rows)
        if rows.ndim != 2 or rows.shape[1] != columns or not len(rows):
            shape = " × ".join(map(str, rows.shape))
            raise DataError(
                f"a piece of the series is an array of {shape}, but rows of {columns} numbers were expected"
            )
        recent = (*kept.rows, *map(tuple, rows.tolist()))[-self.context :]
        kept = Kept(kept.read + len(rows), None, recent)
        if len(recent) < self.context:
            return {"predictions": [], "waits_for": self.context - len(recent)}, kept
        found = self.model.run.predict(np.array(recent))
        return answers_json(found), kept


READERS: dict[str, Callable[[Model], Reader]] = {"tag": TagReader, "forecast": SeriesReader}

# --- saving --------------------------------------------------------------------------------------------------------

SAVED = Path("the saved session")


def pack(kept: Kept) -> dict[str, Any]:
    """What is kept as JSON, which `unpack` takes."""
    tensors = {str(number): tensor.clone() for number, tensor in enumerate(leaves(kept.state))}
    state = base64.b64encode(tensor_bytes(tensors)).decode() if tensors else ""
    rows = [[None if value != value else value for value in row] for row in kept.rows]
    return {"read": kept.read, "state": state, "rows": rows}


def unpack(reader: Reader, saved: dict[str, Any]) -> Kept:
    """What was packed, of the shapes that this reader's states have; it is anybody's, and holds nothing but numbers."""
    first = reader.start()
    try:
        data = base64.b64decode(saved["state"], validate=True)
        rows = tuple(tuple(np.asarray(row, np.float64).reshape(-1).tolist()) for row in saved["rows"])
    except (binascii.Error, TypeError, ValueError):
        raise DataError("the saved session is not as it was given") from None
    tensors, wanted = parse_tensors(data, SAVED) if data else {}, leaves(first.state)
    found = [tensors.get(str(number)) for number in range(len(wanted))]
    pairs = list(zip(found, wanted, strict=True))
    fits = all(one is not None and (one.shape, one.dtype) == (own.shape, own.dtype) for one, own in pairs)
    if not fits or len(tensors) != len(wanted) or (rows and first.state is not None):
        raise DataError("the saved session is not one of this run: its state is of another shape")
    if isinstance(reader, SeriesReader) and rows:
        _, kept = reader.read(first, [list(row) for row in rows])  # which checks them
        return replace(kept, read=saved["read"])
    return Kept(saved["read"], rebuilt(first.state, iter(found)))


def leaves(state: State) -> list[Tensor]:
    """The tensors of a state, in order; refused where it holds what grows with all that was read."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, Leaf):
        raise RunError("this model keeps all that it has read: its sessions can be forked, but not saved")
    return [tensor for branch in state or () for tensor in leaves(branch)]


def rebuilt(state: State, tensors: Any) -> State:
    """A state of the same form, with other tensors."""
    if isinstance(state, Tensor):
        return next(tensors)
    if not isinstance(state, tuple):
        return state
    branches = [rebuilt(branch, tensors) for branch in state]
    return type(state)(*branches) if hasattr(state, "_fields") else tuple(branches)
