"""Tunes in ABC notation: written as text, checked bar by bar, saved as text, MIDI and sound."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.formats.abc import parse_tune
from ..data.music.abc_parser import parse_bars
from ..data.music.abc_playback import check_tune
from ..data.music.sound import write_midi, write_wav
from ..errors import DataError
from ..fields import Prediction
from ..models import Generator
from ..search import Recorder
from .generation import Continuation, Generation, SamplingOptions
from .results import Likelihood
from .text_writer import TextWriter, check_texts, share

if TYPE_CHECKING:
    from .task import Task

HEADER = re.compile(r"[A-Za-z]:|%")  # a line that holds no notes
NO_NOTES = re.compile(r"[\s!\\]")


class TuneWriter:
    """A writer of text that knows whether what it wrote is a tune."""

    def __init__(self, task: "Task") -> None:
        self.writer = TextWriter(task)
        self.encode_opening = self.writer.encode_opening

    def predict(self, model: Generator, text: str, count: int | None) -> list[Prediction]:
        return self.writer.predict(model, text, count)

    def measure_likelihood(self, model: Generator, given: str, text: str) -> Likelihood:
        return self.writer.measure_likelihood(model, given, text)

    def generate(self, model: Generator, prompt: str, options: SamplingOptions) -> Generation:
        return self.writer.generate(model, prompt, options)

    def search(
        self, model: Generator, prompt: str, options: SamplingOptions, recorder: Recorder | None = None
    ) -> Generation:
        return self.writer.search(model, prompt, options, recorder)

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """The same shares as for any text, and how many can be read as a tune, fill their bars, and do all of it."""
        bare = [find_faults(text.output) for text in texts]
        read = [is_readable(text.output) for text in texts]
        good = share(not faults and text.finish == "end" for faults, text in zip(bare, texts, strict=True))
        more = {"parse": share(read), "fill their bars": share(not faults for faults in bare), "well formed": good}
        return check_texts(texts, known, extract_notes) | more

    def save(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """Each tune as text, and if it can be read, as MIDI and as sound; what is wrong with it is said."""
        good = 0
        for number, text in enumerate(texts, 1):
            path = folder / f"tune-{number}.abc"
            path.write_text(text.output + "\n", encoding="utf-8")
            faults = find_faults(text.output, text.finish)
            good += not faults
            files = [path.name]
            try:
                tune = parse_tune(text.output, path.name)
                write_midi(tune, path.with_suffix(".mid"))
                write_wav(tune, path.with_suffix(".wav"))
                files += [path.with_suffix(ending).name for ending in (".mid", ".wav")]
            except DataError:
                pass  # it is among the faults
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            yield f"{', '.join(files)}: {faults[0] + more if faults else 'well formed'}"
        yield f"{good} of {len(texts)} tunes in {folder} parse, fill their bars and end"


def extract_notes(text: str) -> str:
    """The notes, without the header, marks for line breaks and white space: those are nobody's own."""
    lines = (line for line in text.split("\n") if not HEADER.match(line))
    return NO_NOTES.sub("", "".join(lines))


def is_readable(text: str) -> bool:
    """Whether a text is a tune at all, whatever its bars are like."""
    try:
        return bool(parse_bars(parse_tune(text)))
    except DataError:
        return False


def find_faults(text: str, finish: str = "end") -> tuple[str, ...]:
    """What is wrong with a tune, a sentence each."""
    unended = ("the tune does not come to an end",) if finish != "end" else ()
    if not re.search("^X:", text, re.MULTILINE):
        return (*unended, "there is no tune: no line begins with X:")
    try:
        return unended + check_tune(parse_tune(text))
    except DataError as error:
        return (*unended, str(error))
