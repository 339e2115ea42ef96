"""The tasks there are, one line each."""

from .base import Task
from .classify import Classify
from .forecast import Forecast
from .transduce import Transduce

TASKS: dict[str, type[Task]] = {"transduce": Transduce, "classify": Classify, "forecast": Forecast}
