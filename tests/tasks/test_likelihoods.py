"""How probable given sequences are, and the best texts of a language model: against sums and enumerations by hand."""

import json
import math
from copy import deepcopy
from itertools import product

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import END, PAD, SPECIALS, START
from seqloom.errors import DataError, RunError, SearchError
from seqloom.layers.crf import CRF
from seqloom.runs.run import Run, load, train
from seqloom.search import Recorder
from seqloom.tasks.decoding_options import Rules

FEW = ("model.size=8", "train.steps=2", "train.validate_every=1", "train.batch_tokens=64")
TEXTS = ["the cat sat on the mat", "a dog ran off", "the old cat ran", "on a mat sat the dog"] * 4
WORDS = ("data.target_tokenizer=words", "train.bptt_window=6")
TUNES = "".join(f"X:{n}\nT:a\nM:4/4\nL:1/8\nK:C\nCDEF GABc|cBAG FEDC|\n\n" for n in range(1, 7))
CASES = {
    "documents": ("language", TEXTS, WORDS),
    "windows": ("language", TEXTS, (*WORDS, "model.kind=transformer", "model.heads=2")),
    "text": ("language", None, ("train.bptt_window=8", "data.target_tokenizer=characters")),
    "music": ("music", None, ("train.bptt_window=8",)),
    "seq2seq": ("seq2seq", [(text, text[::-1]) for text in TEXTS], ("data.target_tokenizer=characters",)),
    "tags": ("tag", [("a b c", "x y x"), ("b a", "y x"), ("c b a d", "x x y y")] * 6, ()),
    "path": ("tag", [("a b c", "x y x"), ("b a", "y x"), ("c b a d", "x x y y")] * 6, ("model.crf=true",)),
}


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """A run of a few steps by its name, trained once."""
    folder, runs = tmp_path_factory.mktemp("likelihoods"), {}
    (folder / "text.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (folder / "tunes.abc").write_text(TUNES, encoding="utf-8")
    files = {"text": [f"data.train={folder / 'text.txt'}"], "music": [f"data.train={folder / 'tunes.abc'}"]}

    def get(name):
        if name not in runs:
            task, examples, more = CASES[name]
            recipe = Recipe.of({"task": task}).override(*FEW, *more, *files.get(name, []))
            list(train(recipe, folder / name, examples=examples))
            runs[name] = load(folder / name)
        return runs[name]

    return get


def all_at_once(run, opening, ids):
    """The log-probability of each token, from one pass over all of them."""
    read = torch.tensor([[*opening, *ids[:-1]]])
    with torch.no_grad():
        logits = run.model(read, run.model.initial_state(1))[0][0, len(opening) - 1 :]
    return logits.double().log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].tolist()


def test_a_document_has_the_probability_of_its_tokens_and_of_its_end(run_of):
    run, text = run_of("documents"), "the dog sat on a mat and ran"
    [found] = run.score_texts([text])
    ids = [*run.task.target.encode(text).tolist(), END]
    assert found.logs == pytest.approx(all_at_once(run, [START], ids), abs=1e-4)
    assert found.tokens[-1] == "<eos>" and found.unknown == 1  # and
    assert found.log_probability == pytest.approx(sum(found.logs))
    assert found.perplexity == pytest.approx(math.exp(-sum(found.logs) / len(ids)))
    assert -sum(found.logs) == pytest.approx(run.task.shape.losses(run.model, run.task.shape.encode([(text,)])).sum())


def test_what_is_given_is_read_and_not_counted(run_of):
    run = run_of("documents")
    [whole], [given] = run.score_texts(["the cat ran off"]), run.score_texts(["ran off"], "the cat")
    assert given.logs == pytest.approx(whole.logs[2:], abs=1e-5) and given.tokens == ["ran", "off", "<eos>"]


@pytest.mark.parametrize("name", ["text", "music"])
def test_one_long_text_has_no_end_and_begins_behind_a_line(run_of, name):
    run, text = run_of(name), "cat" if name == "text" else "CDEF"
    ids, opening = run.task.target.encode(text).tolist(), run.task.writer.encode_opening("")
    ids = ids if run.task.shape.one_text else [*ids, END]
    [found] = run.score_texts([text])
    assert found.logs == pytest.approx(all_at_once(run, opening, ids), abs=1e-4)


@pytest.mark.parametrize("name", ["documents", "windows", "music"])
def test_a_text_that_was_written_has_the_probability_it_was_written_with(run_of, name):
    run, prompt = run_of(name), "" if name == "music" else "the cat"
    texts = run.generate(prompt, length=15, count=3).finish()
    for text in texts:
        ids = [run.task.target.symbols.index(one) for one in text.tokens] if name != "music" else None
        spelled = run.task.target.decode(ids) if ids else text.text
        [found] = run.score_texts([spelled], prompt)
        assert found.logs[: len(text.tokens)] == pytest.approx(text.logs[: len(text.tokens)], abs=1e-4)


