"""Sequences that say tokens in their order, learned by CTC."""

import itertools
import math

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.data.samples.tones import NAMES, RATE, tones
from seqloom.data.vocabulary import SPECIALS
from seqloom.errors import DataError, RecipeError, RunError
from seqloom.layers.ctc import CTC
from seqloom.runs.run import load, train
from tests.preparing import prepare_task

SMALL = ("data.source_type=numbers", "model.kind=gru", "model.size=16", "train.batch_tokens=512")
LETTERS = "abc"


def spell(word, chance):
    """A word as numbers: some steps of each letter, and a step of nothing behind it."""
    steps = [np.eye(4)[[LETTERS.index(one)] * chance.integers(1, 4) + [3]] for one in word]
    return (np.concatenate(steps) + 0.05 * chance.standard_normal((sum(map(len, steps)), 4))).astype(np.float32)


def words(count, seed=0):
    chance = np.random.default_rng(seed)
    made = ["".join(chance.choice(list(LETTERS), chance.integers(1, 5))) for _ in range(count)]
    return [(spell(word, chance), word) for word in made]


def parts(examples):
    return {part: examples for part in ("train", "validation", "test")}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spelled") / "run"
    settings = (*SMALL, "train.steps=100", "train.learning_rate=0.03", "train.validate_every=100")
    recipe = Recipe.of({"task": "transcribe"}).override(*settings)
    examples = {"train": words(150), "validation": words(20, 1), "test": words(30, 2)}
    list(train(recipe, folder, examples=examples))
    return load(folder)


def test_words_are_read_from_their_steps_and_scored_beside_a_baseline(run):
    found = run.scores["scores"]
    assert found["exact"]["value"] > 0.9 and set(found["exact"]["baselines"]) == {"most frequent"}
    assert found["token error rate"]["value"] < found["token error rate"]["baselines"]["most frequent"]


def test_answers_are_ranked_by_their_probability_and_the_same_beside_longer_ones(run):
    given = [source for source, _ in words(5, 3)]
    together = run.predict_many(given, beam=5)
    for source, answers in zip(given, together, strict=True):
        scores = [one.score for one in answers]
        assert scores == sorted(scores, reverse=True) and len({one.output for one in answers}) == len(answers) == 5
        assert sum(math.exp(score) for score in scores) <= 1 + 1e-9
        assert all(one.score == pytest.approx(sum(one.logs)) for one in answers)
        [alone] = run.predict_many([source], beam=5)
        assert [one.output for one in alone] == [one.output for one in answers]
        assert [one.score for one in alone] == pytest.approx(scores, abs=1e-4)
        [[greedy]] = run.predict_many([source], beam=1)
        assert greedy.score == pytest.approx(dict((one.output, one.score) for one in answers)[greedy.output], abs=1e-6)
        assert not any(special in one.output for one in answers for special in SPECIALS)


def test_the_loss_of_a_batch_is_that_of_its_rows_and_of_torch(run):
    task, model, rows = run.task, run.model, words(3, 4)
    encoded = task.shape.encode(rows)
    with torch.no_grad():
        together, count, _ = task.objective(model)(task.shape.collate(encoded, [0, 1, 2]))
        alone = [task.objective(model)(task.shape.collate(encoded, [row]))[0] for row in range(3)]
    assert float(together) == pytest.approx(float(sum(alone)), abs=1e-3) and count == sum(len(word) for _, word in rows)
    for (source, word), loss in zip(rows, alone, strict=True):
        [likelihood] = run.score_texts([word], source)
        assert sum(likelihood.logs) == pytest.approx(-float(loss), abs=1e-3)


def test_what_a_person_may_ask_is_answered_or_refused_in_words(run):
    [(source, word)] = words(1, 5)
    look = run.look(source)
    for view in ("gates", "gradients", "order"):
        look.draw(view)
    with pytest.raises(DataError, match="more tokens than its input can say"):
        run.look(source, answer="abcabcabcabcabcabcabcabcabc")
    with pytest.raises(RunError, match="CTC"):
        from seqloom.exchange.program import describe_run

        describe_run(run)


