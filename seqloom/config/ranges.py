"""What a search over settings goes through: ranges and choices, as a person writes them beside other overrides."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import RecipeError
from .messages import settings
from .recipe import CHOOSING, Recipe

if TYPE_CHECKING:
    import optuna

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
RANGE = re.compile(
    rf"(?P<name>[\w.]+)=(?P<low>{NUMBER})\.\.(?P<high>{NUMBER})(?::(?:(?P<log>log)|(?P<step>\d{{1,9}})))?", re.ASCII
)


@dataclass(frozen=True)
class Over:
    """A setting that is searched over: from low to high, in equal ratios if `log`, or in steps; or some choices."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: int = 1  # of whole numbers
    choices: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return float(self.low).is_integer() and float(self.high).is_integer()

    @property
    def values(self) -> Sequence[str | int] | None:
        """All values there are; None for numbers that are not whole."""
        if self.choices:
            return self.choices
        return range(int(self.low), int(self.high) + 1, self.step) if self.whole else None

    def suggest(self, trial: "optuna.Trial") -> str:
        """A value for this trial, as it is written in an override."""
        if self.choices:
            return str(trial.suggest_categorical(self.name, self.choices))
        if self.whole:
            return str(trial.suggest_int(self.name, int(self.low), int(self.high), step=self.step, log=self.log))
        return repr(trial.suggest_float(self.name, self.low, self.high, log=self.log))


SEVERAL = re.compile(r"[|;/:{}\[\]]|\.\.|\S\s+\S|\d-\d")  # what other tools write between several values
WAYS = "several values are written name=a,b,c, and a range name=low..high or name=low..high:log"


def explain_lists(sentence: str, texts: Sequence[str]) -> str:
    """What is wrong, and how values to search over are written, if somebody has written them otherwise."""
    if not any(SEVERAL.search(text.partition("=")[2]) for text in texts):
        return sentence
    return f"{sentence}{' ' if sentence.endswith('?') else '; '}{WAYS}"


def is_range(text: str) -> bool:
    """Whether this says what is searched over, `name=low..high`, and not how a setting is set."""
    return RANGE.fullmatch(text) is not None


def is_list(text: str, recipe: Recipe) -> bool:
    """Whether this lists values of a setting that takes one and is no text, as `model.kind=gru,lstm` does."""
    name, _, value = text.partition("=")
    setting = settings(type(recipe)).get(name.strip())
    return "," in value and setting is not None and not setting.many and (name in CHOOSING or setting.type is not str)


def parse_over(text: str, recipe: Recipe) -> Over:
    """`model.size=64..256:32`, `train.learning_rate=1e-4..1e-2:log` or `model.kind=gru,lstm`; both ends must fit."""
    ends: tuple[str, ...]
    if match := RANGE.fullmatch(text):
        low, high = float(match["low"]), float(match["high"])
        over = Over(match["name"], low, high, bool(match["log"]), int(match["step"] or 1))
        if low >= high or (over.log and low <= 0) or not over.step or (match["step"] and not over.whole):
            raise RecipeError(
                f"{text}: a range goes from a lower to a higher value, above 0 if it is :log, between whole numbers if "
                "it is in steps"
            )
        ends = tuple(str(int(end)) if over.whole else repr(end) for end in (low, high))
    else:
        name, _, values = text.partition("=")
        ends = tuple(value.strip() for value in values.strip().removeprefix("[").removesuffix("]").split(","))
        over = Over(name.strip(), choices=ends)
        if len(set(ends)) < 2:
            raise RecipeError(f"{text[:80]!r} is nothing to search over: {WAYS}")
    for value in ends:
        recipe.override(f"{over.name}={value}")
    return over
