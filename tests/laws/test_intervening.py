"""A change belongs to who makes it: one of nothing changes nothing in any layer, and one of something nobody else."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from seqloom.layers import recording
from seqloom.layers.tap import find_taps, intervening, interventions

from .test_layers import SOME, close, decoder, each_decoder, each_encoder, encoder, memory
from .zoo import D


def keep(name, value):
    return value


@each_encoder
def test_a_change_of_nothing_changes_nothing_in_encoders(name):
    net, x = encoder(name).eval(), torch.randn(3, 6, D)
    plain = net(x)
    with recording(net):
        spelled = net(x)
    with intervening(net, keep):
        found = net(x)
    close(found, plain)
    assert torch.equal(found.values, spelled.values)  # to the bit, the way that is watched


@each_decoder
def test_a_change_is_seen_where_it_is_made_and_gone_afterwards(name):
    """Every tap that passes something is changed, a recording sees what was made of it, and the net forgets it."""
    net, seen, x = decoder(name, *SOME).eval(), memory(), torch.randn(3, 4, D)
    with torch.no_grad():
        plain, _ = net(x, net.initial_state(3, seen))
        with intervening(net, keep):
            close(net(x, net.initial_state(3, seen))[0], plain)
        with recording(net) as before:
            net(x, net.initial_state(3, seen))
        for tap in before:
            with intervening(net, lambda _, value: value * 0, tap), recording(net, tap) as tape:
                net(x, net.initial_state(3, seen))
            assert all(bool((value == 0).all()) for value in tape[tap])
        assert torch.equal(net(x, net.initial_state(3, seen))[0], plain)
    assert interventions.get() == ()


def test_what_another_thread_asks_meanwhile_stays_as_it_is():
    net, x = encoder("lstm-both").eval(), torch.randn(2, 5, D)
    with torch.no_grad():
        plain = net(x).values
        with intervening(net, lambda _, value: value * 0), ThreadPoolExecutor(1) as pool:
            # Whether there are gradients is a matter of each thread.
            assert torch.equal(pool.submit(torch.no_grad()(lambda: net(x).values)).result(), plain)
            assert not torch.equal(net(x).values, plain)


def test_changes_inside_of_changes_are_made_in_their_order_and_end_with_their_blocks():
    net, x = encoder("gru-both").eval(), torch.randn(2, 5, D)
    tap = next(name for name in find_taps(net).values() if name.endswith("taps.h"))
    with torch.no_grad(), intervening(net, lambda _, value: value + 1, tap):
        with intervening(net, lambda _, value: value * 0, tap), recording(net, tap) as both:
            net(x)
        with recording(net, tap) as one:
            net(x)
    assert bool((both[tap][0] == 0).all()) and not bool((one[tap][0] == 0).any())


def test_a_change_that_fails_leaves_nothing_behind():
    net, x = encoder("gru-both").eval(), torch.randn(2, 5, D)

    def fail(name, value):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), intervening(net, fail):
        net(x)
    assert interventions.get() == ()
    net(x)
