"""The shapes of a run folder's JSON files, and the one place where a file is held against its shape.

Whatever is read was perhaps written by somebody else. A shape knows all of its keys, takes no value for one of another
type and no number that is none; what does not fit is refused in one sentence with its place. What a task has learned
(task.json) is the task's own business: it holds its parts against shapes as well.
"""

import re
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import RunError

SHOWN = 60  # characters of what was found that a sentence shows

Count = Annotated[int, Field(ge=0, le=2**53)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=100_000)]
MOST_SYMBOLS = 1 << 20  # of a vocabulary


class JsonShape(BaseModel):
    # Built when a file is first held against it: most shapes are of other tasks.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


Shaped = TypeVar("Shaped", bound=BaseModel)


def check_shape(shape: type[Shaped], values: object, place: str) -> Shaped:
    """The values in their shape; RunError with the first that does not fit."""
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    # Unknown names go first: a key that is misspelled is also one that is missing.
    first = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
    *path, last = [str(step)[:SHOWN] for step in first["loc"] if step != "[key]"] or ["all of it"]
    where = f"{place}, {'.'.join(path)}" if path else place
    if first["type"] == "missing":
        raise RunError(f"{where}: {last!r} is missing")
    if first["type"] == "extra_forbidden":
        raise RunError(f"{where}: {last!r} is not known here")
    expectation = first["msg"][:1].lower() + first["msg"][1:].split(" or instance of ")[0]
    raise RunError(f"{where}: {last!r} is {describe_json(first['input'])}, but the {expectation}")


def describe_json(value: object) -> str:
    """A JSON value within a sentence; of what may be large or deep, only its kind."""
    match value:
        case dict():
            return "an object"
        case list():
            return f"a list of {len(value)}"
        case str():
            return f"the text {value[:SHOWN]!r}"
        case int() if not isinstance(value, bool) and abs(value) >= 10**SHOWN:
            return "a very large number"
    return repr(value)


# --- manifest.json ------------------------------------------------------------------------------------------------

FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")  # of this very folder, never a path out of it
MOST_FILES = 1000

FileName = Annotated[str, Field(pattern=f"^{FILE.pattern}$")]
Sum = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(JsonShape):
    """The valid SHA-256 sums of each file: two while it is being replaced."""

    files: Annotated[
        dict[FileName, Annotated[list[Sum], Field(min_length=1, max_length=9)]], Field(max_length=MOST_FILES)
    ]


# --- config.json ----------------------------------------------------------------------------------------------------


class Machine(JsonShape):
    device: Name
    precision: Name
    measured: dict[Name, Number]
    threads: Count
    processes: Count
    kernels: Name


class Start(JsonShape):
    """The run that another one started from, and which weights and fields were taken from it."""

    run: Name
    sha256: Sum  # of its weights
    fields: list[Name] = []
    loaded: list[Name] = []
    new: list[Name] = []
    left: list[Name] = []  # that it has and the other one does not


class Config(JsonShape):
    """config.json: what the weights belong to."""

    format: Count
    task: Name
    cell: Name | None = None
    vocabularies: dict[Name, Count]
    parameters: Count
    machine: Machine
    start: Start | None = None


# --- data.json ------------------------------------------------------------------------------------------------------


class SideReport(JsonShape):
    """One side of a split, as it is trained on or scored."""

    tokens: Count
    longest: Count  # tokens, after cutting
    mean: Number  # tokens an example
    cut: Count  # examples whose ids were cut here
    dropped: Count  # examples dropped because this side was too long
    unknown_share: Number  # of the tokens
    missing_share: Number = 0.0  # of the numbers
    lengths: dict[Name, Count] = {}  # examples by the range of their length
    balance: dict[Name, Count] = {}  # examples by label
    whole: Count = 0  # tokens of the longest example before anything was cut or dropped


class SplitReport(JsonShape):
    examples: Count
    dropped: Count  # examples too long on either side; those too long on both count once
    repeated: Count  # examples that stand in this part before
    overlap: Count  # examples whose first side is also one of the training part; 0 for training itself
    sides: dict[Name, SideReport]


class SkippedReport(JsonShape):
    rows: Count
    first: Name  # file and line of the first one


