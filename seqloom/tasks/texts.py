"""Tasks that write text, one token after the other: scored in nats a token, the end of a document being one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import torch

from ..architectures.build import build_language_model
from ..arrays import Doubles
from ..baselines.language import NGram, uniform
from ..config.recipe import Recipe
from ..data.cache import release
from ..data.documents import Documents, read_whole
from ..data.formats.tables import Skipped
from ..data.prepare import Prepared
from ..data.schema import Raw, Schema
from ..data.streams import Stream
from ..data.vocabulary import END, NEVER_WRITTEN, START, UNKNOWN
from ..errors import RecipeError
from ..fields import Prediction, Text, text_side
from ..metrics import bits_per_character, blocks, perplexity
from ..metrics.copied import copied, summary
from ..models import Generator, device_of
from ..schemas import Counted
from ..search import Banned, Constraint, Pick, Pieces, Written, stream
from ..search.choosing import Choose
from .base import Question, Scored, evenly
from .generating import Ask, Continuation, Generation, Told
from .rows import Encoded, positions
from .writes import Writes

LETTERS, OTHERS = 6, 4  # the order of the n-gram model to beat: of characters, and of anything longer
COUNTED = 3_000_000  # tokens it counts at most: each takes about a hundred bytes
FEW = 30  # documents: scores of fewer are resampled by stretches of their text
SHOWN = 5  # tokens of an answer, unless somebody asks for more
BEFORE = 40  # tokens that are read before one is asked for


@dataclass(frozen=True)
class Next(Prediction):
    """A token that may come next, and how probable it is."""

    probability: float


class WritesText(Writes):
    learned = Counted

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        side = text_side((data.target,), data.target_tokenizer)
        ordered = cls.is_text(recipe)
        return Schema(recipe.task, data, {"target": side}, origin=Documents, ordered=ordered, limited=False)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        body, window = recipe.model.side("decoder"), recipe.train.bptt_window
        if positions(body) < window:
            raise RecipeError(f"model.decoder.max_positions is {body.max_positions}, but train.bptt_window is {window}")
        texts = prepared.splits["train"].ids["target"]
        counts = np.zeros(len(prepared.fields["target"]), dtype=np.int64)
        for rows in np.array_split(texts.values, max(1, len(texts.values) >> 22)):
            counts += np.bincount(rows, minlength=len(counts))
            release(texts.values)
        counts[END] = len(texts)
        return recipe, {"counts": counts.tolist()}

    @property
    def target(self) -> Text:
        return cast(Text, self.fields["target"])

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.target.symbols

    def names(self, encoded: Encoded) -> list[str]:
        return [*self.target.names(encoded["target"][0]), "<eos>"]

    def stream(self, encoded: Encoded) -> Stream:
        return Stream(encoded["target"])

    def build(self) -> Generator:
        train = self.recipe.train
        return build_language_model(
            self.recipe.model, len(self.target), train.label_smoothing, self.cell, train.sampled_softmax
        )

    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        scores = super().validate(model, prepared)
        return scores | {"perplexity": float(np.exp(scores["loss"]))}

    def read(self, files: Sequence[str]) -> list[tuple[str]]:
        found = read_whole(files, self.recipe.data, Skipped())
        return [(self.target.normalize(text),) for text in found]

    def inputs(self, file: str) -> Iterator[tuple[str, str]]:
        """Whole documents."""
        for (text,) in self.read([file]):
            yield text, text

    def questions(self, examples: Sequence[Sequence[str]], at_most: int) -> list[Question]:
        """Stretches of the texts, and the token that comes after each."""
        some = [self.target.encode(examples[place][0]).tolist() for place in evenly(len(examples), at_most)]
        asked = []
        for ids in filter(None, some):
            before = min(BEFORE, len(ids) - 1)
            for start in evenly(len(ids) - before, max(1, at_most // len(some))):
                text = self.target.decode(ids[start : start + before])
                [truth] = self.target.names(ids[start + before : start + before + 1])
                asked.append(Question(text, text, truth))
        return asked

    def score(self, model: Generator, examples: Sequence[Sequence[str]]) -> dict[str, Scored]:
        encoded = self.encode(examples)
        ours, rivals = self.losses(model, encoded), self.rivals(encoded)
        unit: Any = self.target.unit
        sums, counts = self.shares(ours, encoded)

        def beside(measure: Any) -> Scored:
            values = {name: measure(*self.shares(losses, encoded), False).value for name, losses in rivals.items()}
            return Scored(measure(sums, counts, True), values)

        found = {"perplexity": beside(lambda sums, counts, sure: perplexity(sums, counts, unit, intervals=sure))}
        if (encoded["target"].values != UNKNOWN).all():  # else what is unknown was not spelled
            letters = sum(len(text) for (text,) in examples) / len(ours)  # characters a token
            found["bits per character"] = beside(
                lambda sums, counts, sure: bits_per_character(sums, counts * letters, intervals=sure)
            )
        return found

    def rivals(self, encoded: Encoded) -> dict[str, Doubles]:
        """The losses of models that only count; that of longer stretches only where the training text is at hand.

        They too know what is never written: tokens are counted without it.
        """
        stream, size = self.stream(encoded), len(self.target) - len(NEVER_WRITTEN)
        number = np.cumsum(~np.isin(np.arange(len(self.target)), NEVER_WRITTEN)) - 1  # among those that are
        told = number[stream.targets(np.arange(len(stream)))]
        seen = np.delete(np.array(self.facts["counts"], dtype=np.float64), NEVER_WRITTEN) + 1  # any of them may come
        found = {"uniform": uniform(told, size), "unigram": -np.log(seen / seen.sum())[told]}
        if self.prepared is not None:
            text = self.stream(self.prepared.splits["train"].ids)
            order = LETTERS if self.target.kind == "characters" else OTHERS
            counted = number[text.targets(np.arange(min(len(text), COUNTED)))]
            if len(counted) >= order:
                found[f"{order}-gram"] = NGram.fit(counted, size, order).losses(told)
        return found

    def shares(self, losses: Doubles, encoded: Encoded) -> tuple[Doubles, Doubles]:
        """Sums and counts to resample: of documents, or of stretches of a text."""
        begins = self.stream(encoded).begins
        if len(begins) > FEW:
            return np.add.reduceat(losses, begins[:-1]), np.diff(begins).astype(np.float64)
        return blocks(losses, max(1, min(1000, len(losses) // FEW)))

    @torch.no_grad()
    def predict(self, model: Generator, inputs: Sequence[Raw], beam: int | None = None) -> list[list[Prediction]]:
        """The likeliest tokens to come after each text."""
        answers: list[list[Prediction]] = []
        for text in inputs:
            logits, _ = model(*self.prompted(model, [self.opening(text)]))
            most = min(beam or SHOWN, len(self.target) - len(NEVER_WRITTEN))
            logs, places = logits[0, -1].cpu().double().log_softmax(-1).topk(most)
            names = self.target.names(places.tolist())
            found = zip(names, logs.tolist(), strict=True)
            answers.append([Next(name, log, float(np.exp(log))) for name, log in found])
        return answers

    def opening(self, text: str) -> list[int]:
        """What is read before anything is written: a document from its beginning, or a text from anywhere."""
        read: list[int] = self.target.encode(text).tolist()
        if not self.is_text(self.recipe):
            return [START, *read]
        return read or [self.target.symbols.index("\n") if "\n" in self.target.symbols else START]

    def prompted(self, model: Generator, read: Sequence[Sequence[int]]) -> tuple[torch.Tensor, Any]:
        """The last token of rows of equal length and the state before it.

        What knows nothing longer than a window reads half of one where there is no room for all.
        """
        kept = [row if self.carries or len(row) < self.recipe.train.bptt_window else row[-self.half :] for row in read]
        inputs = torch.tensor(kept, device=device_of(model))
        state = model.initial_state(len(inputs))
        for piece in inputs[:, :-1].split(self.recipe.train.bptt_window, 1):
            if piece.shape[1]:
                _, state = model.features(piece, state)
        return inputs[:, -1:], state

    def essence(self, text: str) -> str:
        """What of a text counts when it is compared with others."""
        return text

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """Shares of what was written: how much comes to an end, and how much stands in the known texts."""
        found: dict[str, Any] = {"texts": len(texts), "end": share(text.finish == "end" for text in texts)}
        if known := list(map(self.essence, known)):
            found["copied"] = summary(copied([self.essence(text.output) for text in texts], known))
        return found

    def generate(self, model: Generator, prompt: str, ask: Ask) -> Generation:
        """Texts that begin with `prompt`."""
        opening = self.opening(prompt)
        return Generation(prompt, ask.count, self.told(self.picks(model, opening, ask), opening, ask))

    def told(self, picks: Iterator[list[Pick]], opening: list[int], ask: Ask) -> Iterator[Told]:
        """Tokens as text, whole characters at a time."""
        pieces = [Pieces(self.target.decode, ask.rules.stop) for _ in range(ask.count)]
        for one in pieces:
            one.known = opening  # a word is written with a blank before it, but not if it is the first
        for pick in (pick for made in picks for pick in made if not pieces[pick.row].stopped):
            ends, piece = pick.finish == "end", pieces[pick.row]
            text = "" if ends else piece.add(pick.token)
            text += piece.finish() if pick.finish else ""
            names = self.target.names([token for token, _ in pick.alternatives])
            others = dict(zip(names, [log for _, log in pick.alternatives], strict=True))
            name = "" if ends else self.target.names([pick.token])[0]
            yield Told(pick.row, text, name, pick.log, "stop" if piece.stopped else pick.finish, others)

    def picks(self, model: Generator, opening: list[int], ask: Ask) -> Iterator[list[Pick]]:
        """Token by token. What knows nothing longer than a window begins anew with half of one when it is full."""
        draw, patience = ask.sampling.choose(ask.count), ask.patience()
        written: list[list[int]] = [[] for _ in range(ask.count)]
        rows, done = list(range(ask.count)), 0
        rules, stops = ask.rules.constraints(self.target, ask.count, ask.length), ask.rules.stops(self.target)
        while rows:
            with torch.no_grad():
                last, state = self.prompted(model, [opening + written[row] for row in rows])
            steps = min(ask.length - done, self.room(len(opening) + done))
            choose = partial(again, draw, rows, done)
            before = torch.tensor([written[row] for row in rows], device=last.device).long()
            for made in stream(
                *(model.stepper(), choose, last, state),
                steps=steps,
                end=END,
                constraints=[rule if isinstance(rule, Banned) else partial(after, rule, before) for rule in rules],
                stops=stops,
                alternatives=ask.alternatives,
                patience=patience,
            ):
                done += 1
                told = [onward(pick, rows[pick.row], done, ask.length) for pick in made]
                for pick in told:
                    written[pick.row].append(pick.token)
                yield told
            going = {pick.row for pick in told if not pick.finish}
            rows = [row for row in rows if row in going]


def share(facts: Iterable[bool]) -> float:
    """How many of them are so."""
    found = list(facts)
    return sum(found) / max(len(found), 1)


def again(draw: Choose, rows: Sequence[int], done: int, logs: torch.Tensor, places: Sequence[int], step: int) -> Any:
    """Draw as if there had been no break after `done` steps, and no row had left."""
    return draw(logs, [rows[place] for place in places], done + step)


def after(rule: Constraint, before: torch.Tensor, logs: torch.Tensor, written: Written) -> torch.Tensor:
    """A rule that knows what was written before the last break, (rows, done)."""
    whole = torch.cat([before[written.rows], written.tokens], 1)
    return rule(logs, Written(whole, written.rows))


def onward(pick: Pick, row: int, done: int, length: int) -> Pick:
    """A pick as one of all, not of those since the last break."""
    finish = "" if pick.finish == "length" and done < length else pick.finish
    return pick._replace(row=row, kept=done - (finish == "end"), finish=finish)
