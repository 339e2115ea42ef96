"""[data] of each task: how its examples become tokens, or windows of numbers."""

from typing import Annotated, Literal, Self

from pydantic import model_validator

from .data import (
    AnyColumns,
    Column,
    ImageData,
    LabelNames,
    LengthLimit,
    NumberData,
    RowCount,
    SoundData,
    SourceData,
    SourceTokenizerName,
    SourceTokens,
    SpelledWords,
    Tag,
    TargetTokens,
    TargetVectors,
    TimeFormat,
    TokenizerName,
    VocabularyData,
    WordVectors,
    check_columns,
)
from .section import ReadIf, setting


class Seq2SeqData(SpelledWords, TargetVectors, TargetTokens, SourceTokens, SoundData, LengthLimit, SourceData):
    tag: Tag = setting(
        "", "The column with the language or style of the target; the model reads it as a tag before the source."
    )
    shared: bool = setting(False, "Whether source and target share one vocabulary, learned from both.")

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
    source_type: Literal["tokens", "numbers", "sound"] = setting(  # type: ignore[assignment]  # no images
        "sound", "What the source is: text, numbers (a column for each, or series), or a sound file (.wav, .flac)."
    )


class CaptionData(TargetVectors, TargetTokens, ImageData, LengthLimit, SourceData):
    """Images and sentences."""


class ClassifyTokens(SpelledWords, WordVectors):
    source_tokenizer: SourceTokenizerName = setting(
        "characters",
        "The tokenizer of the source: characters, words and punctuation, splitting at blanks, subwords, words and "
        "word pairs (ngrams), or the tokenizer of the Hugging Face folder in model.from (folder).",
    )


class ClassifyData(LabelNames, ClassifyTokens, ImageData, SoundData, LengthLimit, SourceData):
    target_type: Literal["label", "labels", "number"] = setting(
        "label", "The target of a classified source: one label, any number of labels, or a number."
    )
    min_label_count: Annotated[
        int, ReadIf(lambda data: data.target_type == "label", 'with data.target_type "label"')
    ] = setting(
        1,
        "How often a label must occur in the training file; rows with rarer ones are skipped and counted.",
        ge=1,
        le=10**9,
    )


class TagData(SpelledWords, WordVectors, NumberData, LengthLimit, SourceData):
    """Words and their tags."""

    endings: int = setting(
        0,
        "Words that are not in the vocabulary are read as rare words of training are that look like them: with the "
        "same shape (a capital, a digit, no letter) and at most so many last letters; 0 reads them all alike.",
        ge=0,
        le=8,
    )


class MusicData(TargetTokens, WordVectors, VocabularyData):
    """Documents, read from their beginning."""


class LanguageData(SpelledWords, MusicData):
    documents: Literal["file", "paragraphs", "lines"] = setting(
        "file", "What of a txt file is a document, read from its own beginning: all of it, a paragraph, or a line."
    )
    line_breaks: bool = setting(False, "Whether a line break is a token of its own where texts are cut into words.")


class PretrainData(LanguageData):
    target: Column = setting("text", "The column of a table that holds the text, or its number.")
    target_tokenizer: TokenizerName = setting(
        "bpe", "The tokenizer of the text; subwords keep the output layer small and cover any word."
    )
    window: int = setting(
        128, "Tokens that are read at once; texts are packed end to end, so that nothing is padding.", ge=2, le=10**6
    )


class DrawData(LabelNames, SourceTokens, ImageData, SourceData):
    square: int = setting(4, "The side, in pixels, of the squares that an image is drawn with.", ge=1, le=1024)


class ForecastData(TimeFormat):
    decimal: Literal["auto", "point", "comma"] = setting(
        "auto", "The decimal separator of numbers in a table; auto detects it."
    )
    time: AnyColumns = setting(
        (), "The column with the time, or several columns from the year on; none if the rows are in order."
    )
    series: Tag = setting("", "The column that says to which series a row of numbers belongs; its rows stand together.")
    variables: AnyColumns = setting((), "The columns to forecast; none is all that are neither time nor inputs.")
    inputs: AnyColumns = setting((), "Columns that are read but not forecast.")
    context: int = setting(96, "How many rows a forecast is made from.", ge=1, le=10**6)
    horizon: int = setting(24, "How many rows a forecast reaches ahead.", ge=1, le=10**6)
    stride: int = setting(1, "Rows from one training window to the next; all others are scored.", ge=1, le=10**6)
    season: int = setting(1, "The seasonal period in rows, for the seasonal baseline.", ge=1, le=10**6)
    calendar: bool = setting(False, "Whether the hour, the weekday and the day of the year are read beside the values.")
    train_rows: RowCount = setting(0, "The first rows of a series, to train on; 0 is what is left.")
    validation_rows: RowCount = setting(0, "The rows after them, for validation; 0 is by the share.")
    test_rows: RowCount = setting(0, "The rows after those, for the test; 0 is by the share.")

    @model_validator(mode="after")
    def _rows_fit(self) -> Self:
        check_columns(self, "time", "series", "variables", "inputs")
        if (self.validation_rows > 0) != (self.test_rows > 0) or (self.train_rows and not self.test_rows):
            raise ValueError("data.validation_rows and data.test_rows go together, and data.train_rows needs both")
        return self
