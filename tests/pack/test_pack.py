"""A packed page answers as the run does: in a real browser, opened from a file, without a network."""

import base64
import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect
from torch import nn

from seqloom.errors import RunError
from seqloom.exchange.check import check_model
from seqloom.exchange.onnx.model import write_model
from seqloom.exchange.program import describe_run
from seqloom.layers.heads import Categorical
from seqloom.models import Labeler
from seqloom.pack import pack
from seqloom.pack.bundle import bundle
from seqloom.pack.graphs import OPERATORS, PackedGraphs, find_eight_bits
from seqloom.pack.save import measure_gap, round_weights, sources
from seqloom.runs.json_output import replace_nonfinite

from ..browser import chromium
from ..exchange.programs import expected, jsonable, same
from ..exchange.runs import KINDS, cases, parts, untrained
from ..laws import zoo

NUMERIC = ("classify-numbers", "tag-numbers", "forecast", "forecast-alone")
EVERY = ("classify", "seq2seq")  # tried with all kinds
FEW = ("lstm", "transformer")
CASES = (
    *("classify", "classify-labels", "classify-number", "classify-numbers", "tag", "tag-numbers", "tag-crf", "seq2seq"),
    *("seq2seq-luong", "caption", "draw", "language", "language-documents", "music", "forecast", "forecast-alone"),
)
TASKS = ("classify", "tag", "seq2seq", "caption", "draw", "language", "music", "forecast")

ASK = """([model, weights, inputs]) => {
  const {openGraphs} = modules["graph.js"], {Model} = modules["model.js"];
  const made = new Model(model, openGraphs(model, weights));
  return inputs.map(input => { const [best] = made.answer(input).predictions; return best.values ?? best.output; });
}"""
RUN = """([model, weights, calls]) => {
  const {openGraphs} = modules["graph.js"], {Tensor} = modules["tensor.js"];
  const KINDS = {float32: Float32Array, int64: Int32Array, bool: Uint8Array};
  globalThis.graphs = model ? openGraphs(model, weights) : graphs;
  return calls.map(([name, inputs]) => Object.entries(graphs[name](Object.fromEntries(Object.entries(inputs).map(
    ([key, {dims, kind, data}]) => [key, new Tensor(dims, KINDS[kind].from(data))])))).map(
    ([key, {dims, data}]) => [key, {dims, kind: data.constructor.name, data: Array.from(data)}]));
}"""
ARRAYS = {"Float32Array": np.float32, "Int32Array": np.int64, "Uint8Array": bool}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def runtime(browser):
    """A page that has the modules and no model."""
    page = browser.new_page()
    page.set_content("<main></main>")
    page.add_script_tag(content=bundle(sources() | {"all.js": ALL}, "all.js"))
    return page


ALL = 'import {Model} from "./model.js";\nimport {openGraphs} from "./graph.js";\n'


def packed(graphs):
    made = PackedGraphs()
    for name, data in graphs.items():
        made.add_graph(name, data)
    return made


def block(made):
    return base64.b64encode(made.weights).decode()


@pytest.mark.parametrize("name", CASES)
def test_every_kind_and_task_answers_as_the_run(name, runtime, tmp_path):
    case = cases(tmp_path)[name]
    kinds = [kind for kind in KINDS if kind != "gru-d" or name in NUMERIC] if name in EVERY else FEW
    for kind in kinds:
        run = untrained(case, kind)
        program, made = describe_run(run), packed(write_model(run.model))
        model = {
            **made.to_json(),
            "fields": program.fields,
            "tokenizers": {file.split(".")[0]: json.loads(data) for file, data in program.files.items()},
            "longest": None if name == "draw" else getattr(run.recipe.data, "max_length", None),
        }
        answers = runtime.evaluate(ASK, [model, block(made), replace_nonfinite([jsonable(given) for given in case[2]])])
        for given, answer in zip(case[2], answers, strict=True):
            true = expected(run, given)
            answer = {key: {"mean": values} for key, values in answer.items()} if isinstance(answer, dict) else answer
            assert same(answer, true), (kind, given, answer, true)


def opened(page, made):
    """Graphs that the browser runs, as `check_model` asks them."""
    page.evaluate(RUN, [made.to_json(), block(made), []])

    def open_graph(name):
        def run(**arrays):
            known = {
                key: {"dims": [*value.shape], "kind": str(value.dtype), "data": value.ravel().tolist()}
                for key, value in arrays.items()
                if key in made.graphs[name]["inputs"]
            }
            [outputs] = page.evaluate(RUN, [None, None, [[name, known]]])
            return {key: np.array(one["data"], ARRAYS[one["kind"]]).reshape(one["dims"]) for key, one in outputs}

        return run

    return open_graph


@pytest.mark.parametrize("name", zoo.ENCODERS)
def test_every_encoder(name, runtime):
    model = Labeler(nn.Embedding(12, zoo.D), zoo.encoder(name), zoo.stirred(Categorical(zoo.SIZE, 5)), False).eval()
    assert max(one.gap for one in check_model(model, opened(runtime, packed(write_model(model))))) < 1e-4


