"""Images to sentences, with attention over the image where the model has it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Bytes
from ..baselines.captions import choose_constant_caption, find_nearest_images, take_first_captions
from ..config.recipe import Recipe
from ..data.prepare import Split
from ..data.schema import Schema, Side
from ..fields import Image, text_side
from ..metrics import bleu, chrf
from ..schemas import Constant
from .conditional_generation import ConditionalGeneration
from .scoring import Metric
from .task import Declaration, Task

SHRUNK = 8  # the side to which images are shrunk before the most alike is looked for


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    sides = {"source": Side(data.source, Image), "target": text_side((data.target,), data.target_tokenizer)}
    return Declaration(
        schema=Schema("caption", data, sides),
        shape=ConditionalGeneration,
        facts=Constant,
        learn=learn,
        baselines=baselines,
        metrics=metrics,
    )


def learn(task: Task, prepared: Any) -> Constant:
    """The constant caption is the one that does best as the answer to every training image."""
    _, captions = group_by_image(prepared.splits["train"])
    return Constant(
        constant=choose_constant_caption(captions, lambda *both: chrf(*both, intervals=False).value, images=200)
    )


def baselines(task: Task, images: Sequence[Any]) -> dict[str, list[str]]:
    """The caption of the image most alike only while the training images are at hand."""
    answers = {"constant": [task.facts.constant] * len(images)}
    if task.prepared is not None:
        known, captions = group_by_image(task.prepared.splits["train"])
        side = np.gcd.reduce([SHRUNK, *known.shape[1:3]])
        places = find_nearest_images(known, np.concatenate(list(images)), int(side))
        answers["most alike"] = take_first_captions(captions, places)
    return answers


def metrics(task: Task) -> Mapping[str, Metric]:
    lowercase = task.recipe.data.lowercase
    return {"BLEU": partial(bleu, lowercase=lowercase), "chrF": partial(chrf, lowercase=lowercase)}


def group_by_image(part: Split) -> tuple[Bytes, list[list[str]]]:
    """Each image once, with all of its captions."""
    images: dict[bytes, Any] = {}
    captions: dict[bytes, list[str]] = {}
    for image, text in zip(part.ids["source"], part.raws["target"], strict=True):
        images.setdefault(image.tobytes(), image)
        captions.setdefault(image.tobytes(), []).append(text)
    return np.concatenate(list(images.values())), list(captions.values())
