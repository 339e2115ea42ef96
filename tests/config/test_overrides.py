"""Overrides as a person types them, and durations."""

import itertools
import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from seqloom.config.messages import literal
from seqloom.config.recipe import Recipe, seconds
from seqloom.errors import RecipeError

from .settings import OWNERS, SECTIONS, SETTINGS, json_values, nested, one_line, refusal, value_of, values_for


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.steps=1_000", 1000),
        ("train.learning_rate=1e-4", 1e-4),
        ("train.learning_rate = 3e-3 # a remark", 3e-3),
        ("model.kind=lstm", "lstm"),
        ('model.kind = "lstm"', "lstm"),
        ("model.kind = lstm ", "lstm"),
        ("model.bidirectional=false", False),
        ("data.target=1", "1"),
        ("data.target=2024-01-01", "2024-01-01"),
        ("data.target=true", "true"),
        ("data.target=a=b", "a=b"),
        ("data.target=[1]", "[1]"),
        ('data.target="a b"', "a b"),
        ("data.target=x\ny = 3", "x\ny = 3"),
        ('data.target="x"\ny = 3', '"x"\ny = 3'),
        ("data.separator=  ", "  "),
        ("data.separator= | ", " | "),
        ('data.separator="\\t"', "\t"),
        ("data.train=a.csv", ("a.csv",)),
        ("data.train=a.en,b.de", ("a.en", "b.de")),
        ("data.train=a.en, b.de", ("a.en", "b.de")),
        ("data.train=2024", ("2024",)),
        ('data.train="a,b.csv"', ("a,b.csv",)),
        ('data.train=["a,b", "c"]', ("a,b", "c")),
        ("data.train=", ()),
        ("data.train=[]", ()),
        ("task=seq2seq", "seq2seq"),
        ("model.size=64", 64),
        ("model.size=64,32", (64, 32)),
        ("model.size = 64, 32 # a remark", (64, 32)),
        ("model.size=1_000,0x20", (1000, 32)),
        ("model.size=[64, 32]", (64, 32)),
        ("model.size=[64]", (64,)),
        ("model.encoder.size=64,32", (64, 32)),
        ("train.select_by=", ""),
        ("model.init_gain=2", 2.0),
        ("train.learning_rate=1", 1.0),
    ],
)
def test_an_override_means_what_a_person_means(override, value):
    found = value_of(Recipe().override(override), override.partition("=")[0].strip())
    assert found == value and type(found) is type(value)


@settings_of_hypothesis(max_examples=400)
@given(st.sampled_from([name for name in SETTINGS if name.split(".")[-1] not in ("task", "kind", "from")]), st.data())
def test_an_override_with_the_value_in_toml_gives_that_value(name, data):
    value, base = data.draw(values_for(name)), OWNERS[name]
    override = f"{name}={literal(value)}"
    try:
        expected = Recipe.of(nested({"task": base.task, "model.kind": base.model.kind, name: value}))
    except RecipeError as error:
        assert refusal(override) == str(error)
        return
    assert base.override(override) == expected
    assert base.changed(name, value) == expected
    assert value_of(expected, name) == (tuple(value) if isinstance(value, list) else value)


@given(st.text() | st.builds("{}={}".format, st.sampled_from(list(SETTINGS)), st.text()))
def test_any_override_is_taken_or_refused_in_one_line(text):
    try:
        recipe = Recipe().override(text)
    except RecipeError as error:
        one_line(error)
    else:
        assert Recipe.of(tomllib.loads(recipe.to_toml(comments=True))) == recipe


@given(st.sampled_from([*SETTINGS, *filter(None, SECTIONS)]), json_values)
def test_any_dictionary_is_taken_or_refused_in_one_line(name, value):
    try:
        Recipe.of(nested({name: value}))
    except RecipeError as error:
        one_line(error)


def test_the_last_of_two_overrides_holds_and_none_changes_nothing():
    assert Recipe().override("model.size=2", "model.size=4").model.size == 4
    assert Recipe().override() == Recipe()


def test_a_later_word_takes_back_its_rival():
    """`train.time=5m` replaces the steps of the file, files of one's own replace the sample, and back."""
    sample = Recipe.read("seq2seq")
    assert sample.data.sample and sample.train.steps
    own = sample.override("data.train=a.csv", "data.test=b.csv", "train.time=5m")
    assert (own.data.sample, own.data.train, own.train.steps, own.train.time) == ("", ("a.csv",), 0, "5m")
    back = own.override("data.sample=dates", "train.steps=7")
    assert (back.data.sample, back.data.train, back.data.test) == ("dates", (), ())
    assert (back.train.steps, back.train.time) == (7, "")
    assert own.changed("train.steps", 1234).train.time == ""


def test_taking_a_rival_away_gives_nothing_else_up():
    own = Recipe().override("data.train=a.csv", "train.time=5m")
    assert own.override("data.sample=", "train.steps=0") == own
    assert Recipe.read("seq2seq", "data.train=", "train.time=") == Recipe.read("seq2seq")


def test_what_is_said_of_both_sides_holds_for_both():
    """Even over a resolved recipe, in which both sides are spelled out: an override never falls flat."""
    run = Recipe.read("seq2seq").resolved().override("model.kind=lstm", "model.size=64", "model.dropout=0")
    for side in ("encoder", "decoder"):
        body = run.model.side(side)
        assert (body.kind, body.size, body.dropout) == ("lstm", 64, 0)
    apart = run.override("model.size=32", "model.encoder.size=16")
    assert (apart.model.side("encoder").size, apart.model.side("decoder").size) == (16, 32)


def test_sizes_may_be_listed_over_a_resolved_recipe_if_the_depth_follows():
    run = Recipe.read("seq2seq").resolved()
    assert "depth 0 is as many as listed" in refusal("model.size=64,32", of=run)
    listed = run.override("model.size=64,32", "model.depth=0").model
    assert listed.side("encoder").sizes == listed.side("decoder").sizes == (64, 32)


def test_changing_one_setting_is_checked():
    with pytest.raises(RecipeError, match="did you mean train.steps"):
        Recipe().changed("train.step", 3)
    with pytest.raises(RecipeError, match="whole number"):
        Recipe().changed("train.steps", 3.0)
    with pytest.raises(RecipeError, match="table of settings"):
        Recipe().changed("train", {})
    assert Recipe().changed("train.steps", 3).train.steps == 3
    for sizes in ([64, 32], (64, 32)):
        assert Recipe().changed("model.size", sizes).model.size == (64, 32)


@given(*[st.integers(0, 999_999)] * 3)
def test_a_time_is_the_sum_of_its_parts(hours, minutes, rest):
    text = "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
    assume(text)
    assert seconds(text) == hours * 3600 + minutes * 60 + rest


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "0s", "5 m", " 5m", "5m\n", "5M", "1.5h", "-5m", "5m1h", "5m5m", "5min", "٥m", "1" * 99 + "s"],
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(RecipeError, match="is not a duration") as caught:
        seconds(text)
    one_line(caught.value)


def test_two_recipes_are_equal_when_their_settings_are():
    variants = [Recipe(), Recipe().changed("model.size", 64), Recipe().changed("train.seed", 1)]
    for one, other in itertools.combinations(variants, 2):
        assert one != other
    assert Recipe().changed("model.size", 128) == Recipe()
