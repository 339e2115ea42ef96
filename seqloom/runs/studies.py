"""Studies of well-known claims: one recipe trained in several ways, and the results side by side in one picture.

A study is a recipe and, for each way, what is changed in it. Each way is an ordinary run in a folder of its own; a
study that was stopped goes on when it is asked for again. Knows no layer and no task.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Floats
from ..config.recipe import Recipe
from ..errors import RecipeError
from ..training.records import Record
from .folder import SCORES
from .label_study import LabelStudy
from .run import Run, load, train

HALF = "HALF"  # of the steps, in the changes of a way
RADAM_STEPS = 2000


@dataclass(frozen=True)
class Study:
    """`shows` makes files of the finished runs and gives the rows of a table, each with the name of its way."""

    recipe: str
    claim: str
    ways: Mapping[str, Sequence[str]]
    shows: "Callable[[dict[str, Run], Path], list[dict[str, Any]]]"

    def train(self, into: Path, *overrides: str) -> Iterator[Record]:
        """Train every way that is not trained yet."""
        for way, changes in self.ways.items():
            folder = get_run_folder(into, way)
            if not (folder / SCORES).exists():
                settings = fill_steps(changes, Recipe.read(self.recipe, *overrides))
                yield Record("note", 0, text=f"{way}: {' '.join(settings)}")
                recipe = Recipe.read(self.recipe, *settings, *overrides)
                yield from train(recipe, folder, resume=folder.exists())

    def show(self, into: Path) -> list[dict[str, Any]]:
        """Of a study that is trained, write the pictures, and give the table."""
        return self.shows({way: load(get_run_folder(into, way)) for way in self.ways}, into)


def train_study(name: str, into: Path, *overrides: str) -> Iterator[Record]:
    """Train what is not trained yet."""
    if name not in STUDIES:
        raise RecipeError(f"there is no study {name!r}; there are {', '.join(STUDIES)}")
    yield from STUDIES[name].train(into, *overrides)


def fill_steps(changes: Sequence[str], recipe: Recipe) -> list[str]:
    """The changes of a way, in which HALF stands for half of all steps."""
    return [change.replace(HALF, str(max(1, recipe.train.known_steps // 2))) for change in changes]


def get_run_folder(into: Path, way: str) -> Path:
    return into / way.replace(" ", "-").replace(",", "")


def show_study(name: str, into: Path) -> list[dict[str, Any]]:
    """Of a study that is trained, write the pictures and results.json, and give the table."""
    rows = STUDIES[name].show(into)
    (into / "results.json").write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return rows


def save_chart(chart: Any, folder: Path, name: str) -> None:
    """Save a chart as .html and .svg."""
    from ..look.charts.base import save

    for ending in (".html", ".svg"):
        save(chart, folder / f"{name}{ending}")


# --- vanishing gradients, side by side ------------------------------------------------------------------------

NEAR, FAR = (1, 10), (31, 40)  # distances


def show_vanishing(runs: dict[str, Run], folder: Path) -> list[dict[str, Any]]:
    """Accuracy against distance, and ‖∂L/∂h‖ over time before and after training."""
    from ..look.charts.comparison import panels_chart, reach_chart

    right = {way: measure_accuracy_by_distance(run) for way, run in runs.items()}
    chart = panels_chart(
        {way: smooth(points, 4) for way, points in right.items()},
        "distance (letters)",
        "accuracy",
        "Accuracy of recall by distance",
        "Each model in its panel, the others in gray; chance is one in eight",
    )
    save_chart(chart, folder, "accuracy")
    before, after = ({way: measure_reach(run, fresh) for way, run in runs.items()} for fresh in (True, False))
    save_chart(reach_chart({"before training": before, "after training": after}), folder, "gradients")
    return [
        {
            "way": way,
            "parameters": sum(parameter.numel() for parameter in run.net.parameters()),
            "accuracy": round(float(right[way][:, 1].mean()), 3),
            **{f"{low} to {high} back": round(average_between(right[way], low, high), 3) for low, high in (NEAR, FAR)},
            "gradient 40 back, before": float(f"{before[way][40] / before[way].max():.1e}"),
            "gradient 40 back, after": float(f"{after[way][40] / after[way].max():.1e}"),
        }
        for way, run in runs.items()
    ]


def measure_accuracy_by_distance(run: Run) -> Floats:
    """(distances, 2): how many letters come after the one that is asked for, and the share of right answers."""
    examples = run.task.shape.examples(run.read_own_data(), "test")
    predictions = run.predict_many([source for source, _ in examples], 1)
    hits_at: dict[int, list[bool]] = {}
    for (source, truth), (best, *_) in zip(examples, predictions, strict=True):
        hits_at.setdefault(len(source) // 2, []).append(best.output == truth)
    return np.array([[distance, np.mean(hits)] for distance, hits in sorted(hits_at.items())])


def measure_reach(run: Run, fresh: bool, rows: int = 64) -> Floats:
    """‖∂L/∂h‖ of the lowest layer by steps back from the end, on the longest examples; `fresh`: with new weights."""
    import torch

    from ..look.charts.comparison import reverse_time
    from ..look.measures.gradients import compute_gradient_flow
    from ..training.randomness import preserve_random_state

    examples = sorted(run.task.shape.examples(run.read_own_data(), "test"), key=lambda one: -len(one[0]))[:rows]
    model: Any = run.net
    if fresh:
        with preserve_random_state():
            torch.manual_seed(run.recipe.train.seed)
            model = run.task.shape.build()
    longest = (pair for pair in examples if len(pair[0]) == len(examples[0][0]))
    shown = [run.task.shape.inspect(*pair).batch for pair in longest]
    flows = [compute_gradient_flow(model, batch)[0].norms[0] for batch in shown]
    return reverse_time(np.mean(flows, 0))


def smooth(points: Floats, width: int) -> Floats:
    """Means of so many points in a row: forty answers a distance are few."""
    count = len(points) // width * width
    return points[:count].reshape(-1, width, 2).mean(1)


def average_between(points: Floats, low: int, high: int) -> float:
    return float(points[(points[:, 0] >= low) & (points[:, 0] <= high), 1].mean())


# --- how to tame a Transformer --------------------------------------------------------------------------------


def show_taming(runs: dict[str, Run], folder: Path) -> list[dict[str, Any]]:
    """The training losses, a panel for each way."""
    from ..look.charts.comparison import panels_chart

    losses = {way: run.history.curves.training for way, run in runs.items()}
    words = "Each variant in its panel, the others in gray; twelve layers and the same data"
    title = "Training loss of a deep Transformer"
    save_chart(panels_chart(losses, "step", "training loss", title, words, shares=False), folder, "curves")
    save_chart(draw_rectification(runs), folder, "radam")
    return [
        {
            "way": way,
            "training loss": round(float(losses[way][-3:, 1].mean()), 3),
            "validation loss": round(float(run.history.curves.validation[:, 1].min()), 3),
            "first gradient": round(float(run.history.curves.gradients[0, 1]), 3),
        }
        for way, run in runs.items()
    ]


def draw_rectification(runs: dict[str, Run]) -> Any:
    """The share of Adam's step that RAdam makes in its first steps, beside the ramp of the warm-up."""
    from ..look.charts.comparison import curves_together_chart
    from ..look.measures.schedules import compute_rectification

    warmup = max(run.recipe.train.warmup for run in runs.values())
    ramp = np.array([[1.0, 1 / warmup], [warmup, 1.0], [max(RADAM_STEPS, warmup), 1.0]])
    curves = {"RAdam": compute_rectification(RADAM_STEPS), f"warm-up of {warmup} steps": ramp}
    words = (
        "RAdam's rectification with beta 0.999 is a warm-up that takes some thousand steps, however long training is"
    )
    return curves_together_chart(curves, "step", "share of the step", "RAdam's first 2,000 steps", words)


