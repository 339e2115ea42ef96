"""Digits drawn from their names: how many of them a small classifier, trained on real digits, reads as they were meant.

`python benchmarks/digits.py` trains the drawer on MNIST for 1500 steps and a convolutional judge on the same
training images, draws 100 digits of each name, and says how many the judge reads right, beside how many real ones.
`SEQLOOM_DATA` names the folder with mnist/. The drawer never sees the judge, nor the judge a drawing.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from seqloom.config.recipe import Recipe
from seqloom.data.formats.idx import read_labeled
from seqloom.data.samples.digits import NAMES
from seqloom.runs.run import load, train

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SEQLOOM_DATA") or ROOT.parent / "shared" / "data") / "mnist"
STEPS, EACH, TEMPERATURE = 1500, 100, 0.7
SETTINGS = (
    *("data.square=7", "data.vocabulary_size=1024", f"data.names={','.join(NAMES)}"),
    *("data.validation_share=0.005", "data.test_share=0", "model.embedding=64", "model.decoder.kind=gru"),
    *(
        "model.decoder.size=256",
        "model.decoder.depth=1",
        "train.batch_tokens=1024",
        "train.learning_rate=3e-3",
        "model.dropout=0.0",
    ),
)


def part(name: str) -> list[str]:
    return [str(DATA / f"{name}-images-idx3-ubyte.gz"), str(DATA / f"{name}-labels-idx1-ubyte.gz")]


def scaled(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(images, dtype=np.float32).reshape(-1, 1, 28, 28) / 255)


def judge(epochs: int = 1) -> nn.Module:
    """Two convolutions and two products, trained on the real digits."""
    torch.manual_seed(0)
    images, labels = read_labeled(*part("train"))
    told = torch.from_numpy(labels.astype(np.int64))
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    steps = epochs * len(images) // 100
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps + 1)
    for _ in range(steps):
        rows = torch.randint(len(images), (100,))
        loss = nn.functional.cross_entropy(model(scaled(images[rows.numpy()])), told[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.no_grad()
def read(model: nn.Module, images: np.ndarray) -> np.ndarray:
    return np.concatenate([model(piece).argmax(1).numpy() for piece in scaled(images).split(500)])


def main() -> None:
    folder = ROOT / "results" / "digits"
    files = [f"data.train={','.join(part('train'))}", f"data.test={','.join(part('t10k'))}"]
    own = [setting for setting in sys.argv[1:] if "=" in setting]
    recipe = Recipe.read("digits", *files, *SETTINGS, f"train.steps={STEPS}", *own)
    begun = time.time()
    for record in train(recipe, folder, resume=True):
        print(record)
    seconds, run = time.time() - begun, load(folder)
    model = judge()
    images, labels = read_labeled(*part("t10k"))
    real = float((read(model, images) == labels).mean())
    by_name = {}
    for number, name in enumerate(NAMES):
        texts = run.generate(name, temperature=TEMPERATURE, count=EACH, seed=number).finish()
        drawn = np.stack([run.task.target.read_names(text.tokens) for text in texts])
        by_name[name] = float((read(model, drawn) == number).mean())
    mosaic = np.concatenate([image for image, _ in run.task.shape.read_files(part("t10k"))])
    squares = run.task.target.encode_many(list(mosaic[:, None]))
    rebuilt = np.stack([run.task.target.decode(row.tolist()) for row in squares])
    found = {
        "read right": float(np.mean(list(by_name.values()))),
        "by name": by_name,
        "real digits": real,
        "real digits as mosaics": float((read(model, rebuilt) == labels).mean()),
        "drawn": EACH * len(NAMES),
        "temperature": TEMPERATURE,
        "training with its preparing and scores, seconds": round(seconds),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
