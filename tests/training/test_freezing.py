"""Freezing parts by their names."""

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.models import GenerationObjective
from seqloom.training.freezing import freeze
from seqloom.training.loop import Training
from seqloom.training.tensors import copy_weights

from ..recipes import small_seq2seq
from .tiny import Guesser, Rows, settings


def writing() -> GenerationObjective:
    recipe = Recipe().override("model.size=8", "model.kind=gru").resolved()
    return GenerationObjective(small_seq2seq(recipe.model, 5, 6))


def frozen(objective: GenerationObjective) -> set[str]:
    return {name for name, each in objective.model.named_parameters() if not each.requires_grad}


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("embed", "embed."),
        ("source", "source."),
        ("source.encoder", "source.encoder."),
        ("encoder", "source.encoder."),
        ("decoder", "decoder."),
        ("head", "head."),
    ],
)
def test_a_part_is_a_path_or_the_end_of_one(name: str, prefix: str) -> None:
    objective = writing()
    freeze(objective, [name])
    assert frozen(objective) == {each for each, _ in objective.model.named_parameters() if each.startswith(prefix)}
    assert frozen(objective)


@pytest.mark.parametrize(("name", "near"), [("encodr", "'encoder'"), ("hed", "'head'"), ("sorce", "'source'")])
def test_a_name_of_nothing_is_refused_with_the_nearest_right_one(name: str, near: str) -> None:
    with pytest.raises(RecipeError, match=f"did you mean {near}") as error:
        freeze(writing(), [name])
    assert "\n" not in str(error.value)
    for nothing in ("zzzz", "", "."):
        with pytest.raises(RecipeError, match="parts are embed, decoder, head, source"):
            freeze(writing(), [nothing])


def test_something_must_be_left_to_learn() -> None:
    with pytest.raises(RecipeError, match="leaves no weight"):
        freeze(writing(), ["embed", "source", "decoder", "head"])


def test_a_frozen_part_stays_as_it_was_and_the_rest_learns() -> None:
    training = Training(Guesser(), Rows(), settings(freeze=("embed", "norm"), weight_decay=0.5))
    before = copy_weights(training.objective)
    for _ in range(4):
        training.advance()
    for name, after in copy_weights(training.objective).items():
        assert torch.equal(after, before[name]) == name.startswith(("embed.", "norm.")), name
