"""Layers of a Transformer, one after another, as one call of C: see `run` in `compiled_steps.c`.

What `stepping.py` does with each layer by itself, this does with as many in a row as it knows. Between two steps only
the places of caches change.
"""

from collections.abc import Sequence
from ctypes import Structure, byref, c_double, c_long, c_void_p
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..base import Layer, Pointwise
from ..positions import NoRotation, Rotary
from ..quantization import eight_bits
from ..residual import PostNorm, PreNorm, Residual, ReZero
from ..state import State
from ..transformer import CausalAttention, CrossAttention, SelfAttention, SwiGLU, visible
from . import compiled_steps

OWN, MEMORY, EACH, WHOLE = range(4)
JOINS: dict[type[Residual], int] = {PostNorm: 0, PreNorm: 1, ReZero: 2}
BENDS: dict[type[nn.Module], int] = {nn.ReLU: 0, nn.GELU: 1, SwiGLU: 2}


class LinearPlaces(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("weights", "scale", "bias")),
        *((name, c_long) for name in ("inputs", "outputs")),
    ]


class LayerPlaces(Structure):
    _fields_ = [
        *((name, c_long) for name in ("kind", "join", "act")),
        *((name, LinearPlaces) for name in ("into", "out")),
        *((name, c_void_p) for name in ("norm_scale", "norm_shift", "share")),
        ("centered", c_long),
        ("epsilon", c_double),
        *((name, c_long) for name in ("heads", "width", "value_width")),
        ("steps", c_void_p),
        *((name, c_long) for name in ("source_stride", "first", "length", "valid_stride", "per")),
        *((name, c_void_p) for name in ("valid", "sines", "cosines")),
    ]


def plain_parts(layer: Pointwise) -> list[nn.Module]:
    return [module for module in layer.module if not isinstance(module, nn.Dropout)]


def products(layer: Layer) -> tuple[nn.Linear, nn.Linear] | None:
    """The two products of a layer that is known here."""
    inner = layer.layer if isinstance(layer, Residual) else None
    found: Sequence[nn.Module] = ()
    if isinstance(inner, CausalAttention | SelfAttention) and isinstance(inner.turn, NoRotation | Rotary):
        whole = isinstance(inner, SelfAttention) and inner.window
        found = () if whole else (inner.project, inner.attend.out)
    elif isinstance(inner, CrossAttention):
        found = inner.query, inner.attend.out
    elif isinstance(inner, Pointwise) and len(parts := plain_parts(inner)) == 3 and bend(parts[1]) is not None:
        found = parts[0], parts[2]
    if type(layer) not in JOINS or [type(one) for one in found] != [nn.Linear, nn.Linear]:
        return None
    normed = getattr(layer, "norm", None)
    if normed is not None and compiled_steps.norm_of(normed) is None:
        return None
    first, second = found
    assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)
    return (first, second) if compiled_steps.usable(first.weight) else None


def bend(module: nn.Module) -> int | None:
    exact = not isinstance(module, nn.GELU) or module.approximate == "none"
    return BENDS.get(type(module)) if exact else None


