"""Series of numbers that are continued: their variables, what is read besides, and the scale of training."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field as Limits
from torch import nn

from ..config.recipe import Data, Model, Recipe
from ..counts import format_count
from ..data.formats.series import Series
from ..data.formats.tables import SkippedRows
from ..data.ragged import Ragged
from ..data.schema import Raw
from ..data.series_datasets import convert_series, read_histories
from ..data.series_windows import SeriesScale, compute_calendar
from ..errors import DataError, RunError
from ..layers.heads import Head, Mean, Quantiles
from ..schemas import JsonShape, Number, check_shape
from .base import Body, Field

UNITS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}  # in milliseconds
STEP = r"^([1-9][0-9]{0,14} (ms|months)|[0-9.e+-]{1,30}|)$"  # as `Series.step` is written


class LearnedSeries(JsonShape):
    """What is kept of the training part."""

    kind: str
    variables: list[str]
    inputs: list[str]
    calendar: Annotated[int, Limits(ge=0, le=100)]  # features that say when
    step: Annotated[str, Limits(pattern=STEP)]  # from row to row
    gaps: bool  # whether values are missing
    mean: list[Annotated[Number, Limits(ge=-1e38, le=1e38)]]
    spread: list[Annotated[Number, Limits(gt=1e-30, le=1e38)]]


class TimeSeries(Field):
    """A raw value is a `Series`; what a model reads of one are windows (`data.series_windows`)."""

    kind = "series"
    dtype = np.dtype(np.float32)

    def __init__(self, learned: LearnedSeries) -> None:
        self.learned = learned
        self.variables, self.inputs = tuple(learned.variables), tuple(learned.inputs)
        self.calendar, self.step, self.gaps = learned.calendar, learned.step, learned.gaps
        self.scale = SeriesScale(np.array(learned.mean), np.array(learned.spread))

    @classmethod
    def fit(cls, raws: Iterable[Series], settings: Data) -> Self:
        training = list(raws)
        columns = training[0].columns
        variables = len(columns) - len(settings.inputs)
        scale = SeriesScale.fit(np.concatenate([one.values for one in training]), columns)
        return cls(
            LearnedSeries(
                kind=cls.kind,
                variables=list(columns[:variables]),
                inputs=list(columns[variables:]),
                calendar=compute_calendar(training[0], settings.calendar).shape[1],
                step=training[0].step,
                gaps=any(bool(np.isnan(one.values).any()) for one in training),
                mean=scale.mean.tolist(),
                spread=scale.spread.tolist(),
            )
        )

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        learned = check_shape(LearnedSeries, values, "task.json, series")
        columns = len(learned.variables) + len(learned.inputs)
        if not learned.variables or {len(learned.mean), len(learned.spread)} != {columns}:
            raise RunError("task.json does not hold one mean and one spread for each of its variables")
        return cls(learned)

    def to_json(self) -> dict[str, Any]:
        return self.learned.model_dump()

    def __len__(self) -> int:
        return len(self.variables)

    def sizes(self, side: str) -> dict[str, int]:
        return {"variables": len(self.variables), "inputs": len(self.inputs), "calendar": self.calendar}

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.variables, *self.inputs)

    def encode_many(self, raws: Sequence[Raw]) -> Ragged:
        """The values of series on the scale of training."""
        return Ragged.stack([self.scale.apply(series.values) for series in raws])

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse series of other variables than those that were learned."""
        if tuple(columns) != self.columns:
            raise DataError(
                f"the series are of {', '.join(columns)}, but this run was trained on {', '.join(self.columns)}"
            )

    def read_one(self, raw: Any, settings: Data) -> Series:
        """The series that a person gives: an array, a data frame, or one that was read from a file."""
        if isinstance(raw, str):
            raise DataError("a forecaster continues series of numbers, not a text: --file names a table of them")
        histories = convert_series(raw, self.settings(settings), SkippedRows())
        if len(histories) != 1:
            raise DataError(f"{len(histories)} series are given as one: ask for each by itself")
        [series] = histories
        if len(series.times) < settings.context:
            raise DataError(
                f"{series.name!r} has {format_count(len(series.times), 'row')}, but a forecast is made from "
                f"{settings.context}"
            )
        return series

    def read_table(self, file: str, settings: Data, skipped: SkippedRows | None = None) -> list[Series]:
        """The series of a table, whose rows must be as far apart as those of training."""
        histories = read_histories(file, self.settings(settings), skipped or SkippedRows())
        for series in histories:
            if series.step and self.step and series.step != self.step:
                theirs, ours = format_step(series.step), format_step(self.step)
                times = ", ".join(settings.time) or "none"
                sentence = f"{series.name!r} has a row every {theirs}, but the model has learned from one every {ours}"
                raise DataError(f"{sentence}; data.time of its recipe is {times}", file)
        return histories

    def settings(self, data: Data) -> Data:
        """How tables are read, now that the columns are known."""
        return data.model_copy(update={"variables": self.variables, "inputs": self.inputs})

    def embedding(self, model: Model, body: Body = "encoder") -> nn.Module:
        return nn.Identity()

    def head(self, features: int, recipe: Recipe, weights: Sequence[float] = ()) -> Head:
        """All steps of all variables at once, or of each alone; with quantiles, or the mean."""
        channels = 1 if recipe.model.channel_independent else len(self.variables)
        if recipe.model.quantiles:
            return Quantiles(features, recipe.data.horizon, channels, recipe.model.quantiles)
        return Mean(features, recipe.data.horizon, channels)


def format_step(step: str) -> str:
    """How far rows are apart, in words: "7 days"."""
    number, _, unit = step.partition(" ")
    for name, size in UNITS.items() if unit == "ms" else ():
        if int(number) % size == 0:
            return f"{int(number) // size} {name}"
    return step
