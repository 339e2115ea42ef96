"""Free generation from a beginning: its options, and texts while they are still coming. Knows no model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any, NamedTuple

from ..arguments import check_real, check_whole, describe_value
from ..errors import SearchError
from ..fields import Prediction
from ..search import Patience, Sampling
from .decoding_options import Rules


@dataclass(frozen=True)
class SamplingOptions:
    """Options of free generation."""

    length: int = 400  # tokens at most
    temperature: float = 1.0  # 0 is the likeliest each time
    top_k: int = 0  # how many tokens are drawn from; 0 is all
    top_p: float = 1.0  # the share of probability they have together
    min_p: float = 0.0  # the share of the likeliest one's probability that each has at least
    seed: int = 0
    count: int = 1  # how many texts are written, each by chance of its own
    alternatives: int = 0  # how many of the likeliest tokens are given for each step
    rules: Rules = Rules()
    timeout: float = 0.0  # seconds a text at most; 0 is no limit
    beam_size: int = 0  # the best texts are searched for by a beam of so many places; 0 draws
    best: int = 0  # how many of them are given; 0 is all that are kept
    groups: int = 1  # of the beam, which avoid each other's tokens …
    diversity: float = 0.5  # … so strongly
    length_penalty: float = 1.0  # the power of its length that a text's score is divided by

    def changed(self, changes: Mapping[str, Any]) -> "SamplingOptions":
        """With some of them changed, by name."""
        known = [one.name for one in fields(self)]
        for name in changes.keys() - set(known):
            raise SearchError(f"there is no option {name!r} of generating; there are {', '.join(known)}")
        return replace(self, **changes)

    def __post_init__(self) -> None:
        whole = {"length": 1, "count": 1, "alternatives": 0, "beam_size": 0, "best": 0, "groups": 1}
        for name, least in whole.items():
            check_whole(f"the {name}", getattr(self, name), least)
        for name in ("diversity", "length_penalty"):
            check_real(name, getattr(self, name))
        drawing = self.count, self.alternatives, self.temperature, self.top_k, self.top_p, self.min_p, self.seed
        if self.beam_size and drawing != (1, 0, 1.0, 0, 1.0, 0.0, 0):
            raise SearchError(
                "a beam searches for the best texts and draws none: leave count, alternatives, temperature, top_k, "
                "top_p, min_p and seed as they are"
            )
        if not self.beam_size and (self.best, self.groups, self.diversity, self.length_penalty) != (0, 1, 0.5, 1.0):
            raise SearchError("best, groups, diversity and length_penalty are about a beam: say its size")
        if not isinstance(self.rules, Rules):
            raise SearchError(f"the rules are {describe_value(self.rules)}, but Rules were expected")
        check_whole("the seed", self.seed)
        _ = self.sampling, self.patience()  # which have limits of their own

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_k, self.top_p, self.min_p, self.seed)

    def patience(self) -> Patience:
        """Texts that are written side by side may take as long as one after the other."""
        return Patience(self.count * self.timeout)


@dataclass(frozen=True)
class Piece:
    """Some characters of the text with this number: whole ones, which no later token changes."""

    text: str
    number: int = 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Continuation(Prediction):
    """A beginning with what was written on, token by token. Its score is the sum of the log-probabilities; where a beam
    found it, what the beam ranks by."""

    text: str  # what was written, without the beginning
    tokens: list[str]
    logs: list[float]  # of each token; one more for the end, if it was reached
    finish: str  # "end" by the model, "stop" at a stop string, "length" or "time" where there was no more of that
    seconds: float
    alternatives: list[dict[str, float]]  # tokens and their log-probabilities at each step, where that was asked for


class Token(NamedTuple):
    """One token, or whatever a model writes at a step, of one of the texts."""

    number: int  # of the text
    text: str  # what is certain now; often nothing
    name: str  # of the token as a person sees it; nothing for the end
    log: float
    finish: str = ""  # why the text ends with it, if it does
    alternatives: Mapping[str, float] = {}


class Generation:
    """Texts on their way. Iterate for pieces as they come; stop iterating, and nothing more is done.

    `finish` writes what is left, and gives all texts whole.
    """

    def __init__(self, prompt: str, count: int, tokens: Iterator[Token], scores: Sequence[float] = ()) -> None:
        """`scores` of the texts, where they are known before and not the sums of their log-probabilities."""
        self.prompt, self._tokens, self._scores = prompt, tokens, scores
        self._steps: list[list[Token]] = [[] for _ in range(count)]
        self._begun, self._seconds = perf_counter(), [0.0] * count
        self._coming = self._stream_pieces()

    def __iter__(self) -> Iterator[Piece]:
        return self._coming

    def _stream_pieces(self) -> Iterator[Piece]:
        for one in self.steps():
            if one.text:
                yield Piece(one.text, one.number)

    def steps(self) -> Iterator[Token]:
        """Every token as it comes, those that make no text yet included; instead of iterating for pieces."""
        for one in self._tokens:
            self._steps[one.number].append(one)
            self._seconds[one.number] = perf_counter() - self._begun
            yield one

    def finish(self) -> list[Continuation]:
        for _ in self._coming:
            pass
        scores = self._scores or [sum(step.log for step in steps) for steps in self._steps]
        return list(map(self._continuation, self._steps, self._seconds, scores))

    def _continuation(self, steps: list[Token], seconds: float, score: float) -> Continuation:
        text = "".join(step.text for step in steps)
        return Continuation(
            output=self.prompt + text,
            score=score,
            text=text,
            tokens=[step.name for step in steps if step.name],
            logs=[step.log for step in steps],
            finish=steps[-1].finish,
            seconds=seconds,
            alternatives=[dict(step.alternatives) for step in steps if step.alternatives],
        )
