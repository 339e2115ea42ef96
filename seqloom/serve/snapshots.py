"""The same input through the checkpoints that a run has kept, from its first step to its last."""

from typing import Any

from torch import nn

from ..runs.json_output import make_answers_json
from ..runs.run import Run
from ..runs.snapshots import load_snapshots
from .models import Model


def answer_over_training(model: Model, raw: Any) -> dict[str, Any]:
    """The answers of the weights as they were drawn, of the kept checkpoints, and of the run itself."""
    read, skipped = model.read_input(raw), list[str]()
    snapshots = [{"step": step} | answer(model, weights, read) for step, weights in load_snapshots(model.run, skipped)]
    return {"snapshots": snapshots, "skipped": [one.replace(str(model.run.folder), model.name) for one in skipped]}


def answer(model: Model, weights: nn.Module, read: Any) -> dict[str, Any]:
    run = Run(model.run.folder, model.run.task, weights)
    return make_answers_json(run.predict(read))
