"""A run as a folder of plain PyTorch: code, weights, and a program that answers; checked against the run first."""

from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from ...models import Generator, Labeler
from ..check import DECODER, ENCODER, LABELER, START, Check, Graph, check_model
from ..folder import export_run
from ..program import Program, Run
from .model import write_model
from .parts import is_transformer

WEIGHTS = "model.safetensors"
METHODS = {LABELER: "answer", ENCODER: "encode", START: "start", DECODER: "step"}


def save(run: Run, folder: str | Path) -> dict[str, Any]:
    """Write model.py, its weights, what was learned beside them, and predict.py; nothing of it needs this package.

    What was written, and how far it is from the run at five sizes of batch and length.
    """

    def write(model: Any, program: Program) -> tuple[dict[str, bytes], list[Check]]:
        text, weights = write_model(model, program.title)
        checks = check_code(model, text, weights, program.features, program.steps)
        return {"model.py": text.encode(), WEIGHTS: safetensors.torch.save(weights)}, checks

    return export_run(run, Path(folder), "torch", write)


def check_code(
    model: Labeler | Generator, text: str, weights: dict[str, Tensor], features: int, steps: int
) -> list[Check]:
    """The text is ours, so it may be run: its class, with the weights, is held against the run."""
    names: dict[str, Any] = {"__name__": "model"}
    exec(compile(text, "model.py", "exec"), names)
    net = names["Model"]()
    net.load_state_dict(weights)
    net.eval()

    def open_method(name: str) -> Graph:
        def run(**arrays: Any) -> dict[str, Any]:
            with torch.no_grad():
                outputs = getattr(net, METHODS[name])(
                    **{key.replace(".", "_"): torch.from_numpy(value) for key, value in arrays.items()}
                )
            return {key: value.numpy() for key, value in outputs.items()}

        return run

    attends = model.generates and is_transformer(model.decoder)
    return check_model(model, open_method, features, steps, least=int(attends))
