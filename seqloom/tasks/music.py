"""Music in two forms: tunes in ABC notation, written as text and checked; and chords step by step, key by key."""

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path, PurePath
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_generator
from ..arrays import Doubles
from ..baselines.music import FrameFrequency, PreviousFrame
from ..config.recipe import Recipe
from ..data.formats.abc import tune_of
from ..data.formats.chorales import LOWEST
from ..data.frames import KEYS, FramePlaces, Pieces, read_pieces
from ..data.music.abc_parser import bars_of
from ..data.music.abc_playback import Sound, check
from ..data.music.sound import played_as, save_midi, save_wav, write_midi, write_wav
from ..data.prepare import Prepared
from ..data.schema import Schema, Side
from ..errors import DataError, RecipeError, SearchError
from ..fields import Frames, Prediction
from ..fields.frames import frame_text, parse_frames
from ..layers.state import State
from ..metrics import Score, nats
from ..metrics.copied import copied, copied_scores
from ..metrics.score import ratio, score_sums
from ..models import Generator, device_of
from ..schemas import Chances
from ..search import sample
from .asking import Rules
from .base import Question, Scored, Task, evenly
from .generating import Ask, Continuation, Generation, Told
from .rows import Encoded, positions
from .texts import BEFORE, WritesText, share
from .writes import Writes

WRITTEN, TEMPERATURE = 100, 0.5  # tunes that are written to see how many are well formed, and how daringly
LONGEST = 1200  # tokens of such a tune
HEADER = re.compile(r"[A-Za-z]:|%")  # a line that holds no notes
NO_NOTES = re.compile(r"[\s!\\]")
STEP = Fraction(1, 4)  # of a whole note: how long a frame is played
WHOLE = 4 * 60 / 90  # seconds of a whole note, at 90 quarter notes a minute


