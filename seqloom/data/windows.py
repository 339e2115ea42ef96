"""What a forecaster is shown of a series: time features, gaps, parts in the order of time, and windows as arithmetic.

A window is only its first row: the context is rows start … start + context − 1, the target the `horizon` rows behind.
Parts never overlap; the context of a part's first windows may reach back into the part before, its targets never do.
Knows nothing of files or tensors.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seqloom.arrays import Doubles
from seqloom.data.formats.times import Times
from seqloom.errors import DataError

HOUR = 3_600_000  # milliseconds
DAY = 24 * HOUR
# What a cycle is called, how long it is, and the spacing of rows from which on it says nothing: all fall on one hour.
CYCLES = (("hour", DAY, DAY), ("weekday", 7 * DAY, 7 * DAY), ("day of year", 0, 365 * DAY))


def compute_time_features(times: Times) -> tuple[Doubles, tuple[str, ...]]:
    """Sine and cosine of each cycle that the spacing can show, (T, F), and their names; none for plain numbers."""
    if times.dtype.kind != "M":
        return np.empty((len(times), 0)), ()
    moments = times.astype("datetime64[ms]")
    spacing = float(np.median(np.diff(moments).astype(np.int64))) if len(moments) > 1 else 0.0
    features, names = [], []
    for name, length, limit in CYCLES:
        if spacing < limit:
            share = _compute_phase(moments, length)
            features += [np.sin(2 * np.pi * share), np.cos(2 * np.pi * share)]
            names += [f"{name} sin", f"{name} cos"]
    return np.stack(features, 1) if features else np.empty((len(moments), 0)), tuple(names)


def _compute_phase(moments: npt.NDArray[np.datetime64], length: int) -> Doubles:
    """How far each moment is into its day or week (from Monday), or into its year, which is no fixed length."""
    if length:
        monday = np.datetime64("1970-01-05", "ms")
        return (moments - monday).astype(np.int64) % length / length
    years = moments.astype("datetime64[Y]")
    start, end = years.astype("datetime64[ms]"), (years + 1).astype("datetime64[ms]")
    return (moments - start) / (end - start)


def count_since_observed(values: npt.NDArray[np.floating[Any]]) -> Doubles:
    """Steps since each value was last there, (..., T, D): 0 where it is; before the first one, since the beginning."""
    rows = np.arange(1, values.shape[-2] + 1)[:, None]
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, rows), axis=-2)
    return (rows - last).astype(np.float64)


def find_windows(part: slice, context: int, horizon: int, stride: int = 1) -> npt.NDArray[np.int64]:
    """The first rows of the windows whose targets lie in the part; contexts may begin before it, never before row 0."""
    assert context > 0 and horizon > 0 and stride > 0
    first = max(part.start - context, 0)
    return np.arange(first, part.stop - context - horizon + 1, stride, dtype=np.int64)


def split_by_shares(length: int, shares: Sequence[float]) -> tuple[slice, ...]:
    """Parts in order of time; the shares add up to at most one."""
    if min(shares) < 0 or sum(shares) > 1 + 1e-9:
        raise DataError(f"the shares {_format_list(shares)} must be positive and add up to at most 1")
    return _make_slices(np.rint(np.cumsum(shares) * length).astype(np.int64).tolist())


def split_by_counts(length: int, counts: Sequence[int]) -> tuple[slice, ...]:
    """Parts of so many rows each, in order of time; rows behind the last part are left out."""
    if min(counts) < 0 or sum(counts) > length:
        raise DataError(f"parts of {_format_list(counts)} rows were asked for, but the series has {length:,}")
    return _make_slices(np.cumsum(counts).tolist())


def _make_slices(ends: list[int]) -> tuple[slice, ...]:
    return tuple(slice(start, end) for start, end in zip([0, *ends], ends, strict=False))


def _format_list(values: Sequence[object]) -> str:
    return ", ".join(map(str, values))
