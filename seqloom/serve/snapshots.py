"""The same input through the checkpoints that a run has kept, from its first step to its last."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from ..errors import SeqloomError
from ..runs.json_output import make_answers_json
from ..runs.run import Run
from ..training.checkpoints import AVERAGE, WEIGHTS, Checkpoints
from ..training.manifests import read_checked, read_manifest
from ..training.tensors import count_max_bytes, load_weights, parse_tensors
from .models import Model

MOST = 24  # checkpoints that are asked, evenly over training


def answer_over_training(model: Model, given: Any) -> dict[str, Any]:
    """The answers of the weights as they were drawn, of the kept checkpoints, and of the run itself."""
    read, found, skipped = model.read_input(given), [], []
    if not model.run.recipe.data.vectors:  # a file that the first weights came from need not be there any more
        found.append({"step": 0} | answer(model, draw_first(model), given, read))
    for step in spread(Checkpoints(model.run.folder / "checkpoints").steps()[::-1]):
        try:
            weights = load_step(model, step)
        except SeqloomError as error:
            skipped.append(f"step {step}: {error}".replace(str(model.run.folder), model.name))
        else:
            found.append({"step": step} | answer(model, weights, given, read))
    found.append({"step": None} | answer(model, model.run.net, given, read))  # the best, which is what is served
    return {"snapshots": found, "skipped": skipped}


def answer(model: Model, weights: nn.Module, given: Any, read: Any) -> dict[str, Any]:
    run = Run(model.run.folder, model.run.task, weights)
    return make_answers_json(run.predict(read))


def draw_first(model: Model) -> nn.Module:
    """The model before its first step: drawn again with the seed that it was drawn with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(model.run.recipe.train.seed)
        return model.run.task.build().eval()


def load_step(model: Model, step: int) -> nn.Module:
    """The weights after this step: their average, where one was kept, since that is what is validated."""
    place = model.run.folder / "checkpoints" / f"step-{step}"
    copy, sums = deepcopy(model.run.net), read_manifest(place)
    weights: dict[str, torch.Tensor] = {}
    for name in (WEIGHTS, AVERAGE):
        weights |= parse_tensors(read_checked(place / name, sums.get(name, []), count_max_bytes(copy)), place / name)
    load_weights(model.run.task.objective(copy), weights, place)  # which is what a checkpoint holds
    return copy


def spread(steps: list[int]) -> list[int]:
    """At most so many of them, evenly, the first and the last included."""
    if len(steps) <= MOST:
        return steps
    return [steps[round(number * (len(steps) - 1) / (MOST - 1))] for number in range(MOST)]
