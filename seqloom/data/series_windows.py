"""Series of the same variables, one below the other on the scale of training, and the windows that are cut from them.

Nothing is copied out: a window is the number of its first row. The scale is fitted on the training part alone. Parts
follow one another in time; the context of a part's first windows reaches back into the part before, its targets never.
"""

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from seqloom.arrays import Doubles, Singles
from seqloom.config.recipe import Data
from seqloom.counts import format_count
from seqloom.data.datasets import PARTS
from seqloom.data.formats.series import Series
from seqloom.data.formats.tables import SkippedRows
from seqloom.data.formats.times import Times
from seqloom.data.numbers import check_near
from seqloom.data.series_datasets import load_series_by_part
from seqloom.data.windows import compute_time_features, find_windows, split_by_counts, split_by_shares
from seqloom.errors import DataError
from seqloom.schemas import DataReport, SideReport, SplitReport

Starts = npt.NDArray[np.int64]
FEWEST = 50  # windows of a sample
MOST = 10_000  # windows of a part that is scored: of more, every second or third one is as telling


class SeriesScale(NamedTuple):
    """The mean of each variable in training, and how far it spreads."""

    mean: Doubles
    spread: Doubles

    @classmethod
    def fit(cls, rows: Doubles, columns: Sequence[str]) -> "SeriesScale":
        known = ~np.isnan(rows)
        for column, name in enumerate(columns):
            if not known[:, column].any():
                raise DataError(f"the column {name!r} has no value in the training part")
        spread = np.nanstd(rows, axis=0)
        return cls(np.nanmean(rows, axis=0), np.where(spread > 0, spread, 1.0))

    def apply(self, values: Doubles) -> Singles:
        check_near(values, self.mean, self.spread)
        return ((values - self.mean) / self.spread).astype(np.float32)

    def restore(self, scaled: Singles) -> Doubles:
        """Scaled values in their own units."""
        return scaled.astype(np.float64) * self.spread + self.mean


@dataclass(frozen=True)
class Panel:
    values: Singles  # (R, D), NaN where missing
    calendar: Singles  # (R, F), sines and cosines of when it was
    times: Times  # (R,)
    names: tuple[str, ...]  # of the series
    begins: Starts  # the first row of each series

    @classmethod
    def of(cls, series: Sequence[Series], scale: SeriesScale, calendar: bool) -> "Panel":
        values = np.concatenate([scale.apply(one.values) for one in series])
        times = np.concatenate([one.times for one in series])
        features = np.concatenate([compute_calendar(one, calendar) for one in series])
        begins = np.cumsum([0, *(len(one.times) for one in series[:-1])], dtype=np.int64)
        return cls(values, features, times, tuple(one.name for one in series), begins)


def compute_calendar(series: Series, enabled: bool) -> Singles:
    if not enabled:
        return np.empty((len(series.times), 0), np.float32)
    if series.times.dtype.kind != "M":
        raise DataError(f"data.calendar is true, but {series.name!r} has no dates: data.time names their column")
    return compute_time_features(series.times)[0].astype(np.float32)


class Window(NamedTuple):
    context: Singles  # (context, D)
    target: Singles  # (horizon, D)


@dataclass(frozen=True)
class Windows(Sequence[Window]):
    """The windows of a part: what is read, and what follows."""

    panel: Panel
    starts: Starts
    context: int
    horizon: int
    apart: int  # rows from one window to the next

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> Window: ...
    @overload
    def __getitem__(self, index: slice) -> "Windows": ...
    def __getitem__(self, index: int | slice) -> "Window | Windows":
        if isinstance(index, slice):
            return self.take(self.starts[index])
        start = int(self.starts[index])
        middle = start + self.context
        return Window(self.panel.values[start:middle], self.panel.values[middle : middle + self.horizon])

    def take(self, starts: Starts) -> "Windows":
        return Windows(self.panel, starts, self.context, self.horizon, self.apart)

    def series(self) -> Starts:
        """The number of the series in the panel that each window is cut from."""
        return np.searchsorted(self.panel.begins, self.starts, side="right") - 1

    def contexts(self) -> tuple[Singles, Singles]:
        """All that is read: the values (N, context, D), and when it was (N, context, F)."""
        rows = self.starts[:, None] + np.arange(self.context)
        return self.panel.values[rows], self.panel.calendar[rows]

    def targets(self) -> Singles:
        """The target windows (N, horizon, D)."""
        return self.panel.values[self.starts[:, None] + np.arange(self.context, self.context + self.horizon)]


