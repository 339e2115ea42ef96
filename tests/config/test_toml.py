"""Recipes as TOML, there and back, and as files."""

import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.config.messages import literal, settings
from seqloom.config.recipe import Recipe
from seqloom.config.toml import LARGEST
from seqloom.errors import RecipeError

from .settings import one_line, recipes, value_of


@given(recipes(), st.booleans())
def test_a_written_recipe_reads_back_equal(recipe, comments):
    assert Recipe.of(tomllib.loads(recipe.to_toml(comments))) == recipe
    assert Recipe.of(tomllib.loads(recipe.resolved().to_toml(comments))) == recipe.resolved()


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.floats(allow_nan=False) | st.integers() | st.booleans())
def test_any_value_is_written_as_toml_reads_it(value):
    line = f"value = {literal(value)}"
    read = tomllib.loads(line)["value"]
    assert read == value and type(read) is type(value)
    assert not isinstance(value, float) or math.copysign(1, read) == math.copysign(1, value)
    assert len(line.splitlines()) == 1


@given(recipes())
def test_a_written_recipe_is_complete(recipe):
    """Every setting has its line; those of a side that are as in [model] only as a comment."""
    for text in (recipe.to_toml(comments=False), recipe.to_toml(comments=True)):
        values = tomllib.loads(text)
        for name in settings(type(recipe)):
            table: object = values
            for key in name.split("."):
                table = table.get(key) if isinstance(table, dict) else None
            same = name.startswith(("model.encoder", "model.decoder")) and value_of(recipe, name) == getattr(
                recipe.model, name.split(".")[-1], None
            )
            assert table is not None or same


def test_comments_give_help_choices_and_what_is_derived():
    assert "#" not in Recipe().to_toml(comments=False)
    assert "derived" not in Recipe.read("seq2seq").resolved().to_toml(comments=True)
    text = Recipe().override("model.encoder.kind=transformer", "model.encoder.size=32").to_toml(comments=True)
    lines = text.splitlines()
    flat = " ".join(line.removeprefix("# ") for line in lines)
    for name, setting in settings(type(Recipe())).items():
        if not name.startswith(("model.encoder", "model.decoder")) and len(setting.choices) != 1:
            choices = f" One of {', '.join(map(literal, setting.choices))}." if setting.choices else ""
            assert setting.help + choices in flat
    assert 'One of "rnn", "lstm", ' in flat and 'One of "seq2seq", "caption", ' in flat
    assert "embedding = 0  # derived: 128" in lines
    assert "depth = 0  # derived: 1" in lines and "feed_forward = 0  # derived: 128" in lines
    assert "steps = 0  # derived: 2000" in lines
    assert "size = 128" in lines
    encoder = lines[lines.index("[model.encoder]") : lines.index("[model.decoder]")]
    assert 'kind = "transformer"' in encoder and "size = 32" in encoder and "# depth = 1" in encoder
    assert max(map(len, lines)) <= 120


def test_listed_sizes_are_written_as_lists_and_read_back():
    recipe = Recipe().override("model.size=64,32", "model.encoder.size=[48]", "model.encoder.depth=0")
    lines = recipe.to_toml(comments=True).splitlines()
    assert "size = [64, 32]" in lines and "depth = 0  # derived: 2" in lines
    encoder = lines[lines.index("[model.encoder]") : lines.index("[model.decoder]")]
    assert "size = [48]" in encoder
    decoder = lines[lines.index("[model.decoder]") : lines.index("[train]")]
    assert "# size = [64, 32]" in decoder and "# depth = 2" in decoder


def file_refusal(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RecipeError) as caught:
        Recipe.read(path)
    return one_line(caught.value)


def test_a_file_reads_with_its_overrides(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[data]\ntrain = "a.csv"\n[model]\nsize = 32\n')
    for given_path in (path, str(path)):
        recipe = Recipe.read(given_path, "model.size=64", "train.steps=9")
        assert (recipe.data.train, recipe.model.size, recipe.train.steps) == (("a.csv",), 64, 9)


def test_a_built_in_name_goes_before_a_file_of_that_name_and_a_file_needs_no_ending(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own").write_bytes(b"\xef\xbb\xbf[model]\r\nsize = 32\r\n")  # as Windows writes it
    assert Recipe.read("own").model.size == 32
    Path("seq2seq").write_text("[model]\nsize = 32\n")
    assert Recipe.read("seq2seq").data.sample == "dates"
    assert Recipe.read(Path("seq2seq")).model.size == 32


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("[model]\nsize = \n", 2, "this is not TOML"),
        ("[model]\nsize = 3\nsize = 4\n", 3, "this is not TOML"),
        ("[model]\nsize = [3,\n\n", 2, "this is not TOML"),
        (b"[about]\n\ntitle = '\xff'\n", 3, "not UTF-8"),
        (b"\n\xff", 2, "not UTF-8"),
        (b"\xff", 1, "not UTF-8"),
        ("[model]\ndepth = 1\nsise = 3\n", 3, "there is no setting model.sise; did you mean model.size?"),
        ("# size\n[model]\ndepth = 1\nsize = 'x'\n", 4, "model.size must be a whole number"),
        ("[data]\nformat = 'csv'\ntrain = [\n  'a',\n  3,\n]\n", 6, "data.train must be text or a list of texts"),
        ("[model]\nencoder.heads = 3\nencoder.kind = 'transformer'\n", 1, "the encoder has size 128 and heads 3"),
        ("[modle]\nsize = 3\n", 1, "there is no setting modle; did you mean model?"),
        ("\n[model.decoder]\nbidirectional = true\n", 3, "a decoder may not see the future"),
        ("[train]\nsteps = 3\ntime = '5m'\n", 1, "train.steps and train.time are both given"),
        ("model = 3\n", 1, "model must be a table of settings, not 3"),
    ],
)
def test_a_mistake_in_a_file_is_said_with_file_and_line(tmp_path, content, line, reason):
    path = tmp_path / "own.toml"
    sentence = file_refusal(path, content)
    assert sentence.startswith(f"{path}, line {line}: ")
    assert reason in sentence


def test_a_file_too_large_or_too_deep_for_a_recipe_is_refused(tmp_path):
    path = tmp_path / "own.toml"
    assert "this is not TOML" in file_refusal(path, "[model]\nsize = " + "9" * 5000)
    assert "nested too deeply" in file_refusal(path, "x = " + "[" * 100_000)
    assert "too long for a recipe" in file_refusal(path, b"#" * (LARGEST + 1))
    path.write_bytes(b"#" * LARGEST)
    assert Recipe.read(path) == Recipe()


@given(content=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_read_or_refused_in_one_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        Recipe.read(path)
    except RecipeError as error:
        assert one_line(error).startswith(str(path))


def test_what_cannot_be_opened_is_refused(tmp_path):
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for path, reason in (
        (folder, "cannot be read"),
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path / "none", "there is no such file"),
        (str(tmp_path / "none"), "there is no such file"),
        (tmp_path / ("x" * 5000 + ".toml"), "cannot be read"),
        ("a\0b.toml", "cannot be read"),
        ("line\nbreak.toml", "there is no such file"),
    ):
        with pytest.raises(RecipeError, match=reason) as caught:
            Recipe.read(path)
        one_line(caught.value)
