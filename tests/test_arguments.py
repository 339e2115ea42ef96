"""What is given from Python and is of a wrong kind: one sentence where it comes in, for every task and every door."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqloom import Recipe, load, train
from seqloom.errors import SeqloomError
from seqloom.search import Sampling
from seqloom.tasks.decoding_options import DecodingOptions, Rules

from .data.mutations import kinds, write


def called(value: Any) -> str:
    """A value as the name of a test, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


INF, NAN = float("inf"), float("nan")
TRAINED = {
    **{"seq2seq": "csv", "classify": "csv, labels", "rate": "csv, rated", "tag": "conll", "caption": "images"},
    **{"classify numbers": "csv, sequences", "classify images": "idx", "tag numbers": "csv, frames"},
    **{"forecast": "csv, forecast", "language": "text", "tunes": "abc", "chorales": "chorales", "draw": "idx, drawn"},
}
WRITERS, FREE = ("seq2seq", "caption"), ("language", "tunes", "chorales", "draw")
TEXTS = ("seq2seq", "classify", "rate", "tag", "language", "tunes", "chorales", "draw")
NUMBERS, IMAGES = ("classify numbers", "tag numbers", "forecast"), ("caption", "classify images")

ALWAYS: dict[str, Any] = {
    **{"None": None, "a number": 3, "a fraction": 1.5, "bytes": b"abc", "a truth value": True, "an object": object()},
    **{"a set": {1, 2}, "a dictionary": {"a": 1}, "an empty list": [], "a complex number": 1j, "a function": len},
    **{"a list of lists": [["a"], ["b", "c"]], "an empty array": np.zeros((0, 2)), "a list of None": [None]},
    **{
        "an array of texts": np.array(["a", "b"]),
        "five axes": np.zeros((1, 1, 1, 1, 1)),
        "three in a row": (1, "a", 2),
    },
}
TO_TEXTS = {
    **{"a list": ["a", "b"], "an array": np.zeros((4, 2)), "half a pair": "a\ud800b", "a path": Path("abc")},
    **{"a pair of numbers": (1, 2), "a pair with no tag": ("abc", None), "an image": np.zeros((8, 8, 3), np.uint8)},
}
TO_NUMBERS = {
    **{"a text": "abc", "a text of a number": "1.5", "infinite": np.full((9, 2), INF), "huge": np.full((9, 2), 1e300)},
    **{"too wide": np.zeros((9, 7)), "uneven": [[1.0, 2.0], [3.0]], "words": [["a", "b"]] * 9},
}
TO_IMAGES = {
    **{
        "a text": "abc.png",
        "not a number": np.full((8, 8, 3), NAN),
        "two": np.zeros((2, 8, 8, 3)),
    },
    **{"channels first": np.zeros((3, 9, 9), np.uint8), "not bytes": np.full((8, 8, 3), 300)},
}
WRONG = (
    *((task, name, value) for task in TRAINED for name, value in ALWAYS.items()),
    *((task, name, value) for task in TEXTS for name, value in TO_TEXTS.items() if (task, name) != ("tag", "a list")),
    *((task, name, value) for task in NUMBERS for name, value in TO_NUMBERS.items()),
    *((task, name, value) for task in IMAGES for name, value in TO_IMAGES.items()),
)
RIGHT: dict[str, Any] = {
    **{"seq2seq": "abc", "classify": "abc", "rate": "abc", "tag": "ab cd", "caption": np.zeros((8, 8, 3), np.uint8)},
    **{
        "classify numbers": [[1, 2], [2, 3.5]],
        "classify images": np.zeros((4, 4, 1)),
        "tag numbers": np.ones((3, 2)),
    },
    **{"forecast": np.ones((9, 2)), "language": "ab", "tunes": "X:1", "chorales": "60 64", "draw": "1"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run of every task, hardly trained."""
    found, known = {}, kinds()
    for task, name in TRAINED.items():
        folder = tmp_path_factory.mktemp("run")
        for _ in train(write(known[name], folder, None), folder / "run"):
            if (folder / "run" / "model.safetensors").exists():
                break
        found[task] = load(folder / "run")
    return found


def sentence(call: Any) -> str:
    with pytest.raises(SeqloomError) as told:
        call()
    assert len(str(told.value).splitlines()) == 1
    return str(told.value)


@pytest.mark.parametrize(("task", "name", "value"), WRONG, ids=[f"{task}: {name}" for task, name, _ in WRONG])
def test_an_input_of_a_wrong_kind_is_one_sentence(runs, task, name, value):
    run = runs[task]
    told = sentence(lambda: run.predict_many([RIGHT[task], value])).removesuffix(" (input 1, counted from 0)")
    if isinstance(value, Path):  # which is that of a file
        assert sentence(lambda: run.predict(value)).startswith("abc: ")
    elif run.task.shape.split_inputs(value) is None:
        assert told == sentence(lambda: run.predict(value))
    if value is not None:  # which stands for one of the run's own
        assert told == sentence(lambda: run.look(value))
    if task in WRITERS:
        assert told == sentence(lambda: run.answer([value], DecodingOptions(2)))
        assert told == sentence(lambda: list(run.stream(value)))
        assert told == sentence(lambda: run.record_beam(value))


@pytest.mark.parametrize("task", TRAINED)
@pytest.mark.parametrize("value", [["a", 1, None], [None], [[["a"]], 3], np.zeros((2, 2, 2, 2, 2))], ids=called)
def test_several_inputs_of_which_one_is_of_a_wrong_kind_are_one_sentence(runs, task, value):
    sentence(lambda: runs[task].predict(value))


@pytest.mark.parametrize("task", TRAINED)
def test_an_input_of_the_right_kind_is_answered(runs, task):
    [answers, again] = runs[task].predict_many([RIGHT[task]] * 2, 1)
    assert answers[0].output == again[0].output == runs[task].predict(RIGHT[task], 1)[0].output


@pytest.mark.parametrize("task", TRAINED)
@pytest.mark.parametrize("inputs", [None, 3, "abc", b"abc", {"a": 1}, object()], ids=called)
def test_inputs_that_are_no_list_are_one_sentence(runs, task, inputs):
    assert "a list was expected" in sentence(lambda: runs[task].predict_many(inputs))


WIDTHS = [1.5, "3", 0, -1, True, NAN, [1], b"1", np.array([1, 2]), np.float64(2)]


@pytest.mark.parametrize("task", TRAINED)
@pytest.mark.parametrize("width", WIDTHS, ids=called)
def test_a_width_that_is_none_is_one_sentence(runs, task, width):
    assert "the beam size is" in sentence(lambda: runs[task].predict(RIGHT[task], width))


def test_a_width_of_numpy_is_a_width(runs):
    assert len(runs["seq2seq"].predict("abc", np.int64(2))) == 2


WAYS = [
    *(("length", wrong) for wrong in (0, -1, 1.5, "3", None, NAN, True)),
    *(("count", wrong) for wrong in (0, -1, 1.5, "3", None, [1])),
    *(("temperature", wrong) for wrong in (NAN, INF, -1, "1", None, True, [1.0], np.ones(2))),
    *(("top_k", wrong) for wrong in (-1, 1.5, "3", None)),
    *(("top_p", wrong) for wrong in (0, 2, NAN, "1", None)),
    *(("min_p", wrong) for wrong in (-1, 2, NAN, "1", None)),
    *(("seed", wrong) for wrong in (1.5, "3", None, NAN)),
    *(("alternatives", wrong) for wrong in (-1, 1.5, "3", None)),
    *(("rules", wrong) for wrong in ("no", 3, {"ban": "a"})),
]


@pytest.mark.parametrize("task", FREE)
@pytest.mark.parametrize(("name", "value"), WAYS, ids=[f"{name}={called(value)}" for name, value in WAYS])
def test_a_way_of_writing_that_is_none_is_one_sentence(runs, task, name, value):
    prompt = RIGHT[task]
    assert name.removesuffix("s") in sentence(lambda: runs[task].generate(prompt, **{name: value}))


@pytest.mark.parametrize("task", FREE)
@pytest.mark.parametrize("prompt", [None, 3, b"abc", ["a"], "a\ud800", np.zeros(3)], ids=called)
def test_a_beginning_that_is_no_text_is_one_sentence(runs, task, prompt):
    assert "the beginning is" in sentence(lambda: runs[task].generate(prompt))


ANSWERS: list[tuple[str, Any]] = [
    *((name, wrong) for name in ("beam_size", "groups", "count") for wrong in (0, -1, 1.5, "3", None, True)),
    *((name, wrong) for name in ("best", "max_length", "alternatives") for wrong in (-1, 1.5, "3", None)),
    *((name, wrong) for name in ("diversity", "length_penalty") for wrong in (NAN, INF, "1", [1.0])),
    *((name, wrong) for name in ("sampling", "rules") for wrong in (3, "no", {"seed": 1})),
]


@pytest.mark.parametrize(("name", "value"), ANSWERS, ids=[f"{name}={called(value)}" for name, value in ANSWERS])
def test_a_way_of_searching_that_is_none_is_one_sentence(name, value):
    told = sentence(lambda: DecodingOptions(**({"beam_size": 1} | {name: value})))
    assert name in told.replace("beam size", "beam_size")


@pytest.mark.parametrize("wrong", ["a", 3, None, [1], [b"a"], ["a\ud800"]], ids=called)
def test_rules_of_a_wrong_kind_are_one_sentence(wrong):
    for name in ("ban", "require", "stop"):
        assert name in sentence(lambda name=name: Rules(**{name: wrong}))
    assert wrong == "a" or "prefix" in sentence(lambda: Rules(prefix=wrong))


def test_a_way_of_searching_is_told_by_its_class(runs):
    for wrong in (3, {"beam_size": 2}, Sampling(), "beam"):
        assert "DecodingOptions were expected" in sentence(lambda wrong=wrong: runs["seq2seq"].answer(["abc"], wrong))
        assert "DecodingOptions were expected" in sentence(lambda wrong=wrong: runs["seq2seq"].stream("abc", wrong))


PATHS = [3, 1.5, b"abc", ["a"], object(), "a\0b", "x" * 5000, True]


@pytest.mark.parametrize("path", [None, *PATHS], ids=lambda path: repr(path)[:20])
def test_a_path_that_is_none_is_one_sentence(runs, path, tmp_path):
    run = runs["seq2seq"]
    sentence(lambda: load(path))
    sentence(lambda: list(train(Recipe(), path)))
    sentence(lambda: run.score(path))
    sentence(lambda: run.quantize(path))
    sentence(lambda: run.report(path))
    sentence(lambda: runs["language"].keep([], path))
    sentence(lambda: Recipe.read(path))


def test_a_score_needs_a_file(runs):
    assert "no file is given" in sentence(lambda: runs["seq2seq"].score())


@pytest.mark.parametrize("answer", [3, b"abc", ["a"], "a\ud800"], ids=called)
def test_an_answer_to_look_at_is_a_text(runs, answer):
    for task in ("seq2seq", "classify", "tag", "language"):
        assert "the answer is" in sentence(lambda task=task: runs[task].look(RIGHT[task], answer))


@pytest.mark.parametrize("wrong", [None, 3, b"model.size=3", ["model.size=3"], {"model.size": 3}], ids=called)
def test_a_change_of_a_recipe_is_a_text(wrong):
    assert "section.key=value" in sentence(lambda: Recipe.read("seq2seq", wrong))
    assert "section.key=value" in sentence(lambda: Recipe().override(wrong))


@pytest.mark.parametrize("wrong", ["seq2seq", 3, {"task": "tag"}, Path("recipe.toml")], ids=called)
def test_what_is_trained_is_a_recipe(wrong, tmp_path):
    assert "a Recipe was expected" in sentence(lambda: list(train(wrong, tmp_path / "run")))
    assert not (tmp_path / "run").exists()


# --- examples ---------------------------------------------------------------------------------------------------------

PAIR, SERIES = ("abc", "cba"), (np.ones((3, 2)), "x")
EXAMPLES: list[tuple[str, Any]] = [
    *(("seq2seq", wrong) for wrong in (3, b"abc", [], [3], [None], [()], [("a",)], [("a", "b", "c")], object())),
    *(("seq2seq", [PAIR, wrong]) for wrong in (("a", None), (b"a", "b"), (["a"], "b"), (np.ones(3), "b"), ("a", NAN))),
    *(("seq2seq", [PAIR, wrong]) for wrong in (("a", "b\ud800"), ("a", {}), None, 3, ("a", ""))),
    *(("seq2seq", {"train": wrong}) for wrong in (None, 3, [])),
    *(("seq2seq", {"train": [PAIR] * 9, "test": wrong}) for wrong in (None, 3, [("a",)], [None])),
    ("seq2seq", {"training": [PAIR]}),
    *(("classify numbers", [SERIES, (wrong, "x")]) for wrong in (None, "1 2", 3, [[1, 2], [3]], np.zeros((0, 2)), [])),
    *(
        ("classify numbers", [SERIES, (wrong, "x")])
        for wrong in (np.ones((2, 3)), np.full((2, 2), INF), np.ones((1, 2, 2)))
    ),
    *(
        ("classify numbers", [SERIES, (wrong, "x")])
        for wrong in (np.array([["a", "b"]]), np.full((2, 2), 1e300), b"ab")
    ),
    *(("tag", [("a b", wrong)]) for wrong in (None, "X", ["X", "Y"], 3)),
    *(("tag numbers", [(np.ones((2, 2)), wrong)]) for wrong in (None, "X", ["X", "Y"])),
    *(("rate", [("abc", wrong)]) for wrong in (None, "much", NAN, INF, 1e300, [1])),
    *(("caption", [(wrong, "abc")]) for wrong in (None, "a.png", np.zeros((8, 8)), np.full((8, 8, 3), 300), 3)),
    *(("forecast", wrong) for wrong in (3, "abc", b"abc", [], [None], np.zeros((2, 2, 2)), object(), {"train": None})),
    *(("forecast", wrong) for wrong in (np.full((60, 2), INF), np.full((60, 2), 1e300), [["a", "b"]] * 60, {"a": 1})),
    *(("language", wrong) for wrong in (3, [None], [b"abc"], [3.5, None], [("a", "b")], object())),
    *(("chorales", wrong) for wrong in (3, ["60 64"], [None], [np.ones((4, 3))], [np.full((4, 88), 2)])),
]


@pytest.mark.parametrize(
    ("task", "examples"), EXAMPLES, ids=[f"{task}: {called(given):.50}" for task, given in EXAMPLES]
)
def test_examples_of_a_wrong_shape_are_one_sentence(tmp_path, task, examples):
    recipe = write(kinds()[TRAINED[task]], tmp_path, None)
    sentence(lambda: list(train(recipe, tmp_path / "run", examples=examples)))


def test_an_option_that_generating_does_not_have_is_one_sentence(runs):
    told = sentence(lambda: runs["language"].generate("ab", temprature=1.0))
    assert "'temprature'" in told and "temperature" in told
