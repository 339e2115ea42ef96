"""Words that begin with vectors from a file."""

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.runs.run import load, train
from tests.preparing import prepare_task

EXAMPLES = [("The cat sat .", "a"), ("a dog ran !", "b")] * 15
VECTORS = {"the": [1, 2, 3, 4], "cat": [0, 1, 0, 1], "dog": [5, 5, 5, 5], ".": [9, 9, 9, 9]}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in VECTORS.items()))
    return path


def recipe(task: str, file, *overrides: str) -> Recipe:
    words = ["data.source_tokenizer=words"] if task == "classify" else []
    return Recipe.of({"task": task}).override(f"data.vectors={file}", "model.size=4", *words, *overrides)


@pytest.mark.parametrize(("task", "more"), [("classify", []), ("tag", []), ("tag", ["data.characters=4"])])
def test_a_word_that_the_file_knows_begins_with_its_vector(file, task, more):
    examples = EXAMPLES if task == "classify" else [(text, " ".join("x" * 4)) for text, _ in EXAMPLES]
    made, _ = prepare_task(recipe(task, file, *more).resolved(), print, examples)
    torch.manual_seed(0)
    model, drawn, told = made.shape.build().eval(), made.shape.build(), []
    made.initialize(model, told.append)
    layer = getattr(model.embed, "words", model.embed)
    for word, numbers in {"The": VECTORS["the"], "dog": VECTORS["dog"], ".": VECTORS["."]}.items():
        place = made.source.symbols.index(word)
        assert np.allclose(layer(torch.tensor([place]))[0].detach(), numbers, atol=1e-5)
    torch.manual_seed(0)
    drawn = made.shape.build()
    kept = made.source.symbols.index("ran")
    assert torch.equal(layer.weight[kept], getattr(drawn.embed, "words", drawn.embed).weight[kept])
    assert "of the" in told[0] and "have a vector" in told[0]


def test_vectors_of_another_width_are_refused(file, tmp_path):
    with pytest.raises(RecipeError, match="vectors of 4 features, but model.embedding is 8"):
        list(train(recipe("classify", file, "model.embedding=8"), tmp_path / "run", examples=EXAMPLES))


def test_only_words_have_vectors(file, tmp_path):
    with pytest.raises(RecipeError, match="only words have vectors"):
        list(train(recipe("classify", file, "data.source_tokenizer=bpe"), tmp_path / "run", examples=EXAMPLES))


def test_a_run_needs_the_file_no_more(file, tmp_path):
    list(train(recipe("classify", file, "train.steps=1"), tmp_path / "run", examples=EXAMPLES))
    file.unlink()
    assert load(tmp_path / "run").predict("the cat")
