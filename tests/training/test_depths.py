"""How deep parameters lie, what gradual unfreezing holds back, and at which rate each layer learns."""

import pytest
import torch

from seqloom.architectures import ARCHITECTURES
from seqloom.architectures.build import build_labeler
from seqloom.config.recipe import Recipe
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.models import Batch, LabelingObjective
from seqloom.training.depths import find_held_back, measure_depths
from seqloom.training.loop import Training
from seqloom.training.optimizer import build_optimizer, set_learning_rate
from seqloom.training.tensors import copy_weights

from ..recipes import small_seq2seq
from .tiny import settings

KINDS = [kind for kind in ARCHITECTURES if kind not in ("gru-d", "linear", "bag")]


def labeling(kind: str, *more: str) -> LabelingObjective:
    recipe = Recipe.read("classify", f"model.kind={kind}", "model.size=8", "model.depth=3", *more).resolved()
    embed = TokenEmbedding(9, recipe.model.embedding)
    return LabelingObjective(build_labeler(recipe.model, embed, lambda size: Categorical(size, 3), False))


class OneBatch:
    def order(self, epoch):
        return [torch.arange(4).numpy()]

    def batch(self, rows):
        chance = torch.Generator().manual_seed(1)
        inputs = torch.randint(4, 9, (4, 6), generator=chance)
        return Batch(inputs, torch.ones_like(inputs).bool(), torch.tensor([0, 1, 2, 0]))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_head_is_highest_then_layer_by_layer_down_to_the_embedding(kind, dropout):
    objective = labeling(kind, f"model.dropout={dropout}")
    found = measure_depths(objective)
    depths = {name: found[name] for name, _ in objective.named_parameters()}
    assert {depth for name, depth in depths.items() if name.startswith("model.head.")} == {0}
    assert {depth for name, depth in depths.items() if name.startswith("model.embed.")} == {4}
    body = [depth for name, depth in depths.items() if name.startswith("model.encoder.")]
    assert set(body) == {1, 2, 3}
    assert body == sorted(body, reverse=True)  # parameters stand in the order of layers, the lowest first


def test_what_is_written_about_lies_below_what_writes():
    recipe = Recipe().override("model.size=8", "model.kind=gru", "model.depth=2").resolved()
    depths = measure_depths(small_seq2seq(recipe.model, 5, 6).objective())
    lowest = max(depth for name, depth in depths.items() if name.startswith("model.decoder."))
    highest = min(depth for name, depth in depths.items() if name.startswith("model.source.encoder."))
    assert (lowest, highest) == (2, 3)
    assert depths["model.source.embed.weight"] == depths["model.embed.weight"] == 5


def test_one_more_layer_learns_after_every_so_many_steps():
    depths = {"head": 0, "high": 1, "low": 2, "embed": 3}
    held = [find_held_back(depths, step, 2) for step in range(1, 9)]
    assert held == [{"high", "low", "embed"}] * 2 + [{"low", "embed"}] * 2 + [{"embed"}] * 2 + [set()] * 2
    assert find_held_back(depths, 1, 0) == set()


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_what_is_not_unfrozen_yet_stays_as_it_was_to_the_bit(kind):
    torch.manual_seed(0)
    training = Training(labeling(kind), OneBatch(), settings(unfreeze_every=1, weight_decay=0.5, steps=9, warmup=1))
    depths, before = training.depths, copy_weights(training.objective)
    for step in range(5):
        training.advance()
        for name, after in copy_weights(training.objective).items():
            assert torch.equal(after, before[name]) == (depths[name] > step), (step, name)
        before = {name: before[name] if depths[name] > step else after for name, after in before.items()}


def test_every_layer_learns_at_a_share_of_the_rate_above_it():
    objective = labeling("gru")
    depths = measure_depths(objective)
    optimizer = build_optimizer(objective, settings(layer_decay=0.5), depths)
    set_learning_rate(optimizer, 0.08)
    rates = {id(one): group["lr"] for group in optimizer.param_groups for one in group["params"]}
    for name, parameter in objective.named_parameters():
        assert rates[id(parameter)] == 0.08 * 0.5 ** depths[name], name
