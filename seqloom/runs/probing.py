"""Linear probes of every layer of a run on labels that a person gives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ..counts import format_count
from ..data.formats.lines import find_line_fault, read_lines
from ..data.pretokenized import split_elements
from ..errors import DataError
from ..look.measures.probes import NONE, Probe, fit_probes
from ..models import INPUTS, SOURCE

if TYPE_CHECKING:
    from .run import Run

FEWEST = 2  # inputs: on some a probe is fitted, on others it is judged


def probe_layers(run: "Run", inputs: Sequence[Any], labels: Sequence[str | Sequence[str]]) -> list[Probe]:
    """One probe a layer. The labels of an input are one for all of it, or one for each of its elements."""
    if len(inputs) != len(labels) or len(inputs) < FEWEST:
        raise DataError(
            f"{format_count(len(inputs), 'input')} with {format_count(len(labels), 'label')}: a probe needs one "
            f"each, and {FEWEST} inputs"
        )
    numbers: dict[str, int] = {}
    batches, known = [], []
    before = ("source" not in run.task.fields) + ("tag" in run.task.fields)  # elements in front of an input's own
    for place, (raw, row_labels) in enumerate(zip(inputs, labels, strict=True), 1):
        raw = run.task.shape.accept_input(raw)
        shown = run.task.shape.inspect(raw, run.predict(raw)[0].output)
        names = split_elements(row_labels) if isinstance(row_labels, str) else list(row_labels)
        own = len(shown.elements) - before
        if len(names) not in (1, own):
            elements = " ".join(shown.elements[before:])
            raise DataError(
                f"input {place} has {format_count(len(names), 'label')} for {format_count(own, 'element')}: "
                f"{elements[:80]}"
            )
        ids = [numbers.setdefault(name, len(numbers)) for name in names]
        batches.append(shown.batch)
        known.append(torch.tensor([[NONE] * before + (ids * own if len(ids) == 1 else ids)]))
    side = SOURCE if batches[0].source else INPUTS
    return fit_probes(run.net, batches, known, side)


def read_labels(file: str, encoding: str) -> tuple[list[str], list[str]]:
    """The inputs and labels of a file: an input, a tab and its labels on each line."""
    inputs, labels = [], []
    for line in read_lines(file, encoding):
        if fault := find_line_fault(line, file, encoding):
            raise fault.error()
        if not line.text.strip():
            continue
        text, tab, label_text = line.text.rpartition("\t")
        if not tab or not label_text.strip():
            raise DataError("an input, a tab and its labels were expected", file, line.number)
        inputs.append(text)
        labels.append(label_text)
    return inputs, labels
