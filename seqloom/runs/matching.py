"""Variants of a recipe that are fair to compare: as many parameters, as much time, or as many steps for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from ..config.ranges import Over
from ..config.recipe import Recipe
from ..config.train import Train, seconds
from ..errors import RecipeError
from ..tasks import declare
from ..tasks.auto import settle
from ..tasks.task import Feed, Task, TaskData
from ..training.probe import fit_steps_to_time
from .start import declare_with_start

TOLERANCE = 0.02  # the share that the parameters of matched variants may differ by
# How many times larger or smaller than the recipe's own network all may become, and whether to search finely.
ATTEMPTS = ((1.6, False), (1.6, True), (3.0, True), (8.0, True))
LARGEST = 1 << 14  # features that are tried
WIDTHS = 24  # of a feed-forward net, or of vectors, that are tried with each size


@dataclass(frozen=True)
class Variant:
    """A recipe with some settings changed."""

    name: str
    settings: tuple[str, ...]
    parameters: int = 0

    def recipe(self, base: Recipe, *more: str) -> Recipe:
        return base.override(*self.settings, *more)


def list_variants(kinds: Sequence[str], overs: Sequence[Over]) -> list[Variant]:
    """Every kind with every choice of what is varied besides."""
    if not kinds and not overs:
        raise RecipeError("no variants to compare are given: for example --kinds rnn,lstm or --over model.depth=1,2")
    if ranges := [over.name for over in overs if not over.choices]:
        raise RecipeError(f"{ranges[0]} is given as a range, but variants are listed: --over {ranges[0]}=1,2,4")
    sides: list[list[tuple[str, str]]] = [[(f"model.kind={kind}", kind) for kind in kinds]] if kinds else []
    for over in overs:
        short = over.name.split(".")[-1]
        sides.append([(f"{over.name}={choice}", f"{short}={choice}") for choice in over.choices])
    variants = [
        Variant(" ".join(name for _, name in chosen), tuple(setting for setting, _ in chosen))
        for chosen in product(*sides)
    ]
    if len({variant.name for variant in variants}) < 2 or len({variant.name for variant in variants}) < len(variants):
        raise RecipeError("at least two different variants are needed, and none of them twice")
    return variants


class Workshop:
    """The data of a recipe, read once, and models of its variants, built to be counted and timed."""

    def __init__(self, base: Recipe, examples: object = None) -> None:
        self.base = base = settle(base, examples).recipe
        resolved = base.resolved()
        self.task: Task
        self.prepared: TaskData
        self.task, self.prepared = declare_with_start(resolved)[0].prepare(resolved, lambda line: None, examples)

    def task_of(self, recipe: Recipe) -> Task:
        """The task as it was learned, with a variant's network."""
        settled, longest = recipe.resolved(), self.task.recipe.search.max_length  # which follows from the data
        if longest and not settled.search.max_length:
            settled = settled.changed("search.max_length", longest)
        return declare(settled).restore(settled, self.task.to_json())

    def count(self, recipe: Recipe) -> int:
        """The parameters of a variant's network."""
        return sum(parameter.numel() for parameter in self.task_of(recipe).shape.build().parameters())

    def time_steps(self, recipe: Recipe, budget: str) -> tuple[int, int]:
        """How many steps of a variant fit into a time, and how often to validate."""
        task = self.task_of(recipe)
        model: Any = task.shape.build()
        objective, feed, data = task.objective(model), Feed(task, self.prepared), cast(Any, self.prepared)

        def validate(likely: Train) -> dict[str, float]:
            return task.shape.validate(model, data.sample_validation(likely.validation_tokens))

        return fit_steps_to_time(seconds(budget), objective, feed, task.recipe.train, validate)


# --- parameters ---------------------------------------------------------------------------------------------------


def match_parameters(workshop: Workshop, variants: Sequence[Variant]) -> list[Variant]:
    """The variants, each of a size at which all have about as many parameters."""
    if fixed := next((one for variant in variants for one in variant.settings if one.startswith("model.size=")), ""):
        raise RecipeError(f"{fixed} is one of the variants, so sizes cannot be chosen for them: --match steps, or time")
    own = workshop.count(variants[0].recipe(workshop.base))
    counted: list[tuple[tuple[str, ...], int]] = []
    for reach, fine in ATTEMPTS:
        lists = [list_candidates(workshop, variant, own, reach, fine) for variant in variants]
        pairs = zip(variants, choose_closest(lists, own), strict=True)
        counted = [
            (settings, workshop.count(variant.recipe(workshop.base, *settings))) for variant, (settings, _) in pairs
        ]
        counts = [count for _, count in counted]
        if max(counts) / min(counts) - 1 < TOLERANCE:
            return [
                Variant(variant.name, (*variant.settings, *settings), count)
                for variant, (settings, count) in zip(variants, counted, strict=True)
            ]
    nearest = ", ".join(f"{variant.name} {count:,}" for variant, (_, count) in zip(variants, counted, strict=True))
    raise RecipeError(f"no sizes were found at which parameters differ by less than {TOLERANCE:.0%}: {nearest} at best")


