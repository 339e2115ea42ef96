"""Whether graphs compute what the model does: both are asked, at several sizes, before anything is kept."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from ...errors import RunError
from ...layers.embeddings import PatchEmbedding
from ...layers.padding import lengths_to_mask
from ...models import Generator, Labeler
from .model import DECODER, ENCODER, INPUTS, LABELER, LENGTHS, ROWS, START, Graphs, draw_inputs, longest_of

Array = Any
SIZES = ((1, 1), (2, 3), (3, 8), (1, 17), (5, 12))  # batch and length
MOST = 1e-4  # that a number may be off, of numbers above one as a share


class Check(NamedTuple):
    """How far a graph is off at one size."""

    batch: int
    length: int
    gap: float


def open_graph(data: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def gap_between(found: Array, expected: Tensor) -> float:
    """The largest difference, of numbers above one as a share; what is infinite has to be so in both."""
    true = expected.detach().cpu().float().numpy()
    if found.shape != true.shape:
        raise RunError(f"the graph gives {found.shape}, but the run {true.shape}")
    finite = np.isfinite(true)
    if (finite != np.isfinite(found)).any() or (found[~finite] != true[~finite]).any():
        return float("inf")
    gaps = np.abs(found[finite] - true[finite]) / np.maximum(1, np.abs(true[finite]))
    return float(gaps.max(initial=0))


def check_model(model: Labeler | Generator, graphs: Graphs, features: int = 0, steps: int = 0) -> list[Check]:
    """Differences at each size; refused if one is too large. `steps` is the only length, where there is one."""
    model = model.eval()
    longest = longest_of(model)
    sizes = [(batch, steps or max(1, min(length, longest - 1))) for batch, length in SIZES]
    with torch.no_grad():
        if isinstance(model, Labeler):
            gaps = list(check_labeler(model, graphs, sizes, features))
        else:
            gaps = list(check_generator(model, graphs, sizes, features))
    found = [Check(*size, gap) for size, gap in zip(sizes, gaps, strict=True)]
    for one in found:
        if not one.gap <= MOST:
            raise RunError(
                f"the graph is {one.gap:.1g} away from the run at batch {one.batch} and length {one.length}, more than "
                f"the {MOST:g} that rounding may do: nothing was exported"
            )
    return found


def draw_source(
    embed: Any, batch: int, length: int, draw: np.random.Generator, features: int, whole: bool
) -> tuple[dict[str, Array], tuple[Tensor, Tensor]]:
    """A batch of rows of unequal lengths, as a graph and as a model is given it."""
    x = draw_inputs(embed, batch, length, draw, features)
    if isinstance(embed, PatchEmbedding):
        patches = -(-x.shape[2] // embed.side) * -(-x.shape[3] // embed.side)
        return {INPUTS: x}, (torch.from_numpy(x), torch.ones(batch, patches, dtype=torch.bool))
    lengths = np.full(batch, length) if whole else draw.integers(0, length + 1, batch)
    lengths[0] = length
    mask = lengths_to_mask(torch.from_numpy(lengths), length)
    return {INPUTS: x, LENGTHS: lengths}, (torch.from_numpy(x), mask)


def check_labeler(model: Labeler, graphs: Graphs, sizes: list[tuple[int, int]], features: int) -> Iterator[float]:
    session, draw = open_graph(graphs[LABELER]), np.random.default_rng(0)
    for batch, length in sizes:
        whole = isinstance(model.embed, torch.nn.Identity)
        given, read = draw_source(model.embed, batch, length, draw, features, whole)
        expected = model(*read)
        parts = expected if isinstance(expected, tuple) else (expected,)
        yield max(gap_between(*pair) for pair in zip(session.run(None, given), parts, strict=True))


def check_generator(model: Generator, graphs: Graphs, sizes: list[tuple[int, int]], features: int) -> Iterator[float]:
    """All elements at once, and then one more from the state that this has left."""
    first, step = open_graph(graphs.get(ENCODER) or graphs[START]), open_graph(graphs[DECODER])
    draw = np.random.default_rng(0)
    for batch, length in sizes:
        given: dict[str, Array] = {ROWS: np.array([batch])}
        read: tuple[Tensor, ...] = ()
        if model.source is not None:
            given, read = draw_source(model.source.embed, batch, length, draw, features, False)
        known = {one.name: value for one, value in zip(first.get_outputs(), first.run(None, given), strict=True)}
        state, gap = model.initial_state(batch, *read), 0.0
        for time in (length, 1):
            y = draw_inputs(model.embed, batch, time, draw)
            told, known = run_step(step, y, known)
            expected, state = model(torch.from_numpy(y), state)
            parts = expected if isinstance(expected, tuple) else (expected,)
            gap = max(gap, *(gap_between(*pair) for pair in zip(told, parts, strict=True)))
        yield gap


def run_step(session: Any, y: Array, known: dict[str, Array]) -> tuple[list[Array], dict[str, Array]]:
    """What a step tells, and what is known after it."""
    names = [one.name for one in session.get_outputs()]
    taken = {one.name for one in session.get_inputs()}
    found = dict(
        zip(names, session.run(None, {INPUTS: y, **{k: v for k, v in known.items() if k in taken}}), strict=True)
    )
    after = {name.replace("next", "state"): value for name, value in found.items() if name.startswith("next.")}
    return [value for name, value in found.items() if not name.startswith("next.")], {**known, **after}
