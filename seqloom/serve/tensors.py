"""Tensors of the Open Inference Protocol v2 as JSON: inputs from them, and answers in them."""

import math
from typing import Any

from ..counts import format_count
from ..errors import DataError
from ..runs.json_output import to_line
from .oip_requests import OUTPUTS, InputTensor


def rows_of(sent: InputTensor) -> list[Any]:
    """The inputs in a tensor: its first axis. Data may be nested, or flat."""
    shape, count = sent.shape, math.prod(sent.shape)
    flat = list(flatten_data(sent.data))
    if sent.name != "input" or not shape or len(flat) != count or not shape[0]:
        actual = f"named {sent.name!r}, of shape {shape}, with {format_count(len(flat), 'value')}"
        raise DataError(
            f"the tensor is {actual}, but one named 'input' was expected, of shape [inputs, …], with as many values"
        )
    kind = str if sent.datatype == "BYTES" else (int, float, bool, type(None))
    if not all(isinstance(one, kind) for one in flat):
        raise DataError(f"the data of the tensor holds what is not {sent.datatype}")
    if sent.datatype == "BYTES" and count == shape[0]:
        return flat  # also [inputs, 1], as many clients send it
    return nest(flat, shape)


def flatten_data(data: Any) -> Any:
    if not isinstance(data, list):
        yield data
        return
    for one in data:
        yield from flatten_data(one)


def nest(flat: list[Any], shape: list[int]) -> list[Any]:
    if len(shape) == 1:
        return flat
    size = len(flat) // shape[0]
    return [nest(flat[start : start + size], shape[1:]) for start in range(0, len(flat), size)] if size else []


def tensor(name: str, answers: list[dict[str, Any]]) -> dict[str, Any]:
    best = [(answer["predictions"] or [{"output": "", "score": 0.0}])[0] for answer in answers]
    data = [to_line(answer) for answer in answers] if name == "prediction" else [one[name] for one in best]
    return {"name": name, "datatype": OUTPUTS[name], "shape": [len(answers)], "data": data}
