"""How a cell starts, by recipe: gate by gate, whatever its sizes, and the forget gate where it says."""

import math

import pytest
import torch
from torch import nn

from seqloom.config.recipe import Recipe
from seqloom.layers.cells import Cell
from seqloom.layers.tap import recording

INPUTS = 5


def built(*settings: str, size: int = 4) -> Cell:
    recipe = Recipe.of({"task": "classify"}).override(*settings)
    return recipe.model.side("encoder").build_cell()(INPUTS, size)


FORGETS = {
    "lstm": ["model.kind=lstm"],
    "projected": ["model.kind=lstm", "model.memory_size=6"],
    "sigmoid": ["model.kind=lstm", "model.candidate_activation=sigmoid"],
    "normed": ["model.kind=lstm", "model.layer_norm=true"],
    "peephole": ["model.kind=peephole"],
    "coupled": ["model.kind=coupled"],
    "minlstm": ["model.kind=minlstm"],
}


@pytest.mark.parametrize("bias", [-2.0, 3.0])
@pytest.mark.parametrize("name", FORGETS)
def test_the_forget_gate_and_no_other_is_open_as_far_as_its_bias_says(name: str, bias: float) -> None:
    """Of a cell that sees nothing but its biases: f is σ(bias), and the others are as open as without it."""
    cell = built(*FORGETS[name], f"model.forget_bias={bias}")
    for parameter in cell.parameters():
        if parameter.dim() > 1:
            nn.init.zeros_(parameter)
    inner = [each for part, each in cell.W.named_parameters() if part.endswith("bias")][-1]
    others = inner.data != bias
    inner.data[others] = 0.0
    with recording(cell, "*taps.*") as tape, torch.no_grad():
        cell.scan(torch.zeros(1, 2, INPUTS), tuple(torch.zeros(1, size) for size in cell.sizes))
    gates = {path.rsplit(".", 1)[-1]: values[0] for path, values in tape.items()}
    opening = 1 / (1 + math.exp(-bias))
    # a minLSTM's gates share one memory out: σ(f) / (σ(f) + σ(i))
    expected = opening / (opening + 0.5) if name == "minlstm" else opening
    torch.testing.assert_close(gates["f"], torch.full_like(gates["f"], expected))
    for gate in {*cell.gates} - {"f"}:
        torch.testing.assert_close(gates[gate], torch.full_like(gates[gate], 0.5))


BLOCKS = {
    "rnn": (["model.kind=rnn"], {"W": 1, "U": 1}),
    "lstm": (["model.kind=lstm"], {"W": 4, "U": 4}),
    "normed": (["model.kind=lstm", "model.layer_norm=true"], {"W.0": 4, "U": 4}),
    "projected up": (["model.kind=lstm", "model.memory_size=6"], {"W": 4, "U": 4, "P": 1}),
    "projected to half": (["model.kind=lstm", "model.memory_size=8"], {"W": 4, "U": 4, "P": 1}),
    "projected from half": (["model.kind=lstm", "model.memory_size=2"], {"W": 4, "U": 4, "P": 1}),
    "peephole": (["model.kind=peephole"], {"W": 4, "U": 4}),
    "coupled": (["model.kind=coupled"], {"W": 3, "U": 3}),
    "gru": (["model.kind=gru"], {"W": 3, "U": 3}),
    "gru before": (["model.kind=gru", "model.reset_gate=before"], {"W": 3, "U": 2, "U_n": 1}),
    "mingru": (["model.kind=mingru"], {"W": 2}),
    "minlstm": (["model.kind=minlstm"], {"W": 3}),
}


def is_orthogonal(block: torch.Tensor) -> bool:
    """Its rows, or its columns, whichever are fewer, are at right angles and of length 1."""
    short = block if block.shape[0] <= block.shape[1] else block.T
    return torch.allclose(short @ short.T, torch.eye(len(short)), atol=1e-5)


@pytest.mark.parametrize("name", BLOCKS)
def test_every_gate_has_a_matrix_of_its_own_that_starts_as_asked(name: str) -> None:
    settings, blocks = BLOCKS[name]
    cell = built(*settings, "model.init=orthogonal")
    for matrix, gates in blocks.items():
        weight = cell.get_parameter(f"{matrix}.weight").detach()
        assert all(map(is_orthogonal, weight.chunk(gates))), matrix
    cell = built(*settings, "model.init=xavier", size=4)
    for matrix, gates in blocks.items():
        for block in cell.get_parameter(f"{matrix}.weight").detach().chunk(gates):
            assert block.abs().max() <= math.sqrt(6 / sum(block.shape)), matrix
    cell = built(*settings, "model.init=identity")
    for matrix, gates in blocks.items():
        for block in cell.get_parameter(f"{matrix}.weight").detach().chunk(gates):
            assert torch.equal(block, torch.eye(*block.shape)), matrix
