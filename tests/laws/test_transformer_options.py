"""Options of Transformers against PyTorch's own functions."""

import pytest
import torch
from torch.nn import functional as F

from seqloom.layers.base import Memory
from seqloom.layers.transformer import TransformerConfig, transformer

from .zoo import stirred


@pytest.mark.parametrize("positions", ["none", "learned"])
def test_embeddings_are_normalized_with_their_positions(positions):
    """The stack behind its norm is the stack without one that reads normalized vectors."""
    config = TransformerConfig(8, depth=1, heads=2, positions=positions, max_positions=9, embedding_norm=True)
    net = stirred(transformer(8, config, causal=True)).eval()
    x, mask = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
    first, second = net.layers[0], net.layers[1]
    norm, read = (second, first.read(x, mask)) if positions == "learned" else (first, x)
    places = first.table[:5] if positions == "learned" else 0
    [layer] = norm.module
    torch.testing.assert_close(norm.read(read, mask), F.layer_norm(x + places, (8,), layer.weight, layer.bias))
    assert [part for part in net.layers if part is norm or part.describe().name == "norm"][0] is norm


@pytest.mark.parametrize("memory", [0, 8])
def test_one_rezero_factor_a_layer_moves_with_all_of_its_blocks(memory):
    """Its gradient is the sum of what the factors of the blocks would get."""
    options = {"size": 8, "depth": 2, "heads": 2, "norm": "rezero", "positions": "none"}
    shared = transformer(8, TransformerConfig(**options, rezero_shared=True), causal=True, memory=memory)
    own = transformer(8, TransformerConfig(**options), causal=True, memory=memory)
    blocks = 3 if memory else 2
    names = [name for name, _ in shared.named_parameters() if name.endswith("share")]
    assert len(names) == 2 and len([name for name, _ in own.named_parameters() if name.endswith("share")]) == 2 * blocks
    with torch.no_grad():
        for name, weight in shared.named_parameters():
            weight += 0.1 * torch.randn_like(weight) if not name.endswith("share") else 0.5
    own.load_state_dict(shared.state_dict())
    values = torch.randn(1, 3, 8)
    about = Memory(values, torch.ones(1, 3, dtype=torch.bool), values[:, 0], ()) if memory else None
    x = torch.randn(1, 4, 8)
    for net in (shared, own):
        net(x, net.initial_state(1, about))[0].sum().backward()
    gradients = [weight.grad for name, weight in own.named_parameters() if name.endswith("share")]
    for number, (_, weight) in enumerate(pair for pair in shared.named_parameters() if pair[0].endswith("share")):
        torch.testing.assert_close(weight.grad, sum(gradients[number * blocks : (number + 1) * blocks]))