STUDIES: dict[str, Study | LabelStudy] = {
    "vanishing": Study(
        "vanishing",
        "plain recurrences forget because their gradient vanishes; gates, orthogonal weights and attention do not",
        {
            "rnn": ["model.kind=rnn", "model.bidirectional=false"],
            "lstm": ["model.kind=lstm", "model.bidirectional=false"],
            "gru": ["model.kind=gru", "model.bidirectional=false"],
            "orthogonal": ["model.kind=orthogonal", "model.bidirectional=false"],
            "transformer": ["model.kind=transformer", "model.heads=4", "model.depth=2"],
        },
        show_vanishing,
    ),
    "taming": Study(
        "taming",
        "a deep Transformer with norms after each part needs a warm-up; norms before, ReZero or RAdam do without",
        {
            "post-LN": ["train.warmup=1"],
            "post-LN, warm-up": [f"train.warmup={HALF}"],
            "pre-LN": ["model.norm=pre"],
            "ReZero": ["model.norm=rezero"],
            "ReZero, shared": ["model.norm=rezero", "model.rezero_shared=true"],
            "post-LN, RAdam": ["train.optimizer=radam"],
            "post-LN, SGD": ["train.optimizer=sgd", "train.learning_rate=0.1"],
            "post-LN, SGD, warm-up": ["train.optimizer=sgd", "train.learning_rate=0.1", f"train.warmup={HALF}"],
        },
        show_taming,
    ),
    "labels": LabelStudy(),
}
