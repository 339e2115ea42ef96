"""Every setting with a recipe that has it, strategies that draw values and recipes, and how a refusal reads."""

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import assume
from hypothesis import strategies as st

from seqloom.config.messages import settings
from seqloom.config.recipe import Recipe, list_kinds
from seqloom.config.tasks import USES
from seqloom.errors import RecipeError

BASES = [
    Recipe.of({"task": task, "model": {"kind": kind}})
    for task in USES
    for kind in list_kinds(task)
    if kind != "gru-d" or task == "forecast"
]
BASES.insert(0, Recipe())
OWNERS = {name: base for base in reversed(BASES) for name in settings(type(base))}  # a recipe that has the setting
SETTINGS = {name: settings(type(base))[name] for name, base in OWNERS.items()}
SIZES = "a whole number from 1 to 65536, or a list of them"
SECTIONS = ["", "about", "data", "model", "model.encoder", "model.decoder", "train", "search"]


def refusal(*overrides: str, of: Recipe | None = None) -> str:
    """The sentence with which overrides are refused; always one line."""
    of = of or OWNERS.get(overrides[0].partition("=")[0], Recipe())
    with pytest.raises(RecipeError) as caught:
        of.override(*overrides)
    return one_line(caught.value)


def one_line(error: RecipeError) -> str:
    assert len(str(error).splitlines()) == 1
    return str(error)


def nested(names: dict[str, object]) -> dict[str, object]:
    """{"model.size": 3} as {"model": {"size": 3}}."""
    values: dict[str, object] = {}
    for name, value in names.items():
        *sections, key = name.split(".")
        table = values
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    return values


def value_of(recipe: Recipe, name: str) -> object:
    found: object = recipe
    for key in name.split("."):
        found = getattr(found, key)
    return found


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
times = st.builds("{}h{}m{}s".format, *[st.integers(1, 99)] * 3)
files = st.lists(texts.filter(lambda name: name.strip() and "\0" not in name), min_size=1, max_size=2)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=5,
)
ODD = {
    "train.time": times,
    "data.encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252"]),
    "data.separator": texts.filter(lambda text: text and not set(text) & {"\n", "\r"}),
    "data.source": st.lists(texts.filter(bool), min_size=1, max_size=3),
    "data.target": texts.filter(bool),
    "model.quantiles": st.sampled_from([[], [0.5], [0.1, 0.5, 0.9]]),
    "task": st.sampled_from(list(USES)),
}


def limit(name: str, kind: type, key: str) -> float | None:
    return next((getattr(one, key) for one in SETTINGS[name].limits if isinstance(one, kind)), None)


def values_for(name: str) -> st.SearchStrategy:
    setting = SETTINGS[name]
    if name in ODD:
        return ODD[name]
    if name.endswith("kind"):
        return st.sampled_from(list_kinds("seq2seq"))
    if setting.choices:
        return st.sampled_from(setting.choices)
    if setting.many and setting.type is str:
        return files
    low, high = limit(name, Ge, "ge"), limit(name, Le, "le")
    whole = st.integers(low, min(high or 0, 600)) | st.integers(low, high)
    return {
        str: texts,
        bool: st.booleans(),
        int: whole | st.lists(whole, min_size=1, max_size=3) if setting.many else whole,
        float: st.floats(
            limit(name, Gt, "gt") if low is None else low,
            limit(name, Lt, "lt") if high is None else high,
            exclude_min=low is None,
            exclude_max=high is None,
        ),
    }[setting.type]


@st.composite
def recipes(draw) -> Recipe:
    base = draw(st.sampled_from(BASES))
    names = draw(st.lists(st.sampled_from(list(settings(type(base)))), max_size=12, unique=True))
    values = {name: draw(values_for(name)) for name in names if name not in ("task", "model.kind")}
    values |= {"task": base.task, "model.kind": base.model.kind}
    try:
        return Recipe.of(nested(values))
    except RecipeError:
        assume(False)
        raise
