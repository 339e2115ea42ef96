"""Gates, states, gradients and Jacobians against closed forms."""

import numpy as np
import pytest
import torch
from torch import nn

from seqloom.layers.base import Encoder, Stack, last_pool
from seqloom.layers.cells import CELLS, LSTMCell, RNNCell
from seqloom.layers.recurrent import Bidirectional, Concatenate, Recurrent, ZeroState, recurrent_encoder
from seqloom.look.measures.gates import Trace, record_traces
from seqloom.look.measures.gradients import compute_gradient_flow, compute_query_key_value
from seqloom.look.measures.jacobians import compute_decays, compute_step_jacobian
from seqloom.look.measures.reading import compute_loss, make_batch
from seqloom.look.measures.spectra import compute_scalar_decay, compute_spectra
from seqloom.look.places import list_levels
from seqloom.models import Batch

from .models import MODELS, SIDES, batch_for

close = np.testing.assert_allclose


def identity_rnn(size=4, steps=6):
    torch.manual_seed(0)
    cell = RNNCell(3, size, activation="identity").double()
    layer = Recurrent(cell, ZeroState())
    return cell, layer, make_batch(torch.randn(1, steps, 3, dtype=torch.double))


def test_the_jacobian_of_an_identity_rnn_is_its_matrix_to_the_power_of_the_lag():
    cell, layer, batch = identity_rnn()
    [decay] = compute_decays(layer, batch)
    powers = [torch.linalg.matrix_power(cell.U.weight, lag) for lag in range(6)]
    close(decay.norms, [torch.linalg.matrix_norm(power, 2).item() for power in powers])
    largest = torch.linalg.matrix_norm(cell.U.weight, 2).item()
    close(decay.bound, largest ** np.arange(6))
    close(decay.steps, decay.bound)


def test_the_gradient_of_an_identity_rnn_flows_back_through_the_transposed_matrix():
    cell, layer, batch = identity_rnn()
    [flow] = compute_gradient_flow(Stack(layer), batch)
    ones = torch.ones(4, dtype=torch.double)
    expected = [(torch.linalg.matrix_power(cell.U.weight.mT, 5 - step) @ ones).norm().item() for step in range(6)]
    close(flow.norms, [expected])
    assert flow.levels == ["layer 1"] and flow.steps == list("123456")


@pytest.mark.parametrize("name", CELLS)
def test_decay_is_the_jacobian_that_autograd_gives(name):
    torch.manual_seed(0)
    cell = CELLS[name](3, 4).double().eval()
    layer, x = Recurrent(cell, ZeroState()), torch.randn(1, 5, 3, dtype=torch.double)
    [decay] = compute_decays(layer, make_batch(x))
    sizes = list(cell.sizes)
    with torch.no_grad():
        _, state = layer(x[:, :2], layer.initial_state(1))

    def rest(joined):
        return torch.cat(layer(x[:, 2:], joined[None].split(sizes, 1))[1], 1)[0]

    jacobian = torch.autograd.functional.jacobian(rest, torch.cat(state, 1)[0])
    close(decay.norms[3], torch.linalg.matrix_norm(jacobian, 2).item(), rtol=1e-9)
    assert (decay.norms <= decay.steps * (1 + 1e-9)).all()
    if decay.bound is not None:
        assert (decay.norms <= decay.bound * (1 + 1e-9)).all()


def test_a_backward_reader_is_shown_in_the_order_of_time():
    """Its last step is the first of the sequence, so there the loss of its output has the largest say."""
    torch.manual_seed(0)
    ways = [Recurrent(RNNCell(3, 4, activation="identity"), ZeroState()) for _ in range(2)]
    for way in ways:
        nn.init.eye_(way.cell.U.weight)
        way.cell.U.weight.data *= 0.5
    x = torch.randn(1, 5, 3)
    both, alone = Bidirectional(*ways, Concatenate()), Recurrent(ways[1].cell, ZeroState())
    forwards, backwards = record_traces(both, make_batch(x))
    values, _ = alone(x.flip(1), alone.initial_state(1))
    close(backwards.entries["h"], values.detach().flip(1)[0].numpy(), rtol=1e-5)
    assert forwards.name == "layer 1 forwards" and backwards.name == "layer 1 backwards"
    [flow] = compute_gradient_flow(
        both, make_batch(x)
    )  # of the last output: forwards all steps count, backwards only the first
    close(flow.norms[0] / flow.norms[0][-1], 0.5 ** np.arange(5)[::-1], rtol=1e-5)
    close(flow.norms[1] / flow.norms[1][-1], [0, 0, 0, 0, 1], atol=1e-7)


def known_lstm(i=0.25, f=0.5, o=0.75):
    """Gates that are open by these shares, whatever is read."""
    cell = LSTMCell(2, 3)
    for parameter in cell.parameters():
        nn.init.zeros_(parameter)
    for place, share in zip(cell.W.bias.data.chunk(4), (i, f, None, o), strict=True):
        nn.init.constant_(place, 1.0 if share is None else float(np.log(share / (1 - share))))
    return cell


