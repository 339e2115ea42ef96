"""A run as the server asks it: JSON in, JSON out. All that `serve` knows of tasks and models stands here and in
`readers`; it is only called in the batcher's thread.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from ..errors import DataError, RunError
from ..look import Look
from ..models import Generator
from ..runs.folder import WEIGHTS
from ..runs.json_output import make_prediction_json, replace_nonfinite
from ..runs.run import load
from ..search import Sampling
from ..tasks.decoding_options import DecodingOptions, Rules
from ..tasks.task import Task
from ..training.manifests import read_manifest

LOOKS = 4  # inputs whose measures are kept
T = TypeVar("T")


@dataclass(frozen=True)
class Writing:
    """How a text is written, as all protocols say it. A temperature of None searches with a beam instead."""

    max_tokens: int = 0  # 0 is the recipe's
    temperature: float | None = None
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    count: int = 1
    alternatives: int = 0
    stop: tuple[str, ...] = ()
    beam: int | None = None  # the recipe's if not given

    @property
    def sampling(self) -> Sampling:
        """Checked: what contradicts itself is a SearchError."""
        temperature = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.top_p, self.min_p, self.seed)


@dataclass(frozen=True)
class Token:
    """One token of one text: what is certain of its text now, and why the text ends with it, if it does."""

    number: int  # of the text
    text: str
    name: str  # nothing for the end
    log: float | None
    finish: str = ""
    alternatives: dict[str, float] | None = None
    offset: int = 0  # characters before it, where that is known beforehand


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
        return self.run.task.reads_text

    # --- answers ---

    def predict(self, inputs: Sequence[Any], beam: int | None) -> list[dict[str, Any]]:
        """Each input with its best answers: the JSON of `seqloom predict --json`."""
        given = [self.read_input(one) for one in inputs]
        return self._told(inputs, self.run.predict_many(given, beam))

    def answer(self, inputs: Sequence[Any], how: Writing) -> list[dict[str, Any]]:
        """The same, searched for in a way of one's own, of a task that writes its answers."""
        given = [self.read_input(one) for one in inputs]
        drawn = how.sampling if how.temperature else None
        beam = 1 if drawn or how.temperature == 0 or how.alternatives else how.beam
        asked = DecodingOptions(
            beam or self.run.recipe.search.beam_size,
            max_length=how.max_tokens,
            sampling=drawn,
            count=how.count,
            alternatives=how.alternatives,
            rules=Rules(stop=how.stop),
            timeout=0.0,  # the server's own limit holds
        )
        return self._told(inputs, self.run.answer(given, asked))

    def _told(self, inputs: Sequence[Any], found: Sequence[Any]) -> list[dict[str, Any]]:
        told = zip(inputs, found, strict=True)
        return [make_prediction_json(shown(one), answers, answers.unread) for one, answers in told]

    def read_input(self, given: Any) -> Any:
        """An input from JSON: a text, a text with its tag, or nested lists of numbers, where null is a gap.

        A run that reads numbers or images takes a text for the name of a file, so none gets that far.
        """
        pair = isinstance(given, list) and len(given) == 2 and all(isinstance(one, str) for one in given)
        if not self.reads_text and (isinstance(given, str) or pair):
            raise DataError("an input is a text, but this run reads numbers: nested lists of them, where null is a gap")
        if isinstance(given, str):
            return given
        if pair:
            return tuple(given)
        if self.reads_text:
            raise DataError(f"an input is of type {type(given).__name__}, but this run reads text")
        try:
            return np.asarray(given, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DataError("an input is neither a text nor an array of numbers: its rows differ in length") from None

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

    @torch.no_grad()
    def score_prompt(self, prompt: str | Sequence[int], alternatives: int) -> list[Token]:
        """The tokens of a beginning, each with its log-probability after those before it; the first has none.

        Tokens by number are read as they are; in front of a text stands what such a text begins with.
        """
        task = self.language
        if isinstance(prompt, str):
            ids, read = task.target.encode(prompt).tolist(), task.writer.opening(prompt)
        else:
            ids = read = list(prompt)
        shape = task.shape
        if not shape.carries and len(read) > shape.window:
            raise DataError(
                f"the prompt has {len(ids)} tokens, but the probabilities of at most {shape.window} are given: "
                "this model's attention was trained on windows of that length (train.bptt_window)"
            )
        if not ids:
            return []
        model = self.generator
        logits, _ = model(torch.tensor([read]), model.initial_state(1))
        before = logits[0, len(read) - len(ids) :].double().log_softmax(-1)  # place i tells token i + 1
        names, told, offset = task.target.names(ids), [], 0
        for place, (token, name) in enumerate(zip(ids, names, strict=True)):
            text = task.target.decode(ids[: place + 1])[offset:]
            if place == 0:
                told.append(Token(0, text, name, None, "", None, 0))
            else:
                logs = before[place - 1]
                top, which = logs.topk(min(alternatives, len(logs)))
                others = dict(zip(task.target.names(which.tolist()), top.tolist(), strict=True))
                told.append(Token(0, text, name, float(logs[token]), "", others, offset))
            offset += len(text)
        return told

    # --- what is inside ---

    def look(self, given: Any, answer: str | None) -> Look:
        """What happens inside while it answers; the last ones are kept, since each is asked for many views."""
        key = json.dumps([given, answer])
        if key not in self._looked:
            self._looked[key] = self.run.look(self._followed(self.read_input(given)), answer)
            for old in list(self._looked)[:-LOOKS]:
                del self._looked[old]
        return self._looked[key]

    def _followed(self, given: Any) -> Any:
        """A series as it is looked into, with what follows it: here, what the run itself forecasts."""
        if self.reads_text:
            return given
        ahead = getattr(self.run.predict(given)[0], "values", None)
        rows = given.reshape(-1, 1) if given.ndim == 1 else given
        if ahead is None or rows.ndim != 2 or rows.shape[1] != len(ahead):
            return given
        return np.concatenate([rows[-self.run.recipe.data.context :], np.transpose(list(ahead.values()))])

    def remember(self, measure: Callable[["Model"], T]) -> T:
        """What takes long and never changes for this run, measured once."""
        if measure not in self._remembered:
            self._remembered[measure] = measure(self)
        return self._remembered[measure]

    def explain(self, given: Any, answer: str | None, step: int | None) -> dict[str, Any]:
        """Which elements spoke for the answer, by every method, each with its faithfulness, the best first."""
        looked = self.look(given, answer)
        methods = []
        for one, trust in looked.measure("attribution", step):
            methods.append(
                {
                    "method": one.method,
                    "shares": one.shares.tolist(),
                    "gap": one.gap,
                    "faithfulness": {
                        "score": trust.score,
                        "better_than_random": trust.beaten,
                        "deletion": trust.deletion.tolist(),
                        "insertion": trust.insertion.tolist(),
                    },
                }
            )
            about, elements, whole, nothing = one.about, one.elements, one.whole, one.nothing
        methods.sort(key=lambda one: -one["faithfulness"]["score"])
        told = {"about": about, "elements": elements, "log_probability": whole, "without_input": nothing}
        return replace_nonfinite(told | {"methods": methods})


def shown(given: Any) -> str:
    """An input as it is told again: its text, without a tag; numbers have none."""
    while isinstance(given, list) and given:
        given = given[0]
    return given if isinstance(given, str) else ""
