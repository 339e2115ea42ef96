"""The parallel scan of minGRU and minLSTM is the loop over their steps, in value and gradient, whatever the length."""

import pytest
import torch

from seqloom.layers.cell import walk
from seqloom.layers.cells import CELLS
from seqloom.layers.fast import parallel_scan
from seqloom.layers.padding import lengths_to_mask, zero_padding


def read_by_loop(cell, x, entries, mask):
    """Step after step by the cell's equations, with autograd."""
    y, entries = walk(cell.forward, cell.W(zero_padding(x, mask)), entries, mask)
    return zero_padding(y, mask), entries


def gradients(read, cell, x, h, mask):
    """All outputs, the last state, and the gradients of weights, input and first state."""
    x, h = x.clone().requires_grad_(), h.clone().requires_grad_()
    y, (last,) = read(cell, x, (h,), mask)
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    cell.zero_grad()
    ((y * weights).sum() + last.sin().sum()).backward()
    return [y, last, x.grad, h.grad, *(weight.grad.clone() for weight in cell.parameters())]


@pytest.mark.parametrize("name", ["mingru", "minlstm"])
@pytest.mark.parametrize("block", [1, 7, 10**6])
@pytest.mark.parametrize("time", [2, 3, 33, 130])
def test_the_scan_is_the_loop(name, block, time, monkeypatch):
    monkeypatch.setattr(parallel_scan, "choose_block", lambda decays: block)
    torch.manual_seed(time)
    cell = CELLS[name](3, 4).double()
    x, h = torch.randn(4, time, 3, dtype=torch.double), torch.randn(4, 4, dtype=torch.double)
    for mask in (None, lengths_to_mask(torch.tensor([time // 2, time, 0, 1]), time)):
        found = gradients(lambda cell, *given: cell.scan(*given), cell, x, h, mask)
        for ours, theirs in zip(found, gradients(read_by_loop, cell, x, h, mask), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_gates_at_their_limits_are_safe_over_thousands_of_steps(scale):
    """Decays that multiply to less than any float, and decays of exactly 0 and 1."""
    torch.manual_seed(0)
    decays, changes, first = torch.randn(5000, 2, 3).mul(scale).sigmoid(), torch.randn(5000, 2, 3), torch.randn(2, 3)
    expected, state = [], first.double()
    for decay, change in zip(decays.double(), changes.double(), strict=True):
        state = decay * state + change
        expected.append(state)
    found = parallel_scan.scan_(decays, changes, first, 5000)
    torch.testing.assert_close(found.double(), torch.stack(expected), rtol=1e-4, atol=1e-4)


def test_a_scan_needs_logarithmically_many_operations():
    """The loop would need one a step."""

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += func in (torch.ops.aten.addcmul_.default, torch.ops.aten.mul_.Tensor)
            return func(*args, **(kwargs or {}))

    with Counting() as counting:
        parallel_scan.scan_(torch.rand(4096, 1, 2), torch.rand(4096, 1, 2), torch.rand(1, 2), 4096)
    assert counting.calls <= 3 * 12 + 1


def test_on_a_processor_a_block_stays_in_the_cache():
    assert parallel_scan.choose_block(torch.empty(9, 16, 128)) * 16 * 128 == parallel_scan.CACHE
    assert parallel_scan.choose_block(torch.empty(9, 64, 512)) == 1
    assert parallel_scan.choose_block(torch.empty(9, 64, 512, device="meta")) == 9
