"""Attribution: exact where the model is linear, and judged by taking the words away."""

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.layers.base import Encoder, Pointwise, Stack
from seqloom.layers.heads import Head
from seqloom.look.measures.attribution import METHODS, Attribution, find_decision, integrated_gradients, occlusion
from seqloom.look.measures.faithfulness import measure_faithfulness
from seqloom.look.measures.reading import Names
from seqloom.models import Batch, Labeler

from .models import MODELS, SIDES, batch_for

close = np.testing.assert_allclose


class Linear(Head):
    """The loss is minus the target's feature: a decision that is linear in all that is read."""

    def forward(self, features):
        return features

    def loss(self, features, target, mask=None):
        return -features.gather(-1, target[:, None]).sum(), features.new_tensor(1.0)

    def sample(self, expected, temperature=1.0, mask=None):
        return expected.argmax(-1)


def linear_model():
    torch.manual_seed(0)
    total = lambda values, mask: values.sum(1)  # noqa: E731
    return Labeler(nn.Embedding(9, 4), Encoder(Stack(Pointwise(nn.Linear(4, 3))), total), Linear(), per_element=False)


BATCH = Batch(torch.tensor([[0, 3, 5, 7]]), torch.tensor([[0, 1, 1, 1]]).bool(), torch.tensor([2]))
NAMES = Names(["three", "five", "seven"], ["good"], [])


@pytest.mark.parametrize("name", METHODS)
def test_of_a_linear_model_every_method_tells_what_each_element_added(name):
    model = linear_model()
    found = METHODS[name](find_decision(model, BATCH, NAMES))
    layer = model.encoder.layer.layers[0].module[0]
    expected = model.embed.weight[[3, 5, 7]] @ layer.weight[2]
    close(found.shares, expected.detach().numpy(), rtol=1e-4, atol=1e-6)
    close(found.gap, 0, atol=1e-5)
    assert found.elements == ["three", "five", "seven"] and found.about == "good"


@pytest.mark.parametrize(
    "name", ["label gru-both", "tag transformer-window", "write lstm-bahdanau-additive", "talk lstm"]
)
def test_integrated_gradients_add_up_to_what_the_input_did(name):
    torch.manual_seed(0)
    model = MODELS[name]()
    asked = find_decision(model, batch_for(model, SIDES["left"]))
    rough, fine = (abs(integrated_gradients(asked, points).gap) for points in (4, 256))
    found = integrated_gradients(asked, 256)
    assert fine < 0.01 * max(1, abs(found.whole - found.nothing)) and fine <= rough + 1e-4


def test_occlusion_is_the_loss_of_each_element():
    torch.manual_seed(0)
    model = MODELS["label gru-both"]()
    asked = find_decision(model, batch_for(model, SIDES["left"]))
    found = occlusion(asked)
    for element in range(6):
        without = asked.vectors.clone()
        without[0, element] = 0
        close(found.shares[element], (asked.values(asked.vectors) - asked.values(without)).item(), atol=1e-5)


def test_one_step_of_an_answer_can_be_asked_about():
    torch.manual_seed(0)
    model = MODELS["write lstm-bahdanau-additive"]()
    batch = batch_for(model, SIDES["right"])
    names = Names(list("<bcdef"), list("bcdef>"), list("u"))
    steps = [find_decision(model, batch, names, step) for step in range(6)]
    whole = find_decision(model, batch, names)
    values = [one.values(one.vectors).item() for one in steps]
    close(sum(values), whole.values(whole.vectors).item(), rtol=1e-5)
    assert steps[1].about == "c (step 2)" and whole.about == "the whole answer" and whole.elements == ["u"]


def test_a_true_attribution_beats_random_orders_and_its_reverse_does_not():
    model = linear_model()
    model.embed.weight.data[3:8] = torch.eye(4)[0] * torch.tensor([1.0, 2, 3, 4, 5])[:, None]
    model.encoder.layer.layers[0].module[0].weight.data[2] = torch.tensor([1.0, 0, 0, 0])
    batch = Batch(torch.tensor([[3, 6, 4, 7, 5]]), torch.ones(1, 5, dtype=torch.bool), torch.tensor([2]))
    asked = find_decision(model, batch)
    true = occlusion(asked)
    found = measure_faithfulness(asked, true, orders=50)
    assert found.order.tolist() == [3, 1, 4, 2, 0]
    close(found.deletion - found.deletion[-1], [15, 10, 6, 3, 1, 0], atol=1e-4)
    close(found.insertion - found.insertion[0], [0, 5, 9, 12, 14, 15], atol=1e-4)
    assert found.score > 0.1 and found.beaten > 0.9
    false = Attribution("false", "", true.elements, -true.shares, true.whole, true.nothing)
    wrong = measure_faithfulness(asked, false, orders=50)
    close(wrong.score, -found.score, atol=0.05)
    assert wrong.beaten < 0.1


def test_every_random_order_is_drawn_by_itself_and_serves_both_curves():
    """Element k is worth 2 ** k, so that a curve tells in which order they went."""
    model = linear_model()
    model.embed.weight.data[3:8] = torch.eye(4)[0] * 2.0 ** torch.arange(5)[:, None]
    model.encoder.layer.layers[0].module[0].weight.data[2] = torch.tensor([1.0, 0, 0, 0])
    asked = find_decision(model, Batch(torch.arange(3, 8)[None], torch.ones(1, 5, dtype=torch.bool), torch.tensor([2])))

    def orders(seed):
        found = measure_faithfulness(asked, occlusion(asked), orders=50, seed=seed)
        went, came = -np.diff(found.random_deletion), np.diff(found.random_insertion)
        close(went, came, atol=1e-4)
        return np.log2(went).round().astype(int)

    drawn = orders(0)
    assert (np.sort(drawn) == np.arange(5)).all()
    assert len(np.unique(drawn, axis=0)) > 30  # of 120: 50 draws meet about 41
    assert all(len(np.unique(place)) == 5 for place in drawn.T)
    assert (orders(0) == drawn).all() and (orders(1) != drawn).any()


def test_where_nothing_matters_nothing_is_claimed():
    model = linear_model()
    model.embed.weight.data[:] = 0
    asked = find_decision(model, BATCH)
    found = measure_faithfulness(asked, occlusion(asked))
    assert found.score == 0 and found.beaten == 0.5
