"""What training says: one record after the other, and the counters that records are made of."""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveFloat

from ..schemas import Count, check_shape
from .watching import Observation

Kind = Literal["note", "step", "validation", "end"]
HIGHER = ("accuracy", "exact")  # scores of a validation that are the better the higher they are
GROW_LOSS_SCALE_AFTER = 2000  # steps, as torch's own GradScaler has it


@dataclass(frozen=True)
class Record:
    """A note is a sentence; the other kinds are what has happened up to this step. "end" is the last record: the last
    validation, and the final scores of the run.

    The same run gives the same records, all but notes and the timings (`tokens_per_second`, `seconds`).
    """

    kind: Kind
    step: int
    epoch: float = 0.0  # how often the data has been read
    loss: float | None = (
        None  # a target token, mean over all since the last record; none at step 0, or if all were skipped
    )
    rate: float = 0.0
    gradient_norm: float | None = None  # the largest since the last record, before clipping
    tokens: int = 0  # read so far: source and target, no padding
    tokens_per_second: float = 0.0  # since the last record, validation not counted
    seconds: float = 0.0  # since the first step, validation counted, pauses between processes not
    skipped: int = 0  # steps so far that changed nothing, because a loss or a gradient was not finite
    scores: dict[str, float] = field(default_factory=dict)  # of a validation
    best: bool = False  # whether that validation is the best so far
    watched: Observation = field(default_factory=dict)  # of a step that was watched (train.watch_every)
    text: str = ""  # of a note
    details: dict[str, Any] = field(default_factory=dict)  # of a note: its numbers, for programs
    final: dict[str, Any] = field(default_factory=dict)  # of the end: what scores.json holds

    def __str__(self) -> str:
        if self.kind == "note":
            return self.text
        names = {name: "validation loss" if name == "loss" else name for name in self.scores}
        scores = "".join(f"  {names[name]} {value:.3f}" for name, value in self.scores.items())
        loss = "–" if self.loss is None else f"{self.loss:.3f}"
        speed = f"  {self.tokens_per_second:,.0f} tokens/s" if self.step else ""
        return f"step {self.step:,}  loss {loss}{scores}{speed}"


def selection_criteria(scores: dict[str, float], best: str) -> tuple[float, float]:
    """What is to be as low as can be, and the loss: the score beside the loss, turned round if higher is better."""
    others = [name for name in scores if name != "loss"]
    if best != "score" or not others:
        return scores["loss"], scores["loss"]
    return -scores[others[0]] if others[0] in HIGHER else scores[others[0]], scores["loss"]


class Progress(BaseModel):
    """Where training stands: the position in the data, and every counter that later records depend on.

    A checkpoint holds it as JSON, which gives back every float to the bit.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    step: Count = 0
    epoch: Count = 0  # the position in the data: in this epoch …
    batch: Count = 0  # … the batch that comes next …
    window: Count = 0  # … and the window of it
    tokens: Count = 0
    seconds: NonNegativeFloat = 0.0
    skipped: Count = 0
    skipped_in_a_row: Count = 0
    loss_scale: PositiveFloat = 16.0  # what the summed loss is multiplied by in half precision, and …
    steps_at_loss_scale: Count = 0  # … the finite steps since that last changed
    best: float | None = None  # the lowest of what is to be low, and …
    best_loss: float | None = None  # … the validation loss there, which decides where that is the same
    validations_since_best: Count = 0
    # Since the last record:
    loss_sum: float = 0.0
    loss_count: NonNegativeFloat = 0.0
    largest_norm: NonNegativeFloat | None = None
    recent_tokens: Count = 0
    recent_seconds: NonNegativeFloat = 0.0
    watched: dict[str, dict[str, float | list[float]]] = {}

    @classmethod
    def read(cls, values: dict[str, Any], place: str) -> "Progress":
        return check_shape(cls, values, place)

    def judge(self, value: float, loss: float) -> bool:
        """Whether this validation is the best so far, the lowest; one that is not a number never is."""
        last = None if self.best is None else (self.best, loss if self.best_loss is None else self.best_loss)
        best = math.isfinite(value) and math.isfinite(loss) and (last is None or (value, loss) < last)
        if best:
            self.best, self.best_loss = value, loss
        self.validations_since_best = 0 if best else self.validations_since_best + 1
        return best

    def update_loss_scale(self, finite: bool) -> None:
        """Half as much after a step that has overflown, twice as much after many that have not."""
        self.steps_at_loss_scale = self.steps_at_loss_scale + 1 if finite else 0
        if not finite:
            self.loss_scale /= 2
        elif self.steps_at_loss_scale == GROW_LOSS_SCALE_AFTER:
            self.loss_scale, self.steps_at_loss_scale = 2 * self.loss_scale, 0

    def reset(self) -> None:
        """Reset the counters after a record."""
        self.loss_sum = self.loss_count = self.recent_seconds = 0.0
        self.recent_tokens = 0
        self.largest_norm = None
        self.watched = {}
