"""The tasks there are, one line each."""

from .base import Task
from .classify import Classify
from .language import Language
from .music import Tunes
from .transduce import Transduce

TASKS: dict[str, type[Task]] = {"transduce": Transduce, "classify": Classify, "language": Language, "music": Tunes}
