"""Packing: weights rounded to eight bits, graphs, tokenizer, examples and scores, put into one HTML file."""

import base64
import json
from copy import deepcopy
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from ..errors import MissingExtra, RunError, SeqloomError
from ..exchange.folder import check_exportable, refuse_existing
from ..exchange.program import Program, describe_run
from ..layers.quantization import quantize_weight
from ..look.charts.picture import encode_png
from ..runs.folder import read_scores
from ..runs.json_output import replace_nonfinite
from ..runs.model_card import describe_network
from ..runs.run import Run
from ..tasks.results import Example, Predictions
from ..training.files import write_atomically
from .bundle import bundle
from .html import write_page

EXAMPLES = 100
LARGEST = 20_000  # numbers of an example that is taken along
BIG = 1024  # numbers of a weight that is rounded
MAIN = "page.js"
ENDING = ".html"


def pack(run: Run, path: Path | str, examples: object = None) -> dict[str, Any]:
    """Write a run as one page; what was written, and how far its answers are from the run's.

    `examples` are those that it was trained on, if they came from Python; else they are read from their files again.
    """
    path = Path(path)
    if path.suffix.lower() != ENDING:
        raise RunError(f"{path}: a packed model is a page, whose name ends with {ENDING}")
    refuse_existing(path)
    notes = run.drop_mixture()
    check_exportable(run.model, "packed")
    if run.recipe.data.source_type == "sound":
        raise RunError("this run reads sound, which the page cannot: export it (--to onnx), or serve it")
    program, rounded = describe_run(run), Run(run.folder, run.task, round_weights(run.model))
    graphs, weights = write_graphs(rounded.model, program)
    part, chosen, why = choose_examples(run, examples)
    examples_json, parity = compare(run, rounded, chosen)
    about = describe(run, part, why, parity)
    about["notes"] += [f"{note[0].upper()}{note[1:]}." for note in notes]
    model = {
        **graphs,
        "fields": program.fields,
        "tokenizers": {name.split(".")[0]: json.loads(data) for name, data in program.files.items()},
        "longest": None if program.fields.get("end") == -1 else getattr(run.recipe.data, "max_length", None),
        "examples": examples_json,
        "single": any(np.ndim(one["input"]) == 1 for one in examples_json if not isinstance(one["input"], str)),
        "about": about,
    }
    page = write_page(about["title"], read_style(), model, base64.b64encode(weights).decode(), bundle(sources(), MAIN))
    data = page.encode()
    write_atomically(path, data)
    return {"file": str(path), "bytes": len(data), "notes": notes, **parity}


# --- weights ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def round_weights(model: nn.Module) -> Any:
    """A copy whose large weights are whole numbers from −127 to 127, times a scale for each row."""
    copy = deepcopy(model).cpu().eval()
    for part in copy.modules():
        for name in [*getattr(part, "parametrizations", ())]:
            parametrize.remove_parametrizations(part, name)
    for weight in copy.parameters():
        if weight.dim() > 1 and weight.numel() >= BIG:
            whole, scale = quantize_weight(weight.flatten(1))
            weight.copy_((whole * scale[:, None]).view_as(weight))
    return copy


def write_graphs(model: Any, program: Program) -> tuple[dict[str, Any], bytes]:
    """The graphs as JSON and their numbers as bytes, held against the model first."""
    try:
        from ..exchange.onnx.check import check_model
        from ..exchange.onnx.model import write_model
        from .graphs import PackedGraphs
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("onnx", "onnxruntime"):
            raise
        raise MissingExtra(str(error.name), "onnx") from None
    graphs = write_model(model)
    check_model(model, graphs, program.features, program.steps)
    packed = PackedGraphs()
    for name, data in graphs.items():
        packed.add_graph(name, data)
    return packed.to_json(), bytes(packed.weights)


# --- examples -----------------------------------------------------------------------------------------------------


def choose_examples(run: Run, examples: object) -> tuple[str, list[Example], str]:
    """Examples of the test part, which is named, that are not too large for a page; or why there are none."""
    try:
        part, chosen = run.pick_examples(EXAMPLES, examples)
    except SeqloomError as error:
        return "", [], str(error)
    return part, [one for one in chosen if np.size(numbers_of(one.input)) <= LARGEST], ""


def numbers_of(raw: Any) -> Any:
    return getattr(raw, "values", raw)


