"""ONNX graphs as the JSON that the page runs, with their numbers in one block of bytes."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import AttributeProto, numpy_helper

from ..errors import RunError
from ..layers.quantization import LARGEST

# What page/operators.js and page/graph.js can compute.
OPERATORS = frozenset(
    (
        *("Abs", "Add", "And", "ArgMax", "Cast", "Concat", "ConstantOfShape", "Conv", "Cos", "Div", "Equal", "Erf"),
        *("Exp", "Expand", "Flatten", "GRU", "Gather", "Greater", "GreaterOrEqual", "Identity", "LSTM"),
        *("LayerNormalization", "Less", "LessOrEqual", "MatMul", "Max", "Mod", "Mul", "Neg", "Pad", "RNN", "Range"),
        *(
            "ReduceMax",
            "ReduceMean",
            "ReduceSum",
            "Relu",
            "Reshape",
            "ReverseSequence",
            "Scan",
            "Shape",
            "Sigmoid",
            "Sin",
            "Slice",
        ),
        *("Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "TopK", "Transpose", "Unsqueeze", "Where"),
    )
)
AnyArray = NDArray[Any]
SMALL = 1024  # numbers of a constant that is kept as it is
EXACT = 1e-6  # of its largest number, that a weight may differ from what eight bits say


@dataclass
class PackedGraphs:
    """Graphs as JSON; constants that are alike are kept once."""

    graphs: dict[str, Any] = field(default_factory=dict)
    constants: list[dict[str, Any]] = field(default_factory=list)
    weights: bytearray = field(default_factory=bytearray)
    _known: dict[bytes, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"graphs": self.graphs, "constants": self.constants}

    def add_graph(self, name: str, data: bytes) -> None:
        graph = onnx.load_from_string(data).graph
        self.graphs[name] = {
            **self._describe(graph),
            "constants": {one.name: self.add_constant(numpy_helper.to_array(one)) for one in graph.initializer},
        }

    def _describe(self, graph: Any) -> dict[str, Any]:
        return {
            "inputs": [one.name for one in graph.input],
            "outputs": [one.name for one in graph.output],
            "nodes": [self._node(node) for node in graph.node],
        }

    def _node(self, node: Any) -> dict[str, Any]:
        if node.op_type not in OPERATORS:
            raise RunError(f"the page cannot compute {node.op_type}, which this model is made of")
        attributes = {one.name: self._attribute(one) for one in node.attribute}
        if node.op_type == "Scan":
            reverse = any(attributes["scan_input_directions"])
            attributes = {"body": attributes["body"], "count": attributes["num_scan_inputs"], "reverse": reverse}
        described = {"op": node.op_type, "inputs": [*node.input], "outputs": [*node.output], "attributes": attributes}
        return described | ({"name": node.name.split(".")[0]} if node.name else {})

    def _attribute(self, one: Any) -> Any:
        value = onnx.helper.get_attribute_value(one)
        match one.type:
            case AttributeProto.GRAPH:
                return self._describe(value)
            case AttributeProto.TENSOR:
                return self.add_constant(numpy_helper.to_array(value))
            case AttributeProto.STRING:
                return value.decode()
            case AttributeProto.STRINGS:
                return [text.decode() for text in value]
        return value if isinstance(value, int | float) else [*value]

    def add_constant(self, array: AnyArray) -> int:
        """Its number."""
        key = repr((array.shape, array.dtype)).encode() + array.tobytes()
        if key not in self._known:
            self._known[key] = len(self.constants)
            self.constants.append({"dims": [*array.shape], **self._store(array)})
        return self._known[key]

    def _store(self, array: AnyArray) -> dict[str, Any]:
        if array.dtype == np.int64:
            limits = np.iinfo(np.int32)  # of which the page's whole numbers are; 2³¹ is "to the end"
            return {"kind": "int32", "at": self._write(array.clip(limits.min, limits.max).astype("<i4"))}
        if array.dtype == bool:
            return {"kind": "bool", "at": self._write(array.astype(np.uint8))}
        if array.size >= SMALL and (quantized := find_eight_bits(array)) is not None:
            axis, whole, scales = quantized
            return {"kind": "int8", "at": self._write(whole), "axis": axis, "scales": self._write(scales)}
        return {"kind": "float32", "at": self._write(array.astype("<f4"))}

    def _write(self, array: AnyArray) -> int:
        at = len(self.weights)
        self.weights += array.tobytes()
        return at


def find_eight_bits(array: AnyArray) -> tuple[int, AnyArray, AnyArray] | None:
    """The axis whose places have a scale each, whole numbers, and the scales; None if bytes do not say it exactly.

    Weights that were rounded may be turned and put in another order in a graph: it shows which axis their outputs are.
    """
    for axis in range(array.ndim):
        others = tuple(one for one in range(array.ndim) if one != axis)
        scales = (np.abs(array).max(others, keepdims=True) / LARGEST).astype("<f4")
        whole = np.round(array / np.maximum(scales, np.finfo(np.float32).tiny)).astype(np.int8)
        if np.abs(whole * scales - array).max() <= EXACT * np.abs(array).max():
            return axis, whole, scales
    return None
