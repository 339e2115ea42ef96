"""Records for TensorBoard, where that package is installed (the extra `track`); otherwise nothing is written.

Scalars of every record, the recipe and the card as text, histograms of the weights at every validation, and at the end
the confusion matrix as a picture.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from .records import Record

DRAWN = 50_000  # values of a tensor that its histogram is made of, at most
BARS = 64  # of a histogram: TensorBoard draws 30; its own 1,549 take five times as long
CELL = 12  # pixels of a picture for each pair of classes


class Events:
    """The events.* file of one training; a resumed one adds a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.writer: Any = None
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder))

    def add(self, record: Record, model: nn.Module | None = None) -> None:
        if self.writer is None:
            return
        values = {"train/loss": record.loss, "train/rate": record.rate, "train/gradient norm": record.gradient_norm}
        values |= {f"validation/{name}": value for name, value in record.scores.items()}
        for name, value in values.items():
            if value is not None:
                self.writer.add_scalar(name, value, record.step)
        if model is not None and record.scores:
            self.add_histograms(model, record.step)

    def add_text(self, name: str, text: str, step: int) -> None:
        if self.writer is not None:
            self.writer.add_text(name, text, step)

    def add_histograms(self, model: nn.Module, step: int) -> None:
        """Of every tensor of weights; of a large one, values from all over it."""
        for name, parameter in model.named_parameters():
            whole = parameter.detach().flatten()
            values = whole[:: max(1, len(whole) // DRAWN)].float().cpu().numpy()
            if len(values) and np.isfinite(values).all():
                self.writer.add_histogram(f"weights/{name}", values, step, BARS)

    def add_scores(self, scores: dict[str, Any], step: int) -> None:
        """The final scores; of classes, a picture of the share of each true one (down) that is taken for each."""
        if self.writer is None:
            return
        for name, score in scores.items():
            self.writer.add_scalar(f"test/{name}", score["value"], step)
            if counts := score.get("confusion"):
                shares = np.array(counts, float) / np.maximum(np.sum(counts, 1, keepdims=True), 1)
                picture = np.kron(shares, np.ones((CELL, CELL)))
                self.writer.add_image(f"test/confusion of {name}", picture, step, dataformats="HW")

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
