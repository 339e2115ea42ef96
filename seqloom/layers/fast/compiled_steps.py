"""Single steps of a decoder in C (`compiled_steps.c`), for those who ask for compiled kernels.

Each function here does what the one of the same name in `steps.py` and its neighbors spells out in PyTorch's
operations; a law proves them equal. Weights are laid out anew once, and stay so for as long as nobody changes them.
"""

from collections.abc import Callable
from ctypes import c_double, c_long, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

from ..cache import Cache
from ..quantization import eight_bits, quantize_weight
from ..state import Shared
from . import compiled

if TYPE_CHECKING:
    from ..attention import AdditiveAttention, MultiHeadAttention

KINDS = {"n": c_long, "p": c_void_p, "d": c_double}
ARGUMENTS = {
    "product": "nnnpnppn",
    "rounded_product": "nnnpnppppn",
    "attend": "nnnnnpnpnnnnpnpp",
    "look": "nnnnnpppppp",
    "leading": "nnnppp",
    "gelu": "np",
    "add_norm": "nnppppndp",
    "lstm_step": "nnppppp",
    "gru_step": "nnpppp",
}
PANEL = 64  # bytes: how many numbers stand side by side in a panel of weights depends on their kind

Change = Callable[[Tensor], Tensor]
laid_out: Any = WeakTensorKeyDictionary()  # weights -> how they were then, and their layout


def usable(weight: Tensor) -> bool:
    """Whether steps with these weights can be compiled, and somebody wants it."""
    return compiled.asked() and possible(weight)


def possible(weight: Tensor) -> bool:
    return weight.dtype in compiled.NAMES and weight.device.type == "cpu" and compiled.library() is not None


def symbol(name: str, dtype: torch.dtype) -> Any:
    return getattr(compiled.library(), f"{name}_{compiled.NAMES[dtype]}")


@cache
def function(name: str, dtype: torch.dtype) -> Any:
    found = symbol(name, dtype)
    found.argtypes, found.restype = [KINDS[kind] for kind in ARGUMENTS[name]], None
    return found


def kept_layout(weight: Tensor, bias: Tensor | None, eight: bool) -> tuple[Tensor, ...]:
    """The weights as C reads them, laid out when they are first asked for and after every change."""
    parts = [weight] if bias is None else [weight, bias]
    now = (eight, *((id(part), part._version, part.data_ptr()) for part in parts))
    then, found = laid_out.get(weight, (None, ()))
    if then != now:
        flat = weight.new_zeros(weight.shape[0]) if bias is None else bias.detach()
        found = bytes_layout(weight.detach(), flat) if eight else (numbers_layout(weight.detach(), flat),)
        laid_out[weight] = now, found
    layout: tuple[Tensor, ...] = found
    return layout


def spread(weight: Tensor, width: int) -> Tensor:
    """(panels, inputs, width): the weights of each input, of so many outputs at a time."""
    return F.pad(weight, (0, 0, 0, -weight.shape[0] % width)).view(-1, width, weight.shape[1]).transpose(1, 2)


def numbers_layout(weight: Tensor, bias: Tensor) -> Tensor:
    """(panels, 1 + inputs, width): the biases stand before the weights."""
    width = PANEL // weight.itemsize
    return torch.cat([spread(bias[:, None], width), spread(weight, width)], 1).contiguous()


