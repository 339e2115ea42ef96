"""An image from its name: drawn square by square, as a text is written."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from ..arrays import Bytes, Doubles
from ..baselines.language import compute_uniform_losses
from ..config.recipe import Recipe
from ..data import batching
from ..data.schema import Schema, Side
from ..data.vocabulary import END, SPECIALS
from ..fields import ImageTokens, text_side
from ..fields.image_tokens import nearest
from ..metrics import Score, nats
from ..metrics.score import ratio, score_sums
from ..models import Generator, device_of
from ..schemas import SymbolCounts
from .conditional_generation import ConditionalGeneration
from .free_generation import compute_losses
from .generation import SamplingOptions
from .image_writer import ImageWriter
from .results import ScoreWithBaselines
from .scoring import score_losses
from .shape import ROOM, Encoded
from .task import Declaration, Task, check_per_symbol

DRAWN, TEMPERATURE = 20, 0.7  # images of each name that are drawn to see whether they can be read
KNOWN = 4000  # real images that they are compared with
MOST_NAMES, FEWEST = 50, 4  # different names, and images of each, between which reading is worth a try


def declare(recipe: Recipe) -> Declaration:
    """An example is (image, name): what is the same image in two parts is what matters, not the same name."""
    data = recipe.data
    sides = {
        "target": Side((data.target,), ImageTokens),
        "source": text_side(data.source, data.source_tokenizer),
    }
    return Declaration(
        schema=Schema("draw", data, sides, label="source", limited=False),
        shape=ConditionalGeneration,
        facts=SymbolCounts,
        learn=learn,
        more_scores=score_images,
        writer=ImageWriter,
        check=lambda task: check_per_symbol(task, counts=task.facts.counts),
    )


def learn(task: Task, prepared: Any) -> SymbolCounts:
    """How often each square occurs in training."""
    squares = prepared.splits["train"].ids["target"].values
    return SymbolCounts(counts=np.bincount(squares, minlength=len(task.target)).tolist())


def baselines(task: Task, squares: Any) -> dict[str, Doubles]:
    """The losses of choosing among all squares alike, and by how often each occurs; nothing else is predicted."""
    counts = np.array(task.facts.counts[len(SPECIALS) :], dtype=np.float64) + 1
    chosen = squares - len(SPECIALS)
    return {
        "uniform": compute_uniform_losses(chosen, len(counts)),
        "squares alone": -np.log(counts / counts.sum())[chosen],
    }


def score_images(task: Task, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, ScoreWithBaselines]:
    """How surprising real images are, and how many of its own are most like a real one of the same name."""
    encoded, count = task.shape.encode(examples), task.target.count

    def shares(losses: Doubles) -> tuple[Doubles, Doubles]:
        sums = losses.reshape(-1, count).sum(1)
        return sums, np.full(len(sums), float(count))

    losses, others = compute_image_losses(task, model, encoded), baselines(task, encoded["target"].values)
    scores = score_losses({"nats a square": partial(nats, unit="square")}, losses, others, shares)
    return scores | score_drawings(task, model, *zip(*examples, strict=True))


@torch.no_grad()
def compute_image_losses(task: Task, model: Generator, encoded: Encoded) -> Doubles:
    """Of every square of every image; that an image ends is no surprise."""
    losses = np.zeros((len(encoded["target"]), task.target.count))
    for rows in batching.plan_scoring(task.shape.lengths(encoded), ROOM):
        batch = task.shape.collate(encoded, rows).to(device_of(model))
        features, _ = model.features(batch.inputs, model.initial_state(len(rows), *batch.source), batch.mask)
        counted = batch.mask & (batch.target != END)
        token_losses = compute_losses(model, features[counted], batch.target[counted], len(task.target))
        losses[rows] = token_losses.reshape(len(rows), -1)
    return losses.reshape(-1)


def score_drawings(
    task: Task, model: Generator, images: Sequence[Bytes], names: Sequence[str]
) -> dict[str, ScoreWithBaselines]:
    """Whether a drawing is most like a real image of its name; half of those at hand are known, half are asked."""
    different = sorted(set(names))
    known, judged = (list(zip(images, names, strict=True))[half::2][:KNOWN] for half in (0, 1))
    if len(different) > MOST_NAMES or len(names) < FEWEST * len(different) or len(different) < 2:
        return {}
    drawn = []
    for number, name in enumerate(different):
        seed = task.recipe.train.seed * MOST_NAMES + number
        options = SamplingOptions(task.target.count, TEMPERATURE, count=DRAWN, seed=seed)
        texts = task.writer.generate(model, name, options).finish()
        drawn += [(task.target.read_names(text.tokens)[None], name) for text in texts]
    what = f"{len(drawn)} drawings at temperature {TEMPERATURE}"
    scale = f"share of {what} that are most like a real image of the same name; 1 is all"
    others = {"real images": share_right(known, judged, scale).value, "chance": 1 / len(different)}
    return {"read right": ScoreWithBaselines(share_right(known, drawn, scale), others)}


def share_right(known: Sequence[tuple[Bytes, str]], judged: Sequence[tuple[Bytes, str]], scale: str) -> Score:
    """How many images asked about have the name of the known image that is most alike."""
    images, names = zip(*known, strict=True)
    others, true = zip(*judged, strict=True)
    places = nearest(*(np.concatenate(some).reshape(len(some), -1) for some in (others, images)))
    right = [names[place] == name for place, name in zip(places.tolist(), true, strict=True)]
    table = np.stack([np.array(right, dtype=np.float64), np.ones(len(right))], 1)
    return score_sums(table, ratio, "higher", scale, intervals=True)
