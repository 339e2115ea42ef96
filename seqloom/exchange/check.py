"""Whether an exported model computes what the run does: both are asked, at several sizes, before anything is kept.

Knows no format: a graph is a function from arrays by name to arrays by name.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import RunError
from ..layers.embeddings import Inputs, describe_inputs
from ..layers.padding import lengths_to_mask
from ..models import Generator, Labeler

Array = Any
Graph = Callable[..., dict[str, Array]]
OpenGraph = Callable[[str], Graph]  # by its name
LABELER, ENCODER, START, DECODER = "model", "encoder", "start", "decoder"
INPUTS, LENGTHS, ROWS = "inputs", "lengths", "rows"
SIZES = ((1, 1), (2, 3), (3, 8), (1, 17), (5, 12))  # batch and length
MOST = 1e-4  # that a number may be off, of numbers above one as a share


class Check(NamedTuple):
    """The largest difference of an exported graph at one size."""

    batch: int
    length: int
    gap: float


def gap_between(output: Array, expected: Tensor) -> float:
    """The largest difference, of numbers above one as a share; what is infinite has to be so in both."""
    true = expected.detach().cpu().float().numpy()
    if output.shape != true.shape:
        raise RunError(f"the graph gives {output.shape}, but the run {true.shape}")
    finite = np.isfinite(true)
    if (finite != np.isfinite(output)).any() or (output[~finite] != true[~finite]).any():
        return float("inf")
    gaps = np.abs(output[finite] - true[finite]) / np.maximum(1, np.abs(true[finite]))
    return float(gaps.max(initial=0))


def check_model(
    model: Labeler | Generator, graph: OpenGraph, features: int = 0, steps: int = 0, least: int = 0
) -> list[Check]:
    """Differences at each size; refused if one is too large. `steps` is the only length, where there is one; a row has
    at `least` so many elements."""
    model = model.eval()
    longest = find_longest(model)
    sizes = [(batch, steps or max(1, min(length, longest - 1))) for batch, length in SIZES]
    with torch.no_grad():
        check = check_generator if model.generates else check_labeler
        gaps = list(check(model, graph, sizes, features, least))
    checks = [Check(*size, gap) for size, gap in zip(sizes, gaps, strict=True)]
    for one in checks:
        if not one.gap <= MOST:
            raise RunError(
                f"the graph is {one.gap:.1g} away from the run at batch {one.batch} and length {one.length}, more than "
                f"the {MOST:g} that rounding may do: nothing was exported"
            )
    return checks


def draw_source(
    embed: Any, batch: int, length: int, draw: np.random.Generator, features: int, least: int
) -> tuple[dict[str, Array], tuple[Tensor, Tensor]]:
    """A batch of rows of unequal lengths, as a graph and as a model reads it."""
    x = draw_inputs(embed, batch, length, draw, features)
    if side := describe_inputs(embed).side:
        patches = -(-x.shape[2] // side) * -(-x.shape[3] // side)
        return {INPUTS: x}, (torch.from_numpy(x), torch.ones(batch, patches, dtype=torch.bool))
    lengths = draw.integers(min(least, length), length + 1, batch)
    lengths[0] = length
    mask = lengths_to_mask(torch.from_numpy(lengths), length)
    return {INPUTS: x, LENGTHS: lengths}, (torch.from_numpy(x), mask)


def check_labeler(
    model: Any, graph: OpenGraph, sizes: list[tuple[int, int]], features: int, least: int
) -> Iterator[float]:
    answer, draw = graph(LABELER), np.random.default_rng(0)
    for batch, length in sizes:
        whole = length if describe_inputs(model.embed) == Inputs() else least  # such windows are always whole
        arrays, tensors = draw_source(model.embed, batch, length, draw, features, whole)
        expected = model(*tensors)
        parts = expected if isinstance(expected, tuple) else (expected,)
        yield max(gap_between(*pair) for pair in zip(answer(**arrays).values(), parts, strict=True))


def check_generator(
    model: Any, graph: OpenGraph, sizes: list[tuple[int, int]], features: int, least: int
) -> Iterator[float]:
    """All elements at once, and then one more from the state that this has left."""
    first, step = graph(START if model.source is None else ENCODER), graph(DECODER)
    draw = np.random.default_rng(0)
    for batch, length in sizes:
        arrays: dict[str, Array] = {ROWS: np.array([batch])}
        tensors: tuple[Tensor, ...] = ()
        if model.source is not None:
            arrays, tensors = draw_source(model.source.embed, batch, length, draw, features, least)
        known = first(**arrays)
        state, gap = model.initial_state(batch, *tensors), 0.0
        for time in (length, 1):
            y = draw_inputs(model.embed, batch, time, draw)
            outputs, known = run_step(step, y, known)
            expected, state = model(torch.from_numpy(y), state)
            parts = expected if isinstance(expected, tuple) else (expected,)
            gap = max(gap, *(gap_between(*pair) for pair in zip(outputs, parts, strict=True)))
        yield gap


def run_step(step: Graph, y: Array, known: dict[str, Array]) -> tuple[list[Array], dict[str, Array]]:
    """The outputs and the next state of one step."""
    outputs = step(**{INPUTS: y, **known})
    after = {name.replace("next", "state"): value for name, value in outputs.items() if name.startswith("next.")}
    return [value for name, value in outputs.items() if not name.startswith("next.")], {**known, **after}


# --- examples of what a graph reads -------------------------------------------------------------------------------


def draw_inputs(
    embed: nn.Module, batch: int, length: int, draw: np.random.Generator, features: int = 0
) -> "np.ndarray[Any, Any]":
    """A batch as this first layer takes it; `features` are those of an element that goes in as it is."""
    about = describe_inputs(embed, features)
    if about.letters:
        spelled = draw.integers(1, about.letters, (batch, length, 6))
        spelled[np.arange(6) >= draw.integers(0, 7, (batch, length, 1))] = 0
        return np.concatenate([draw.integers(0, about.symbols, (batch, length, 1)), spelled], -1)
    if about.symbols:
        return draw.integers(0, about.symbols, (batch, length))
    if about.binary:
        return draw.integers(0, 2, (batch, length, about.features)).astype(np.float32)
    size: tuple[int, ...] = (batch, length, about.features)
    if side := about.side:  # two rows of patches, the last of which are not whole
        size = (batch, about.features, 2 * side - side // 2 if length > 1 else side, max(1, length // 2) * side)
    return draw.standard_normal(size).astype(np.float32)


def find_longest(model: nn.Module) -> int:
    """How many elements a model can read: any number, but for learned positions."""
    return min(filter(None, (getattr(part, "longest", None) for part in model.modules())), default=10**6)
