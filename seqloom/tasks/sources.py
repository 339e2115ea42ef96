"""What is read before anything is answered, text, numbers or an image: how it stands in a batch, its first layer."""

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data.codec import Codec
from ..data.layout import Side, tokens
from ..data.listed import Listed, Spelled
from ..data.numbers import Numbers
from ..data.pictures import Pictures
from ..data.ragged import Ragged
from ..data.tokenizers import Tokenizer
from ..layers.embeddings import Patches, Tokens, Values
from ..layers.padding import mask_of
from ..layers.spelling import ConvolvedLetters, RecurrentLetters, Spelling
from ..recipe import Data, Model


def side_of(data: Data) -> Side:
    """The source of a recipe that reads whole texts, numbers or images."""
    if data.source_type == "numbers":
        return Side(data.source, Numbers.kind, Numbers.learn)
    if data.source_type == "image":
        return Side(data.source, Pictures.kind, Pictures.learn)
    return tokens(data, data.source, data.source_tokens)


def listed_side(data: Data) -> Side:
    """The source of a recipe that answers to each element: words as somebody has cut them, or numbers."""
    if data.source_type == "numbers":
        return Side(data.source, Numbers.kind, Numbers.learn)
    learn = partial(Listed.learn, lowercase=data.lowercase, max_size=data.max_size, min_count=data.min_count)
    if data.characters:
        return Side(data.source, Spelled.kind, lambda texts: Spelled.learn(list(texts), learn, data.characters))
    return Side(data.source, Listed.kind, learn)


def embed(codec: Codec, model: Model) -> nn.Module:
    """The first layer for such a source."""
    size, dropout = model.embedding, model.side("encoder").dropout
    match codec:
        case Numbers():
            return Values(codec.inputs, size)
        case Pictures():
            return Patches(len(codec), model.patch, size)
        case Spelled():
            letters = ConvolvedLetters if model.spelling == "convolution" else RecurrentLetters
            return Spelling(len(codec), letters(len(codec.letters), size), size, size, dropout)
    return Tokens(len(codec), size, dropout)


def read(codec: Codec, ids: Ragged, rows: Any, patch: int) -> tuple[Tensor, Tensor]:
    """Sources side by side as the first layer takes them, with the mask (B, T) of what comes out of it."""
    values, lengths = ids.padded(rows)
    if isinstance(codec, Pictures):
        images = torch.from_numpy(codec.scaled(values[:, 0]))
        return images, torch.ones(len(images), patches(codec, patch), dtype=torch.bool)
    if isinstance(codec, Numbers):
        values = codec.scaled(values)
    elements = torch.from_numpy(values)
    if not elements.shape[1]:  # at least one wide, so that an empty one can be read as nothing
        elements = elements.new_zeros(len(elements), 1, *elements.shape[2:])
    return elements, mask_of(torch.from_numpy(lengths), elements.shape[1])


def lengths(codec: Codec, ids: Ragged, patch: int) -> NDArray[np.int64]:
    """How many elements each source has for the network."""
    if isinstance(codec, Pictures):
        return np.full(len(ids), patches(codec, patch), dtype=np.int64)
    return ids.lengths


def patches(codec: Pictures, side: int) -> int:
    height, width, _ = codec.shape
    return -(-height // side) * -(-width // side)


def is_text(codec: Codec) -> bool:
    return isinstance(codec, Tokenizer | Spelled)
