"""Where chance comes from: every draw of training is a pure function of the seed and of the place where it is made.

So nothing has to be remembered in order to go on, and it does not matter who else draws in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch


class Draw(IntEnum):
    """What is drawn: each from a stream of its own."""

    BATCH = 0
    DROPOUT = 1


def draw_from(seed: int, draw: Draw, *place: int) -> None:
    """Let torch's generators, on all devices, begin anew for this place in the training."""
    [state] = np.random.SeedSequence((seed, draw, *place)).generate_state(1, np.uint64)
    if torch.accelerator.is_available():
        torch.manual_seed(int(state))
    else:  # where there is no other device, asking for all of them takes longer than a small step
        torch.default_generator.manual_seed(int(state))


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Whatever is drawn inside, the generators go on as if nothing had been."""
    with torch.random.fork_rng(range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []):
        yield
