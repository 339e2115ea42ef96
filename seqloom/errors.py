"""What can go wrong through no fault of the program, and how it is said.

    SeqloomError          every mistake below; the command line prints its sentence and exits with 2
    ├── RecipeError       a setting that does not exist, does not fit, or contradicts another
    ├── DataError         a file of examples that cannot be read as asked; knows the file and the line
    ├── RunError          a run folder that is missing, damaged, from a newer version, or in use
    ├── SearchError       a way of writing that contradicts itself, or forbids everything that could come next
    └── MissingExtra      a package that is needed here but not installed; knows the command to type

Each carries one sentence: where, what was found, what was expected, the nearest right name. Mistakes of
the program itself are not here: they stay `AssertionError` and the like, with their trace.
"""

from pathlib import Path


def escape_unprintable(text: str) -> str:
    """The text on one line: every character that would not be seen as such is written as an escape."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class SeqloomError(Exception):
    """Something a person can put right; its text is one sentence for that person, on one line.

    What a file holds may stand in it: a line break or a terminal's control character is shown, not obeyed.
    """

    def __str__(self) -> str:
        return escape_unprintable(self.text())

    def text(self) -> str:
        return super().__str__()


class RecipeError(SeqloomError):
    """A setting that does not exist, does not fit, or contradicts another."""


class DataError(SeqloomError):
    """A file of examples that cannot be read as asked."""

    def __init__(self, sentence: str, file: str | Path | None = None, line: int | None = None) -> None:
        super().__init__(sentence, file, line)  # all of them, so that copies between processes stay whole
        self.sentence = sentence
        self.file = file
        self.line = line

    def text(self) -> str:
        if self.file is None:
            return self.sentence
        place = str(self.file) if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.sentence}"


class RunError(SeqloomError):
    """A run folder that is missing, damaged, from a newer version, or in use."""


class SearchError(SeqloomError):
    """A way of writing that contradicts itself, or forbids everything that could come next."""


class MissingExtra(SeqloomError):
    """A package that is needed here but comes only with one of seqloom's extras."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra
        self.command = f"pip install 'seqloom[{extra}]'"

    def text(self) -> str:
        return f"{self.package} is needed for this and is not installed: {self.command}"
