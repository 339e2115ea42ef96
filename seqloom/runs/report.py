"""What a page about a run tells, gathered from its folder and its task: the data again, questions, answers, words.

Knows how a run folder is laid out, not how it is trained; the page itself is made in `look.report`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..counts import format_count
from ..data.formats.times import format_following_times
from ..data.series_windows import cut_series
from ..errors import RunError, SeqloomError
from ..look import Look
from ..look.doctor.findings import Finding
from ..look.measures.forecasts import ForecastFan
from ..look.report.page import AnsweredExample, PageContent
from ..schemas import Config, Data
from ..tasks.results import Example
from ..tasks.task import Task, TaskData
from ..training.files import read_bytes, read_shaped
from .model_card import describe_data, describe_network

if TYPE_CHECKING:
    from .run import Run

MAX_EXAMPLES = 100  # examples that are answered for a page


def prepare_own_data(folder: Path, task: Task, examples: object = None) -> TaskData:
    """The examples that the run was trained on, read again; those from Python have to be given again."""
    data = task.recipe.data
    if examples is None and not data.sample and not data.train:
        raise RunError(f"{folder}: was trained on examples from Python; give them again, or name an input")
    prepared: TaskData = task.declaration.prepare(task.recipe, lambda line: None, examples)[1]
    if prepared.fingerprint != read_shaped(Data, folder / "data.json").fingerprint:
        raise RunError(
            f"{folder}: the data has changed since this run was trained; name an input, or a file of your own"
        )
    return prepared


def read_training_texts(folder: Path, task: Task) -> Iterable[str]:
    """The texts that the model was trained on, if the recipe's files are there and still the same."""
    try:
        prepared: Any = prepare_own_data(folder, task)
    except SeqloomError:
        return ()
    return prepared.splits["train"].raws["target"] if task.target.is_text else ()


def pick_examples(task: Task, prepared: TaskData, at_most: int) -> tuple[str, list[Example]]:
    """Some examples of the test part, or else of the validation part, which is named; as they are asked."""
    for part in ("test", "validation"):
        if len(examples := task.shape.examples(prepared, part)):
            break
    return part, task.shape.pick_examples(examples, at_most)


def answer_examples(run: "Run", examples: object = None) -> tuple[str, list[AnsweredExample] | str]:
    """Answers to some examples of a part, which is named; or why there are none."""
    try:
        part, chosen = run.pick_examples(MAX_EXAMPLES, examples)
    except SeqloomError as error:
        return "", f"There are no examples to show: {error}."
    predictions = run.task.shape.predict(run.model, [one.input for one in chosen], 1)
    return part, [
        AnsweredExample(one.text, one.answer, best.output, run.task.shape.error(best, one), one.picture)
        for one, (best, *_) in zip(chosen, predictions, strict=True)
    ]


def collect_page(
    folder: Path,
    task: Task,
    look: Look,
    scores: dict[str, Any],
    answered: tuple[str, list[AnsweredExample] | str],
    findings: Sequence[Finding] | str,
) -> PageContent:
    """Everything that the report page shows."""
    recipe, (part, answers) = task.recipe, answered
    config, data = read_shaped(Config, folder / "config.json"), read_shaped(Data, folder / "data.json")
    report = data.report.model_dump()
    versions = read_bytes(folder / "version").decode(errors="replace").splitlines()[1:]
    size = f"{describe_network(recipe)}: {config.parameters:,} parameters"
    return PageContent(
        title=f"{folder.resolve().name}: {recipe.about.title or recipe.task}",
        about=[f"{size}, {format_count(recipe.train.steps, 'step')}, seed {recipe.train.seed}."],
        look=look,
        data=report,
        data_lines=describe_data(report),
        scores=scores,
        answers=answers,
        part=part,
        findings=findings,
        commands=["seqloom train recipe.toml --into runs/again", "seqloom score runs/again"],
        recipe=recipe.to_toml(comments=False),
        versions=[*versions, f"data: SHA-256 {data.fingerprint}"],
        named=str(folder),
    )


def make_forecast_fan(task: Task, model: Any, raw: Any) -> ForecastFan:
    """The end of a series, forecast from what came before it, beside what came and what the baselines say."""
    shape, data = task.shape, task.recipe.data
    whole = cut_series(shape.accept_input(raw), slice(-data.context - data.horizon, None))
    read = cut_series(whole, slice(0, data.context))
    [[prediction]] = shape.predict(model, [read], None)
    names, scale = list(prediction.values), shape.series.scale
    forecasts = task.facts.forecasts(shape.make_last_windows([read]), len(names))
    spread, mean = scale.spread[: len(names)], scale.mean[: len(names)]

    def columns(values: Any) -> dict[str, list[float]]:
        return {name: values[:, column].tolist() for column, name in enumerate(names)}

    return ForecastFan(
        times=[*format_following_times(read.times[:1], read.step, data.context - 1), *prediction.times],
        history=columns(read.values[1:]),  # the first has no time of its own but the one it begins with
        truth=columns(whole.values[data.context :]),
        forecast=prediction.values,
        quantiles=prediction.quantiles,
        baselines={name: columns(one[0] * spread + mean) for name, one in forecasts.items()},
    )