@dataclass(frozen=True)
class PreparedSeries:
    parts: dict[str, Windows]
    training: list[Series]  # the training part of each series, in its own unit
    scale: SeriesScale
    report: DataReport
    fingerprint: str
    fields: dict[str, Any] = field(default_factory=dict)

    def sample_validation(self, tokens: int) -> "PreparedSeries":
        """The same with no more windows to validate on, from all over the part, than about so many rows are in."""
        whole = self.parts["validation"]
        apart = -(-len(whole) // max(FEWEST, tokens // (whole.context + whole.horizon)))
        return replace(self, parts={**self.parts, "validation": whole.take(whole.starts[:: max(apart, 1)])})


def prepare(
    data: Data, note: Callable[[str], object], examples: object = None, known: SeriesScale | None = None
) -> PreparedSeries:
    """Read all series, part them in time, and scale them by what training knows, or what it knew before."""
    skipped = SkippedRows()
    series_by_part = load_series_by_part(data, examples, skipped)
    every = [series for group in series_by_part.values() for series in group]
    for series in every:
        _check(series, every[0])
    parted = divide_series(series_by_part, data)
    training = [cut_series(series, span) for series, span in parted["train"]]
    if known and len(known.mean) != len(every[0].columns):
        raise DataError(
            f"the series are of {format_count(len(every[0].columns), 'variable')}, but this run knows {len(known.mean)}"
        )
    scale = known or SeriesScale.fit(np.concatenate([one.values for one in training]), every[0].columns)
    panel, offsets = Panel.of(every, scale, data.calendar), _compute_offsets(every)
    parts = {part: _make_windows(part, panel, offsets, stretches, data) for part, stretches in parted.items()}
    if absent := sum(series.filled for series in every):
        note(f"not there, and counted as missing: {format_count(absent, 'row')}")
    rows = sum(len(series.times) - series.filled for series in every)
    report = _make_report(rows + skipped.counts.total(), skipped, parts, parted)
    return PreparedSeries(parts, training, scale, report, _compute_fingerprint(every, parts))


Stretch = tuple[Series, slice]


def divide_series(series_by_part: dict[str, list[Series]], data: Data) -> dict[str, list[Stretch]]:
    """Where each part stands: in series of its own, or in a stretch of those of training."""
    parted: dict[str, list[Stretch]] = {part: [] for part in PARTS}
    for series in series_by_part["train"]:
        for part, span in _divide_rows(len(series.times), data, series_by_part).items():
            parted[part].append((series, span))
    own = {part: [span_all(series) for series in series_by_part[part]] for part in series_by_part if part != "train"}
    return parted | own


def span_all(series: Series) -> Stretch:
    return series, slice(0, len(series.times))


def _divide_rows(rows: int, data: Data, parts: Collection[str]) -> dict[str, slice]:
    drawn = [part for part in ("validation", "test") if part not in parts]
    if data.test_rows and drawn:
        counts = [getattr(data, f"{part}_rows") if part in drawn else 0 for part in ("validation", "test")]
        cut = split_by_counts(rows, [data.train_rows or max(rows - sum(counts), 0), *counts])
    else:
        shares = [getattr(data, f"{part}_share") if part in drawn else 0.0 for part in ("validation", "test")]
        cut = split_by_shares(rows, [1 - sum(shares), *shares])
    return dict(zip(PARTS, cut, strict=True))


def _compute_offsets(every: Sequence[Series]) -> dict[int, int]:
    """Where each series begins in a panel."""
    ends = np.cumsum([len(series.times) for series in every]).tolist()
    return {id(series): start for series, start in zip(every, [0, *ends], strict=False)}


def make_all_windows(series: Sequence[Series], scale: SeriesScale, data: Data) -> Windows:
    """Every window of series that are not parted: of a file to be scored."""
    panel = Panel.of(series, scale, data.calendar)
    return _make_windows("test", panel, _compute_offsets(series), [span_all(one) for one in series], data)


def _make_windows(
    part: str, panel: Panel, offsets: dict[int, int], stretches: Sequence[Stretch], data: Data
) -> Windows:
    def starts(stride: int) -> Starts:
        size = data.context, data.horizon, stride
        return np.concatenate([offsets[id(series)] + find_windows(span, *size) for series, span in stretches])

    stride = data.stride if part == "train" else 1
    places = starts(stride)
    if part != "train" and len(places) > MOST:
        stride = -(-len(places) // MOST)
        places = starts(stride)
    if not len(places):
        longest = max(span.stop - span.start for _, span in stretches)
        raise DataError(
            f"the {part} part has stretches of {format_count(longest, 'row')} at most: too few for a single window of "
            f"{data.context} rows and the {data.horizon} that follow (data.context, data.horizon)"
        )
    return Windows(panel, places, data.context, data.horizon, stride)


def _check(series: Series, first: Series) -> None:
    if series.columns != first.columns:
        raise DataError(
            f"the series {series.name!r} has the columns {', '.join(series.columns)}, "
            f"but {first.name!r} has {', '.join(first.columns)}"
        )


def cut_series(series: Series, span: slice) -> Series:
    return Series(series.name, series.times[span], series.values[span], series.columns, 0, series.step)


def _make_report(
    rows: int, skipped: SkippedRows, parts: dict[str, Windows], parted: dict[str, list[Stretch]]
) -> DataReport:
    splits = {}
    for part, windows in parts.items():
        values = np.concatenate([series.values[span] for series, span in parted[part]])
        missing = float(np.isnan(values).mean()) if values.size else 0.0
        side = SideReport(
            tokens=len(values),
            longest=windows.context,
            mean=windows.context,
            cut=0,
            dropped=0,
            unknown_share=0.0,
            missing_share=missing,
        )
        splits[part] = SplitReport(examples=len(windows), dropped=0, repeated=0, overlap=0, sides={"rows": side})
    return DataReport(
        rows_read=rows,
        skipped=skipped.report(),
        splits=splits,
        vocabulary={"variables": len(parted["train"][0][0].columns)},
        notes=list(skipped.unique_notes()),
    )


def _compute_fingerprint(series: Sequence[Series], parts: dict[str, Windows]) -> str:
    digest = hashlib.sha256()
    for one in series:
        digest.update(repr((one.name, one.columns, one.step, one.values.shape)).encode())
        digest.update(np.ascontiguousarray(one.times).tobytes())
        digest.update(np.ascontiguousarray(one.values).tobytes())
    for name, windows in parts.items():
        digest.update(name.encode() + windows.starts.tobytes())
    return digest.hexdigest()
