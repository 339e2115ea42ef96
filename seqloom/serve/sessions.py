"""Sequences that are fed step by step, with Triton's names: sequence_id, sequence_start, sequence_end.

Only the batcher's thread comes here, so nothing is locked.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from ..runs.following import ReaderState
from .limits import Limits, Refused
from .metrics import Metrics
from .models import Model
from .readers import Reader, pack, unpack

Key = tuple[str, str]  # the run, and what the client calls the session


@dataclass
class Session:
    state: ReaderState
    fingerprint: str  # of the weights that have read it
    used: float


class Sessions:
    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits = limits
        self._open: OrderedDict[Key, Session] = OrderedDict()  # the longest unused first
        metrics.gauges["seqloom_sessions_open"] = "Sessions that can be fed.", lambda: len(self._open)

    def feed(self, model: Model, name: str, pieces: list[Any], start: bool, end: bool) -> list[dict[str, Any]]:
        """The answers after each of these pieces. What is refused leaves the session as it was."""
        reader, key = Reader(model), (model.name, name)
        if start:
            self._make_room(key)
            state = reader.start()
        else:
            state = self._get(model, name).state
        answers = []
        for piece in pieces:
            answer, state = reader.read(state, piece)
            answers.append(answer | {"sequence_id": name, "read": state.read})
        if end:
            self._open.pop(key, None)
        else:
            self._keep(model, name, state)
        return answers

    def save(self, model: Model, name: str) -> dict[str, Any]:
        session = self._get(model, name)
        return {"run": model.name, "weights": session.fingerprint, **pack(session.state)}

    def restore(self, model: Model, name: str, saved: dict[str, Any]) -> dict[str, Any]:
        if saved["weights"] != model.fingerprint:
            raise Refused(409, "session", "the session was saved with other weights than this run has now")
        state = unpack(Reader(model), saved)
        self._make_room((model.name, name))
        self._keep(model, name, state)
        return {"sequence_id": name, "read": state.read}

    def fork(self, model: Model, name: str, into: str) -> dict[str, Any]:
        session = self._get(model, name)
        self._make_room((model.name, into))
        self._keep(model, into, session.state)
        return {"sequence_id": into, "read": session.state.read}

    def end(self, model: Model, name: str) -> dict[str, Any]:
        session = self._get(model, name)
        del self._open[model.name, name]
        return {"sequence_id": name, "read": session.state.read}

    def _get(self, model: Model, name: str) -> Session:
        self._expire()
        session = self._open.get((model.name, name))
        if session is None:
            raise Refused(
                404, "session", f"there is no session {name[:80]!r}, or it has expired: begin with sequence_start"
            )
        if session.fingerprint != model.fingerprint:
            del self._open[model.name, name]
            raise Refused(409, "session", "the run has been trained anew since this session began: begin another")
        return session

    def _keep(self, model: Model, name: str, state: ReaderState) -> None:
        self._open[model.name, name] = Session(state, model.fingerprint, time.monotonic())
        self._open.move_to_end((model.name, name))

    def _make_room(self, key: Key) -> None:
        self._expire()
        if key not in self._open and len(self._open) >= self.limits.sessions:
            oldest = next(iter(self._open.values())).used + self.limits.session_seconds - time.monotonic()
            sentence = f"{len(self._open)} sessions are open, and at most {self.limits.sessions} may be"
            raise Refused(429, "sessions", sentence, retry_after=max(1, int(oldest) + 1))

    def _expire(self) -> None:
        before = time.monotonic() - self.limits.session_seconds
        while self._open and next(iter(self._open.values())).used < before:
            self._open.popitem(last=False)
