"""Studies: several trainings of one recipe, side by side, with pictures and a table; stopped, they go on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from seqloom.cli import look
from seqloom.config.recipe import Recipe
from seqloom.data.samples.recall import COUNTS, FARTHEST, recall
from seqloom.errors import RecipeError
from seqloom.fields import Prediction
from seqloom.look.measures.schedules import compute_rectification
from seqloom.runs import studies
from seqloom.runs.studies import STUDIES


def test_the_sample_asks_for_the_letter_in_the_middle():
    found = recall()
    assert found == recall()
    for part, pairs in found.items():
        for letters, key in pairs:
            half = len(letters) // 2
            assert letters[half] == key and [letter for letter in letters if letter.isupper()] == [key]
            assert len(letters) == 2 * half + 1
        assert {len(letters) // 2 for letters, _ in pairs} == set(range(1, FARTHEST + 1)), part


class Forgetful:
    """A run that remembers ten letters, and then says A."""

    class task:
        class shape:
            @staticmethod
            def examples(prepared, part):
                return recall()[part]

    def read_own_data(self):
        return None

    def predict_many(self, inputs, width):
        for letters in inputs:
            half = len(letters) // 2
            yield [Prediction(letters[half] if half <= 10 else "A", 0.0)]


def test_accuracy_is_told_by_distance():
    found = studies.measure_accuracy_by_distance(Forgetful())
    assert found[:, 0].tolist() == list(range(1, FARTHEST + 1)) and (found[:10, 1] == 1).all()
    assert found[10:, 1].mean() == pytest.approx(1 / 8, abs=0.03)
    assert studies.average_between(found, 1, 10) == 1 and studies.smooth(found, 4).shape == (10, 2)


def test_a_study_trains_every_way_once_and_writes_its_pictures(tmp_path, monkeypatch):
    """And of a fresh plain recurrence the gradient fades with the distance: what the study is about."""
    for part, count in {"train": 400, "validation": 40, "test": 120}.items():
        monkeypatch.setitem(COUNTS, part, count)
    ways = {kind: [f"model.kind={kind}", "model.bidirectional=false"] for kind in ("rnn", "orthogonal")}
    monkeypatch.setitem(studies.STUDIES, "vanishing", replace(studies.STUDIES["vanishing"], ways=ways))
    monkeypatch.setattr("seqloom.look.charts.base.make_library_tag", lambda: "")
    quick = ("model.size=16", "train.steps=2", "train.validate_every=2")
    records = list(studies.train_study("vanishing", tmp_path, *quick))
    rows = studies.show_study("vanishing", tmp_path)
    assert [row["way"] for row in rows] == list(ways) and all(0 <= row["accuracy"] <= 1 for row in rows)
    assert rows[0]["gradient 40 back, before"] < 0.01 * rows[1]["gradient 40 back, before"]
    assert [record.step for record in records if record.scores] == [2, 2]
    for name in ("accuracy.html", "accuracy.svg", "gradients.html", "gradients.svg", "results.json"):
        assert (tmp_path / name).stat().st_size > 100
    assert list(studies.train_study("vanishing", tmp_path, *quick)) == []


def test_the_ways_to_tame_a_transformer_are_recipes_and_a_wrong_name_is_told():
    for study in (studies.STUDIES["vanishing"], studies.STUDIES["taming"]):
        for changes in study.ways.values():
            assert Recipe.read(study.recipe, *studies.fill_steps(changes, Recipe.read(study.recipe))).resolved()
    short = Recipe.read("taming", "train.steps=20")
    norms = {
        way: Recipe.read("taming", *studies.fill_steps(changes, short), "train.steps=20")
        for way, changes in studies.STUDIES["taming"].ways.items()
    }
    assert norms["post-LN, warm-up"].train.warmup == norms["post-LN, SGD, warm-up"].train.warmup == 10
    assert {recipe.model.depth for recipe in norms.values()} == {12} and norms["pre-LN"].model.norm == "pre"
    with pytest.raises(RecipeError, match="there is no study 'x'; there are vanishing, taming, labels"):
        list(studies.train_study("x", Path()))


def test_smoothing_takes_means_of_neighbors():
    points = np.array([[1, 0.0], [2, 1.0], [3, 0.5], [4, 0.5], [5, 9.0]])
    np.testing.assert_allclose(studies.smooth(points, 2), [[1.5, 0.5], [3.5, 0.5]])


def test_the_share_of_a_step_that_radam_makes_is_torchs():
    """Where the gradient never changes, Adam's step is the learning rate: what RAdam makes of it is its share."""
    weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer, moved = torch.optim.RAdam([weight], lr=1.0, eps=0.0), []
    for _ in range(2000):
        before = weight.item()
        weight.grad = torch.ones_like(weight)
        optimizer.step()
        moved.append(before - weight.item())
    found = compute_rectification(2000)
    assert found[0, 0] == 6 and found[-1, 0] == 2000
    np.testing.assert_allclose(found[:, 1], np.array(moved)[found[:, 0].astype(int) - 1], rtol=1e-6)


def test_the_command_knows_every_study_before_it_imports_them():
    assert tuple(STUDIES) == look.STUDIES
