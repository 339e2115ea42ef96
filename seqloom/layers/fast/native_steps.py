"""Single steps of a decoder in native code (`native/`).

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
from ..state import SharedLeaf
from .native_kernels import symbol

if TYPE_CHECKING:
    from ..attention import AdditiveAttention, MultiHeadAttention

KINDS = {"n": c_long, "p": c_void_p, "d": c_double}
ARGUMENTS = {
    "product": "nnnpnppn",
    "int8_product": "nnnpnppppppn",
    "attend": "nnnnnpnpnnnnpnpp",
    "look": "nnnnnpppppp",
    "leading": "nnnppp",
    "gelu": "np",
    "add_norm": "nnppppndp",
    "lstm_step": "nnppppp",
    "gru_step": "nnpppp",
}
Change = Callable[[Tensor], Tensor]
laid_out: Any = WeakTensorKeyDictionary()  # weights -> how they were then, and their layout


@cache
def function(name: str, dtype: torch.dtype) -> Any:
    kernel = symbol(name, dtype)
    kernel.argtypes, kernel.restype = [KINDS[kind] for kind in ARGUMENTS[name]], None
    return kernel


def rows_of(x: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """x (B, size) as C may walk through it: numbers of a row side by side, and as many as it will read."""
    if x.dim() != 2 or x.shape[1] != size or x.dtype != dtype or x.device.type != "cpu":
        raise ValueError(f"expected {dtype} (B, {size}) on the CPU, but got {x.dtype} {tuple(x.shape)} on {x.device}")
    return x if x.stride(1) == 1 or x.numel() == 0 else x.contiguous()


def make_whole(x: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """x of this very shape, contiguous."""
    if x.shape != shape or x.dtype != dtype or x.device.type != "cpu":
        raise ValueError(f"expected {dtype} {shape} on the CPU, but got {x.dtype} {tuple(x.shape)} on {x.device}")
    return x.contiguous()


@cache
def panel(dtype: torch.dtype) -> int:
    """How many outputs stand side by side in a panel of weights: as the processor likes it."""
    kernel = symbol("panel", dtype)
    kernel.restype = c_long
    return int(kernel())


def get_layout(weight: Tensor, bias: Tensor | None, eight: bool) -> tuple[Tensor, ...]:
    """The weights as C reads them, laid out when they are first asked for and after every change."""
    parts = [weight] if bias is None else [weight, bias]
    now = (eight, *((id(part), part._version, part.data_ptr()) for part in parts))
    then, layout = laid_out.get(weight, (None, ()))
    if then != now:
        flat = weight.new_zeros(weight.shape[0]) if bias is None else bias.detach()
        layout = bytes_layout(weight.detach(), flat) if eight else (numbers_layout(weight.detach(), flat),)
        laid_out[weight] = now, layout
    return layout


def spread(weight: Tensor, width: int) -> Tensor:
    """(panels, inputs, width): the weights of each input, of so many outputs at a time."""
    return F.pad(weight, (0, 0, 0, -weight.shape[0] % width)).view(-1, width, weight.shape[1]).transpose(1, 2)


def numbers_layout(weight: Tensor, bias: Tensor) -> Tensor:
    """(panels, 1 + inputs, width): the biases stand before the weights."""
    width = panel(weight.dtype)
    return torch.cat([spread(bias[:, None], width), spread(weight, width)], 1).contiguous()


def bytes_layout(weight: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """Bytes (panels, inputs / 4, width, 4), the scale, the bias and the sum of the bytes of each output."""
    width = panel(weight.dtype)
    whole, scale = quantize_weight(weight)
    room = -weight.shape[0] % width
    padded = F.pad(whole, (0, -weight.shape[1] % 4, 0, room))
    fours = padded.view(-1, width, padded.shape[1] // 4, 4).transpose(1, 2).contiguous()
    return fours, F.pad(scale, (0, room)), F.pad(bias, (0, room)), padded.sum(1, dtype=torch.int32)


def product(weight: Tensor, bias: Tensor | None) -> Change:
    """W x + b of x (B, inputs)."""
    (outputs, inputs), eight = weight.shape, eight_bits.get()
    layout = get_layout(weight, bias, eight)
    act, places = function("int8_product" if eight else "product", weight.dtype), [one.data_ptr() for one in layout]

    def change(x: Tensor, alive: tuple[Tensor, ...] = layout) -> Tensor:
        x = rows_of(x, inputs, weight.dtype)
        rows = x.shape[0]
        y = x.new_empty(rows, outputs)
        room = x.new_empty(rows * (inputs // 4 + 2)) if eight else None
        more = () if room is None else (room.data_ptr(),)
        act(rows, inputs, outputs, x.data_ptr(), x.stride(0), *places, *more, y.data_ptr(), outputs)
        return y

    return change


def gelu(dtype: torch.dtype) -> Change:
    """In place."""
    act = function("gelu", dtype)

    def change(x: Tensor) -> Tensor:
        if x.dtype != dtype or not x.is_contiguous():
            return F.gelu(x)
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
    centered, scale = isinstance(module, nn.LayerNorm), module.weight.contiguous()
    shift = module.bias if isinstance(module, nn.LayerNorm) and module.bias is not None else torch.zeros_like(scale)
    return Norm(scale, shift, centered, torch.finfo(scale.dtype).eps if module.eps is None else module.eps)


def add_norm(module: nn.Module) -> Callable[[Tensor, Tensor], Tensor] | None:
    """x (B, D) and its change, added and normalized; none for a norm that is not known here."""
    norm = norm_of(module)
    if norm is None:
        return None
    scale, shift, centered, epsilon = norm
    size = len(scale)
    act = function("add_norm", scale.dtype)

    def change(x: Tensor, more: Tensor) -> Tensor:
        x = make_whole(x, (x.shape[0], size), scale.dtype)
        more, y, rows = make_whole(more, (x.shape[0], size), scale.dtype), torch.empty_like(x), x.shape[0]
        places = x.data_ptr(), more.data_ptr(), scale.data_ptr(), shift.data_ptr()
        act(rows, size, *places, centered, epsilon, y.data_ptr())
        return y

    return change


def check_cache(steps: Tensor, rows: int, length: int, stride: int, dtype: torch.dtype) -> None:
    """That so many rows have room for so many steps, which stand side by side."""
    fits = steps.dim() == 3 and steps.shape[0] >= rows and steps.shape[1] >= length >= 1 and steps.shape[2] == stride
    beside = steps.stride(2) == 1 and (steps.shape[1] == 1 or steps.stride(1) == stride)
    if not fits or not beside or steps.dtype != dtype:
        raise ValueError(f"a cache {tuple(steps.shape)} has no room for {rows} rows of {length} steps of {stride}")


def check_marks(valid: Tensor | None, rows: int, length: int) -> None:
    if valid is None:
        return
    if valid.dtype != torch.bool or valid.shape[0] < rows or valid.shape[1] < length or valid.stride(1) != 1:
        raise ValueError(f"marks {tuple(valid.shape)} do not belong to {rows} rows of {length} steps")


def check_mask(mask: Tensor, sources: int, length: int) -> Tensor:
    return make_whole(mask, (sources, length), torch.bool)


def check_sharing(rows: int, width: int, sources: int) -> None:
    if rows != width * sources:
        raise ValueError(f"{rows} rows do not share {sources} sources by {width}")


def attend_own(heads: "MultiHeadAttention") -> Callable[[Tensor, Cache, int, Tensor | None], Tensor]:
    """What queries see of a cache from the step `first` on, when the keys and values beside them have joined it."""
    dtype = heads.out.weight.dtype
    act = function("attend", dtype)
    sizes, query_size, seen_size = shape(heads)
    stride = heads.key_value_size

    def look(projected: Tensor, cache: Cache, first: int, valid: Tensor | None) -> Tensor:
        steps = cache.store.steps
        projected = rows_of(projected, query_size + stride, dtype)
        rows = projected.shape[0]
        check_cache(steps, rows, cache.length, stride, dtype)
        check_marks(valid, rows, cache.length)
        y, query = projected.new_empty(rows, seen_size), projected.data_ptr()
        marks = (None, 0) if valid is None else (valid.data_ptr(), valid.stride(0))
        fresh = query + query_size * projected.itemsize
        own = query, projected.stride(0), steps.data_ptr(), stride, steps.stride(0), first, cache.length
        act(rows, 1, *sizes, *own, *marks, fresh, y.data_ptr())
        return y

    return look


def attend_memory(heads: "MultiHeadAttention") -> Callable[[Tensor, SharedLeaf], Tensor]:
    """What queries see of a memory, which some rows share."""
    dtype = heads.out.weight.dtype
    act = function("attend", dtype)
    sizes, query_size, seen_size = shape(heads)
    stride = heads.key_value_size

    def look(query: Tensor, memory: SharedLeaf) -> Tensor:
        query, (keys_values, mask) = rows_of(query, query_size, dtype), memory.tensors
        rows, (sources, length, _) = query.shape[0], keys_values.shape
        check_sharing(rows, memory.width, sources)
        keys_values, mask = make_whole(keys_values, (sources, length, stride), dtype), check_mask(mask, sources, length)
        y = query.new_empty(rows, seen_size)
        places = query.data_ptr(), query.stride(0), keys_values.data_ptr(), stride, keys_values.stride(0)
        marks = mask.data_ptr(), mask.stride(0)
        act(rows, memory.width, *sizes, *places, 0, length, *marks, None, y.data_ptr())
        return y

    return look


def shape(heads: "MultiHeadAttention") -> tuple[tuple[int, int, int], int, int]:
    return (heads.heads, heads.width, heads.value_width), heads.query_size, heads.heads * heads.value_width


def attend_additive(attention: "AdditiveAttention") -> Callable[[Tensor, SharedLeaf], Tensor]:
    """What queries (B, Q) see of a memory by additive scores."""
    shift, judge = product(attention.shift.weight, attention.shift.bias), attention.judge.weight.contiguous()
    act, size = function("look", judge.dtype), judge.shape[1]

    def look(query: Tensor, memory: SharedLeaf) -> Tensor:
        keys, values, mask = memory.tensors
        projected, rows, (sources, length, _) = shift(query), query.shape[0], keys.shape
        check_sharing(rows, memory.width, sources)
        keys, mask = make_whole(keys, (sources, length, size), judge.dtype), check_mask(mask, sources, length)
        values = make_whole(values, (sources, length, values.shape[2]), judge.dtype)
        y = query.new_empty(rows, values.shape[2])
        places = (
            projected.data_ptr(),
            keys.data_ptr(),
            values.data_ptr(),
            mask.data_ptr(),
            judge.data_ptr(),
            y.data_ptr(),
        )
        act(rows, memory.width, length, size, values.shape[2], *places)
        return y

    return look


def lstm(size: int, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """h and c from W x + b, U h and the c before."""
    act = function("lstm_step", dtype)

    def step(of_x: Tensor, of_h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        c = make_whole(c, (c.shape[0], size), dtype)
        of_x, of_h = (make_whole(one, (c.shape[0], 4 * size), dtype) for one in (of_x, of_h))
        h, after = torch.empty_like(c), torch.empty_like(c)
        act(c.shape[0], size, of_x.data_ptr(), of_h.data_ptr(), c.data_ptr(), after.data_ptr(), h.data_ptr())
        return h, after

    return step


def gru(size: int, dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """h from W x + b, U h + b and the h before."""
    act = function("gru_step", dtype)

    def step(of_x: Tensor, of_h: Tensor, h: Tensor) -> Tensor:
        h = make_whole(h, (h.shape[0], size), dtype)
        of_x, of_h = (make_whole(one, (h.shape[0], 3 * size), dtype) for one in (of_x, of_h))
        after = torch.empty_like(h)
        act(h.shape[0], size, of_x.data_ptr(), of_h.data_ptr(), h.data_ptr(), after.data_ptr())
        return after

    return step


def find_largest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The log-probabilities (N, count) of the likeliest tokens by logits (N, V), and which they are."""
    rows, size = logits.shape
    logits = logits.contiguous()
    if not 0 < count <= size:
        raise ValueError(f"the {count} likeliest of {size} tokens were asked for")
    values, tokens = logits.new_empty(rows, count), logits.new_empty(rows, count, dtype=torch.long)
    act = function("leading", logits.dtype)
    act(rows, size, count, logits.data_ptr(), values.data_ptr(), tokens.data_ptr())
    return values, tokens
