"""How deep each parameter of a model lies below its head, counted in layers: what fine-tuning goes by."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from ..layers.description import FEED_FORWARD, POINTWISE, POOLING, POSITIONS, DescribedModule, join_path, walk_parts

BESIDE = (FEED_FORWARD, POINTWISE, POSITIONS)  # what joins no steps belongs to the layer that does


def measure_depths(objective: nn.Module) -> dict[str, int]:
    """By name: 0 for the head and what else stands beside it, 1 for the highest layer, and so on down; the embeddings,
    and all that is read first, are the lowest. A layer begins with what joins the steps of a sequence."""
    model: Any = getattr(objective, "model", None)
    names = [name for name, _ in objective.named_parameters()]
    if model is None or not hasattr(model, "bodies"):
        return dict.fromkeys(names, 0)
    depths = {name: 0 for name in names if ".mix." in name}  # what joins the layers is above them
    deepest = 0
    for _, prefix, body in reversed(list(model.bodies().values())):  # what writes is above what is written about
        layers = group_layers(body)
        for number, paths in enumerate(reversed(layers), 1):
            for name in names:
                if any(name.startswith(f"model.{join_path(prefix.rstrip('.'), path)}.") for path in paths):
                    depths.setdefault(name, deepest + number)
        deepest += len(layers)
    for name in names:
        beside_head = name.startswith("model.head.") or ".pool." in name
        depths.setdefault(name, 0 if beside_head else deepest + 1)
    return depths


def group_layers(body: DescribedModule) -> list[list[str]]:
    """The paths of the parts that make each layer, the lowest first."""
    layers: list[list[str]] = []
    started = False
    for place in walk_parts(body):
        if place.about.role == POOLING:
            continue
        if place.about.role in BESIDE and layers:
            layers[-1].append(place.path)
        elif layers and not started:
            layers[-1].append(place.path)
            started = True
        else:
            layers.append([place.path])
            started = place.about.role not in BESIDE
    return layers


def find_held_back(depths: Mapping[str, int], step: int, every: int) -> set[str]:
    """The parameters that do not learn yet at this step, counted from 1: one more layer learns after `every` steps."""
    reached = (step - 1) // every if every else max(depths.values(), default=0)
    return {name for name, depth in depths.items() if depth > reached}
