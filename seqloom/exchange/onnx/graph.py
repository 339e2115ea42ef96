"""A graph that is written node by node, with values that can be added and multiplied as tensors are.

Values know no numbers: each is the name of what a node will compute. Constants are kept once, in the outermost graph,
where the bodies of loops see them too.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor

from ...errors import RunError

OPSET = 17  # the oldest that has layer normalization: what more programs can run
IR_VERSION = 8
LARGEST = 2**31 - 1  # bytes of a file of this format


class Shape(NamedTuple):
    """Of an input or an output: what it holds, and its axes, those that may be of any length by name."""

    axes: tuple[str | int, ...]
    kind: int = TensorProto.FLOAT


class Value:
    """What a node of the graph computes."""

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> "Value":
        return self.graph.add("Add", self, other)

    def __radd__(self, other: Any) -> "Value":
        return self.graph.add("Add", other, self)

    def __sub__(self, other: Any) -> "Value":
        return self.graph.add("Sub", self, other)

    def __rsub__(self, other: Any) -> "Value":
        return self.graph.add("Sub", other, self)

    def __mul__(self, other: Any) -> "Value":
        return self.graph.add("Mul", self, other)

    def __rmul__(self, other: Any) -> "Value":
        return self.graph.add("Mul", other, self)

    def __truediv__(self, other: Any) -> "Value":
        return self.graph.add("Div", self, other)

    def __matmul__(self, other: Any) -> "Value":
        return self.graph.add("MatMul", self, other)

    def __neg__(self) -> "Value":
        return self.graph.add("Neg", self)

    def sigmoid(self) -> "Value":
        return self.graph.add("Sigmoid", self)

    def tanh(self) -> "Value":
        return self.graph.add("Tanh", self)

    def relu(self) -> "Value":
        return self.graph.add("Relu", self)

    def exp(self) -> "Value":
        return self.graph.add("Exp", self)

    def softplus(self) -> "Value":
        return self.graph.add("Softplus", self)

    def cast(self, kind: int) -> "Value":
        return self.graph.add("Cast", self, to=kind)

    def transpose(self, *order: int) -> "Value":
        return self.graph.add("Transpose", self, perm=order)

    def unsqueeze(self, *axes: int) -> "Value":
        return self.graph.add("Unsqueeze", self, self.graph.integers(axes))

    def squeeze(self, *axes: int) -> "Value":
        return self.graph.add("Squeeze", self, self.graph.integers(axes))

    def reshape(self, *axes: int) -> "Value":
        """0 is as it was, −1 whatever is left."""
        return self.graph.add("Reshape", self, self.graph.integers(axes))

    def sum(self, axis: int, keep: bool = False) -> "Value":
        return self.graph.add("ReduceSum", self, self.graph.integers((axis,)), keepdims=int(keep))

    def slice(self, axis: int, start: Any, end: Any = None, step: int = 1) -> "Value":
        """From `start` (a number or a value of one element) up to `end`, or all that is left."""
        graph = self.graph
        first, last = (
            one if isinstance(one, Value) else graph.integers((2**31 if one is None else one,)) for one in (start, end)
        )
        return graph.add("Slice", self, first, last, graph.integers((axis,)), graph.integers((step,)))

    def split(self, *sizes: int) -> "list[Value]":
        """Pieces of these sizes of the last axis."""
        if len(sizes) == 1:
            return [self]
        return self.graph.add_many("Split", len(sizes), self, self.graph.integers(sizes), axis=-1)

    def length(self, axis: int) -> "Value":
        """How many elements the axis has: an array of one number."""
        return self.graph.add("Shape", self, start=axis, end=axis + 1)


class Graph:
    def __init__(self) -> None:
        self.nodes: list[Any] = []  # of the innermost body that is being written
        self.constants: dict[str, Any] = {}
        self._known: dict[Any, Value] = {}
        self._outermost = self.nodes
        self._held: list[Any] = []  # what is known by its address has to live as long as this
        self.count = 0
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def add_many(self, kind: str, outputs: int, *inputs: Any, **attributes: Any) -> list[Value]:
        names = ["" if one is None else self.value(one).name for one in inputs]
        while names and not names[-1]:
            names.pop()
        values = [Value(self, self.name()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, [one.name for one in values], **attributes))
        return values

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> Value:
        """A node with one output. A number among the inputs is a constant, None one that is left out."""
        return self.add_many(kind, 1, *inputs, **attributes)[0]

    def value(self, one: Any) -> Value:
        return one if isinstance(one, Value) else self.constant(np.array(one, np.float32), ("scalar", float(one)))

    def constant(self, array: "np.ndarray[Any, Any]", key: Any = None) -> Value:
        if key is not None and key in self._known:
            return self._known[key]
        name = f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        value = Value(self, name)
        if key is not None:
            self._known[key] = value
        return value

    def weight(self, tensor: Tensor) -> Value:
        """A parameter as an initializer of the graph."""
        self._held.append(tensor)
        return self.constant(tensor.detach().cpu().float().numpy(), ("weight", tensor.data_ptr(), tuple(tensor.shape)))

    def transpose(self, tensor: Tensor) -> Value:
        """A matrix of a product, (inputs, outputs). One that is a table of vectors as well is kept once."""
        key = tensor.data_ptr(), tuple(tensor.shape)
        if ("weight", *key) in self._known and ("turned", *key) not in self._known:
            value = Value(self, self.name())
            node = helper.make_node("Transpose", [self._known["weight", *key].name], [value.name], perm=[1, 0])
            self._outermost.append(node)
            self._known["turned", *key] = value
        self._held.append(tensor)
        return self.constant(tensor.detach().cpu().float().numpy().T, ("turned", *key))

    def integers(self, numbers: Sequence[int]) -> Value:
        return self.constant(np.array(numbers, np.int64), ("integers", tuple(numbers)))

    def integer(self, number: int) -> Value:
        return self.constant(np.array(number, np.int64), ("integer", number))

    def input(self, name: str, shape: Shape) -> Value:
        self.inputs.append(helper.make_tensor_value_info(name, shape.kind, shape.axes))
        return Value(self, name)

    def output(self, name: str, value: Value, shape: Shape) -> None:
        self._outermost.append(helper.make_node("Identity", [value.name], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, shape.kind, shape.axes))

    # --- what is used in several places ---

    def concat(self, *values: Value, axis: int = -1) -> Value:
        return values[0] if len(values) == 1 else self.add("Concat", *values, axis=axis)

    def where(self, condition: Value, value: Any, other: Any) -> Value:
        return self.add("Where", condition, value, other)

    def arange(self, length: Value) -> Value:
        """0, 1, … up to a length (an array of one number), without it."""
        return self.add("Range", self.integer(0), length.squeeze(0), self.integer(1))

    def fill(self, number: float, *axes: "Value | int", kind: Any = np.float32) -> Value:
        """A tensor of this shape filled with one number."""
        parts = [one if isinstance(one, Value) else self.integers((one,)) for one in axes]
        return self.add(
            "ConstantOfShape",
            self.concat(*parts, axis=0),
            value=numpy_helper.from_array(np.array([number], kind)),
        )

    def scan(
        self,
        step: Callable[[list[Value], list[Value]], tuple[list[Value], list[Value]]],
        state: Sequence[tuple[Value, Shape]],
        over: Sequence[tuple[Value, Shape]],
        outputs: Sequence[Shape],
        reverse: bool = False,
    ) -> tuple[list[Value], list[Value]]:
        """A loop over axis 1 of what it goes `over`: `step(state, elements)` gives the next state and the outputs.

        Shapes are those of a single step. Backwards, the outputs stand where their elements do.
        """
        around, self.nodes = self.nodes, []
        before = [Value(self, self.name()) for _ in state]
        elements = [Value(self, self.name()) for _ in over]
        after, emitted = step(before, elements)
        # An output must be computed in the body itself, and once.
        ends = [self.add("Identity", one) for one in (*after, *emitted)]
        shapes = [shape for _, shape in (*state, *over)]
        body = helper.make_graph(
            self.nodes,
            self.name(),
            [
                helper.make_tensor_value_info(one.name, shape.kind, shape.axes)
                for one, shape in zip([*before, *elements], shapes, strict=True)
            ],
            [
                helper.make_tensor_value_info(one.name, shape.kind, shape.axes)
                for one, shape in zip(ends, [*[shape for _, shape in state], *outputs], strict=True)
            ],
        )
        self.nodes = around
        results = self.add_many(
            "Scan",
            len(state) + len(outputs),
            *[value for value, _ in (*state, *over)],
            body=body,
            num_scan_inputs=len(over),
            scan_input_axes=[1] * len(over),
            scan_output_axes=[1] * len(outputs),
            scan_input_directions=[int(reverse)] * len(over),
            scan_output_directions=[int(reverse)] * len(outputs),
        )
        return results[: len(state)], results[len(state) :]

    def model(self, name: str) -> bytes:
        """The finished graph, held against the rules of the format."""
        graph = helper.make_graph(self._outermost, name, self.inputs, self.outputs, list(self.constants.values()))
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="seqloom"
        )
        if model.ByteSize() > LARGEST:
            raise RunError(f"the graph has {model.ByteSize():,} bytes, but an ONNX file has at most {LARGEST:,}")
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())
