"""A run as the server asks it: JSON in, JSON out. All that `serve` knows of tasks and models stands here and in
`readers`; it is only called in the batcher's thread.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import DataError, RunError
from ..look import Look
from ..models import Generator
from ..runs.folder import WEIGHTS
from ..runs.json_output import make_prediction_json
from ..runs.run import load
from ..tasks.decoding_options import Rules
from ..tasks.task import Task
from ..training.manifests import read_manifest
from .inputs import format_input, read_input
from .writing import Token, Writing

LOOKS = 4  # inputs whose measures are kept
T = TypeVar("T")


class Model:
    """A loaded run."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.run = name, load(folder, device="cpu")
        self.fingerprint = read_manifest(folder)[WEIGHTS][-1]
        self._looked: dict[str, Look] = {}
        self._remembered: dict[Any, Any] = {}

    @property
    def task(self) -> str:
        return str(self.run.recipe.task)

    @property
    def writes_on(self) -> bool:
        """Whether it continues a beginning; others answer an input."""
        return self.run.task.writer is not None

    @property
    def answers_in_text(self) -> bool:
        """Whether its answers are searched for token by token."""
        return bool(self.run.task.shape.answers_in_text)

    @property
    def reads_text(self) -> bool:
        return self.run.task.shape.reads_text

    # --- answers ---

    def predict(self, inputs: Sequence[Any], beam: int | None) -> list[dict[str, Any]]:
        """Each input with its best answers: the JSON of `seqloom predict --json`."""
        raws = [self.read_input(one) for one in inputs]
        return self._make_answers(inputs, self.run.predict_many(raws, beam))

    def answer(self, inputs: Sequence[Any], how: Writing) -> list[dict[str, Any]]:
        """The same, searched for in a way of one's own, of a task that writes its answers."""
        raws = [self.read_input(one) for one in inputs]
        return self._make_answers(inputs, self.run.answer(raws, how.decoding(self.run.recipe.search.beam_size)))

    def _make_answers(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[dict[str, Any]]:
        pairs = zip(inputs, results, strict=True)
        return [make_prediction_json(format_input(one), answers, answers.unread) for one, answers in pairs]

    def read_input(self, raw: Any) -> Any:
        """An input from JSON."""
        return read_input(raw, self.reads_text)

    # --- texts ---

    def generate(self, prompt: str, how: Writing) -> Iterator[Token]:
        """Texts written on from a beginning, token by token, side by side."""
        sampling = how.sampling
        generation = self.run.generate(
            prompt,
            length=how.max_tokens,
            temperature=sampling.temperature,
            top_k=how.top_k,
            top_p=how.top_p,
            min_p=how.min_p,
            seed=how.seed,
            count=how.count,
            alternatives=how.alternatives,
            rules=Rules(stop=how.stop),
        )
        for one in generation.steps():
            others = dict(one.alternatives) if how.alternatives else None
            yield Token(one.number, one.text, one.name, one.log, one.finish, others)

    @property
    def language(self) -> Task:
        """The task, if it writes on texts of tokens."""
        if not self.writes_text:
            raise RunError(f"{self.name} is a run whose task is {self.task}, which does not write on texts of tokens")
        return self.run.task

    @property
    def writes_text(self) -> bool:
        return self.writes_on and bool(self.run.task.target.is_text)

    @property
    def generator(self) -> Generator:
        return self.run.model

    def count_tokens(self, prompt: str) -> int:
        """Tokens of a beginning; characters where it is no text of tokens."""
        task = self.run.task
        return len(task.target.encode(prompt)) if self.writes_text else len(prompt)

    def read_tokens(self, tokens: Sequence[int]) -> str:
        """The text of tokens by number."""
        target = self.language.target
        if wrong := [token for token in tokens if not 0 <= token < len(target)]:
            raise DataError(f"there is no token {wrong[0]}: those of {self.name} are 0 to {len(target) - 1}")
        return target.decode(tokens)

    # --- what is inside ---

    def look(self, raw: Any, answer: str | None) -> Look:
        """What happens inside while it answers; the last ones are kept, since each is asked for many views."""
        key = json.dumps([raw, answer])
        if key not in self._looked:
            self._looked[key] = self.run.look(self._append_forecast(self.read_input(raw)), answer)
            for old in list(self._looked)[:-LOOKS]:
                del self._looked[old]
        return self._looked[key]

    def _append_forecast(self, raw: Any) -> Any:
        """A series as it is looked into, with what follows it: here, what the run itself forecasts."""
        if self.reads_text:
            return raw
        ahead = getattr(self.run.predict(raw)[0], "values", None)
        rows = raw.reshape(-1, 1) if raw.ndim == 1 else raw
        if ahead is None or rows.ndim != 2 or rows.shape[1] != len(ahead):
            return raw
        return np.concatenate([rows[-self.run.recipe.data.context :], np.transpose(list(ahead.values()))])

    def remember(self, measure: Callable[["Model"], T]) -> T:
        """What takes long and never changes for this run, measured once."""
        if measure not in self._remembered:
            self._remembered[measure] = measure(self)
        return self._remembered[measure]