def test_sources_that_are_too_short_are_counted_and_refused_or_left_out():
    short = [(np.zeros((2, 1), np.float32), "aa"), (np.zeros((1, 1), np.float32), "ab")]
    good = [(np.ones((4, 1), np.float32) * n, "ab") for n in range(6)]
    recipe = Recipe.of({"task": "transcribe"}).override(*SMALL, "model.embedding=16")
    with pytest.raises(DataError, match=r"2 of 8 train examples have too few elements .* such as 2 for 'aa'"):
        prepare_task(recipe, note=lambda line: None, examples=parts(good + short))
    task, prepared = prepare_task(
        recipe.override("data.on_bad_row=skip"), note=lambda line: None, examples=parts(good + short)
    )
    notes = []
    task.initialize(task.shape.build(), notes.append)
    assert [note.split(",")[0] for note in notes] == [
        f"{part}: 2 examples left out" for part in ("train", "validation")
    ]
    assert sorted(row for rows in task.shape.order(prepared, 0) for row in rows) == list(range(6))
    assert math.isfinite(task.shape.validate(task.shape.build().eval(), prepared)["loss"])
    with pytest.raises(DataError, match="every training example has too few elements"):
        prepare_task(recipe, note=lambda line: None, examples=parts(short))


def test_an_element_can_say_several_tokens(tmp_path):
    recipe = Recipe.of({"task": "transcribe"}).override(
        *("data.source_type=tokens", "data.target_tokenizer=spaced", "model.frames=2", "model.kind=gru"),
        *("model.size=24", "train.batch_tokens=256", "train.steps=80", "train.learning_rate=0.02"),
    )
    sounds = {"a": "A", "b": "B", "x": "K S"}
    spelled = ["".join(one) for length in (1, 2, 3, 4) for one in itertools.product("abx", repeat=length)]
    examples = [(word, " ".join(sounds[letter] for letter in word)) for word in spelled]
    with pytest.raises(DataError, match=r"too few elements .*model\.frames"):
        prepare_task(recipe.override("model.frames=1"), note=lambda line: None, examples=parts(examples))
    list(train(recipe, tmp_path / "run", examples=parts(examples)))
    run = load(tmp_path / "run")
    assert run.scores["scores"]["exact"]["value"] == 1
    [[best, *_]] = run.predict_many(["xaxx"], beam=3)
    assert best.output == "K S A K S K S"
    run.look("xa").draw("gradients")


def test_frames_are_read_in_their_order_and_padding_has_none():
    torch.manual_seed(0)
    head, features = CTC(6, 5, frames=2).double(), torch.randn(2, 3, 6, dtype=torch.float64)
    mask, target = torch.tensor([[True] * 3, [True, True, False]]), torch.tensor([[1, 2, 3], [4, 4, 0]])
    logs = head.project(features).reshape(2, 6, 5).log_softmax(-1).transpose(0, 1)
    lengths = torch.tensor([6, 4]), torch.tensor([3, 2])
    expected = torch.nn.functional.ctc_loss(logs, target, *lengths, reduction="sum")
    torch.testing.assert_close(head.loss(features, target, mask)[0], expected)


def test_settings_of_decoders_are_not_there():
    for setting in (
        "train.teacher_forcing=0.5",
        "model.decoder.size=8",
        "model.attention=dot",
        "data.source_type=image",
    ):
        with pytest.raises(RecipeError):
            Recipe.of({"task": "transcribe"}).override(setting)


def test_no_tune_of_the_sample_is_in_two_parts():
    parts = tones()
    tunes = [tune for part in parts.values() for _, tune in part]
    assert len(set(tunes)) == len(tunes) and {note for tune in tunes for note in tune.split()} == set(NAMES)
    assert all(np.abs(sound).max() <= 1 and len(sound) / RATE > 0.2 for part in parts.values() for sound, _ in part)


def test_it_resumes_to_the_same_bits(tmp_path):
    settings = (*SMALL, "model.dropout=0.2", "train.steps=7", "train.checkpoint_every=2", "train.validate_every=3")
    recipe, examples = Recipe.of({"task": "transcribe"}).override(*settings), parts(words(20))
    list(train(recipe, tmp_path / "whole", examples=examples))
    records = train(recipe, tmp_path / "cut", examples=examples)
    for record in records:
        if record.step >= 3:
            break
    records.close()
    list(train(recipe, tmp_path / "cut", examples=examples, resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert (
        weights[0] == weights[1]
        and load(tmp_path / "cut").scores["scores"] == load(tmp_path / "whole").scores["scores"]
    )
