"""Words composed of their letters, beside the vector that each known word has or instead of it."""

from abc import abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .base import last_bidirectional_pool, max_pool
from .cells import GRUCell
from .embeddings import Inputs, TokenEmbedding
from .fast.dropout import Dropout
from .recurrent import recurrent_encoder


class CharacterEncoder(nn.Module):
    """The letters of a word (N, K), 0 behind its end, to one vector (N, size)."""

    embed: TokenEmbedding  # of the letters

    @abstractmethod
    def forward(self, letters: Tensor) -> Tensor: ...


class CharacterCNN(CharacterEncoder):
    """A window of three slides over the letters; of each feature the largest value counts (Ma and Hovy, 2016)."""

    def __init__(self, symbols: int, size: int, inner: int = 32) -> None:
        super().__init__()
        self.embed, self.slide = TokenEmbedding(symbols, inner), nn.Linear(3 * inner, size)

    def forward(self, letters: Tensor) -> Tensor:
        there = letters != 0
        vectors = F.pad(self.embed(letters) * there[..., None], (0, 0, 1, 1))
        # One product for all windows: many times faster here than a convolution of such small pieces.
        windows = torch.cat([vectors[:, :-2], vectors[:, 1:-1], vectors[:, 2:]], -1)
        return max_pool(self.slide(windows), there)


class CharacterRNN(CharacterEncoder):
    """A GRU reads the letters from both ends; where either arrives is the word (Ling et al., 2015)."""

    def __init__(self, symbols: int, size: int, inner: int = 32) -> None:
        super().__init__()
        self.embed = TokenEmbedding(symbols, inner)
        self.read = recurrent_encoder(GRUCell, inner, [size], merge="concatenate")

    def forward(self, letters: Tensor) -> Tensor:
        values, _ = self.read(self.embed(letters), self.read.initial_state(len(letters)), letters != 0)
        return last_bidirectional_pool(values, letters != 0)


class CharacterWordEmbedding(nn.Module):
    """A word's vector and what its letters say, together in as many features."""

    def __init__(self, words: int, letters: CharacterEncoder, spelled: int, size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.words, self.letters = TokenEmbedding(words, size), letters
        self.join, self.dropout = nn.Linear(size + spelled, size), Dropout(dropout)

    def inputs(self) -> Inputs:
        return Inputs(len(self.words.weight), letters=len(self.letters.embed.weight))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, 1 + K): a word's number, then those of its letters -> (B, T, size)."""
        joined = self.join(torch.cat([self.words(x[..., 0]), read_letters(self.letters, x)], -1))
        vectors: Tensor = self.dropout(joined)
        return vectors


class CharacterOnlyEmbedding(nn.Module):
    """What the letters of a word say, and nothing else: words that are spelled alike are alike."""

    def __init__(self, letters: CharacterEncoder, dropout: float = 0.0) -> None:
        super().__init__()
        self.letters, self.dropout = letters, Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, 1 + K) as for `CharacterWordEmbedding` -> (B, T, size)."""
        vectors: Tensor = self.dropout(read_letters(self.letters, x))
        return vectors


class SpelledVocabulary(nn.Module):
    """A vocabulary whose words are composed of their letters: `spellings` (symbols, K) has the numbers of the letters
    of each, which `compose` reads beside the number of the word."""

    spellings: Tensor

    def __init__(self, spellings: Tensor, compose: nn.Module) -> None:
        super().__init__()
        self.compose = compose
        self.register_buffer("spellings", spellings, persistent=False)  # the field knows them

    def inputs(self) -> Inputs:
        return Inputs(len(self.spellings))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) -> (B, T, size)."""
        vectors: Tensor = self.compose(torch.cat([tokens[..., None], self.spellings[tokens]], -1))
        return vectors

    @torch.no_grad()
    def table(self) -> Tensor:
        """The vector of every word (symbols, size), for programs that look words up."""
        numbers = torch.arange(len(self.spellings), device=self.spellings.device)
        vectors: Tensor = self(numbers[None])[0]
        return vectors


def read_letters(letters: CharacterEncoder, x: Tensor) -> Tensor:
    """What the letters in x (B, T, 1 + K) say, (B, T, size); most words come again, so each is read once."""
    different, places = torch.unique(x[..., 1:].flatten(0, 1), dim=0, return_inverse=True)
    spelled: Tensor = letters(different)[places]
    return spelled.unflatten(0, x.shape[:2])
