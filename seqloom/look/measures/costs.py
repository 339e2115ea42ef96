"""What a body costs against the length of what it reads: time, memory, parameters. Measured, not computed.

Times on a busy machine are noisy: the best of several is told, and ratios say more than milliseconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor

from ...architectures import ARCHITECTURES, Architecture
from ...config.recipe import Recipe
from ...errors import RecipeError
from ...layers.base import Layer
from .reading import disable_dropout

LENGTHS = (16, 64, 256)
SPECIAL_KINDS = ("gru-d", "linear", "bag")  # for data of one sort alone: they could not stand in another body's place


@dataclass(frozen=True)
class Cost:
    """One body at one length."""

    body: str
    length: int
    parameters: int
    forward: float  # seconds for one sequence read
    training: float  # seconds for reading it and the gradient of all weights
    memory: int  # bytes that are kept for the way back


def measure_body_costs(
    bodies: Mapping[str, Callable[[], Layer]],
    inputs: int,
    lengths: Sequence[int] = LENGTHS,
    batch: int = 8,
    repeats: int = 3,
) -> list[Cost]:
    """Each body, made anew, on random vectors (batch, length, inputs)."""
    costs = []
    for name, make in bodies.items():
        with torch.random.fork_rng([]):  # what others draw goes on as if no weights had been drawn here
            layer = make()
        parameters = sum(parameter.numel() for parameter in layer.parameters())
        known: list[int] = [most for part in layer.modules() if (most := getattr(part, "longest", None))]
        for length in sorted({min(length, *known) if known else length for length in lengths}):  # learned positions end
            chance = torch.Generator().manual_seed(length)
            x = torch.randn(batch, length, inputs, generator=chance)
            with disable_dropout(layer):
                reading = min(_time(_run_forward, layer, x) for _ in range(repeats + 1))
                training = min(_time(_run_training_step, layer, x) for _ in range(repeats))
                memory = _count_saved_bytes(layer, x)
            costs.append(Cost(name, length, parameters, reading / batch, training / batch, memory // batch))
    return costs


def list_comparable_bodies(recipe: Recipe, inputs: int) -> dict[str, Callable[[], Layer]]:
    """The recipe's own body and what else could stand in its place, each as deep and wide, all reading forwards."""
    side: Literal["encoder", "decoder"] = "encoder" if recipe.use.encodes else "decoder"
    own = recipe.model.side(side).kind
    builders: dict[str, Callable[[], Layer]] = {}
    for kind in dict.fromkeys((own, *(kind for kind in ARCHITECTURES if kind not in SPECIAL_KINDS))):
        try:
            body = recipe.changed("model.kind", kind).resolved().model.side(side)
        except RecipeError:  # what the own body can, such as reading gaps, not every other can
            continue
        if kind != "gru-d":
            builders[f"{kind} (this run's)" if kind == own else kind] = partial(_build_body, body, inputs)
    return builders


def _build_body(body: Architecture, inputs: int) -> Layer:
    return body.build_encoder(inputs, ahead=body.kind == "transformer").layer


def _time(act: Callable[[Layer, Tensor], None], layer: Layer, x: Tensor) -> float:
    start = perf_counter()
    act(layer, x)
    return perf_counter() - start


@torch.no_grad()
def _run_forward(layer: Layer, x: Tensor) -> None:
    layer(x, layer.initial_state(len(x)))


def _run_training_step(layer: Layer, x: Tensor) -> None:
    """Gradients of the weights, of which a bag has none, and of the input, which an embedding below learns from."""
    x = x.detach().requires_grad_()
    y, _ = layer(x, layer.initial_state(len(x)))
    torch.autograd.grad(y.sum(), [x, *(p for p in layer.parameters() if p.requires_grad)], allow_unused=True)


def _count_saved_bytes(layer: Layer, x: Tensor) -> int:
    """What autograd holds on to between the two ways, every tensor counted once and the weights not at all."""
    kept: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        y, _ = layer(x, layer.initial_state(len(x)))
    del y
    return sum(kept.values())
