"""`seqloom check`: what is right passes, what is wrong is named with the smallest case, and no file is a traceback."""

import json
import sys
from functools import partial

import pytest
import torch
from torch import nn

from seqloom.certify.laws import LAWS, SIZE, Subject, try_law
from seqloom.certify.own import check_file, find_subjects
from seqloom.cli.main import main
from seqloom.errors import DataError
from seqloom.layers import Cell, Layer
from seqloom.layers.attention import DotAttention, MultiHeadAttention
from seqloom.layers.attention_decoders import Luong
from seqloom.layers.base import Pointwise
from seqloom.layers.cells import CELLS, ResetBeforeGRUCell
from seqloom.layers.convolution import Convolution
from seqloom.layers.padding import zero_padding
from seqloom.layers.positions import NoRotation, Rotary
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.layers.transformer import CausalAttention, CrossAttention, SelfAttention

QUICK = [law for law in LAWS if law.name != "learned by heart"]
LAYERS = {
    "causal": lambda: CausalAttention(SIZE, MultiHeadAttention(SIZE, 2), NoRotation()),
    "window": lambda: CausalAttention(SIZE, MultiHeadAttention(SIZE, 1), Rotary(SIZE), window=2),
    "self": lambda: SelfAttention(SIZE, MultiHeadAttention(SIZE, 2), NoRotation()),
    "cross": lambda: CrossAttention(SIZE, SIZE, MultiHeadAttention(SIZE, 2)),
    "luong": lambda: Luong(SIZE, SIZE, DotAttention(SIZE, SIZE)),
    "convolution": lambda: Convolution(SIZE, SIZE, 3),
    "both ways": lambda: recurrent_encoder(CELLS["gru"], SIZE, [SIZE]),
    "pointwise": lambda: Pointwise(nn.Linear(SIZE, SIZE), nn.GELU()),
}


def tried(make, laws=LAWS):
    return {law.name: try_law(law, Subject("it", make)) for law in laws}


@pytest.mark.parametrize("name", CELLS)
def test_no_law_fails_for_the_cells_of_the_library(name):
    found = tried(partial(CELLS[name], SIZE, SIZE), QUICK)
    assert {law: one.holds for law, one in found.items()} == {
        law: None if law == "stated equations" else True for law in found
    }


@pytest.mark.parametrize("name", LAYERS)
def test_no_law_fails_for_layers_of_the_library(name):
    found = tried(LAYERS[name], QUICK)
    assert [one for one in found.values() if one.holds is False] == []
    causal = LAYERS[name]().causal
    assert (found["reading in pieces = reading at once"].holds is True) == causal


@pytest.mark.parametrize("name", ["lstm", "zoneout", "minlstm", "self", "cross", "pointwise"])
def test_what_can_learn_learns_by_heart(name):
    make = LAYERS.get(name) or partial(CELLS[name], SIZE, SIZE)
    assert tried(make, LAWS[-1:])["learned by heart"].holds


# --- what is wrong ------------------------------------------------------------------------------------------------


class Wrong(ResetBeforeGRUCell):
    """States the other form of the reset gate."""

    def equations(self, x, entries):
        (h,) = entries
        (x_r, x_u, x_n), (h_r, h_u) = self.W(x).chunk(3, -1), self.U(h).chunk(2, -1)
        n = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * self.U_n(h))
        u = torch.sigmoid(x_u + h_u)
        return (u * h + (1 - u) * n,)


class OwnBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.tanh()

    @staticmethod
    def backward(context, slope):
        (x,) = context.saved_tensors
        return slope * (1 - x.tanh())  # not squared


class BadSlope(Pointwise):
    def forward(self, x, state, mask=None):
        return zero_padding(OwnBackward.apply(self.module(zero_padding(x, mask))), mask), state


class ReadsPadding(Pointwise):
    def forward(self, x, state, mask=None):
        return self.module(x), state


class PaddingMoves(Layer):
    """The state goes on in padding."""

    def __init__(self, size):
        super().__init__()
        self.size, self.product = size, nn.Linear(size, size)

    def initial_state(self, batch, memory=None):
        return torch.zeros(batch, self.size)

    def forward(self, x, state, mask=None):
        outputs = []
        for element in zero_padding(x, mask).unbind(1):
            state = torch.tanh(self.product(state) + element)
            outputs.append(state)
        return zero_padding(torch.stack(outputs, 1), mask), state


class LooksAhead(Pointwise):
    def forward(self, x, state, mask=None):
        x = zero_padding(x, mask)
        return zero_padding(self.module(x + torch.cat([x[:, 1:], x[:, :1] * 0], 1)), mask), state


class Forgets(PaddingMoves):
    """Its state is thrown away."""

    def forward(self, x, state, mask=None):
        keep = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        y, _ = super().forward(x[keep].view(len(x), -1, x.shape[2]), state) if keep.all() else (x * 0, None)
        return y, state


class Mixes(Pointwise):
    def forward(self, x, state, mask=None):
        x = zero_padding(x, mask)
        return zero_padding(self.module(x) + x.mean(0), mask), state


