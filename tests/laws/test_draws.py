"""What is drawn is spread as it should be: heads at any temperature, units that stay as they were."""

import itertools

import pytest
import torch

from seqloom.layers.attention import AdditiveAttention
from seqloom.layers.attention_decoders import bahdanau_decoder
from seqloom.layers.base import Memory
from seqloom.layers.cell_weights import WeightDrop, drop_weights
from seqloom.layers.cells import LSTMCell, RNNCell, Zoneout
from seqloom.layers.crf import CRF
from seqloom.layers.heads import Bernoulli, Categorical, Normal, Quantiles

MANY = 20_000
close = torch.testing.assert_close
each_temperature = pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])


def far(chance: torch.Tensor) -> torch.Tensor:
    """Five standard deviations of a share of so many draws."""
    return 5 * (chance * (1 - chance) / MANY).sqrt() + 1e-9


@each_temperature
def test_a_class_is_drawn_as_often_as_it_is_likely_at_the_temperature(temperature: float) -> None:
    logits = torch.tensor([1.0, 0.0, -1.0])
    drawn = Categorical(2, 3).sample(logits.expand(MANY, 3), temperature).bincount(minlength=3) / MANY
    chance = (logits / temperature).softmax(-1)
    assert ((drawn - chance).abs() < far(chance)).all()


@each_temperature
def test_a_note_is_drawn_as_often_as_it_is_likely_at_the_temperature(temperature: float) -> None:
    logits = torch.tensor([2.0, 0.3, -1.0])
    drawn = Bernoulli(2, 3).sample(logits.expand(MANY, 3), temperature).mean(0)
    chance = (logits / temperature).sigmoid()
    assert ((drawn - chance).abs() < far(chance)).all()


def test_without_a_temperature_what_is_likelier_than_not_is_told() -> None:
    logits = torch.tensor([[-0.1, 0.1, 0.4], [3.0, -3.0, 0.0]])
    assert Bernoulli(2, 3).sample(logits, 0).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert Categorical(2, 3).sample(logits, 0).tolist() == [2, 0]


@each_temperature
def test_numbers_are_spread_as_far_as_is_said_times_the_temperature(temperature: float) -> None:
    mean, spread = torch.tensor([1.0, -2.0]).expand(MANY, 2), torch.tensor([0.5, 3.0]).expand(MANY, 2)
    head = Normal(2, 2)
    drawn = (head.sample((mean, spread), temperature) - mean) / (temperature * spread)
    close(drawn.mean(0), torch.zeros(2), atol=5 / MANY**0.5, rtol=0)
    close(drawn.std(0), torch.ones(2), atol=5 / (2 * MANY) ** 0.5, rtol=0)
    assert torch.equal(head.sample((mean, spread), 0), mean)


@pytest.mark.parametrize("temperature", [0.2, 0.8])
def test_quantiles_are_drawn_between_as_many_levels_as_the_temperature_opens(temperature: float) -> None:
    """Levels that are the numbers themselves: the draws are even, around the middle, as wide as the temperature."""
    levels = [0.1, 0.3, 0.5, 0.7, 0.9]
    said = torch.tensor(levels).expand(MANY, 1, 1, 5)
    drawn = Quantiles(2, 1, 1, levels).sample(said, temperature).flatten()
    assert ((drawn - 0.5).abs() <= temperature / 2 + 1e-6).all()
    close(drawn.mean(), torch.tensor(0.5), atol=5 * temperature / (12 * MANY) ** 0.5, rtol=0)
    close(drawn.var(), torch.tensor(temperature**2 / 12), atol=0.03 * temperature**2 / 12, rtol=0)


@each_temperature
def test_a_path_of_tags_is_drawn_as_often_as_it_is_likely_at_the_temperature(temperature: float) -> None:
    """All paths, by brute force: what a path is worth, divided by the temperature."""
    torch.manual_seed(1)
    head = CRF(2, 2)
    for parameter in (head.pairs, head.first, head.last):
        torch.nn.init.normal_(parameter)
    scores, mask = torch.randn(1, 3, 2), torch.ones(1, 3, dtype=torch.bool)
    paths = torch.tensor(list(itertools.product(range(2), repeat=3)))
    with torch.no_grad():
        worth = head.score(scores.expand(8, -1, -1), paths, mask.expand(8, -1))
        drawn = head.sample(scores.expand(MANY, -1, -1), temperature, mask.expand(MANY, -1))
    often = (drawn @ torch.tensor([4, 2, 1])).bincount(minlength=8) / MANY
    chance = (worth / temperature).softmax(-1)
    assert ((often - chance).abs() < far(chance)).all()


def test_the_same_recurrent_weights_are_left_out_at_all_steps_of_a_sequence() -> None:
    """U is the unit matrix: after T steps a unit holds 2 ** T of what it began with, or nothing from the first on."""
    cell = drop_weights(RNNCell(1, 400, activation="identity", bias=False), 0.5).train()
    torch.nn.init.eye_(cell.U.parametrizations.weight.original)
    y, _ = cell.scan(torch.zeros(1, 5, 1), (torch.ones(1, 400),))
    kept = y[0, 0] > 0
    close(y[0], kept * 2.0 ** torch.arange(1, 6)[:, None])
    assert 0.35 < kept.float().mean() < 0.65
    again, _ = cell.scan(torch.zeros(1, 5, 1), (torch.ones(1, 400),))
    assert not torch.equal(again[0, 0] > 0, kept)


def test_as_many_units_stay_as_they_were_as_zoneout_says() -> None:
    cell = Zoneout(LSTMCell(3, 50), 0.2).train()
    before = tuple(torch.randn(400, 50) for _ in cell.sizes)
    after = cell(torch.randn(400, 3), before)
    for old, new in zip(before, after, strict=True):
        assert abs((old == new).float().mean() - 0.2) < far(torch.tensor(0.2))


def test_a_decoder_with_attention_leaves_out_the_same_weights_at_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(inputs: int, size: int) -> LSTMCell:
        return drop_weights(LSTMCell(inputs, size), 0.5)

    decoder = bahdanau_decoder(make, 4, [6], 5, AdditiveAttention(6, 5), ())
    values, drawn, forward = torch.randn(2, 3, 5), [], WeightDrop.forward
    memory = Memory(values, torch.ones(2, 3, dtype=torch.bool), values[:, 0], ())
    monkeypatch.setattr(WeightDrop, "forward", lambda *given: drawn.append(given) or forward(*given))
    decoder.train()(torch.randn(2, 7, 4), decoder.initial_state(2, memory))
    assert len(drawn) == 1
