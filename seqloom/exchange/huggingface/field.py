"""Texts as the tokenizer of a Hugging Face folder cuts them.

The ids of the folder are kept, behind our special ones; a special token that both have takes our number: the end of a
text, the mask, the unknown token and what a decoder begins with. So everything here that writes, masks and counts goes
on as with any other field.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...config.foreign import FOLDER
from ...config.recipe import Data
from ...data.masking import MASK
from ...data.ragged import Ragged
from ...data.vocabulary import END, NEVER_WRITTEN, SPECIALS, START, UNKNOWN, Vocabulary
from ...errors import RecipeError, RunError
from ...fields import TEXT_KINDS
from ...fields.cutting import show_invisible
from ...fields.text import SILENT, Text
from ...schemas import MOST_SYMBOLS
from .sentencepiece import MarianTokenizer
from .tokenizer import FolderTokenizer, build_tokenizer, name_special

MARKS = {"Ġ": " ", "Ċ": "\n", "▁": " "}  # what libraries write for white space
PLACE = Path("the tokenizer")  # of what came from a run's own file
OURS = {"eos": END, "mask": MASK, "unk": UNKNOWN, "start": START}  # the first that names a token has it
BINARY = ".spm"  # what files that are no text end with


class FolderText(Text):
    """`files` are those of the tokenizer by name, `size` the tokens that the model has vectors for, `start` is the one
    that a decoder begins with. What is `written` is cut by the pieces of the target and ends where the decoder says."""

    kind, unit, lowercase = FOLDER, "subword", False

    def __init__(
        self,
        files: dict[str, bytes],
        family: str,
        size: int,
        place: Path = PLACE,
        start: int | None = None,
        written: bool = False,
    ) -> None:
        tokenizer: FolderTokenizer | None = (
            MarianTokenizer(files, place, "target") if written else build_tokenizer(files, family, place)
        )
        if tokenizer is None:
            raise RunError(f"{place}: is no tokenizer that texts of a {family} are cut with here")
        if (largest := max(tokenizer.largest_id, -1 if start is None else start)) >= size:
            raise RunError(f"{place}: the tokenizer has the id {largest}, but there are {size} vectors")
        self.files, self.family, self.size, self.tokenizer = files, family, size, tokenizer
        self.start, self.written = start, written
        special = {name: tokenizer.find_id(token) for name, token in name_special(files, family).items()}
        special["start"] = start
        begin = next((special[name] for name in ("start", "bos", "cls", "eos") if special.get(name) is not None), None)
        end = special.get("eos") if special.get("eos") is not None else special.get("sep")
        self.numbers = np.arange(size, dtype=np.int32) + len(SPECIALS)  # ours, by theirs
        used: set[int] = set()
        for name, ours in OURS.items():
            if (theirs := special.get(name)) is not None and theirs not in used:
                self.numbers[theirs] = ours
                used.add(theirs)
        self.rows = np.full(size + len(SPECIALS), -1, dtype=np.int64)  # theirs, by ours; none has -1
        self.rows[self.numbers] = np.arange(size)
        self.ends = {START: begin, END: end}  # the tokens of theirs around a text, whose vectors ours begin with
        names = {number: token for token, number in tokenizer.list_tokens().items()}
        symbols = [names.get(int(row), f"<{row}>") if row >= 0 else f"<unused {n}>" for n, row in enumerate(self.rows)]
        self.symbols = (*SPECIALS, *symbols[len(SPECIALS) :])
        self.marked = any(name.startswith("##") for name in self.symbols)  # what goes on within a word, not what begins

    @classmethod
    def _fit(cls, texts: Iterable[str], settings: Data) -> Self:
        raise RecipeError(
            'the tokenizer "folder" is that of a Hugging Face folder, and nothing is learned for it: name the folder '
            "by model.from"
        )

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        files, family, size, start = (values.get(name) for name in ("files", "family", "size", "start"))
        if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
            raise RunError("the tokenizer's files are not texts by name")
        if not isinstance(family, str) or not isinstance(size, int) or not 0 < size <= MOST_SYMBOLS:
            raise RunError("the tokenizer of a folder has no family and size")
        if start is not None and (not isinstance(start, int) or start < 0):
            raise RunError(f"the token that a decoder begins with is {start!r:.50}, but a number was expected")
        try:
            read = {name: b64decode(text) if name.endswith(BINARY) else text.encode() for name, text in files.items()}
        except ValueError:
            raise RunError("a file of the tokenizer is not in base 64") from None
        return cls(read, family, size, PLACE, start, values.get("written") is True)

    @classmethod
    def _from_json(cls, vocabulary: Vocabulary, lowercase: bool, values: dict[str, Any]) -> Self:
        return cls.from_json(values)

    def to_json(self) -> dict[str, Any]:
        files = {
            name: (b64encode(data) if name.endswith(BINARY) else data).decode() for name, data in self.files.items()
        }
        about_start = {} if self.start is None else {"start": self.start, "written": self.written}
        return {"kind": self.kind, "family": self.family, "size": self.size, "files": files, **about_start}

    def _encode(self, texts: Sequence[str]) -> Ragged:
        return self.number(self.tokenizer.encode_many(texts, special=not self.written))

    def encode_part(self, text: str) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = self.number(self.tokenizer.encode_many([text], special=False))[0]
        return ids

    def number(self, encoded: Sequence[Sequence[int]]) -> Ragged:
        return Ragged.of([self.numbers[np.array(ids, dtype=np.int64)] for ids in encoded])

    def decode(self, ids: Iterable[int]) -> str:
        theirs = [int(self.rows[number]) for number in ids if number not in SILENT]
        return self.tokenizer.decode([number for number in theirs if number >= 0])

    def names(self, ids: Iterable[int]) -> list[str]:
        return [show_invisible("".join(MARKS.get(one, one) for one in self.symbols[number])) for number in ids]

    def begins_word(self) -> NDArray[np.bool_] | None:
        if self.marked:
            return np.array([not name.startswith("##") for name in self.symbols])
        return np.array([name[:1] in MARKS for name in self.symbols])

    def source_rows(self) -> NDArray[np.int64]:
        """Of a table by our numbers, the row of theirs that each begins with; -1 where there is none."""
        rows = self.rows.copy()
        for ours, theirs in self.ends.items():
            rows[ours] = -1 if theirs is None else theirs
        return rows

    @property
    def never_written(self) -> tuple[int, ...]:
        """Besides, the numbers that no token has: without a vector their logits would be those of a frequent word."""
        unused = np.flatnonzero(self.rows < 0)
        return tuple(sorted({*NEVER_WRITTEN, *unused[unused != END].tolist()}))


TEXT_KINDS[FolderText.kind] = FolderText
