"""How words are composed of their characters: the first layer for a vocabulary, or for words with their letters."""

from collections.abc import Sequence

import torch
from torch import nn

from ..config.recipe import Model
from ..data.vocabulary import PAD, SPECIALS
from ..layers.character_embeddings import (
    CharacterCNN,
    CharacterOnlyEmbedding,
    CharacterRNN,
    CharacterWordEmbedding,
    SpelledVocabulary,
)
from .base import Body


def compose_words(words: int, letters: int, model: Model, body: Body) -> nn.Module:
    """What makes a vector of a word's number and those of its letters, as the settings say."""
    size, dropout = model.embedding, model.side(body).dropout
    read = (CharacterCNN if model.spelling == "convolution" else CharacterRNN)(letters, size)
    return (
        CharacterWordEmbedding(words, read, size, size, dropout)
        if model.word_vectors
        else CharacterOnlyEmbedding(read, dropout)
    )


def spell_vocabulary(symbols: Sequence[str], longest: int, model: Model, body: Body) -> SpelledVocabulary:
    """The embedding of these symbols, of which at most so many characters are read. A special one is a letter of its
    own, which stands in no word."""
    words = symbols[len(SPECIALS) :]
    alphabet = {letter: number for number, letter in enumerate(sorted(set("".join(words))), len(SPECIALS))}
    spellings = torch.full((len(symbols), longest), PAD)
    spellings[: len(SPECIALS), 0] = torch.arange(len(SPECIALS))
    for number, word in enumerate(words, len(SPECIALS)):
        letters = [alphabet[letter] for letter in cut_word(word, longest)]
        spellings[number, : len(letters)] = torch.tensor(letters)
    return SpelledVocabulary(spellings, compose_words(len(symbols), len(SPECIALS) + len(alphabet), model, body))


def cut_word(word: str, longest: int) -> str:
    """Of a long word the first half of the letters and the last."""
    half = longest // 2
    return word if len(word) <= longest else word[: longest - half] + word[-half:]
