"""Marian's tokenizer: a SentencePiece model cuts the text, and vocab.json numbers the pieces.

A SentencePiece file is a protocol buffer, of which three fields are read: the pieces with their scores, the kind of
model, and the map of characters. (Theirs may besides clean up punctuation with another package, where that is
installed; this is left to whoever gives the text.)
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import RunError
from ...training.files import parse_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
UNIGRAM = 1
NORMAL = 1  # kind of piece
SPECIAL = ("<unk>", "</s>", "<pad>")


class MarianTokenizer:
    """Pieces by the model of a side, numbered by the vocabulary of both."""

    def __init__(self, files: dict[str, bytes], folder: Path, side: str = "source") -> None:
        if "vocab.json" not in files or "target_vocab.json" in files:
            raise RunError(f"{folder}: a SentencePiece tokenizer is read with one vocab.json for both sides")
        self.files, self.ids = files, parse_json(files["vocab.json"], str(folder / "vocab.json"))
        for token, number in {"<unk>": None, "</s>": None, **self.ids}.items():
            if not isinstance(number, int) or number < 0:
                raise RunError(f"{folder / 'vocab.json'}: has no id for {token!r:.80}")
        self.largest_id = max(self.ids.values())
        self.tokens = {number: token for token, number in self.ids.items()}
        if (name := f"{side}.spm") not in files:
            raise RunError(f"{folder}: has no {name}, which cuts the texts of the {side}")
        with refuse_panics(folder / name):
            self.library, self.place = build_library(*read_pieces(files[name], folder / name)), folder

    def encode(self, text: str, special: bool = True) -> list[int]:
        """A language such as >>fr<<, which some models want to be told first, is one token."""
        code, rest = "", text
        if text.startswith(">>") and "<<" in text:
            code, _, rest = text.partition("<<")
            code += "<<"
        with refuse_panics(self.place):
            pieces = [code, *self.library.encode(rest).tokens] if code else self.library.encode(rest).tokens
        return [self.ids.get(piece, self.ids["<unk>"]) for piece in pieces] + [self.ids["</s>"]] * special

    def encode_many(self, texts: Sequence[str], special: bool = True) -> list[list[int]]:
        """The ids of each text, with the end behind them unless that is not wanted."""
        return [self.encode(text.encode("utf-8", "replace").decode("utf-8"), special) for text in texts]

    def encode_pair(self, first: str, second: str) -> tuple[list[int], list[int]]:
        raise RunError(f"{self.place}: a translation model reads one text, not a pair")

    def find_id(self, token: str) -> int | None:
        return self.ids.get(token)

    def list_tokens(self) -> dict[str, int]:
        """Every token with its id."""
        return dict(self.ids)

    def decode(self, ids: Sequence[int], special: bool = False) -> str:
        """The text of these ids, without the special tokens unless they are asked for."""
        pieces = [self.tokens.get(number, "<unk>") for number in ids]
        kept = [piece for piece in pieces if special or piece not in SPECIAL]
        return "".join(f"▁{piece}▁" if piece in SPECIAL else piece for piece in kept).replace("▁", " ").strip()


def build_library(pieces: list[tuple[str, float]], characters: bytes) -> "Library":
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    library = Tokenizer(models.Unigram([("<unk>", 0.0), *pieces], 0, False))
    steps: list[Any] = [normalizers.Precompiled(characters)] if characters else []
    steps += [normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    library.normalizer = normalizers.Sequence(steps)
    library.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    return library


@contextmanager
def refuse_panics(place: Path) -> Iterator[None]:
    """Whatever the library makes of a hostile file is one sentence: it can panic, with what is no `Exception`."""
    try:
        yield
    except RunError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # which has no public name
            raise
        raise RunError(f"{place}: the tokenizer cannot be used ({str(error):.200})") from None


def read_pieces(data: bytes, place: Path) -> tuple[list[tuple[str, float]], bytes]:
    """The pieces of a unigram model with their scores, and the map of characters."""
    pieces: list[tuple[str, float]] = []
    kind, characters = UNIGRAM, b""
    try:
        for field, value in read_fields(data):
            if field == 1:
                piece = dict(read_fields(value))
                if piece.get(3, NORMAL) == NORMAL:
                    pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0]))
            elif field == 2:
                kind = dict(read_fields(value)).get(3, UNIGRAM)
            elif field == 3:
                characters = dict(read_fields(value)).get(2, b"")
    except (ValueError, KeyError, AttributeError, TypeError, IndexError, struct.error):
        raise RunError(f"{place}: is cut short or not a SentencePiece model") from None
    if kind != UNIGRAM:
        raise RunError(f"{place}: is a SentencePiece model of kind {kind!r:.20}; only unigram models are read")
    return pieces, characters


def read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer: numbers as numbers, all else as bytes."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, value
            continue
        length = {EIGHT: 8, FOUR: 4}.get(key & 7)
        if length is None:
            if key & 7 != BYTES:
                raise ValueError("a kind of field that is not known")
            length, at = read_varint(data, at)
        if at + length > len(data):
            raise ValueError("cut short")
        yield key >> 3, data[at : at + length]
        at += length


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
    raise ValueError("too long a number")
