"""Language: prose, verse, proteins; characters, words or subwords; one long text, or documents of their own."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..config.recipe import Recipe
from ..data.documents import is_text
from .generating import Continuation
from .texts import WritesText


class Language(WritesText):
    @classmethod
    def is_text(cls, recipe: Recipe) -> bool:
        return is_text(recipe.data)

    def keep(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """A file a text."""
        for number, text in enumerate(texts, 1):
            path = folder / f"text-{number}.txt"
            path.write_text(text.output + "\n", encoding="utf-8")
            yield str(path)
