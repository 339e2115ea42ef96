"""The weights of a cell: how they start, what holds them in place, what leaves some of them out."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrize

from .cell import Cell

C = TypeVar("C", bound=Cell)


def linear(inputs: int, outputs: int, size: int, bias: bool = True) -> nn.Linear:
    """A product whose weights start as those of `torch.nn`'s recurrent layers do: even, within 1 / sqrt(size)."""
    product = nn.Linear(inputs, outputs, bias)
    for parameter in product.parameters():
        nn.init.uniform_(parameter, -(size**-0.5), size**-0.5)
    return product


def constrain_weights(cell: C, how: Callable[[nn.Module], nn.Module]) -> C:
    """The cell with a U whose singular values cannot leave their place: `orthogonal` keeps them at 1
    (Arjovsky et al., 2016), `spectral_norm` the largest of them."""
    if not cell.U.weight.is_meta:  # a model without values, built to be counted, has nothing to hold
        how(cell.U)
    return cell


class WeightDrop(nn.Module):
    """Leaves out weights at random, the same ones at all steps of a sequence (Merity et al., 2018)."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, weight: Tensor) -> Tensor:
        return F.dropout(weight, self.share, self.training)


def drop_weights(cell: C, share: float) -> C:
    """The cell with dropout on what it says to itself, U."""
    parametrize.register_parametrization(cell.U, "weight", WeightDrop(share))
    return cell


INITIAL: dict[str, Callable[[Tensor], Tensor]] = {
    "xavier": nn.init.xavier_uniform_,
    "orthogonal": nn.init.orthogonal_,
    "identity": nn.init.eye_,
    "normal": partial(nn.init.normal_, std=0.02),
}


def initialize(cell: C, how: str = "uniform", forget: float | None = None, gain: float = 1.0) -> C:
    """The cell with its matrices started in another way, gate by gate, those it looks at its state with so many times
    as large, and the forget gate open by so much."""
    matrices = [(name, weight) for name, weight in cell.named_parameters() if weight.dim() == 2 and name[0] in "WUP"]
    units = cell.sizes[-1] if cell.entries[-1] == "c" else cell.size
    for name, weight in matrices if how != "uniform" else ():
        for block in weight.data.split(len(weight) if name[0] == "P" else units):  # a projection is of no gate
            INITIAL[how](block)
    for name, weight in matrices if gain != 1 else ():
        weight.data *= gain if name[0] == "U" else 1
    biases = [bias for name, bias in cell.W.named_parameters() if name.endswith("bias")]
    if forget is not None and "f" in cell.blocks and biases:
        places = biases[-1].data.chunk(len(cell.blocks))
        nn.init.constant_(places[cell.blocks.index("f")], forget)
    return cell