class TimeFirst(PaddingMoves):
    def initial_state(self, batch, memory=None):
        return torch.zeros(1, batch, self.size)

    def forward(self, x, state, mask=None):
        y, after = super().forward(x, state[0], mask)
        return y, after[None]


class Huge(Cell):
    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, size), nn.Linear(size, size)

    def forward(self, x, entries):
        return (30 * (x + self.U(entries[0])).tanh(),)


class Deaf(PaddingMoves):
    """Says the same, whatever it reads."""

    def forward(self, x, state, mask=None):
        return x * 0, state


class WatchedStep(PaddingMoves):
    def forward(self, x, state, mask=None):
        y, state = super().forward(x, state)
        return self.output_tap(y) + (1e-3 if self.output_tap.watched else 0), state


@pytest.mark.parametrize(
    ("make", "law", "case"),
    [
        (partial(Wrong, SIZE, SIZE), "stated equations", "2 steps"),  # with h = 0 both forms are the same
        (lambda: BadSlope(nn.Linear(SIZE, SIZE)), "finite differences", "2 rows of 3"),
        (lambda: ReadsPadding(nn.Linear(SIZE, SIZE)), "padding changes nothing", "padding (0) at 0"),
        (partial(PaddingMoves, SIZE), "padding changes nothing", "padding (0) at 0"),
        (lambda: LooksAhead(nn.Linear(SIZE, SIZE)), "the future does not change the past", "2 elements, the last 1"),
        (partial(Forgets, SIZE), "reading in pieces = reading at once", "2 elements, read as 1 and 1"),
        (lambda: Mixes(nn.Linear(SIZE, SIZE)), "rows do not change each other", "2 rows of 1 elements"),
        (partial(TimeFirst, SIZE), "shapes, batch first", "2 rows of 1 elements"),
        (partial(WatchedStep, SIZE), "watching changes nothing", "1 elements"),
        (partial(Huge, SIZE, SIZE), "loss ln V at the start", "ln 40"),
        (partial(Deaf, SIZE), "learned by heart", "8 sequences"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_is_wrong_is_named_with_its_smallest_case(make, law, case):
    found = tried(make, [one for one in LAWS if one.name == law])[law]
    assert found.holds is False and case in found.case, found


# --- files --------------------------------------------------------------------------------------------------------

GOOD = """
import torch
from seqloom.layers import Cell, Layer
from seqloom.layers.cells import GRUCell  # is not defined here
from torch import nn


class Plain(Cell):
    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, size), nn.Linear(size, size, bias=False)

    def forward(self, x, entries):
        return (torch.tanh(x + self.U(entries[0])),)

    def equations(self, x, entries):
        return (torch.tanh(x @ self.W.weight.T + self.W.bias + entries[0] @ self.U.weight.T),)
"""


def typed(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["seqloom", "check", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0, capsys.readouterr()


def test_a_file_is_checked_and_programs_can_read_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "plain.py"
    path.write_text(GOOD)
    code, said = typed(monkeypatch, capsys, path, "--json")
    found = json.loads(said.out)
    assert code == 0 and [one["law"] for one in found] == [law.name for law in LAWS]
    assert all(one["holds"] for one in found) and {one["subject"] for one in found} == {"Plain"}
    path.write_text(
        GOOD + "\n\nclass Other(Plain):\n    def forward(self, x, entries):\n        raise KeyError('gate')\n"
    )
    code, said = typed(monkeypatch, capsys, path, "--name", "Other")
    assert code == 1 and "KeyError: 'gate'" in said.out and "Plain" not in said.out and not said.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ndef f(:\n", r"line 2: cannot be run \(SyntaxError"),
        ("x = 1\nraise ValueError('no')\n", r"line 2: cannot be run \(ValueError: no\)"),
        ("import nothing_of_this_name\n", r"line 1: cannot be run \(ModuleNotFoundError"),
        ("from seqloom.layers.cells import GRUCell\n", "defines no class that is a Cell or a Layer"),
        (
            "from seqloom.layers import Layer\nclass A(Layer):\n    def __init__(self, a, b, c): ...\n"
            "    def forward(self, x, state, mask=None): ...\n",
            "A is made from a, b, c, but only layers made from one or two sizes",
        ),
    ],
)
def test_a_file_that_cannot_be_checked_is_a_sentence(text, sentence, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        list(check_file(path))


def test_names_and_paths_that_are_not_there(tmp_path):
    (tmp_path / "plain.py").write_text(GOOD)
    with pytest.raises(DataError, match="no cell or layer 'Plane'; there are Plain"):
        find_subjects(tmp_path / "plain.py", "Plane")
    with pytest.raises(DataError, match="is not there"):
        find_subjects(tmp_path / "other.py")
    (tmp_path / "plain.txt").write_text(GOOD)
    with pytest.raises(DataError, match="must end in .py"):
        find_subjects(tmp_path / "plain.txt")
