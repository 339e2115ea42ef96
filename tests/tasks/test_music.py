"""Music: tunes are checked and can be played; chords are scored in nats a step beside what needs no learning."""

import json
import math
import wave

import numpy as np
import pytest
import torch

from seqloom.architectures import ARCHITECTURES
from seqloom.config.recipe import Recipe
from seqloom.data.frames import KEYS
from seqloom.data.samples import SAMPLES
from seqloom.errors import RecipeError, SearchError
from seqloom.fields.frames import parse_frames
from seqloom.runs.run import Run, load, train
from seqloom.tasks.frame_writer import play_frames
from seqloom.tasks.generation import Continuation
from seqloom.tasks.tune_writer import TuneWriter
from seqloom.tasks.tune_writer import find_faults as faults
from tests.preparing import prepare_task

from ..recipes import measured

KINDS = [kind for kind in ARCHITECTURES if kind not in ("gru-d", "bag")]  # that one continues series of numbers
SETTINGS = (
    "model.size=16",
    "train.steps=6",
    "train.validate_every=3",
    "train.checkpoint_every=2",
    "train.batch_tokens=256",
)
TUNE = "X:1\nT:One\nM:6/8\nL:1/8\nK:D\n|:def def|a3 d3:|"


def pieces(folder):
    """Two voices that go up and down, a third apart."""
    chance = np.random.default_rng(0)
    made = [
        [[60 + n, 64 + n] for n in np.cumsum(chance.integers(-1, 2, chance.integers(5, 20))).tolist()]
        for _ in range(30)
    ]
    path = folder / "pieces.json"
    path.write_text(json.dumps({"train": made[:20], "valid": made[20:25], "test": made[25:]}))
    return path


def polyphony(folder, *settings):
    recipe = Recipe.read("chorales", f"data.train={pieces(folder)}", *SETTINGS, "train.bptt_window=8", *settings)
    task, prepared = prepare_task(recipe.resolved(), print)
    torch.manual_seed(0)
    return task, prepared, task.shape.build().eval()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_chords_goes_on_and_writes(kind, tmp_path):
    settings = f"data.train={pieces(tmp_path)}", f"model.kind={kind}", *SETTINGS, "train.bptt_window=8"
    recipe = Recipe.read("chorales", *settings)
    list(train(recipe, tmp_path / "whole"))
    run = load(tmp_path / "whole")
    assert set(run.scores["scores"]["nats a step"]["baselines"]) == {"frame frequency", "the last frame again"}
    [written] = run.generate("60 64\n61 65", length=12).finish()
    assert parse_frames(written.output).shape == (14, KEYS) and written.output.startswith("60 64\n61 65\n")
    records = measured(train(recipe, tmp_path / "cut"))
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


def test_the_score_of_a_frame_is_its_log_probability_key_by_key(tmp_path):
    task, _, model = polyphony(tmp_path)
    torch.nn.init.normal_(model.head.project.weight)
    before = ["60 64", "61 65"]
    [[answer]] = task.shape.predict(model, ["\n".join(before)])
    frames = np.concatenate([np.ones((1, KEYS)), parse_frames("\n".join(before))])
    with torch.no_grad():
        chances = (
            model(torch.from_numpy(frames)[None].float(), model.initial_state(1))[0][0, -1].double().sigmoid().numpy()
        )
    sounds = parse_frames(answer.output)[0].astype(bool)
    assert (sounds == (chances > 0.5)).all()
    assert answer.score == pytest.approx(np.log(np.where(sounds, chances, 1 - chances)).sum(), abs=1e-4)


