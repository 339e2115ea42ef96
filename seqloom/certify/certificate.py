"""What a certificate says, and how two ways to compute the same thing are measured against each other.

Knows no architecture: the subjects are in the `check_…` files, their equations in the `reference_…` files. The laws in
the tests compare by the same functions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ..layers import recording

EXACT = 1e-10  # what two orders of summation in float64 may differ by, with room to spare
STENCIL = 1e-7  # what a five-point difference may be wrong by

M = TypeVar("M", bound=nn.Module)


class Gaps(NamedTuple):
    """The largest difference in value and in gradient; None where there is nothing to compare."""

    value: float | None
    gradient: float | None = None


@dataclass(frozen=True)
class Certificate:
    """One claim about one part of the library, and how far the numbers are from it."""

    family: str  # cells, attention, transformer, heads
    subject: str
    claim: str
    value_gap: float | None
    gradient_gap: float | None
    limit: float

    @property
    def holds(self) -> bool:
        """Whether every gap that was measured keeps to the limit; NaN does not."""
        gaps = [gap for gap in (self.value_gap, self.gradient_gap) if gap is not None]
        return bool(gaps) and all(gap <= self.limit for gap in gaps)


@dataclass(frozen=True)
class Check:
    """A claim to be measured; `Certificate` is the result."""

    family: str
    subject: str
    claim: str
    limit: float
    measure: Callable[[], Gaps]

    @property
    def name(self) -> str:
        return f"{self.family}: {self.subject}: {self.claim}"

    def certify(self) -> Certificate:
        """Try it: always on the same draws, in float64, and without a trace in the caller's random state."""
        with use_reproducible_float64(), torch.enable_grad():
            gaps = self.measure()
        return Certificate(self.family, self.subject, self.claim, gaps.value, gaps.gradient, self.limit)


@contextmanager
def use_reproducible_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


def stir(module: M) -> M:
    """With no parameter at a special value: a share of zero or a gain of one would hide a mistake."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module.eval()


def draw_leaf(*shape: int) -> Tensor:
    """Random numbers to differentiate by."""
    return torch.randn(*shape, requires_grad=True)


def find_largest(differences: Sequence[Tensor]) -> float:
    """The largest of all numbers, sign aside; NaN if there is one."""
    return float(torch.cat([difference.detach().abs().flatten() for difference in differences]).max())


def measure_gap(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    for one, other in zip(ours, theirs, strict=True):
        assert one.shape == other.shape, f"{tuple(one.shape)} cannot be compared with {tuple(other.shape)}"
    return find_largest([one - other for one, other in zip(ours, theirs, strict=True)])


def compare(ours: Sequence[Tensor], theirs: Sequence[Tensor], leaves: Sequence[Tensor]) -> Gaps:
    """Two ways from the same leaves, in value and in the gradient of one random weighing of all outputs."""
    probes = [torch.randn_like(part) for part in theirs]
    # A leaf that the reference does not depend on is a mistake in the check, and raises.
    expected = torch.autograd.grad(weigh(theirs, probes), leaves, retain_graph=True)
    slopes = torch.autograd.grad(weigh(ours, probes), leaves, retain_graph=True, allow_unused=True)
    known = [torch.zeros_like(place) if slope is None else slope for slope, place in zip(slopes, leaves, strict=True)]
    return Gaps(measure_gap(ours, theirs), measure_gap(known, expected))


def weigh(parts: Sequence[Tensor], probes: Sequence[Tensor]) -> Tensor:
    return torch.stack([(part * probe).sum() for part, probe in zip(parts, probes, strict=True)]).sum()


def compare_with_differences(
    compute: Callable[[], Sequence[Tensor]], leaves: Sequence[Tensor], step: float = 1e-4
) -> Gaps:
    """The gradient against slopes measured from five points along a random line through each leaf."""
    outputs = compute()
    probes = [torch.randn_like(part) for part in outputs]
    slopes = torch.autograd.grad(weigh(outputs, probes), leaves)
    gaps = []
    for place, slope in zip(leaves, slopes, strict=True):
        line, middle = torch.randn_like(place), place.detach().clone()
        values = []
        with torch.no_grad():
            for move in (-2, -1, 1, 2):
                place.copy_(middle + move * step * line)
                values.append(weigh(compute(), probes))
            place.copy_(middle)
        measured = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
        gaps.append((slope * line).sum() - measured)
    return Gaps(None, find_largest(gaps))


def compute_jacobian(output: Tensor, place: Tensor) -> Tensor:
    """∂ output / ∂ place of two vectors: one row for each number of the output."""
    rows = [torch.autograd.grad(number, place, retain_graph=True, allow_unused=True)[0] for number in output]
    return torch.stack([torch.zeros_like(place) if row is None else row for row in rows])


# --- a part of the library beside its equations ---


@dataclass(frozen=True)
class Case:
    """A part of the library with random weights and something to read, and its equations on the same weights."""

    module: nn.Module
    inputs: Sequence[Tensor]  # to differentiate by, besides the weights
    product: Callable[[], Sequence[Tensor]]
    equations: Callable[[], Sequence[Tensor]]

    @property
    def leaves(self) -> list[Tensor]:
        return [*self.inputs, *self.module.parameters()]

    def product_while_watched(self) -> Sequence[Tensor]:
        """Without any fast path: nothing is fused while somebody watches."""
        with recording(self.module):
            return self.product()


def follows_its_equations(make: Callable[[], Case]) -> Gaps:
    """The path that is taken unwatched, and the one that is taken watched."""
    case = make()
    expected = case.equations()
    return compare([*case.product(), *case.product_while_watched()], [*expected, *expected], case.leaves)


def has_equal_paths(make: Callable[[], Case]) -> Gaps:
    case = make()
    return compare(case.product(), case.product_while_watched(), case.leaves)


def has_the_measured_slopes(make: Callable[[], Case]) -> Gaps:
    case = make()
    return compare_with_differences(case.product, case.leaves)


def check_case(
    family: str,
    subject: str,
    make: Callable[[], Case],
    *,
    claim: str = "the written equations",
    fast: bool = False,
    smooth: bool = True,
) -> Iterator[Check]:
    """What is claimed of every part: `fast` if it has a second path, not `smooth` if its gradient is no slope."""
    yield Check(family, subject, claim, EXACT, partial(follows_its_equations, make))
    if fast:
        yield Check(family, subject, "fast path = slow path", EXACT, partial(has_equal_paths, make))
    if smooth:
        yield Check(family, subject, "finite differences", STENCIL, partial(has_the_measured_slopes, make))
