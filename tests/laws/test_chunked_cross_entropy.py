"""The loss that never holds all logits is torch's own, in value and gradient."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from seqloom.layers.chunked_cross_entropy import LinearCrossEntropy
from seqloom.layers.heads import Categorical


@pytest.mark.parametrize("chunk", [1, 7, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("weighted", "impossible"), [(False, ()), (True, ()), (False, (0, 2))])
def test_value_and_gradient_are_those_of_torch(
    chunk: int, smoothing: float, weighted: bool, impossible: tuple[int, ...]
) -> None:
    """Of the classes that are possible alone: for torch, the others are not there."""
    torch.manual_seed(0)
    features, matrix, bias = (
        torch.randn(shape, dtype=torch.double, requires_grad=True) for shape in ((23, 5), (40, 5), (40,))
    )
    target, weights = torch.randint(3, 40, (23,)), torch.rand(40, dtype=torch.double) if weighted else None
    closed = torch.tensor(impossible, dtype=torch.long)
    ours: Tensor = LinearCrossEntropy.apply(features, target, matrix, bias, weights, smoothing, closed, chunk)
    possible = [number for number in range(40) if number not in impossible]
    logits = F.linear(features, matrix, bias)[:, possible]
    theirs = F.cross_entropy(logits, target - len(impossible), weights, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(ours, theirs)
    given = features, matrix, bias
    for mine, other in zip(torch.autograd.grad(3 * ours, given), torch.autograd.grad(3 * theirs, given), strict=True):
        torch.testing.assert_close(mine, other)


def test_large_logits_do_not_overflow() -> None:
    features, target = torch.full((4, 1), 1e4), torch.tensor([0, 1, 0, 1])
    matrix = torch.tensor([[1.0], [-1.0]])
    found = LinearCrossEntropy.apply(
        features, target, matrix, torch.zeros(2), None, 0.0, torch.tensor([], dtype=torch.long), 3
    )
    assert found == F.cross_entropy(features @ matrix.T, target, reduction="sum") == 4e4


def test_nothing_as_large_as_all_logits_is_ever_held(monkeypatch: pytest.MonkeyPatch) -> None:
    head, seen = Categorical(3, 1000, chunk=8), []
    plain = torch.addmm
    monkeypatch.setattr(torch, "addmm", lambda *given: seen.append(plain(*given).shape) or plain(*given))
    features = torch.randn(2, 33, 3, requires_grad=True)
    loss, count = head.loss(features, torch.randint(0, 1000, (2, 33)))
    loss.backward()
    assert count == 66 and len(seen) == 9 and max(shape[0] for shape in seen) == 8


def test_in_evaluation_neither_smoothing_nor_weights_count() -> None:
    torch.manual_seed(0)
    plain = Categorical(3, 20, chunk=4)
    other = Categorical(3, 20, chunk=4, smoothing=0.3, weights=torch.rand(20).tolist())
    other.load_state_dict(plain.state_dict())
    given = torch.randn(9, 3), torch.randint(0, 20, (9,))
    assert plain.loss(*given)[0] != other.loss(*given)[0]
    assert plain.eval().loss(*given)[0] == other.eval().loss(*given)[0]


def test_in_a_low_precision_the_products_are_cast_and_gradients_stay_single() -> None:
    torch.manual_seed(0)
    head, features = Categorical(16, 300, chunk=8), torch.randn(32, 16, requires_grad=True)
    target = torch.randint(0, 300, (32,))
    exact, _ = head.loss(features, target)
    exact.backward()
    before, head.project.weight.grad = head.project.weight.grad, None
    assert before is not None
    with torch.autocast("cpu", torch.bfloat16):
        cast, _ = head.loss(features, target)
    cast.backward()
    after = head.project.weight.grad
    assert after is not None and after.dtype == cast.dtype == torch.float32
    assert cast != exact
    torch.testing.assert_close(cast, exact, rtol=0.01, atol=0.0)
    torch.testing.assert_close(after, before, rtol=0.1, atol=0.05)
