"""From what a model tells to what a person reads, and how wrong that is: no training, closed forms."""

import math

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.fields import Prediction
from seqloom.fields.base import pick_evenly
from seqloom.fields.labels import NumberPrediction
from seqloom.tasks import forecast_windows, shape
from seqloom.tasks.forecast_windows import ForecastPrediction
from seqloom.tasks.results import Example
from tests.preparing import prepare_task

from ..recipes import forecasting, walks

TEXTS = [f"{word} film" for word in ("good", "bad", "fine", "awful")] * 5


def made(task, targets, *overrides):
    examples = list(zip(TEXTS, targets, strict=True))
    parts = {part: examples for part in ("train", "validation", "test")}
    return prepare_task(Recipe.of({"task": task}).override(*overrides).resolved(), print, parts)


def test_a_rating_and_its_doubt_are_told_on_the_scale_of_training():
    numbers = [float(n % 4) * 10 for n in range(20)]
    task, prepared = made("classify", map(str, numbers), "data.target_type=number")
    [answer] = task.target.predictions((torch.tensor([0.5]), torch.tensor([0.25])), 1)
    assert answer.value == pytest.approx(np.mean(numbers) + 0.5 * np.std(numbers))
    assert answer.spread == pytest.approx(0.25 * np.std(numbers))
    told = task.shape.batch(prepared, np.arange(20)).target[:, 0]
    torch.testing.assert_close(told, torch.tensor((numbers - np.mean(numbers)) / np.std(numbers)).float())


def test_every_label_that_is_likelier_than_not_is_told():
    task, _ = made("classify", ["a, b", "b, c", "c", "-"] * 5, "data.target_type=labels")
    names = task.target.names
    for logits in ([-0.1, 0.1, 0.3], [0.1, -0.1, -0.3], [-0.2, -0.1, -3.0]):
        [answer] = task.target.predictions(torch.tensor(logits), 1)
        told = sorted(name for name, one in zip(names, logits, strict=True) if one > 0)
        assert answer.output == (", ".join(told) or "-")
        assert answer.score == pytest.approx(sum(-math.log1p(math.exp(-abs(one))) for one in logits))


def asked(truth, target=None):
    return Example("", "", truth, target=target)


def test_an_answer_is_wrong_if_it_is_another_one_and_a_number_by_as_much_as_it_is_off():
    task, _ = made("classify", ["a", "b"] * 10)
    assert [task.shape.error(Prediction(told, 0.0), asked("a")) for told in ("a", "b")] == [0, 1]
    task, _ = made("classify", ["a, b", "b", "c", "-"] * 5, "data.target_type=labels")
    answers = ("a, b", "b, a", "a", "-")
    assert [task.shape.error(Prediction(told, 0.0), asked("b, a")) for told in answers] == [0, 0, 1, 1]
    task, _ = made("classify", map(str, range(20)), "data.target_type=number")
    assert task.shape.error(NumberPrediction("7", 0.0, 7.0, 1.0), asked("4.5")) == pytest.approx(2.5)


def test_a_forecast_is_wrong_by_its_error_over_the_spread_of_each_variable():
    recipe = forecasting()
    task, _ = prepare_task(recipe, print, walks() * [1, 100])
    first, second = task.fields["series"].scale.spread
    names = task.fields["series"].variables
    true = dict(zip(names, ([1.0, 2.0, math.nan], [10.0, 20.0, 30.0]), strict=True))
    told = dict(zip(names, ([2.0, 4.0, 9.0], [10.0, 20.0, 60.0]), strict=True))
    expected = np.mean([1 / first, 2 / first, 0, 0, 30 / second])
    assert task.shape.error(ForecastPrediction("", 0.0, [], told, {}), asked("", true)) == pytest.approx(expected)


def test_a_forecast_is_told_in_the_unit_of_what_was_read():
    """Relative to what was seen last, a model that adds nothing says it again."""
    values = walks(missing=0.0) * [1, 100] + [0, 5000]
    task, _ = prepare_task(forecasting("model.relative=last"), print, values)
    model = task.shape.build().eval()
    for parameter in model.head.parameters():
        torch.nn.init.zeros_(parameter)
    [[answer]] = task.shape.predict(model, [values])
    for name, column in zip(task.fields["series"].variables, values.T, strict=True):
        assert answer.values[name] == pytest.approx([column[-1]] * 3, rel=1e-5)


def test_a_quick_look_at_forecasts_is_the_mean_over_all_cells_that_are_known_however_they_are_read(monkeypatch):
    task, prepared = prepare_task(forecasting(), print, walks())
    torch.manual_seed(0)
    model, windows = task.shape.build().eval(), prepared.parts["validation"]
    error = (task.shape.point(task.shape.forecast(model, windows)) - windows.targets()[..., :2])[None]
    expected = {"MSE": np.nanmean(error**2), "MAE": np.nanmean(np.abs(error))}
    for room in (forecast_windows.ROOM, 1, 40):
        monkeypatch.setattr(forecast_windows, "ROOM", room)
        found = task.shape.validate(model, prepared)
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_the_validation_loss_is_the_mean_over_elements_however_they_are_read(task, monkeypatch):
    sources = ["a b", "b", "a a b a b a", "b a b"] * 5
    targets = ["x" if task == "classify" else " ".join("xy"[word == "a"] for word in text.split()) for text in sources]
    if task == "classify":
        targets[::2] = ["y"] * 10
    examples = list(zip(sources, targets, strict=True))
    given = {part: examples for part in ("train", "validation", "test")}
    made, prepared = prepare_task(Recipe.of({"task": task}).resolved(), print, given)
    torch.manual_seed(0)
    model = made.shape.build().eval()
    loss, count, _ = made.objective(model)(made.shape.batch(prepared, np.arange(20), "validation"))
    for room in (shape.ROOM, 1, 20):
        monkeypatch.setattr(shape, "ROOM", room)
        assert made.shape.validate(model, prepared)["loss"] == pytest.approx(loss.item() / count.item(), rel=1e-4)


def test_a_tag_that_training_never_saw_is_read_but_not_counted():
    tags = ["X\tY", "Y\tX"] * 10
    examples = [("a\tb", each) for each in tags]
    parts = {"train": examples, "validation": [("a\tb", "X\tNEW"), ("b\ta", "Y\tY")], "test": examples}
    task, prepared = prepare_task(Recipe.of({"task": "tag"}).resolved(), print, parts)
    batch = task.shape.batch(prepared, np.arange(2), "validation")
    assert batch.mask.all() and batch.loss_mask.tolist() == [[True, False], [True, True]]


@pytest.mark.parametrize("count", range(12))
def test_some_places_are_spread_evenly_from_the_first_on_and_never_too_many(count):
    for most in range(1, 12):
        found = pick_evenly(count, most)
        assert len(found) <= most and found == sorted({*found}) and all(0 <= place < count for place in found)
        assert len({after - before for before, after in zip(found, found[1:], strict=False)}) <= 1
        assert found[:1] == [0][:count] and (count > most or found == list(range(count)))
