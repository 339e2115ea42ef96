"""Where the series of a forecaster come from: tables in files, samples built into seqloom, arrays and data frames.

All of them become `Series` with the same columns, the ones to forecast first. Knows nothing of windows or scaling.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.datasets import PARTS
from seqloom.data.files import expand
from seqloom.data.formats.series import Series, TableReading, read_table
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.numbers import LARGEST
from seqloom.errors import DataError


def load_series_by_part(data: Data, examples: object, skipped: SkippedRows) -> dict[str, list[Series]]:
    """The series of each part that has some of its own; `train` always has."""
    if examples is not None:
        return {
            part: name_uniquely(convert_series(source, data, skipped))
            for part, source in _split_by_part(examples).items()
        }
    if data.sample:
        return {"train": [select_columns(series, data) for series in make_sample(data.sample)]}
    series_by_part = {}
    for part in PARTS:
        files = [file for name in getattr(data, part) for file in expand(name)]
        if files:
            series_by_part[part] = name_uniquely(
                [series for file in files for series in read_histories(file, data, skipped)]
            )
    return series_by_part


def make_sample(name: str) -> list[Series]:
    from seqloom.data.samples import SERIES  # what samples are made from takes a while to import

    if name not in SERIES:
        raise DataError(f"the sample {name!r} has no series of numbers; {', '.join(SERIES)} have")
    return SERIES[name]()


def read_histories(file: str, data: Data, skipped: SkippedRows) -> list[Series]:
    """The series of one table."""
    columns = (*data.variables, *data.inputs) if data.variables else ()
    skip = data.on_bad_row == "skip"
    written = (data.separator, data.header, data.decimal, data.time_format)
    reading = TableReading(data.time, columns, data.series, data.format, data.encoding, skip, *written)
    try:
        histories = list(read_table(file, reading, skipped))
    except DataError as error:
        if columns or not error.sentence.endswith("a number was expected"):
            raise
        sentence = f"{error.sentence}; data.variables says which columns are to be forecast"
        raise DataError(sentence, error.file, error.line) from None
    return histories if columns else [select_columns(series, data, file) for series in histories]


def select_columns(series: Series, data: Data, file: str | None = None) -> Series:
    """The columns to forecast, all that are not inputs if none is named, and then the inputs."""
    there = series.columns
    columns = (*(data.variables or (name for name in there if name not in data.inputs)), *data.inputs)
    lacking = [name for name in columns if name not in there]
    if lacking:
        raise DataError(f"there is no column {lacking[0]!r}; there are {', '.join(there)}", file)
    if len(columns) == len(data.inputs):
        raise DataError("every column is one of data.inputs: none is left to forecast", file)
    values = series.values[:, [there.index(name) for name in columns]]
    return Series(series.name, series.times, values, columns, series.filled, series.step)


def _split_by_part(examples: Any) -> dict[str, Any]:
    if isinstance(examples, Mapping):
        if not set(examples) <= set(PARTS) or "train" not in examples:
            raise DataError("series from Python are given at once, or by part: train, and perhaps validation and test")
        return dict(examples)
    return {"train": examples}


def convert_series(source: Any, data: Data, skipped: SkippedRows) -> list[Series]:
    """A series, an array (rows, or rows × variables), a data frame, or a list of any of these."""
    if isinstance(source, Series):
        return [select_columns(source, data)]
    if hasattr(source, "columns"):
        return _convert_frame(source, data, skipped)
    if isinstance(source, list | tuple) and source and (isinstance(source[0], Series) or hasattr(source[0], "shape")):
        return [series for one in source for series in convert_series(one, data, skipped)]
    return [_convert_array(source, data)]


def name_uniquely(histories: list[Series]) -> list[Series]:
    """Series with a name each: arrays have none of their own, so they are known by where they stand in the list."""
    times: Counter[str] = Counter()
    for place, series in enumerate(histories):
        times[series.name] += 1
        if times[series.name] > 1:
            histories[place] = replace(series, name=f"{series.name} {times[series.name]}")
    return histories


def _convert_frame(frame: Any, data: Data, skipped: SkippedRows) -> list[Series]:
    """A pandas data frame, written as a table and read as one: what holds for files holds for it."""
    if data.time and not set(data.time) <= set(map(str, frame.columns)):
        frame = frame.rename_axis(data.time[0]).reset_index()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.csv"
        frame.to_csv(path, index=False)
        try:
            return read_histories(str(path), data.model_copy(update={"format": "csv", "encoding": "utf-8"}), skipped)
        except DataError as error:
            place = f"the data frame, row {error.line - 2}" if error.line and error.line > 1 else "the data frame"
            raise DataError(f"{place}: {error.sentence}") from None


def _convert_array(source: Any, data: Data) -> Series:
    try:
        values = np.asarray(source, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("a series is an array of numbers (rows, or rows × variables), or a data frame") from None
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise DataError(f"a series is rows × variables, not an array of shape {values.shape}")
    if (np.abs(values) > LARGEST).any():
        raise DataError(
            f"a series is of numbers up to {LARGEST:.0e}, but it holds {values[np.abs(values) > LARGEST][0]:g}"
        )
    if data.inputs and not data.variables:
        raise DataError("an array's columns have no names: beside data.inputs, data.variables must be given")
    columns = (*data.variables, *data.inputs) or tuple(f"variable {number + 1}" for number in range(values.shape[1]))
    if len(columns) != values.shape[1]:
        raise DataError(f"the array has {format_count(values.shape[1], 'column')}, but the recipe names {len(columns)}")
    return Series("array", np.arange(len(values), dtype=np.float64), values, columns, 0, "1")
