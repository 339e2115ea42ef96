"""The JSON schema of a recipe."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from seqloom.config.builtin import builtin
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError

from .settings import SETTINGS, json_values, nested


def resolve(schema: dict, node: dict) -> dict:
    reference = node.get("$ref")
    return schema["$defs"][reference.removeprefix("#/$defs/")] if reference else node


SCHEMA = Recipe.schema()


def schema_names(node: dict, prefix: str = "") -> set[str]:
    """Every dotted name that a schema allows; each of its tables must be closed."""
    node = resolve(SCHEMA, node)
    names = set()
    for choice in node.get("anyOf", []):
        names |= schema_names(choice, prefix)
    if "properties" in node:
        assert node["additionalProperties"] is False
        for key, inner in node["properties"].items():
            names |= schema_names(inner, f"{prefix}{key}.") or {prefix + key}
    return names


def test_the_schema_has_every_setting_and_no_other():
    assert schema_names(SCHEMA) - {"search"} == set(SETTINGS)  # which is empty where nothing is searched for


def fits(values: object) -> bool:
    return Draft202012Validator(SCHEMA).is_valid(values)


@pytest.mark.parametrize("name", builtin())
@pytest.mark.parametrize("comments", [True, False])
def test_the_schema_takes_every_built_in_recipe(name, comments):
    for recipe in (Recipe.read(name), Recipe.read(name).resolved()):
        assert fits(tomllib.loads(recipe.to_toml(comments)))


@pytest.mark.parametrize("table", ["model", "model.encoder"])
def test_the_schema_takes_a_size_or_a_list_of_them_within_bounds(table):
    for value, right in (
        (64, True),
        ([64, 32], True),
        ([], False),
        ([64, 0], False),
        (["64"], False),
        (0, False),
        ("64", False),
    ):
        assert fits(nested({f"{table}.size": value})) == right
    limits = [one["maxItems"] for one in find_lists(SCHEMA["$defs"]) if one.get("items", {}).get("maximum") == 65536]
    assert limits and set(limits) == {1000}


def find_lists(node: object) -> list[dict]:
    """Every schema of a list within this one."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and node.get("type") == "array" else []
    return own + [found for one in inner for found in find_lists(one)]


@given(st.sampled_from(list(SETTINGS)), json_values)
def test_what_the_schema_refuses_is_refused(name, value):
    values = nested({name: value})
    if not fits(values):
        with pytest.raises(RecipeError):
            Recipe.of(values)
