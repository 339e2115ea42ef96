"""A layer, a wrapper and a cell that the package has never seen: trained, searched, drawn, watched and diagnosed."""

import pytest
import torch
from torch import nn

from seqloom.layers import Cell, Layer, Pointwise, Stack, recording
from seqloom.layers.base import Encoder, mean_pool
from seqloom.layers.cells import GRUCell, LSTMCell
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.fast.steps import prepare_step
from seqloom.layers.heads import Categorical
from seqloom.layers.padding import zero_padding
from seqloom.layers.recurrent import BridgedState, Recurrent
from seqloom.layers.residual import PreNorm
from seqloom.look.charts.drawing import draw_model
from seqloom.look.doctor.anatomy import examine
from seqloom.look.measures.gradients import compute_gradient_flow
from seqloom.look.places import list_levels
from seqloom.look.watching import Watching
from seqloom.models import Batch, GenerationObjective, Generator, Source
from seqloom.search import BeamOptions, beam

SIZE, END, VOCABULARY = 12, 2, 9
close = torch.testing.assert_close


class Average(Layer):
    """A mean of all that was read, the past less and less, and a product of it."""

    def __init__(self, size):
        super().__init__()
        self.fade, self.product = nn.Parameter(torch.zeros(size)), nn.Linear(size, size)

    def initial_state(self, batch, memory=None):
        return self.fade.new_zeros(batch, len(self.fade))

    def forward(self, x, state, mask=None):
        x, outputs, share = zero_padding(x, mask), [], self.fade.sigmoid()
        for time in range(x.shape[1]):
            after = share * state + (1 - share) * x[:, time]
            state = after if mask is None else torch.where(mask[:, time, None], after, state)
            outputs.append(self.product(state) + x[:, time])
        return zero_padding(torch.stack(outputs, 1), mask), state


class Gated(Layer):
    """As much of another layer as a gate says."""

    def __init__(self, layer, size):
        super().__init__()
        self.inner, self.share, self.causal = layer, nn.Linear(size, size), layer.causal

    def initial_state(self, batch, memory=None):
        return self.inner.initial_state(batch, memory)

    def forward(self, x, state, mask=None):
        x = zero_padding(x, mask)
        y, state = self.inner(x, state, mask)
        share = self.share(x).sigmoid()
        return zero_padding(share * y + (1 - share) * x, mask), state


class Leaky(Cell):
    gates = ("u",)

    def __init__(self, inputs, size):
        super().__init__(inputs, size)
        self.W, self.U = nn.Linear(inputs, 2 * size), nn.Linear(size, 2 * size, bias=False)

    def forward(self, x, entries):
        (h,) = entries
        u, n = (x + self.U(h)).chunk(2, -1)
        u = self.gate("u", u)
        return (u * h + (1 - u) * n.tanh(),)


def build():
    torch.manual_seed(0)
    source = Source(TokenEmbedding(VOCABULARY, SIZE), Encoder(Average(SIZE), mean_pool))
    decoder = Stack(
        Pointwise(nn.Linear(SIZE, SIZE)),
        Gated(Recurrent(Leaky(SIZE, SIZE), BridgedState(SIZE, [SIZE])), SIZE),
        Average(SIZE),
    )
    return Generator(TokenEmbedding(VOCABULARY, SIZE), decoder, Categorical(SIZE, VOCABULARY), source)


def examples():
    y = torch.tensor([[1, 3, 4, 5, 2], [1, 6, 7, 2, 0], [1, 8, 3, 6, 2]])
    source = torch.tensor([[3, 4, 5], [6, 7, 0], [8, 3, 6]])
    return Batch.from_sequence(y, y > 0, (source, source > 0))


@pytest.fixture
def trained():
    model, batch = build(), examples()
    objective, found = GenerationObjective(model), []
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(150):
        total, count, _ = objective(batch)
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
        found.append(float(total.detach() / count))
    assert found[-1] < 0.1 < found[0]
    return model.eval()


@torch.no_grad()
def test_they_learn_and_a_beam_finds_what_they_learned(trained):
    state, start = trained.initial_state(3, *examples().source), torch.ones(3, 1).long()
    found = beam(trained.stepper(), start, state, BeamOptions(beam_size=4, steps=5, end=END))
    assert [list(ranked[0].tokens) for ranked in found] == [[3, 4, 5], [6, 7], [8, 3, 6]]


