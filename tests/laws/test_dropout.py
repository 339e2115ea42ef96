"""Dropout in one pass: a hash of seed and place decides, which the reference works out number by number."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from seqloom.layers.fast.dropout import Drop, Dropout
from seqloom.layers.fast.native import library

BLOCK = 4096
MASK = 0xFFFFFFFF


def scramble(x: np.ndarray) -> np.ndarray:
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ x >> shift) * factor & MASK
    return x ^ x >> 16


def keeps(count: int, seed: int, share: float) -> np.ndarray:
    """Which places are kept."""
    place = np.arange(count, dtype=np.uint64)
    block = scramble(place // BLOCK + (seed >> 32) & MASK)
    return scramble(scramble(place % BLOCK + (seed & MASK) & MASK) ^ block) >= min(round(share * 2**32), MASK)


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("shape", [(0,), (1,), (7, 33), (3, BLOCK + 5)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_it_keeps_what_the_hash_says_and_scales_it(share, shape, dtype, native):
    x, seed = torch.randn(shape, dtype=dtype), 0x123456789ABCDEF
    kept = torch.from_numpy(keeps(x.numel(), seed, share)).view(shape)
    torch.testing.assert_close(Drop.apply(x, share, seed), x * kept / (1 - share))


def test_the_way_back_leaves_out_the_same(native):
    x = torch.randn(5, 6, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Drop.apply(x, 0.4, 7), (x,))
    assert torch.autograd.gradgradcheck(lambda x: Drop.apply(x.pow(3), 0.4, 7), (x,))


def test_what_is_not_contiguous_is_dropped_by_its_place(native):
    x = torch.randn(6, 5).T
    torch.testing.assert_close(Drop.apply(x, 0.3, 9), Drop.apply(x.contiguous(), 0.3, 9))


def test_the_same_state_of_the_generator_leaves_out_the_same(kernels):
    layer, x = Dropout(0.3), torch.ones(100, 100)
    torch.manual_seed(3)
    first, second = layer(x), layer(x)
    state = torch.get_rng_state()
    third = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first) and not torch.equal(first, second)
    torch.set_rng_state(state)
    assert torch.equal(layer(x), third)


def test_threads_leave_out_the_same(native):
    x, before = torch.randn(300, 400), torch.get_num_threads()
    alone = Drop.apply(x, 0.2, 5)
    torch.set_num_threads(2)
    try:
        assert torch.equal(Drop.apply(x, 0.2, 5), alone)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_shares_and_neighbors_are_those_of_chance(share, kernels):
    """Within five standard deviations; places side by side, one block apart and of the next draw are independent."""
    count, layer = 1 << 18, Dropout(share)
    one, two = (layer(torch.ones(count)) == 0 for _ in range(2))
    deviation = 5 * (share * (1 - share) / count) ** 0.5
    assert abs(one.double().mean() - share) < deviation
    both = share**2
    deviation = 5 * (both * (1 - both) / (count - BLOCK)) ** 0.5
    for other in (one.roll(1), one.roll(BLOCK), one.roll(128), two):
        assert abs((one & other).double().mean() - both) < 1.5 * deviation


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_none_and_all(share, kernels):
    x = torch.randn(4, 5)
    assert torch.equal(Dropout(share)(x), F.dropout(x, share)) and torch.equal(Dropout(share).eval()(x), x)


def test_without_native_kernels_it_is_torchs_own():
    with library.use_native(False):
        torch.manual_seed(1)
        found = Dropout(0.4)(torch.ones(50))
    torch.manual_seed(1)
    assert torch.equal(found, F.dropout(torch.ones(50), 0.4))
