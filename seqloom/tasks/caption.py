"""Images to sentences, with attention over the image where the model has it. Knows no files."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..baselines.captions import constant_caption, nearest_captions, nearest_images
from ..config.recipe import Recipe
from ..data.prepare import Prepared, Split
from ..data.schema import Schema, Side
from ..fields import Image, text_side
from ..metrics import bleu, chrf
from ..schemas import Constant
from .scoring import Measure
from .tells import Tells

FIELDS = 8  # the side to which images are shrunk before the most alike is looked for


class Caption(Tells):
    learned = Constant

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        sides = {
            "source": Side(data.source, Image),
            "target": text_side((data.target,), data.target_tokenizer),
        }
        return Schema("caption", data, sides)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        """The constant caption is the one that does best as the answer to every training image."""
        _, captions = by_image(prepared.splits["train"])
        best = constant_caption(captions, lambda told, true: chrf(told, true, intervals=False).value, images=200)
        return cls.settled(recipe, prepared), {"constant": best}

    def rivals(self, inputs: Sequence[Any]) -> dict[str, list[str]]:
        """The caption of the image most alike only while the training images are at hand."""
        told = {"constant": [self.facts["constant"]] * len(inputs)}
        if self.prepared is not None:
            images, captions = by_image(self.prepared.splits["train"])
            side = np.gcd.reduce([FIELDS, *images.shape[1:3]])
            places = nearest_images(images, np.concatenate(list(inputs)), int(side))
            told["most alike"] = nearest_captions(captions, places)
        return told

    def measures(self) -> dict[str, Measure]:
        lowercase = self.recipe.data.lowercase
        return {"BLEU": partial(bleu, lowercase=lowercase), "chrF": partial(chrf, lowercase=lowercase)}


def by_image(part: Split) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], list[list[str]]]:
    """Each image once, with all of its captions."""
    images: dict[bytes, Any] = {}
    captions: dict[bytes, list[str]] = {}
    for image, text in zip(part.ids["source"], part.raws["target"], strict=True):
        images.setdefault(image.tobytes(), image)
        captions.setdefault(image.tobytes(), []).append(text)
    return np.concatenate(list(images.values())), list(captions.values())