def test_an_answer_has_the_probability_of_one_pass_over_it(run_of):
    run = run_of("seq2seq")
    answers = ["tam eht", "", "dog"]
    found = run.score_texts(answers, "the mat")
    shape = run.task.shape
    for text, one in zip(answers, found, strict=True):
        ids = [*run.task.target.encode(text).tolist(), END]
        with torch.no_grad():
            last, state = shape.begin(run.model, shape.inputs.encode(["the mat"]), [0])
            logits = run.model(torch.tensor([[START, *ids[:-1]]]), state)[0][0].double().log_softmax(-1)
        assert one.logs == pytest.approx(logits[torch.arange(len(ids)), torch.tensor(ids)].tolist(), abs=1e-4)
    [best, *_] = run.predict("the mat", 1)
    if best.finish == "end":
        assert run.score_texts([best.output], "the mat")[0].log_probability == pytest.approx(sum(best.logs), abs=1e-3)


@pytest.mark.parametrize("name", ["tags", "path"])
def test_tags_have_the_probability_that_predict_says_and_all_together_one(run_of, name):
    run = run_of(name)
    [best] = run.predict("a b c")
    [found] = run.score_texts([best.output])
    assert found.log_probability == pytest.approx(best.score, abs=1e-4) and found.tokens == best.tags
    every = [" ".join(tags) for tags in product("xy", repeat=3)]
    logs = [one.log_probability for one in run.score_texts(every, "a b c")]
    assert math.fsum(map(math.exp, logs)) == pytest.approx(1, abs=1e-4) and max(logs) == pytest.approx(best.score)


def test_each_tag_of_a_path_has_its_share_among_all_paths_that_begin_alike():
    """By brute force over all paths of two rows with gaps."""
    torch.manual_seed(0)
    head, tags = CRF(4, 3).double().requires_grad_(False), 3
    for part in (head.pairs, head.first, head.last):
        torch.nn.init.normal_(part)
    expected = head(torch.randn(2, 5, 4).double()).detach()
    mask = torch.tensor([[True, True, False, True, True], [False, True, True, True, False]])
    target = torch.randint(0, tags, (2, 5))
    found = head.log_probabilities(expected, target, mask)
    torch.testing.assert_close(found.sum(1), head.log_probability(expected, target, mask))
    for row in range(2):
        places = mask[row].nonzero()[:, 0].tolist()
        scores, own = expected[row, places], target[row, places].tolist()
        worth = {}
        for path in product(range(tags), repeat=len(places)):
            pairs = sum(float(head.pairs[a, b]) for a, b in zip(path, path[1:], strict=False))
            ends = float(head.first[path[0]] + head.last[path[-1]])
            worth[path] = math.exp(sum(float(scores[t, tag]) for t, tag in enumerate(path)) + pairs + ends)
        for step, place in enumerate(places):
            alike = [sum(v for p, v in worth.items() if list(p[:n]) == own[:n]) for n in (step + 1, step)]
            assert float(found[row, place]) == pytest.approx(math.log(alike[0] / alike[1]))
    assert (found[~mask] == 0).all()


def test_what_cannot_be_scored_is_said(run_of):
    with pytest.raises(DataError, match="give its source"):
        run_of("seq2seq").score_texts(["x"])
    with pytest.raises(DataError, match="2 inputs for 1 text:"):
        run_of("seq2seq").score_texts(["x"], ["a", "b"])
    with pytest.raises(DataError, match="is empty"):
        run_of("text").score_texts([""])
    with pytest.raises(DataError, match="words with their tags"):
        run_of("tags").score_texts(["a b"])
    with pytest.raises(DataError, match="3 tags for 2 elements"):
        run_of("tags").score_texts(["x y x"], "a b")
    with pytest.raises(DataError, match="'z' is none of the 2 labels"):
        run_of("tags").score_texts(["a/z"])


def test_the_command_line_scores_texts_and_files_of_several_runs(run_of, typed, tmp_path):
    run, other = run_of("documents"), run_of("windows")
    out, _, code = typed("score", run.folder, other.folder, "--text", "the cat", "--text", "cat the", "--json")
    found = list(map(json.loads, out.splitlines()))
    assert code == 0 and [(one["run"], one["text"]) for one in found] == [
        (str(folder), text) for folder in (run.folder, other.folder) for text in ("the cat", "cat the")
    ]
    assert found[1]["log_probability"] == pytest.approx(run.score_texts(["cat the"])[0].log_probability)
    out, _, _ = typed("score", run.folder, "--text", "the cat", "--tokens")
    assert "perplexity" in out and "<eos>" in out
    (tmp_path / "pairs.tsv").write_text("the mat\ttam eht\n\na dog\tgod a\n", encoding="utf-8")
    out, err, code = typed("score", run_of("seq2seq").folder, "--texts", "pairs.tsv", "--json")
    found = list(map(json.loads, out.splitlines()))
    assert code == 0 and "1 empty line" in err and [one["given"] for one in found] == ["the mat", "a dog"]
    [expected] = run_of("seq2seq").score_texts(["god a"], "a dog")
    assert found[1]["logs"] == pytest.approx(expected.logs, abs=1e-5)
    (tmp_path / "pairs.tsv").write_text("no tab\n", encoding="utf-8")
    _, err, code = typed("score", run_of("seq2seq").folder, "--texts", "pairs.tsv")
    assert code == 2 and "pairs.tsv" in err and "line 1" in err
    _, err, code = typed("score", run.folder, "--tokens")
    assert code == 2 and "add --text" in err