@pytest.mark.parametrize("name", zoo.DECODERS)
def test_every_decoder(name, runtime):
    model = zoo.writer(name, "gru-both").eval()
    assert max(one.gap for one in check_model(model, opened(runtime, packed(write_model(model))))) < 1e-4


def test_what_python_lets_pass_is_what_the_page_computes(runtime):
    assert set(runtime.evaluate('Object.keys(modules["operators.js"].OPERATORS)')) == OPERATORS - {"Scan"}


@pytest.mark.parametrize("size", [0.0, 0.3, 1.7, 2.4, 2.6, 4.0, 7.0])
def test_the_error_function(size, runtime):
    from math import erf

    for x in (size, -size):
        assert runtime.evaluate('x => modules["operators.js"].erf(x)', x) == pytest.approx(erf(x), abs=1e-7)


# --- whole pages ----------------------------------------------------------------------------------------------------


def show(browser, path):
    """The page, from its file and without a network, and what it complained about."""
    page, faults = browser.new_context(offline=True).new_page(), []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
    page.goto(path.as_uri())
    page.wait_for_selector("h1")
    return page, faults


def at_hand(run, examples):
    """The run with what it was trained on, which an untrained one has no folder to hold against."""
    run._data = examples, run.task.declaration.prepare(run.task.recipe, print, examples)[1]
    return run


@pytest.mark.parametrize("name", TASKS)
def test_a_page_answers_its_examples_as_python(name, browser, tmp_path):
    case = cases(tmp_path)[name]
    run = untrained(case, "gru" if name in ("seq2seq", "caption") else "lstm")
    summary = pack(at_hand(run, case[1]), tmp_path / "model.html", case[1])
    page, faults = show(browser, tmp_path / "model.html")
    page.click("#check")
    count = summary["examples"]
    expect(page.locator("#checked")).to_have_text(re.compile(f"^{count} of {count} answers"))
    assert count >= 4 and not faults
    assert page.query_selector("section[aria-label=Answer] *")
    if name in ("seq2seq", "caption"):
        assert page.query_selector(".chip .ink")
    if name in ("classify", "tag", "language"):
        assert page.query_selector("select[aria-label='Which gate']")


def test_what_is_typed_is_answered(browser, tmp_path):
    case = cases(tmp_path)["classify"]
    run = untrained(case, "transformer")
    pack(at_hand(run, case[1]), tmp_path / "model.html", case[1])
    page, faults = show(browser, tmp_path / "model.html")
    for text in ("the dog sat", "", "cat", "ÄÖ 🙂 " * 50, "sat on " * 500):
        page.fill("#input", text)
        answer = run.predict(text)[0].output
        expect(page.locator(".answer")).to_have_text(answer)
    assert not faults


def test_markup_stays_text(browser, tmp_path):
    evil = '</script><img src=x onerror="document.title=1"><!--'
    examples = parts([(f"{evil} {word}", f"{evil}{word[0]}") for word in ("one", "two", "three") * 4])
    run = untrained((("task=classify", "data.source_tokenizer=words"), examples, []), "gru")
    pack(at_hand(run, examples), tmp_path / "model.html", examples)
    page, faults = show(browser, tmp_path / "model.html")
    assert page.inner_text(".answer").startswith(evil) and not page.query_selector("main img") and not faults
    policy = page.get_attribute("meta[http-equiv=Content-Security-Policy]", "content")
    assert "default-src 'none'" in policy and "unsafe" not in policy


# --- numbers --------------------------------------------------------------------------------------------------------


def test_rounded_weights_are_kept_exactly_in_a_byte_each(tmp_path):
    case = cases(tmp_path)["seq2seq"]
    model = round_weights(untrained(case, "lstm", "model.size=64").model)
    made = packed(write_model(model))
    assert len(made.weights) < 1.3 * sum(weight.numel() for weight in model.parameters())
    assert all(one["kind"] != "float32" or np.prod(one["dims"]) < 1024 for one in made.constants)


def test_weights_that_are_not_rounded_have_no_eight_bits():
    weights = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)
    assert find_eight_bits(weights) is None
    scales = np.abs(weights).max(1, keepdims=True) / 127
    axis, whole, found = find_eight_bits((np.round(weights / scales) * scales).T)
    assert axis == 1 and np.allclose(whole * found, (np.round(weights / scales) * scales).T, atol=1e-6)


def test_the_largest_gap():
    assert measure_gap({"a": [1.0, 2.0], "seconds": 5.0}, {"a": [1.0, 2.5], "seconds": 9.0}) == 0.25
    assert measure_gap({"a": 100.0, "b": "x"}, {"a": 90.0, "b": "x"}) == pytest.approx(0.1)


def test_nothing_is_overwritten_and_other_endings_are_refused(tmp_path):
    case = cases(tmp_path)["classify"]
    run = untrained(case, "gru")
    with pytest.raises(RunError, match=r"ends with \.html"):
        pack(run, tmp_path / "model.txt", case[1])
    (tmp_path / "model.html").write_text("mine")
    with pytest.raises(RunError, match="is there already"):
        pack(run, tmp_path / "model.html", case[1])
    assert (tmp_path / "model.html").read_text() == "mine"
