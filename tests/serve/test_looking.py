"""What the page is made of: records that are followed, examples, views, attention, checkpoints, passages, pulls."""

import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seqloom.data.vocabulary import UNKNOWN
from seqloom.errors import RunError
from seqloom.layers.tap import recording
from seqloom.look.measures.gates import record_traces
from seqloom.look.measures.interventions import Intervention, intervene_on, list_intervention_places
from seqloom.look.views import VIEWS
from seqloom.runs.folder import RECORDS
from seqloom.serve.examples import check_files, shorten
from seqloom.serve.guessing import score_passages
from seqloom.serve.limits import Limits
from seqloom.serve.models import Model

from .conftest import TEXT
from .test_batching import near
from .test_sessions import ROWS

GIVEN = {"text": "7 green bot", "window": "7 green", "backwards": "abc", "mood": "a good film", "tags": "a good film"}
GIVEN |= {"walk": ROWS[:8], "tune": "X:1\nM:4/4", "draw": "a red square"}
GIVEN |= {"caption": np.full((8, 8, 3), 90).tolist(), "body": "7 green ___ hanging"}


def ask(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("run", GIVEN)
def test_every_view_that_fits_is_drawn_and_the_others_say_why_not(client, run):
    told = ask(client, "/views", run=run, input=GIVEN[run])
    fitting = [view["name"] for view in told["views"]]
    assert set(fitting) | set(told["missing"]) == set(VIEWS) and not set(fitting) & set(told["missing"])
    assert all(view["reading"] for view in told["views"]) and all(told["missing"].values())
    for name in set(fitting) - {"cost", "probe"}:
        drawn = ask(client, "/look", run=run, input=GIVEN[run], view=name)
        assert drawn["title"] and drawn["reading"] == VIEWS[name].reading
        assert ("svg" in drawn) != ("spec" in drawn)
    for name in told["missing"]:
        answer = client.post("/look", json={"run": run, "input": GIVEN[run], "view": name})
        assert answer.status_code == 400 and told["missing"][name] in answer.json()["error"]


def test_a_view_that_is_none_is_refused_with_the_nearest(client):
    answer = client.post("/look", json={"run": "mood", "input": "a", "view": "gate"})
    assert answer.status_code == 400 and "did you mean gates" in answer.json()["error"]


def test_attention_is_that_of_the_look(client, offline):
    told = ask(client, "/attention", run="backwards", input="abc")
    [found] = offline("backwards").look("abc").measure("heads") or [
        offline("backwards").look("abc").measure("attention")
    ]
    assert told["maps"][0]["source"] == found.source == list("abc")
    assert np.allclose(told["maps"][0]["weights"], found.weights, atol=1e-4)
    assert np.allclose(np.sum(told["maps"][0]["weights"], -1), 1, atol=1e-3)
    assert ask(client, "/attention", run="mood", input="a good film")["maps"] == []


def test_what_comes_next_is_the_whole_distribution(client, offline):
    told = ask(client, "/next", run="text", input="7 green bot")
    run = offline("text")
    with torch.no_grad():
        logits, _ = run.model(torch.tensor([run.task.writer.encode_opening("7 green bot")]), run.model.initial_state(1))
    unknown = float(logits[0, -1].double().softmax(-1)[UNKNOWN])  # is no answer, and not listed
    assert told["left_out"] == pytest.approx(unknown, abs=1e-3) and unknown > 0.01
    assert sum(map(math.exp, told["logs"])) + told["left_out"] == pytest.approx(1, abs=1e-3)
    assert told["logs"] == sorted(told["logs"], reverse=True)
    best = offline("text").predict("7 green bot")[0]
    assert told["tokens"][0] == best.output and told["logs"][0] == pytest.approx(best.score, abs=1e-3)


def test_records_are_followed_line_by_line_and_begin_anew_when_taken_back(client, runs):
    path = runs / "text" / RECORDS
    whole = path.read_bytes()
    first = client.get("/runs/text/records").json()
    assert first["after"] == len(whole) and not first["restarted"]
    assert [one["step"] for one in first["records"]] == [json.loads(line)["step"] for line in whole.splitlines()]
    assert client.get(f"/runs/text/records?after={first['after']}").json()["records"] == []
    try:
        path.write_bytes(whole + whole.splitlines(keepends=True)[-1] + b'{"kind": "st')  # half of a line
        more = client.get(f"/runs/text/records?after={first['after']}").json()
        assert len(more["records"]) == 1 and more["after"] < path.stat().st_size
        path.write_bytes(whole.splitlines(keepends=True)[0])
        again = client.get(f"/runs/text/records?after={more['after']}").json()
        assert again["restarted"] and len(again["records"]) == 1
    finally:
        path.write_bytes(whole)


def test_examples_are_those_of_the_test_part_or_it_is_said_why_there_are_none(client, offline):
    told = client.get("/runs/text/examples").json()
    part, asked = offline("text").pick_examples(40)
    assert told["part"] == part and [one["input"] for one in told["examples"]] == [one.input for one in asked]
    none = client.get("/runs/mood/examples").json()
    assert none["examples"] == [] and "from Python" in none["why"]


@pytest.mark.parametrize("length", [3, 60, 900])
def test_an_example_that_is_tagged_is_short_enough_to_look_into(length):
    words, tags = ["w" * length] * 40, [f"T{number}" for number in range(40)]
    text, truth = shorten("\t".join(words), " ".join(tags))
    few = len(text.split("\t"))
    assert truth.split(" ") == tags[:few] and text.split("\t") == words[:few]
    assert few == 1 or len(text) <= Limits.explained * 0.9  # as the page has it, too
    assert few == {3: 30, 60: 6, 900: 1}[length]


def test_only_plain_files_are_read_again(tmp_path):
    """A recipe from elsewhere may name a pipe, which never ends."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.csv").touch()

    def check(*names):
        data = SimpleNamespace(train=tuple(str(tmp_path / name) for name in names), validation=(), test=())
        check_files(SimpleNamespace(name="x", run=SimpleNamespace(recipe=SimpleNamespace(data=data))))

    check("a.csv")
    check("*.csv")
    for names in (["pipe"], ["a.csv", "pipe"], ["p*"], ["nowhere"], [""]):
        with pytest.raises(RunError, match="not at hand"):
            check(*names)


@pytest.mark.parametrize("run", ["mood", "backwards", "walk"])
def test_checkpoints_answer_from_step_0_to_what_is_served(client, runs, run):
    shots = ask(client, "/over-training", run=run, input=GIVEN[run])["snapshots"]
    kept = sorted(int(path.name[5:]) for path in (runs / run / "checkpoints").iterdir())
    assert [shot["step"] for shot in shots] == [0, *kept, None]
    served = ask(client, "/predict", run=run, inputs=[GIVEN[run]])["answers"][0]["predictions"]
    near(shots[-1]["predictions"], served)
    assert shots[0]["predictions"] != shots[-1]["predictions"]


def test_a_damaged_checkpoint_is_left_out_and_named(client, runs):
    weights = next((runs / "tags" / "checkpoints").iterdir()) / "weights.safetensors"
    whole = weights.read_bytes()
    try:
        weights.write_bytes(whole[:-4] + b"abcd")
        told = ask(client, "/over-training", run="tags", input="a good film")
        assert len(told["skipped"]) == 1 and "damaged" in told["skipped"][0] and str(runs) not in told["skipped"][0]
    finally:
        weights.write_bytes(whole)


def test_a_passage_costs_the_model_what_the_score_says(client, offline):
    """Its tokens make up the test text, and the mean over all of it is the perplexity of `seqloom score`."""
    told = client.get("/runs/text/passage?seed=3").json()
    assert client.get("/runs/text/passage?seed=3").json() == told != client.get("/runs/text/passage?seed=5").json()
    passage = told["before"] + "".join(token["text"] for token in told["tokens"])
    assert passage in TEXT and len(told["tokens"]) == 24
    echoed = {"model": "text", "prompt": passage, "max_tokens": 0, "echo": True, "logprobs": 0}
    assert client.post("/v1/completions", json=echoed).status_code == 200
    scored = score_passages(Model("text", offline("text").folder))
    mean = np.mean(scored.model) * math.log(2)
    assert math.exp(mean) == pytest.approx(offline("text").scores["scores"]["perplexity"]["value"], rel=1e-3)
    assert client.get("/runs/mood/passage").status_code == 400


def test_a_tune_is_told_note_by_note(client):
    told = ask(client, "/tune", text="X:1\nL:1/4\nQ:1/4=120\nK:C\nC2 G|")
    assert [(one["pitch"], one["start"], one["end"]) for one in told["sounds"]] == [(60, 0, 1), (67, 1, 1.5)]
    assert client.post("/tune", json={"text": "no tune"}).status_code == 400


def test_every_route_and_field_is_documented_with_an_example(client):
    api = client.get("/openapi.json").json()
    schemas, bodies = api["components"]["schemas"], set()
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            assert route.get("description"), (method, path)
            assert all(one["description"] and "example" in one for one in route.get("parameters", []))
            assert "422" not in route["responses"] and "400" in route["responses"]
            found = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            bodies |= {found["$ref"].rpartition("/")[2]} if found else set()
    assert len(bodies) >= 10 and all(schemas[name]["examples"] for name in bodies)
    for name, schema in schemas.items():
        for field, about in schema.get("properties", {}).items():
            assert about.get("description") and len(about["examples"]) == 1, (name, field)
            assert about["examples"] != [None] or field not in schema.get("required", []), (name, field)


def test_the_list_of_routes_says_what_is_needed(client):
    page = client.get("/docs").text
    row = "<td>{}</td><td>{}</td>"
    assert row.format("inputs", "needed") in page and row.format("beam", "null") in page


@pytest.mark.parametrize("path", ["/predict", "/explain", "/next", "/attention", "/pull", "/tune", "/similar-spans"])
def test_examples_of_answers_have_the_fields_of_real_ones(client, path):
    example = client.get("/openapi.json").json()["paths"][path]["post"]["responses"]["200"]["content"]
    asked = {"/predict": {"inputs": ["a good film"]}, "/tune": {"text": "X:1\nL:1/4\nK:C\nC|"}, "/pull": {"pulls": []}}
    asked["/similar-spans"] = {"level": "decoder layer 1", "start": 0, "end": 1}
    run = {"/next": "text", "/attention": "backwards", "/similar-spans": "text"}.get(path, "mood")
    body = {} if path == "/tune" else {"run": run} | ({} if path == "/predict" else {"input": "abc"})
    real = ask(client, path, **body, **asked.get(path, {}))
    assert shape_of(example["application/json"]["example"]) == shape_of(real)


@pytest.mark.parametrize("run", ["text", "tags", "backwards"])
def test_a_step_behind_the_end_of_the_answer_is_refused(client, run):
    answer = client.post("/explain", json={"run": run, "input": GIVEN[run], "step": 3582})
    assert answer.status_code == 400 and "step 3582 is asked about" in answer.json()["error"]


def shape_of(value):
    """The keys, all the way down; of a list, those of its first."""
    if isinstance(value, dict):
        return {key: shape_of(one) for key, one in value.items()}
    return [shape_of(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


# --- where else ---


def test_the_spans_where_the_same_units_are_on(client, offline):
    """Step by step, from what `look` records: who is on, where else, and how often that is to be expected."""
    run, level = offline("text"), "decoder layer 1"
    part, examples = run.pick_examples(100)
    given = examples[0].input
    told = ask(client, "/similar-spans", run="text", input=given, level=level, start=4, end=6)

    def states(one):
        look = run.look(one.input, one.answer)
        return record_traces(look.model, look.batch, look.names)[0].entries["h"].astype(float)

    seen = [states(one) for one in examples]
    every = np.concatenate(seen)
    scaled = [(one - every.mean(0)) / every.std(0) for one in seen]
    on = {(unit["unit"], 1 if unit["high"] else -1) for unit in told["units"]}
    expected = {(unit, side) for unit in range(16) for side in (1, -1) if (side * scaled[0][4:6, unit] > 1).all()}
    assert on and on <= expected and (len(on) == 8 or on == expected)
    share = [np.mean([side * one[:, unit] > 1 for unit, side in on], 0) for one in scaled]
    pairs = [
        (one[start : start + 2].mean(), number, start)
        for number, one in enumerate(share)
        for start in range(len(one) - 1)
    ]
    assert told["usual"] == pytest.approx(np.mean([value for value, *_ in pairs]))
    best = max(value for value, number, start in pairs if number or abs(start - 4) > 1)
    assert told["matches"][0]["share"] == pytest.approx(best)
    for match in told["matches"]:
        assert match["shares"] == pytest.approx(share[match["example"]][match["start"] :][:2].tolist())
        assert (match["example"], match["start"]) != (0, 4)  # which is what was asked about
    assert (told["part"], told["examples"], told["elements"]) == (part, len(examples), sum(map(len, seen)))


@pytest.mark.parametrize(
    ("span", "says"),
    [
        ({"level": "layer 9"}, "no layer 'layer 9'; there are decoder layer 1"),
        ({"start": 3, "end": 3}, "does not lie within"),
        ({"end": 999}, "does not lie within"),
    ],
)
def test_a_span_that_cannot_be_is_refused(client, span, says):
    asked = {"run": "text", "input": "7 green bot", "level": "decoder layer 1", "start": 0, "end": 2} | span
    answer = client.post("/similar-spans", json=asked)
    assert answer.status_code == 400 and says in answer.json()["error"]


def test_a_span_over_which_no_unit_is_on_is_found_nowhere(client):
    asked = {"run": "text", "input": "7 green bot", "level": "decoder layer 1", "start": 0, "end": 12}
    told = ask(client, "/similar-spans", **asked)
    assert (told["units"], told["matches"], told["usual"]) == ([], [], 0)


@pytest.mark.parametrize("run", GIVEN)
def test_every_run_has_layers_and_says_so_if_its_examples_are_gone(client, run):
    levels = ask(client, "/levels", run=run, input=GIVEN[run])["levels"]
    for one in levels:
        asked = {"run": run, "input": GIVEN[run], "level": one["level"], "start": 0, "end": 1}
        answer = client.post("/similar-spans", json=asked)
        told = answer.json()
        assert answer.status_code == 200 or "from Python" in told["error"]
        if answer.status_code == 200:
            assert told["examples"] >= 1 and all(len(match["steps"]) > match["start"] for match in told["matches"])


# --- pulls ---


@pytest.mark.parametrize("run", GIVEN)
def test_a_pull_of_zero_change_changes_nothing_and_closing_everything_does(client, run):
    places = ask(client, "/places", run=run, input=GIVEN[run])["places"]
    assert places
    for place in places:
        assert len(place["values"][0] if place["kind"] == "attention" else place["values"]) == len(place["steps"])
        unit = 0 if place["kind"] == "attention" else None
        pull = {"place": place["place"], "unit": unit}
        still = ask(client, "/pull", run=run, input=GIVEN[run], pulls=[pull | {"scale": 1.0}])
        near(still["before"]["predictions"], still["after"]["predictions"])
    states = [{"place": place["place"], "scale": 0.0} for place in places if place["kind"] == "state"]
    if states:
        closed = ask(client, "/pull", run=run, input=GIVEN[run], pulls=states)
        assert closed["before"]["predictions"] != closed["after"]["predictions"]
    served = ask(client, "/predict", run=run, inputs=[GIVEN[run]])["answers"][0]["predictions"]
    near(served, still["before"]["predictions"])  # the run is as it was


def test_a_unit_that_is_set_holds_that_value_and_the_rest_follows(client, offline):
    """By hand: the last state of a causal reader decides alone, so what its head says can be computed."""
    run = offline("tags")
    look = run.look("a good film")
    places = list_intervention_places(look.model, look.batch, look.names)
    place = next(one for one in places if one.kind == "state")
    with (
        torch.no_grad(),
        intervene_on(run.model, places, [Intervention(place.tap, 1, 3, to=0.625)]),
        recording(run.model) as tape,
    ):
        run.predict("a good film")
    seen = tape[place.tap]
    assert float(seen[1][0, 3]) == 0.625
    assert np.allclose(seen[0][0], place.values[0], atol=1e-6)  # the past is not changed
    assert not np.allclose(seen[2][0], place.values[2], atol=1e-6)  # what comes after is


def test_an_attention_weight_that_is_pulled_leaves_the_others_their_shares(offline):
    run = offline("backwards")
    look = run.look("abc")
    places = list_intervention_places(look.model, look.batch, look.names)
    place = next(one for one in places if one.kind == "attention")
    with (
        torch.no_grad(),
        intervene_on(run.model, places, [Intervention(place.tap, 0, 1, to=0.9)]),
        recording(run.model) as tape,
    ):
        run.predict("abc")
    [row] = tape[place.tap][0][0].numpy().reshape(-1, 3)[:1]
    before = place.values[0][0]
    assert row[1] == pytest.approx(0.9) and row.sum() == pytest.approx(1, abs=1e-5)
    assert row[0] / row[2] == pytest.approx(before[0] / before[2], rel=1e-4)


@pytest.mark.parametrize(
    ("pull", "says"),
    [
        ({"place": "nowhere"}, "no place"),
        ({"step": 99}, "step 99"),
        ({"unit": 99_999}, "unit 99999"),
        ({"to": 1e9}, "less than or equal"),
    ],
)
def test_a_pull_that_cannot_be_is_refused(client, pull, says):
    place = ask(client, "/places", run="mood", input="a good film")["places"][0]["place"]
    answer = client.post("/pull", json={"run": "mood", "input": "a good film", "pulls": [{"place": place} | pull]})
    assert answer.status_code == 400 and says in answer.json()["error"]