class Tunes(WritesText):
    @classmethod
    def form(cls, recipe: Recipe) -> type[Task]:
        names = [PurePath(name.lower().removesuffix(".gz")).suffix for name in recipe.data.train[:1]]
        return Polyphony if recipe.data.format == "json" or names == [".json"] else cls

    @classmethod
    def is_text(cls, recipe: Recipe) -> bool:
        return False

    def score(self, model: Generator, examples: Sequence[Sequence[str]]) -> dict[str, Scored]:
        """How surprising real tunes are, and how many of its own parse, fill their bars and end."""
        ask = Ask(LONGEST, TEMPERATURE, count=WRITTEN, seed=self.recipe.train.seed)
        own = self.generate(model, "", ask).finish()
        good = well_formed([not faults(text.output, text.finish) for text in own], f"tunes, temperature {TEMPERATURE},")
        real = well_formed([not faults(text) for (text,) in examples], "tunes")
        found = super().score(model, examples) | {"well formed": Scored(good, {"real tunes": real.value})}
        return found | self.originality([text.output for text in own], [text for (text,) in examples])

    def originality(self, own: Sequence[str], real: Sequence[str]) -> dict[str, Scored]:
        """How much of its own tunes it has from training, beside real ones; only while the training tunes are there."""
        if self.prepared is None:
            return {}
        known = [self.essence(text) for text in self.prepared.splits["train"].raws["target"]]
        ours, theirs = (
            copied_scores(copied([self.essence(text) for text in texts], known), "tunes")
            for texts in (own, real[:WRITTEN])
        )
        return {name: Scored(ours[name], {"real tunes": theirs[name].value}) for name in ours}

    def essence(self, text: str) -> str:
        """The notes, without the header, marks for line breaks and white space: those are nobody's own."""
        lines = (line for line in text.split("\n") if not HEADER.match(line))
        return NO_NOTES.sub("", "".join(lines))

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """The same shares as for any text, and how many can be read as a tune, fill their bars, and do all of it."""
        bare = [faults(text.output) for text in texts]
        read = [readable(text.output) for text in texts]
        good = share(not found and text.finish == "end" for found, text in zip(bare, texts, strict=True))
        more = {"parse": share(read), "fill their bars": share(not found for found in bare), "well formed": good}
        return super().check(texts, known) | more

    def keep(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """Each tune as text, and if it can be read, as MIDI and as sound; what is wrong with it is told."""
        good = 0
        for number, text in enumerate(texts, 1):
            path = folder / f"tune-{number}.abc"
            path.write_text(text.output + "\n", encoding="utf-8")
            found = faults(text.output, text.finish)
            good += not found
            made = [path.name]
            try:
                tune = tune_of(text.output, path.name)
                write_midi(tune, path.with_suffix(".mid"))
                write_wav(tune, path.with_suffix(".wav"))
                made += [path.with_suffix(ending).name for ending in (".mid", ".wav")]
            except DataError:
                pass  # it is among the faults
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield f"{', '.join(made)}: {found[0] + more if found else 'well formed'}"
        yield f"{good} of {len(texts)} tunes in {folder} parse, fill their bars and end"


def readable(text: str) -> bool:
    """Whether a text is a tune at all, whatever its bars are like."""
    try:
        return bool(bars_of(tune_of(text)))
    except DataError:
        return False


def faults(text: str, finish: str = "end") -> tuple[str, ...]:
    """What is wrong with a tune, a sentence each."""
    unended = ("the tune does not come to an end",) if finish != "end" else ()
    if not re.search("^X:", text, re.MULTILINE):
        return (*unended, "there is no tune: no line begins with X:")
    try:
        return unended + check(tune_of(text))
    except DataError as error:
        return (*unended, str(error))


def well_formed(right: Sequence[bool], what: str) -> Score:
    table = np.stack([np.array(right, dtype=np.float64), np.ones(len(right))], 1)
    scale = f"share of {len(right)} {what} that parse, fill their bars and end; 1 is all"
    return score_sums(table, ratio, "higher", scale, intervals=True)


class Polyphony(Writes):
    """A frame says which keys of a piano sound; each key is told apart, given all frames before."""

    learned = Chances

    @classmethod
    def is_text(cls, recipe: Recipe) -> bool:
        return False

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        side = Side((recipe.data.target,), Frames)
        return Schema("polyphony", recipe.data, {"target": side}, origin=Pieces, limited=False)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        """How often each key sounds, and how often after it sounded and after it did not."""
        body = recipe.model.side("decoder")
        if positions(body) < recipe.train.bptt_window:
            raise RecipeError(
                f"model.decoder.max_positions is {body.max_positions}, but train.bptt_window is "
                f"{recipe.train.bptt_window}"
            )
        for name, given in (("model.tied", recipe.model.tied), ("train.label_smoothing", recipe.train.label_smoothing)):
            if given:
                raise RecipeError(f"{name} is for what chooses one of many, but here every key is told apart")
        expects = PreviousFrame.fit(list(prepared.splits["train"].ids["target"]))
        return recipe, {"sounds": expects.first.chances.tolist(), "goes on": expects.chances.tolist()}

    def stream(self, encoded: Encoded) -> FramePlaces:
        return FramePlaces(encoded["target"])

    def build(self) -> Generator:
        model = self.recipe.model
        field = self.fields["target"]
        embed = field.embedding(model, "decoder")
        return build_generator(model, embed, lambda inputs: field.head(inputs, self.recipe), self.cell)

    def read(self, files: Sequence[str]) -> list[tuple[Any]]:
        """The test part of a file; all of one that has only one part."""
        found = read_pieces(files[0], self.recipe.data.encoding)
        [part, *others] = found
        if others and "test" not in found:
            raise DataError(f"the file has no test; there are {', '.join(found)}", files[0])
        return [(piece,) for piece in found["test" if others else part]]

    def questions(self, examples: Sequence[Sequence[Any]], at_most: int) -> list[Question]:
        """The beginnings of pieces, and the frame that comes after each."""
        asked = []
        for place in evenly(len(examples), at_most):
            lines = [frame_text(frame) for frame in examples[place][0]]
            half = len(lines) // 2
            text = "\n".join(lines[max(0, half - BEFORE) : half])
            asked.append(Question(text, text, lines[half]))
        return asked

    def inputs(self, file: str) -> Iterator[tuple[str, str]]:
        for (piece,) in self.read([file]):
            text = "\n".join(map(frame_text, piece))
            yield text, text

    def score(self, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        encoded = self.encode(examples)
        begins = self.stream(encoded).begins

        def measured(losses: Doubles, sure: bool) -> Score:
            return nats(np.add.reduceat(losses, begins[:-1]), np.diff(begins), "step", intervals=sure)

        rivals = {name: measured(losses, False).value for name, losses in self.rivals(encoded).items()}
        return {"nats a step": Scored(measured(self.losses(model, encoded), True), rivals)}

    def rivals(self, encoded: Encoded) -> dict[str, Doubles]:
        """The losses of counting how often a key sounds, and of expecting the last frame again."""
        often = FrameFrequency(np.array(self.facts["sounds"]))
        again = PreviousFrame(often, np.array(self.facts["goes on"]))
        return {
            name: np.concatenate([rival.losses(piece) for piece in encoded["target"]])
            for name, rival in (("frame frequency", often), ("the last frame again", again))
        }

    def predict(self, model: Generator, inputs: Sequence[Any], beam: int | None = None) -> list[list[Prediction]]:
        """The likeliest frame after those of each text, a line a frame."""
        ask = Ask(1, temperature=0)
        found = [self.generate(model, text, ask).finish()[0] for text in inputs]
        return [[Prediction(one.tokens[0], one.score)] for one in found]

    def generate(self, model: Generator, prompt: str, ask: Ask) -> Generation:
        """Frames as lines of pitches; `prompt` is such lines."""
        if ask.top_k or ask.top_p < 1 or ask.min_p or ask.alternatives or ask.rules != Rules():
            raise SearchError("keys sound together, so there is no choosing among them: only the temperature is asked")
        start = np.ones((1, KEYS), dtype=np.float32)
        opening = np.concatenate([start, parse_frames(prompt).astype(np.float32)])
        lines = prompt if not prompt or prompt.endswith("\n") else f"{prompt}\n"
        return Generation(lines, ask.count, self.told(model, opening, ask))

    def told(self, model: Generator, opening: NDArray[np.float32], ask: Ask) -> Iterator[Told]:
        seeds = [np.random.SeedSequence((ask.seed & (1 << 64) - 1, row)) for row in range(ask.count)]
        draw = Draw([np.random.default_rng(seed) for seed in seeds], ask.temperature)
        frames = torch.from_numpy(opening)[None].repeat(ask.count, 1, 1).to(device_of(model))
        first, patience, late = frames.shape[1], ask.patience(), False
        while (done := frames.shape[1] - first) < ask.length and not late:
            room = min(ask.length - done, self.room(frames.shape[1]))
            kept = frames if self.carries or frames.shape[1] < self.window else frames[:, -self.half :]
            with torch.no_grad():
                state: State = model.initial_state(ask.count)
                if kept.shape[1] > 1:
                    _, state = model.features(kept[:, :-1], state)
            steps = sample(torch.no_grad()(model.stepper()), draw, kept[:, -1:], state)
            for _ in range(room):
                begun = perf_counter()
                made = next(steps)
                frames = torch.cat([frames, made[:, None]], 1)
                done, late = done + 1, patience.ends(begun)
                spent = "length" if done == ask.length else "time" if late else ""
                for row, (frame, log) in enumerate(zip(made.cpu().numpy(), draw.logs, strict=True)):
                    name = frame_text(frame)
                    yield Told(row, f"{name}\n", name, log, spent)
                if late:
                    break

    def keep(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        for number, text in enumerate(texts, 1):
            path = folder / f"piece-{number}.txt"
            path.write_text(text.output, encoding="utf-8")
            sounds = sounds_in(parse_frames(text.output))
            save_midi(sounds, WHOLE, path.with_suffix(".mid"))
            save_wav(played_as(sounds, WHOLE), path.with_suffix(".wav"))
            yield f"{path.name}, {path.with_suffix('.mid').name}, {path.with_suffix('.wav').name}: {len(sounds)} notes"

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """Frames go on for as long as they are asked for, and are no text that could be found elsewhere."""
        return {"texts": len(texts)}


class Draw:
    """A frame for each row, by chance of its own; the likeliest at temperature 0."""

    def __init__(self, chances: Sequence[np.random.Generator], temperature: float) -> None:
        self.chances, self.temperature = chances, temperature
        self.logs: list[float] = []  # the log-probability of each row's last frame

    def __call__(self, expected: Tensor, /) -> Tensor:
        """Logits (N, 1, KEYS) -> frames (N, 1, KEYS)."""
        frames = (expected > 0).to(expected)
        if self.temperature:
            where = np.stack([chance.random(KEYS) for chance in self.chances])[:, None]
            frames = (torch.from_numpy(where) < (expected / self.temperature).cpu().double().sigmoid()).to(expected)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(expected, frames, reduction="none")
        self.logs = (-loss.sum((1, 2))).tolist()
        return frames


def sounds_in(frames: NDArray[Any]) -> list[Sound]:
    """The notes of frames; a key that goes on sounding is one long note."""
    edges = np.diff(np.pad(frames.astype(np.int8), ((1, 1), (0, 0))), axis=0)
    found = []
    for key in range(KEYS):
        for start, stop in zip(np.flatnonzero(edges[:, key] > 0), np.flatnonzero(edges[:, key] < 0), strict=True):
            found.append(Sound(STEP * int(start), STEP * int(stop - start), LOWEST + key))
    return sorted(found)
