"""Graphs as onnxruntime runs them, held against the run."""

from typing import Any

import onnxruntime

from ...models import Generator, Labeler
from ..check import Check, Graph
from ..check import check_model as check_exported
from .model import Graphs


def open_graph(data: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def check_model(model: Labeler | Generator, graphs: Graphs, features: int = 0, steps: int = 0) -> list[Check]:
    """Differences at five sizes; refused if one is too large."""

    def open_session(name: str) -> Graph:
        session = open_graph(graphs[name])
        outputs, inputs = ([one.name for one in some] for some in (session.get_outputs(), session.get_inputs()))

        def run(**arrays: Any) -> dict[str, Any]:
            feeds = {name: value for name, value in arrays.items() if name in inputs}
            return dict(zip(outputs, session.run(None, feeds), strict=True))

        return run

    return check_exported(model, open_session, features, steps)
