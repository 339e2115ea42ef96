"""How much more labels would help: a recipe trained on shares of its training examples, and a law fitted to the errors.

The error falls as a power of the number of examples (Hestness et al., 2017), a straight line on logarithmic axes. How
sure a forecast is comes from fitting again to points that are drawn anew.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Floats
from ..config.recipe import Recipe
from ..counts import format_count
from ..errors import DataError, RecipeError
from ..tasks.auto import settle
from ..training.files import json_bytes, write_atomically
from ..training.records import Record
from .folder import SCORES
from .run import train
from .start import declare_with_start

SHARES, SEEDS, DRAWS = (16, 8, 4, 2, 1), 3, 1000
PLAN, METRIC = "plan.json", "accuracy"


class LabelStudy:
    recipe = "classify"
    claim = "how much better a classifier would be with more labels"

    def train(self, into: Path, *overrides: str) -> Iterator[Record]:
        """Train on a sixteenth, an eighth … and all of the training examples, three seeds each."""
        recipe, sentence, _ = settle(Recipe.read(self.recipe, *overrides), None, None)
        if recipe.task != "classify" or recipe.data.target_type != "label":
            raise RecipeError("the study labels counts labels: it is for recipes that give a text one label")
        if sentence:
            yield Record("note", 0, text=sentence)
        declaration, _, _ = declare_with_start(recipe)
        task, prepared = declaration.prepare(recipe.resolved(), lambda sentence: None)
        parts = {name: list(task.shape.examples(prepared, name)) for name in ("train", "validation", "test")}
        counts = choose_counts(parts["train"])
        into.mkdir(parents=True, exist_ok=True)
        write_atomically(into / PLAN, json_bytes({"counts": counts, "seeds": SEEDS}))
        for count in counts:
            for seed in range(SEEDS):
                folder = into / f"{count}-{seed}"
                if not (folder / SCORES).exists():
                    yield Record("note", 0, text=f"{format_count(count, 'label')}, seed {seed}")
                    examples = {**parts, "train": draw(parts["train"], count, seed)}
                    own = recipe.changed("train.seed", seed)
                    yield from train(own, folder, examples=examples, resume=folder.exists())

    def show(self, into: Path) -> list[dict[str, Any]]:
        """The table of what was measured and what is to be expected, and a chart."""
        from ..look.charts.labels import LabelCurve, label_curve_chart
        from .studies import save_chart

        plan = json.loads((into / PLAN).read_text(encoding="utf-8"))
        scores = [[read_score(into / f"{count}-{seed}") for seed in range(plan["seeds"])] for count in plan["counts"]]
        chart = label_curve_chart([LabelCurve("this recipe", plan["counts"], scores)], METRIC)
        save_chart(chart, into, "labels")
        rows = [
            {
                "labels": count,
                METRIC: round(float(np.mean(own)), 4),
                "±": round(float(np.std(own, ddof=1)), 4),
                "": "measured",
            }
            for count, own in zip(plan["counts"], scores, strict=True)
        ]
        most = plan["counts"][-1]
        for more in sorted({round_count(most / 2), most}):
            gain, spread = forecast_gain(plan["counts"], scores, more)
            words = f"{format_count(more, 'more label')} would give {100 * gain:+.1f} ± {100 * spread:.1f} points"
            rows.append({"labels": most + more, METRIC: round(rows[len(plan["counts"]) - 1][METRIC] + gain, 4),
                         "±": round(spread, 4), "": words})  # fmt: skip
        return rows


def choose_counts(train: Sequence[Any]) -> list[int]:
    """Shares of all training examples, of which each has at least two examples a label."""
    least = 2 * len({label for *_, label in train})
    counts = sorted({len(train) // share for share in SHARES if len(train) // share >= least})
    if len(counts) < 3:
        raise DataError(
            f"the training part has {format_count(len(train), 'example')}, but shares of them that tell "
            f"{least // 2} labels apart are "
            f"needed: at least {4 * least}"
        )
    return counts


def draw(train: Sequence[Any], count: int, seed: int) -> list[Any]:
    """So many examples by chance, some of each label."""
    order = np.random.default_rng([seed, count]).permutation(len(train)).tolist()
    first = {train[place][-1]: place for place in reversed(order)}
    chosen = [*first.values(), *(place for place in order if place not in set(first.values()))]
    return [train[place] for place in chosen[:count]]


def read_score(folder: Path) -> float:
    scores = json.loads((folder / SCORES).read_text(encoding="utf-8"))
    return float(scores["scores"][METRIC]["value"])


def fit_power_law(counts: Floats, errors: Floats) -> tuple[float, float]:
    """Of error = exp(a) · n^b, a and b, by least squares on logarithms."""
    slope, shift = np.polyfit(np.log(counts), np.log(np.maximum(errors, 1e-4)), 1)
    return float(shift), float(slope)


def forecast_gain(counts: Sequence[int], scores: Sequence[Sequence[float]], more: int) -> tuple[float, float]:
    """What so many labels more would add to the score, and half the width of its 95 % interval."""
    x = np.repeat(np.array(counts, dtype=np.float64), [len(own) for own in scores])
    errors = 1 - np.concatenate([np.asarray(own, dtype=np.float64) for own in scores])
    most, chance, gains = float(counts[-1]), np.random.default_rng(0), []

    def gain(picked: Any) -> float:
        a, b = fit_power_law(x[picked], errors[picked])
        return math.exp(a + b * math.log(most)) - math.exp(a + b * math.log(most + more))

    for _ in range(DRAWS):
        picked = chance.integers(0, len(x), len(x))
        if len(set(x[picked].tolist())) > 1:
            gains.append(gain(picked))
    low, high = np.quantile(gains, [0.025, 0.975])
    return gain(np.arange(len(x))), float(high - low) / 2


def round_count(count: float) -> int:
    """To one digit, as a person would say it."""
    size = 10 ** int(math.log10(max(count, 1)))
    return max(1, int(count // size * size))
