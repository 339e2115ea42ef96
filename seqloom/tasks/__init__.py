"""The tasks there are, one line each."""

from .base import Task
from .caption import Caption
from .classify import Classify
from .draw import Draw
from .forecast import Forecast
from .language import Language
from .music import Tunes
from .seq2seq import Seq2Seq
from .tag import Tag

TASKS: dict[str, type[Task]] = {
    "seq2seq": Seq2Seq,
    "classify": Classify,
    "tag": Tag,
    "caption": Caption,
    "language": Language,
    "music": Tunes,
    "forecast": Forecast,
    "draw": Draw,
}
