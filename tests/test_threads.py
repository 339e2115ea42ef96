"""A run serves many threads at once: whoever predicts, writes, scores or looks inside is answered as if alone."""

import dataclasses
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.look.measures.attribution import find_decision, gradient_times_input
from seqloom.runs.run import load, train
from seqloom.tasks.decoding_options import DecodingOptions

from .recipes import small

THREADS = 8
TEXTS = ["the cat sat on a mat", "a dog ate the hat", "the mat was flat", "a cat and a dog sat"] * 4
PAIRS = [(text, text[::-1]) for text in TEXTS]
TAGS = [(text, " ".join("DN"[len(word) > 1] for word in text.split())) for text in TEXTS]
ASKED = ["the cat ate", "a flat mat sat on the dog", "was a hat"]
RUNS = {
    "lstm that attends": ("seq2seq", PAIRS, ["model.kind=lstm", "data.source_tokenizer=words"]),
    "transformer": ("seq2seq", PAIRS, ["model.kind=transformer", "model.heads=2", "data.target_tokenizer=words"]),
    "transformer of eight bits": ("seq2seq", PAIRS, ["model.kind=transformer", "model.positions=rotary"]),
    "tagger": ("tag", TAGS, ["model.kind=lstm", "model.layer_norm=true"]),
    "tagger whose recurrence is computed": ("tag", TAGS, ["model.kind=orthogonal"]),
    "language": ("language", [(text,) for text in TEXTS], ["model.kind=gru", "data.documents=lines"]),
    "language of attention": (
        "language",
        [(text,) for text in TEXTS],
        ["model.kind=transformer", "model.heads=2", "data.documents=lines", "data.target_tokenizer=words"],
    ),
}


def trained(folder, task, examples, *settings):
    quick = ("model.size=8", "train.steps=4", "train.batch_tokens=256")
    list(train(Recipe.of({"task": task}).override(*quick, *settings), folder, examples=examples))
    return load(folder)


def asks(run, file, text):
    """What may be asked of a run about one text: by name, functions that ask."""
    tags, writes = run.recipe.task == "tag", run.recipe.task == "language"
    answer = "N " * (len(text.split()) - 1) + "D" if tags else "tam"

    def look():
        return run.look(text, answer)

    def attributed():
        shown = look()
        return gradient_times_input(find_decision(shown.model, shown.batch, shown.names))

    found = {
        "predict": lambda: run.predict(text, 3),
        "score": lambda: run.score(file),
        "attention": lambda: look().measure("heads"),
        "gates": lambda: look().measure("gates"),
        "gradients": lambda: look().measure("gradients"),
        "jacobians": lambda: look().measure("jacobians"),
        "norms": lambda: look().measure("norms"),
        "query-key-value": lambda: look().measure("query-key-value"),
        "next": lambda: look().measure("next"),
        "attribution": attributed,
        "field": lambda: look().measure("field"),
    }
    if run.recipe.task == "seq2seq":
        found["stream"] = lambda: list(run.stream(text, DecodingOptions(1, max_length=12)))
        found["beam"] = lambda: run.record_beam(text, 3)
    if writes:
        found["generate"] = lambda: run.generate(text[:3], length=20, seed=7, count=2, alternatives=2).finish()
        found["pieces"] = lambda: list(run.generate(text[:3], length=20, temperature=0))
    return found


def exactly(value):
    """A value that equals another one's if they are the same to the bit; how long it took does not count."""
    if isinstance(value, np.ndarray | torch.Tensor):
        array = np.asarray(value)
        return array.shape, array.dtype.str, array.tobytes()
    if dataclasses.is_dataclass(value):
        return [(one.name, exactly(getattr(value, one.name))) for one in fields(value)]
    if isinstance(value, dict):
        return [(key, exactly(one)) for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [exactly(one) for one in value]
    return exactly(vars(value)) if hasattr(value, "__dict__") else repr(value)


def fields(value):
    return [one for one in dataclasses.fields(value) if one.name != "seconds"]


@pytest.fixture
def hurried():
    """Threads take turns ten times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(before / 10)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", RUNS)
def test_every_thread_is_answered_as_if_it_were_alone(kind, tmp_path, hurried):
    task, examples, settings = RUNS[kind]
    eight = kind.endswith("eight bits")
    if eight and shutil.which("cc") is None:
        pytest.skip("there is no C compiler here")
    trained(tmp_path / "run", task, examples, *settings)
    run = load(tmp_path / "run", int8=eight)
    file = tmp_path / "few.tsv"
    lines = ["target" if task == "language" else "source\ttarget", *("\t".join(example) for example in examples[:4])]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    alone = [{name: exactly(ask()) for name, ask in asks(run, file, text).items()} for text in ASKED]
    run, together = load(tmp_path / "run", int8=eight), threading.Barrier(THREADS)  # it has seen nothing of all that

    def serve(number):
        """All about one of the texts, everyone beginning elsewhere."""
        about = number % len(ASKED)
        mine = list(asks(run, file, ASKED[about]).items())
        together.wait()
        return [name for name, ask in 2 * (mine[number:] + mine[:number]) if exactly(ask()) != alone[about][name]]

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(serve, range(THREADS))) == [[]] * THREADS
    assert all(weight.grad is None for weight in run.model.parameters())


# --- weights of eight bits ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("eight")
    list(train(small(where, "model.kind=transformer", "model.heads=2"), where / "run"))
    return where / "run"


@pytest.fixture
def writer(tmp_path):
    return trained(tmp_path / "writer", *RUNS["language"][:2], *RUNS["language"][2])


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")


def logs(run):
    return [[one.logs for one in run.predict(text, 3)] for text in ("abcd", "hg", "feda")]


@needs_compiler
def test_a_run_of_eight_bits_leaves_the_bits_of_others_alone(folder):
    plain = load(folder)
    before = logs(plain)
    rounded = load(folder, int8=True)
    alone = logs(rounded)
    assert logs(plain) == before and logs(load(folder)) == before != alone
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(logs, [plain, rounded] * 12))
    assert found == [before, alone] * 12


@needs_compiler
def test_a_text_goes_on_with_the_weights_that_it_was_begun_with(writer, tmp_path):
    """While a run is quantized, which rounds its weights."""
    file = tmp_path / "few.txt"
    file.write_text("\n".join(TEXTS[:4]) + "\n", encoding="utf-8")
    whole = writer.generate("the", length=30, seed=3).finish()[0]
    begun = writer.generate("the", length=30, seed=3)
    next(iter(begun))
    writer.quantize(file)
    assert begun.finish()[0].logs == whole.logs
    assert writer.generate("the", length=30, seed=3).finish()[0].logs != whole.logs
