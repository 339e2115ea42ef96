"""Free generation of images: square by square from a name, and files of them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..errors import MissingExtra
from ..fields import ImageTokens
from ..fields.image_tokens import to_shades
from ..models import Generator
from ..search import stream
from .generation import Continuation, Generation, SamplingOptions, Token

if TYPE_CHECKING:
    from .task import Task


class ImageWriter:
    def __init__(self, task: "Task") -> None:
        self.task, self.shape = task, task.shape
        self.field: ImageTokens = task.target

    def generate(self, model: Generator, prompt: str, options: SamplingOptions) -> Generation:
        """Images of what `prompt` names, each drawn by chance of its own; they come a row of squares at a time."""
        return Generation("", options.count, self.draw(model, prompt, options))

    def draw(self, model: Generator, name: str, options: SamplingOptions) -> Iterator[Token]:
        limits, rows, symbols = self.field.limits(self.task.recipe), [0] * options.count, self.field.symbols
        with torch.no_grad():
            last, state = self.shape.begin(model, self.shape.cut(self.shape.inputs.encode([name])), rows)
        drawn: list[list[int]] = [[] for _ in rows]
        for picks in stream(
            *(model.stepper(), options.sampling.choose(options.count), last, state),
            steps=min(options.length, limits.steps),
            end=limits.end,
            constraints=limits.constraints,
            alternatives=options.alternatives,
            patience=options.patience(),
        ):
            for pick in picks:
                drawn[pick.row].append(pick.token)
                text = self.format_newest_lines(drawn[pick.row], bool(pick.finish))
                finish = "end" if len(drawn[pick.row]) == limits.steps else pick.finish
                others = {symbols[token]: log for token, log in pick.alternatives}
                yield Token(pick.row, text, symbols[pick.token], pick.log, finish, others)

    def format_newest_lines(self, squares: list[int], ends: bool) -> str:
        """The lines of a row of squares that has become complete, or all that are left when the drawing ends."""
        _, across = self.field.grid
        if len(squares) % across and not ends:
            return ""
        lines = to_shades(self.field.decode(squares))
        first = (len(squares) - 1) // across * self.field.side
        return "".join(f"{line}\n" for line in lines[first : None if ends else first + self.field.side])

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """How many drawings are whole."""
        return {"texts": len(texts), "end": sum(text.finish == "end" for text in texts) / max(len(texts), 1)}

    def save(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """A PNG file an image."""
        try:
            from PIL import Image as Pillow
        except ImportError:
            raise MissingExtra("pillow", "images") from None
        for number, text in enumerate(texts, 1):
            path, pixels = folder / f"drawing-{number}.png", self.field.read_names(text.tokens)
            Pillow.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(path)
            yield str(path)