# --- the best texts of a language -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["documents", "windows", "text", "music"])
def test_a_beam_of_one_writes_the_likeliest_token_each_time_however_long(run_of, name):
    run, prompt = run_of(name), "the cat" if name != "music" else "X:1"
    [greedy] = run.generate(prompt, length=25, temperature=0.0).finish()
    [found] = run.generate(prompt, length=25, beam_size=1).finish()
    assert found.tokens == greedy.tokens and found.finish == greedy.finish and found.text == greedy.text
    assert found.logs == pytest.approx(greedy.logs, abs=1e-4)
    assert found.score == pytest.approx(sum(greedy.logs) / len(greedy.logs), abs=1e-4)


def test_a_beam_as_large_as_the_search_space_finds_the_best_texts(run_of):
    """By enumerating all texts of up to two words."""
    run = run_of("documents")
    numbers = [n for n in range(len(run.task.target)) if n not in (PAD, START, END, 1)]
    texts = [[], *([a] for a in numbers), *([a, b] for a in numbers for b in numbers)]
    worth = {}
    for ids in texts:
        logs = all_at_once(run, run.task.writer.encode_opening("the"), [*ids, END])
        logs = logs if len(ids) < 2 else logs[:-1]  # there is no room for its end
        worth[tuple(ids)] = sum(logs) / len(logs) ** 0.5
    best = sorted(worth.values(), reverse=True)[:5]
    options = {"length": 2, "beam_size": 500, "best": 5, "length_penalty": 0.5}
    assert [one.score for one in run.generate("the", **options).finish()] == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("name", ["documents", "windows"])
def test_n_best_texts_come_in_order_and_none_has_a_special_symbol(run_of, name):
    shared = run_of(name)
    run = Run(shared.folder, shared.task, deepcopy(shared.net))
    with torch.no_grad():
        run.model.head.project.bias[[0, 1, 2]] = 9.0  # it would write nothing else
    for options in ({}, {"groups": 2}, {"rules": Rules(no_repeat=2)}):
        found = run.generate("the", length=9, beam_size=4, **options).finish()
        assert len(found) == 4 and [one.score for one in found] == sorted(one.score for one in found)[::-1]
        assert not set(SPECIALS[:3]) & {token for one in found for token in one.tokens}
    assert not set(SPECIALS[:3]) & {one.output for one in run.predict("the", 99)}
    assert not set(SPECIALS[:3]) & {one.output for one in run.follow().read("the")}
    allowed = run.generate("the", length=9, beam_size=4, rules=Rules(allow_unknown=True)).finish()
    assert "<unk>" in allowed[0].tokens


def test_the_tree_of_the_search_is_kept_and_drawn(run_of, typed, tmp_path):
    run, recorder = run_of("documents"), Recorder()
    found = run.generate("the", length=4, beam_size=3, recorder=recorder).finish()
    [tree] = recorder.trees
    ends = {tuple(tree.path(place)) for place, node in enumerate(tree.nodes) if node.fate == "finished"}
    for one in found:
        ids = [run.task.target.symbols.index(token) for token in one.tokens]
        assert tuple(ids + [END] * (one.finish == "end")) in ends
    longer = run.record_beam("the", 3)
    assert longer.nodes[1:4] == tree.nodes[1:4]
    assert "beam" in run.look("the").views
    out, err, code = typed("generate", run.folder, "--prompt", "the", "--length", "4", "--beam", "3", "--best", "2",
                           "--tree", "tree.html", "--json")  # fmt: skip
    told = list(map(json.loads, out.splitlines()))
    assert code == 0 and [one["tokens"] for one in told] == [one.tokens for one in found[:2]]
    assert "tree.html" in err and (tmp_path / "tree.html").stat().st_size > 1000


def test_what_does_not_go_with_a_beam_is_refused(run_of, typed):
    run = run_of("documents")
    with pytest.raises(SearchError, match="draws none"):
        run.generate("the", beam_size=2, temperature=0.5)
    with pytest.raises(SearchError, match="say its size"):
        run.generate("the", groups=2)
    with pytest.raises(SearchError, match="give beam_size"):
        run.generate("the", recorder=Recorder())
    for words, sentence in ((["--beam", "2", "--stream"], "cannot be streamed"), (["--best", "2"], "add --beam")):
        _, err, code = typed("generate", run.folder, *words)
        assert code == 2 and sentence in err


def test_a_run_that_gives_no_sequence_a_probability_says_so(tmp_path):
    recipe = Recipe.of({"task": "classify"}).override(*FEW)
    list(train(recipe, tmp_path / "run", examples=[("a b", "x"), ("b a", "y")] * 8))
    with pytest.raises(RunError, match="classify gives no sequence a probability"):
        load(tmp_path / "run").score_texts(["x"])
