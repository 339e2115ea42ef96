"""The answers to a file of inputs in bounded memory; a bad row stops it, or is left out and counted.

Inputs are answered some at a time, sorted by their length within, and come out in their own order.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..counts import format_count
from ..data.formats.images import Scaling, measure_image
from ..data.formats.lines import Fault
from ..data.formats.tables import SkippedRows
from ..data.inputs import Input, InputFile
from ..errors import DataError
from ..tasks.decoding_options import DecodingOptions
from ..tasks.results import Predictions

if TYPE_CHECKING:
    from .run import Run

AT_ONCE = 2048  # inputs: enough to fill batches of equal lengths, few enough to be held
LISTED = 8  # lines of rows that were left out


class Answers:
    """Iterate for inputs with their answers; `skipped` says what was left out so far."""

    def __init__(
        self,
        run: "Run",
        file: InputFile,
        skipped: SkippedRows,
        skip: bool = False,
        beam: int | None = None,
        options: DecodingOptions | None = None,  # instead of a beam
        size: int = AT_ONCE,
    ) -> None:
        self.run, self.file, self.beam, self.options = run, file, beam, options
        self.skip, self.skipped, self.size = skip, skipped, size
        self.lines: list[int] = []  # of the first rows that were left out
        self.scaling = Scaling(run.task.source.shape[:2]) if run.task.reads_images else None
        self.answered = 0

    def __iter__(self) -> Iterator[tuple[Input, Predictions]]:
        inputs = iter(self.file.inputs)
        while some := list(islice(inputs, self.size)):
            good = [one for one in map(self._accept, some) if one is not None]
            for pair in self._answer(good):
                self.answered += 1
                yield pair
        if not self.answered and self.skipped.counts:
            raise DataError(self.skipped.explain_nothing("input"))

    def _accept(self, one: Input | Fault) -> Input | None:
        """The input as the model reads it; none if it is left out."""
        if isinstance(one, Fault):
            self._pass_over(one)
            return None
        try:
            accepted = one._replace(value=self.run.task.shape.accept_input(one.value))
            if self.scaling:
                self.scaling.see(measure_image(one.value[0] if isinstance(one.value, tuple) else one.value))
            return accepted
        except DataError as error:
            self._pass_over(fault_at(one, error))
            return None

    def _answer(self, some: Sequence[Input]) -> Iterator[tuple[Input, Predictions]]:
        """All at once; where one of them cannot be answered, each by itself, to find out which."""
        if not some:
            return
        try:
            answers = self.run.answer_accepted([one.value for one in some], self.beam, self.options)
        except DataError as error:
            if len(some) == 1:
                self._pass_over(fault_at(some[0], error))
                return
            for one in some:
                yield from self._answer([one])
            return
        yield from zip(some, answers, strict=True)

    def _pass_over(self, fault: Fault) -> None:
        if not self.skip:
            raise fault.error("--on-bad-row skip leaves such rows out")
        self.skipped.add(fault)
        if fault.line and len(self.lines) < LISTED:
            self.lines.append(fault.line)

    def describe_skipped(self) -> str:
        """How many rows have no answer, why and where; nothing if all have one."""
        counts = self.skipped.counts
        if not counts:
            return ""
        reasons = "; ".join(
            f"{count:,} for {reason} (first in {self.skipped.first[reason]})" for reason, count in counts.items()
        )
        total = counts.total()
        lines = ", ".join(map(str, self.lines)) + (", …" if total > len(self.lines) else "")
        where = f"; lines {lines}" if total > 1 and self.lines else ""
        inputs = format_count(total + self.answered, "input")
        return f"{total:,} of {inputs} skipped, without an answer: {reasons}{where}"


def fault_at(one: Input, error: DataError) -> Fault:
    """What is wrong with an input, at its place in the file."""
    line = 0 if isinstance(one.value, Path) and one.file == one.name else one.line  # a file that is an input as a whole
    return Fault(error.sentence.split(",")[0][:80], error.sentence, one.file, line)
