"""The state that training carries from one step to the next, as named tensors and back."""

from collections.abc import Mapping

from torch import Tensor

from ..errors import RunError
from ..layers.state import State, map_state


def flatten_state(state: State) -> dict[str, Tensor]:
    """A copy of every tensor of the tree, numbered in the order in which it is walked."""
    leaves: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        leaves.append(tensor.detach().clone())
        return tensor

    map_state(note, state)
    return {f"{number:04}": tensor for number, tensor in enumerate(leaves)}


def unflatten_state(tensors: Mapping[str, Tensor], like: State, place: str) -> State:
    """A tree shaped like this one, with these tensors in it. Only their lengths in time may differ: caches grow."""
    unread = dict(tensors)

    def fill(old: Tensor) -> Tensor:
        number = f"{len(tensors) - len(unread):04}"
        new = unread.pop(number, None)
        if new is None or _describe_tensor(new) != _describe_tensor(old):
            raise RunError(f"{place}: the carried state does not fit this model")
        return new.to(old.device, copy=True)

    state = map_state(fill, like)
    if unread:
        raise RunError(f"{place}: the carried state holds more than this model's")
    return state


def _describe_tensor(tensor: Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.ndim, tensor.shape[:1], tensor.shape[2:]
