"""Which validation is the best: by its loss, or by its score, and by the loss where the score is the same."""

import math

from seqloom.config.recipe import Recipe
from seqloom.runs.run import load, train
from seqloom.training.records import Progress, selection_criteria

TOLD = [
    {"loss": 0.9, "accuracy": 0.5},
    {"loss": 0.5, "accuracy": 0.8},
    {"loss": 0.6, "accuracy": 0.9},
    {"loss": 0.7, "accuracy": 0.9},
    {"loss": 0.55, "accuracy": 0.9},
    {"loss": math.nan, "accuracy": 1.0},
]


def judged(best: str, told: list[dict[str, float]]) -> list[bool]:
    progress = Progress()
    return [progress.judge(*selection_criteria(scores, best)) for scores in told]


def test_the_lowest_loss_is_best_or_the_highest_accuracy_and_of_equals_that_of_the_lower_loss():
    assert judged("loss", TOLD) == [True, True, False, False, False, False]
    assert judged("score", TOLD) == [True, True, True, False, True, False]


def test_an_error_is_to_be_low_and_without_a_score_the_loss_decides():
    assert judged("score", [{"loss": 1.0, "absolute error": e} for e in (3.0, 2.0, 4.0)]) == [True, True, False]
    assert judged("score", [{"loss": e} for e in (3.0, 2.0, 4.0)]) == [True, True, False]


def test_patience_counts_from_the_best_score_and_survives_a_checkpoint():
    progress = Progress()
    for scores in TOLD[:4]:
        progress.judge(*selection_criteria(scores, "score"))
    again = Progress.read(progress.model_dump(), "here")
    assert again.validations_since_best == 1 and again == progress
    old = progress.model_dump(exclude={"best_loss"})  # as checkpoints were before there was a choice
    assert not Progress.read(old, "here").judge(-0.9, 0.7)


def test_labels_are_kept_by_their_accuracy_and_the_weights_of_the_run_are_those(tmp_path):
    assert {task: Recipe.of({"task": task}).resolved().train.select_by for task in ("classify", "tag", "seq2seq")} == {
        "classify": "score",
        "tag": "score",
        "seq2seq": "loss",
    }
    examples = [(f"{a}{b}", "even" if (a + b) % 2 else "odd") for a in range(9) for b in range(9)]
    recipe = Recipe.of({"task": "classify"}).override("model.size=8", "train.steps=24", "train.validate_every=2")
    told = [record.scores for record in train(recipe, tmp_path / "run", examples=examples) if record.scores]
    run = load(tmp_path / "run")
    _, prepared = run.task.declaration.prepare(run.recipe, print, examples)
    kept = run.task.shape.validate(run.model, prepared)
    assert kept["accuracy"] == max(scores["accuracy"] for scores in told)
