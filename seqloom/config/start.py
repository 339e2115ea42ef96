"""`model.from`: the settings that a recipe takes from the run whose weights it starts with. Opens its recipe alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..architectures import ARCHITECTURES
from ..errors import RecipeError
from .foreign import HEADS, is_foreign, read_family, read_recipe
from .messages import escape_text, format_value, settings
from .model import side_class

if TYPE_CHECKING:
    from .recipe import Recipe

FROM = "model.from"
# Dropout has no weights: it belongs to this training.
OWN = ("from", "encoder", "decoder", "dropout", "attention_dropout", "variational_dropout")
OUTPUT = (
    "tied",
    "output_bias",
    "output_transform",
)  # of the output layer, which is new where other things are predicted
# What is said of how texts are read, whatever side they are.
READING = ("lowercase", "min_count", "vocabulary_size", "line_breaks", "shared")


def read_start(folder: str) -> "Recipe":
    """The recipe of the run that a model starts from."""
    from .recipe import Recipe

    if is_foreign(folder):
        return read_recipe(folder)
    path = Path(folder) / "recipe.toml"
    if "\0" in folder or not path.is_file():
        raise RecipeError(
            f"{FROM} is {format_value(folder)}, but that is neither a run folder nor a Hugging Face folder: there is "
            "no recipe.toml and no config.json of such a model in it"
        )
    return Recipe.read(path).resolved()


def suggest_settings(folder: str, task: str) -> dict[str, Any]:
    """What a task should have that starts from a folder, unless something else is said: the head that such a model
    has in Hugging Face's library, and the mean over all elements where that was taught."""
    if task != "classify":
        return {}
    theirs = read_start(folder)
    if not is_foreign(folder):
        return {"model.pool": "mean"} if theirs.task == "pretrain" and theirs.train.objective == "document" else {}
    model, family = theirs.model, read_family(folder)[0]
    if family not in HEADS:
        return {"model.pool": "mean" if model.reads_ahead else "last"}
    return {"model.pool": "first", "model.hidden": model.size, "model.hidden_activation": HEADS[family]}


def adopt_settings(folder: str, task: str, objective: str) -> dict[str, Any]:
    """The settings that a recipe of this task takes from a run: its body, and how it reads text; those of its head
    where the same is predicted (`train.objective`).

    Of a run that reads a source and writes, a task with one body takes what reads.
    """
    from .recipe import class_of

    theirs = read_start(folder)
    body = theirs.model.side("encoder")
    values: dict[str, Any] = {name: getattr(body, name) for name in type(body).model_fields if name not in OWN}
    if theirs.task == task:
        values |= {name: getattr(theirs.model, name) for name in type(theirs.model).model_fields if name not in OWN}
    if name_prediction(theirs.task, theirs.train.objective) != name_prediction(task, objective):
        values = {name: value for name, value in values.items() if name not in OUTPUT}
    adopted = {f"model.{name}": value for name, value in values.items()}
    shared = ("embedding", "scaled_embedding", "segments")
    adopted |= {f"model.{name}": getattr(theirs.model, name) for name in shared if hasattr(theirs.model, name)}
    kinds: dict[str, Any] = {"kind": body.kind}
    if theirs.model.two_sided:
        for side in ("encoder", "decoder"):
            own = theirs.model.side(side)
            names = side_class(ARCHITECTURES[own.kind], side).model_fields.keys() - {*OWN}
            adopted |= {f"model.{side}.{name}": getattr(own, name) for name in names}
            kinds[side] = {"kind": own.kind}
    elif not theirs.model.reads_ahead or theirs.train.objective == "causal":  # it has never seen what comes later
        adopted |= {"model.causal": True, "model.bidirectional": False}
    elif theirs.model.causal:
        adopted["model.causal"] = True
    known = settings(class_of({"task": task, "model": kinds}))
    adopted |= adopt_reading(theirs, writes="data.source_tokenizer" not in known)
    return {name: value for name, value in adopted.items() if name in known}


def name_prediction(task: str, objective: str) -> str:
    """What a head predicts: that of a causal body is a language model's."""
    return {"language": "causal", "pretrain": objective}.get(task, task)


def adopt_reading(theirs: "Recipe", writes: bool) -> dict[str, Any]:
    """How text is cut and looked up: that of the side that the body reads, and of the other where both have it, or
    where the body reads what is written."""
    data = type(theirs.data).model_fields
    read = "source_tokenizer" if "source_tokenizer" in data else "target_tokenizer"
    if read not in data:
        return {}
    adopted = {f"data.{name}": getattr(theirs.data, name) for name in READING if name in data}
    adopted["data.source_tokenizer"] = getattr(theirs.data, read)
    adopted |= {f"data.{name}": getattr(theirs.data, name, 0) for name in ("characters", "endings")}
    if "target_tokenizer" in data and (writes or read == "source_tokenizer"):
        adopted["data.target_tokenizer"] = theirs.data.target_tokenizer
    return adopted


def check_given(adopted: Mapping[str, Any], explicit: Mapping[str, Any], folder: str) -> None:
    """Refuse a setting that is given beside `model.from` and is another than the run has."""
    for name in sorted(adopted.keys() & explicit.keys(), key=lambda name: not name.endswith("kind")):
        if explicit[name] != adopted[name]:
            raise RecipeError(
                f"{name} is {format_value(explicit[name])}, but {escape_text(folder)}, from which the model starts, "
                f"has {format_value(adopted[name])}: leave it out"
            )