Candidate = tuple[tuple[str, ...], float]  # settings, and the parameters they give


def list_candidates(workshop: Workshop, variant: Variant, target: int, reach: float, fine: bool) -> list[Candidate]:
    """Sizes of a variant and their parameters, in increasing order.

    Parameters are a polynomial of the second degree in the size, so three models say how many any has. In a straight
    line they grow with the width of a Transformer's feed-forward net and, in a `fine` search, with the vectors of
    tokens.
    """
    base = workshop.base
    recipe = variant.recipe(base)
    body, size = recipe.resolved().model, recipe.model.size
    if not isinstance(size, int):
        raise RecipeError(f"model.size is {size}, but to match parameters it is one number, the same for all levels")
    sides = body.side("encoder"), body.side("decoder")
    heads = [2 * side.heads for side in sides if hasattr(side, "heads")]
    step = math.lcm(*heads, 2 if any(getattr(side, "bidirectional", False) for side in sides) else 1)
    sizes = [step * max(1, round(size / step) + shift) for shift in (0, 2, 4)]
    count = fit_polynomial(sizes, [workshop.count(variant.recipe(base, f"model.size={one}")) for one in sizes])
    largest = next((one for one in range(step, LARGEST, step) if count(one) > reach * target), 2 * step)
    options: list[Candidate] = []
    for one in range(step, largest, step):
        if count(one) < target / reach / 2:
            continue
        options.append(((f"model.size={one}",), count(one)))
        if heads:
            options += spread_setting(workshop, variant, one, "model.feed_forward", (2 * one, 8 * one))
        elif fine:
            options += spread_setting(workshop, variant, one, "model.embedding", (max(1, one // 2), 2 * one))
    return sorted(options, key=lambda candidate: candidate[1])


def spread_setting(
    workshop: Workshop, variant: Variant, size: int, name: str, ends: tuple[int, int]
) -> list[Candidate]:
    """The same size with another setting from one end to the other; nothing where the recipe has no such setting."""
    if any(setting.startswith(f"{name}=") for setting in variant.settings):
        return []
    try:
        few, many = (
            workshop.count(variant.recipe(workshop.base, f"model.size={size}", f"{name}={end}")) for end in ends
        )
    except RecipeError:
        return []
    slope = (many - few) / (ends[1] - ends[0])
    places = sorted({round(ends[0] + (ends[1] - ends[0]) * place / WIDTHS) for place in range(WIDTHS + 1)})
    return [((f"model.size={size}", f"{name}={one}"), few + slope * (one - ends[0])) for one in places]


def fit_polynomial(places: Sequence[int], values: Sequence[int]) -> Any:
    """The polynomial through three points (Lagrange)."""

    def value(x: int) -> float:
        total = 0.0
        for one, known in zip(places, values, strict=True):
            others = [place for place in places if place != one]
            total += known * math.prod((x - other) / (one - other) for other in others)
        return total

    return value


def choose_closest(lists: Sequence[Sequence[Candidate]], goal: int) -> list[Candidate]:
    """One of each list, as near to one another as is asked; of such choices, the one nearest to what is wanted."""
    best: list[Candidate] = []
    grade = (math.inf, math.inf)
    for _, target in (candidate for candidates in lists for candidate in candidates):
        chosen = [min(options, key=lambda one: abs(one[1] - target)) for options in lists]
        counts = [count for _, count in chosen]
        apart = max(counts) / min(counts) - 1
        new = (max(0.0, apart - TOLERANCE / 2), abs(math.log(target / goal)))
        if new < grade:
            best, grade = chosen, new
    return best


# --- steps --------------------------------------------------------------------------------------------------------


def match_steps(workshop: Workshop, variants: Sequence[Variant], budget: str, each: bool) -> list[Variant]:
    """The variants with the steps that a run of each may take: those of its own time or, of all, of the slowest."""
    base = workshop.base
    if not budget:
        return [Variant(one.name, one.settings, one.parameters or workshop.count(one.recipe(base))) for one in variants]
    timed = [workshop.time_steps(variant.recipe(base), budget) for variant in variants]
    shared = timed if each else [min(timed)] * len(timed)
    return [
        Variant(
            one.name,
            (*one.settings, f"train.steps={steps}", f"train.validate_every={every}"),
            one.parameters or workshop.count(one.recipe(base)),
        )
        for one, (steps, every) in zip(variants, shared, strict=True)
    ]
