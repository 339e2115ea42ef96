"""Named tensors in files (safetensors), and the weights of a module as such.

Whatever is read was perhaps written by somebody else: nothing that is loaded here can run code, and what is not
plain, finite, whole data is refused in one sentence.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import RunError
from .files import open_limited, parse_json, read_bytes

FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye)
LONGEST_HEADER = 16 << 20  # bytes
# The kinds of number that are read; torch can check all of these for NaN.
DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a safetensors file; the same tensors give the same bytes."""
    return safetensors.torch.save({name: tensor.contiguous() for name, tensor in tensors.items()})


def read_tensors(path: Path, most: int | None = None) -> dict[str, Tensor]:
    """The tensors of a safetensors file of at most so many bytes, all of them finite."""
    return parse_tensors(read_bytes(path, most), path)


class Allowance(TorchFunctionMode):
    """Inside, new tensors may hold so many numbers together; more are refused before they take any memory.

    Building a model on torch's "meta" device would say its size as well, but the first product there imports 800
    modules, which takes longer than all else that loading a run does.
    """

    def __init__(self, numbers: int, sentence: str) -> None:
        super().__init__()
        self.left, self.sentence = numbers, sentence

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: dict[str, Any] | None = None
    ) -> Any:
        options = options or {}
        if function in FACTORIES:
            size = options.get("size", arguments)
            size = size[0] if size and isinstance(size[0], tuple | list) else size
            self.left -= math.prod(size) ** (2 if function is torch.eye and len(size) == 1 else 1)
            if self.left < 0:
                raise RunError(self.sentence)
        return function(*arguments, **options)


def count_max_bytes(module: nn.Module) -> int:
    """What a file of this module's weights has at most: eight bytes a number, and a line about each tensor."""
    tensors = module.state_dict()
    return sum(8 * tensor.numel() + len(name) + 500 for name, tensor in tensors.items()) + 10_000


def parse_tensors(data: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors that `tensor_bytes` has made bytes of, all of them finite."""
    _check_header(data, path)
    try:
        tensors = safetensors.torch.load(data)
    except Exception as error:  # whatever a library makes of hostile bytes, to a person it is one thing
        raise RunError(f"{path}: is not a whole safetensors file ({error})") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise RunError(f"{path}: the tensor {name!r:.80} holds values that are not finite numbers")
    return tensors


def count_tensors(path: Path) -> tuple[int, int]:
    """How many tensors a safetensors file says it has, of which nothing else is read, and its size in bytes."""
    with open_limited(path) as file:
        size = os.fstat(file.fileno()).st_size
        length = _header_length(file.read(8), size, path)
        header = parse_json(file.read(length), f"{path}, header")
    return len(header.keys() - {"__metadata__"}), size


def _check_header(data: bytes, path: Path) -> None:
    """What safetensors itself lets pass: duplicate names, kinds of number we do not read, other formats' files."""
    length = _header_length(data[:8], len(data), path)
    for name, entry in parse_json(data[8 : 8 + length], f"{path}, header").items():
        if name != "__metadata__" and (not isinstance(entry, dict) or entry.get("dtype") not in DTYPES):
            raise RunError(f"{path}: the tensor {name!r:.80} has a data type that is not supported")


def _header_length(start: bytes, size: int, path: Path) -> int:
    """How long the header is in a file of this size that begins so."""
    length = int.from_bytes(start, "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        if start[:2] == b"PK" or start[:1] == b"\x80":
            raise RunError(f"{path}: is a pickle or zip archive, which may hold code; only safetensors is read")
        raise RunError(f"{path}: is cut short or not a safetensors file")
    return length


# --- whole and in shards --------------------------------------------------------------------------------------


def gather_whole(tensor: Tensor) -> Tensor:
    """The whole of a tensor of which this process may hold a shard; all processes must ask together."""
    full = getattr(tensor, "full_tensor", None)
    return cast(Tensor, full()) if full else tensor


def shard_like(tensor: Tensor, own: Tensor) -> Tensor:
    """A whole tensor, sharded like this one."""
    if not hasattr(own, "full_tensor"):
        return tensor
    from torch.distributed.tensor import distribute_tensor

    sharded: Any = own
    return distribute_tensor(tensor, sharded.device_mesh, sharded.placements)


# --- the weights of a module ----------------------------------------------------------------------------------


def copy_weights(module: nn.Module) -> dict[str, Tensor]:
    """A copy of every weight and buffer by its name; one that has several names (tied weights) by the first."""
    return {name: gather_whole(tensor.detach()).clone() for name, tensor in list_weights(module).items()}


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], place: Path | str) -> None:
    """Put the weights back, all or none: names, shapes and kinds of number must be those of the module."""
    own = list_weights(module)
    for name in own.keys() - weights.keys():
        raise RunError(f"{place}: the weight {name!r} is missing")
    for name in weights.keys() - own.keys():
        raise RunError(f"{place}: holds a weight {name!r:.80}, which this model does not have")
    for name, tensor in own.items():
        weight = weights[name]
        if weight.shape != tensor.shape or weight.dtype != tensor.dtype:
            actual, expected = _describe_tensor(weight), _describe_tensor(tensor)
            raise RunError(f"{place}: the weight {name!r} is {actual}, but this model's recipe makes it {expected}")
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(shard_like(weights[name], tensor))


def list_weights(module: nn.Module) -> dict[str, Tensor]:
    """Every weight and buffer by its name; one that has several names by the first."""
    distinct: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        distinct.setdefault(id(tensor), (name, tensor))
    return dict(distinct.values())


def _describe_tensor(tensor: Tensor) -> str:
    shape = " × ".join(map(str, tensor.shape)) or "one number"
    return f"{shape} ({str(tensor.dtype).removeprefix('torch.')})"
