"""An image from its name: drawn square by square, as a text is written. Knows no files but those it is to leave."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from ..arrays import Bytes, Doubles
from ..baselines.language import uniform
from ..config.recipe import Recipe
from ..data import batching
from ..data.prepare import Prepared
from ..data.schema import Schema, Side
from ..data.vocabulary import END, SPECIALS, START
from ..errors import MissingExtra
from ..fields import ImageTokens, Prediction, text_side
from ..fields.image_tokens import from_shades, in_shades, nearest
from ..metrics import Score, nats
from ..metrics.score import ratio, score_sums
from ..models import Generator, device_of
from ..schemas import Counted
from ..search import Banned, Constraint, Hypothesis, stream
from .about import About
from .base import Question, Scored, Shown
from .generating import Ask, Continuation, Generation, Told
from .rows import ROOM, Encoded
from .writes import surprises

DRAWN, TEMPERATURE = 20, 0.7  # images of each name that are drawn to see whether they can be read
KNOWN = 4000  # real images that they are compared with
MOST_NAMES, FEWEST = 50, 4  # different names, and images of each, between which reading is worth a try


@dataclass(frozen=True)
class Drawn(Prediction):
    """A drawing in five shades, and as numbers; the score is that of its squares, as of the tokens of a text."""

    squares: list[str]
    pixels: list[Any]  # rows of pixels from 0 to 255, or of their colors


class Draw(About):
    """An example is (image, name): what is the same image in two parts is what matters, not the same name."""

    learned = Counted

    @property
    def target(self) -> ImageTokens:
        return cast(ImageTokens, self.fields["target"])

    @classmethod
    def schema(cls, recipe: Recipe) -> Schema:
        data = recipe.data
        sides = {
            "target": Side((data.target,), ImageTokens),
            "source": text_side(data.source, data.source_tokenizer),
        }
        return Schema("draw", data, sides, label="source", limited=False)

    @classmethod
    def learn(cls, recipe: Recipe, prepared: Prepared) -> tuple[Recipe, dict[str, Any]]:
        squares = prepared.splits["train"].ids["target"].values
        counts = np.bincount(squares, minlength=len(prepared.fields["target"]))
        return cls.settled(recipe, prepared), {"counts": counts.tolist()}

    def validate(self, model: Generator, prepared: Prepared) -> dict[str, float]:
        return {"loss": self.loss(model, prepared.splits["validation"].ids)}

    def examples(self, prepared: Prepared, split: str) -> list[tuple[Bytes, str]]:
        """Images as squares show them: nothing else is kept of them."""
        part = prepared.splits[split]
        images = (self.target.decode(squares.tolist())[None] for squares in part.ids["target"])
        return list(zip(images, part.raws["source"], strict=True))

    def input_of(self, example: Sequence[Any]) -> Any:
        return example[1]

    def question(self, example: Sequence[Any]) -> Question:
        [image], name = example
        return Question(name, name, "\n".join(in_shades(image)), picture=image)

    # --- how good it is ---

    def score(self, model: Generator, examples: Sequence[Sequence[Any]]) -> dict[str, Scored]:
        """How surprising real images are, and how many of its own are most like a real one of the same name."""
        encoded = self.encode(examples)
        ours, told = self.losses(model, encoded), encoded["target"].values - len(SPECIALS)
        seen = np.array(self.facts["counts"][len(SPECIALS) :], dtype=np.float64) + 1  # of squares: nothing else is told
        rivals = {"uniform": uniform(told, len(seen)), "squares alone": -np.log(seen / seen.sum())[told]}
        beside = {name: self.mean(losses, False).value for name, losses in rivals.items()}
        found = {"nats a square": Scored(self.mean(ours, True), beside)}
        return found | self.readable(model, *zip(*examples, strict=True))

    def mean(self, losses: Doubles, sure: bool) -> Score:
        sums = losses.reshape(-1, self.target.count).sum(1)
        return nats(sums, np.full(len(sums), self.target.count), "square", intervals=sure)

    @torch.no_grad()
    def losses(self, model: Generator, encoded: Encoded) -> Doubles:
        """Of every square of every image; that an image ends is no surprise."""
        found = np.zeros((len(encoded["target"]), self.target.count))
        for rows in batching.sequential(self.lengths(encoded), ROOM):
            batch = self.batch_of(encoded, rows).to(device_of(model))
            features, _ = model.features(batch.inputs, model.initial_state(len(rows), *batch.source), batch.mask)
            counted = batch.mask & (batch.target != END)
            found[rows] = surprises(model, features[counted], batch.target[counted]).reshape(len(rows), -1)
        return found.reshape(-1)

    def readable(self, model: Generator, images: Sequence[Bytes], names: Sequence[str]) -> dict[str, Scored]:
        """Whether a drawing is most like a real image of its name; half of those at hand are known, half are asked."""
        different = sorted(set(names))
        known, asked = (list(zip(images, names, strict=True))[half::2][:KNOWN] for half in (0, 1))
        if len(different) > MOST_NAMES or len(names) < FEWEST * len(different) or len(different) < 2:
            return {}
        drawn = []
        for number, name in enumerate(different):
            ask = Ask(self.target.count, TEMPERATURE, count=DRAWN, seed=self.recipe.train.seed * MOST_NAMES + number)
            drawn += [(self.image(text.tokens)[None], name) for text in self.generate(model, name, ask).finish()]
        what = f"{len(drawn)} drawings at temperature {TEMPERATURE}"
        scale = f"share of {what} that are most like a real image of the same name; 1 is all"
        rivals = {"real images": share_right(known, asked, scale).value, "chance": 1 / len(different)}
        return {"read right": Scored(share_right(known, drawn, scale), rivals)}

    # --- drawing ---

    def limits(self) -> tuple[int, int | None, Sequence[Constraint]]:
        """An image has its number of squares, and nothing else."""
        return self.target.count, None, [Banned(range(len(SPECIALS)))]

    def read_out(self, found: Hypothesis) -> Drawn:
        image = self.target.decode(found.tokens)
        pixels = image[..., 0] if image.shape[-1] == 1 else image
        art = "\n".join(in_shades(image))
        return Drawn(art, found.score, self.target.names(found.tokens), pixels.tolist())

    def image(self, squares: Sequence[str]) -> Bytes:
        """The image (height, width, channels) of squares by name."""
        return self.target.decode(len(SPECIALS) + int(square) for square in squares)

    def generate(self, model: Generator, prompt: str, ask: Ask) -> Generation:
        """Images of what `prompt` names, each drawn by chance of its own; they come a row of squares at a time."""
        return Generation("", ask.count, self.told(model, prompt, ask))

    def told(self, model: Generator, name: str, ask: Ask) -> Iterator[Told]:
        whole, _, constraints = self.limits()
        rows = [0] * ask.count
        with torch.no_grad():
            state = model.initial_state(ask.count, *self.about(self.encode_inputs([name]), rows))
        last = torch.full((ask.count, 1), START, device=device_of(model))
        drawn: list[list[int]] = [[] for _ in rows]
        for picks in stream(
            *(model.stepper(), ask.sampling.choose(ask.count), last, state),
            steps=min(ask.length, whole),
            end=None,
            constraints=constraints,
            alternatives=ask.alternatives,
            patience=ask.patience(),
        ):
            for pick in picks:
                drawn[pick.row].append(pick.token)
                text = self.newest_lines(drawn[pick.row], bool(pick.finish))
                finish = "end" if len(drawn[pick.row]) == whole else pick.finish
                others = {self.target.symbols[token]: log for token, log in pick.alternatives}
                yield Told(pick.row, text, self.target.symbols[pick.token], pick.log, finish, others)

    def newest_lines(self, squares: list[int], ends: bool) -> str:
        """The lines of a row of squares that has become complete, or all that are left when the drawing ends."""
        _, across = self.target.grid
        if len(squares) % across and not ends:
            return ""
        lines = in_shades(self.target.decode(squares))
        first = (len(squares) - 1) // across * self.target.side
        return "".join(f"{line}\n" for line in lines[first : None if ends else first + self.target.side])

    def check(self, texts: Sequence[Continuation], known: Iterable[str] = ()) -> dict[str, Any]:
        """How many drawings are whole."""
        return {"texts": len(texts), "end": sum(text.finish == "end" for text in texts) / max(len(texts), 1)}

    def keep(self, texts: Sequence[Continuation], folder: Path) -> Iterator[str]:
        """A PNG file an image."""
        try:
            from PIL import Image as Pillow
        except ImportError:
            raise MissingExtra("pillow", "images") from None
        for number, text in enumerate(texts, 1):
            path = folder / f"drawing-{number}.png"
            pixels = self.image(text.tokens)
            Pillow.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(path)
            yield str(path)

    def show(self, given: Any, answer: Any) -> Shown:
        """The answer is a drawing in shades, as `predict` gives it: what is looked at is the mosaic most like it."""
        return super().show(given, from_shades(answer, self.target.size))


def share_right(known: Sequence[tuple[Bytes, str]], asked: Sequence[tuple[Bytes, str]], scale: str) -> Score:
    """How many images asked about have the name of the known image that is most alike."""
    images, names = zip(*known, strict=True)
    others, true = zip(*asked, strict=True)
    places = nearest(*(np.concatenate(some).reshape(len(some), -1) for some in (others, images)))
    right = [names[place] == name for place, name in zip(places.tolist(), true, strict=True)]
    table = np.stack([np.array(right, dtype=np.float64), np.ones(len(right))], 1)
    return score_sums(table, ratio, "higher", scale, intervals=True)
