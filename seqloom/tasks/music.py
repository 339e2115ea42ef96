"""Music in two forms: tunes in ABC notation, written as text and checked; and chords step by step, key by key."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from ..arrays import Doubles
from ..baselines.music import FrameFrequency, PreviousFrame
from ..config.recipe import Recipe
from ..data.frames import Pieces
from ..data.schema import Schema, Side
from ..errors import RecipeError
from ..fields import Frames
from ..metrics import Score, nats
from ..metrics.copied import find_copied, score_copied
from ..metrics.score import ratio, score_sums
from ..models import Generator
from ..schemas import KeyChances
from . import language
from .frame_writer import FrameWriter
from .free_generation import FreeGeneration
from .generation import SamplingOptions
from .results import ScoreWithBaselines
from .scoring import Metric
from .shape import Encoded
from .task import Declaration, Task, check_per_symbol
from .tune_writer import TuneWriter, extract_notes, find_faults

WRITTEN, TEMPERATURE = 100, 0.5  # tunes that are written to see how many are well formed, and how daringly
LONGEST = 1200  # tokens of such a tune


def declare(recipe: Recipe) -> Declaration:
    """Chords are read from JSON, everything else is a text of tunes."""
    names = [PurePath(name.lower().removesuffix(".gz")).suffix for name in recipe.data.train[:1]]
    if recipe.data.format == "json" or names == [".json"]:
        return declare_chords(recipe)
    return replace(language.declare(recipe), writer=TuneWriter, more_scores=score_tunes)


def declare_chords(recipe: Recipe) -> Declaration:
    for name, value in (("ngram", recipe.model.ngram), ("cache", recipe.model.cache)):
        if value:
            raise RecipeError(f"model.{name} is {value}, but chords are no tokens that could be counted: say 0")
    side = Side((recipe.data.target,), Frames)
    return Declaration(
        schema=Schema("polyphony", recipe.data, {"target": side}, dataset=Pieces, limited=False),
        shape=FreeGeneration,
        facts=KeyChances,
        learn=learn_chords,
        baselines=chord_baselines,
        metrics=chord_metrics,
        writer=FrameWriter,
        check=lambda task: check_per_symbol(task, sounds=task.facts.sounds, continues=task.facts.continues[0]),
    )


# --- tunes ---


def score_tunes(task: Task, model: Generator, examples: Sequence[Sequence[str]]) -> dict[str, ScoreWithBaselines]:
    """How many tunes of its own parse, fill their bars and end, and how much of them it has from training."""
    options = SamplingOptions(LONGEST, TEMPERATURE, count=WRITTEN, seed=task.recipe.train.seed)
    own = task.writer.generate(model, "", options).finish()
    real = [text for (text,) in examples]
    right = [not find_faults(text.output, text.finish) for text in own]
    good = share_well_formed(right, f"tunes, temperature {TEMPERATURE},")
    others = share_well_formed([not find_faults(text) for text in real], "tunes")
    originality = score_originality(task, [text.output for text in own], real)
    return {"well formed": ScoreWithBaselines(good, {"real tunes": others.value})} | originality


def score_originality(task: Task, own: Sequence[str], real: Sequence[str]) -> dict[str, ScoreWithBaselines]:
    """How much of its own tunes it has from training, beside real ones; only while the training tunes are there."""
    if task.prepared is None:
        return {}
    known = [extract_notes(text) for text in task.prepared.splits["train"].raws["target"]]
    ours, theirs = (
        score_copied(find_copied([extract_notes(text) for text in texts], known), "tunes")
        for texts in (own, real[:WRITTEN])
    )
    return {name: ScoreWithBaselines(ours[name], {"real tunes": theirs[name].value}) for name in ours}


def share_well_formed(right: Sequence[bool], what: str) -> Score:
    table = np.stack([np.array(right, dtype=np.float64), np.ones(len(right))], 1)
    scale = f"share of {len(right)} {what} that parse, fill their bars and end; 1 is all"
    return score_sums(table, ratio, "higher", scale, intervals=True)


# --- chords ---


def learn_chords(task: Task, prepared: Any) -> KeyChances:
    """How often each key sounds, and how often after it sounded and after it did not."""
    expects = PreviousFrame.fit(list(prepared.splits["train"].ids["target"]))
    return KeyChances(sounds=expects.first.chances.tolist(), continues=expects.chances.tolist())


def chord_baselines(task: Task, encoded: Encoded) -> dict[str, Doubles]:
    """The losses of counting how often a key sounds, and of expecting the last frame again."""
    often = FrameFrequency(np.array(task.facts.sounds))
    again = PreviousFrame(often, np.array(task.facts.continues))
    return {
        name: np.concatenate([baseline.losses(piece) for piece in encoded["target"]])
        for name, baseline in (("frame frequency", often), ("the last frame again", again))
    }


def chord_metrics(task: Task, encoded: Encoded, examples: Sequence[Any]) -> Mapping[str, Metric]:
    return {"nats a step": partial(nats, unit="step")}
