"""Every picture by its name: what it shows, how to read it, what draws it, and why it may not fit a model.

The one list that the command line, Python and the report go by. To add a picture: a measure, a chart, a line here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .measures.next_tokens import tells_symbols

if TYPE_CHECKING:
    from . import Look

WALKS = "no part of this model walks over time"
NO_RUN = "it needs a run's records, and this model was given alone"


@dataclass(frozen=True)
class View:
    name: str
    title: str
    how: str  # to read it, a sentence or two
    draw: "Callable[[Look], Any]"
    lacks: "Callable[[Look], str]"  # why it does not fit; nothing if it does


def _always(look: "Look") -> str:
    return ""


def _attends(look: "Look") -> str:
    return "" if look.attention_maps else "no part of this model attends"


def _heads(look: "Look") -> str:
    return "" if look.query_key_value else "only a Transformer has heads, and queries, keys and values to compare"


def _walks(look: "Look") -> str:
    return "" if look.traces else WALKS


def _gated(look: "Look") -> str:
    return _walks(look) or ("" if any(trace.gates for trace in look.traces) else "a plain recurrence has no gates")


def _keeps(look: "Look") -> str:
    return _walks(look) or ("" if any(trace.keeping for trace in look.traces) else "no gate here keeps a state")


def _multiplies(look: "Look") -> str:
    return _walks(look) or ("" if look.spectra else "its recurrence multiplies the state with no matrix")


def _normed(look: "Look") -> str:
    return "" if look.shrinkage else "there is no norm in this model"


def _placed(look: "Look") -> str:
    return "" if look.positions else "this model is not told positions: it reads in order, or sees none"


def _tells(look: "Look") -> str:
    return "" if tells_symbols(look.model) else "what it tells is not one of several symbols"


def _symbols(look: "Look") -> str:
    return "" if look.embedded is not None else "what it reads are no symbols with a learned vector each"


def _history(look: "Look") -> str:
    return "" if look.history is not None else NO_RUN


def _trained(look: "Look") -> str:
    return "" if look.history is not None and look.history.records else NO_RUN


def _watched(look: "Look") -> str:
    if look.history is None:
        return NO_RUN
    every, steps = look.history.recipe.train.watch_every, look.history.recipe.train.steps
    return (
        ""
        if len(look.history.watched.steps)
        else f"no step was watched: train.watch_every is {every}, of {steps} steps"
    )


def _watched_spectra(look: "Look") -> str:
    if missing := _multiplies(look):
        return missing
    return _watched(look)


def _probed(look: "Look") -> str:
    if missing := _tells(look):
        return missing
    return "" if look.batches else "it needs several examples, and the run's own data is not at hand"


def _several(look: "Look") -> str:
    if look.picture is not None:
        return "a picture has no order"
    return "" if len(look.names.source or look.names.inputs) > 1 else "a single element has no order"


def _searched(look: "Look") -> str:
    return "" if look.searched is not None else "only an answer that is written token by token is searched for"


VIEWS = (
    View(
        "model",
        "The model, unrolled over time",
        "Read it from the bottom up: what goes in, each layer with its shape and weights, what comes out.",
        lambda look: look.drawing(),
        _always,
    ),
    View(
        "attention",
        "Where the model looked",
        "A row for each element written, a column for each element read; the brighter, the more it was looked at.",
        lambda look: look.attention(),
        _attends,
    ),
    View(
        "heads",
        "All heads at a glance",
        "Every layer and head at a glance: stripes look at a place, diagonals at a distance, blots at meaning.",
        lambda look: look.heads(),
        _heads,
    ),
    View(
        "beam",
        "How the answer was searched for",
        "A column a step: the tokens that were kept, those that were pruned, and where an answer was finished. "
        "The slider replays it.",
        lambda look: look.beam(),
        _searched,
    ),
    View(
        "next",
        "What the model expects next",
        "A column for each position: the likeliest symbols, the likeliest on top; the brighter, the surer.",
        lambda look: look.next(),
        _tells,
    ),
    View(
        "attribution",
        "What drove the decision",
        "Bars up spoke for the answer, bars down against it. Believe a method only if it beats random orders.",
        lambda look: look.attribution(),
        _always,
    ),
    View(
        "faithfulness",
        "Whether that may be believed",
        "Taking away what an attribution calls important must hurt sooner than taking away at random.",
        lambda look: look.faithfulness(),
        _always,
    ),
    View(
        "field",
        "How far the model sees",
        "How much each element read moves each output. An empty corner means: that far it cannot see.",
        lambda look: look.field(),
        _always,
    ),
    View(
        "order",
        "Does order matter?",
        "If shuffling costs nothing, the model reads a bag; below, the neighbors whose order it minds.",
        lambda look: look.order(),
        _several,
    ),
    View(
        "gates",
        "What the gates do",
        "The mean opening of each gate at every step, in the band of most units: 0 is closed, 1 is open.",
        lambda look: look.gates(),
        _gated,
    ),
    View(
        "memory-path",
        "How much of each step is left at the end",
        "How much of each step is left at the end, if the keeping gates alone decide: a memory's length.",
        lambda look: look.kept(),
        _keeps,
    ),
    View(
        "states",
        "What the states hold",
        "What the units hold, step by step: the mean and most of them.",
        lambda look: look.states(),
        _walks,
    ),
    View(
        "units",
        "Every unit over time",
        "Every unit of the first recurrence over time, in rows: look for the ones that switch.",
        lambda look: look.units(),
        _walks,
    ),
    View(
        "gradients",
        "How far back the gradient reaches",
        "Where learning reaches: the loss's gradient at every step of every layer; dark is vanished.",
        lambda look: look.gradients(),
        _always,
    ),
    View(
        "jacobians",
        "How much a step still moves the last state",
        "How much an early state still moves the last one. A straight line down vanishes, one up explodes.",
        lambda look: look.jacobians(),
        _walks,
    ),
    View(
        "scalar",
        "One unit, one weight",
        "The same for a single unit, whose weight is all that decides, beside this model's own spectral radius.",
        lambda look: look.scalar(),
        _multiplies,
    ),
    View(
        "spectrum",
        "How far the recurrent weights stretch",
        "The singular values of every recurrent matrix: above 1 states can grow, below 1 they shrink.",
        lambda look: look.spectrum(),
        _multiplies,
    ),
    View(
        "query-key-value",
        "Who gets the gradient: queries, keys or values",
        "Queries and keys often get far less gradient than values early in training: then attention learns late.",
        lambda look: look.starved(),
        _heads,
    ),
    View(
        "norms",
        "What each norm does to a gradient",
        "What each norm does to a gradient on its way back: below 1 it shrinks.",
        lambda look: look.norms(),
        _normed,
    ),
    View(
        "embedding",
        "Which symbols lie together",
        "Symbols that the model treats alike lie together. Zoom in to tell them apart.",
        lambda look: look.embedding(),
        _symbols,
    ),
    View(
        "neighbors",
        "Who lies nearest to whom",
        "For a symbol of this input: which others have the most similar vector.",
        lambda look: look.neighbors(),
        _symbols,
    ),
    View(
        "positions",
        "How the model knows where an element stands",
        "The vector of every position, and how alike two positions are by their distance.",
        lambda look: look.position(),
        _placed,
    ),
    View(
        "probe",
        "Which layer knows what",
        "How much of what is to be told can be read off each layer by a straight line; the mark is guessing.",
        lambda look: look.probe(),
        _probed,
    ),
    View(
        "curves",
        "Loss and scores over training",
        "Training and validation should fall together; where they part, the model learns by heart.",
        lambda look: look.curves(),
        _trained,
    ),
    View(
        "schedule",
        "The learning rate of each step",
        "The learning rate that each step was made with.",
        lambda look: look.schedule(),
        _history,
    ),
    View(
        "flow",
        "How much gradient each layer got",
        "Which layers got gradient while training went on; a row that stays dark did not learn.",
        lambda look: look.flow(),
        _watched,
    ),
    View(
        "updates",
        "How far each layer moved in one step",
        "How far the optimizer moved each layer at a time, as a share of its weights.",
        lambda look: look.updates(),
        _watched,
    ),
    View(
        "spectrum-history",
        "How the recurrent weights changed",
        "How the stretch of every recurrent matrix changed while it was trained.",
        lambda look: look.training_spectra(),
        _watched_spectra,
    ),
    View(
        "cost",
        "What it costs as sequences grow",
        "Time and memory of this body and of others as wide and deep; steeper lines grow faster with length.",
        lambda look: look.cost(),
        _history,
    ),
)
BY_NAME = {view.name: view for view in VIEWS}