class DataReport(JsonShape):
    """What was done to the data, in numbers."""

    rows_read: Count  # those that were skipped included
    skipped: dict[Name, SkippedReport]  # by reason
    splits: dict[Name, SplitReport]  # by name
    vocabulary: dict[Name, Count]  # what each side's field knows: tokens (the special ones included), labels, variables
    notes: list[str] = []  # what was detected about the files
    warnings: list[str] = []  # what is hardly meant so


class StoredReport(DataReport):
    padded_share: Number


class Change(JsonShape):
    step: Count
    fingerprint: Name


class Data(JsonShape):
    """The data's report and fingerprint, and when it changed."""

    fingerprint: Name
    report: StoredReport
    changes: list[Change] = []


# --- records.jsonl --------------------------------------------------------------------------------------------------


class WatchedStep(JsonShape):
    """Of a step that was watched: by layer, and by recurrent matrix."""

    gradients: dict[Name, Number]
    updates: dict[Name, Number]
    spectra: dict[Name, Annotated[list[Number], Field(max_length=4)]]


class Details(JsonShape):
    """What is about to be trained, in numbers."""

    steps: Count
    parameters: Count
    device: Name
    precision: Name
    threads: Count
    processes: Count
    kernels: Name
    seconds: Number | None = None
    megabytes: Number | None = None


class NoteLine(JsonShape):
    """A line that is a sentence: see `training.records.Record`."""

    kind: Literal["note"]
    step: Count
    text: Name
    details: Details | None = None


class RecordLine(JsonShape):
    """A record of any other kind."""

    kind: Literal["step", "validation", "end"]
    step: Count
    epoch: Number
    loss: Number | None
    rate: Number
    gradient_norm: Number | None
    tokens: Count
    tokens_per_second: Number
    seconds: Number
    skipped: Count
    scores: dict[Name, Number | None] = {}
    best: bool = False
    watched: WatchedStep | None = None
    final: "FinalScores | None" = None


# --- scores.json ----------------------------------------------------------------------------------------------------


class Bin(JsonShape):
    value: Number
    examples: Count


class ClassScores(JsonShape):
    precision: Number
    recall: Number
    f1: Number
    examples: Count


class ConfidenceBin(JsonShape):
    confidence: Number
    accuracy: Number
    examples: Count


class Calibration(JsonShape):
    error: Number
    bins: list[ConfidenceBin]


class Lead(JsonShape):
    """By how much a baseline is better than the run."""

    baseline: Name
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None  # None: too few examples
    examples: Count


class ScoreWithBaselines(JsonShape):
    value: Number
    better: Literal["higher", "lower", "nearer"]
    scale: Name
    interval: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    signature: Name = ""
    missing: Count = 0
    baselines: dict[Name, Number]
    ahead: Lead | None = None  # that of the best baseline, if it is better
    by_length: dict[Name, Bin] = {}
    classes: dict[Name, ClassScores] = {}
    confusion: list[list[Count]] = []  # rows are the true classes, in the order of `classes`
    calibration: Calibration | None = None


class FinalScores(JsonShape):
    """The final scores, each with its baselines."""

    task: Name
    split: Name
    examples: Count
    cut: Count = 0
    scores: dict[Name, ScoreWithBaselines]
    validation: dict[Name, Number] = {}  # of the best weights, on the whole validation part
    validation_scores: dict[
        Name, ScoreWithBaselines
    ] = {}  # on some of it, beside the baselines: what judges between them


class Scores(FinalScores):
    run: Name


# --- task.json: what baselines have learned ----------------------------------------------------------------------

Chance = Annotated[float, Field(gt=0, lt=1)]


class MostFrequent(JsonShape):
    most_frequent: str  # the answer that is most frequent


class MostFrequentLabel(JsonShape):
    most_frequent: str
    weights: list[Annotated[Number, Field(ge=0)]]  # of each label, where all are to count alike


class TagsOfWords(JsonShape):
    most_frequent: str
    tags: dict[str, str]  # of words whose tag is not the most frequent one
    weights: list[Annotated[Number, Field(ge=0)]] = []  # of each tag, where all are to count alike


class Constant(JsonShape):
    constant: str  # the caption that does best for every image


class SymbolCounts(JsonShape):
    counts: Annotated[list[Count], Field(min_length=1)]  # of each symbol in training


class KeyChances(JsonShape):
    sounds: Annotated[list[Chance], Field(min_length=1)]  # of each key to sound …
    continues: Annotated[list[list[Chance]], Field(min_length=2, max_length=2)]  # … after none, or one
