"""The tasks there are, one line each."""

from .base import Task
from .transduce import Transduce

TASKS: dict[str, type[Task]] = {"transduce": Transduce}
