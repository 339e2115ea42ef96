"""The built-in recipes."""

import importlib
import tomllib
from pathlib import Path

import pytest

from seqloom.config.builtin import builtin, describe
from seqloom.config.recipe import Recipe, list_kinds
from seqloom.errors import RecipeError

from .settings import one_line


def test_the_built_in_recipes_are_these_and_one_needs_no_files():
    assert {"classify", "forecast", "pronounce", "seq2seq", "translate"} <= set(builtin())
    Recipe.read("seq2seq").check_data()


@pytest.mark.parametrize("name", builtin())
def test_a_built_in_recipe_reads_resolves_and_describes_itself(name):
    recipe = Recipe.read(name)
    assert Recipe.of(tomllib.loads(recipe.to_toml(comments=True))) == recipe
    assert recipe.resolved().resolved() == recipe.resolved()
    title, size, time, data = describe(name)
    assert (title, time) == (recipe.about.title, recipe.about.time) and title and time
    assert size == shapes_of(recipe)
    assert data == (f"sample {recipe.data.sample}" if recipe.data.sample else "your own files")


def shapes_of(recipe):
    return " → ".join(dict.fromkeys(recipe.model.side(side).shape for side in ("encoder", "decoder")))


def test_the_shapes_of_two_unlike_sides_and_of_unlike_layers():
    assert shapes_of(
        Recipe().override("model.decoder.kind=lstm", "model.decoder.size=64", "model.decoder.depth=2")
    ) == ("gru 128 × 1 → lstm 64 × 2")
    listed = Recipe().override("model.kind=lstm", "model.size=64,32")
    assert shapes_of(listed) == "lstm 64, 32"
    assert shapes_of(listed.override("model.decoder.size=48")) == "lstm 64, 32 → lstm 48 × 1"


@pytest.mark.parametrize("name", builtin())
def test_all_kinds_are_one_word_apart_in_every_built_in_recipe(name):
    recipe = Recipe.read(name)
    for kind in list_kinds(recipe.task):
        if kind == "gru-d" and recipe.task != "forecast":
            with pytest.raises(RecipeError, match="numbers of which some are missing"):
                Recipe.read(name, f"model.kind={kind}")
        else:
            changed = Recipe.read(name, f"model.kind={kind}")
            assert changed.model.side("encoder").kind == changed.model.side("decoder").kind == kind
            assert Recipe.of(tomllib.loads(changed.to_toml(comments=True))) == changed
            assert changed.override(f"model.kind={recipe.model.kind}").model.kind == recipe.model.kind


@pytest.mark.parametrize("name", ["pronounce", "pronounce-ctc"])
def test_pairs_of_a_pronouncing_dictionary_stand_two_blanks_apart(name):
    data = Recipe.read(name, "data.train=words.txt").data
    assert (data.format, data.separator, data.source_tokenizer, data.target_tokenizer) == (
        "txt",
        "  ",
        "characters",
        "words",
    )


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("seq2sek", 'there is no recipe "seq2sek"; did you mean seq2seq? built in are '),
        ("qqqq", 'there is no recipe "qqqq"; built in are '),
        ("", 'there is no recipe ""; built in are'),
        ("seq2\nseq", 'there is no recipe "seq2\\nseq"; did you mean seq2seq?'),
        ("seq2seq.toml", "there is no file seq2seq.toml; the built-in recipe is called seq2seq"),
        ("../recipes/seq2seq", "../recipes/seq2seq: there is no such file"),
    ],
)
def test_an_unknown_recipe_is_refused_with_the_nearest_and_the_list(tmp_path, monkeypatch, name, start):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as caught:
        Recipe.read(name)
    assert one_line(caught.value).startswith(start)


def test_every_row_of_the_results_is_a_recipe_that_can_be_read(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    results = importlib.import_module("results")
    for name, row in results.ROWS.items():
        recipe, *settings = results.settings_of(name, "DATA")
        assert Recipe.read(recipe).override(*settings).resolved().train.time == row.budget
