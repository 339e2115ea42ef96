"""Word vectors from a file as the beginning of a model's own."""

from collections.abc import Sequence

import torch
from torch import nn

from ..data.formats.vectors import read_vectors
from ..data.tokenizers import Cut
from ..errors import RecipeError
from ..layers.character_embeddings import CharacterWordEmbedding
from ..layers.embeddings import TokenEmbedding


def begin_with(embed: nn.Module, symbols: Sequence[str], file: str) -> float:
    """Give the words of a first layer that the file knows its vectors; the share of them that it knows.

    A word that the file has only in small letters gets that vector. What it does not know stays as it was drawn.
    """
    layer = embed.words if isinstance(embed, CharacterWordEmbedding) else embed
    assert isinstance(layer, TokenEmbedding), "only words have vectors"
    plain = [symbol[1:] if Cut().joined(symbol) else symbol for symbol in symbols]
    small = [word.lower() for word in plain]
    found = read_vectors(file, list(dict.fromkeys([*plain, *small])))
    size = layer.weight.shape[1]
    if found.values.shape[1] != size:
        raise RecipeError(
            f"{file} has vectors of {found.values.shape[1]} features, but model.embedding is {size}: set it so"
        )
    places = {word: place for place, word in enumerate(dict.fromkeys([*plain, *small]))}
    known = 0
    with torch.no_grad():
        for number, (word, lower) in enumerate(zip(plain, small, strict=True)):
            place = places[word] if found.found[places[word]] else places[lower]
            if found.found[place]:
                layer.weight[number] = torch.from_numpy(found.values[place]) * size**-0.5  # the layer scales them up
                known += 1
    return known / max(len(plain), 1)
