"""Word vectors from a file as the beginning of a model's own."""

from collections.abc import Sequence

import torch
from torch import nn

from ..counts import format_count
from ..data.formats.vectors import read_vectors
from ..errors import RecipeError
from ..layers.embeddings import find_token_table


def load_vectors(layer: nn.Module, words: Sequence[str], file: str) -> float:
    """Give the words of an embedding that the file has its vectors; the share of them that it has.

    A word that the file has only in small letters gets that vector. What it does not have stays as it was drawn.
    """
    weight, small = find_token_table(layer), [word.lower() for word in words]
    queries = list(dict.fromkeys([*words, *small]))
    vectors = read_vectors(file, queries)
    size = weight.shape[1]
    if vectors.values.shape[1] != size:
        raise RecipeError(
            f"{file} has vectors of {format_count(vectors.values.shape[1], 'feature')}, but model.embedding is "
            f"{size}: set it so"
        )
    places = {word: place for place, word in enumerate(queries)}
    known = 0
    with torch.no_grad():
        for number, (word, lower) in enumerate(zip(words, small, strict=True)):
            place = places[word] if vectors.covered[places[word]] else places[lower]
            if vectors.covered[place]:
                weight[number] = torch.from_numpy(vectors.values[place]) * size**-0.5  # the layer scales them up
                known += 1
    return known / max(len(words), 1)
