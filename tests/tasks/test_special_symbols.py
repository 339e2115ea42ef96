"""What stands around texts is never written, nor what stands for the unknown; scores stay the model's own."""

import json
import math
from collections import Counter

import numpy as np
import pytest
import torch

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import END, PAD, SPECIALS, START, UNKNOWN
from seqloom.layers.state import repeat
from seqloom.models import Generator
from seqloom.runs.run import load, train
from seqloom.search import Sampling, score
from seqloom.search.choosing import find_top_log_probabilities
from seqloom.tasks.decoding_options import DecodingOptions, Rules
from seqloom.tasks.generation import SamplingOptions
from seqloom.tasks.task import Task
from seqloom.tasks.text_writer import TextWriter
from tests.preparing import prepare_task

from ..search.exact import exact

WORDS = ["the", "red", "cat", "sat", "on", "a", "blue", "mat", "and", "ran", "off", "with", "one", "old", "hat"]
PAIRS = [(" ".join(WORDS[n : n + 3]), " ".join(WORDS[n + 1 : n + 4])) for n in range(len(WORDS) - 3)] * 4
SMALL = ("model.size=16", "model.dropout=0.0", "search.max_length=6")
INPUTS = ["the red cat", "old hat", "on a blue mat"]
SPECIAL = {"<pad>", "<sos>", "<unk>"}
IMAGES = [np.random.default_rng(n).integers(0, 255, (1, 8, 8, 3), np.uint8) for n in range(3)]
TUNES = ["X:1\nK:C\nCDEF GABc|", "X:2\nK:G\nGABc dedB|"] * 8
CASES = {
    "seq2seq": ("seq2seq", PAIRS, ("data.source_tokenizer=words", "data.target_tokenizer=words", *SMALL)),
    "subwords": ("seq2seq", PAIRS, ("data.target_tokenizer=bpe", "data.vocabulary_size=300", *SMALL)),
    "language": ("language", [target for _, target in PAIRS], ("data.target_tokenizer=words", *SMALL[:2])),
    "music": ("music", TUNES, SMALL[:2]),
    "caption": (
        "caption",
        [(IMAGES[n % 3], target) for n, (_, target) in enumerate(PAIRS)],
        ("model.patch=4", "data.target_tokenizer=words", *SMALL),
    ),
    "draw": ("draw", [(IMAGES[n % 3], str(n % 3)) for n in range(12)], ("data.square=4", *SMALL[:2])),
}


def eager(name: str, *overrides: str) -> tuple[Task, Generator]:
    """A model that would write nothing but special symbols if it could, as one may that was taught with smoothing."""
    kind, examples, given = CASES[name]
    task, _ = prepare_task(Recipe.of({"task": kind}).override(*given, *overrides).resolved(), str, examples)
    torch.manual_seed(0)
    model = task.shape.build().eval()
    with torch.no_grad():
        model.head.project.weight.normal_()
        model.head.project.bias[[PAD, UNKNOWN, START]] = 4.0
        model.head.project.bias[END] = -1.0
    return task, model


WAYS = {
    "greedy": DecodingOptions(1),
    "beam": DecodingOptions(4),
    "groups": DecodingOptions(4, groups=2),
    "drawn": DecodingOptions(1, sampling=Sampling(2.0, seed=3), count=20),
    "told": DecodingOptions(1, alternatives=100),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["seq2seq", "subwords", "caption"])
def test_no_special_symbol_is_in_any_answer(name, way):
    task, model = eager(name)
    for answers in task.shape.answer(model, IMAGES if name == "caption" else INPUTS, WAYS[way]):
        for one in answers:
            assert not SPECIAL & set(one.tokens)
            for step in one.alternatives:
                assert not {"<pad>", "<sos>"} & set(step) and all(map(math.isfinite, step.values()))


def test_prepared_steps_give_them_no_probability_either(kernels):
    task, model = eager("seq2seq")
    state = task.shape.begin(model, task.shape.inputs.encode(INPUTS), [0, 1, 2])[1]
    last, step = torch.tensor([[START], [5], [6]]), model.stepper()
    with torch.no_grad():
        expected, found = model(last, state)[0], step(last, state)[0]
    torch.testing.assert_close(found, expected)
    assert (found[..., [PAD, START]] == -torch.inf).all() and found.isfinite().sum() == 3 * (len(task.target) - 2)
    logs, tokens = find_top_log_probabilities(found, len(task.target))  # those that are impossible come last
    assert (logs[:, -2:] == -torch.inf).all() and not {PAD, START} & set(tokens[:, :-2].flatten().tolist())
    torch.testing.assert_close(logs.exp().sum(1), torch.ones(3))


