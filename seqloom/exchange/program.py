"""What a run has learned besides its weights, as the program beside an exported model reads it: symbols, names, scales.

The only place here that knows what a run folder says about its task.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..data.formats.chorales import LOWEST
from ..data.log_mel import FLOOR, LogMel, LogMelSettings
from ..data.vocabulary import END, SPECIALS, START, UNKNOWN
from ..errors import RunError
from ..fields.subwords import PIECE
from ..fields.text import SUBWORDS
from ..models import Labeler
from . import script, script_reading


class Run(Protocol):
    """What is asked of a run."""

    model: Any
    task: Any

    @property
    def recipe(self) -> Any: ...


RUNTIMES = {"onnx": ("onnxruntime", script.ONNXRUNTIME), "torch": ("torch", script.TORCH)}


@dataclass
class Program:
    """What lies beside the graphs, and what checking them has to know."""

    fields: dict[str, Any]
    title: str = ""
    example: str = ""  # of what is typed
    body: str = ""  # of predict.py
    files: dict[str, bytes] = field(default_factory=dict)  # tokenizers
    features: int = 0  # of an element that goes in as it is
    steps: int = 0  # the only length there is

    def write(self, format: str) -> bytes:
        """predict.py, with the lines by which the runtime of this format opens a graph by its name."""
        runtime, code = RUNTIMES[format]
        modules = ["numpy", runtime, *(["tokenizers"] if self.files else [])]
        imports = {"numpy": "import numpy as np", "tokenizers": "from tokenizers import Tokenizer"}
        lines = [imports.get(module, f"import {module}") for module in modules]
        head = script.HEADER.format(
            title=self.title, example=self.example, needs=", ".join(modules), imports="\n".join(lines)
        )
        return (head + code + self.body).encode()


def describe_run(run: Run) -> Program:
    saved, recipe = run.task.to_json(), run.recipe
    if recipe.task == "forecast":
        return describe_forecast(run, saved["fields"]["series"])
    fields = saved["fields"]
    if recipe.task == "pretrain":
        raise RunError(
            "a pre-trained body is not exported by itself: train a task from it (model.from), and export that run"
        )
    if recipe.task == "transcribe":
        raise RunError("what CTC writes is searched for by prefixes, which an exported program cannot: serve the run")
    if not run.model.generates:
        return describe_labeler(run.model, fields, recipe)
    if fields["target"]["kind"] == "frames":
        return describe_frames(fields, recipe)
    return (
        describe_writer(run.task.target, fields, recipe)
        if run.model.source is None
        else describe_generator(fields, recipe)
    )


def add_side(program: Program, side: str, values: dict[str, Any]) -> None:
    """What a side has learned; subwords have a file of their own, as the library `tokenizers` writes it."""
    if values["kind"] not in SUBWORDS:
        program.fields[side] = values
        return
    pieces = SUBWORDS[values["kind"]].read(values["symbols"][len(SPECIALS) :], values)
    special = [b"", SPECIALS[UNKNOWN].encode(), b"", b""]
    program.fields[side] = {
        "kind": values["kind"],
        "lowercase": values["lowercase"],
        "symbols": values["symbols"],
        "longest": pieces.longest or PIECE,
        "bytes": [one.hex() for one in (*special, *pieces.bytes)],
    }
    library = json.loads(pieces._library.to_str())
    program.files[f"{side}.tokenizer.json"] = json.dumps(library, ensure_ascii=False).encode()


def element_of(values: dict[str, Any], whole: bool) -> list[int]:
    """The shape of one element."""
    match values["kind"]:
        case "spelled":
            return [1 + values["longest"]]
        case "numbers" | "sound":
            return [len(values["mean"]) * (3 if whole else 1)]
    return []


def read_source(program: Program, values: dict[str, Any], recipe: Any) -> tuple[str, str]:
    """The program's way to read an input, and what of it goes to the model."""
    whole = bool(values.get("gaps")) or recipe.model.side("encoder").kind == "gru-d"
    add_side(program, "source", values)
    if values["kind"] == "sound":
        log_mel = LogMel(LogMelSettings(*(values[name] for name in LogMelSettings._fields)))
        more = {"span": log_mel.span, "step": log_mel.hop, "bins": log_mel.bins, "floor": FLOOR}
        program.fields["source"] = values | more
    program.fields |= {"whole": whole, "element": element_of(values, whole), "max_length": recipe.data.max_length}
    program.features = (element_of(values, whole) or [0])[0]
    if values["kind"] == "image":
        return script_reading.write_reading("image", "SOURCE") + script_reading.BATCH_OF_IMAGE, "encode(example)"
    return script_reading.write_reading(
        values["kind"], "SOURCE"
    ) + script_reading.BATCH, f"encode(example)[:{recipe.data.max_length}]"


