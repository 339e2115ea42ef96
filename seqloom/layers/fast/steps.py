"""One step of a decoder without gradient, in as few operations as it takes.

Writing is thousands of steps of one element each, where what costs is not the arithmetic but the number of calls. So a
layer gives a function of x (B, D), once for a whole search (`Layer.fast_step`): what has no effect outside of training
is left out, weights are looked up beforehand, nothing is split that can be viewed. Its states are those of the layer,
and may be taken over at any time. A layer that has no such function, or that somebody watches, goes its own way. Where
there are native kernels, `native_steps.py` does the work. A law proves each equal to its layer.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, groupby
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..padding import zero_padding
from ..quantization import RoundedProducts, eight_bits, round_rows
from ..state import State
from ..tap import is_watched
from . import native_stack, native_steps
from .native import library
from .native_kernels import can_use

if TYPE_CHECKING:
    from ..base import Layer

Step = Callable[[Tensor, State], tuple[Tensor, State]]  # x (B, D), the state before -> y (B, D), the state after
Steps = Callable[[Tensor, Sequence[State]], tuple[Tensor, list[State]]]  # several layers, each with its state
Change = Callable[[Tensor], Tensor]
Prepared = TypeVar("Prepared")


def prepare_step(layer: "Layer") -> Step:
    """The layer as a function of one element a row. Its weights must stay as they are meanwhile."""
    return plain_step(layer) if layer.training or is_watched(layer) else layer.fast_step()


def plain_step(layer: "Layer") -> Step:
    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        y, state = layer(x[:, None], state)
        return y[:, 0], state

    return step


def keep(x: Tensor, state: State) -> tuple[Tensor, State]:
    return x, state


# --- layers one after another -----------------------------------------------------------------------------------

Group = tuple[
    list["Layer"], native_stack.FusedBlocks | None
]  # layers in a row, and the one call that does for them all


class Snapshot:
    """All that a preparation depends on: when any of it has changed, it has to be made anew.

    To prepare layers takes longer than a step of small ones, and a model is asked again and again.
    """

    def __init__(self, module: nn.Module, parts: Iterable[nn.Module]) -> None:
        self.settings = eight_bits.get(), library.is_enabled()
        inside = [module, *(inner for part in parts for inner in part.modules())]
        # All that these modules hold, in order. Asked in one go each: a loop would take longer than what is prepared.
        self.holders: list[dict[str, Any]] = [
            held for part in inside for held in (part._modules, part._parameters, part._buffers)
        ]
        self.held = self.list_held()
        self.tensors = [one for one in self.held if isinstance(one, Tensor)]
        self.versions, self.places = self.list_versions(), self.list_places()

    def list_held(self) -> list[Any]:
        return list(chain.from_iterable(map(dict.values, self.holders)))

    def list_versions(self) -> list[int]:
        return list(map(attrgetter("_version"), self.tensors))

    def list_places(self) -> list[int]:
        return list(map(Tensor.data_ptr, self.tensors))

    def holds(self) -> bool:
        held = self.list_held()
        return (
            self.settings == (eight_bits.get(), library.is_enabled())
            and len(held) == len(self.held)
            and all(map(is_, held, self.held))
            and self.list_versions() == self.versions
            and self.list_places() == self.places
        )


plans: WeakKeyDictionary[nn.Module, tuple[Snapshot, Any]] = WeakKeyDictionary()


def prepare_once(module: nn.Module, prepare: Callable[[], Prepared], *parts: nn.Module) -> Prepared:
    """What was prepared for these parts of a module when they were last as they are now."""
    snapshot, prepared = plans.get(module, (None, None))
    if snapshot is None or not snapshot.holds():
        snapshot, prepared = plans[module] = Snapshot(module, parts), prepare()
    return cast(Prepared, prepared)


def group_layers(layers: nn.ModuleList) -> list[Group]:
    """Those that native code knows, in one call as far as they stand beside each other; it is the caller's own."""

    def group() -> list[Group]:
        groups: list[Group] = []
        blocks = [(layer, layer.block()) for layer in cast(Iterable["Layer"], layers)]
        for together, pairs in groupby(blocks, lambda pair: pair[1] is not None and pair[1].join is not None):
            parts, inner = zip(*pairs, strict=True)
            groups.append((list(parts), native_stack.FusedBlocks(inner) if together else None))
        return groups

    return [(parts, None if fused is None else fused.copy()) for parts, fused in prepare_once(layers, group, *layers)]


def step_through(layers: nn.ModuleList) -> Step:
    steps: list[tuple[int, Steps]] = [
        (len(parts), step_in_turn([part.fast_step() for part in parts]) if fused is None else fused)
        for parts, fused in group_layers(layers)
    ]

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        after: list[State] = []
        for count, part in steps:
            x, passed = part(x, state[len(after) : len(after) + count])
            after += passed
        return x, tuple(after)

    return step


