"""PyTorch's own layers: weights in and out, and the same numbers."""

import pytest
import torch
from torch import nn

from seqloom.layers import GRU, LSTM, RNN
from seqloom.layers.padding import mask_of

close = torch.testing.assert_close
PAIRS = {
    "rnn": (RNN, nn.RNN, {}),
    "rnn-relu": (RNN, nn.RNN, {"nonlinearity": "relu"}),
    "lstm": (LSTM, nn.LSTM, {}),
    "lstm-projected": (LSTM, nn.LSTM, {"proj_size": 4}),
    "gru": (GRU, nn.GRU, {}),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_weights_come_in_and_go_out_and_the_numbers_are_equal(name, depth, both_ways, bias):
    ours, theirs, options = PAIRS[name]
    torch.manual_seed(0)
    module = theirs(5, 6, depth, batch_first=True, bidirectional=both_ways, bias=bias, **options).double()
    layer = ours.from_torch(module)
    x = torch.randn(3, 7, 5, dtype=torch.double, requires_grad=True)
    expected, last = module(x)
    found, state = layer(x, layer.start(3))
    close(found, expected, atol=1e-12, rtol=0)
    finals = last if isinstance(last, tuple) else (last,)
    handed = layer.handed(state)  # level by level, ways side by side
    for entry, theirs_last in enumerate(finals):
        ways = theirs_last.unflatten(0, (depth, -1)).transpose(1, 2).flatten(2)
        close(torch.stack([level[entry] for level in handed]), ways, atol=1e-12, rtol=0)
    gradients = [torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)]
    close(*gradients, atol=1e-12, rtol=0)
    again, _ = layer.to_torch()(x)
    close(again, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", PAIRS)
def test_a_layer_serves_in_a_loop_of_ones_own(name):
    torch.manual_seed(0)
    layer, mask = PAIRS[name][0](4, 8), mask_of(torch.tensor([6, 3, 1]), 6)
    optimiser, x, target = torch.optim.Adam(layer.parameters(), 0.05), torch.randn(3, 6, 4), torch.rand(3, 6, 8) - 0.5
    losses = []
    for _ in range(60):
        y, _ = layer(x, layer.start(3), mask)
        loss = (y - target)[mask].square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3
