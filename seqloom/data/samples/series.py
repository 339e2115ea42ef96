"""Series of numbers: measured (carbon dioxide in the air) and simulated (sensors with gaps, a ball in a box)."""

import numpy as np

from seqloom.arrays import Doubles
from seqloom.data.formats.series import Series
from seqloom.errors import MissingExtra

DAY = np.timedelta64(1, "D")


def co2() -> list[Series]:
    """Carbon dioxide in the air of Mauna Loa, week by week from 1958 to 2001; some weeks are missing."""
    try:
        from statsmodels.datasets import co2 as measured
    except ImportError:
        raise MissingExtra("statsmodels", "samples") from None
    table = measured.load_pandas().data
    times = table.index.to_numpy().astype("datetime64[ms]")
    assert (np.diff(times) == 7 * DAY).all()
    return [Series("co2", times, table.to_numpy(np.float64), ("co2",), 0, f"{7 * 86_400_000} ms")]


def sensors(rows: int = 3000, missing: float = 0.6) -> list[Series]:
    """Three sensors of one hidden weather that turns and drifts, hour by hour; each reports only now and then."""
    chance = np.random.Generator(np.random.PCG64(1961))
    hidden = np.zeros(rows)
    for row in range(1, rows):
        hidden[row] = 0.97 * hidden[row - 1] + 0.25 * chance.standard_normal()
    hours = np.arange(rows)
    day = np.sin(2 * np.pi * hours / 24)
    values = np.stack([15 + 5 * day + 3 * hidden, 60 - 12 * day + 6 * np.roll(hidden, 3), 1013 + 2 * hidden**2], 1)
    values += np.array([0.5, 2.0, 0.5]) * chance.standard_normal(values.shape)
    # A sensor that is silent stays so for a while: whole stretches are missing, not single hours.
    silent = np.zeros(values.shape, bool)
    silent[0] = chance.random(3) < missing
    for row in range(1, rows):
        turns = chance.random(3) < np.where(silent[row - 1], 0.1 * (1 - missing) / missing, 0.1)
        silent[row] = silent[row - 1] ^ turns
    values[silent] = np.nan
    times = np.datetime64("2020-01-01", "ms") + hours * np.timedelta64(3_600_000, "ms")
    return [Series("sensors", times, values, ("temperature", "humidity", "pressure"), 0, "3600000 ms")]


def ball(throws: int = 40, rows: int = 150) -> list[Series]:
    """A ball thrown into a box, throw after throw: where it is as it falls and bounces off the walls."""
    chance = np.random.Generator(np.random.PCG64(1687))
    return [_throw(f"throw {number + 1}", rows, chance) for number in range(throws)]


def _throw(name: str, rows: int, chance: np.random.Generator) -> Series:
    times, path = np.arange(rows, dtype=np.float64), throw_ball(rows, chance)
    return Series(name, times, path + 0.003 * chance.standard_normal(path.shape), ("x", "y"), 0, "1.0")


def throw_ball(rows: int, chance: np.random.Generator) -> Doubles:
    """Where a ball is, moment after moment, in a box from 0 to 1: (rows, 2)."""
    place, speed = chance.uniform(0.2, 0.8, 2), chance.uniform(-0.06, 0.06, 2)
    path = np.empty((rows, 2))
    for row in range(rows):
        path[row] = place
        place, speed = place + speed, speed - np.array([0.0, 0.002])  # it falls
        for axis in range(2):
            if not 0 <= place[axis] <= 1:  # off the wall, as fast as it came, but for what the floor takes
                place[axis] = -place[axis] if place[axis] < 0 else 2 - place[axis]
                speed[axis] *= -0.98
    return path
