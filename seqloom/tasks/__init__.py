"""The tasks there are, one line each."""

from .base import Task
from .caption import Caption
from .classify import Classify
from .forecast import Forecast
from .tag import Tag
from .transduce import Transduce

TASKS: dict[str, type[Task]] = {
    "transduce": Transduce,
    "classify": Classify,
    "tag": Tag,
    "caption": Caption,
    "forecast": Forecast,
}
