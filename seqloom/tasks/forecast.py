"""Series of numbers, continued: from the last rows of one to the next ones, of all its variables at once."""

from dataclasses import replace
from typing import Any

from ..config.recipe import Recipe
from ..data.preprocess import Note
from ..data.schema import Schema, Side
from ..data.series_windows import PreparedSeries, SeriesScale, Windows, prepare
from ..errors import RunError
from ..fields import Field, TimeSeries
from .forecast_baselines import ForecastBaselines, score_forecasts
from .forecast_windows import ForecastWindows
from .results import ScoreWithBaselines
from .task import Declaration, Task


def declare(recipe: Recipe) -> Declaration:
    data = recipe.data
    return Declaration(
        schema=Schema("forecast", data, {"series": Side((*data.variables, *data.inputs), TimeSeries)}),
        shape=ForecastWindows,
        facts=ForecastBaselines,
        learn=learn,
        more_scores=score,
        check=check_baselines,
        load=load_series,
    )


def load_series(
    recipe: Recipe, schema: Schema, note: Note, examples: object, known: dict[str, Any] | None
) -> PreparedSeries:
    """All series, parted in time, on the scale of the training part or, where fields are known, of theirs."""
    field: TimeSeries | None = known["series"] if known else None
    prepared = prepare(recipe.data, note, examples, None if field is None else field.scale)
    if field is not None:
        field.check_columns(prepared.training[0].columns)
    fitted: Field = field or TimeSeries.fit(prepared.training, recipe.data)
    return replace(prepared, fields={"series": fitted})


def learn(task: Task, prepared: PreparedSeries) -> ForecastBaselines:
    variables = len(task.fields["series"])
    levels = task.recipe.model.quantiles
    return ForecastBaselines.fit(prepared.training, prepared.scale, variables, task.recipe.data, levels)


def check_baselines(task: Task) -> None:
    """Refuse facts from a file that do not fit the series."""
    facts, variables = task.facts, len(task.fields["series"])
    lags = {len(weights) for weights in facts.weights}
    known = {len(facts.center), len(facts.weights), *map(len, facts.unit), *map(len, facts.level)}
    if known != {variables} or len(lags) != 1 or not 0 < min(lags) <= task.recipe.data.context:
        raise RunError("task.json does not hold what baselines know of each of its variables")
    quantiles = task.recipe.model.quantiles
    if facts.climate and [len(one) for one in facts.climate] != [len(quantiles)] * variables:
        raise RunError("task.json does not hold a quantile of each of its variables for each level")
    if not facts.series or {len(facts.unit), len(facts.level)} != {len(facts.series)}:
        raise RunError("task.json does not hold what baselines know of each of its series")


def score(task: Task, model: Any, windows: Windows) -> dict[str, ScoreWithBaselines]:
    """Every score of the forecasts, on the scale of training and in units, beside those of the baselines."""
    shape: ForecastWindows = task.shape
    series, forecasts = shape.series, shape.forecast(model, windows)
    scale = SeriesScale(*(part[: len(series)] for part in series.scale))
    others, levels = task.facts.forecasts(windows, len(series)), task.recipe.model.quantiles
    return score_forecasts(
        shape.point(forecasts), forecasts, levels, windows, scale, series.variables, task.facts, others
    )
