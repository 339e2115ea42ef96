"""The average of the weights, against the formula and torch's own, and who sees it."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from seqloom.errors import RunError
from seqloom.training.ema import EMA
from seqloom.training.loop import Training, fit
from seqloom.training.tensors import copy_weights

from .tiny import Guesser, Rows, same, settings


def test_the_average_is_the_formulas() -> None:
    layer = nn.Linear(3, 2).double()
    average, expected = EMA(layer, 0.8), layer.weight.detach().clone()
    for step in range(1, 60):
        nn.init.normal_(layer.weight)
        average.add(step)
        share = min(0.8, (1 + step) / (10 + step))
        expected = share * expected + (1 - share) * layer.weight.detach()
        torch.testing.assert_close(average.weights["weight"], expected)


def test_once_warm_the_average_is_torchs_own() -> None:
    layer = nn.Linear(3, 2).double()
    average, theirs = EMA(layer, 0.9), AveragedModel(layer, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(layer)  # the first one is copied
    for _ in range(20):
        nn.init.normal_(layer.weight)
        average.add(10**9)
        theirs.update_parameters(layer)
    torch.testing.assert_close(average.weights["weight"], theirs.module.weight.detach())


def test_a_validation_and_whoever_keeps_the_best_see_the_average_and_training_its_own() -> None:
    plain, objective = Training(Guesser(), Rows(), settings()), Guesser()
    given = settings(ema=0.9)
    seen = []

    def validate() -> dict[str, float]:
        seen.append(copy_weights(objective))
        return {"loss": 1.0 / len(seen)}

    beside = EMA(plain.objective, 0.9)
    for record in fit(objective, Rows(), given, validate):
        while plain.progress.step < record.step:
            plain.advance()
            beside.add(plain.progress.step)
        if record.scores:
            assert same(seen[-1], beside.weights) and same(copy_weights(objective), beside.weights)
            assert not same(copy_weights(plain.objective), beside.weights)
    assert same(copy_weights(objective), copy_weights(plain.objective))


def test_without_averaging_nothing_is_kept() -> None:
    assert EMA(Guesser(), 0.0).weights == {}


def test_a_skipped_step_is_not_averaged() -> None:
    training = Training(Guesser(), Rows(), settings(ema=0.5))
    training.advance()
    before = {name: tensor.clone() for name, tensor in training.average.weights.items()}
    for text in training.feed.texts:
        text[0] = 0
    training.advance()
    assert training.progress.skipped == 1 and same(training.average.weights, before)


def test_after_skipped_steps_the_average_is_as_young_as_the_steps_that_were_made() -> None:
    training = Training(Guesser().double(), Rows(), settings(ema=0.9, steps=200))
    texts = training.feed.texts
    expected = {name: tensor.clone() for name, tensor in training.average.weights.items()}
    made = 0
    for poisoned in (True, True, False, True, False, False, True, True, True, False):
        for text in texts:
            text[0] = 0 if poisoned else 1
        training.advance()
        made += not poisoned
        share = (1 + made) / (10 + made)
        for name, tensor in copy_weights(training.objective).items() if not poisoned else ():
            expected[name] = share * expected[name] + (1 - share) * tensor
        for name, tensor in expected.items():
            torch.testing.assert_close(training.average.weights[name], tensor)
    assert training.progress.skipped == 6


def test_an_average_of_another_model_is_refused() -> None:
    with pytest.raises(RunError, match="^there: the averaged weights"):
        EMA(Guesser(), 0.5).load(EMA(Guesser(size=8), 0.5).weights, "there")
