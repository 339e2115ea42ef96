"""Series of numbers, continued: from the last rows of one to the next ones, of all its variables at once.

What a model reads of a window, and the way back from what it says, is in `views`; what its forecasts are measured
against, in `rivals`. Knows series and windows of them, not files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from ..architectures.build import build_forecaster
from ..arrays import Doubles
from ..config.recipe import Recipe
from ..data.formats.series import Series
from ..data.formats.tables import Skipped
from ..data.formats.times import following
from ..data.series_datasets import from_python, read_histories
from ..data.series_windows import Panel, Prepared, Scale, Windows, prepare, whole_windows
from ..data.splits import shuffle
from ..errors import DataError, RunError
from ..fields import Prediction
from ..layers.heads import Head, Mean, Quantiles
from ..layers.padding import full_mask
from ..models import Batch, Labeler, LabelingObjective, Objective
from ..schemas import Number, Shape, checked
from .base import Question, Scored, Shown, Task, Tell, evenly
from .rivals import Rivals, forecast_scores
from .rows import check_positions
from .views import Seen, View

ROOM = 65536  # elements that are read at once when nothing is trained
UNITS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}  # in milliseconds
QUICK = 1000  # windows of a validation
STEP = r"^([1-9][0-9]{0,14} (ms|months)|[0-9.e+-]{1,30}|)$"  # as `Series.step` is written


@dataclass(frozen=True)
class Outlook(Prediction):
    """What comes next: when, the forecast of each variable, and the quantiles around it by their level. There is one
    answer, so the score, which ranks answers, is 0."""

    times: list[str]
    values: dict[str, list[float]]
    quantiles: dict[str, dict[str, list[float]]]


class Facts(Shape):
    """What was learned from the training part, small enough for JSON."""

    variables: list[str]
    inputs: list[str]
    calendar: Annotated[int, Field(ge=0, le=100)]  # features that say when
    step: Annotated[str, Field(pattern=STEP)]  # from row to row
    gaps: bool  # whether values are missing
    mean: list[Annotated[Number, Field(ge=-1e38, le=1e38)]]
    spread: list[Annotated[Number, Field(gt=1e-30, le=1e38)]]
    rivals: Rivals

    @property
    def scale(self) -> Scale:
        return Scale(np.array(self.mean), np.array(self.spread))


class Forecast(Task):
    def __init__(self, recipe: Recipe, facts: Facts) -> None:
        self.recipe, self.facts = recipe, facts
        model = recipe.model
        self.view = View(
            variables=len(facts.variables),
            inputs=len(facts.inputs),
            calendar=facts.calendar,
            decays=model.side("encoder").kind == "gru-d",
            gaps=facts.gaps,
            relative=model.relative,
            alone=model.channel_independent,
            span=model.patch_length,
        )

    @classmethod
    def prepare(
        cls, recipe: Recipe, tell: Tell, examples: object = None, known: dict[str, Any] | None = None
    ) -> tuple[Self, Prepared]:
        before = None if known is None else cls.restore(recipe, known)
        prepared = prepare(recipe.data, tell, examples, None if before is None else before.facts.scale)
        if before is not None:
            before.check_columns(prepared)
            return before, prepared
        elements = np.array([recipe.data.context // recipe.model.patch_length])
        check_positions("encoder", recipe.model.side("encoder"), elements)
        series, inputs = prepared.training[0], len(recipe.data.inputs)
        variables = len(series.columns) - inputs
        train = prepared.parts["train"]
        facts = Facts(
            variables=list(series.columns[:variables]),
            inputs=list(series.columns[variables:]),
            calendar=train.panel.calendar.shape[1],
            step=series.step,
            gaps=any(bool(np.isnan(one.values).any()) for one in prepared.training),
            mean=prepared.scale.mean.tolist(),
            spread=prepared.scale.spread.tolist(),
            rivals=Rivals.fit(prepared.training, prepared.scale, variables, recipe.data),
        )
        return cls(recipe, facts), prepared

    def check_columns(self, prepared: Prepared) -> None:
        """Refuse series of other variables than those that were learned."""
        found, known = prepared.training[0].columns, (*self.facts.variables, *self.facts.inputs)
        if tuple(found) != known:
            raise DataError(f"the series are of {', '.join(found)}, but this run was trained on {', '.join(known)}")

    @classmethod
    def restore(cls, recipe: Recipe, saved: dict[str, Any]) -> Self:
        facts = checked(Facts, saved, "task.json")
        variables, rivals = len(facts.variables), facts.rivals
        columns, lags = variables + len(facts.inputs), {len(weights) for weights in rivals.weights}
        if not variables or {len(facts.mean), len(facts.spread)} != {columns}:
            raise RunError("task.json does not hold one mean and one spread for each of its variables")
        known = {len(rivals.center), len(rivals.weights), *map(len, rivals.unit), *map(len, rivals.level)}
        if known != {variables} or len(lags) != 1 or not 0 < min(lags) <= recipe.data.context:
            raise RunError("task.json does not hold what baselines know of each of its variables")
        if not rivals.series or {len(rivals.unit), len(rivals.level)} != {len(rivals.series)}:
            raise RunError("task.json does not hold what baselines know of each of its series")
        return cls(recipe, facts)

    def saved(self) -> dict[str, Any]:
        return self.facts.model_dump()

    def vocabularies(self) -> dict[str, int]:
        facts = self.facts
        return {"variables": len(facts.variables), "inputs": len(facts.inputs), "calendar": facts.calendar}

    def build(self) -> Labeler:
        elements = self.recipe.data.context // self.recipe.model.patch_length
        return build_forecaster(self.recipe.model, self.view.features, elements, self.head, self.cell)

    def head(self, inputs: int) -> Head:
        steps, channels = self.recipe.data.horizon, 1 if self.view.alone else self.view.variables
        levels = self.recipe.model.quantiles
        return Quantiles(inputs, steps, channels, levels) if levels else Mean(inputs, steps, channels)

    def objective(self, model: Labeler) -> Objective:
        return LabelingObjective(model)

    # --- windows ---

    def order(self, prepared: Prepared, epoch: int) -> Sequence[Any]:
        """Windows in a drawn order, or as they stand. What one takes in a batch is what is read of it, in elements."""
        train, count = self.recipe.train, len(prepared.parts["train"])
        rows = shuffle(count, train.seed, epoch) if train.shuffle else np.arange(count)
        size = self.at_once(self.recipe.train.batch_tokens)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def at_once(self, elements: int) -> int:
        return max(1, elements * self.recipe.model.patch_length // self.recipe.data.context)

    def padded_share(self, prepared: Prepared) -> float:
        return 0.0

    def batch(self, prepared: Prepared, rows: Any, split: str = "train") -> Batch:
        part = prepared.parts[split]
        return self.batch_of(part.take(part.starts[rows]))

    def batch_of(self, windows: Windows) -> Batch:
        seen = self.view.see(*windows.contexts())
        target = self.view.target(seen, windows.targets())
        inputs = torch.from_numpy(seen.inputs)
        return Batch(inputs, full_mask(inputs), torch.from_numpy(target))

    def chunks(self, windows: Windows) -> Iterator[Windows]:
        size = self.at_once(max(1, ROOM // (self.view.variables if self.view.alone else 1)))
        for start in range(0, len(windows), size):
            yield windows[start : start + size]

    # --- answers ---

    @torch.no_grad()
    def forecast(self, model: Labeler, windows: Windows) -> Doubles:
        """What follows each window, on the scale of training: (N, horizon, variables, levels)."""
        found = []
        for chunk in self.chunks(windows):
            seen = self.view.see(*chunk.contexts())
            found.append(self.said(model, seen, self.features(model, seen)))
        return np.concatenate(found)

    def features(self, model: Labeler, seen: Seen) -> Tensor:
        inputs = torch.from_numpy(seen.inputs)
        return model.features(inputs, full_mask(inputs))

    def said(self, model: Labeler, seen: Seen, features: Tensor) -> Doubles:
        expected = model.head(features)
        return self.view.back(seen, (expected if self.recipe.model.quantiles else expected[..., None]).cpu().numpy())

    @torch.no_grad()
    def validate(self, model: Labeler, prepared: Prepared) -> dict[str, float]:
        windows = prepared.parts["validation"]
        windows = windows.take(windows.starts[:: -(-len(windows) // QUICK)])
        sums, count = np.zeros(3), 0
        for chunk in self.chunks(windows):
            seen, targets = self.view.see(*chunk.contexts()), chunk.targets()
            features = self.features(model, seen)
            told = torch.from_numpy(self.view.target(seen, targets)).to(features.device)
            loss, cells = model.head.loss(features, told)
            error = self.point(self.said(model, seen, features)) - targets[..., : self.view.variables]
            sums += loss.item(), np.nansum(error**2), np.nansum(np.abs(error))
            count += int(cells)
        return dict(zip(("loss", "MSE", "MAE"), (sums / max(count, 1)).tolist(), strict=True))

    def point(self, forecasts: Doubles) -> Doubles:
        """The forecast itself: the median, or the mean."""
        levels = self.recipe.model.quantiles
        return forecasts[..., levels.index(0.5) if levels else 0]

    def examples(self, prepared: Prepared, split: str) -> Windows:
        return prepared.parts[split]

    def questions(self, examples: Sequence[Any], at_most: int) -> list[Question]:
        """Windows of series; what is looked into holds what follows as well."""
        assert isinstance(examples, Windows)
        columns, scale, panel = (*self.facts.variables, *self.facts.inputs), self.facts.scale, examples.panel
        asked = []
        for start in examples.starts[evenly(len(examples), at_most)].tolist():
            end = start + examples.context
            rows = slice(start, end + examples.horizon)
            values = panel.values[rows].astype(np.float64) * scale.spread + scale.mean
            whole = Series("a window", panel.times[rows], values, columns, 0, self.facts.step)
            read = Series("a window", panel.times[start:end], values[: examples.context], columns, 0, self.facts.step)
            times = following(read.times[-1:], read.step, examples.horizon)
            target = dict(zip(columns[: self.view.variables], values[examples.context :].T.tolist(), strict=False))
            nothing: dict[str, dict[str, list[float]]] = {name: {} for name in target}
            words = f"{examples.context} rows, the last before {times[0]}"
            asked.append(Question(read, words, "\n".join(table(times, target, nothing)), whole, target))
        return asked

    def wrong(self, answer: Prediction, asked: Question) -> float:
        """The mean absolute error, over the spread of each variable in training."""
        assert isinstance(answer, Outlook)
        errors = [
            np.abs(np.array(answer.values[name]) - np.array(true)) / spread
            for (name, true), spread in zip(asked.target.items(), self.facts.spread, strict=False)
        ]
        return float(np.nan_to_num(np.nanmean(errors)))

    def read(self, files: Sequence[str]) -> Windows:
        if len(files) != 1:
            raise DataError(f"{len(files)} files are given, but a forecaster is scored on one", files[0])
        return whole_windows(self.read_series(files[0]), self.facts.scale, self.recipe.data)

    def score(self, model: Labeler, examples: Sequence[Any]) -> dict[str, Scored]:
        assert isinstance(examples, Windows)
        facts = self.facts
        forecasts = self.forecast(model, examples)
        scale = Scale(facts.scale.mean[: self.view.variables], facts.scale.spread[: self.view.variables])
        levels = self.recipe.model.quantiles
        return forecast_scores(self.point(forecasts), forecasts, levels, examples, scale, facts.variables, facts.rivals)

    # --- questions ---

    @property
    def reads_text(self) -> bool:
        return False

    def inputs(self, file: str) -> Iterator[tuple[str, Series]]:
        """A table of a person's own: its series, each with its name."""
        for series in self.read_series(file):
            yield series.name, series

    def accepted(self, given: Any) -> Series:
        return self.one(given)

    def read_series(self, file: str) -> list[Series]:
        found = read_histories(file, self.known(), Skipped())
        for series in found:
            if series.step and self.facts.step and series.step != self.facts.step:
                theirs, ours = spoken(series.step), spoken(self.facts.step)
                times = ", ".join(self.recipe.data.time) or "none"
                sentence = f"{series.name!r} has a row every {theirs}, but the model has learned from one every {ours}"
                raise DataError(f"{sentence}; data.time of its recipe is {times}", file)
        return found

    def known(self) -> Any:
        """How tables are read, now that the columns are known."""
        columns = {"variables": tuple(self.facts.variables), "inputs": tuple(self.facts.inputs)}
        return self.recipe.data.model_copy(update=columns)

    @torch.no_grad()
    def predict(self, model: Labeler, inputs: Sequence[Any], beam: int | None = None) -> list[list[Prediction]]:
        """What comes after each series: an array, a data frame, or what was read from a file."""
        series = [self.one(given) for given in inputs]
        context = self.recipe.data.context
        tails = [Series(s.name, s.times[-context:], s.values[-context:], s.columns, 0, s.step) for s in series]
        panel = Panel.of(tails, self.facts.scale, self.recipe.data.calendar)
        if panel.calendar.shape[1] != self.facts.calendar:
            raise DataError("the dates are not as far apart as those that the model has learned from")
        starts = np.arange(len(tails), dtype=np.int64) * context
        forecasts = self.forecast(model, Windows(panel, starts, context, self.recipe.data.horizon, context))
        scale, variables = self.facts.scale, self.view.variables
        said = forecasts * scale.spread[:variables, None] + scale.mean[:variables, None]
        return [[self.outlook(one, cells)] for one, cells in zip(series, said, strict=True)]

    def show(self, given: Any, answer: str) -> Shown:
        """The end of a series, which holds what was to be forecast as well: without it there is no loss to look at."""
        series, context, horizon = self.one(given), self.recipe.data.context, self.recipe.data.horizon
        if len(series.times) < context + horizon:
            wanted = f"{context} rows to read and {horizon} that follow"
            raise DataError(f"{series.name!r} has {len(series.times)} rows, but to look inside it takes {wanted}")
        end = slice(-context - horizon, None)
        tail = Series(series.name, series.times[end], series.values[end], series.columns, 0, series.step)
        panel = Panel.of([tail], self.facts.scale, self.recipe.data.calendar)
        batch = self.batch_of(Windows(panel, np.zeros(1, dtype=np.int64), context, horizon, context))
        elements = [str(number) for number in range(1, batch.inputs.shape[1] + 1)]
        return Shown(batch, elements, [f"+{number}" for number in range(1, horizon + 1)])

    def one(self, given: Any) -> Series:
        if isinstance(given, str):
            raise DataError("a forecaster continues series of numbers, not a text: --file names a table of them")
        found = from_python(given, self.known(), Skipped())
        if len(found) != 1:
            raise DataError(f"{len(found)} series are given as one: ask for each by itself")
        [series] = found
        context = self.recipe.data.context
        if len(series.times) < context:
            raise DataError(f"{series.name!r} has {len(series.times)} rows, but a forecast is made from {context}")
        return series

    def outlook(self, series: Series, cells: Doubles) -> Outlook:
        levels, names = self.recipe.model.quantiles, self.facts.variables
        times = following(series.times[-1:], series.step, len(cells))
        point = self.point(cells)
        values = {name: point[:, column].tolist() for column, name in enumerate(names)}
        quantiles = {
            name: {f"{level:g}": cells[:, column, place].tolist() for place, level in enumerate(levels)}
            for column, name in enumerate(names)
        }
        title = [series.name] if self.recipe.data.series else []
        return Outlook("\n".join([*title, *table(times, values, quantiles)]), 0.0, times, values, quantiles)


def spoken(step: str) -> str:
    """How far rows are apart, in words: "7 days"."""
    number, _, unit = step.partition(" ")
    for name, size in UNITS.items() if unit == "ms" else ():
        if int(number) % size == 0:
            return f"{int(number) // size} {name}"
    return step


def table(times: list[str], values: dict[str, list[float]], quantiles: dict[str, dict[str, list[float]]]) -> list[str]:
    """A line a step: when, and of each variable the forecast and the outermost quantiles."""
    columns = [["", *times]]
    for name, forecast in values.items():
        columns.append([name, *(f"{value:.4g}" for value in forecast)])
        levels = list(quantiles[name])
        if len(levels) > 1:
            ends = zip(quantiles[name][levels[0]], quantiles[name][levels[-1]], strict=True)
            columns.append([f"{levels[0]} – {levels[-1]}", *(f"{low:.4g} – {high:.4g}" for low, high in ends)])
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
