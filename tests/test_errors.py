"""The sentences of our own exceptions."""

import copy
from pathlib import Path

import pytest

from seqloom import errors
from seqloom.errors import DataError, MissingExtra, RecipeError, RunError, SearchError, SeqloomError


@pytest.mark.parametrize("kind", [RecipeError, DataError, RunError, SearchError, MissingExtra])
def test_every_mistake_of_a_person_is_a_seqloom_error(kind):
    assert issubclass(kind, SeqloomError)
    assert not issubclass(SeqloomError, ValueError)  # pydantic would swallow it inside a validator


def test_the_tree_in_the_docstring_names_every_class():
    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert classes == {word for word in errors.__doc__.split() if word in classes}
    assert len(classes) == 6


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DataError("no rows"), "no rows"),
        (DataError("no rows", "a.csv"), "a.csv: no rows"),
        (DataError("3 columns", Path("b") / "a.csv", 7), "b/a.csv, line 7: 3 columns"),
        (DataError("bad", file="a.csv", line=0), "a.csv, line 0: bad"),
    ],
)
def test_a_data_error_says_where(error, text):
    assert str(error) == text


def test_a_missing_package_comes_with_the_command_to_type():
    error = MissingExtra("babel", "samples")
    assert "babel" in str(error)
    assert str(error).endswith("pip install 'seqloom[samples]'")


@pytest.mark.parametrize("error", [DataError("bad", "a.csv", 7), MissingExtra("babel", "samples"), RunError("gone")])
def test_a_copied_error_says_the_same(error):
    """As happens when it comes from another process."""
    again = copy.copy(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