def compare(run: Run, rounded: Run, chosen: list[Example]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Examples as the page reads them, with the answers of rounded weights; and how far these are from the run's.

    Numbers are compared where the answer is the same; forecasts are numbers alone.
    """
    if not chosen:
        return [], {"examples": 0, "same_answers": None, "largest_difference": None}
    inputs = [one.input for one in chosen]
    true, answers = (one.predict_many(inputs, 1) for one in (run, rounded))
    pairs = [(right[0], answer[0]) for right, answer in zip(true, answers, strict=True)]
    series = hasattr(pairs[0][0], "values")
    same = pairs if series else [(right, answer) for right, answer in pairs if right.output == answer.output]
    gaps = [measure_gap(asdict(right), asdict(answer)) for right, answer in same]
    described = [describe_example(one, answer) for one, answer in zip(chosen, answers, strict=True)]
    counted = None if series else len(same)
    return described, {
        "examples": len(described),
        "same_answers": counted,
        "largest_difference": max(gaps, default=None),
    }


def describe_example(one: Example, answers: Predictions) -> dict[str, Any]:
    [best, *_] = answers
    raw: dict[str, Any] = {"words": one.text, "target": "" if one.target is not None else one.answer}
    if isinstance(one.input, tuple):
        raw |= {"input": one.input[0], "tag": one.input[1]}
    elif isinstance(one.input, str):
        raw["input"] = one.input
    else:
        raw["input"] = replace_nonfinite(np.asarray(numbers_of(one.input)).tolist())
    if hasattr(one.input, "times"):
        raw["times"] = [str(time) for time in one.input.times]
    if isinstance(one.target, dict):
        raw["ahead"] = replace_nonfinite(one.target)
    if one.picture is not None:
        raw["picture"] = f"data:image/png;base64,{base64.b64encode(encode_png(one.picture)).decode()}"
    expected: Any = getattr(best, "values", None)
    return raw | {"expected": best.output if expected is None else replace_nonfinite(expected)}


def measure_gap(one: Any, other: Any) -> float:
    """The largest difference between numbers at the same place, of numbers above one as a share."""
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) / max(1.0, abs(one)) if np.isfinite(one) and np.isfinite(other) else 0.0
    if isinstance(one, dict):
        return max((measure_gap(value, other[key]) for key, value in one.items() if key != "seconds"), default=0.0)
    if isinstance(one, list | tuple):
        return max((measure_gap(*pair) for pair in zip(one, other, strict=False)), default=0.0)
    return 0.0


def describe_parity(parity: dict[str, Any]) -> str:
    """How far the page is from the run, in words."""
    gap = f"{parity['largest_difference']:.2g}"
    if parity["same_answers"] is None:
        return f"over {parity['examples']} examples, numbers differ from the run's by at most {gap}"
    share = f"{parity['same_answers']} of {parity['examples']} answers are those of the run with all of its bits"
    return f"{share}; numbers of the same answer differ by at most {gap}"


# --- the page -----------------------------------------------------------------------------------------------------


def describe(run: Run, part: str, why: str, parity: dict[str, Any]) -> dict[str, Any]:
    """What the page says of the model."""
    recipe, scores = run.recipe, read_scores(run.folder)
    parameters = sum(weight.numel() for weight in run.model.parameters())
    notes = ["Its large weights are kept in eight bits each. Nothing that you type leaves this page."]
    if parity["largest_difference"] is not None:
        notes.append(f"When it was packed: {describe_parity(parity)}.")
    elif why:
        notes.append(f"There are no examples to compare with: {why}.")
    if run.model.generates:
        notes.append("Answers take the likeliest token each time (a beam of 1).")
    return {
        "title": recipe.about.title or recipe.task,
        "sentence": f"{describe_network(recipe)}; {parameters:,} parameters. It runs in this page.",
        "part": part,
        "split": scores.get("split", ""),
        "scores": {
            name: {"value": one["value"], "baselines": one.get("baselines", {})}
            for name, one in scores.get("scores", {}).items()
        },
        "notes": notes,
    }


def sources() -> dict[str, str]:
    """The page's modules; those of the server's page that it shares are taken from there."""
    texts: dict[str, str] = {}
    for folder in (files("seqloom.serve") / "page", files("seqloom.pack") / "page"):
        texts |= {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".js")}
    return texts


def read_style() -> str:
    shared, own = files("seqloom.serve") / "page" / "style.css", files("seqloom.pack") / "page" / "pack.css"
    return shared.read_text("utf-8") + own.read_text("utf-8")
