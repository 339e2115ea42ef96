"""Sessions that read piece by piece: what they answer as JSON, and how what they keep is saved."""

import base64
import binascii
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..errors import DataError, RunError
from ..layers.state import Leaf, State
from ..runs.following import ReaderState, make_piece_reader
from ..runs.json_output import make_answers_json
from ..training.tensors import parse_tensors, tensor_bytes
from .models import Model


class Reader:
    """A run that reads piece by piece."""

    def __init__(self, model: Model) -> None:
        self.model, self.reader = model, make_piece_reader(model.run, model.name)

    def start(self) -> ReaderState:
        return self.reader.start()

    def read(self, state: ReaderState, piece: Any) -> tuple[dict[str, Any], ReaderState]:
        """The answer after one piece more, and what is kept then."""
        predictions, state = self.reader.read(state, piece if self.model.reads_text else self.model.read_input(piece))
        missing = self.reader.count_missing(state)
        return make_answers_json(predictions) | ({"waits_for": missing} if missing else {}), state


# --- saving --------------------------------------------------------------------------------------------------------

SAVED = Path("the saved session")


def pack(reader_state: ReaderState) -> dict[str, Any]:
    """The state of a session as JSON, for `unpack`."""
    tensors = {str(number): tensor.clone() for number, tensor in enumerate(list_leaves(reader_state.state))}
    state = base64.b64encode(tensor_bytes(tensors)).decode() if tensors else ""
    rows = [[None if value != value else value for value in row] for row in reader_state.rows]
    return {"read": reader_state.read, "state": state, "rows": rows}


def unpack(reader: Reader, saved: dict[str, Any]) -> ReaderState:
    """What was packed, of the shapes that this reader's states have; it is anybody's, and holds nothing but numbers."""
    first = reader.start()
    try:
        data = base64.b64decode(saved["state"], validate=True)
        rows = tuple(tuple(np.asarray(row, np.float64).reshape(-1).tolist()) for row in saved["rows"])
    except (binascii.Error, TypeError, ValueError):
        raise DataError("the saved session is not as it was given") from None
    tensors, expected = parse_tensors(data, SAVED) if data else {}, list_leaves(first.state)
    loaded = [tensors.get(str(number)) for number in range(len(expected))]
    pairs = list(zip(loaded, expected, strict=True))
    fits = all(one is not None and (one.shape, one.dtype) == (own.shape, own.dtype) for one, own in pairs)
    if not fits or len(tensors) != len(expected) or (rows and first.state is not None):
        raise DataError("the saved session is not one of this run: its state is of another shape")
    if rows:
        _, state = reader.read(first, [list(row) for row in rows])  # which checks them
        return replace(state, read=saved["read"])
    return ReaderState(saved["read"], rebuild(first.state, iter(loaded)))


def list_leaves(state: State) -> list[Tensor]:
    """The tensors of a state, in order; refused where it holds what grows with all that was read."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, Leaf):
        raise RunError("the state of this model grows with what it has read: its sessions can be forked, but not saved")
    return [tensor for branch in state or () for tensor in list_leaves(branch)]


def rebuild(state: State, tensors: Any) -> State:
    """A state of the same form, with other tensors."""
    if isinstance(state, Tensor):
        return next(tensors)
    if not isinstance(state, tuple):
        return state
    branches = [rebuild(branch, tensors) for branch in state]
    return type(state)(*branches) if hasattr(state, "_fields") else tuple(branches)
