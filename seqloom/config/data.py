"""[data]: where the examples come from, and what the tables of several tasks share; `task_data` has each task's."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ..counts import format_count
from .messages import format_value
from .section import Family, ReadIf, Text, Texts, as_tuple, setting


def _check_files(names: tuple[str, ...]) -> tuple[str, ...]:
    if any(not name.strip() or "\0" in name for name in names):
        raise ValueError(f"{format_value(names)} holds a name that no file can have")
    return names


PAIRED = ("lines", "idx", "sheets")  # formats whose source and target stand in files of their own
WHOLE = (".csv", ".tsv", ".jsonl", ".parquet", ".xlsx", ".conll", ".conllu", ".ts")  # endings of files that hold both


def are_parallel(names: Sequence[str], format: str) -> bool:
    """Whether two files belong together, line by line or entry by entry; several others are read one after another."""
    plain = not any(mark in name for name in names for mark in "*?[")
    whole = all(name.lower().removesuffix(".gz").endswith(WHOLE) for name in names)
    return len(names) == 2 and (format in PAIRED or format == "guess" and plain and not whole)


def _check_column(name: str) -> str:
    if not name:
        raise ValueError("a column has a name, or a number from 1")
    return name


def _check_separator(text: str) -> str:
    if not text or "\n" in text or "\r" in text:
        raise ValueError(f"{format_value(text)} cannot stand between two texts on one line")
    return text


def _check_encoding(name: str) -> str:
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise ValueError(
            f'{format_value(name)} is not a text encoding; "utf-8", "latin-1" and "utf-16" are examples'
        ) from None
    return name


Files = Annotated[Texts, AfterValidator(_check_files)]
Column = Annotated[Text, AfterValidator(_check_column)]
Columns = Annotated[
    tuple[Column, ...],
    BeforeValidator(as_tuple, json_schema_input_type=str | list[str]),
    Field(min_length=1, max_length=100),
]
AnyColumns = Annotated[
    tuple[Column, ...],
    BeforeValidator(as_tuple, json_schema_input_type=str | list[str]),
    Field(max_length=1000),
]
RowCount = Annotated[int, Field(ge=0, le=10**9)]
Tag = Annotated[Text, Field(max_length=1000)]
Separator = Annotated[Text, AfterValidator(_check_separator)]
Encoding = Annotated[Text, AfterValidator(_check_encoding)]
TokenizerName = Literal["characters", "words", "spaced", "bpe", "wordpiece", "unigram", "folder"]
SourceTokenizerName = Literal["characters", "words", "spaced", "bpe", "wordpiece", "unigram", "ngrams", "folder"]
Sample = Literal[
    "",
    "dates",
    "names",
    "tokens",
    "shapes",
    "digits",
    "manual",
    "tunes",
    "recall",
    "film",
    "tones",
    "co2",
    "sensors",
    "ball",
]
Share = Annotated[float, Field(ge=0, lt=1)]


class Data(Family):
    """Settings of [data] that every task has."""

    table = "data"

    sample: Sample = setting("", "A built-in sample of examples, instead of files of your own.")
    train: Files = setting(
        (),
        "What to train on: a file, several, a pattern such as part-*.csv, two parallel files (a line of source for "
        "each line of target), or a folder whose folders are classes.",
    )
    validation: Files = setting((), "The same for validation; without it a share of the training rows is kept apart.")
    test: Files = setting((), "The same for the final test; without it a share of the training rows is kept apart.")
    format: Literal[
        "guess",
        "csv",
        "tsv",
        "jsonl",
        "txt",
        "lines",
        "parquet",
        "xlsx",
        "conll",
        "conllu",
        "ts",
        "idx",
        "images",
        "sheets",
        "abc",
        "fasta",
        "json",
    ] = setting(
        "guess",
        "The format of the files; guess goes by their ending, lines is two parallel files, idx a file of arrays and "
        "one of labels, images a table of names and captions, sheets an index of contact sheets and such a table.",
    )
    separator: Separator = setting(
        "auto",
        "What divides the columns of a csv file, or source and target on a line of a txt file; auto detects commas, "
        "semicolons, tabs and bars in csv, and is a tab in txt.",
    )
    header: Literal["auto", "yes", "no"] = setting(
        "auto", "Whether the first row of a table names its columns; auto decides by what it holds."
    )
    encoding: Encoding = setting("utf-8", "The text encoding of the files.")
    on_bad_row: Literal["error", "skip"] = setting(
        "error", "What happens at a row that cannot be read: error stops, skip leaves it out and counts it."
    )
    validation_share: Share = setting(
        0.1, "The share of training rows kept apart for validation when no file is given."
    )
    test_share: Share = setting(0.1, "The share of training rows kept apart for the test when no file is given.")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.sample and (self.train or self.validation or self.test):
            raise ValueError("data.sample and files are both given, but a sample brings its own parts: choose one")
        if self.validation_share + self.test_share >= 1:
            raise ValueError(
                "data.validation_share and data.test_share leave nothing to train on: their sum is 1 or more"
            )
        for name in ("train", "validation", "test"):
            files = getattr(self, name)
            if files and len(files) != 2 and self.format in PAIRED:
                count = format_count(len(files), "file")
                raise ValueError(f'data.{name} is {count}, but data.format "{self.format}" wants two: source, target')
        return self


def check_columns(data: Data, *settings: str) -> None:
    """Refuse a column that several settings name."""
    names: list[str] = []
    for name in settings:
        columns = getattr(data, name)
        names += [columns] * bool(columns) if isinstance(columns, str) else columns
    if twice := [name for name in names if names.count(name) > 1]:
        *others, last = (f"data.{name}" for name in settings)
        raise ValueError(f"the column {format_value(twice[0])} is named twice in {', '.join(others)} and {last}")


# --- what some tasks have --------------------------------------------------------------------------------------------


class TimeFormat(Data):
    time_format: Text = setting(
        "auto", "How times are written, such as %d/%m/%Y %H:%M; auto reads ISO 8601 and detects common others."
    )


class VocabularyData(TimeFormat):
    """Examples of which some side is text, drawn into parts at random."""

    target: Column = setting("target", "The target's column: its name, or its number from 1.")
    lowercase: bool = setting(False, "Whether texts are lower-cased before they are cut.")
    min_count: int = setting(1, "How often a token must occur to have a place in the vocabulary.", ge=1, le=10**9)
    vocabulary_size: int = setting(
        0, "The most tokens in a vocabulary; 0 is no limit, 8000 for subwords, and 256 for squares.", ge=0, le=10**8
    )
    split_seed: int = setting(0, "The seed those rows are drawn with.", ge=0, le=2**32 - 1)
    split_duplicates: Literal["together", "apart"] = setting(
        "together",
        "Whether examples with the same source (of captions: the same image) are drawn into one part, or one by one.",
    )
    group: Tag = setting(
        "",
        "The column of a table that says what belongs together (a film, a speaker): never divided between drawn parts.",
    )
    split_blocks: RowCount = setting(
        0, "Split by blocks of this many consecutive rows, which stay in one part; 0 splits row by row."
    )
    split_time: Tag = setting(
        "",
        "The column with the time of a row, for a split by time: the oldest rows train, the newest are the test part.",
    )
    folds: int = setting(0, "Folds to divide all rows into, one of which is the test part; 0 is none.", ge=0, le=1000)
    fold: int = setting(0, "Which fold is the test part, from 0.", ge=0, le=999)

    @model_validator(mode="after")
    def _split_fits(self) -> Self:
        if self.split_time and (self.group or self.split_blocks or self.folds):
            other = "group" if self.group else "split_blocks" if self.split_blocks else "folds"
            raise ValueError(f"data.split_time divides where a time is, so data.{other} cannot hold: choose one")
        if self.folds == 1 or self.fold >= max(self.folds, 1):
            raise ValueError(
                f"data.folds is {self.folds} and data.fold {self.fold}: folds are 2 or more, numbered from 0"
            )
        if self.folds and self.test:
            raise ValueError("data.folds makes every row a test row once, but data.test names a file: choose one")
        return self


class SourceData(VocabularyData):
    """[data] of tasks with a source and a target."""

    source: Columns = setting(
        ("source",), "The source's column: its name, or its number from 1; of several, the texts are joined by a bar."
    )

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        check_columns(self, "source", "target")
        return self


class LengthLimit(Data):
    max_length: int = setting(512, "The most tokens an example may have, on either side.", ge=1, le=10**6)
    too_long: Literal["drop", "cut"] = setting("drop", "What happens to longer examples; the run reports how many.")


def read_only_of(kind: str) -> ReadIf:
    """A setting of sources of one kind, where there are others: elsewhere nothing reads it."""

    def holds(data: Data) -> bool:
        return "source_type" not in type(data).model_fields or bool(data.source_type == kind)

    return ReadIf(holds, f"with data.source_type {format_value(kind)}")


OF_NUMBERS, OF_SOUND, OF_IMAGE = map(read_only_of, ("numbers", "sound", "image"))


class NumberData(Data):
    """[data] of tasks whose source may be numbers."""

    source_type: Literal["tokens", "numbers", "image"] = setting(
        "tokens", "What the source is: text, numbers (a column for each, or series), or an image."
    )
    series: Annotated[Tag, OF_NUMBERS] = setting(
        "", "The column that says to which series a row of numbers belongs; its rows stand together."
    )
    decimal: Annotated[Literal["auto", "point", "comma"], OF_NUMBERS] = setting(
        "auto", "The decimal separator of numbers in a table; auto detects it."
    )


class SoundData(NumberData, SourceData):
    """[data] of tasks whose source may be numbers or sound."""

    source_type: Literal["tokens", "numbers", "image", "sound"] = setting(  # type: ignore[assignment]  # one more
        "tokens",
        "What the source is: text, numbers (a column for each, or series), an image, or a sound file (.wav, .flac).",
    )
    sounds: Annotated[Text, OF_SOUND] = setting(
        "", "The folder in which sound files lie; without it, the one of the table that names them."
    )
    sample_rate: Annotated[int, OF_SOUND] = setting(
        16000, "Samples a second that sounds are read with; files of another rate are resampled.", ge=100, le=10**6
    )
    mel_bands: Annotated[int, OF_SOUND] = setting(
        40, "Bands of the mel scale in a frame of sound: the numbers that are read.", ge=1, le=1000
    )
    frame_length: Annotated[float, OF_SOUND] = setting(
        25.0, "Milliseconds of sound that a frame is made from.", gt=0, le=10**4
    )
    frame_hop: Annotated[float, OF_SOUND] = setting(
        10.0, "Milliseconds from the beginning of a frame to that of the next.", gt=0, le=10**4
    )

    @model_validator(mode="after")
    def _frames_meet(self) -> Self:
        if self.frame_hop > self.frame_length:
            raise ValueError(
                f"data.frame_hop is {self.frame_hop:g} ms, more than data.frame_length, {self.frame_length:g} ms: what "
                "lies between two frames would never be read"
            )
        return self

    @model_validator(mode="after")
    def _sound_is_read(self) -> Self:
        if self.source_type == "sound" and len(self.source) > 1:
            raise ValueError(f"data.source is {format_value(self.source)}, but one column names the sound files")
        return self


class WordVectors(Data):
    vectors: Text = setting(
        "", "A file of word vectors (GloVe, or word2vec as text) that the words of the source begin with."
    )


class SpelledWords(Data):
    characters: int = setting(
        0,
        "Characters of a word that are read beside its embedding, or instead of it (model.word_vectors); 0 is none.",
        ge=0,
        le=1000,
    )


class TargetVectors(Data):
    target_vectors: Text = setting("", "A file of word vectors that the words of the target begin with.")


class SourceTokens(WordVectors):
    source_tokenizer: TokenizerName = setting(
        "characters",
        "The tokenizer of the source: characters, words and punctuation, splitting at blanks, subwords, or the "
        "tokenizer of the Hugging Face folder in model.from (folder).",
    )


class TargetTokens(Data):
    target_tokenizer: TokenizerName = setting("characters", "The tokenizer of the target.")


class ImageData(Data):
    images: Annotated[Text, OF_IMAGE] = setting(
        "", "The folder in which images lie; without it, the one of the table that names them."
    )
    image_size: Annotated[int, OF_IMAGE] = setting(
        64, "The side, in pixels, to which images are cut and scaled.", ge=4, le=1024
    )


class LabelNames(Data):
    names: AnyColumns = setting((), "What the labels 0, 1, 2 … of an IDX file are called; none is their numbers.")
