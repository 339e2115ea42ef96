"""Fed step by step, a run answers as it does offline; sessions expire, are capped, saved, restored and forked."""

import json
import time

import numpy as np
import pytest

from ..recipes import walks
from .conftest import CHANCE, TAGGED, TEXT, WORDS
from .test_batching import near

ROWS = np.nan_to_num(walks()[:30], nan=10.0).tolist()


def feed(client, run, name, piece, **more):
    """The answer after one piece more."""
    shape, datatype = ([1], "BYTES") if isinstance(piece, str) else ([1, *np.shape(piece)], "FP64")
    tensor = {"name": "input", "shape": shape, "datatype": datatype, "data": [piece]}
    body = {"inputs": [tensor], "parameters": {"sequence_id": name} | more}
    answer = client.post(f"/v2/models/{run}/infer", json=body)
    if answer.status_code != 200:
        return answer
    return json.loads(answer.json()["outputs"][2]["data"][0])


def cut(text):
    """A text in pieces of one to five characters."""
    pieces = []
    while text:
        size = CHANCE.randint(1, 5)
        pieces, text = [*pieces, text[:size]], text[size:]
    return pieces


def whole(client, run, given):
    return client.post("/predict", json={"run": run, "inputs": [given]}).json()["answers"][0]["predictions"]


@pytest.mark.parametrize("run", ["text", "lines"])
def test_a_text_read_in_pieces_is_the_text_read_at_once(client, run):
    read = ""
    for number, piece in enumerate(cut(TEXT[:90] if run == "text" else TEXT[:40])):
        told = feed(client, run, f"pieces of {run}", piece, sequence_start=number == 0)
        read += piece
        near(told["predictions"], whole(client, run, read))
        assert told["read"] == len(read) + (run == "lines")  # a document has a beginning, which is read too


def test_words_are_tagged_as_they_come(client):
    words, told = [word for text, _ in TAGGED[:6] for word in text.split()], []
    for number, word in enumerate(words):
        [best] = feed(client, "tags", "words", word, sequence_start=number == 0)["predictions"]
        told += best["tags"]
    [best] = whole(client, "tags", "\t".join(words))
    assert told == best["tags"]
    [pair] = feed(client, "tags", "words", " ".join(words[:2]), sequence_start=True)["predictions"]
    assert pair["tags"] == told[:2] and pair["words"] == words[:2]


def test_beyond_the_longest_sequence_of_training_tags_go_on_as_offline(client, offline):
    """`predict` reads what is longer in pieces of that length; so does a session, across its own pieces."""
    most = offline("tags").task.shape.most
    assert most < 5000
    words = CHANCE.choices(WORDS, k=most + 7)
    first = feed(client, "tags", "long", " ".join(words[: most - 3]), sequence_start=True)["predictions"][0]["tags"]
    second = feed(client, "tags", "long", " ".join(words[most - 3 :]))["predictions"][0]["tags"]
    assert first + second == whole(client, "tags", " ".join(words))[0]["tags"]


def test_a_series_is_forecast_after_every_row(client):
    for number, row in enumerate(ROWS):
        told = feed(client, "walk", "rows", [row], sequence_start=number == 0)
        assert told["read"] == number + 1
        if number < 7:  # the model reads eight rows
            assert told["predictions"] == [] and told["waits_for"] == 7 - number
            continue
        [own], [alone] = told["predictions"], whole(client, "walk", ROWS[number - 7 : number + 1])
        near(own["values"], alone["values"])
        near(own["quantiles"], alone["quantiles"])


def test_many_sessions_interleaved_do_not_mix(client):
    texts = {f"mixed {number}": TEXT[number * 7 : number * 7 + 20] for number in range(12)}
    told = {}
    for place in range(0, 20, 5):
        for name in CHANCE.sample(sorted(texts), len(texts)):
            told[name] = feed(client, "text", name, texts[name][place : place + 5], sequence_start=place == 0)
    for name, text in texts.items():
        near(told[name]["predictions"], whole(client, "text", text))


def test_a_fork_goes_its_own_way(client):
    feed(client, "text", "trunk", "1 green ", sequence_start=True)
    assert client.post("/runs/text/sessions/trunk/fork", json={"into": "branch"}).json()["read"] == 8
    one, other = feed(client, "text", "trunk", "bottles"), feed(client, "text", "branch", "wall")
    near(one["predictions"], whole(client, "text", "1 green bottles"))
    near(other["predictions"], whole(client, "text", "1 green wall"))


@pytest.mark.parametrize(
    ("run", "before", "after"),
    [("text", "1 green ", "bottles"), ("tags", "a good", "film"), ("walk", ROWS[:8], ROWS[8:10])],
)
def test_a_saved_session_is_restored_here_and_on_another_server(client, serving, run, before, after):
    feed(client, run, "saved", before, sequence_start=True)
    saved = client.post(f"/runs/{run}/sessions/saved/save", json={}).json()
    expected = feed(client, run, "saved", after)
    another = serving()
    assert feed(another, run, "again", after).status_code == 404
    restored = another.post(f"/runs/{run}/sessions/again/restore", json=saved)
    assert restored.status_code == 200, restored.text
    told = feed(another, run, "again", after)
    near(told["predictions"], expected["predictions"])
    assert told["read"] == expected["read"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"weights": "0" * 64}, 409),
        ({"state": "no base64"}, 400),
        ({"state": "AAAA"}, 400),
        ({"state": ""}, 400),
        ({"rows": [[1.0]]}, 400),
        ({"read": -1}, 400),
        ({"more": 1}, 400),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_what_was_not_saved_here_is_not_restored(client, change, status):
    feed(client, "text", "sound", "1 green", sequence_start=True)
    saved = client.post("/runs/text/sessions/sound/save", json={}).json()
    answer = client.post("/runs/text/sessions/other/restore", json=saved | change)
    assert answer.status_code == status and answer.json()["error"]
    assert feed(client, "text", "other", "a").status_code == 404


