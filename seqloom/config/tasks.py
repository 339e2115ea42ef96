"""What each task is, in a sentence, which sides of a network it has, and which settings mean nothing to it."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel

from .messages import settings

Name = Literal["seq2seq", "classify", "tag", "caption", "language", "music", "forecast", "draw"]

# What only tasks that answer once a sequence have, and those that read, and those that write.
SUMMED = ("data.target_type", "model.pool", "model.hidden", "train.class_weights")
TAGGED = ("data.characters", "model.spelling", "model.crf")
NUMERIC = ("data.source_type", "data.series")
IMAGES = ("data.images", "data.image_size")
NAMED = ("data.names",)  # labels that are numbers in a file
DRAWING = ("data.square",)
WRITING = (
    *("data.target_tokenizer", "data.shared", "data.tag", "model.decoder", "model.tied"),
    *("model.attention", "model.attention_style", "model.hard_attention", "search"),
)
FORECASTING = (
    *("data.time", "data.variables", "data.inputs", "data.context", "data.horizon", "data.stride"),
    *("data.season", "data.calendar", "data.train_rows", "data.validation_rows", "data.test_rows"),
    *("model.quantiles", "model.relative", "model.channel_independent", "model.patch_length"),
)
DOCUMENTS = (
    "data.documents",
    "data.line_breaks",
    "train.sampled_softmax",
)  # what only tasks have that read texts without a source
ALONE = (
    *FORECASTING,
    *(*NAMED, *DRAWING),
    *(*SUMMED, *TAGGED, *NUMERIC, *IMAGES, "model.encoder", "model.merge", "model.patch", "search"),
    *("data.source", "data.source_tokenizer", "data.shared", "data.tag", "data.separator", "data.max_length"),
    *("data.too_long", "model.attention", "model.attention_style", "model.hard_attention", "train.shuffle"),
)  # what there must be a source, or a label, for
WINDOW = 128  # elements that a text without end is read in, unless train.bptt_window says otherwise
ROWS = (  # what only tasks have whose examples are rows of texts
    *("data.source", "data.target", "data.target_type", "data.separator", "data.source_tokenizer", "data.lowercase"),
    *("data.min_count", "data.vocabulary_size", "data.max_length", "data.too_long", "data.split_seed"),
    *(
        "data.source_type",
        "data.vectors",
        "model.embedding",
        "model.patch",
        "train.class_weights",
        "train.label_smoothing",
    ),
)
LABELERS = ("classify", "tag")  # tasks that answer with labels, whatever is read
FORECASTERS = ("forecast",)  # tasks whose sources are numbers, of which some may be missing


class Use(NamedTuple):
    """What a task makes of a recipe."""

    does: str
    encodes: bool  # whether there is something to read before anything is said
    decodes: bool  # whether something is written
    ahead: bool  # whether a reader may see what comes later
    unread: tuple[str, ...]  # settings and tables of them that it has no use for
    window: int = 0  # what train.bptt_window is unless it is set
    best: Literal["loss", "score"] = "loss"  # what train.select_by is unless it is set


USES: dict[str, Use] = {
    "seq2seq": Use(
        "turn one sequence of tokens into another",
        True,
        True,
        True,
        (*SUMMED, *TAGGED, *IMAGES, *NAMED, *DRAWING, *DOCUMENTS, *FORECASTING),
    ),
    "caption": Use(
        "tell in words what is on an image",
        True,
        True,
        True,
        (
            *(*SUMMED, *TAGGED, *NUMERIC, *NAMED, *DRAWING, *DOCUMENTS, *FORECASTING),
            *("data.shared", "data.tag", "data.source_tokenizer"),
        ),
    ),
    "classify": Use(
        "give a sequence a label, several, or a number",
        True,
        False,
        True,
        (*WRITING, *TAGGED, *IMAGES, *DRAWING, *DOCUMENTS, *FORECASTING),
        best="score",  # a net that has grown too sure of itself is punished by the loss long before its labels suffer
    ),
    "tag": Use(
        "give every element of a sequence a label",
        True,
        False,
        True,
        (
            *(*WRITING, *SUMMED[:2], *IMAGES, *NAMED, *DRAWING, *DOCUMENTS, *FORECASTING),
            *("data.source_tokenizer", "train.class_weights", "train.label_smoothing", "model.patch"),
        ),
        best="score",
    ),
    "language": Use("write text, one token after the other", False, True, False, ALONE, WINDOW),
    "forecast": Use(
        "continue series of numbers",
        True,
        False,
        False,
        (
            *(*WRITING, *ROWS, *TAGGED, *IMAGES, *NAMED, *DRAWING, *DOCUMENTS),
            *("data.source_type", "data.vectors", "model.patch"),
        ),
    ),
    "music": Use("write music, tunes or chord by chord", False, True, False, (*ALONE, *DOCUMENTS), WINDOW),
    "draw": Use(
        "draw an image, square by square, from its name",
        True,
        True,
        True,
        (
            *(*SUMMED, *TAGGED, *NUMERIC, *DOCUMENTS, *FORECASTING, "model.patch"),
            *("data.target_tokenizer", "data.shared", "data.tag", "data.max_length", "data.too_long"),
            "search.allow_unknown",
        ),
    ),
}


def unread(task: str, name: str) -> bool:
    """Whether a task has no use for a setting."""
    return any(name == other or name.startswith(f"{other}.") for other in USES[task].unread)


def useless(recipe: BaseModel, task: str) -> Iterator[str]:
    """The settings that are given another value than their default, to no avail."""
    plain: Any = type(recipe)
    for name in settings(plain):
        if unread(task, name):
            *tables, key = name.split(".")
            given, model = recipe, plain
            for table in tables:
                given, model = getattr(given, table), model.model_fields[table].annotation
            if getattr(given, key) != model.model_fields[key].get_default(call_default_factory=True):
                yield name
