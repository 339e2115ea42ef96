"""What layers and cells say about themselves: whoever draws, watches or diagnoses a model asks them, not their class.

All of it has a default, so a layer or cell that is written elsewhere can be drawn and watched as it is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import nn

# How the steps of a sequence are joined: not at all, from step to step, from both ends, with all others, with those
# before, or into one.
EACH, FORWARDS, BOTH, AROUND, PAST, ONE = "each", "forwards", "both ways", "around", "past", "one"

# What a part is for. A container is seen through its children; a `LAYER` is anything that says no more.
CONTAINER, LAYER, RECURRENCE, CONVOLUTION = "container", "layer", "recurrence", "convolution"
SELF_ATTENTION, SOURCE_ATTENTION, READOUT_ATTENTION = "self-attention", "source attention", "attention"
FEED_FORWARD, POINTWISE, POSITIONS, POOLING = "feed-forward", "pointwise", "positions", "pooling"

SOURCE, ITSELF, SUMMARY = "source", "itself", "summary"  # what attention looks at, or makes
BACKWARDS = "backwards"


@dataclass(frozen=True)
class Description:
    """`shape` is how the part joins steps; how many features pass is seen at its tap, for any layer alike."""

    name: str  # as a person calls it: "LSTM", "self-attention (4 heads)"
    shape: str
    parameters: int
    role: str
    looks: bool = False  # at the memory


class Child(NamedTuple):
    """A part of a part: where it stands in it, and in which direction it reads, where that needs saying."""

    path: str
    part: "DescribedModule"
    direction: str = ""


class DescribedModule(nn.Module):
    """What layers and cells have in common."""

    looks_at: dict[str, str] = {}  # `SOURCE`, `ITSELF` or `SUMMARY` -> the tap of its attention weights
    projections: tuple[str, ...] = ()  # the weights that make queries, keys and values, in order, if it has these
    query_size: int = 0  # how many rows of them make queries; keys have as many
    output: str = ""  # the tap of what it says

    # Ways to compute the same faster. They hold for the equations of the class that has them, and for no others.
    fast_ways: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """A subclass that changes an equation and says nothing of a fast way has none: it goes the plain one."""
        super().__init_subclass__(**options)
        own = {name for name, value in vars(cls).items() if callable(value) or isinstance(value, staticmethod)}
        if not any(_is_concrete(getattr(cls.__mro__[1], name, None)) for name in own - HARMLESS - {*cls.fast_ways}):
            return
        for name in {*cls.fast_ways} - own:
            [*_, plain] = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
            setattr(cls, name, plain)

    def children_in_order(self) -> list[Child]:
        """What is inside and describes itself, the lowest first: by default in the order of construction."""
        return [Child(name, part) for name, part in self.named_children() if isinstance(part, DescribedModule)]

    def describe(self) -> Description:
        name, shape = type(self).__name__, PAST if getattr(self, "causal", False) else AROUND
        role = CONTAINER if self.children_in_order() else LAYER
        return Description(name, shape, count_parameters(self), role, SOURCE in self.looks_at)


HARMLESS = {"__init__", "describe", "children_in_order", "final_states"}


def _is_concrete(method: Callable[..., Any] | None) -> bool:
    return method is not None and not getattr(method, "__isabstractmethod__", False)


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


class Place(NamedTuple):
    """A part, where it stands, and what it says about itself."""

    path: str
    part: DescribedModule
    about: Description


def walk_parts(part: DescribedModule, path: str = "") -> Iterator[Place]:
    """The part or, if it is a container, the parts it is seen through, and then what else it has of its own."""
    about = part.describe()
    if about.role != CONTAINER:
        yield Place(path, part, about)
        return
    children = part.children_in_order()
    for child in children:
        yield from walk_parts(child.part, join_path(path, child.path))
    inside = {id(parameter) for child in children for parameter in child.part.parameters()}
    own = sum(parameter.numel() for parameter in part.parameters() if id(parameter) not in inside)
    if own:
        yield Place(path, part, Description(about.name, EACH, own, POINTWISE, about.looks))


def find_described(module: nn.Module) -> Iterator[tuple[str, DescribedModule]]:
    """Everything inside that describes itself, however deep, with where it stands."""
    for path, part in module.named_modules():
        if isinstance(part, DescribedModule):
            yield path, part


def join_path(*parts: str) -> str:
    return ".".join(part for part in parts if part)
