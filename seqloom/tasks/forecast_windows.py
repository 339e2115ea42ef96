"""A shape: from the last rows of a series to the next ones, of all its variables at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..architectures.build import build_forecaster
from ..arrays import Doubles
from ..baselines.numbers import LinearAutoregression
from ..config.recipe import Recipe
from ..counts import format_count
from ..data.formats.series import Series
from ..data.formats.tables import SkippedRows
from ..data.formats.times import format_following_times, format_times
from ..data.inputs import Input, InputFile, InputReading
from ..data.preview import PREVIEWED, Preview, SidePreview
from ..data.series_windows import Panel, Windows, cut_series, make_all_windows
from ..data.splits import shuffle
from ..errors import DataError
from ..fields import Prediction, TimeSeries
from ..fields.base import format_numbers, pick_evenly
from ..layers.padding import full_mask
from ..models import Batch, Labeler
from .forecast_inputs import ForecastInputs, WindowInputs
from .least_squares import begin_with, fit_maps, spread_residuals
from .results import Example, Inspection, Predictions
from .shape import Shape, check_positions

SERIES_LIKE = ("shape", "columns", "times")  # what arrays, data frames and series of a file have
ROOM = 65536  # elements that are read at once when nothing is trained
QUICK = 1000  # windows of a validation


@dataclass(frozen=True)
class ForecastPrediction(Prediction):
    """What comes next: when, the forecast of each variable, and the quantiles around it by their level. There is one
    answer, so the score, which ranks answers, is 0."""

    times: list[str]
    values: dict[str, list[float]]
    quantiles: dict[str, dict[str, list[float]]]

    def rows(self) -> list[dict[str, Any]]:
        """A row a step: when, and of each variable the forecast and its quantiles."""
        columns: dict[str, Sequence[Any]] = {"time": self.times}
        for name, forecast in self.values.items():
            columns[name] = forecast
            columns |= {f"{name} {level}": values for level, values in self.quantiles[name].items()}
        return [dict(zip(columns, step, strict=True)) for step in zip(*columns.values(), strict=True)]


class ForecastWindows(Shape):
    """Examples are windows of series, which are not copied out: `Windows`."""

    @property
    def series(self) -> TimeSeries:
        return self.task.fields["series"]

    @property
    def inputs(self) -> ForecastInputs:
        series, model = self.series, self.recipe.model
        return ForecastInputs(
            variables=len(series.variables),
            inputs=len(series.inputs),
            calendar=series.calendar,
            decays=model.side("encoder").kind == "gru-d",
            gaps=series.gaps,
            relative=model.relative,
            alone=model.channel_independent,
            span=model.patch_length,
        )

    # --- training ---

    def settle(self, prepared: Any) -> Recipe:
        elements = np.array([self.recipe.data.context // self.recipe.model.patch_length])
        check_positions("encoder", self.recipe.model.side("encoder"), elements)
        return self.recipe

    def build(self) -> Labeler:
        recipe = self.recipe
        elements = recipe.data.context // recipe.model.patch_length
        head = partial(self.series.head, recipe=recipe)
        return build_forecaster(recipe.model, self.inputs.features, elements, head, self.task.cell)

    def initialize(self, model: Labeler, note: Callable[[str], object]) -> bool:
        """A linear forecaster begins at least squares."""
        settings, prepared, inputs = self.recipe.model, self.task.prepared, self.inputs
        if settings.kind != "linear" or not settings.least_squares:
            return False
        if fault := self.find_no_start():
            note(f"model.least_squares begins nothing: {fault}")
            return False
        parts, facts = prepared.parts, self.task.facts
        levels = inputs.relative == "none" and not inputs.alone
        known = LinearAutoregression(np.array(facts.weights)[..., None], np.array(facts.center)) if levels else None
        maps, sentence = fit_maps(parts["train"], parts["validation"], inputs.variables, inputs.alone, known)
        spread = spread_residuals(maps, parts["validation"], settings.quantiles or (0.5,))
        begin_with(model.head.project, maps, spread, inputs.alone, inputs.features // inputs.span)
        note(f"the linear forecaster begins with {sentence}, chosen on validation")
        return True

    def find_no_start(self) -> str:
        """Why a linear forecaster cannot begin at least squares; nothing if it can."""
        settings = self.recipe.model
        if settings.relative == "mean":
            return "what is relative to the spread of a window is no linear function of it (model.relative)"
        if settings.hidden:
            return "model.hidden puts a layer before the forecast"
        if not settings.bias:
            return "model.bias is false"
        return "" if self.task.prepared is not None else "the training examples are not at hand"

    def order(self, prepared: Any, epoch: int) -> Sequence[Any]:
        """Windows in a drawn order, or as they stand. What one takes in a batch is what is read of it, in elements."""
        train, count = self.recipe.train, len(prepared.parts["train"])
        rows = shuffle(count, train.seed, epoch) if train.shuffle else np.arange(count)
        size = self.windows_within(train.batch_tokens)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def windows_within(self, elements: int) -> int:
        return max(1, elements * self.recipe.model.patch_length // self.recipe.data.context)

    def padded_share(self, prepared: Any) -> float:
        return 0.0

    def lengths(self, encoded: Any) -> NDArray[np.int64]:
        return np.full((len(encoded), 1), self.recipe.data.context // self.recipe.model.patch_length)

    def batch(self, prepared: Any, rows: Any, split: str = "train") -> Batch:
        part = prepared.parts[split]
        return self.collate(part, part.starts[rows])

    def collate(self, encoded: Any, rows: Any) -> Batch:
        """Windows that begin at these rows."""
        windows = encoded.take(rows)
        read = self.inputs.read(*windows.contexts())
        target = self.inputs.target(read, windows.targets())
        inputs = torch.from_numpy(read.inputs)
        return Batch(inputs, full_mask(inputs), torch.from_numpy(target))

    def chunks(self, windows: Windows) -> Iterator[Windows]:
        size = self.windows_within(max(1, ROOM // (self.inputs.variables if self.inputs.alone else 1)))
        for start in range(0, len(windows), size):
            yield windows[start : start + size]

    @torch.no_grad()
    def validate(self, model: Labeler, prepared: Any) -> dict[str, float]:
        windows, inputs = prepared.parts["validation"], self.inputs
        windows = windows.take(windows.starts[:: -(-len(windows) // QUICK)])
        sums, count = np.zeros(3), 0
        for chunk in self.chunks(windows):
            read, targets = inputs.read(*chunk.contexts()), chunk.targets()
            features = self.features(model, read)
            target = torch.from_numpy(inputs.target(read, targets)).to(features.device)
            loss, cells = model.head.loss(features, target)
            error = self.point(self.restore(model, read, features)) - targets[..., : inputs.variables]
            sums += loss.item(), np.nansum(error**2), np.nansum(np.abs(error))
            count += int(cells)
        return dict(zip(("loss", "MSE", "MAE"), (sums / max(count, 1)).tolist(), strict=True))

    # --- forecasts ---

    @torch.no_grad()
    def forecast(self, model: Labeler, windows: Windows) -> Doubles:
        """What follows each window, on the scale of training: (N, horizon, variables, levels)."""
        forecasts = []
        for chunk in self.chunks(windows):
            read = self.inputs.read(*chunk.contexts())
            forecasts.append(self.restore(model, read, self.features(model, read)))
        return np.concatenate(forecasts)

    def features(self, model: Labeler, read: WindowInputs) -> Tensor:
        inputs = torch.from_numpy(read.inputs)
        return model.features(inputs, full_mask(inputs))

    def restore(self, model: Labeler, read: WindowInputs, features: Tensor) -> Doubles:
        expected = model.head(features)
        levels = expected if self.recipe.model.quantiles else expected[..., None]
        return self.inputs.restore(read, levels.cpu().numpy())

    def point(self, forecasts: Doubles) -> Doubles:
        """The forecast itself: the median, or the mean."""
        levels = self.recipe.model.quantiles
        return forecasts[..., levels.index(0.5) if levels else 0]

    # --- examples ---

    def examples(self, prepared: Any, split: str) -> Any:
        return prepared.parts[split]

    def pick_examples(self, examples: Any, at_most: int) -> list[Example]:
        """Windows of series; what is looked into holds what follows as well."""
        starts = examples.starts[pick_evenly(len(examples), at_most)].tolist()
        return [self.window_example(examples, start) for start in starts]

    def preview(self, prepared: Any) -> list[Preview]:
        windows = prepared.parts["train"]
        starts = windows.starts[pick_evenly(len(windows), PREVIEWED)].tolist()
        return [self.preview_window(windows, start) for start in starts]

    def preview_window(self, windows: Windows, start: int) -> Preview:
        """What is read of a window and what follows, each in its own units and as the network gets it."""
        batch, middle = self.collate(windows, np.array([start])), start + windows.context
        spans = {"context": slice(start, middle), "horizon": slice(middle, middle + windows.horizon)}
        seen = {"context": batch.inputs[0].numpy(), "horizon": batch.target[0].numpy()}
        preview = {}
        for name, rows in spans.items():
            values = self.series.scale.restore(windows.panel.values[rows])
            first, last = format_times(windows.panel.times[rows][[0, -1]])
            head = "; ".join(map(format_numbers, values[:PREVIEWED]))
            raw = f"{format_count(len(values), 'row')} from {first} to {last}: {head} …"
            elements = [format_numbers(element) for element in seen[name]]
            preview[name] = SidePreview(raw, elements, len(elements), len(elements))
        return preview

    def window_example(self, windows: Windows, start: int) -> Example:
        series, panel = self.series, windows.panel
        rows = slice(start, start + windows.context + windows.horizon)
        values = series.scale.restore(panel.values[rows])
        whole = Series("a window", panel.times[rows], values, series.columns, 0, series.step)
        read = cut_series(whole, slice(0, windows.context))
        times = format_following_times(read.times[-1:], read.step, windows.horizon)
        target = dict(zip(series.variables, values[windows.context :].T.tolist(), strict=False))
        table = format_table(times, target, {name: {} for name in target})
        text = f"{format_count(windows.context, 'row')}, the last before {times[0]}"
        return Example(read, text, "\n".join(table), whole, target)

    def error(self, prediction: Any, example: Example) -> float:
        """The mean absolute error, over the spread of each variable in training."""
        errors = [
            np.abs(np.array(prediction.values[name]) - np.array(true)) / spread
            for (name, true), spread in zip(example.target.items(), self.series.scale.spread, strict=False)
        ]
        return float(np.nan_to_num(np.nanmean(errors)))

    def read_files(self, files: Sequence[str]) -> Any:
        if len(files) != 1:
            raise DataError(f"{len(files)} files are given, but a forecaster is scored on one", files[0])
        data = self.recipe.data
        return make_all_windows(self.series.read_table(files[0], data), self.series.scale, data)

    def count_cut(self, examples: Sequence[Any]) -> int:
        return 0

    # --- inputs and answers ---

    @property
    def reads_text(self) -> bool:
        return False

    def accept_input(self, raw: Any) -> Series:
        return self.series.read_one(raw, self.recipe.data)

    def read_inputs(self, file: str, reading: InputReading, skipped: SkippedRows) -> InputFile:
        """A table of a person's own: its series, each with its name."""
        data, column = reading.apply(self.recipe.data), self.recipe.data.series or "series"
        if reading.format:
            data = data.model_copy(update={"format": reading.format})
        if reading.source:
            raise DataError("a forecaster reads the columns of its variables: --source cannot name others", file)
        histories = self.series.read_table(file, data, skipped)
        inputs = (Input(one.name, one, {column: one.name}, file, number) for number, one in enumerate(histories, 1))
        return InputFile((column,), inputs, len(histories))

    def split_inputs(self, raw: Any) -> list[Any] | None:
        """A list of arrays, data frames or series; any of them alone is one input."""
        several = isinstance(raw, list | tuple) and raw and any(hasattr(raw[0], name) for name in SERIES_LIKE)
        return list(raw) if several else None

    @torch.no_grad()
    def predict(self, model: Labeler, inputs: Sequence[Any], beam: int | None = None) -> list[Predictions]:
        """What comes after each series: an array, a data frame, or what was read from a file."""
        histories, context = [self.accept_input(one) for one in inputs], self.recipe.data.context
        windows = self.make_last_windows([cut_series(series, slice(-context, None)) for series in histories])
        if windows.panel.calendar.shape[1] != self.series.calendar:
            raise DataError("the dates are not as far apart as those that the model has learned from")
        scale, variables = self.series.scale, len(self.series.variables)
        forecasts = self.forecast(model, windows) * scale.spread[:variables, None] + scale.mean[:variables, None]
        return [Predictions([self.prediction(*one)]) for one in zip(histories, forecasts, strict=True)]

    def make_last_windows(self, series: list[Series]) -> Windows:
        """One window of each of these series, which are as long as one."""
        data = self.recipe.data
        panel = Panel.of(series, self.series.scale, data.calendar)
        return Windows(panel, panel.begins, data.context, data.horizon, data.context)

    def prediction(self, series: Series, cells: Doubles) -> ForecastPrediction:
        levels, names = self.recipe.model.quantiles, self.series.variables
        times = format_following_times(series.times[-1:], series.step, len(cells))
        point = self.point(cells)
        values = {name: point[:, column].tolist() for column, name in enumerate(names)}
        quantiles = {
            name: {f"{level:g}": cells[:, column, place].tolist() for place, level in enumerate(levels)}
            for column, name in enumerate(names)
        }
        title = [series.name] if self.recipe.data.series else []
        output = "\n".join([*title, *format_table(times, values, quantiles)])
        return ForecastPrediction(output, 0.0, times, values, quantiles)

    def inspect(self, raw: Any, answer: str) -> Inspection:
        """The end of a series, which holds what was to be forecast as well: without it there is no loss to look at."""
        series, context, horizon = self.accept_input(raw), self.recipe.data.context, self.recipe.data.horizon
        if len(series.times) < context + horizon:
            needed = f"{format_count(context, 'row')} to read and {horizon} that follow"
            raise DataError(
                f"{series.name!r} has {format_count(len(series.times), 'row')}, but to look inside it takes {needed}"
            )
        windows = self.make_last_windows([cut_series(series, slice(-context - horizon, None))])
        batch = self.collate(windows, windows.starts)
        elements = [str(number) for number in range(1, batch.inputs.shape[1] + 1)]
        return Inspection(batch, elements, [f"+{number}" for number in range(1, horizon + 1)])


def format_table(
    times: list[str], values: dict[str, list[float]], quantiles: dict[str, dict[str, list[float]]]
) -> list[str]:
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
