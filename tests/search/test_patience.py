"""How long writing may take: a decoder that never ends is ended, and what it wrote says why."""

import itertools
import json

import pytest
import torch
from typer.testing import CliRunner

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.errors import SearchError
from seqloom.runs.run import load, train
from seqloom.search import BeamOptions, Patience, Recorder, base, beam, beams, choose_likeliest, stream, write, writing
from seqloom.tasks import frame_writer
from seqloom.tasks.decoding_options import DecodingOptions, Rules

from ..recipes import small
from .toy import END, Toy


@pytest.fixture
def clock(monkeypatch):
    """A second passes whenever somebody looks at it: a step, at whose begin and end it is looked at, takes one."""
    seconds = itertools.count()
    for module in (base, beams, writing, frame_writer):
        monkeypatch.setattr(module, "perf_counter", lambda: float(next(seconds)))


def test_a_row_that_does_not_end_is_ended_by_the_time_and_is_what_it_would_have_begun_with(clock):
    toy = Toy(5)
    whole = write(toy, choose_likeliest, *toy.begin(6), steps=40, end=END)
    cut = write(toy, choose_likeliest, *toy.begin(6), steps=40, end=END, patience=Patience(4))
    assert {one.finish for one in cut} == {"end", "time"}
    for one, other in zip(cut, whole, strict=True):
        assert one.tokens == other.tokens[:4] and one.logs == other.logs[:4]
        assert (one.finish == "time") == (len(other.logs) > 4)


def test_no_limit_and_room_that_ends_first_are_as_before(clock):
    toy = Toy(5)
    whole = write(toy, choose_likeliest, *toy.begin(6), steps=9, end=None)
    for seconds in (0, 9, 100):
        assert write(toy, choose_likeliest, *toy.begin(6), steps=9, end=None, patience=Patience(seconds)) == whole
    assert {one.finish for one in whole} == {"length"}


def test_a_beam_that_runs_out_of_time_gives_what_it_has(clock):
    toy = Toy(5, sharpness=0.5)
    short = beam(toy, *toy.begin(4), BeamOptions(beam_size=3, steps=5, end=END))
    recorder = Recorder()
    found = beam(
        toy, *toy.begin(4), BeamOptions(beam_size=3, steps=50, end=END), patience=Patience(5), recorder=recorder
    )
    assert [[(one.tokens, one.score) for one in some] for some in found] == [
        [(one.tokens, one.score) for one in some] for some in short
    ]
    assert {one.finish for some in found for one in some} == {"end", "time"}
    told = {node.why for tree in recorder.trees for node in tree.nodes if node.fate == "finished"}
    assert told == {"end", "time"}


def test_only_the_time_of_the_steps_counts(clock):
    toy = Toy(5)
    made = 0
    for _ in stream(toy, choose_likeliest, *toy.begin(1), steps=7, end=None, patience=Patience(6)):
        made += 1
        for _ in range(100):
            base.perf_counter()  # whoever reads takes long over it
    assert made == 6


def test_less_than_no_time_is_refused():
    for seconds in (-1.0, float("nan")):
        with pytest.raises(SearchError, match="cannot be negative"):
            Patience(seconds)


@pytest.fixture
def endless(tmp_path):
    """A run whose decoder never ends, but could go on for a very long time."""
    list(train(small(tmp_path, "train.steps=2", "train.validate_every=2"), tmp_path / "run"))
    run = load(tmp_path / "run")
    with torch.no_grad():
        run.model.head.project.bias[3] = -1e6  # END
    return run


def test_a_run_that_never_ends_its_answers_is_ended_by_its_recipe_or_who_asks(endless, clock):
    endless.task.recipe = endless.recipe.override("search.max_length=1000000", "search.timeout=5")
    for width in (1, 2):
        [best, *_] = endless.predict("abc", beam=width)
        assert best.finish == "time" and len(best.tokens) == 5
    [[best], [other]] = endless.answer(["abc", "ab"], DecodingOptions(1, timeout=3))
    assert best.finish == other.finish == "time" and len(best.tokens) == 6  # two answers have twice the time
    assert "".join(endless.stream("abc")) == endless.predict("abc", beam=1)[0].output


def test_the_command_line_says_that_the_time_has_cut_an_answer(endless, clock):
    asked = ["predict", str(endless.folder), "abc", "--min-length", "10", "--timeout", "3", "--json"]
    told = CliRunner().invoke(build_app(), asked)
    [answer, *_] = json.loads(told.stdout)["predictions"]
    assert told.exit_code == 0 and answer["finish"] == "time" and len(answer["tokens"]) == 3
    assert "'abc': was not written to its end" in told.stderr


def test_scores_do_not_depend_on_the_time(endless, clock):
    examples = [("abc", "cba"), ("ab", "ba")]
    scores = []
    for timeout in ("0", "2"):
        endless.task.recipe = endless.recipe.override("search.max_length=20", f"search.timeout={timeout}")
        scores.append({name: one.score.value for name, one in endless.task.score(endless.model, examples).items()})
    assert scores[0] == scores[1] and len(endless.predict("abc", 1)[0].tokens) == 2


@pytest.mark.parametrize("task", ["language", "chorales"])
def test_what_is_generated_ends_with_the_time(task, tmp_path, clock):
    recipe = Recipe.read(task, "model.size=8", "train.steps=1", "train.bptt_window=4", "model.kind=transformer")
    if task == "language":
        recipe = recipe.override("data.sample=", "data.train=x.txt")
        list(train(recipe, tmp_path / "run", examples=[("to be or not to be",)] * 30))
    else:
        from ..tasks.test_music import pieces

        list(train(recipe.override(f"data.train={pieces(tmp_path)}"), tmp_path / "run"))
    prompt, rules = ("to", Rules(min_length=1000)) if task == "language" else ("60 64", Rules())
    found = load(tmp_path / "run").generate(prompt, length=1000, count=2, timeout=10, rules=rules).finish()
    assert [text.finish for text in found] == ["time", "time"]
    assert {len(text.logs) for text in found} <= {20, 21}  # twice the time, and a step where a window is read anew
