"""Settings that follow from others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.messages import settings
from seqloom.config.recipe import Recipe

from .settings import SETTINGS, recipes, value_of


def test_derived_settings_follow_from_the_others():
    recipe = Recipe().override("model.kind=transformer", "model.size=64", "train.steps=1000").resolved()
    assert (recipe.model.embedding, recipe.model.feed_forward, recipe.model.depth) == (64, 4 * 64, 1)


@given(st.integers(1, 10**9))
def test_derived_steps_keep_their_limits(steps):
    train = Recipe().changed("train.steps", steps).resolved().train
    assert 1 <= train.warmup <= min(1000, steps) and abs(train.warmup - min(steps / 20, 1000)) <= 1
    assert 1 <= train.validate_every <= min(500, steps) and abs(train.validate_every - min(steps / 20, 500)) <= 1
    assert train.checkpoint_every == train.validate_every


def test_given_settings_are_not_derived():
    texts = ["model.embedding=3", "model.feed_forward=5", "train.warmup=7", "train.validate_every=11"]
    recipe = Recipe().override("model.kind=transformer", *texts, "train.checkpoint_every=13").resolved()
    assert (recipe.model.embedding, recipe.model.feed_forward) == (3, 5)
    assert (recipe.train.warmup, recipe.train.validate_every, recipe.train.checkpoint_every) == (7, 11, 13)
    assert Recipe().changed("train.validate_every", 17).resolved().train.checkpoint_every == 17


def test_listed_sizes_say_depth_and_widths_and_one_size_holds_for_all_layers():
    body = Recipe().override("model.size=64", "model.depth=3").model.side("encoder")
    assert (body.size, body.sizes, body.width) == (64, (64, 64, 64), 64)
    model = Recipe().override("model.size=64,32,16", "model.decoder.size=48,24").resolved().model
    assert (model.depth, model.encoder.depth, model.decoder.depth) == (3, 3, 2)
    assert model.embedding == 48  # as the decoder's first layer
    encoder, decoder = model.side("encoder"), model.side("decoder")
    assert (encoder.sizes, encoder.width) == ((64, 32, 16), 16)
    assert (decoder.sizes, decoder.width) == ((48, 24), 24)


@pytest.mark.parametrize(
    ("overrides", "encoder", "decoder"),
    [
        ([], 1, 1),
        (["model.depth=2"], 2, 2),
        (["model.depth=3", "model.encoder.size=64,32"], 2, 3),
        (["model.depth=3", "model.encoder.depth=0"], 1, 3),
        (["model.size=64,32", "model.encoder.size=48"], 1, 2),
        (["model.size=64,32", "model.depth=2", "model.decoder.size=48"], 2, 2),
    ],
)
def test_a_depth_is_said_by_the_side_then_by_the_list_then_by_the_model(overrides, encoder, decoder):
    model = Recipe().override(*overrides).model
    assert (model.side("encoder").depth, model.side("decoder").depth) == (encoder, decoder)


def test_without_steps_or_time_there_is_a_usual_number_of_steps():
    steps = Recipe().resolved().train.steps
    assert steps > 0 and str(steps) in SETTINGS["train.steps"].help


def test_steps_wait_for_the_time_to_be_measured_out():
    waiting = Recipe().override("train.time=5m").resolved()
    assert (waiting.train.steps, waiting.train.warmup, waiting.train.validate_every) == (0, 0, 0)
    assert waiting.changed("train.steps", 40).resolved().train.warmup == 2


def test_a_side_takes_what_it_is_not_given_from_the_model():
    model = (
        Recipe().override("model.size=64", "model.depth=3", "model.encoder.size=32", "model.decoder.kind=lstm").model
    )
    encoder, decoder = model.side("encoder"), model.side("decoder")
    assert (encoder.kind, encoder.size, encoder.depth) == ("gru", 32, 3)
    assert (decoder.kind, decoder.size, decoder.depth) == ("lstm", 64, 3)
    assert encoder.bidirectional and "bidirectional" not in type(decoder).model_fields


@given(recipes())
def test_resolving_twice_changes_nothing(recipe):
    once = recipe.resolved()
    assert once.resolved() == once
    assert Recipe.of(once.model_dump(exclude_none=True)) == once


@given(recipes())
def test_resolving_changes_only_what_was_open(recipe):
    resolved = recipe.resolved()
    for name in settings(type(recipe)):
        before, after = value_of(recipe, name), value_of(resolved, name)
        assert before == after or before == 0 or name == "train.select_by"
    for side in ("encoder", "decoder"):
        assert resolved.model.side(side) == recipe.resolved().model.side(side)