def test_a_model_of_chords_without_an_opinion_loses_88_coins_a_step(tmp_path):
    task, prepared, model = polyphony(tmp_path)
    torch.nn.init.zeros_(model.head.project.weight)
    torch.nn.init.zeros_(model.head.project.bias)
    score = task.score(model, task.shape.examples(prepared, "test"))["nats a step"].score
    assert math.isclose(score.value, KEYS * math.log(2), rel_tol=1e-6)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_the_loss_of_chords_is_the_sum_over_pieces_read_one_by_one(kind, tmp_path):
    task, prepared, model = polyphony(tmp_path, f"model.kind={kind}", "train.bptt_window=20")
    total = 0.0
    for (piece,) in task.shape.examples(prepared, "test"):
        frames = torch.tensor(piece.copy()).float()
        inputs = torch.cat([torch.ones(1, KEYS), frames[:-1]])
        with torch.no_grad():
            features, _ = model.features(inputs[None], model.initial_state(1))
            logits = model.head(features)[0]
        total -= torch.distributions.Bernoulli(logits=logits).log_prob(frames).sum().item()
    assert math.isclose(task.shape.losses(model, prepared.splits["test"].ids).sum(), total, rel_tol=1e-5)


def test_what_chords_are_compared_with_are_frequencies_of_the_training_part(tmp_path):
    task, prepared, _ = polyphony(tmp_path)
    seen = [piece for (piece,) in task.shape.examples(prepared, "train")]
    [[piece], *_] = task.shape.examples(prepared, "test")
    often = (np.concatenate(seen).sum(0) + 0.5) / (sum(map(len, seen)) + 1)
    expected = -(np.log(often) * piece + np.log(1 - often) * (1 - piece)).sum(1)
    rivals = task.declaration.baselines(task, prepared.splits["test"].ids)
    np.testing.assert_allclose(rivals["frame frequency"][: len(piece)], expected, rtol=1e-5)
    assert rivals["the last frame again"].mean() < rivals["frame frequency"].mean()


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_chords_are_written_by_seed_and_at_temperature_0_the_likeliest(kind, tmp_path):
    task, _, model = polyphony(tmp_path, f"model.kind={kind}")
    torch.nn.init.normal_(model.head.project.weight)

    def outputs(**asked):
        run = Run(tmp_path, task, model)
        return [text.output for text in run.generate("60\n", length=15, **asked).finish()]

    assert outputs(seed=3, count=2) == outputs(seed=3, count=3)[:2] and outputs(seed=3) != outputs(seed=4)
    [likeliest] = outputs(temperature=0)
    frames = torch.from_numpy(parse_frames(likeliest)).float()[None]
    if kind == "gru":
        with torch.no_grad():
            told, _ = model(torch.cat([torch.ones(1, 1, KEYS), frames], 1), model.initial_state(1))
        assert ((told[:, 1:-1] > 0) == (frames[:, 1:] > 0)).all()
    with pytest.raises(SearchError, match="only the temperature"):
        outputs(top_k=3)


def test_what_chooses_one_of_many_is_refused_for_chords(tmp_path):
    with pytest.raises(RecipeError, match="model.tied is for what chooses one of many"):
        polyphony(tmp_path, "model.tied=true")


def test_a_key_that_goes_on_is_one_note():
    assert [(float(s.start), float(s.length), s.pitch) for s in play_frames(parse_frames("60 64\n60\n-\n60"))] == [
        (0.0, 0.25, 64),
        (0.0, 0.5, 60),
        (0.75, 0.25, 60),
    ]


# --- tunes ------------------------------------------------------------------------------------------------------


