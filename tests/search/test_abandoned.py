"""A search that nobody waits for any more ends after the step it is at."""

import pytest
import torch

from seqloom.search import Abandoned, BeamOptions, Patience, Sampling, beam, stop_unless_wanted, stream

ENOUGH = 7


def endless(steps):
    """Any token is as likely as any other, for ever; the steps are counted."""

    def step(last, state):
        steps.append(len(last))
        return torch.zeros(len(last), 1, 5), state

    return step


def searches():
    """Two ways of writing on."""
    start, state = torch.zeros(2, 1, dtype=torch.long), torch.zeros(2, 1)
    limits = {"steps": 1000, "end": None, "patience": Patience(0)}
    return [
        lambda step: beam(step, start, state, BeamOptions(beam_size=3, steps=1000, end=None), patience=Patience(0)),
        lambda step: list(stream(step, Sampling(seed=1).choose(2), start, state, **limits)),
    ]


@pytest.mark.parametrize("search", searches(), ids=["beam", "drawn"])
def test_a_search_ends_at_the_step_after_which_it_is_not_wanted(search):
    steps = []
    with pytest.raises(Abandoned), stop_unless_wanted(lambda: len(steps) < ENOUGH):
        search(endless(steps))
    assert len(steps) == ENOUGH


@pytest.mark.parametrize("search", searches(), ids=["beam", "drawn"])
def test_outside_nobody_asks(search):
    steps = []
    with stop_unless_wanted(lambda: False):
        pass
    search(endless(steps))
    assert len(steps) == 1000
