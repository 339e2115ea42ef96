"""What a sequence says in its order, without a decoder: speech to letters, tones to notes."""

from ..config.recipe import Recipe
from ..data.schema import Schema
from ..fields import source_side, text_side
from ..schemas import MostFrequent
from .seq2seq import baselines, learn, metrics
from .task import Declaration
from .transcription import Transcription


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    sides = {"source": source_side(data), "target": text_side((data.target,), data.target_tokenizer)}
    return Declaration(
        schema=Schema("transcribe", data, sides),
        shape=Transcription,
        facts=MostFrequent,
        learn=learn,
        baselines=baselines,
        metrics=metrics,
    )
