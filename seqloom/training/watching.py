"""What training lets itself be asked while it goes on: whoever watches is called before and after some of its steps.

Knows no layer and no measure; what is seen is numbers with names, and becomes part of the step's record.
"""

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from ..models import Objective

Observation = dict[str, dict[str, Any]]  # numbers by what they are, then by where


class Watch(Protocol):
    """Called around a step that is watched, on every process alike."""

    def before(self) -> list[Tensor]:
        """What to remember of the weights before a step."""

    def after(self, before: list[Tensor], norm: float) -> Observation:
        """What the step has done; `norm` is that of its gradient before it was clipped."""


MakeWatch = Callable[[Objective], Watch]