def test_an_answer_that_is_streamed_has_none_either():
    task, model = eager("seq2seq")
    text = "".join(task.shape.stream(model, INPUTS[0], DecodingOptions(1, max_length=50)))
    assert text and set(text.split()) <= set(WORDS)


def test_the_exact_search_finds_none_either():
    task, model = eager("seq2seq")
    last, state = torch.tensor([[START]]), task.shape.begin(model, task.shape.inputs.encode(INPUTS[:1]), [0])[1]
    [proof] = exact(model.stepper(), last, state, steps=3, end=END)
    assert not {PAD, START} & set(proof.best.tokens)
    [answers] = task.shape.answer(
        model, INPUTS[:1], DecodingOptions(1000, max_length=3, rules=Rules(allow_unknown=True))
    )
    assert answers[0].score == pytest.approx(proof.best.score, abs=1e-5)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_drawing_has_a_special_symbol(temperature):
    task, model = eager("draw")
    for one in task.writer.generate(model, "1", SamplingOptions(30, temperature, count=5)).finish():
        assert one.tokens and not SPECIAL & set(one.tokens) and "<eos>" not in one.tokens


@pytest.mark.parametrize("name", ["language", "music"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_special_symbol_is_in_any_text_that_is_written_on(temperature, name):
    task, model = eager(name)
    for rules in (Rules(), Rules(no_repeat=3)):
        for one in task.writer.generate(model, "the", SamplingOptions(30, temperature, count=5, rules=rules)).finish():
            assert not SPECIAL & set(one.tokens) and len(one.tokens) > 1
    [answers] = task.shape.predict(model, ["the"], 1000)
    assert not SPECIAL & {one.output for one in answers}
    with torch.no_grad():
        writer = TextWriter(task)
        logits, _ = model(*writer.read_prompt(model, [writer.encode_opening("the")]))
    unknown = float(logits[0, -1].double().softmax(-1)[UNKNOWN])
    assert sum(one.probability for one in answers) == pytest.approx(1 - unknown)


def test_the_unknown_is_written_where_that_is_allowed():
    task, model = eager("seq2seq")
    allowed, _ = eager("seq2seq", "search.allow_unknown=true")
    asked = (task, DecodingOptions(4, rules=Rules(allow_unknown=True))), (allowed, DecodingOptions(4))
    for teller, ask in asked:
        assert any("<unk>" in one.tokens for row in teller.shape.answer(model, INPUTS, ask) for one in row)
    writer, model = eager("language")
    [text] = writer.writer.generate(model, "the", SamplingOptions(20, 0.0, rules=Rules(allow_unknown=True))).finish()
    assert "<unk>" in text.tokens


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@pytest.mark.parametrize("way", WAYS)
def test_the_score_of_an_answer_is_that_of_its_tokens_when_they_are_given(way, penalty):
    """Whatever was forbidden: the logs are the model's own, and their sum over a power of their number ranks."""
    task, model = eager("seq2seq", f"search.length_penalty={penalty}")
    for given, answers in zip(INPUTS, task.shape.answer(model, INPUTS, WAYS[way]), strict=True):
        state = task.shape.begin(model, task.shape.inputs.encode([given]), [0])[1]
        last = torch.full((len(answers), 1), START)
        ids = [[task.target.symbols.index(token) for token in one.tokens] for one in answers]
        told = score(model, last, repeat(state, len(answers)), ids, end=END, piece=100)
        assert [one.score for one in answers] == sorted((one.score for one in answers), reverse=True)
        for one, known in zip(answers, told, strict=True):
            logs = known.logs if one.finish == "end" else known.logs[:-1]
            assert one.logs == pytest.approx(logs, abs=1e-4)
            assert one.score == pytest.approx(sum(logs) / len(logs) ** penalty, abs=1e-4)


def test_probabilities_of_all_that_can_come_next_sum_to_one_without_padding_and_start():
    """By hand: the loss of a text is that of a softmax over all other symbols."""
    task, model = eager("language")
    encoded = task.shape.encode([("the red cat",)])
    ids = [*encoded["target"][0].tolist(), END]
    with torch.no_grad():
        read = torch.tensor([[*task.writer.encode_opening(""), *ids[:-1]]])
        features, _ = model.features(read, model.initial_state(1))
        raw = torch.nn.functional.linear(features, model.head.project.weight, model.head.project.bias)[0]
    possible = [number for number in range(len(task.target)) if number not in (PAD, START)]
    chances = raw[:, possible].double().softmax(-1)
    expected = [-math.log(chances[place, possible.index(token)]) for place, token in enumerate(ids)]
    assert task.shape.losses(model, encoded) == pytest.approx(np.array(expected), abs=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_the_score_of_a_text_that_is_written_on_is_the_sum_of_its_tokens_when_they_are_given(temperature):
    task, model = eager("language")
    [text] = task.writer.generate(model, "the red", SamplingOptions(12, temperature)).finish()
    ids = [task.target.symbols.index(token) for token in text.tokens]
    last, state = task.writer.read_prompt(model, [task.writer.encode_opening("the red")])
    [known] = score(model, last, state, [ids], end=END if text.finish == "end" else None, piece=100)
    assert text.logs == pytest.approx(known.logs, abs=1e-4)
    assert text.score == pytest.approx(sum(known.logs), abs=1e-4)


def test_baselines_of_a_language_count_only_what_is_written():
    """By hand: every token as often as in training and once more, all of them alike, padding and start never."""
    kind, examples, given = CASES["language"]
    recipe = Recipe.of({"task": kind}).override(*given, "data.documents=lines").resolved()
    task, prepared = prepare_task(recipe, str, {"train": examples, "test": examples[:5]})
    torch.manual_seed(0)
    found = task.score(task.shape.build().eval(), task.shape.examples(prepared, "test"))["perplexity"].baselines
    possible = [number for number in range(len(task.target)) if number not in (PAD, START)]
    parts = [task.shape.examples(prepared, part) for part in ("train", "test")]
    counted, told = ([n for (text,) in part for n in (*task.target.encode(text).tolist(), END)] for part in parts)
    seen = Counter(counted)
    total = seen.total() + len(possible)
    expected = np.exp(-np.mean([np.log((seen[token] + 1) / total) for token in told]))
    assert found["unigram"] == pytest.approx(expected) and found["uniform"] == pytest.approx(len(possible))


def test_no_text_is_among_the_answers_twice():
    """Subwords spell a text in many ways: each text is there once, with the score of the best way to spell it."""
    task, model = eager("subwords")
    with torch.no_grad():
        model.head.project.weight.mul_(0.05)
        for number in range(END, len(task.target)):  # one word, however it is cut, up to its end
            if number == END or task.target.decode([number]) in ("h", "a", "t", "at", "hat"):
                model.head.project.bias[number] = 12.0
    [answers] = task.shape.answer(model, INPUTS[:1], DecodingOptions(300, max_length=4))
    task.target.meaning = lambda stop: None
    [every] = task.shape.answer(model, INPUTS[:1], DecodingOptions(300, max_length=4))
    ways: dict[str, list[float]] = {}
    for one in every:
        ways.setdefault(" ".join(one.output.split()), []).append(one.score)
    assert max(map(len, ways.values())) > 2
    found = {" ".join(one.output.split()): one.score for one in answers}
    assert len(found) == len(answers)
    for text, one in list(found.items())[: len(ways) // 2]:  # at the end of the beam, others take the places
        assert one == pytest.approx(max(ways[text]))


def test_the_command_line_allows_the_unknown(tmp_path, capsys):
    settings = ("data.target_tokenizer=words", "data.min_count=3", "train.steps=1", "train.validate_every=1", *SMALL)
    list(train(Recipe().override(*settings), tmp_path / "run", examples=PAIRS))
    run = load(tmp_path / "run")
    assert run.task.target.symbols[: len(SPECIALS)] == SPECIALS
    for more in ([], ["--allow-unknown"]):
        with pytest.raises(SystemExit) as ended:
            build_app()(["predict", str(tmp_path / "run"), INPUTS[0], "--json", "--beam", "1", *more])
        assert ended.value.code == 0
        [answer] = json.loads(capsys.readouterr().out)["predictions"]
        [expected] = run.answer([INPUTS[0]], DecodingOptions(1, rules=Rules(allow_unknown=bool(more))))
        assert answer["tokens"] == expected[0].tokens
