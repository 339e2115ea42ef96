"""Scheduled sampling: what a decoder reads where the truth is not given; and windows of a batch."""

import pytest
import torch
from torch import nn

from seqloom.layers.cells import Cell
from seqloom.models import Batch, GenerationObjective

from .zoo import DECODERS, MASKS, PLAIN, talker, writer

each_decoder = pytest.mark.parametrize("name", DECODERS)
close = torch.testing.assert_close


def batch(side: str) -> Batch:
    torch.manual_seed(1)
    mask, y = MASKS[side], torch.randint(12, (3, 6))
    return Batch(y, mask, torch.randint(12, (3, 6)), (torch.randint(12, (3, 4)), torch.ones(3, 4).bool()))


@each_decoder
def test_where_all_is_given_it_is_plain_teacher_forcing(name):
    objective, given = GenerationObjective(writer(name, "gru-both").double()).eval(), batch("right")
    one, two = objective(given), objective(given._replace(teacher_forced=torch.ones(3, 6).bool()))
    close(one[0], two[0])
    assert one[1] == two[1]


@pytest.mark.parametrize("side", ["right", "left", "between"])
@each_decoder
def test_what_is_read_is_the_truth_or_the_models_own_likeliest(name, side):
    model = writer(name, "gru-both").double().eval()
    given = batch(side)
    given = given._replace(teacher_forced=torch.rand(3, 6) < 0.4)
    read: list[torch.Tensor] = []
    hook = model.embed.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    loss, count, _ = GenerationObjective(model)(given)
    hook.remove()
    recurrent = any(isinstance(part, Cell) for part in model.decoder.modules())
    assert len(read) == (6 if recurrent else 2)
    inputs = torch.cat(read, 1) if recurrent else read[1]
    seen = inputs if recurrent else given.inputs  # what its own elements were made from
    logits, _ = model(seen, model.initial_state(3, *given.source), given.mask)
    own = logits.argmax(-1)
    for row, column in torch.argwhere(given.mask).tolist():
        free = column > 0 and given.mask[row, column - 1] and not given.teacher_forced[row, column]
        assert inputs[row, column] == (own[row, column - 1] if free else given.inputs[row, column])
    # and the loss is that of reading exactly these
    features, _ = model.features(inputs, model.initial_state(3, *given.source), given.mask)
    expected, number = model.head.loss(features, given.target, given.mask)
    close(loss, expected)
    assert count == number == given.mask.sum()


@pytest.mark.parametrize("name", PLAIN)
def test_windows_with_their_state_carried_have_the_values_of_the_whole(name):
    objective, given = GenerationObjective(talker(name).double()).eval(), batch("between")._replace(source=())
    whole, count, _ = objective(given)
    total, number, state = 0.0, 0.0, None
    for window in given.windows(2):
        loss, some, state = objective(window, state)
        total, number = total + loss, number + some
    close(total, whole)
    assert number == count


@pytest.mark.parametrize("name", ["gru", "transformer-pre"])
def test_gradients_reach_what_was_read_even_where_its_own_was(name):
    objective = GenerationObjective(writer(name, "gru-both"))
    loss, _, _ = objective(batch("right")._replace(teacher_forced=torch.zeros(3, 6).bool()))
    loss.backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in objective.parameters())
    assert isinstance(objective.model.embed, nn.Embedding) and objective.model.embed.weight.grad.any()
