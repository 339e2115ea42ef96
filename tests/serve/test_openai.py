"""OpenAI's completions: the official client works; tokens, probabilities and texts are those of the run itself."""

import json
import math

import openai
import pytest
import torch

from seqloom.data.vocabulary import END

PROMPT = "1 green bott"


def complete(client, **asked):
    answer = client.post("/v1/completions", json={"model": "text", "prompt": PROMPT, "seed": 1} | asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client, **asked):
    answer = client.post("/v1/completions", json={"model": "text", "prompt": PROMPT, "seed": 1, "stream": True} | asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_text_is_the_one_that_the_run_writes(client, offline):
    told = complete(client, max_tokens=9, temperature=0.7, top_p=0.9, n=3)
    written = offline("text").generate(PROMPT, length=9, temperature=0.7, top_p=0.9, seed=1, count=3).finish()
    assert [choice["text"] for choice in told["choices"]] == [one.text for one in written]
    assert [choice["index"] for choice in told["choices"]] == [0, 1, 2]
    assert len({one.text for one in written}) == 3
    assert told["usage"] == {"prompt_tokens": len(PROMPT), "completion_tokens": 27, "total_tokens": len(PROMPT) + 27}


def test_the_same_seed_writes_the_same_and_none_writes_another(client):
    assert complete(client)["choices"] == complete(client)["choices"]
    drawn = {complete(client, seed=None, max_tokens=30)["choices"][0]["text"] for _ in range(3)}
    assert len(drawn) == 3


@pytest.mark.parametrize("more", [{}, {"n": 2}, {"prompt": ["1 gr", "2 bo"]}, {"echo": True}, {"logprobs": 3}])
def test_streamed_pieces_make_up_the_same_texts(client, more):
    whole = complete(client, max_tokens=6, **more)
    chunks = events(client, max_tokens=6, stream_options={"include_usage": True}, **more)
    assert chunks[-1]["usage"] == whole["usage"] and chunks[-1]["choices"] == []
    assert len({chunk["id"] for chunk in chunks}) == 1
    for choice in whole["choices"]:
        own = [one for chunk in chunks for one in chunk["choices"] if one["index"] == choice["index"]]
        assert "".join(one["text"] for one in own) == choice["text"]
        assert [one["finish_reason"] for one in own] == [None] * (len(own) - 1) + [choice["finish_reason"]]
        if choice["logprobs"]:
            for name, values in choice["logprobs"].items():
                assert [value for one in own for value in one["logprobs"][name]] == values


def test_a_text_ends_before_a_stop_string(client):
    whole = complete(client, max_tokens=40)["choices"][0]["text"]
    stop = whole[3:5]
    [choice] = complete(client, max_tokens=40, stop=["never", stop])["choices"]
    assert choice["text"] == whole[: whole.index(stop)]
    assert choice["finish_reason"] == "stop"
    assert complete(client, max_tokens=3)["choices"][0]["finish_reason"] == "length"


def own_logs(run, read):
    """Straight from the model: the log-probability of every next token after each of these."""
    with torch.no_grad():
        logits, _ = run.model(torch.tensor([read]), run.model.initial_state(1))
    return logits[0].double().log_softmax(-1)


@pytest.mark.parametrize("name", ["text", "lines", "window"])
def test_echo_tells_the_probabilities_of_prompt_and_text_the_first_is_null(client, offline, name):
    """What evaluation harnesses count on: an entry a token of prompt and text, and sums that are likelihoods."""
    run = offline(name)
    [choice] = complete(client, model=name, echo=True, logprobs=2, max_tokens=3, temperature=0)["choices"]
    told = choice["logprobs"]
    ids = run.task.target.encode(choice["text"]).tolist()
    assert len(told["tokens"]) == len(PROMPT) + 3 == len(ids)
    assert {len(values) for values in told.values()} == {len(ids)}
    assert told["token_logprobs"][0] is None and told["top_logprobs"][0] is None
    encode_opening = run.task.writer.encode_opening
    logs = own_logs(run, [*encode_opening("")[: len(encode_opening("a")) - 1], *ids])[-len(ids) :]
    expected = [float(logs[place, token]) for place, token in enumerate(ids[1:])]
    assert told["token_logprobs"][1:] == pytest.approx(expected, abs=1e-4)
    for place, (log, others) in enumerate(zip(expected, told["top_logprobs"][1:], strict=True)):
        assert len(others) == 2 and max(others.values()) == pytest.approx(float(logs[place].max()), abs=1e-4)
        is_greedy = max(others, key=others.get) == told["tokens"][place + 1]  # as harnesses ask it
        assert is_greedy == (log == float(logs[place].max()))
    assert told["text_offset"] == list(range(len(ids)))  # a token is a character here


def test_perplexity_by_echo_is_that_of_seqloom_score(client, offline, tmp_path):
    """Of a document; its first token and its end, which an echo does not tell, are asked of the model."""
    text, run = "7 green bottles hanging on the wall, é.", offline("lines")
    (tmp_path / "line.txt").write_text(text + "\n", encoding="utf-8")
    scored = run.score(tmp_path / "line.txt")["scores"]["perplexity"]["value"]
    [choice] = complete(client, model="lines", prompt=text, echo=True, logprobs=0, max_tokens=0)["choices"]
    assert choice["text"] == text and choice["finish_reason"] == "length"
    logs = choice["logprobs"]["token_logprobs"][1:]
    first = own_logs(run, run.task.writer.encode_opening(""))[-1, run.task.target.encode(text)[0]]
    end = own_logs(run, run.task.writer.encode_opening(text))[-1, END]
    assert math.exp(-(sum(logs) + float(first + end)) / (len(logs) + 2)) == pytest.approx(scored, rel=1e-5)


def tokenize(client, text, **more):
    answer = client.post("/tokenize", json={"prompt": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["tokens"]


@pytest.mark.parametrize("name", ["text", "lines"])
def test_a_harness_that_asks_by_tokens_gets_the_perplexity_of_seqloom_score(client, offline, tmp_path, name):
    """As lm-eval does it: the first token in front, tokens of /tokenize, an echo, and all but the last entry."""
    text, run = "7 green bottles hanging on the wall, é.\n" if name == "text" else "7 bottles, é.", offline(name)
    info = client.get("/tokenizer_info", params={"model": name}).json()
    begin, end = (tokenize(client, info[f"{which}_token"], model=name)[0] for which in ("bos", "eos"))
    ids = tokenize(client, text, model=name)
    assert ids == run.task.target.encode(text).tolist() and end == END
    assert client.post("/detokenize", json={"tokens": ids, "model": name}).json()["prompt"] == text
    [choice] = complete(client, model=name, prompt=[[begin, *ids]], echo=True, logprobs=1, max_tokens=1)["choices"]
    told = choice["logprobs"]
    assert len(told["tokens"]) == len(ids) + 2 and told["token_logprobs"][0] is None
    expected = own_logs(run, [begin, *ids])
    logs = [float(expected[place, token]) for place, token in enumerate(ids)]
    assert told["token_logprobs"][1:-1] == pytest.approx(logs, abs=1e-4)
    if name == "lines":
        (tmp_path / "line.txt").write_text(text + "\n", encoding="utf-8")
        scored = run.score(tmp_path / "line.txt")["scores"]["perplexity"]["value"]
        total = sum(told["token_logprobs"][1:-1]) + float(expected[-1, END])  # a document has its end, too
        assert math.exp(-total / (len(ids) + 1)) == pytest.approx(scored, rel=1e-5)


def test_tokens_of_a_server_with_several_runs_need_a_name(client, serving, runs):
    answer = client.post("/tokenize", json={"prompt": "a"})
    assert answer.status_code == 400 and "lines, text" in answer.json()["error"]
    alone = serving(runs / "lines")
    assert alone.get("/tokenizer_info").json()["bos_token"] == "<sos>"
    assert tokenize(alone, "7", add_special_tokens=True) == [2, *tokenize(alone, "7")]
    assert alone.post("/detokenize", json={"tokens": [-1]}).status_code == 400


def test_the_official_client_works(server):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)
    assert "text" in [model.id for model in client.models.list()]
    assert client.models.retrieve("lines").id == "lines"
    asked = {"model": "text", "prompt": PROMPT, "max_tokens": 8, "seed": 3}
    whole = client.completions.create(**asked, n=2, logprobs=2, echo=True)
    assert [choice.text[: len(PROMPT)] for choice in whole.choices] == [PROMPT] * 2
    assert whole._request_id.startswith("req-")
    assert whole.usage.completion_tokens == 16
    pieces = [chunk.choices[0].text for chunk in client.completions.create(**asked, stream=True)]
    assert "".join(pieces) == client.completions.create(**asked).choices[0].text
    with pytest.raises(openai.BadRequestError, match="max_tokens"):
        client.completions.create(model="text", prompt="a", max_tokens=-1)
    with pytest.raises(openai.NotFoundError, match="no run"):
        client.completions.create(model="nobody", prompt="a")
    with pytest.raises(openai.BadRequestError, match="task is classify"):
        client.completions.create(model="mood", prompt="a")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 10**6}, "tokens"),
        ({"n": 17}, "count"),
        ({"prompt": ["a"] * 256, "n": 16, "max_tokens": 512}, "steps"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": [10**6]}, "there is no token"),
        ({"best_of": 4}, "best_of"),
        ({"suffix": "x"}, "suffix"),
        ({"logit_bias": {"5": 1}}, "logit_bias"),
        ({"presence_penalty": 1}, "presence_penalty"),
        ({"logprobs": 21}, "at most 20"),
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"functions": []}, "functions"),
        ({"prompt": "a" * 16_385}, "16,384"),
        ({"model": "window", "prompt": "a" * 40, "echo": True, "logprobs": 1}, "bptt_window"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_what_is_not_served_is_refused_as_an_error_object(client, asked, says):
    answer = client.post("/v1/completions", json={"model": "text", "prompt": "a"} | asked)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert says in error["message"] and error["type"] == "invalid_request_error"
    assert {"param", "code"} <= error.keys()


def test_a_mistake_in_the_middle_of_a_stream_is_said_in_it(client):
    """The prompts are read one after the other: the second is too long for this model's window."""
    asked = {"model": "window", "prompt": ["a", "a" * 40], "echo": True, "logprobs": 1, "max_tokens": 2}
    chunks = events(client, **asked)
    assert "bptt_window" in chunks[-1]["error"]["message"]
    assert len(chunks) > 1