def bytes_layout(weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    width = PANEL // weight.itemsize
    whole, scale = quantize_weight(weight)
    room = -weight.shape[0] % width
    return spread(whole, width).contiguous(), F.pad(scale, (0, room)), F.pad(bias, (0, room))


def product(weight: Tensor, bias: Tensor | None) -> Change:
    """W x + b of x (B, inputs)."""
    (outputs, inputs), eight = weight.shape, eight_bits.get()
    layout = kept_layout(weight, bias, eight)
    act, places = function("rounded_product" if eight else "product", weight.dtype), [one.data_ptr() for one in layout]

    def change(x: Tensor, alive: tuple[Tensor, ...] = layout) -> Tensor:
        rows = x.shape[0]
        y = x.new_empty(rows, outputs)
        act(rows, inputs, outputs, x.data_ptr(), x.stride(0), *places, y.data_ptr(), outputs)
        return y

    return change


def gelu(dtype: torch.dtype) -> Change:
    """In place."""
    act = function("gelu", dtype)

    def change(x: Tensor) -> Tensor:
        act(x.numel(), x.data_ptr())
        return x

    return change


class Norm(NamedTuple):
    """A layer norm, or a root mean square norm, which is not centered."""

    scale: Tensor
    shift: Tensor
    centered: bool
    epsilon: float


def norm_of(module: nn.Module) -> Norm | None:
    """None for a norm that is not known here."""
    if not isinstance(module, nn.LayerNorm | nn.RMSNorm) or len(module.normalized_shape) != 1 or module.weight is None:
        return None
    centered, scale = isinstance(module, nn.LayerNorm), module.weight
    shift = module.bias if isinstance(module, nn.LayerNorm) and module.bias is not None else torch.zeros_like(scale)
    return Norm(scale, shift, centered, torch.finfo(scale.dtype).eps if module.eps is None else module.eps)


def add_norm(module: nn.Module) -> Callable[[Tensor, Tensor], Tensor] | None:
    """x (B, D) and its change, added and normalized; none for a norm that is not known here."""
    norm = norm_of(module)
    if norm is None:
        return None
    scale, shift, centered, epsilon = norm
    act = function("add_norm", scale.dtype)

    def change(x: Tensor, more: Tensor) -> Tensor:
        y, (rows, size) = torch.empty_like(x), x.shape
        places = x.data_ptr(), more.data_ptr(), scale.data_ptr(), shift.data_ptr()
        act(rows, size, *places, centered, epsilon, y.data_ptr())
        return y

    return change


def attend_own(heads: "MultiHeadAttention") -> Callable[[Tensor, Cache, int, Tensor | None], Tensor]:
    """What queries see of a cache from the step `first` on, when the keys and values beside them have joined it."""
    act = function("attend", heads.out.weight.dtype)
    sizes, query_size, seen_size = shape(heads)
    stride = heads.key_value_size

    def look(projected: Tensor, cache: Cache, first: int, valid: Tensor | None) -> Tensor:
        steps, rows = cache.store.steps, projected.shape[0]
        y, query = projected.new_empty(rows, seen_size), projected.data_ptr()
        marks = (None, 0) if valid is None else (valid.data_ptr(), valid.stride(0))
        fresh = query + query_size * projected.itemsize
        own = query, projected.stride(0), steps.data_ptr(), stride, steps.stride(0), first, cache.length
        act(rows, 1, *sizes, *own, *marks, fresh, y.data_ptr())
        return y

    return look


def attend_memory(heads: "MultiHeadAttention") -> Callable[[Tensor, Shared], Tensor]:
    """What queries see of a memory, which some rows share."""
    act = function("attend", heads.out.weight.dtype)
    sizes, _, seen_size = shape(heads)
    stride = heads.key_value_size

    def look(query: Tensor, memory: Shared) -> Tensor:
        keys_values, mask = (tensor.contiguous() for tensor in memory.tensors)
        rows, length = query.shape[0], keys_values.shape[1]
        y = query.new_empty(rows, seen_size)
        places = query.data_ptr(), query.stride(0), keys_values.data_ptr(), stride, keys_values.stride(0)
        marks = mask.data_ptr(), mask.stride(0)
        act(rows, memory.width, *sizes, *places, 0, length, *marks, None, y.data_ptr())
        return y

    return look


def shape(heads: "MultiHeadAttention") -> tuple[tuple[int, int, int], int, int]:
    return (heads.heads, heads.width, heads.value_width), heads.query_size, heads.heads * heads.value_width


def additive(attention: "AdditiveAttention") -> Callable[[Tensor, Shared], Tensor]:
    """What queries (B, Q) see of a memory by additive scores."""
    shift, judge = product(attention.shift.weight, attention.shift.bias), attention.judge.weight
    act = function("look", judge.dtype)

    def look(query: Tensor, memory: Shared) -> Tensor:
        keys, values, mask = (tensor.contiguous() for tensor in memory.tensors)
        asked, rows, (_, length, size) = shift(query), query.shape[0], keys.shape
        y = query.new_empty(rows, values.shape[2])
        places = asked.data_ptr(), keys.data_ptr(), values.data_ptr(), mask.data_ptr(), judge.data_ptr(), y.data_ptr()
        act(rows, memory.width, length, size, values.shape[2], *places)
        return y

    return look


def lstm(size: int, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """h and c from W x + b, U h and the c before."""
    act = function("lstm_step", dtype)

    def step(of_x: Tensor, of_h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        c = c.contiguous()
        h, after = torch.empty_like(c), torch.empty_like(c)
        act(c.shape[0], size, of_x.data_ptr(), of_h.data_ptr(), c.data_ptr(), after.data_ptr(), h.data_ptr())
        return h, after

    return step


def gru(size: int, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """h from W x + b, U h + b and the h before."""
    act = function("gru_step", dtype)

    def step(of_x: Tensor, of_h: Tensor, h: Tensor) -> Tensor:
        h = h.contiguous()
        after = torch.empty_like(h)
        act(h.shape[0], size, of_x.data_ptr(), of_h.data_ptr(), h.data_ptr(), after.data_ptr())
        return after

    return step


def leading(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The log-probabilities (N, count) of the likeliest tokens by logits (N, V), and which they are."""
    rows, size = logits.shape
    values, tokens = logits.new_empty(rows, count), logits.new_empty(rows, count, dtype=torch.long)
    act = function("leading", logits.dtype)
    act(rows, size, count, logits.data_ptr(), values.data_ptr(), tokens.data_ptr())
    return values, tokens
