"""Written music: notes, the bars they stand in, and the lines between. Lengths are fractions of a whole note."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


class Note(NamedTuple):
    pitches: tuple[int, ...]  # as MIDI counts them; none for a rest
    length: Fraction
    tied: bool  # to the next one


@dataclass(frozen=True)
class BarLine:
    text: str = ""  # as written; nothing at the beginning and where the music ends without one
    repeats: int = 0  # how often what stands before is played again
    opens: bool = False  # a repeat begins here
    endings: tuple[int, ...] = ()  # the passes in which what follows is played
    double: bool = False

    @property
    def boundary(self) -> bool:
        """Whether a section begins or ends here, where a bar may be short."""
        return bool(self.repeats or self.opens or self.endings or self.double or not self.text)


@dataclass(frozen=True)
class Bar:
    notes: tuple[Note, ...]
    opening: BarLine
    closing: BarLine
    meter: Fraction | None  # of the bar's beginning; None if free
    count: int  # bars in one: more for a rest of several bars
    line: int

    @property
    def length(self) -> Fraction:
        return sum((note.length for note in self.notes), Fraction(0))
