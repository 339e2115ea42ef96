"""From what a batch holds to vectors: the first layer."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .fast.dropout import Dropout
from .fast.native_decoder import Lookup
from .fast.steps import Change
from .positions import frequencies, sinusoids


@dataclass(frozen=True)
class Inputs:
    """What a first layer reads of each element: the number of a symbol, that of a word and those of its letters,
    numbers, or nothing but the squares of an image (channels, height, width)."""

    symbols: int = 0
    letters: int = 0  # symbols of the letters behind a word's number
    features: int = 0
    binary: bool = False  # whether they are 0 or 1
    side: int = 0  # of a square, in pixels; the features are those of a pixel


def describe_inputs(embed: Any, features: int = 0) -> Inputs:
    """As the layer says; PyTorch's own say it by what they are. `features` are those of what goes in as it is."""
    if not hasattr(embed, "inputs"):
        return Inputs(embed.num_embeddings) if hasattr(embed, "num_embeddings") else Inputs(features=features)
    inputs: Inputs = embed.inputs()
    return inputs


class TokenEmbedding(nn.Module):
    """A learned vector for each of `symbols`. They start small, so that they can serve a head too, and are `scaled` up
    by √size (Vaswani et al., 2017) or, as in BERT and GPT-2, not."""

    def __init__(self, symbols: int, size: int, dropout: float = 0.0, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(symbols, size) * size**-0.5)
        self.dropout, self.scale = Dropout(dropout), size**0.5 if scaled else 1.0

    def inputs(self) -> Inputs:
        return Inputs(len(self.weight))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> (B, T, size)."""
        return self.dropout(nn.functional.embedding(tokens, self.weight) * self.scale)

    def fast_change(self) -> Change:
        table, scale = self.weight, self.scale
        return lambda tokens: torch.embedding(table, tokens).mul_(scale)  # without asking for options

    def lookup(self) -> Lookup | None:
        """The table as native code reads it; a subclass may do something else with it."""
        return Lookup(self.weight, self.scale) if type(self) is TokenEmbedding else None


def one_hot_embedding(symbols: int, size: int, dropout: float = 0.0) -> TokenEmbedding:
    """Of each of `symbols` a vector of `size` zeros but for a one in its place. Nothing is learned."""
    embed = TokenEmbedding(symbols, size, dropout, scaled=False)
    del embed.weight
    embed.register_buffer("weight", torch.eye(symbols, size), persistent=False)
    return embed


class SegmentEmbedding(nn.Module):
    """A token's vector and, added to it, that of its segment: the first or the second of two texts (Devlin et al.,
    2019)."""

    def __init__(self, tokens: TokenEmbedding, segments: int) -> None:
        super().__init__()
        self.tokens = tokens
        self.weight = nn.Parameter(torch.randn(segments, tokens.weight.shape[1]) * 0.02)

    def inputs(self) -> Inputs:
        return self.tokens.inputs()

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T), all of segment 0, or tokens and their segments (B, T, 2) -> (B, T, size)."""
        if tokens.dim() == 2:
            vectors: Tensor = self.tokens(tokens) + self.weight[0]
        else:
            vectors = self.tokens(tokens[..., 0]) + nn.functional.embedding(tokens[..., 1], self.weight)
        return vectors


def find_token_table(embed: nn.Module) -> nn.Parameter:
    """The vectors of the tokens of a first layer, which may have those of segments, letters or counts beside them."""
    inner = getattr(embed, "tokens", None) or getattr(embed, "words", None)
    return embed.get_parameter("weight") if inner is None else find_token_table(inner)


class NoteEmbedding(nn.Module):
    """Which of `keys` sound together, each with a learned vector of its own: the vector of a chord is their sum."""

    def __init__(self, keys: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.product, self.dropout = nn.Linear(keys, size), Dropout(dropout)

    def inputs(self) -> Inputs:
        return Inputs(features=self.product.in_features, binary=True)

    def forward(self, frames: Tensor) -> Tensor:
        """Frames (B, T, keys) of 0 and 1 -> (B, T, size)."""
        return self.dropout(self.product(frames))


class PatchEmbedding(nn.Module):
    """An image as a sequence of squares, row by row, each through a learned product (Dosovitskiy et al., 2021).

    To each is added where it stands: the first half of the features is waves of its row, the second of its column.
    A decoder that looks at the squares would otherwise not know what is above what.
    """

    def __init__(self, channels: int, side: int, size: int) -> None:
        super().__init__()
        self.side, self.product = side, nn.Linear(channels * side * side, size)
        self.register_buffer("down", frequencies(size - size // 2), persistent=False)
        self.register_buffer("right", frequencies(size // 2), persistent=False)
        self.down: Tensor
        self.right: Tensor

    def inputs(self) -> Inputs:
        return Inputs(features=self.product.in_features // self.side**2, side=self.side)

    def forward(self, image: Tensor) -> Tensor:
        """Image (B, channels, height, width) -> (B, patches, size). A square at the edge is filled up with zeros."""
        height, width = (-extent % self.side for extent in image.shape[2:])
        squares = nn.functional.unfold(nn.functional.pad(image, (0, width, 0, height)), self.side, stride=self.side)
        vectors: Tensor = self.product(squares.mT)
        return vectors + self.places(vectors, -(-image.shape[3] // self.side))

    def places(self, vectors: Tensor, across: int) -> Tensor:
        """Waves (patches, size) of the rows and columns, `across` squares to a row."""
        number, size = torch.arange(vectors.shape[1], device=vectors.device), vectors.shape[2]
        rows = sinusoids(number // across, self.down, size - size // 2)
        return torch.cat([rows, sinusoids(number % across, self.right, size // 2)], -1)


class NumberEmbedding(nn.Module):
    """Numbers through a learned product: a series, a row of a table."""

    def __init__(self, numbers: int, size: int) -> None:
        super().__init__()
        self.product = nn.Linear(numbers, size)

    def inputs(self) -> Inputs:
        return Inputs(features=self.product.in_features)

    def forward(self, values: Tensor) -> Tensor:
        """Values (B, T, numbers) -> (B, T, size)."""
        return self.product(values)