@torch.no_grad()
def test_a_prepared_step_is_the_step(trained):
    x, layer = torch.randn(2, 4, SIZE), trained.decoder
    state = trained.initial_state(2, *(part[:2] for part in examples().source))
    whole, _ = layer(x, state)
    step = prepare_step(layer)
    for time in range(4):
        y, state = step(x[:, time], state)
        close(y, whole[:, time], atol=1e-6, rtol=1e-5)


def test_they_are_drawn_with_all_their_parameters(trained):
    drawing = draw_model(trained, examples())
    rows = [(part["side"], part["name"], part["flow"], part["size"]) for part in drawing.parts]
    assert rows == [
        ("source", "embedding", "each", SIZE),
        ("source", "Average", "past", SIZE),
        ("source", "summary", "one", SIZE),
        ("inputs", "embedding", "each", SIZE),
        ("inputs", "projection", "each", SIZE),
        ("inputs", "Leaky", "forwards", SIZE),
        ("inputs", "Gated", "each", SIZE),
        ("inputs", "Average", "past", SIZE),
        ("inputs", "head (Categorical)", "each", VOCABULARY),
    ]
    assert sum(part["parameters"] for part in drawing.parts) == sum(p.numel() for p in trained.parameters())


def test_they_are_watched_at_places_with_names(trained):
    names = [level.name for level in list_levels(trained)]
    assert names == ["encoder layer 1", "decoder layer 1", "decoder layer 2"]
    with recording(trained) as tape:
        trained(examples().inputs, trained.initial_state(3, *examples().source))
    for level in list_levels(trained):
        assert level.values(tape).shape[::2] == (3, SIZE)
    flows = compute_gradient_flow(trained, examples())
    own = next(flow for flow in flows if flow.side == "inputs")
    assert own.levels == ["decoder layer 1", "decoder layer 2"] and (own.norms[:, 0] > 0).all()
    watching = Watching(GenerationObjective(trained))
    assert {"encoder layer 1", "decoder layer 1", "decoder layer 2"} <= set(watching.layers)


def test_they_are_diagnosed(trained):
    found = examine(trained, examples())
    assert set(found.dead) == {"encoder layer 1", "decoder layer 1", "decoder layer 2"}
    assert [(use.level, use.gate) for use in found.gates] == [("decoder layer 1", "u")]
    assert list(found.radius) == ["decoder layer 1, W_h of u", "decoder layer 1, W_h 2"]


# --- equations that are changed have no fast way that was written for others ---


class Halved(LSTMCell):
    def forward(self, x, entries):
        return tuple(entry / 2 for entry in super().forward(x, entries))


class Kept(GRUCell):
    """Says nothing of the equations: all of its parent's ways still hold."""

    def __init__(self, inputs, size):
        super().__init__(inputs, size, bias=False)


class Doubled(PreNorm):
    def join(self, x, change):
        return x + 2 * change


@pytest.mark.parametrize("steps", [1, 5])
@torch.no_grad()
def test_a_cell_that_changes_the_equations_of_another_goes_by_its_own(steps):
    cell, x = Halved(4, 3), torch.randn(2, steps, 4)
    assert cell.kernel() is None and cell.fast_step() is None
    quick, last = cell.scan(x, (torch.zeros(2, 3),) * 2)
    with recording(cell):
        slow, expected = cell.scan(x, (torch.zeros(2, 3),) * 2)
    close((quick, last), (slow, expected))
    plain = LSTMCell(4, 3)
    plain.load_state_dict(cell.state_dict())
    assert not torch.allclose(quick, plain.scan(x, (torch.zeros(2, 3),) * 2)[0])


def test_a_cell_that_changes_no_equation_keeps_the_fast_ways():
    assert Kept(4, 3).kernel() is not None and Kept(4, 3).fast_step() is not None


@torch.no_grad()
def test_a_layer_that_changes_the_equations_of_another_goes_by_its_own():
    layer, x = Doubled(SIZE, Pointwise(nn.Linear(SIZE, SIZE))).eval(), torch.randn(2, 1, SIZE)
    assert layer.block() is None
    close(prepare_step(layer)(x[:, 0], ())[0], layer(x, ())[0][:, 0])
