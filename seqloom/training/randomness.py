"""The states of all random generators that training draws from: torch's on the CPU and, where used, on each GPU."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from ..errors import RunError


def random_states() -> dict[str, Tensor]:
    """What the generators draw from here on, as named bytes."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            states[f"cuda.{number}"] = state
    return states


def set_random_states(states: Mapping[str, Tensor], place: str) -> None:
    """Draw on from there. Whatever else draws must have done so before: call this last."""
    try:
        torch.set_rng_state(states["cpu"])
        # A run may go on with fewer GPUs, or none: their generators are then nobody's.
        for number in range(torch.cuda.device_count()):
            if f"cuda.{number}" in states:
                torch.cuda.set_rng_state(states[f"cuda.{number}"], number)
    except (KeyError, RuntimeError, TypeError):
        raise RunError(f"{place}: does not hold the state of this machine's random generators") from None


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever is drawn inside, training draws on as if nothing had been."""
    states = random_states()
    try:
        yield
    finally:
        set_random_states(states, "training")
