"""[data] of each task: how its examples become tokens, or windows of numbers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from .data import (
    AnyColumns,
    Column,
    ImageData,
    LabelNames,
    LengthLimit,
    NumberData,
    Rows,
    SoundData,
    SourceData,
    SourceTokenizer,
    SourceTokens,
    SpelledWords,
    Tag,
    TargetTokens,
    TargetVectors,
    TimeFormat,
    Tokens,
    VocabularyData,
    WordVectors,
    check_columns,
)


class Seq2SeqData(SpelledWords, TargetVectors, TargetTokens, SourceTokens, SoundData, LengthLimit, SourceData):
    tag: Tag = Field(
        default="",
        description="The column with the language or style of the target; the model reads it as a tag before the "
        "source.",
    )
    shared: bool = Field(
        default=False, description="Whether source and target share one vocabulary, learned from both."
    )

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        check_columns(self, "source", "target", "tag")
        return self

    @model_validator(mode="after")
    def _cut_alike(self) -> Self:
        if self.shared and self.source_tokenizer != self.target_tokenizer:
            raise ValueError(
                f"data.shared wants both sides cut alike, not {self.source_tokenizer} and {self.target_tokenizer}"
            )
        return self


class TranscribeData(TargetTokens, SourceTokens, SoundData, LengthLimit, SourceData):
    source_type: Literal["tokens", "numbers", "sound"] = Field(  # type: ignore[assignment]  # no images
        default="sound",
        description="What the source is: text, numbers (a column for each, or series), or a sound file (.wav, .flac).",
    )


class CaptionData(TargetVectors, TargetTokens, ImageData, LengthLimit, SourceData):
    """Images and sentences."""


class ClassifyTokens(SpelledWords, WordVectors):
    source_tokenizer: SourceTokenizer = Field(
        default="characters",
        description="The tokenizer of the source: characters, words and punctuation, splitting at blanks, subwords, "
        "words and word pairs (ngrams), or the tokenizer of the Hugging Face folder in model.from (folder).",
    )


class ClassifyData(LabelNames, ClassifyTokens, ImageData, SoundData, LengthLimit, SourceData):
    target_type: Literal["label", "labels", "number"] = Field(
        default="label", description="The target of a classified source: one label, any number of labels, or a number."
    )
    min_label_count: int = Field(
        default=1,
        ge=1,
        le=10**9,
        description="How often a label must occur in the training file; rows with rarer ones are skipped and counted.",
    )


class TagData(SpelledWords, WordVectors, NumberData, LengthLimit, SourceData):
    """Words and their tags."""


class MusicData(TargetTokens, WordVectors, VocabularyData):
    """Documents, read from their beginning."""


class LanguageData(SpelledWords, MusicData):
    documents: Literal["file", "paragraphs", "lines"] = Field(
        default="file",
        description="What of a txt file is a document, read from its own beginning: all of it, a paragraph, or a line.",
    )
    line_breaks: bool = Field(
        default=False, description="Whether a line break is a token of its own where texts are cut into words."
    )


class PretrainData(LanguageData):
    target: Column = Field(default="text", description="The column of a table that holds the text, or its number.")
    target_tokenizer: Tokens = Field(
        default="bpe", description="The tokenizer of the text; subwords keep the output layer small and cover any word."
    )
    window: int = Field(
        default=128,
        ge=2,
        le=10**6,
        description="Tokens that are read at once; texts are packed end to end, so that nothing is padding.",
    )


class DrawData(LabelNames, SourceTokens, ImageData, SourceData):
    square: int = Field(
        default=4, ge=1, le=1024, description="The side, in pixels, of the squares that an image is drawn with."
    )


class ForecastData(TimeFormat):
    decimal: Literal["auto", "point", "comma"] = Field(
        default="auto",
        description="The decimal separator of numbers in a table; auto detects it.",
    )
    time: AnyColumns = Field(
        default=(),
        description="The column with the time, or several columns from the year on; none if the rows are in order.",
    )
    series: Tag = Field(
        default="",
        description="The column that says to which series a row of numbers belongs; its rows stand together.",
    )
    variables: AnyColumns = Field(
        default=(), description="The columns to forecast; none is all that are neither time nor inputs."
    )
    inputs: AnyColumns = Field(default=(), description="Columns that are read but not forecast.")
    context: int = Field(default=96, ge=1, le=10**6, description="How many rows a forecast is made from.")
    horizon: int = Field(default=24, ge=1, le=10**6, description="How many rows a forecast reaches ahead.")
    stride: int = Field(
        default=1, ge=1, le=10**6, description="Rows from one training window to the next; all others are scored."
    )
    season: int = Field(
        default=1, ge=1, le=10**6, description="The seasonal period in rows, for the seasonal baseline."
    )
    calendar: bool = Field(
        default=False, description="Whether the hour, the weekday and the day of the year are read beside the values."
    )
    train_rows: Rows = Field(default=0, description="The first rows of a series, to train on; 0 is what is left.")
    validation_rows: Rows = Field(default=0, description="The rows after them, for validation; 0 is by the share.")
    test_rows: Rows = Field(default=0, description="The rows after those, for the test; 0 is by the share.")

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        check_columns(self, "time", "series", "variables", "inputs")
        if (self.validation_rows > 0) != (self.test_rows > 0) or (self.train_rows and not self.test_rows):
            raise ValueError("data.validation_rows and data.test_rows go together, and data.train_rows needs both")
        return self
