"""A run in the forms of other programs, by name. To add one: a function here that writes it, and a line in `FORMATS`.

Importing this loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RecipeError

if TYPE_CHECKING:
    from .run import Run


def export_onnx(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import onnx

    return onnx.save(run, folder)


def export_huggingface(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import huggingface

    huggingface.save(run, folder)
    files = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    return {"folder": str(folder), "format": "huggingface", "files": files}


def export_torch(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import torch

    return torch.save(run, folder)


FORMATS: dict[str, Callable[[Run, Path], dict[str, Any]]] = {
    "onnx": export_onnx,
    "torch": export_torch,
    "huggingface": export_huggingface,
}


def export_run(folder: Path, to: str, into: Path) -> dict[str, Any]:
    """Write a trained run into a new folder: what was written, and how it was checked."""
    if to not in FORMATS:
        raise RecipeError(f"a run is exported to {', '.join(FORMATS)}, not to {to!r:.80}")
    from .run import load

    run = load(folder, device="cpu")
    notes = run.drop_mixture()
    return FORMATS[to](run, into) | {"notes": notes}