class Fused:
    """Some layers in a row, each known by `products`, as a function of x (B, D) and their states."""

    def __init__(self, known: Sequence[Layer]) -> None:
        layers = [layer for layer in known if isinstance(layer, Residual)]  # which all of them are
        self.places: Any = (LayerPlaces * len(layers))()
        self.each = list(self.places)
        self.alive: list[Any] = []  # what the places point to
        self.widest = max(self.fill(*pair) for pair in zip(self.each, layers, strict=True))
        [self.dtype] = {next(layer.parameters()).dtype for layer in layers}
        self.act = whole_run(self.dtype)
        turns = [getattr(layer.layer, "turn", None) for layer in layers]
        self.turning = [number for number, turn in enumerate(turns) if isinstance(turn, Rotary)]
        self.rates = [turn.rate for turn in turns if isinstance(turn, Rotary)]
        self.windows = [inner.window if isinstance(inner := layer.layer, CausalAttention) else 0 for layer in layers]

    def fill(self, place: Any, layer: Residual) -> int:
        """Write down what stays the same; the widest thing that the layer makes."""
        inner, found = layer.layer, products(layer)
        assert found is not None
        place.join = JOINS[type(layer)]
        for name, linear in zip(("into", "out"), found, strict=True):
            layout = compiled_steps.kept_layout(linear.weight, linear.bias, eight_bits.get())
            self.alive.append(layout)
            pointers = [one.data_ptr() for one in layout] + [None] * (3 - len(layout))
            setattr(place, name, LinearPlaces(*pointers, linear.in_features, linear.out_features))
        if isinstance(layer, ReZero):
            place.share = layer.share.data_ptr()
        else:
            norm = compiled_steps.norm_of(layer.norm)  # type: ignore[arg-type]
            assert norm is not None
            self.alive.append(norm)
            place.norm_scale, place.norm_shift = norm.scale.data_ptr(), norm.shift.data_ptr()
            place.centered, place.epsilon = norm.centered, norm.epsilon
        if isinstance(inner, Pointwise):
            place.kind, place.act = EACH, bend(plain_parts(inner)[1])
        else:
            assert isinstance(inner, CausalAttention | CrossAttention | SelfAttention)
            place.kind = {CausalAttention: OWN, CrossAttention: MEMORY, SelfAttention: WHOLE}[type(inner)]
            (place.heads, place.width, place.value_width), *_ = compiled_steps.shape(inner.attend)
        return max(size for linear in found for size in (linear.in_features, linear.out_features))

    def __call__(self, x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        after: list[State] = list(states)
        alive: list[Any] = []
        counts = [states[number][1] for number in self.turning]  # all the same: they have read the same
        if counts:
            alive.append(self.turn(counts[0][:, None]))
            counts = [counts[0] + 1] * len(counts)
        counted = dict(zip(self.turning, counts, strict=True))
        for number, place in enumerate(self.each):
            if place.kind == OWN:
                cache = states[number][0].grown(1)
                after[number] = cache, counted.get(number)
                alive.append(self.point_to_own(place, cache, self.windows[number]))
            elif place.kind == MEMORY:
                keys_values, mask = (tensor.contiguous() for tensor in states[number].tensors)
                place.steps, place.source_stride = keys_values.data_ptr(), keys_values.stride(0)
                place.length, place.per = keys_values.shape[1], states[number].width
                place.valid, place.valid_stride = mask.data_ptr(), mask.stride(0)
                alive.append((keys_values, mask))
        y = self.run(x)
        for number, window in enumerate(self.windows):
            if window:
                after[number] = after[number][0].trimmed(window), after[number][1]
        return y, after

    def read(self, x: Tensor, mask: Tensor) -> Tensor:
        """Whole sequences x (B, T, D) of an encoder's layers, which have no state; padding comes out as anything."""
        mask = mask.contiguous()
        alive = self.turn(mask.cumsum(1) - 1) if self.turning else None
        for place in self.each:
            place.length = place.per = x.shape[1]
            place.valid, place.valid_stride = mask.data_ptr(), mask.stride(0)
        y = self.run(x.flatten(0, 1)).view_as(x)
        del alive
        return y

    def turn(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Tell the layers that turn by how much, at these positions (B, T)."""
        angle = positions.view(-1, 1) * self.rates[0]
        sines, cosines = angle.sin(), angle.cos()
        for number in self.turning:
            self.each[number].sines, self.each[number].cosines = sines.data_ptr(), cosines.data_ptr()
        return sines, cosines

    def run(self, x: Tensor) -> Tensor:
        rows, size = x.shape
        y = x.clone(memory_format=torch.contiguous_format)
        room = x.new_empty(rows * (2 * self.widest + size))
        wide = room.data_ptr()
        other = wide + rows * self.widest * room.itemsize
        normal = other + rows * self.widest * room.itemsize
        self.act(len(self.each), byref(self.places), rows, size, y.data_ptr(), wide, other, normal)
        return y

    def point_to_own(self, place: Any, cache: Any, window: int) -> Tensor | None:
        steps, valid = cache.store.steps, cache.valid
        if window and valid is not None:
            near = visible(cache, 1, window)
            assert near is not None
            valid = near[:, 0].contiguous()
        place.steps, place.source_stride, place.length, place.per = steps.data_ptr(), steps.stride(0), cache.length, 1
        place.first = max(0, cache.length - window) if window and valid is None else 0
        place.valid, place.valid_stride = (None, 0) if valid is None else (valid.data_ptr(), valid.stride(0))
        found: Tensor | None = valid
        return found


@cache
def whole_run(dtype: torch.dtype) -> Any:
    found: Any = compiled_steps.symbol("run", dtype)
    found.argtypes, found.restype = [c_long, c_void_p, c_long, c_long, *[c_void_p] * 4], None
    return found
