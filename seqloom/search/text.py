"""From tokens to text while they are still coming, and stopping at a text. Knows tokenizers only as `decode(ids)`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Decode = Callable[[Sequence[int]], str]

UNSURE = "�"  # what `decode` makes of bytes that are no character, or not yet
LONGEST = 4  # bytes of a character


class Pieces:
    """Turns tokens into pieces of text, each given once it is whole and no later token can change it.

    Of `decode` it needs that more tokens only add to the text of fewer, but for characters at its end that are not
    complete yet. With `stops`, the text ends before the string of these that is complete first; what may be the
    beginning of one is held back until it is known.
    """

    def __init__(self, decode: Decode, stops: Sequence[str] = ()) -> None:
        self.decode, self.stops = decode, [stop for stop in stops if stop]
        self.known: list[int] = []  # the tokens of the last text given: the next ones are read after them
        self.new: list[int] = []  # the tokens since
        self.emitted = 0  # how many characters of the new tokens' text were given already
        self.held = ""  # text that may be the beginning of a stop
        self.stopped = False

    def add(self, token: int) -> str:
        """The text that no later token can change; often empty."""
        self.new.append(token)
        text = self.unread()
        whole = not text.endswith(UNSURE)
        certain = text[
            self.emitted : len(text) if whole else -1
        ]  # what may become a character is the last one's business
        if whole and text:
            self.known, self.new, self.emitted = self.new, [], 0
        else:
            self.emitted += len(certain)
        return self.hold_stop(certain)

    def finish(self) -> str:
        """The remaining text after the last token."""
        rest = self.hold_stop(self.unread()[self.emitted :])
        self.new, self.emitted = [], 0
        rest, self.held = rest + ("" if self.stopped else self.held), ""
        return rest

    def unread(self) -> str:
        """The text of the new tokens. Some tokenizers write a token differently at the very beginning."""
        return self.decode([*self.known, *self.new])[len(self.decode(self.known)) :]

    def hold_stop(self, text: str) -> str:
        if self.stopped:
            return ""
        self.held += text
        places = [(place + len(stop), place) for stop in self.stops if (place := self.held.find(stop)) >= 0]
        if places:
            self.stopped = True
            return self.held[: min(places)[1]]
        length = max((overlap_length(self.held, stop) for stop in self.stops), default=0)
        released, self.held = self.held[: len(self.held) - length], self.held[len(self.held) - length :]
        return released


def overlap_length(text: str, stop: str) -> int:
    """How many characters at the end of the text are the beginning of the stop, short of all of it."""
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)


@dataclass(frozen=True)
class StopTokens:
    """Stops after any of these sequences of tokens; it is not part of the output."""

    sequences: Sequence[Sequence[int]]

    def __call__(self, tokens: Sequence[int]) -> int | None:
        for sequence in self.sequences:
            if sequence and list(tokens[-len(sequence) :]) == list(sequence):
                return len(tokens) - len(sequence)
        return None


@dataclass(frozen=True)
class StopText:
    """Stops when the text holds any of these strings.

    A string may begin in the middle of a token, so all tokens are kept: `Pieces` cuts the text.
    """

    decode: Decode
    strings: Sequence[str]

    def __call__(self, tokens: Sequence[int]) -> int | None:
        longest = max(map(len, self.strings), default=0)
        text = self.decode(tokens[-LONGEST * (longest + 1) :])  # what came before was looked at before
        return len(tokens) if any(string and string in text for string in self.strings) else None
