"""Variants are matched, jobs are shared and resumed, and what is said follows from the scores alone."""

import json
import multiprocessing
import sys
import threading
from pathlib import Path

import pytest

import seqloom
from seqloom.config.ranges import parse_over
from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.look.report.comparison import write_comparison_page
from seqloom.runs import compare as module
from seqloom.runs.compare import (
    RESULTS,
    RUNS,
    Design,
    claim,
    make_plan,
    name_job,
    read_comparison,
    read_plan,
    train_variants,
)
from seqloom.runs.matching import TOLERANCE, Workshop, list_variants, match_parameters

from .browser import chromium
from .recipes import forecasting, small, walks

KINDS = ("rnn", "lstm", "gru", "transformer")
FEW = ("train.steps=2", "train.validate_every=1", "train.batch_tokens=128", "search.max_length=6")


def plan_of(folder, recipe, seeds=2, **options):
    design = Design(**({"kinds": KINDS[:2], "match": "steps", "seeds": seeds} | options))
    list(make_plan(folder / "c", recipe, design))
    return read_plan(folder / "c")


def result(value, better="higher", seconds=1.0):
    score = {"value": value, "better": better, "baselines": {"copy": 0.1}}
    cost = {"steps": 5, "seconds": seconds, "milliseconds": 2.0, "megabytes": 0.5}
    return {"scores": {"exact": score, "BLEU": score | {"value": -value}}, "task": "seq2seq", **cost}


def fill(folder, plan, value):
    """Results as if runs had ended with these scores."""
    for variant, seed in plan.jobs():
        path = folder / "c" / RESULTS / f"{name_job(variant, seed)}.json"
        path.write_text(json.dumps(result(value(variant.name, seed))))


# --- matching -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["seq2seq", "forecast", "classify"])
def test_sizes_are_found_at_which_all_have_as_many_parameters(task, tmp_path):
    if task == "seq2seq":
        recipe, examples, kinds = small(tmp_path, "model.size=24"), None, (*KINDS, "convolution", "minlstm")
    elif task == "classify":
        recipe, kinds = Recipe.of({"task": "classify"}).override("model.size=24"), KINDS[:2]
        examples = {part: [("good film", "x"), ("bad one", "y")] * 5 for part in ("train", "validation", "test")}
    else:
        recipe, examples, kinds = (
            forecasting("model.kind=transformer", "model.heads=2", "model.size=24"),
            walks(),
            (*KINDS, "gru-d"),
        )
    workshop = Workshop(recipe, examples)
    matched = match_parameters(workshop, list_variants(kinds, ()))
    counts = [workshop.count(variant.recipe(recipe)) for variant in matched]
    assert [variant.parameters for variant in matched] == counts
    assert max(counts) / min(counts) - 1 < TOLERANCE
    own = workshop.count(recipe.override(f"model.kind={kinds[0]}"))
    assert 1 / 8 < counts[0] / own < 8


def test_every_kind_meets_every_choice():
    overs = [parse_over("model.depth=1,2", Recipe()), parse_over("model.dropout=0.0,0.3", Recipe())]
    names = [variant.name for variant in list_variants(["rnn", "gru"], overs)]
    assert len(names) == 8 and names[0] == "rnn depth=1 dropout=0.0"
    with pytest.raises(RecipeError, match="no variants to compare"):
        list_variants([], [])
    with pytest.raises(RecipeError, match="at least two"):
        list_variants(["gru"], [])
    with pytest.raises(RecipeError, match="given as a range"):
        list_variants(["gru"], [parse_over("model.size=8..16", Recipe())])


def test_what_cannot_be_matched_is_said(tmp_path):
    sizes = [parse_over("model.size=8,16", Recipe())]
    with pytest.raises(RecipeError, match="model.size=8 is one of the variants"):
        match_parameters(Workshop(small(tmp_path)), list_variants((), sizes))
    with pytest.raises(RecipeError, match="--budget"):
        plan_of(tmp_path, small(tmp_path), match="time")
    with pytest.raises(RecipeError, match="there is no match"):
        plan_of(tmp_path, small(tmp_path), match="luck")
    assert not (tmp_path / "c").exists()


