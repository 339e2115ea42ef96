"""Free generation of frames: which keys sound at each step, drawn key by key; played and saved."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..counts import format_count
from ..data.formats.chorales import LOWEST
from ..data.frames import KEYS
from ..data.music.abc_playback import SoundingNote
from ..data.music.sound import save_midi, save_wav, synthesize_sounds
from ..errors import DataError, SearchError
from ..fields import Prediction
from ..fields.frames import format_frame, parse_frames
from ..layers.state import State
from ..models import Generator, device_of
from ..search import sample
from .decoding_options import Rules
from .generation import Continuation, Generation, SamplingOptions, Token
from .results import Likelihood

if TYPE_CHECKING:
    from .task import Task

STEP = Fraction(1, 4)  # of a whole note: how long a frame is played
WHOLE = 4 * 60 / 90  # seconds of a whole note, at 90 quarter notes a minute


class FrameWriter:
    def __init__(self, task: "Task") -> None:
        self.shape = task.shape

    def predict(self, model: Generator, text: str, count: int | None) -> list[Prediction]:
        """The likeliest frame after those of a text, a line a frame."""
        [one] = self.generate(model, text, SamplingOptions(1, temperature=0)).finish()
        return [Prediction(one.tokens[0], one.score)]

    def measure_likelihood(self, model: Generator, given: str, text: str) -> Likelihood:
        """How probable frames are after those that are given, a step each."""
        frames, before = parse_frames(text), parse_frames(given)
        if not len(frames):
            raise DataError("a text to score has no frames")
        whole = np.concatenate([before, frames])
        logs = -self.shape.losses(model, self.shape.encode([(whole,)]))[len(before) :]
        return Likelihood(text, [format_frame(frame) for frame in frames], logs.tolist())

    def generate(self, model: Generator, prompt: str, options: SamplingOptions) -> Generation:
        """Frames as lines of pitches; `prompt` is such lines."""
        other = options.top_k or options.top_p < 1 or options.min_p or options.alternatives
        if other or options.rules != Rules():
            raise SearchError("keys sound together, so none is chosen among them: only the temperature applies")
        start = np.ones((1, KEYS), dtype=np.float32)
        opening = np.concatenate([start, parse_frames(prompt).astype(np.float32)])
        lines = prompt if not prompt or prompt.endswith("\n") else f"{prompt}\n"
        return Generation(lines, options.count, self.draw(model, opening, options))

    def draw(self, model: Generator, opening: NDArray[np.float32], options: SamplingOptions) -> Iterator[Token]:
        seeds = [np.random.SeedSequence((options.seed & (1 << 64) - 1, row)) for row in range(options.count)]
        sampler = FrameSampler([np.random.default_rng(seed) for seed in seeds], options.temperature)
        frames = torch.from_numpy(opening)[None].repeat(options.count, 1, 1).to(device_of(model))
        shape, first, patience, late = self.shape, frames.shape[1], options.patience(), False
        while (done := frames.shape[1] - first) < options.length and not late:
            room = min(options.length - done, shape.room(frames.shape[1]))
            kept = frames if shape.carries or frames.shape[1] < shape.window else frames[:, -shape.half :]
            with torch.no_grad():
                state: State = model.initial_state(options.count)
                if kept.shape[1] > 1:
                    _, state = model.features(kept[:, :-1], state)
            steps = sample(torch.no_grad()(model.stepper()), sampler, kept[:, -1:], state)
            for _ in range(room):
                start = perf_counter()
                new_frames = next(steps)
                frames = torch.cat([frames, new_frames[:, None]], 1)
                done, late = done + 1, patience.ends(start)
                finish = "length" if done == options.length else "time" if late else ""
                for row, (frame, log) in enumerate(zip(new_frames.cpu().numpy(), sampler.logs, strict=True)):
                    name = format_frame(frame)
                    yield Token(row, f"{name}\n", name, log, finish)
                if late:
                    break

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """Frames go on for as long as they are asked for, and are no text that could be found elsewhere."""
        return {"texts": len(texts)}

    def save(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        for number, text in enumerate(texts, 1):
            path = folder / f"piece-{number}.txt"
            path.write_text(text.output, encoding="utf-8")
            sounds = play_frames(parse_frames(text.output))
            save_midi(sounds, WHOLE, path.with_suffix(".mid"))
            save_wav(synthesize_sounds(sounds, WHOLE), path.with_suffix(".wav"))
            yield (
                f"{path.name}, {path.with_suffix('.mid').name}, {path.with_suffix('.wav').name}: "
                f"{format_count(len(sounds), 'note')}"
            )


class FrameSampler:
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


def play_frames(frames: NDArray[Any]) -> list[SoundingNote]:
    """The notes of frames; a key that goes on sounding is one long note."""
    edges = np.diff(np.pad(frames.astype(np.int8), ((1, 1), (0, 0))), axis=0)
    sounds = []
    for key in range(KEYS):
        for start, stop in zip(np.flatnonzero(edges[:, key] > 0), np.flatnonzero(edges[:, key] < 0), strict=True):
            sounds.append(SoundingNote(STEP * int(start), STEP * int(stop - start), LOWEST + key))
    return sorted(sounds)
