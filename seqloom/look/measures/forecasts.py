"""A forecast beside what came: what was read, the forecast with its quantiles, the truth, and the baselines."""

from dataclasses import dataclass

Values = dict[str, list[float]]  # by variable


@dataclass(frozen=True)
class ForecastFan:
    """One window of a series. Times are those of what was read and then those of the forecast."""

    times: list[str]
    history: Values
    truth: Values
    forecast: Values
    quantiles: dict[str, dict[str, list[float]]]  # by variable and level
    baselines: dict[str, Values]  # by name
