"""The functions the equations are written in, each as its definition. Nothing here is shared with the product."""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize


class Parameters(dict[str, Tensor]):
    """The weights of a module by name. One that is computed from another (an orthogonal U) is given as computed."""

    @classmethod
    def of(cls, module: nn.Module) -> "Parameters":
        named = cls(module.named_parameters())
        for path, part in module.named_modules():
            if parametrize.is_parametrized(part, "weight"):
                named[f"{path}.weight"] = part.weight
        return named

    def select_part(self, prefix: str) -> "Parameters":
        """The weights of a part of the module, by their names in that part."""
        start = f"{prefix}."
        return Parameters({name[len(start) :]: value for name, value in self.items() if name.startswith(start)})

    def bias(self, name: str) -> Tensor:
        """The bias that goes with a matrix; zero where it was left out."""
        return self.get(f"{name}.bias", torch.zeros(len(self[f"{name}.weight"]), dtype=torch.float64))

    def affine(self, name: str, x: Tensor) -> Tensor:
        """A x + b."""
        return self[f"{name}.weight"] @ x + self.bias(name)


def sigmoid(z: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-z))


def tanh(z: Tensor) -> Tensor:
    return (torch.exp(z) - torch.exp(-z)) / (torch.exp(z) + torch.exp(-z))


def relu(z: Tensor) -> Tensor:
    return torch.where(z > 0, z, 0 * z)


def identity(z: Tensor) -> Tensor:
    return z


def gelu(z: Tensor) -> Tensor:
    """z times the chance that a standard normal number is smaller than z."""
    return z * (1 + torch.erf(z / math.sqrt(2))) / 2


def silu(z: Tensor) -> Tensor:
    """z times its sigmoid."""
    return z * sigmoid(z)


def softmax(scores: list[Tensor]) -> list[Tensor]:
    """e^s over the sum of all e^s."""
    powers = [torch.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def layer_norm(x: Tensor, gain: Tensor | float = 1.0, shift: Tensor | float = 0.0) -> Tensor:
    """Zero mean and unit variance over the features of one element, then a learned gain and shift."""
    mean = x.sum() / len(x)
    variance = ((x - mean) ** 2).sum() / len(x)
    return gain * (x - mean) / torch.sqrt(variance + 1e-5) + shift


def rms_norm(x: Tensor, gain: Tensor) -> Tensor:
    """The root of the mean square made one; nothing is subtracted."""
    return gain * x / torch.sqrt((x * x).sum() / len(x) + torch.finfo(x.dtype).eps)
