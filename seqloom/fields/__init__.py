"""The kinds of side that examples have, one class each, and which of them a recipe's settings name."""

from ..config.recipe import Data
from ..data.schema import FieldKind, Side
from ..errors import RecipeError
from .base import ArrayField, Field, Prediction, SymbolField
from .frames import Frames
from .image import Image
from .image_tokens import ImageTokens
from .labels import Label, LabelSet, Number, Tags
from .ngrams import WordPairs
from .numbers import Numbers
from .series import TimeSeries
from .sound import Sound
from .text import TEXTS, Text
from .word_list import SpelledWordList, WordList

__all__ = [
    "TEXTS",
    "TEXT_KINDS",
    "ArrayField",
    "Field",
    "Frames",
    "Image",
    "ImageTokens",
    "Label",
    "LabelSet",
    "Number",
    "Numbers",
    "Prediction",
    "Sound",
    "SpelledWordList",
    "SymbolField",
    "Tags",
    "Text",
    "TimeSeries",
    "WordList",
    "source_side",
    "text_side",
    "word_side",
]


# All that a text can be cut into; `TEXTS` are those that are learned from texts and can be written. The tokenizer of a
# Hugging Face folder adds itself where one is read.
TEXT_KINDS: dict[str, type[Text]] = {**TEXTS, WordPairs.kind: WordPairs}


def text_side(columns: tuple[str, ...], tokenizer: str) -> Side:
    """A side that is text, cut as the tokenizer says."""
    if tokenizer not in TEXT_KINDS:
        raise RecipeError(f"the tokenizer is {tokenizer!r}, which is that of a folder: name the folder by model.from")
    return Side(columns, TEXT_KINDS[tokenizer])


def source_side(data: Data) -> Side:
    """The source of a recipe that reads whole texts, numbers, images or sounds."""
    if data.source_type == "tokens":
        return text_side(data.source, data.source_tokenizer)
    kinds: dict[str, FieldKind] = {"numbers": Numbers, "image": Image, "sound": Sound}
    return Side(data.source, kinds[data.source_type])


def word_side(data: Data) -> Side:
    """The source of a recipe that answers to each element: words as somebody has cut them, or numbers."""
    if data.source_type == "numbers":
        return Side(data.source, Numbers)
    return Side(data.source, SpelledWordList if data.characters else WordList)
