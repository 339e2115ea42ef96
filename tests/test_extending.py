"""A loss, a model and a schedule of one's own in the training loop, against what they come to by hand."""

import numpy as np
import pytest
import torch

from seqloom.layers import CELLS, DotAttention, Luong, recurrent_encoder
from seqloom.models import Batch, Objective
from seqloom.training.checkpoints import Checkpoints
from seqloom.training.loop import fit

from .laws.zoo import PIECES
from .training.tiny import settings


class Points:
    """All of x and y in every batch."""

    def __init__(self):
        chance = np.random.default_rng(0)
        self.x = torch.from_numpy(chance.standard_normal((30, 1, 2)).astype(np.float32))
        self.y = self.x[:, 0] @ torch.tensor([1.5, -2.0]) + 0.1 * torch.from_numpy(
            chance.standard_normal(30).astype(np.float32)
        )

    def order(self, epoch):
        return [np.arange(30)]

    def batch(self, rows):
        return Batch(self.x[rows], torch.ones(len(rows), 1, dtype=torch.bool), self.y[rows])


class LeastSquares(Objective):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.line.weight)

    def forward(self, batch, state=None):
        errors = self.line(batch.inputs[:, 0])[:, 0] - batch.target
        return (errors**2).sum(), torch.tensor(len(errors)), None


def halving(step, settings):
    return settings.learning_rate * 0.5 ** ((step - 1) // 50)


PLAIN = {"optimizer": "sgd", "momentum": 0.0, "clip_norm": 0.0, "weight_decay": 0.0, "learning_rate": 0.3, "warmup": 0}


def test_an_own_loss_of_an_own_model_comes_to_the_solution_of_the_normal_equations():
    feed, objective = Points(), LeastSquares()
    given = settings(**PLAIN, steps=150, schedule="constant")
    list(fit(objective, feed, given, lambda: {"loss": 1.0}))
    x = feed.x[:, 0]
    torch.testing.assert_close(
        objective.line.weight[0], torch.linalg.solve(x.T @ x, x.T @ feed.y), rtol=1e-3, atol=1e-3
    )


def test_an_own_schedule_moves_the_weights_as_by_hand_and_is_told():
    feed, objective = Points(), LeastSquares()
    given = settings(**PLAIN | {"learning_rate": 0.01}, steps=120, checkpoint_every=30)
    records = list(fit(objective, feed, given, lambda: {"loss": 1.0}, schedule=halving))
    assert {record.rate for record in records} == {0.01, 0.005, 0.0025}
    weight, x = torch.zeros(2), feed.x[:, 0]
    for step in range(1, 121):
        weight = weight - halving(step, given) * 2 * x.T @ (x @ weight - feed.y) / 30
    torch.testing.assert_close(objective.line.weight[0].detach(), weight, rtol=1e-4, atol=1e-5)


def test_with_an_own_schedule_a_run_that_goes_on_comes_to_the_same_end(tmp_path):
    given = settings(**PLAIN, steps=60, checkpoint_every=20)
    whole, begun, again = LeastSquares(), LeastSquares(), LeastSquares()
    list(fit(whole, Points(), given, lambda: {"loss": 1.0}, schedule=halving))
    for record in fit(begun, Points(), given, lambda: {"loss": 1.0}, Checkpoints(tmp_path), schedule=halving):
        if record.step >= 30:
            break
    list(fit(again, Points(), given, lambda: {"loss": 1.0}, Checkpoints(tmp_path), schedule=halving))
    assert torch.equal(whole.line.weight, again.line.weight)


@pytest.mark.parametrize("name", [name for name in PIECES if name not in ("cross", "luong")])
def test_without_a_state_a_layer_reads_from_the_beginning(name):
    layer, x = PIECES[name]().eval(), torch.randn(2, 4, 12)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool()
    y, state = layer(x, mask=mask)
    torch.testing.assert_close(y, layer(x, layer.initial_state(2), mask)[0])
    if layer.causal:
        torch.testing.assert_close(layer(x[:, :1], state)[0], layer(x[:, :1], layer(x, mask=mask)[1])[0])


def test_a_stack_of_recurrences_needs_no_state_and_attention_says_what_it_needs():
    net = recurrent_encoder(CELLS["lstm"], 3, [4, 4])
    assert net(torch.randn(2, 5, 3))[0].shape == (2, 5, 4)
    with pytest.raises(ValueError, match="attention needs a memory to look at"):
        Luong(4, 4, DotAttention(4, 4))(torch.randn(2, 5, 4))