def test_a_budget_becomes_steps_of_each_or_those_of_the_slowest(tmp_path, monkeypatch):
    times = {"rnn": (90, 9), "lstm": (40, 4)}
    monkeypatch.setattr(Workshop, "time_steps", lambda self, recipe, budget: times[recipe.model.kind])
    for match, steps in (("time", [90, 40]), ("steps", [40, 40])):
        plan = plan_of(tmp_path / match, small(tmp_path), match=match, budget="5s")
        recipes = [variant.recipe(Recipe.of(plan.recipe)) for variant in plan.variants]
        assert [recipe.train.steps for recipe in recipes] == steps and not any(one.train.time for one in recipes)


def test_trial_steps_say_how_many_fit(tmp_path):
    workshop = Workshop(small(tmp_path).changed("train.steps", 0).changed("train.validate_every", 0))
    few, many = (workshop.time_steps(workshop.base, budget)[0] for budget in ("1s", "20s"))
    assert 1 <= few < many


# --- jobs ---------------------------------------------------------------------------------------------------------


def test_runs_are_compared_resumed_and_read_by_programs(tmp_path, monkeypatch, capsys):
    from seqloom.cli.main import main

    recipe = small(tmp_path, *FEW)
    stop, notes = threading.Event(), []
    design = Design(["rnn", "gru"], seeds=1)
    for record in train_variants(recipe, tmp_path / "c", design, stop=stop):
        notes.append(str(record))
        if "job 2" in notes[-1]:
            stop.set()
    first = read_comparison(tmp_path / "c")
    assert (first.done, first.jobs) == (1, 2)
    before = {path: path.read_bytes() for path in (tmp_path / "c" / RESULTS).iterdir()}
    notes += map(str, train_variants(recipe, tmp_path / "c", design))
    found = seqloom.compare(recipe, tmp_path / "c", kinds=["rnn", "gru"], seeds=1)  # all is done
    assert found.done == 2 and all(path.read_bytes() == data for path, data in before.items())
    assert sum("rnn-seed0: job" in line for line in notes) == 1
    rows = {row.name: row for row in found.rows}
    assert all(row.seconds > 0 and row.milliseconds > 0 and row.megabytes > 0 for row in found.rows)
    assert abs(rows["rnn"].parameters / rows["gru"].parameters - 1) < TOLERANCE
    for name, row in rows.items():
        kept = seqloom.load(tmp_path / "c" / RUNS / f"{name}-seed0")
        assert row.scores == {"0": kept.scores["scores"]["exact"]["value"]}
        assert sum(parameter.numel() for parameter in kept.model.parameters()) == row.parameters
    assert set(found.baselines) == {"copy", "most frequent"}
    assert found.verdict.winner is None and "no verdict is possible with 1 seed" in found.verdict.sentence

    (tmp_path / "recipe.toml").write_text(recipe.to_toml(comments=False))
    page = tmp_path / "page.html"
    words = [
        "compare",
        str(tmp_path / "recipe.toml"),
        "--kinds",
        "rnn,gru",
        "--seeds",
        "1",
        "--into",
        str(tmp_path / "c"),
    ]
    monkeypatch.setattr(sys, "argv", ["seqloom", *words, "--json", "--page", str(page)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(json.dumps(found.to_json())) and told["verdict"]["seeds_needed"] == 6
    assert page.stat().st_size < 5_000_000 and b"no verdict is possible" in page.read_bytes()


def work(folder, recipe, queue):
    names: list[str] = []

    def run_job(folder, plan, variant, seed, examples, stop):
        names.append(name_job(variant, seed))
        multiprocessing.Event().wait(0.02)
        return result(0.5)

    module.run_job = run_job
    module.WAIT = 0.02
    list(module.run_jobs(Path(folder), read_plan(Path(folder))))
    queue.put(names)


def test_processes_share_the_jobs_of_a_folder(tmp_path):
    plan = plan_of(tmp_path, small(tmp_path), seeds=12)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    both = [context.Process(target=work, args=(str(tmp_path / "c"), None, queue)) for _ in range(2)]
    for process in both:
        process.start()
    names = [queue.get(timeout=60) for _ in both]
    for process in both:
        process.join(60)
    assert sorted(sum(names, [])) == sorted(name_job(*job) for job in plan.jobs())  # each once
    assert all(names)
    assert read_comparison(tmp_path / "c").done == 24


def test_what_a_process_was_killed_at_is_free_again(tmp_path):
    path = tmp_path / "job"
    with claim(path) as mine:
        assert mine
        with claim(path) as other:
            assert not other
    with claim(path) as again:
        assert again


def test_a_run_that_fails_is_told_and_takes_no_part(tmp_path, monkeypatch):
    plan = plan_of(tmp_path, small(tmp_path), seeds=6, kinds=KINDS[:3])
    fill(tmp_path, plan, lambda name, seed: {"rnn": 0.2, "lstm": 0.9, "gru": 0.5}[name] + 0.01 * seed**2)
    (tmp_path / "c" / RESULTS / "lstm-seed3.json").write_text(json.dumps({"failure": "the loss was never finite"}))
    found = read_comparison(tmp_path / "c")
    assert {row.name: row.failures for row in found.rows}["lstm"] == ("the loss was never finite",)
    assert found.verdict.winner == "gru" and b"the loss was never finite" in write_comparison_page(found.to_json())


# --- what is said -------------------------------------------------------------------------------------------------


def test_a_folder_of_another_comparison_is_refused_and_more_seeds_are_not(tmp_path):
    recipe = small(tmp_path)
    plan_of(tmp_path, recipe, seeds=3)
    assert len(plan_of(tmp_path, recipe, seeds=7).seeds) == 7
    assert len(plan_of(tmp_path, recipe, seeds=3).seeds) == 7  # what was asked for once is not taken back
    for other in ({"kinds": KINDS}, {"match": "parameters"}):
        with pytest.raises(RunError, match="another comparison was started here"):
            plan_of(tmp_path, recipe, **other)
    with pytest.raises(RunError, match="holds no comparison"):
        read_comparison(tmp_path)
    with pytest.raises(RunError, match="no run has finished yet"):
        read_comparison(tmp_path / "c")


def test_the_winner_and_the_score_that_counts(tmp_path):
    plan = plan_of(tmp_path, small(tmp_path), seeds=8)
    fill(tmp_path, plan, lambda name, seed: (0.6 if name == "rnn" else 0.5) + 0.003 * (seed * 7 % 5))
    found = read_comparison(tmp_path / "c")
    assert found.verdict.winner == "rnn" and found.score == "exact"
    assert read_comparison(tmp_path / "c", "BLEU").verdict.winner == "lstm"  # which is its negative here
    with pytest.raises(RecipeError, match="there is no score 'rouge'; there are exact, BLEU"):
        read_comparison(tmp_path / "c", "rouge")
    page = write_comparison_page(found.to_json()).decode()
    assert "rnn is better than each of the others" in page and "baseline: copy" in page
    assert "http-equiv" in page and "default-src 'none'" in page


def test_inside_the_noise_there_is_no_winner_but_a_number_of_seeds(tmp_path):
    plan = plan_of(tmp_path, small(tmp_path), seeds=8)
    noise = [0.02, -0.03, 0.01, 0.04, -0.02, 0.03, -0.01, 0.02]
    fill(tmp_path, plan, lambda name, seed: 0.5 + (noise[seed] if name == "rnn" else 0.0))
    verdict = read_comparison(tmp_path / "c").verdict
    assert verdict.winner is None and verdict.seeds_needed > 8
    assert f"({verdict.seeds_needed - 8} more)" in verdict.sentence


def test_the_page_draws_its_chart_without_a_network(tmp_path):
    plan = plan_of(tmp_path, small(tmp_path), seeds=6)
    fill(tmp_path, plan, lambda name, seed: 0.5 + 0.01 * seed + 0.1 * (name == "lstm"))
    file, told = tmp_path / "page.html", []
    file.write_bytes(write_comparison_page(read_comparison(tmp_path / "c").to_json()))
    with chromium() as browser:
        context = browser.new_context()
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda message: told.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: told.append(str(error)))
        page.goto(file.as_uri())
        page.evaluate("() => drawAll()")
        assert page.locator("#chart-cost .mark-symbol path").count() >= 14  # 12 seeds and 2 means
        assert "exact (higher is better)" in page.locator("#chart-cost").inner_text()
        assert page.locator("header p").inner_text().startswith("lstm is better than each of the others")
    assert told == []
