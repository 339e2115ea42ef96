"""A run as a folder of ONNX graphs: checked against the run first, then written whole or not at all."""

from copy import deepcopy
from pathlib import Path
from typing import Any

from ...errors import MissingExtra, RunError
from ...models import Generator, Labeler, device_of
from ...training.files import json_bytes
from ..folder import refuse_existing, write_folder
from ..program import Run, describe_run
from ..script import ONNXRUNTIME


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
    model = run.model
    if not isinstance(model, Labeler | Generator):
        raise RunError(f"a {type(model).__name__} is neither a labeler nor a generator, so it cannot be exported")
    refuse_existing(Path(folder))
    program = describe_run(run)
    model = (model if device_of(model).type == "cpu" else deepcopy(model).cpu()).eval()
    graphs = write_model(model)
    checks = check_model(model, graphs, program.features, program.steps)
    files = {
        **{f"{name}.onnx": data for name, data in graphs.items()},
        **program.files,
        "fields.json": json_bytes(program.fields),
        "predict.py": program.write("onnxruntime", ONNXRUNTIME),
    }
    write_folder(Path(folder), files)
    return {
        "folder": str(folder),
        "format": "onnx",
        "files": {name: len(data) for name, data in files.items()},
        "checks": [one._asdict() for one in checks],
    }
