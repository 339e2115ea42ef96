"""Free generation of text: token by token from a beginning, and what is likeliest to come next."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..data.vocabulary import END, NEVER_WRITTEN, START, UNKNOWN
from ..errors import DataError
from ..fields import Prediction, Text
from ..metrics.copied import find_copied, summarize_copied
from ..models import Generator, device_of
from ..search import (
    BannedTokens,
    BeamOptions,
    Constraint,
    Hypothesis,
    Pick,
    Pieces,
    Recorder,
    Step,
    WrittenTokens,
    beam,
    score,
    stream,
)
from ..search.choosing import Choose
from .generation import Continuation, Generation, SamplingOptions, Token
from .results import Likelihood

if TYPE_CHECKING:
    from .task import Task

LISTED = 5  # tokens of a prediction, unless somebody asks for more


@dataclass(frozen=True)
class NextToken(Prediction):
    """A token that may come next, and how probable it is."""

    probability: float

    def measures(self) -> dict[str, float]:
        return {"probability": self.probability}


class TextWriter:
    def __init__(self, task: "Task") -> None:
        self.task, self.shape = task, task.shape
        self.field: Text = task.target

    def encode_opening(self, text: str) -> list[int]:
        """What is read before anything is written: a document from its beginning, or a text from anywhere."""
        read: list[int] = self.field.encode(text).tolist()
        if not self.shape.one_text:
            return [START, *read]
        return read or [self.field.symbols.index("\n") if "\n" in self.field.symbols else START]

    def read_prompt(self, model: Generator, read: Sequence[Sequence[int]]) -> tuple[torch.Tensor, Any]:
        """The last token of rows of equal length and the state before it.

        What knows nothing longer than a window reads half of one where there is no room for all.
        """
        shape = self.shape
        kept = [row if shape.carries or len(row) < shape.window else row[-shape.half :] for row in read]
        inputs = torch.tensor(kept, device=device_of(model))
        state = model.initial_state(len(inputs))
        for piece in inputs[:, :-1].split(shape.window, 1):
            if piece.shape[1]:
                _, state = model.features(piece, state)
        return inputs[:, -1:], state

    @torch.no_grad()
    def predict(self, model: Generator, text: str, count: int | None) -> list[Prediction]:
        """The likeliest tokens to come after a text."""
        logits, _ = model(*self.read_prompt(model, [self.encode_opening(text)]))
        return rank_next(self.field, logits[0, -1], count or LISTED)

    @torch.no_grad()
    def measure_likelihood(self, model: Generator, given: str, text: str) -> Likelihood:
        """How probable a text is after what is given, read in windows as it would be written; a document has an end."""
        opening, ids = self.encode_opening(given), self.field.encode(text).tolist()
        unknown, ids = ids.count(UNKNOWN), ids if self.shape.one_text else [*ids, END]
        if not ids:
            raise DataError("a text to score is empty")
        logs: list[float] = []
        while len(logs) < len(ids):
            read = [*opening, *ids[: len(logs)]]
            last, state = self.read_prompt(model, [read])
            piece = ids[len(logs) :][: self.shape.room(len(read))]
            [scored] = score(model, last, state, [piece], end=None, piece=self.shape.window)
            logs += scored.logs
        return Likelihood(text, self.field.names(ids), logs, unknown)

    def generate(self, model: Generator, prompt: str, options: SamplingOptions) -> Generation:
        """Texts that begin with `prompt`."""
        opening = self.encode_opening(prompt)
        picks = self.pick_tokens(model, opening, options)
        return Generation(prompt, options.count, self.name_tokens(picks, options.count, opening, options))

    def search(
        self, model: Generator, prompt: str, options: SamplingOptions, recorder: Recorder | None = None
    ) -> Generation:
        """The best texts that begin with `prompt`, best first, as a beam finds them."""
        opening, rules, end = self.encode_opening(prompt), options.rules, END
        with torch.no_grad():
            last, state = self.read_prompt(model, [opening])
        step: Step = model.stepper()
        if options.length > self.shape.room(len(opening)):
            step = self.reread(model, step, opening, options.length)
            state = last.new_tensor([opening[:-1]]), state
        [hypotheses] = beam(
            step,
            last,
            state,
            BeamOptions(
                beam_size=options.beam_size,
                steps=options.length,
                end=end,
                length_penalty=options.length_penalty,
                groups=options.groups,
                diversity=options.diversity,
                best=options.best,
                constraints=rules.constraints(self.field, 1, options.length),
                stops=rules.stops(self.field),
                meaning=self.field.meaning(rules.stop),
            ),
            recorder=recorder,
            patience=options.patience(),
        )
        picks = (pick for row, one in enumerate(hypotheses) for pick in list_picks(row, one, end))
        tokens = self.name_tokens(([pick] for pick in picks), len(hypotheses), opening, options)
        return Generation(prompt, len(hypotheses), tokens, [one.score for one in hypotheses])

    def reread(self, model: Generator, step: Step, opening: list[int], length: int) -> Step:
        """A step of texts that outgrow the window: where it is full, half of one is read again, as in `pick_tokens`.
        The state is what was read, and the model's own."""
        full, read = set[int](), len(opening)
        while read < len(opening) + length:
            read += self.shape.room(read)
            full.add(read)

        def reading_step(last: torch.Tensor, state: Any) -> tuple[Any, Any]:
            before, inner = state
            before = torch.cat([before, last], 1)
            if before.shape[1] in full:
                last, inner = self.read_prompt(model, before.tolist())
            logits, inner = step(last, inner)
            return logits, (before, inner)

        return reading_step

    def name_tokens(
        self, picks: Iterator[list[Pick]], count: int, opening: list[int], options: SamplingOptions
    ) -> Iterator[Token]:
        """Tokens of so many texts as text, whole characters at a time."""
        pieces = [Pieces(self.field.decode, options.rules.stop) for _ in range(count)]
        for one in pieces:
            one.known = opening  # a word is written with a blank before it, but not if it is the first
        for pick in (pick for step_picks in picks for pick in step_picks if not pieces[pick.row].stopped):
            ends, piece = pick.finish == "end", pieces[pick.row]
            text = "" if ends else piece.add(pick.token)
            text += piece.finish() if pick.finish else ""
            names = self.field.names([token for token, _ in pick.alternatives])
            others = dict(zip(names, [log for _, log in pick.alternatives], strict=True))
            name = "" if ends else self.field.names([pick.token])[0]
            yield Token(pick.row, text, name, pick.log, "stop" if piece.stopped else pick.finish, others)

    def pick_tokens(self, model: Generator, opening: list[int], options: SamplingOptions) -> Iterator[list[Pick]]:
        """Token by token. What knows nothing longer than a window begins anew with half of one when it is full."""
        draw, patience = options.sampling.choose(options.count), options.patience()
        written: list[list[int]] = [[] for _ in range(options.count)]
        rows, done = list(range(options.count)), 0
        rules = options.rules.constraints(self.field, options.count, options.length)
        stops = options.rules.stops(self.field)
        while rows:
            with torch.no_grad():
                last, state = self.read_prompt(model, [opening + written[row] for row in rows])
            before = torch.tensor([written[row] for row in rows], device=last.device).long()
            for step_picks in stream(
                *(model.stepper(), partial(choose_again, draw, rows, done), last, state),
                steps=min(options.length - done, self.shape.room(len(opening) + done)),
                end=END,
                constraints=[
                    rule if isinstance(rule, BannedTokens) else partial(apply_after, rule, before) for rule in rules
                ],
                stops=stops,
                alternatives=options.alternatives,
                patience=patience,
            ):
                done += 1
                picks = [renumber(pick, rows[pick.row], done, options.length) for pick in step_picks]
                for pick in picks:
                    written[pick.row].append(pick.token)
                yield picks
            going = {pick.row for pick in picks if not pick.finish}
            rows = [row for row in rows if row in going]

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """Shares of what was written: how much comes to an end, and how much stands in the known texts."""
        return check_texts(texts, known)

    def save(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """A file a text."""
        for number, text in enumerate(texts, 1):
            path = folder / f"text-{number}.txt"
            path.write_text(text.output + "\n", encoding="utf-8")
            yield str(path)


def rank_next(field: Text, logits: torch.Tensor, count: int) -> list[Prediction]:
    """The likeliest tokens to come next that can be written, with their probabilities among all there are."""
    logs = logits.cpu().double().log_softmax(-1).index_fill(0, torch.tensor([UNKNOWN]), -torch.inf)
    values, places = logs.topk(min(count, len(field) - len(NEVER_WRITTEN) - 1))
    names = field.names(places.tolist())
    return [NextToken(name, log, float(np.exp(log))) for name, log in zip(names, values.tolist(), strict=True)]


def check_texts(
    texts: Sequence[Continuation], known: Iterable[str], essence: Callable[[str], str] = str
) -> dict[str, Any]:
    """`essence` is what of a text counts when it is compared with others."""
    checks: dict[str, Any] = {"texts": len(texts), "end": share(text.finish == "end" for text in texts)}
    if known := list(map(essence, known)):
        checks["copied"] = summarize_copied(find_copied([essence(text.output) for text in texts], known))
    return checks


def share(facts: Iterable[bool]) -> float:
    """The share of true values."""
    values = list(facts)
    return sum(values) / max(len(values), 1)


def choose_again(
    draw: Choose, rows: Sequence[int], done: int, logs: torch.Tensor, places: Sequence[int], step: int
) -> Any:
    """Draw as if there had been no break after `done` steps, and no row had left."""
    return draw(logs, [rows[place] for place in places], done + step)


def apply_after(rule: Constraint, before: torch.Tensor, logs: torch.Tensor, written: WrittenTokens) -> torch.Tensor:
    """A rule that knows what was written before the last break, (rows, done)."""
    whole = torch.cat([before[written.rows], written.tokens], 1)
    return rule(logs, WrittenTokens(whole, written.rows))


def list_picks(row: int, hypothesis: Hypothesis, end: int) -> list[Pick]:
    """The tokens of a finished hypothesis as picks."""
    tokens = [*hypothesis.tokens, end] if hypothesis.finish == "end" else hypothesis.tokens
    last = len(tokens) - 1
    return [
        Pick(row, token, log, place + 1, hypothesis.finish if place == last else "")
        for place, (token, log) in enumerate(zip(tokens, hypothesis.logs, strict=True))
    ]


def renumber(pick: Pick, row: int, done: int, length: int) -> Pick:
    """A pick as one of all, not of those since the last break."""
    finish = "" if pick.finish == "length" and done < length else pick.finish
    return pick._replace(row=row, output_length=done - (finish == "end"), finish=finish)
