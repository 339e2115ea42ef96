"""What is inside a model: measures (arrays with labels) and charts of them.

`Look` draws the views of one example of a run. Each measure and chart is also there by itself, for any model or layer.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..errors import RecipeError
from ..models import INPUTS, SOURCE, Batch, Generator, Labeler
from ..search.tree import Tree
from .history import History
from .measures.attention import Picture
from .measures.forecasts import ForecastFan
from .measures.reading import Names
from .views import CHOSEN, VIEWS

if TYPE_CHECKING:
    import altair as alt

    from .charts.drawing import Drawing


@dataclass(frozen=True)
class RunContext:
    """What a run knows beside a model and one example."""

    history: History | None = None
    load_batches: Callable[[], Sequence[Batch]] = tuple  # further examples, for what needs several
    picture: Picture | None = None  # which is described
    search: Callable[[], Tree] | None = None  # for the answer, recorded
    forecast: Callable[[], ForecastFan] | None = None  # what is known, what is forecast and what came
    snapshots: Callable[[], Iterable[tuple[int | None, Any]]] | None = None  # of the model in training, by step


class Look:
    """One input and one answer, ready to be looked at.

    `draw(name)` draws a view, and so does a method of its name: `look.attention()`, `look.memory_path()`; what some of
    them can be asked about, such as the step of an attribution, is their argument. `model` is the model itself.
    """

    def __init__(
        self,
        model: Labeler | Generator,
        example: tuple[Batch, list[str], list[str]],
        title: str,
        read_symbols: Sequence[str] = (),
        target_symbols: Sequence[str] = (),
        context: RunContext | None = None,
    ) -> None:
        """The example is a batch of one row, the names of the elements it reads, and those of its target.

        The symbols of both vocabularies, in order, name what is not in the example; without them, numbers do. A run
        adds what it knows besides.
        """
        self.model, self.title = model, title
        self.batch, read, target = example
        about = model.source is not None
        self.names = Names(["<start>", *target[:-1]], target, read) if about else Names(read, target, [])
        self.side = SOURCE if about else INPUTS
        self.read, self.target = read, target
        self.read_symbols, self.target_symbols = read_symbols, target_symbols
        around = context or RunContext()
        self.history, self.picture, self.search = around.history, around.picture, around.search
        self.forecast_fan, self.snapshots, self._load_batches = around.forecast, around.snapshots, around.load_batches
        self._measured: dict[tuple[Any, ...], Any] = {}

    @cached_property
    def batches(self) -> Sequence[Batch]:
        """Several examples of the run's own, if they are at hand."""
        return self._load_batches()

    def measure(self, name: str, *options: Any) -> Any:
        """The arrays that a view draws."""
        view = VIEWS[name]
        if (view.measure, *options) not in self._measured:
            self._measured[view.measure, *options] = view.measure(self, *options)
        return self._measured[view.measure, *options]

    def draw(self, name: str, *options: Any, part: str = "") -> "alt.TopLevelMixin | Drawing":
        """The chart of a view, or of one `part` of the model in it, such as "decoder.cross" or "encoder.1"; a view that
        does not fit this model is refused with the reason."""
        if name not in VIEWS:
            near = [f"did you mean {one}? " for one in get_close_matches(name, VIEWS, 1)]
            raise RecipeError(f"there is no view {name!r}; {''.join(near)}there are {', '.join(VIEWS)} and all")
        if reason := VIEWS[name].missing(self):
            raise RecipeError(f"the view {name} does not fit this model: {reason}")
        view, measured = VIEWS[name], self.measure(name, *options)
        return view.chart(select_part(name, measured, part) if part else view.shown(measured))

    @cached_property
    def missing(self) -> dict[str, str]:
        """The views that do not fit this model, and why."""
        return {name: reason for name, view in VIEWS.items() if (reason := view.missing(self))}

    @property
    def best_view(self) -> str:
        """The view that says most about a model of this shape."""
        return next((name for name in CHOSEN if name in VIEWS and not VIEWS[name].missing(self)), "model")

    @property
    def views(self) -> "dict[str, Callable[..., alt.TopLevelMixin | Drawing]]":
        """The views that fit this model: by name, what draws them."""
        return {name: partial(self.draw, name) for name in VIEWS if name not in self.missing}

    def __getattr__(self, name: str) -> "Callable[..., alt.TopLevelMixin | Drawing]":
        if (view := name.replace("_", "-")) in VIEWS:
            return partial(self.draw, view)
        raise AttributeError(f"there is no view or attribute {name!r}; the views are {', '.join(VIEWS)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in VIEWS)]


def select_part(view: str, measured: Any, part: str) -> list[Any]:
    """What a view shows of one part of a model: `decoder` is all that is in it, `decoder.cross` one kind or level."""
    named = isinstance(measured, list) and all(hasattr(one, "part") for one in measured)
    if not named:
        raise RecipeError(f"the view {view} shows the model as a whole, so it has no part {part!r:.80}")
    chosen = [one for one in measured if f"{one.part}.".startswith(f"{part}.")]
    if not chosen:
        there = ", ".join(dict.fromkeys(one.part for one in measured))
        raise RecipeError(f"the view {view} has no part {part!r:.80}; it has {there}")
    return chosen
