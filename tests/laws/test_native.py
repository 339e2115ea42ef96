"""Ways around the equations that `test_layers.py` does not take: native steps, PyTorch's LSTM, single steps."""

import pytest
import torch

from seqloom.layers.cells import CELLS
from seqloom.layers.fast import native_kernels
from seqloom.layers.fast.native import library
from seqloom.layers.tap import recording

from .test_layers import FAST, MASKS, close
from .zoo import D, stirred

SIZES = (1, 12, 37)  # less than the processor takes at once, a little more, and with a rest
KINDS = [name for name in FAST if CELLS[name](D, 4).kernel().function in native_kernels.NATIVE]


def both(cell, mask, dtype, time=6):
    """Outputs, last entries and all gradients: by the fast way, and spelled out."""
    x = torch.randn(3, time, D, dtype=dtype, requires_grad=True)
    first = tuple(torch.randn(3, size, dtype=dtype, requires_grad=True) for size in cell.sizes)
    found = []
    for watch in (False, True):
        with recording(cell, "*" if watch else "nothing"):
            y, last = cell.scan(x, first, mask)
        y = y if mask is None else y.masked_fill(~mask[..., None], 0)
        loss = y.pow(2).sum() + sum(entry.pow(3).sum() for entry in last)
        found.append((y, last, torch.autograd.grad(loss, [x, *first, *cell.parameters()])))
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("side", [None, *MASKS])
@pytest.mark.parametrize("name", KINDS)
def test_native_steps_equal_the_equations(name, side, size, native):
    cell = stirred(CELLS[name](D, size)).double().eval()
    close(*both(cell, MASKS.get(side), torch.double), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_native_steps_serve_single_precision(name, native):
    close(*both(stirred(CELLS[name](D, 37)).eval(), MASKS["right"], torch.float), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", KINDS)
def test_native_steps_are_taken(name, native):
    """The laws above would hold if they were not."""
    kernel = CELLS[name](D, 4).kernel()
    assert native_kernels.choose_kernel(kernel, torch.zeros(1)).function is native_kernels.NATIVE[kernel.function]
    assert native_kernels.choose_kernel(kernel, torch.zeros(1, dtype=torch.half)) is kernel
    with library.use_native(False):
        assert native_kernels.choose_kernel(kernel, torch.zeros(1)) is kernel


@pytest.mark.parametrize("value", [0.0, 1e-9, -0.3, 5.0, -20.0, 88.0, -200.0, 1e30, -1e30, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_native_squashing_bears_any_number(dtype, value, native):
    cell = CELLS["gru"](1, 9).to(dtype)
    for weight in cell.parameters():
        weight.data.zero_()
    cell.W.weight.data[6:] = 1  # some of the gates, and the candidate
    x, first = torch.full((1, 3, 1), value, dtype=dtype), (torch.zeros(1, 9, dtype=dtype),)
    quick, _ = cell.scan(x, first)
    with recording(cell):
        slow, _ = cell.scan(x, first)
    torch.testing.assert_close(quick, slow, equal_nan=True, atol=3e-7 if dtype == torch.float else 1e-15, rtol=0)


@pytest.mark.parametrize("time", [1, 2, 6])
@pytest.mark.parametrize("bias", [True, False])
def test_the_lstm_of_pytorch_equals_the_equations(time, bias):
    """Single precision without padding, which the laws in double precision do not see."""
    cell = stirred(CELLS["lstm"](D, 12))
    if not bias:
        cell.W.bias = None
    close(*both(cell, None, torch.float, time), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", CELLS)
def test_a_single_step_equals_the_equations(name):
    close(*both(stirred(CELLS[name](D, 12)).double().eval(), None, torch.double, 1), atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_a_graph_can_be_walked_back_twice(name):
    """Kernels write into what they were given, but not into what they keep."""
    cell, x = CELLS[name](D, 12), torch.randn(3, 6, D, requires_grad=True)
    y, _ = cell.scan(x, tuple(torch.zeros(3, 12) for _ in cell.sizes), MASKS["right"])
    first, second = (torch.autograd.grad(y.sum(), [x, *cell.parameters()], retain_graph=True) for _ in range(2))
    close(first, second)
