"""What each task is, in a sentence, and the classes of its tables: what a task does not have cannot be written."""

from typing import Literal, NamedTuple

from . import model, task_data, train
from .data import Data


class Use(NamedTuple):
    """The sentence and the table classes of a task."""

    does: str
    data: type[Data]
    model: type[model.Model]
    train: type[train.Train]
    search: type[train.Search] = train.Search
    encodes: bool = True  # whether there is something to read before anything is said
    decodes: bool = False  # whether something is written
    window: int = 0  # what train.bptt_window is unless it is set
    best: Literal["loss", "score"] = "loss"  # what train.select_by is unless it is set


WINDOW = 128  # elements that a text without end is read in
DEFAULT = "seq2seq"
USES: dict[str, Use] = {
    "seq2seq": Use(
        "turn one sequence of tokens into another",
        task_data.Seq2SeqData,
        model.Seq2SeqModel,
        train.Seq2SeqTrain,
        train.TextSearch,
        decodes=True,
    ),
    "caption": Use(
        "describe an image in words",
        task_data.CaptionData,
        model.Seq2SeqModel,
        train.Seq2SeqTrain,
        train.TextSearch,
        decodes=True,
    ),
    "transcribe": Use(
        "transcribe a sequence, such as speech or notes, by CTC",
        task_data.TranscribeData,
        model.TranscribeModel,
        train.ShuffledTrain,
        train.BeamWidth,
    ),
    "classify": Use(
        "give a sequence a label, several, or a number",
        task_data.ClassifyData,
        model.ClassifyModel,
        train.LabelTrain,
        best="score",  # a net that has grown too sure of itself is punished by the loss long before its labels suffer
    ),
    "tag": Use(
        "give every element of a sequence a label", task_data.TagData, model.TagModel, train.LabelTrain, best="score"
    ),
    "language": Use(
        "write text, one token after the other",
        task_data.LanguageData,
        model.LanguageModel,
        train.LanguageTrain,
        encodes=False,
        decodes=True,
        window=WINDOW,
    ),
    "pretrain": Use(
        "learn from text without labels, for other tasks to start from",
        task_data.PretrainData,
        model.PretrainModel,
        train.PretrainTrain,
    ),
    "forecast": Use("continue series of numbers", task_data.ForecastData, model.ForecastModel, train.ShuffledTrain),
    "music": Use(
        "write music, tunes or chord by chord",
        task_data.MusicData,
        model.LanguageModel,
        train.MusicTrain,
        encodes=False,
        decodes=True,
        window=WINDOW,
    ),
    "draw": Use(
        "draw an image, square by square, from its name",
        task_data.DrawData,
        model.EncoderDecoderModel,
        train.Seq2SeqTrain,
        train.BeamSearch,
        decodes=True,
    ),
}
