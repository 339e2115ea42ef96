"""A run as a folder of ONNX graphs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import MissingExtra
from ..check import Check
from ..folder import export_run
from ..program import Program, Run


def save(run: Run, folder: str | Path) -> dict[str, Any]:
    """Write the graphs, what was learned beside them, and a program that answers with both.

    What was written, and how far the graphs are from the run at five sizes of batch and length.
    """
    try:
        from .check import check_model
        from .model import write_model
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("onnx", "onnxruntime"):
            raise
        raise MissingExtra(str(error.name), "onnx") from None

    def write(model: Any, program: Program) -> tuple[dict[str, bytes], Sequence[Check]]:
        graphs = write_model(model)
        checks = check_model(model, graphs, program.features, program.steps)
        return {f"{name}.onnx": data for name, data in graphs.items()}, checks

    return export_run(run, Path(folder), "onnx", write)
