"""A linear-chain CRF by brute force: every path there is, scored one by one."""

from itertools import product

import torch
from torch import Tensor

from .reference_maths import Parameters

Path = tuple[int, ...]


def score_path(p: Parameters, features: Tensor, path: Path) -> Tensor:
    """The score of one path over features (T, D): each tag by itself, each pair of neighbors, both ends."""
    total = p["first"][path[0]] + p["last"][path[-1]]
    for element, tag in zip(features, path, strict=True):
        total = total + p.affine("project", element)[tag]
    for tag, following in zip(path, path[1:], strict=False):
        total = total + p["pairs"][tag, following]
    return total


def paths(p: Parameters, time: int) -> list[Path]:
    return list(product(range(len(p["first"])), repeat=time))


def surprise(p: Parameters, features: Tensor, path: Path) -> Tensor:
    """−log of e^score over the sum of e^score of all paths."""
    every = sum(torch.exp(score_path(p, features, other)) for other in paths(p, len(features)))
    return torch.log(torch.as_tensor(every)) - score_path(p, features, path)


def best(p: Parameters, features: Tensor) -> Path:
    return max(paths(p, len(features)), key=lambda path: float(score_path(p, features, path).detach()))
