"""A loss that looks at a draw of the classes: what it is on average, and where it must be the whole one."""

import pytest
import torch
from torch.nn import functional as F

from seqloom.layers.heads import Categorical
from seqloom.layers.sampled_softmax import SampledSoftmax

CLASSES, SIZE = 40, 6


def case(
    draws: int, rows: int = 5, impossible: tuple[int, ...] = ()
) -> tuple[SampledSoftmax, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    head = SampledSoftmax(Categorical(SIZE, CLASSES, impossible=impossible), draws).double()
    return head, torch.randn(rows, SIZE).double(), torch.randint(3, CLASSES, (rows,))


@pytest.mark.parametrize("draws", [1, 7, 60])
def test_the_sum_over_all_classes_is_met_on_average(draws: int) -> None:
    """E[exp(loss)] = Σ exp(s_j) / exp(s_target), whatever the number of draws."""
    head, features, target = case(draws, rows=1)
    exact = F.cross_entropy(head(features), target).exp()
    with torch.no_grad():
        many = torch.stack([head.loss(features, target)[0].exp() for _ in range(2000)])
    assert (many.mean() - exact).abs() < 5 * many.std() / len(many) ** 0.5
    assert many.std() > 0


@pytest.mark.parametrize("impossible", [(), (0, 2)])
def test_with_very_many_draws_the_loss_and_its_gradients_are_the_whole_ones(impossible: tuple[int, ...]) -> None:
    head, features, target = case(20_000, impossible=impossible)
    features.requires_grad_()
    leaves = [features, *head.parameters()]
    drawn = torch.autograd.grad(head.loss(features, target)[0], leaves)
    whole = torch.autograd.grad(head.head.loss(features, target)[0], leaves)
    for one, other in zip(drawn, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def test_outside_of_training_nothing_is_drawn() -> None:
    head, features, target = case(3)
    head.eval()
    told, count = head.loss(features, target)
    whole = F.cross_entropy(head(features), target, reduction="sum")
    torch.testing.assert_close(told, whole)
    assert count == len(target)


def test_masked_elements_do_not_count() -> None:
    head, features, target = case(20_000)
    mask = torch.tensor([True, False, True, True, False])
    torch.manual_seed(1)
    some = head.loss(features, target, mask)
    torch.manual_seed(1)
    kept = head.loss(features[mask], target[mask])
    torch.testing.assert_close(some, kept)


def test_a_draw_of_nothing_but_the_target_is_no_surprise_and_has_a_finite_gradient() -> None:
    head, features, _ = case(1, rows=4)
    head.chances = F.one_hot(torch.tensor(9), CLASSES).double()
    total, _ = head.loss(features, torch.full((4,), 9))
    total.backward()
    assert total == 0
    assert head.head.project.weight.grad is not None and head.head.project.weight.grad.isfinite().all()
