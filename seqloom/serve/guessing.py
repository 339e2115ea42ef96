"""A passage of the test text for a game: whoever guesses its next tokens sees the model's bits and the n-gram's.

Losses are those of `seqloom score`: the model reads the passage after all that stands before it in its document.
"""

import random
from copy import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..data.prepare import PreparedData
from ..data.vocabulary import END, UNKNOWN
from ..errors import DataError
from .examples import check_files
from .models import Model

READ = 20_000  # characters of the test part that passages are taken from
CONTEXT, GUESSED = 160, 24  # tokens before a passage that are shown, and of it that are guessed


@dataclass(frozen=True)
class ScoredText:
    """Test text token by token, and what each cost in bits."""

    ids: list[int]
    model: list[float]
    others: dict[str, list[float]]


def score_passages(model: Model) -> ScoredText:
    """Read once, then kept: counting the n-grams of the training text takes a second or so."""
    check_files(model)
    prepared = cast(PreparedData, model.run.read_own_data())
    task = copy(model.language)
    task.prepared = prepared
    texts, room = [], READ
    for (text,) in task.shape.examples(prepared, "test") or task.shape.examples(prepared, "validation"):
        texts.append((text[:room],))
        room -= len(text)
        if room <= 0:
            break
    shape = task.shape
    encoded = shape.encode(texts)
    stream = shape.places(encoded)
    bits = {name: (losses / np.log(2)).tolist() for name, losses in task.declaration.baselines(task, encoded).items()}
    ids = stream.targets(np.arange(len(stream))).tolist()
    return ScoredText(ids, (shape.losses(model.generator, encoded) / np.log(2)).tolist(), bits)


def choose_passage(model: Model, seed: int) -> dict[str, Any]:
    """Some tokens of a place in the test text that the seed chooses, and what stands before them."""
    scored, target = model.remember(score_passages), model.language.target
    ends = {END, UNKNOWN}
    places = [
        start
        for start in range(CONTEXT // 4, len(scored.ids) - GUESSED)
        if not ends & set(scored.ids[start - CONTEXT // 4 : start + GUESSED])
    ]
    if not places:
        raise DataError(f"{model.name}: its test text has no stretch of {CONTEXT // 4 + GUESSED} known tokens")
    start = random.Random(seed).choice(places)
    before = scored.ids[max(0, start - CONTEXT) : start]
    before = before[max((place + 1 for place, token in enumerate(before) if token == END), default=0) :]
    strongest = min(scored.others, key=lambda name: float(np.mean(scored.others[name])))
    read, tokens = target.decode(before), []
    for place in range(start, start + GUESSED):
        text = target.decode([*before, *scored.ids[start : place + 1]])
        entry = {"text": text[len(read) :], "model": scored.model[place], "baseline": scored.others[strongest][place]}
        tokens.append(entry)
        read = text
    return {"before": target.decode(before), "tokens": tokens, "baseline": strongest, "unit": target.kind}
