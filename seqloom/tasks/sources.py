"""What is read before anything is answered, text, numbers or an image: how it stands in a batch, its first layer."""

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config.recipe import Data, Model
from ..data.codec import Codec
from ..data.layout import Side, tokens
from ..data.numbers import Numbers
from ..data.pictures import Pictures
from ..data.pretokenized import Listed, Spelled, elements
from ..data.ragged import Ragged
from ..data.tokenizers import Tokenizer
from ..layers.character_embeddings import CharacterCNN, CharacterRNN, CharacterWordEmbedding
from ..layers.embeddings import NumberEmbedding, PatchEmbedding, TokenEmbedding
from ..layers.padding import lengths_to_mask


def side_of(data: Data) -> Side:
    """The source of a recipe that reads whole texts, numbers or images."""
    if data.source_type == "numbers":
        return Side(data.source, Numbers.kind, Numbers.learn)
    if data.source_type == "image":
        return Side(data.source, Pictures.kind, Pictures.learn)
    return tokens(data, data.source, data.source_tokenizer)


def listed_side(data: Data) -> Side:
    """The source of a recipe that answers to each element: words as somebody has cut them, or numbers."""
    if data.source_type == "numbers":
        return Side(data.source, Numbers.kind, Numbers.learn)
    learn = partial(Listed.learn, lowercase=data.lowercase, max_size=data.vocabulary_size, min_count=data.min_count)
    if data.characters:
        return Side(data.source, Spelled.kind, lambda texts: Spelled.learn(list(texts), learn, data.characters))
    return Side(data.source, Listed.kind, learn)


def embed(codec: Codec, model: Model) -> nn.Module:
    """The first layer for such a source."""
    size, dropout = model.embedding, model.side("encoder").dropout
    match codec:
        case Numbers() if decays(model):
            return nn.Identity()
        case Numbers():
            return NumberEmbedding(codec.inputs, size)
        case Pictures():
            return PatchEmbedding(len(codec), model.patch, size)
        case Spelled():
            letters = CharacterCNN if model.spelling == "convolution" else CharacterRNN
            return CharacterWordEmbedding(len(codec), letters(len(codec.letters), size), size, size, dropout)
    return TokenEmbedding(len(codec), size, dropout)


def decays(model: Model) -> bool:
    """Whether the reader itself wants to know of every number if it was there, and for how long not."""
    return model.side("encoder").kind == "gru-d"


def width(codec: Codec, model: Model) -> int:
    """The features of an element behind the first layer."""
    return 3 * len(codec) if isinstance(codec, Numbers) and decays(model) else model.embedding


def read(codec: Codec, ids: Ragged, rows: Any, model: Model) -> tuple[Tensor, Tensor]:
    """Sources side by side as the first layer takes them, with the mask (B, T) of what comes out of it."""
    values, lengths = ids.padded(rows)
    if isinstance(codec, Pictures):
        images = torch.from_numpy(codec.scaled(values[:, 0]))
        return images, torch.ones(len(images), patches(codec, model.patch), dtype=torch.bool)
    if isinstance(codec, Numbers):
        values = codec.scaled(values, decays(model))
    inputs = torch.from_numpy(values)
    if not inputs.shape[1]:  # at least one wide, so that an empty one can be read as nothing
        inputs = inputs.new_zeros(len(inputs), 1, *inputs.shape[2:])
    return inputs, lengths_to_mask(torch.from_numpy(lengths), inputs.shape[1])


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


def names(codec: Codec, given: Any, ids: Ragged, patch: int) -> list[str]:
    """The elements of one source as a person sees them in a picture; of what is no text, their numbers."""
    if isinstance(codec, Spelled):
        return elements(given)
    if isinstance(codec, Tokenizer):
        return codec.names(ids[0])
    return [str(number) for number in range(1, int(lengths(codec, ids, patch)[0]) + 1)]


def symbols(codec: Codec) -> tuple[str, ...]:
    """All symbols of a source that is text."""
    return codec.symbols if isinstance(codec, Tokenizer | Spelled) else ()
