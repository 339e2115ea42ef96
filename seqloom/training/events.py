"""Records for TensorBoard, where that package is installed (the extra `track`); otherwise nothing is written."""

import importlib.util
from pathlib import Path

from .records import Record


class Events:
    """The events.* file of one training; a resumed one adds a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.writer = None
        if importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder))

    def add(self, record: Record) -> None:
        if self.writer is None:
            return
        values = {"train/loss": record.loss, "train/rate": record.rate, "train/gradient norm": record.gradient_norm}
        values |= {f"validation/{name}": value for name, value in record.scores.items()}
        for name, value in values.items():
            if value is not None:
                self.writer.add_scalar(name, value, record.step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