def test_a_state_of_another_run_is_not_restored(client):
    feed(client, "text", "mine", "1 green", sequence_start=True)
    feed(client, "lines", "theirs", "1 green", sequence_start=True)
    mine, theirs = (client.post(f"/runs/{path}/save", json={}).json() for path in (
        "text/sessions/mine", "lines/sessions/theirs"))  # fmt: skip
    answer = client.post("/runs/text/sessions/new/restore", json=mine | {"state": theirs["state"]})
    assert answer.status_code == 400 and "shape" in answer.json()["error"]


def test_a_session_ends_is_deleted_and_must_be_begun(client):
    assert "sequence_start" in feed(client, "text", "never begun", "a").json()["error"]
    feed(client, "text", "short", "1 gr", sequence_start=True, sequence_end=True)
    assert feed(client, "text", "short", "een").status_code == 404
    feed(client, "text", "removed", "1 gr", sequence_start=True)
    assert client.delete("/runs/text/sessions/removed").json() == {"sequence_id": "removed", "read": 4}
    assert client.delete("/runs/text/sessions/removed").status_code == 404
    feed(client, "text", "twice", "something else", sequence_start=True)
    near(feed(client, "text", "twice", "1", sequence_start=True)["predictions"], whole(client, "text", "1"))


def test_sessions_are_capped_and_expire(serving):
    client = serving(sessions=2, session_seconds=0.5)
    assert feed(client, "text", "a", "1", sequence_start=True)["read"] == 1
    assert feed(client, "text", "b", "1", sequence_start=True)["read"] == 1
    refused = feed(client, "text", "c", "1", sequence_start=True)
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    assert client.post("/runs/text/sessions/a/fork", json={"into": "c"}).status_code == 429
    assert feed(client, "text", "a", "2")["read"] == 2  # those that are open go on
    time.sleep(0.6)
    assert feed(client, "text", "a", "2").status_code == 404
    assert feed(client, "text", "c", "1", sequence_start=True)["read"] == 1


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("both", "both directions"),
        ("chain", "model.crf"),
        ("mood", "needs a whole input"),
        ("backwards", "needs a whole input"),
    ],
)
def test_what_is_not_causal_is_refused_in_words(client, run, says):
    answer = feed(client, run, "x", "a", sequence_start=True)
    assert answer.status_code == 400 and says in answer.json()["error"]


def test_attention_over_a_window_is_fed_up_to_it_and_forked_but_not_saved(client):
    text = TEXT[:16]
    for number in range(0, 16, 4):
        told = feed(client, "window", "full", text[number : number + 4], sequence_start=number == 0)
        if number < 12:
            near(told["predictions"], whole(client, "window", text[: number + 4]))
    answer = feed(client, "window", "full", "a")
    assert answer.status_code == 400 and "bptt_window" in answer.json()["error"]
    feed(client, "window", "fork me", text[:8], sequence_start=True)
    client.post("/runs/window/sessions/fork me/fork", json={"into": "forked"})
    one, other = feed(client, "window", "fork me", text[8:12]), feed(client, "window", "forked", "wall")
    near(one["predictions"], whole(client, "window", text[:12]))
    near(other["predictions"], whole(client, "window", text[:8] + "wall"))
    saved = client.post("/runs/window/sessions/forked/save", json={})
    assert saved.status_code == 400 and "forked" in saved.json()["error"]


def test_a_step_of_a_recurrent_model_reads_one_element_however_long_the_session(runs, monkeypatch):
    """Work is counted in elements that go through the layers, not by a clock."""
    from seqloom.serve.limits import Limits
    from seqloom.serve.metrics import Metrics
    from seqloom.serve.models import Model
    from seqloom.serve.sessions import Sessions

    for name, pieces in {"text": list(TEXT[:60]), "tags": CHANCE.choices(WORDS, k=60)}.items():
        model, sessions, read = Model(name, runs / name), Sessions(Limits(), Metrics()), []
        body = model.run.model.decoder if name == "text" else model.run.model.encoder.layer
        body.register_forward_pre_hook(lambda module, given, read=read: read.append(given[0].shape[1]))
        for number, piece in enumerate(pieces):
            sessions.feed(model, "one", [piece], number == 0, False)
        assert read == [1] * 60


def test_a_piece_that_is_refused_leaves_the_session_as_it_was(client):
    feed(client, "text", "robust", "1 green", sequence_start=True)
    assert feed(client, "text", "robust", "").status_code == 400
    assert feed(client, "walk", "robust", [[1.0, 2.0, 3.0]], sequence_start=True).status_code == 400
    near(feed(client, "text", "robust", " bo")["predictions"], whole(client, "text", "1 green bo"))


@pytest.mark.soak
def test_a_thousand_sessions_interleaved_equal_offline(client):
    names = [f"soak {number}" for number in range(1000)]
    for place in range(4):
        for name in CHANCE.sample(names, len(names)):
            start = int(name.split()[1]) % 500
            told = feed(client, "text", name, TEXT[start + 5 * place : start + 5 * place + 5], sequence_start=not place)
            if place == 3:
                near(told["predictions"], whole(client, "text", TEXT[start : start + 20]))
