"""First layers and last ones: scales, segments, positions with an offset, heads without a bias."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from seqloom.layers.base import first_pool
from seqloom.layers.embeddings import SegmentEmbedding, TokenEmbedding
from seqloom.layers.fast.steps import change_of, prepare_step
from seqloom.layers.heads import Categorical, MLPHead
from seqloom.layers.positions import LearnedPositions

from .zoo import PIECES, SIZE, stirred

close = torch.testing.assert_close


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("scaled", [True, False])
def test_an_embedding_is_scaled_or_not_in_a_single_step_as_well(scaled):
    embed, tokens = TokenEmbedding(7, SIZE, scaled=scaled), torch.randint(7, (2, 5))
    expected = F.embedding(tokens, embed.weight) * (SIZE**0.5 if scaled else 1)
    close(embed(tokens), expected)
    close(change_of(embed)(tokens), expected)


def test_segments_are_added_and_the_first_is_the_default():
    embed, tokens, segments = SegmentEmbedding(TokenEmbedding(7, SIZE), 2), torch.randint(7, (2, 5)), torch.eye(2, 5)
    both = torch.stack([tokens, segments.long()], -1)
    close(embed(both), embed.tokens(tokens) + torch.where(segments[..., None] == 1, embed.weight[1], embed.weight[0]))
    close(embed(tokens), embed(torch.stack([tokens, torch.zeros_like(tokens)], -1)))


def test_an_offset_moves_the_table_and_leaves_room_for_as_many():
    layer, plain = LearnedPositions(SIZE, 4, offset=3), LearnedPositions(SIZE, 4)
    plain.table.data = layer.table.data[3:]
    x = torch.randn(2, 4, SIZE)
    close(layer(x, layer.initial_state(2))[0], plain(x, plain.initial_state(2))[0])
    with pytest.raises(ValueError, match="5 elements are more than the 4 positions"):
        layer(torch.randn(2, 5, SIZE), layer.initial_state(2))


@pytest.mark.parametrize("name", ["waves", "learned", "learned-offset"])
@torch.no_grad()
def test_positions_one_step_at_a_time_are_those_of_the_whole(name):
    layer, x = stirred(PIECES[name]()).eval(), torch.randn(2, 6, SIZE)
    move, state, found = prepare_step(layer), layer.initial_state(2), []
    for step in x.unbind(1):
        y, state = move(step, state)
        found.append(y)
    close(torch.stack(found, 1), layer(x, layer.initial_state(2))[0])


@pytest.mark.parametrize("chunk", [0, 4])
def test_a_head_without_a_bias_is_one_whose_bias_is_zero(chunk):
    head, full = Categorical(SIZE, 7, chunk, bias=False), Categorical(SIZE, 7, chunk)
    full.project.weight.data, full.project.bias.data = head.project.weight.data, torch.zeros(7)
    assert [name for name, _ in head.named_parameters()] == list(head.state_dict()) == ["project.weight"]
    x, target = torch.randn(3, 5, SIZE), torch.randint(7, (3, 5))
    close(head(x), full(x))
    for one in (head, full):
        one.loss(x, target)[0].backward()
    close(head.project.weight.grad, full.project.weight.grad)


def test_what_comes_after_the_hidden_product_may_be_chosen():
    after, inner = [nn.GELU(), nn.LayerNorm(6)], Categorical(6, 3)
    head, x = MLPHead(SIZE, 6, inner, after=after), torch.randn(4, SIZE)
    close(head(x), inner(F.layer_norm(F.gelu(head.hidden[0](x)), (6,))))


def test_the_first_element_is_the_first_that_is_not_padding():
    x, mask = torch.randn(2, 3, SIZE), torch.tensor([[1, 1, 0], [0, 1, 1]]).bool()
    close(first_pool(x, mask), torch.stack([x[0, 0], x[1, 1]]))
