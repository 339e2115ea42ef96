"""The laws of searching over every kind of model that writes."""

import pytest
import torch
from torch import nn

from seqloom.layers import GRU, LSTM
from seqloom.layers.fast.steps import prepare_step
from seqloom.layers.padding import lengths_to_mask
from seqloom.layers.state import repeat, select
from seqloom.layers.tap import recording
from seqloom.search import BeamOptions, MinLength, NoRepeat, Sampling, beam, greedy, sample_tokens, score

from ..laws.zoo import DECODERS, MASKS, PLAIN, talker, writer
from .exact import exact

each_decoder = pytest.mark.parametrize("name", DECODERS)
each_plain = pytest.mark.parametrize("name", PLAIN)
close = torch.testing.assert_close
END, STEPS = 2, 6

WAYS = {  # plain greedy writing and beams stand in `tests/laws`
    "sampled": lambda *start, seeds: sample_tokens(
        start[0], Sampling(1.5, top_k=9, top_p=0.95, seed=seeds), *start[1:], steps=STEPS, end=END
    ),
    "constrained": lambda *start, seeds: greedy(
        *start, steps=STEPS, end=END, constraints=[MinLength(3, END), NoRepeat(2)]
    ),
    "groups": lambda *start, seeds: sum(beam(*start, BeamOptions(beam_size=4, steps=STEPS, end=END, groups=2)), []),
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@each_decoder
@torch.no_grad()
def test_mixed_prompts_together_are_the_same_one_by_one_for_every_strategy(name):
    model = writer(name, "gru-both").eval()
    source = torch.randint(3, 12, (3, 5)), torch.tensor([[1] * 5, [0, 0, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()
    y, state, mask = torch.randint(3, 12, (3, 6)), model.initial_state(3, *source), MASKS["left"]
    for way in WAYS.values():
        together = way(model, *model.prompt(y, mask, state), seeds=[1, 2, 3])
        apart = []
        for row in range(3):
            one = y[row : row + 1, mask[row]]
            start = model.prompt(one, torch.ones_like(one).bool(), select(state, torch.tensor([row])))
            apart += way(model, *start, seeds=[row + 1])
        assert [one.tokens for one in together] == [one.tokens for one in apart]
        for one, two in zip(together, apart, strict=True):
            close(torch.tensor(one.logs), torch.tensor(two.logs), atol=1e-4, rtol=1e-4)


@each_plain
@torch.no_grad()
def test_with_a_state_or_reading_everything_again(name):
    model = talker(name).eval()

    def again(last, past):
        past = torch.cat([past, last], 1)
        return model(past, model.initial_state(len(past)))[0], past

    last = torch.tensor([[1], [5]])  # one row begins with the start symbol alone, as all do that have no prompt
    for way in WAYS.values():
        cached = way(model, last, model.initial_state(2), seeds=[1, 2])
        uncached = way(again, last, last[:, :0], seeds=[1, 2])
        assert [one.tokens for one in cached] == [one.tokens for one in uncached]


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
@pytest.mark.parametrize("prompted", [True, False])
@each_decoder
@torch.no_grad()
def test_prepared_steps_are_the_same_steps(name, prompted, dtype, kernels):
    """In numbers and in the state, which the plain model can take over; with a memory shared by beams, and a prompt."""
    model = writer(name, "gru-both").to(dtype).eval()
    state = model.initial_state(3, torch.randint(3, 12, (3, 5)), lengths_to_mask(torch.tensor([5, 4, 2]), 5))
    last = torch.ones(3, 1).long()
    if prompted:
        last, state = model.prompt(torch.randint(3, 12, (3, 6)), MASKS["between"], state)
    last, state, step = last.repeat_interleave(2, 0), repeat(state, 2), model.stepper()
    fast = state
    for count in range(6):
        expected, state = model(last, state)
        found, fast = step(last, fast) if count < 5 else model(last, fast)
        close(found, expected)
        last = torch.randint(3, 12, (6, 1))


@pytest.mark.parametrize(("ours", "theirs"), [(LSTM, nn.LSTM), (GRU, nn.GRU)])
@torch.no_grad()
def test_prepared_steps_of_pytorchs_weights_are_pytorchs(ours, theirs):
    peer = theirs(5, 7, 2, batch_first=True)
    layer, x = ours.from_torch(peer).eval(), torch.randn(3, 6, 5)
    move, state, found = prepare_step(layer), layer.initial_state(3), []
    for x_t in x.unbind(1):
        y, state = move(x_t, state)
        found.append(y)
    close(torch.stack(found, 1), peer(x)[0])


@each_decoder
def test_a_watched_model_is_watched_in_its_prepared_steps(name):
    model = writer(name, "gru-both").eval()
    state = model.initial_state(2, torch.randint(3, 12, (2, 5)), lengths_to_mask(torch.tensor([5, 4]), 5))
    seen = []
    for ask in (lambda: model, model.stepper):
        with recording(model.decoder) as tape, torch.no_grad():
            ask()(torch.ones(2, 1).long(), state)
        seen.append({name: [value.shape for value in values] for name, values in tape.items()})
    assert seen[0] == seen[1] and seen[0]


@each_decoder
@torch.no_grad()
def test_the_exact_search_is_a_beam_as_wide_as_the_space(name):
    model = writer(name, "gru-both", vocabulary=4).eval()
    state = model.initial_state(2, torch.randint(4, (2, 3)), lengths_to_mask(torch.tensor([3, 2]), 3))
    last = torch.ones(2, 1).long()
    wide = beam(model, last, state, BeamOptions(beam_size=64, steps=3, end=END))
    narrow = [found[0] for found in beam(model, last, state, BeamOptions(beam_size=1, steps=3, end=END))]
    proofs = exact(model, last, state, steps=3, end=END, known=narrow)
    for found, proof, first in zip(wide, proofs, narrow, strict=True):
        assert proof.best.tokens == found[0].tokens
        assert proof.error == pytest.approx(found[0].score - first.score, abs=1e-5)


@each_decoder
@torch.no_grad()
def test_given_sequences_score_the_same_at_once_and_step_by_step(name):
    model = writer(name, "gru-both").eval()
    state = model.initial_state(3, torch.randint(3, 12, (3, 5)), lengths_to_mask(torch.tensor([5, 4, 2]), 5))
    last, given = torch.ones(3, 1).long(), [[5, 6], [3, 4, 5, 6, 7], []]
    found = [score(model, last, state, given, end=END, piece=piece) for piece in (1, 2, 100)]
    for row, tokens in enumerate(given):
        written = torch.tensor([[1, *tokens, END]])
        gains = model(written[:, :-1], select(state, torch.tensor([row])))[0].log_softmax(-1)
        expected = gains[0].gather(1, written[0, 1:, None])[:, 0]
        for several in found:
            close(torch.tensor(several[row].logs), expected, atol=1e-5, rtol=1e-4)