def finish(program: Program, recipe: Any, *parts: str, cut: str = "", example: str = '"an input" …') -> Program:
    """The program put together; what is no text is typed as JSON."""
    kind = program.fields.get("source", program.fields.get("target", {})).get("kind")
    if kind == "sound":
        main, example = script.MAIN_JSON, "'[0.1, …]'"
    elif kind in ("numbers", "image", None):
        main, example = script.MAIN_JSON, "'[[0.5, …], …]'"
    else:
        main = script.MAIN_TEXT
    if "tag" in program.fields:
        main, example = script.MAIN_TAGGED, f"TAG {example}"
    body = "".join(part.replace("CUT", cut) for part in parts)
    kind = recipe.model.side("encoder" if "source" in program.fields else "decoder").kind
    program.title, program.example = f"Answers of a model ({recipe.task}, {kind}).", example
    program.body = body + main
    return program


def describe_labeler(model: Labeler, fields: dict[str, Any], recipe: Any) -> Program:
    program, target = Program({"target": fields["target"]}), fields["target"]["kind"]
    read, cut = read_source(program, fields["source"], recipe)
    graphs = script.graphs(MODEL="model")
    if target != "tags":
        answers = {"label": script.LABEL, "labels": script.LABELS, "number": script.NUMBER}
        answer = script_reading.find_code(answers, target)
        return finish(program, recipe, graphs, read, answer, cut=cut)
    readout, best = model.head.readout(), script.BEST_TAGS
    if readout is not None and readout.path:
        best = script.BEST_PATH
        program.fields["crf"] = {name: scores.tolist() for name, scores in readout.path.items()}
    return finish(program, recipe, graphs, read, best, script.TAGS, cut=cut)


def describe_generator(fields: dict[str, Any], recipe: Any) -> Program:
    """Texts or drawings about a source."""
    program, target = Program({}), fields["target"]
    read, cut = read_source(program, fields["source"], recipe)
    add_side(program, "target", target)
    graphs = script.graphs(ENCODER="encoder", DECODER="decoder")
    shared = (graphs, read, script.STEP, script.WRITE)
    if target["kind"] == "image tokens":
        (height, width, _), side = target["size"], target["side"]
        count = -(-height // side) * -(-width // side)
        program.fields |= {"banned": list(range(len(SPECIALS))), "end": -1, "max_length": count}
        return finish(program, recipe, *shared, script.DRAWING, cut="encode(example)")
    allowed = recipe.search.allow_unknown
    program.fields |= {"banned": [] if allowed else [UNKNOWN], "end": END, "max_length": recipe.search.max_length}
    answer = script.TEXT
    if "tag" in fields:
        program.fields["tag"], answer = fields["tag"], script.TEXT_WITH_TAG
    return finish(program, recipe, *shared, script_reading.find_code(script.DECODE, target["kind"]), answer, cut=cut)


def window_of(recipe: Any) -> int:
    """How much is read at most by what has no state that goes on for ever; 0 is all."""
    body = recipe.model.side("decoder")
    carries = body.kind != "transformer" or (body.window > 0 and body.positions != "learned")
    return 0 if carries else recipe.train.bptt_window


def describe_writer(tokenizer: Any, fields: dict[str, Any], recipe: Any) -> Program:
    """The next token of a text."""
    program, target = Program({}), fields["target"]
    add_side(program, "target", target)
    program.fields["target"] |= {"names": tokenizer.names(range(len(tokenizer)))}
    symbols = target["symbols"]
    program.fields |= {
        "documents": bool(target.get("documents", not is_one_text(recipe))),
        "begin": symbols.index("\n") if "\n" in symbols else START,
        "window": window_of(recipe),
    }
    read = script_reading.write_reading(target["kind"], "TARGET")
    graphs = script.graphs(START="start", DECODER="decoder")
    return finish(program, recipe, graphs, read, script.STEP, script.NEXT)


def is_one_text(recipe: Any) -> bool:
    """Whether what was read is one text, and not documents of their own."""
    from ..data.documents import is_text

    return recipe.task == "language" and is_text(recipe.data)


def describe_frames(fields: dict[str, Any], recipe: Any) -> Program:
    program = Program({"target": fields["target"], "lowest": LOWEST, "window": window_of(recipe)})
    graphs = script.graphs(START="start", DECODER="decoder")
    return finish(program, recipe, graphs, script.STEP, script.FRAMES, example='"60 64 67"')


def describe_forecast(run: Run, facts: dict[str, Any]) -> Program:
    recipe = run.recipe
    model, data = recipe.model, recipe.data
    if run.model.generates:
        raise RunError("a forecaster that writes its forecast step by step cannot be exported")
    fields = {
        "names": facts["variables"],
        "variables": len(facts["variables"]),
        "calendar": facts["calendar"],
        "mean": facts["mean"],
        "spread": facts["spread"],
        "gaps": facts["gaps"],
        "decays": model.side("encoder").kind == "gru-d",
        "relative": model.relative,
        "alone": model.channel_independent,
        "span": model.patch_length,
        "context": data.context,
        "levels": list(model.quantiles),
    }
    columns = (1 if fields["alone"] else len(facts["variables"])) + len(facts["inputs"])
    if fields["decays"]:
        features = 3 * (columns + facts["calendar"])
    else:
        features = fields["span"] * (columns * (3 if facts["gaps"] else 1) + facts["calendar"])
    program = Program(fields, features=features, steps=data.context // model.patch_length)
    return finish(program, recipe, script.graphs(MODEL="model"), script.FORECAST)
