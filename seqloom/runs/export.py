"""A run in the forms of other programs, by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .run import Run, load


def to_onnx(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import onnx

    return onnx.save(run, folder)


def to_huggingface(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import huggingface

    huggingface.save(run.model, folder)
    files = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    return {"folder": str(folder), "format": "huggingface", "files": files}


def to_torch(run: Run, folder: Path) -> dict[str, Any]:
    from ..exchange import torch

    return torch.save(run, folder)


FORMATS: dict[str, Callable[[Run, Path], dict[str, Any]]] = {
    "onnx": to_onnx,
    "torch": to_torch,
    "huggingface": to_huggingface,
}


def export_run(folder: Path, to: str, into: Path) -> dict[str, Any]:
    """Write a trained run into a new folder: what was written, and how it was checked."""
    return FORMATS[to](load(folder, device="cpu"), into)
