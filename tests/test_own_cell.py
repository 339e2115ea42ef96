"""A cell of a person's own: its equations, about ten lines, and everything else comes with it."""

import json

import pytest
import torch
from torch import nn

from seqloom import load, train
from seqloom.errors import RunError
from seqloom.layers import Cell, recording
from seqloom.layers.base import Encoder, last_bidirectional_pool
from seqloom.layers.recurrent import recurrent_encoder

from .recipes import backwards, measured, small


class Highway(Cell):
    """h = u h + (1 − u) tanh(W x + U h): one gate between what was and what is new."""

    gates = ("u",)

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, 2 * size), nn.Linear(size, 2 * size, bias=False)

    def forward(self, x, entries):
        (h,) = entries
        u, n = (x + self.U(h)).chunk(2, -1)
        u = self.gate("u", u)
        return (u * h + (1 - u) * n.tanh(),)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    recipe = small(folder, "model.size=32", "train.steps=300", "train.batch_tokens=1024", "train.validate_every=100")
    backwards(folder, count=2000, longest=4)
    list(train(recipe, folder / "run", cell=Highway))
    return folder / "run"


def test_it_learns_a_task_and_decodes_with_a_beam(run):
    found = load(run, cell=Highway)
    assert found.scores["scores"]["exact"]["value"] > 0.9
    [best, *others] = found.predict("abc", beam=3)
    assert best.output == "cba" and len(others) == 2


def test_its_gates_and_its_attention_are_seen(run):
    found = load(run, cell=Highway)
    with recording(found.model, "*taps.u") as tape:
        found.predict("abc", beam=1)
    assert len(tape) == 3 and all(((u > 0) & (u < 1)).all() for values in tape.values() for u in values)
    assert found.look("abc").measure("attention").weights.shape == (1, 4, 3)


def test_it_is_drawn_and_diagnosed(run):
    found = load(run, cell=Highway)
    drawn = [part["name"] for part in found.look("abc").draw("model").parts]
    assert "bidirectional Highway" in drawn and "Highway with attention" in drawn
    assert found.diagnose(seconds=0)


def test_it_resumes_to_the_same_bits(tmp_path):
    recipe = small(tmp_path, "train.checkpoint_every=2")
    list(train(recipe, tmp_path / "whole", cell=Highway))
    records = measured(train(recipe, tmp_path / "cut", cell=Highway))
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", cell=Highway, resume=True))
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "cut/model.safetensors").read_bytes()


def test_a_folder_names_the_cell_but_never_brings_it(run):
    assert json.loads((run / "config.json").read_text())["cell"] == "Highway"
    with pytest.raises(RunError, match="Highway"):
        load(run)


def test_it_stacks_both_ways_and_padding_changes_nothing():
    torch.manual_seed(0)
    net = Encoder(recurrent_encoder(Highway, 8, [12, 12]), last_bidirectional_pool).eval()
    x, mask = torch.randn(2, 6, 8), torch.tensor([[1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 0]]).bool()
    found = net(x.masked_fill(~mask[..., None], torch.nan), mask)
    alone = net(x[1:, mask[1]])
    torch.testing.assert_close(found.values[1, mask[1]], alone.values[0])
    torch.testing.assert_close(found.summary[1], alone.summary[0])
