"""A run as it was while it trained: its first weights, the checkpoints that were kept, and what it ended with."""

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import nn

from ..errors import SeqloomError
from ..training.checkpoints import AVERAGE, WEIGHTS, Checkpoints
from ..training.manifests import read_checked, read_manifest
from ..training.tensors import count_max_bytes, load_weights, parse_tensors

if TYPE_CHECKING:
    from .run import Run

MOST = 24  # checkpoints, evenly over training


def load_snapshots(run: "Run", skipped: list[str]) -> Iterator[tuple[int | None, nn.Module]]:
    """The models in the order of their steps: 0 as it was drawn, the kept checkpoints, and None for the run itself.

    A damaged checkpoint is left out, and the reason added to `skipped`.
    """
    if not run.recipe.data.vectors:  # a file that the first weights came from need not be there any more
        yield 0, draw_first(run)
    for step in spread(Checkpoints(run.folder / "checkpoints").steps()[::-1]):
        try:
            model = load_step(run, step)
        except SeqloomError as error:
            skipped.append(f"step {step}: {error}")
        else:
            yield step, model
    yield None, run.net  # the best, which is what answers


def draw_first(run: "Run") -> nn.Module:
    """The model before its first step: drawn again with the seed that it was drawn with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.recipe.train.seed)
        return run.task.shape.build().eval()


def load_step(run: "Run", step: int) -> nn.Module:
    """The weights after this step: their average, where one was kept, since that is what is validated."""
    place = run.folder / "checkpoints" / f"step-{step}"
    copy, sums = deepcopy(run.net), read_manifest(place)
    weights: dict[str, torch.Tensor] = {}
    for name in (WEIGHTS, AVERAGE):
        weights |= parse_tensors(read_checked(place / name, sums.get(name, []), count_max_bytes(copy)), place / name)
    load_weights(run.task.objective(copy), weights, place)  # which is what a checkpoint holds
    return copy


def spread(steps: list[int]) -> list[int]:
    """At most so many of them, evenly, the first and the last included."""
    if len(steps) <= MOST:
        return steps
    return [steps[round(number * (len(steps) - 1) / (MOST - 1))] for number in range(MOST)]
