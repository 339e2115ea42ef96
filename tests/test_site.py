"""The pages of the site that are made from the code hold all of it."""

import importlib.util
import re
from pathlib import Path

import pytest

from seqloom.config.recipe import Recipe, builtin
from seqloom.look.views import VIEWS

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_in(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from names_in(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def test_every_setting_of_every_recipe_stands_in_the_reference(hooks):
    told = set(re.findall(r"^\| `([^`]+)` \|", hooks.settings_page(), re.MULTILINE))
    for recipe in builtin():
        values = Recipe.read(recipe).model_dump(mode="json")
        names = {name for name in names_in(values) if name.partition(".")[0] in hooks.TABLES}
        assert {name for name in names if not name.startswith(("model.encoder.", "model.decoder."))} <= told


def test_a_setting_is_told_with_its_help_default_and_owners(hooks):
    page = hooks.settings_page()
    [heads] = re.findall(r"^\| `model\.heads` .*", page, re.MULTILINE)
    assert heads.endswith("| kinds transformer |")
    [steps] = re.findall(r"^\| `train\.steps` .*", page, re.MULTILINE)
    assert steps.endswith("| all |")
    assert not re.search(r"<(?!br)\w", page), "what looks like markup is none"


def test_the_python_interface_has_what_the_readme_uses(hooks):
    page = hooks.api_page()
    for name in ("Recipe", "load", "train", "recurrent_encoder", "Generator", "beam", "Run", "Look"):
        assert f"\n### {name}\n" in page


def test_every_view_is_told_with_how_to_read_it_and_every_picture_is_of_one(hooks):
    page = hooks.views_page()
    assert all(f"## {name}\n\n{view.reading}" in page for name, view in VIEWS.items())
    pictures = sorted((ROOT / "docs" / "pictures" / "views").iterdir())
    assert pictures and {path.stem for path in pictures} <= set(VIEWS)
    assert all(f"](../pictures/views/{path.name})" in page for path in pictures)


def test_links_of_the_changelog_lead_to_pages_of_the_site(hooks):
    for target in re.findall(r"\]\(([^):]+\.md)", hooks.changelog_page()):
        assert (ROOT / "docs" / target).is_file(), target
