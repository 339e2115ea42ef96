"""What an unknown word looks like: its shape and its last letters, by which it is read as rare words of training are
that look alike (Brants, 2000)."""

from collections import Counter
from collections.abc import Mapping

RARE = 10  # how often a word may occur whose ending says something about unknown words: frequent ones are of few kinds
LEAST = 2  # words that have to share an ending


def name_shape(word: str) -> str:
    """0 with a digit, . without letters, A with a capital in front, else a."""
    if any(letter.isdecimal() for letter in word):
        return "0"
    if not any(letter.isalpha() for letter in word):
        return "."
    return "A" if word[0].isupper() else "a"


def name_endings(word: str, longest: int) -> list[str]:
    """The shape of a word with its last letters: `longest` of them, one less, and so on, then none."""
    shape, letters = name_shape(word), word.lower()
    return [f"{shape}…{letters[len(letters) - count :]}" for count in range(min(longest, len(letters)), -1, -1)]


def list_shorter(name: str, longest: int) -> list[str]:
    """An ending, and those of its shape that have fewer letters."""
    shape, _, letters = name.partition("…")
    return [f"{shape}…{letters[first:]}" for first in range(len(letters) + 1)][-longest - 1 :]


def learn_endings(words: Mapping[str, int], longest: int) -> list[str]:
    """The endings that several rare words have; with each all shorter ones."""
    rare = (word for word, count in words.items() if count <= RARE)
    counts = Counter(name for word in rare for name in name_endings(word, longest))
    return sorted(name for name, count in counts.items() if count >= LEAST)