def test_a_hand_made_lstm_shows_the_gates_it_was_given():
    cell = known_lstm()
    model = Encoder(Stack(Recurrent(cell, ZeroState())), last_pool)
    [trace] = record_traces(model, make_batch(torch.randn(1, 4, 2)))
    for gate, share in (("i", 0.25), ("f", 0.5), ("o", 0.75)):
        close(trace.gates[gate], np.full((4, 3), share), rtol=1e-6)
    c = 0.25 * np.tanh(1) * np.cumsum(0.5 ** np.arange(4))
    close(trace.mean("c"), c, rtol=1e-5)
    close(trace.mean("h"), 0.75 * np.tanh(c), rtol=1e-5)
    close(trace.memory_path, np.repeat(0.5 ** np.arange(4)[::-1, None], 3, 1), rtol=1e-6)
    assert trace.name == "layer 1"
    [decay] = compute_decays(model, make_batch(torch.randn(1, 4, 2)))
    assert decay.bound is None
    with torch.no_grad():  # with U = 0, h is forgotten: only c passes, by f, and out of it h by its slope
        slope = 0.75 * (1 - np.tanh(c[-1]) ** 2)
    close(decay.norms[1:], 0.5 ** np.arange(1, 4) * np.sqrt(1 + slope**2), rtol=1e-5)


def test_summaries_of_a_trace():
    gate = np.array([[0.0, 1.0, 0.5], [0.01, 0.99, 0.5]])
    trace = Trace("a", ["x", "y"], {"r": gate}, {})
    close(trace.mean("r"), [0.5, 0.5])
    low, high = trace.quantiles("r", 0.0, 1.0)
    close(low, [0, 0.01])
    close(high, [1, 0.99])
    with pytest.raises(ValueError, match="no gate"):
        _ = trace.memory_path


def test_what_a_backward_reader_keeps_is_what_the_steps_before_left():
    gate = np.array([[0.5], [0.25], [1.0]])
    close(Trace("a", list("xyz"), {"f": gate}, {}).memory_path[:, 0], [0.25, 1.0, 1.0])
    close(Trace("a", list("xyz"), {"f": gate}, {}, backwards=True).memory_path[:, 0], [1.0, 0.5, 0.125])


def test_spectra_of_every_gate():
    torch.manual_seed(0)
    layer = recurrent_encoder(CELLS["lstm"], 3, [4], merge="none")
    found = compute_spectra(layer)
    blocks = layer.layers[0].cell.U.weight.detach().double().chunk(4)
    assert [one.name for one in found] == [f"layer 1, W_h of {gate}" for gate in "ifgo"]
    for one, block in zip(found, blocks, strict=True):
        close(one.singular, np.linalg.svd(block.numpy(), compute_uv=False))
        close(one.radius, np.abs(np.linalg.eigvals(block.numpy())).max())
    [held] = compute_spectra(recurrent_encoder(CELLS["orthogonal"], 3, [4], merge="none"))
    close(held.singular, np.ones(4), rtol=1e-5)
    assert compute_spectra(recurrent_encoder(CELLS["mingru"], 3, [4], merge="none")) == []


def test_the_scalar_experiment():
    found = compute_scalar_decay([0.5, 1.0, 1e200], slope=0.5, lags=3)
    close(found.left[:2], [[1, 0.25, 0.0625, 0.015625], [1, 0.5, 0.25, 0.125]])
    assert found.left[2, -1] == np.finfo(float).max


def test_a_step_that_ignores_the_state_has_a_jacobian_of_zeros():
    cell = known_lstm(f=1e-9)
    entries = tuple(torch.randn(1, 3) for _ in range(2))
    assert compute_step_jacobian(cell, cell.W(torch.randn(1, 2)), entries).abs().max() < 1e-6


def test_levels_are_named_as_a_person_would():
    names = {
        name: [level.name for level in list_levels(MODELS[name]())] for name in ("write lstm-luong-dot", "label pooled")
    }
    encoder = [f"encoder layer {n} {way}" for n in (1, 2) for way in ("forwards", "backwards")]
    assert names["write lstm-luong-dot"] == [*encoder, "decoder layer 1", "decoder layer 2", "decoder attention"]
    written = [level.name for level in list_levels(MODELS["write transformer-rotary"]())][4:]
    parts = ("self-attention", "source attention", "feed-forward")
    assert written == [f"decoder layer {n} {part}" for n in (1, 2) for part in parts]
    assert [level.name for level in list_levels(MODELS["label convolution-both"]())] == [
        "encoder layer 1",
        "encoder layer 2",
    ]


def test_gradients_of_queries_keys_and_values_are_those_of_their_rows():
    torch.manual_seed(0)
    model = MODELS["write transformer-rotary"]()
    batch = batch_for(model, SIDES["right"])
    found = {one.name: one for one in compute_query_key_value(model, batch)}
    compute_loss(model.eval(), batch).backward()
    own, name = model.decoder.layers[2].layer, "decoder layer 1 self-attention"
    assert set(found) == {f"decoder layer {n} {kind}attention" for n in (1, 2) for kind in ("self-", "source ")}
    expected = [part.norm().item() for part in own.project.weight.grad.chunk(3)]
    close((found[name].query, found[name].key, found[name].value), expected, rtol=1e-5)
    close(found[name].weights, [part.norm().item() for part in own.project.weight.chunk(3)], rtol=1e-6)


def test_the_gradient_over_time_ignores_padding():
    torch.manual_seed(0)
    model = MODELS["label gru-both"]()
    batch = batch_for(model, SIDES["left"])
    alone = Batch(batch.inputs[1:2], batch.mask[1:2], batch.target[1:2])
    [padded], [plain] = (
        compute_gradient_flow(model, alone),
        compute_gradient_flow(model, Batch(*(part[:, 3:] if part.dim() > 1 else part for part in alone[:3]))),
    )
    close(padded.norms[:, :3], 0)
    close(padded.norms[:, 3:], plain.norms, rtol=1e-4, atol=1e-7)
