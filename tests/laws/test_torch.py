"""PyTorch's own layers: weights in and out, and the same numbers."""

import itertools
import math

import pytest
import torch
from torch import nn

from seqloom.layers import GRU, LSTM, RNN, Encoder, Memory, PatchEmbedding, TransformerConfig, mean_pool, transformer
from seqloom.layers.padding import lengths_to_mask
from seqloom.layers.torch_transformer import from_torch, to_torch

from .zoo import stirred

close = torch.testing.assert_close
PAIRS = {
    "rnn": (RNN, nn.RNN, {}),
    "rnn-relu": (RNN, nn.RNN, {"nonlinearity": "relu"}),
    "lstm": (LSTM, nn.LSTM, {}),
    "lstm-projected": (LSTM, nn.LSTM, {"proj_size": 4}),
    "gru": (GRU, nn.GRU, {}),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_weights_come_in_and_go_out_and_the_numbers_are_equal(name, depth, bidirectional, bias):
    ours, theirs, options = PAIRS[name]
    torch.manual_seed(0)
    module = theirs(5, 6, depth, batch_first=True, bidirectional=bidirectional, bias=bias, **options).double()
    layer = ours.from_torch(module)
    x = torch.randn(3, 7, 5, dtype=torch.double, requires_grad=True)
    expected, last = module(x)
    found, state = layer(x, layer.initial_state(3))
    close(found, expected, atol=1e-12, rtol=0)
    finals = last if isinstance(last, tuple) else (last,)
    handed = layer.final_states(state)  # level by level, ways side by side
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
    layer, mask = PAIRS[name][0](4, 8), lengths_to_mask(torch.tensor([6, 3, 1]), 6)
    optimizer, x, target = torch.optim.Adam(layer.parameters(), 0.05), torch.randn(3, 6, 4), torch.rand(3, 6, 8) - 0.5
    losses = []
    for _ in range(60):
        y, _ = layer(x, layer.initial_state(3), mask)
        loss = (y - target)[mask].square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def transformer_pair(decodes, norm_first, activation, bias, final):
    shape = {"batch_first": True, "norm_first": norm_first, "activation": activation, "bias": bias, "dropout": 0.0}
    norm = nn.LayerNorm(12) if final else None
    if decodes:
        return nn.TransformerDecoder(nn.TransformerDecoderLayer(12, 3, 20, **shape), 2, norm)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, 20, **shape), 2, norm, enable_nested_tensor=False)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("decodes", [True, False])
def test_transformers_come_in_and_go_out_and_the_numbers_are_equal(decodes, norm_first, activation, bias, final):
    torch.manual_seed(0)
    module = stirred(transformer_pair(decodes, norm_first, activation, bias, final)).double()
    layer = from_torch(module).double()
    x, y = torch.randn(3, 7, 12).double(), torch.randn(3, 5, 12).double()
    mask = lengths_to_mask(torch.tensor([7, 4, 2]), 7)
    again = to_torch(layer).double()
    for theirs in (module, again):
        if decodes:
            memory = Memory(x.masked_fill(~mask[..., None], 0), mask, x[:, 0], ())
            ahead = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.double)
            expected = theirs(y, memory.values, tgt_mask=ahead, memory_key_padding_mask=~mask)
            found, _ = layer(y, layer.initial_state(3, memory))
            close(found, expected, atol=1e-12, rtol=0)
        else:
            expected = theirs(x, src_key_padding_mask=~mask)
            found, _ = layer(x, layer.initial_state(3), mask)
            close(found[mask], expected[mask], atol=1e-12, rtol=0)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # PyTorch's own, of a Transformer of PyTorch's
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_a_whole_transformer_comes_in_and_goes_out(norm_first, bias):
    torch.manual_seed(0)
    options = {"batch_first": True, "norm_first": norm_first, "bias": bias, "dropout": 0.0}
    module = stirred(nn.Transformer(12, 3, 2, 1, 20, **options)).double()
    encoder, decoder = from_torch(module)
    x, y, mask = (
        torch.randn(3, 7, 12).double(),
        torch.randn(3, 5, 12).double(),
        lengths_to_mask(torch.tensor([7, 4, 2]), 7),
    )
    ahead = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.double)
    memory = Encoder(encoder.double(), mean_pool)(x, mask)
    found, _ = decoder.double()(y, decoder.initial_state(3, memory))
    for theirs in (module, to_torch(encoder, decoder).double()):
        expected = theirs(x, y, tgt_mask=ahead, src_key_padding_mask=~mask, memory_key_padding_mask=~mask)
        close(found, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("bias", [True, False])
def test_a_transformer_of_ours_goes_out_with_and_without_biases(norm, bias):
    config = TransformerConfig(12, 2, 3, positions="none", norm=norm, bias=bias)
    ours = stirred(transformer(12, config, causal=False)).double()
    assert bias or not [name for name, _ in ours.named_parameters() if name.endswith("bias")]
    x = torch.randn(2, 5, 12).double()
    close(to_torch(ours).double()(x), ours(x, ours.initial_state(2))[0], atol=1e-12, rtol=0)


def test_what_pytorch_does_not_have_does_not_become_one():
    for options in ({"norm": "rezero"}, {"activation": "swiglu"}, {"hard_attention": True}, {"key_size": 12}):
        with pytest.raises(ValueError, match="PyTorch"):
            to_torch(transformer(12, TransformerConfig(12, 1, 3, positions="none", **options), causal=False))


def test_patches_are_a_convolution_that_does_not_overlap_and_where_each_stands():
    patches, image = PatchEmbedding(3, 4, 9), torch.randn(2, 3, 8, 12)
    squares = nn.functional.conv2d(image, patches.product.weight.view(9, 3, 4, 4), patches.product.bias, stride=4)
    places = torch.zeros(9, 2, 3)
    for row, column in itertools.product(range(2), range(3)):
        for feature in range(9):  # five tell the row, four the column
            place, width, number = (row, 5, feature) if feature < 5 else (column, 4, feature - 5)
            angle = place / 10000 ** (number // 2 * 2 / width)
            places[feature, row, column] = math.cos(angle) if number % 2 else math.sin(angle)
    close(patches(image), (squares + places).flatten(2).mT, atol=1e-5, rtol=1e-5)
    assert patches(image[:, :, :7, :9]).shape == (2, 6, 9)
