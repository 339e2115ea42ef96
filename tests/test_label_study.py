"""`study labels`: the law is found again where it holds; the study trains, goes on and says what more labels give."""

import json

import numpy as np
import pytest

from seqloom.errors import DataError, RecipeError
from seqloom.runs import label_study
from seqloom.runs.label_study import choose_counts, draw, fit_power_law, forecast_gain, round_count
from seqloom.runs.studies import show_study, train_study

TOLD = {"good": "yes", "bad": "no"}


def test_a_power_law_is_found_again():
    counts = np.array([10.0, 100, 1000, 5000])
    shift, slope = fit_power_law(counts, 0.8 * counts**-0.3)
    assert np.exp(shift) == pytest.approx(0.8) and slope == pytest.approx(-0.3)


def test_a_gain_is_that_of_the_law_and_its_interval_is_the_noise():
    counts, error = [50, 100, 200, 400], lambda n: 0.9 * n**-0.4
    exact = [[1 - error(count)] * 3 for count in counts]
    gain, spread = forecast_gain(counts, exact, 400)
    assert gain == pytest.approx(error(400) - error(800)) and spread == pytest.approx(0, abs=1e-9)
    chance = np.random.default_rng(0)
    noisy = [[1 - error(count) * (1 + 0.1 * chance.standard_normal()) for _ in range(3)] for count in counts]
    again, wide = forecast_gain(counts, noisy, 400)
    assert wide > 1e-4 and abs(again - gain) < 0.01


def test_draws_have_every_label_and_are_nested_in_nothing_but_the_training_part():
    rows = [(f"text {n}", "rare" if n == 7 else "often") for n in range(40)]
    for seed in range(5):
        found = draw(rows, 5, seed)
        assert len(found) == len(set(found)) == 5 and {label for _, label in found} == {"rare", "often"}
    assert draw(rows, 5, 1) == draw(rows, 5, 1) != draw(rows, 5, 2)
    with pytest.raises(DataError, match="the training part has 6 examples"):
        choose_counts(rows[5:11])
    assert [round_count(one) for one in (1, 37, 250.0, 9999)] == [1, 30, 200, 9000]


def test_the_study_trains_shares_of_a_persons_data_and_says_what_more_would_give(tmp_path, monkeypatch):
    monkeypatch.setattr(label_study, "SHARES", (4, 2, 1))
    monkeypatch.setattr(label_study, "SEEDS", 2)
    lines = [f"{word} film number {n},{label}\n" for n in range(16) for word, label in TOLD.items()]
    (tmp_path / "mine.csv").write_text("source,target\n" + "".join(lines))
    settings = (f"data.train={tmp_path / 'mine.csv'}", "data.source_tokenizer=words", "model.kind=gru", "model.size=8",
                "model.embedding=8", "train.steps=3", "train.batch_tokens=256")  # fmt: skip
    said = [record.text for record in train_study("labels", tmp_path / "study", *settings)]
    assert sum("labels, seed" in text for text in said) == 6
    rows = show_study("labels", tmp_path / "study")
    assert [row["labels"] for row in rows[:3]] == json.loads((tmp_path / "study/plan.json").read_text())["counts"]
    assert "more labels would give" in rows[-1][""] and rows[-1]["labels"] == 2 * rows[2]["labels"]
    assert (tmp_path / "study/labels.svg").exists() and (tmp_path / "study/results.json").exists()
    assert not [record for record in train_study("labels", tmp_path / "study", *settings) if "seed" in record.text]
    with pytest.raises(RecipeError, match="for recipes that give a text one label"):
        list(train_study("labels", tmp_path / "other", *settings, "data.target_type=labels"))