def test_tunes_are_learned_checked_and_kept_as_files_to_play(tmp_path):
    tunes = tmp_path / "tunes.abc"
    tunes.write_text("\n\n".join(text for (text,) in SAMPLES["tunes"]()["test"]))
    recipe = Recipe.read("music", f"data.train={tunes}", *SETTINGS, "train.bptt_window=64")
    list(train(recipe, tmp_path / "run"))
    run = load(tmp_path / "run")
    assert isinstance(run.task.writer, TuneWriter) and not run.task.shape.one_text
    assert run.scores["scores"]["well formed"]["baselines"] == {"real tunes": 1.0}
    assert run.scores["scores"]["perplexity"]["baselines"].keys() == {"uniform", "unigram", "6-gram"}
    judges = run.scores["validation_scores"]  # real tunes are no baseline: they judge nothing
    assert "perplexity" in judges and not any("real tunes" in one["baselines"] for one in judges.values())
    told = run.keep([of(TUNE), of(TUNE.replace("a3 d3", "a3"), "length"), of("nonsense")], tmp_path / "made")
    assert told == [
        "tune-1.abc, tune-1.mid, tune-1.wav: well formed",
        "tune-2.abc, tune-2.mid, tune-2.wav: the tune does not come to an end",
        "tune-3.abc: there is no tune: no line begins with X:",
        f"1 of 3 tunes in {tmp_path / 'made'} parse, fill their bars and end",
    ]
    with wave.open(str(tmp_path / "made" / "tune-1.wav")) as sound:
        assert sound.getnframes() > sound.getframerate()
    assert (tmp_path / "made" / "tune-1.mid").read_bytes()[:4] == b"MThd"


def of(text, finish="end"):
    return Continuation(text, 0.0, text, [], [], finish, 0.0, [])


def test_a_tune_is_well_formed_or_it_is_said_why_not():
    assert faults(TUNE) == ()
    assert "bar 2" in faults(TUNE.replace("def def|", "def def|de|"))[0]
    assert "without a bar line" in faults(TUNE.removesuffix(":|"))[0]
    assert faults(TUNE, "length") == ("the tune does not come to an end",)


def test_the_sample_of_tunes_is_well_formed_and_of_unlike_tunes():
    parts = SAMPLES["tunes"]()
    texts = [text for examples in parts.values() for (text,) in examples]
    bodies = {text.split("K:", 1)[1] for text in texts}
    assert len(bodies) == len(texts) and not any(map(faults, texts))
    assert parts == SAMPLES["tunes"]()


def test_what_is_copied_from_training_is_counted_by_its_notes_alone():
    task = TuneWriter.__new__(TuneWriter)
    tune = TUNE.replace("X:1\nT:One", "X:7\nT:Another").replace("def def", "d e f!\ndef")
    written = [Continuation(text, 0.0, text, [], [], "end", 0.0, []) for text in (tune, TUNE.replace("a3", "g3"))]
    found = task.check(written, [TUNE])
    assert found["copied"]["whole"] == 0.5 and found["copied"]["longest run"] == {"length": 15, "longest": 15}
    assert found["well formed"] == found["parse"] == found["end"] == 1
    assert "copied" not in task.check(written)


def test_shares_tell_apart_what_cannot_be_read_what_is_too_long_and_what_does_not_end():
    task = TuneWriter.__new__(TuneWriter)
    texts = [(TUNE, "end"), (TUNE.replace("a3", "a4"), "end"), ("no tune", "end"), (TUNE, "length")]
    found = task.check([Continuation(text, 0.0, text, [], [], finish, 0.0, []) for text, finish in texts])
    assert (found["parse"], found["fill their bars"], found["end"], found["well formed"]) == (0.75, 0.5, 0.75, 0.25)


def test_a_run_says_what_its_tunes_have_from_training_as_long_as_that_is_there(tmp_path, monkeypatch):
    tunes = "\n\n".join(TUNE.replace("X:1", f"X:{n}").replace("a3", f"{'abcdefg'[n % 7]}3") for n in range(30))
    (tmp_path / "tunes.abc").write_text(tunes)
    recipe = Recipe.read("music", f"data.train={tmp_path / 'tunes.abc'}", *SETTINGS, "data.validation_share=0.2")
    monkeypatch.setattr("seqloom.tasks.music.WRITTEN", 3)
    list(train(recipe, tmp_path / "run"))
    run = load(tmp_path / "run")
    assert {"copied", "longest copied run"} < set(run.scores["scores"])
    texts = run.generate(length=80, count=2).finish()
    assert run.check(texts)["copied"]["mean share"] > 0
    (tmp_path / "tunes.abc").write_text(tunes + "\n\n" + TUNE)
    assert "copied" not in run.check(texts)