def step_in_turn(steps: Sequence[Step]) -> Steps:
    def act(x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        after = []
        for part, before in zip(steps, states, strict=True):
            x, passed = part(x, before)
            after.append(passed)
        return x, after

    return act


def read_through(layers: nn.ModuleList, x: Tensor, state: State, mask: Tensor) -> tuple[Tensor, State]:
    """Whole sequences x (B, T, D) through layers that look ahead, without gradient."""
    after: list[State] = []
    full = bool(mask.all())
    x = x if full else zero_padding(x, mask)
    for parts, fused in group_layers(layers):
        if fused is not None and x.shape[1]:
            x = fused.read(x, mask)
            after += state[len(after) : len(after) + len(parts)]
            continue
        for part in parts:
            rounding: AbstractContextManager[Any] = RoundedProducts(part) if eight_bits.get() else nullcontext()
            with rounding:
                x, passed = part.fast_read(x, mask)
            after.append(passed)
    return x if full else zero_padding(x, mask), tuple(after)


# --- a layer and the way around it ------------------------------------------------------------------------------


def step_around(inner: Step, join: Callable[[Tensor, Tensor], Tensor], before: Change | None = None) -> Step:
    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        change, state = inner(x if before is None else before(x), state)
        return join(x, change), state

    return step


def add_norm(norm: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """x and its change, added and normalized."""
    weight = next(norm.parameters(), None)
    fast = native_steps.add_norm(norm) if weight is not None and can_use(weight) else None
    if fast is not None:
        return fast
    change = change_of(norm)
    return lambda x, more: change(x + more)


# --- what has no state ------------------------------------------------------------------------------------------


def change_of(module: nn.Module) -> Change:
    """A module without a state as a plain function: calling a module costs as much as a small product.

    A module of ours says itself how, by `fast_change`.
    """
    own: Callable[[], Change] | None = getattr(module, "fast_change", None)
    if own is not None:
        return own()
    if type(module) is nn.Linear:
        return product(module.weight, module.bias)
    if type(module) is nn.LayerNorm:
        shape, scale, shift, epsilon = module.normalized_shape, module.weight, module.bias, module.eps
        return lambda x: torch.layer_norm(x, shape, scale, shift, epsilon)
    if type(module) is nn.GELU and module.approximate == "none":
        return F.gelu
    return module


def product(weight: Tensor, bias: Tensor | None) -> Change:
    if can_use(weight):
        return native_steps.product(weight, bias)
    if eight_bits.get():
        return lambda x: F.linear(round_rows(x), weight, bias)  # the weights have been rounded before
    return lambda x: F.linear(x, weight, bias)


def change_behind(before: nn.Module | None, module: nn.Module) -> Change:
    """As `change_of`; what a product has just made may be changed in place."""
    if type(before) is not nn.Linear:
        return change_of(module)
    if type(module) is nn.ReLU:
        return torch.relu_
    if type(module) is nn.GELU and module.approximate == "none" and can_use(before.weight):
        return native_steps.gelu(before.weight.dtype)
    return change_of(module)


def active_modules(modules: Iterable[nn.Module]) -> list[nn.Module]:
    """Those that do something outside of training."""
    return [module for module in modules if not isinstance(module, nn.Dropout)]


def step_pointwise(modules: Iterable[nn.Module]) -> Step:
    active = active_modules(modules)
    changes = [change_behind(*pair) for pair in zip([None, *active], active, strict=False)]

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        for change in changes:
            x = change(x)
        return x, state

    return step


def step_positions(table: Callable[[int, Tensor], Tensor | None], otherwise: Step) -> Step:
    """Adds vectors by position. The table of those up to some position is asked for when it is too short; if there is
    none, `otherwise` knows why."""
    known: Tensor | None = None
    furthest, expected = 0, None  # of the state that the last step has left

    def step(x: Tensor, state: State) -> tuple[Tensor, State]:
        nonlocal known, furthest, expected
        furthest = furthest + 1 if state is expected else int(state.max())
        if known is None or furthest >= len(known):
            known = table(furthest, x)
            if known is None:
                return otherwise(x, state)
        expected = state + 1
        return x + known.index_select(0, state), expected

    return step


def read_positions(
    layer: nn.Module, table: Callable[[int, Tensor], Tensor | None], x: Tensor, mask: Tensor
) -> tuple[Tensor, State] | None:
    """The same for whole sequences (B, T, D) without padding; none where there is any, or where there is no table."""
    time = x.shape[1]
    if not x.numel() or not bool(mask.all()):
        return None
    known = prepare_once(layer, dict[str, Tensor | None], layer)
    longest = known.get("table")
    if longest is None or longest.shape[0] < time:
        longest = known["table"] = table(time - 1, x[0])
    return None if longest is None else (x + longest[:time], mask.new_full((x.shape[0],), time, dtype=torch.long))
