"""Non-local blocks in front of what reads a sequence of patches, of frames or of anything else."""

from torch import Tensor

from .attention import NonLocal
from .base import Encoder, Layer, Stack
from .description import AROUND, ITSELF, SELF_ATTENTION, Description, count_parameters
from .padding import zero_padding
from .state import State


class NonLocalLayer(Layer):
    """Every element looks at every other, and what it sees is added (Wang et al., 2018). Starts as the identity."""

    causal = False
    looks_at = {ITSELF: "look.weights"}

    def __init__(self, size: int) -> None:
        super().__init__()
        self.look = NonLocal(size)

    def forward(self, x: Tensor, state: State, mask: Tensor | None = None) -> tuple[Tensor, State]:
        x = zero_padding(x, mask)
        return zero_padding(x + self.look.see(x, mask), mask), state

    def describe(self) -> Description:
        return Description("non-local block", AROUND, count_parameters(self), SELF_ATTENTION)


def put_non_local(encoder: Encoder, size: int, blocks: int) -> Encoder:
    """The encoder with so many blocks in front, which read elements of this size as it does."""
    return (
        Encoder(Stack(*(NonLocalLayer(size) for _ in range(blocks)), encoder.layer), encoder.pool)
        if blocks
        else encoder
    )
