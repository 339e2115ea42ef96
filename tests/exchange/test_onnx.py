"""ONNX graphs compute what the run does, and the program beside them answers as the run, without torch."""

import json
import sys

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from seqloom.errors import RunError, SeqloomError
from seqloom.exchange.check import DECODER, LABELER, SIZES
from seqloom.exchange.onnx import save
from seqloom.exchange.onnx.check import check_model, open_graph
from seqloom.exchange.onnx.model import write_model
from seqloom.exchange.torch import save as save_torch
from seqloom.layers.cells import GRUCell, RNNCell
from seqloom.layers.crf import CRF
from seqloom.layers.embeddings import PatchEmbedding
from seqloom.layers.heads import Categorical
from seqloom.models import Labeler
from seqloom.pack import pack
from seqloom.runs.run import load, train

from ..laws import zoo
from ..recipes import small
from .programs import ask, expected, jsonable, same
from .runs import DAYS, KINDS, cases, images, parts, sentences, table, untrained

FEW = ("lstm", "transformer")
NUMERIC = ("classify-numbers", "tag-numbers", "forecast", "forecast-alone")
EVERY = ("classify", "classify-numbers", "tag-crf", "seq2seq", "language", "forecast")  # tried with all kinds

CASES = (
    *("classify", "classify-labels", "classify-number", "classify-numbers", "tag", "tag-numbers", "tag-crf", "seq2seq"),
    *("seq2seq-luong", "caption", "draw", "language", "language-documents", "music", "forecast", "forecast-alone"),
    "classify-sound",
)


@pytest.mark.parametrize("name", CASES)
def test_every_kind_and_task_answers_without_torch_as_the_run_does(name, tmp_path):
    case = cases(tmp_path)[name]
    kinds = [kind for kind in KINDS if kind != "gru-d" or name in NUMERIC] if name in EVERY else FEW
    kinds = [*kinds, "gru-d"] if name == "tag-numbers" else kinds
    programs, true = [], {}
    for kind in kinds:
        run = untrained(case, kind)
        found = save(run, tmp_path / kind)
        assert len(found["checks"]) == len(SIZES) == 5 and max(one["gap"] for one in found["checks"]) < 1e-5
        true[kind] = [expected(run, given) for given in case[2]]
        programs.append((str(tmp_path / kind / "predict.py"), [[jsonable(given)] for given in case[2]]))
    answers = dict(zip(kinds, ask(programs), strict=True))
    for kind in kinds:
        for one, other, given in zip(answers[kind], true[kind], case[2], strict=True):
            assert same(one, other), (kind, given, one, other)
    assert len({json.dumps(one) for told in answers.values() for one in told}) > 1  # else nothing would be compared


@pytest.mark.parametrize("per_element", [False, True])
@pytest.mark.parametrize("name", zoo.ENCODERS)
def test_every_encoder(name, per_element):
    model = Labeler(nn.Embedding(12, zoo.D), zoo.encoder(name), zoo.stirred(Categorical(zoo.SIZE, 5)), per_element)
    assert max(one.gap for one in check_model(model, write_model(model.eval()))) < 1e-5


@pytest.mark.parametrize("name", zoo.PLAIN)
def test_every_decoder_without_a_source(name):
    model = zoo.talker(name).eval()
    assert max(one.gap for one in check_model(model, write_model(model))) < 1e-5


@pytest.mark.parametrize("name", zoo.DECODERS)
def test_every_decoder_about_a_source(name):
    model = zoo.writer(name, "gru-both").eval()
    assert max(one.gap for one in check_model(model, write_model(model))) < 1e-5


def operators(data):
    return {node.op_type for node in onnx.load_from_string(data).graph.node}


@pytest.mark.parametrize(
    ("cell", "operator"),
    [
        *((name, "LSTM") for name in ("lstm", "lstm-sigmoid", "peephole", "coupled")),
        *((name, "GRU") for name in ("gru", "gru-before", "spectral")),
        *((name, "RNN") for name in ("rnn", "rnn-relu", "orthogonal")),
        *((name, "Scan") for name in ("peephole-full", "peephole-early", "lstm-normed", "gru-normed", "mingru")),
        *((name, "Scan") for name in ("minlstm", "zoneout", "rnn-identity")),
    ],
)
def test_a_cell_is_an_operator_where_onnx_has_its_equations(cell, operator):
    found = operators(write_model(zoo.talker(cell).eval())[DECODER]) & {"LSTM", "GRU", "RNN", "Scan"}
    assert found == {operator}


@pytest.mark.parametrize("length", [1, 1000])
def test_short_and_long_sequences(length):
    model = zoo.stirred(
        Labeler(nn.Embedding(12, zoo.D), zoo.encoder("lstm-both"), Categorical(zoo.SIZE, 5), True)
    ).eval()
    ids, lengths = np.random.default_rng(0).integers(0, 12, (2, length)), np.array([length, 0])
    [found] = open_graph(write_model(model)[LABELER]).run(None, {"inputs": ids, "lengths": lengths})
    mask = torch.arange(length) < torch.from_numpy(lengths)[:, None]
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(found), model(torch.from_numpy(ids), mask), atol=1e-5, rtol=1e-5)


def test_a_shared_table_is_kept_once():
    model = zoo.talker("lstm").eval()
    apart = len(write_model(model)[DECODER])
    table = nn.Parameter(torch.randn(5000, zoo.SIZE))
    model.embed, model.head = nn.Embedding(5000, zoo.SIZE), Categorical(zoo.SIZE, 5000)
    model.decoder = zoo.recurrent_decoder(zoo.CELLS["lstm"], zoo.SIZE, zoo.SIZES)
    model.embed.weight = model.head.project.weight = table
    graphs = write_model(model)
    assert max(one.gap for one in check_model(model, graphs)) < 1e-5
    assert len(graphs[DECODER]) - apart < 1.5 * 4 * table.numel()


# --- what is refused, and that the check can fail ----------------------------------------------------------------


def test_a_graph_of_other_weights_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    run = untrained(cases(tmp_path)["classify"], "gru")
    from seqloom.exchange.onnx import model as module

    def wrong(model):
        graphs = write_model(model)
        with torch.no_grad():
            model.head.project.bias[0] += 1e-3
        return graphs

    monkeypatch.setattr(module, "write_model", wrong)
    with pytest.raises(RunError, match="0.001 away from the run at batch 1 and length 1"):
        save(run, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


@pytest.mark.parametrize("how", ["reset", "reverse"])
def test_what_exporters_get_wrong_is_seen(how, monkeypatch):
    """The other form of the reset gate, and a backward reading that begins in the padding."""
    from seqloom.exchange.onnx import cells, recurrences

    if how == "reset":
        plain = cells.gru_operator
        monkeypatch.setitem(cells.OPERATORS, GRUCell, lambda cell: plain(cell)._replace(attributes={}))
        name = "gru-one"
    else:
        plain = recurrences.run_operator
        monkeypatch.setattr(recurrences, "run_operator", lambda *given: plain(*given[:5], None, *given[6:]))
        name = "lstm-both"
    model = Labeler(nn.Embedding(12, zoo.D), zoo.encoder(name), zoo.stirred(Categorical(zoo.SIZE, 5)), True).eval()
    with pytest.raises(RunError, match="away from the run"):
        check_model(model, write_model(model))


class OwnCell(RNNCell):
    """A person's own: nobody has said what it is in ONNX."""


def test_what_has_no_form_is_refused_with_its_name():
    model = zoo.talker("rnn")
    for part in model.decoder.layers:
        part.cell.__class__ = OwnCell
    with pytest.raises(RunError, match="there is no ONNX form of OwnCell"):
        write_model(model)


def test_a_graph_that_no_file_can_hold_is_refused(monkeypatch):
    from seqloom.exchange.onnx import graph

    monkeypatch.setattr(graph, "LARGEST", 1000)
    with pytest.raises(RunError, match="bytes, but an ONNX file has at most 1,000"):
        write_model(zoo.talker("lstm"))


def test_a_folder_that_is_there_is_not_touched(tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(RunError, match="is there already, and not empty"):
        save(untrained(cases(tmp_path)["classify"], "gru"), tmp_path)
    assert (tmp_path / "mine").read_text() == "precious"


# --- unusual runs ------------------------------------------------------------------------------------------------


def test_images_of_any_size_are_cut_into_patches():
    from seqloom.exchange.onnx.graph import Graph, Shape
    from seqloom.exchange.onnx.modules import write_embedding

    embed, graph = zoo.stirred(PatchEmbedding(3, 4, 9)), Graph()
    image = graph.input("image", Shape(("batch", 3, "height", "width")))
    graph.output("vectors", write_embedding(graph, embed, image), Shape(("batch", "patches", 9)))
    session = open_graph(graph.model("patches"))
    for size in ((4, 4), (5, 9), (8, 3)):
        x = torch.randn(2, 3, *size)
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(session.run(None, {"image": x.numpy()})[0]), embed(x))


def test_labels_of_images_and_texts_with_tags(tmp_path):
    texts = sentences()
    pictures = parts([(one[None], "ab"[n % 2]) for n, one in enumerate(images())])
    settings = ("task=classify", "data.source_type=image", "model.patch=4")
    run = untrained((settings, pictures, []), "transformer")
    save(run, tmp_path / "images")
    tagged = parts([(text, text.upper(), "xy"[n % 2]) for n, text in enumerate(texts)])
    styled = untrained((("task=seq2seq", "data.tag=tag"), tagged, []), "gru")
    save(styled, tmp_path / "tags")
    pairs = [("the cat", "x"), ("the cat", "y"), ("", "x")]
    programs = [
        (str(tmp_path / "images" / "predict.py"), [[one.tolist()] for one in images(4)]),
        (str(tmp_path / "tags" / "predict.py"), pairs),
    ]
    labels, answers = ask(programs)
    assert labels == [expected(run, one) for one in images(4)]
    assert answers == [expected(styled, pair) for pair in pairs]


def test_forecasts_know_the_calendar(tmp_path):
    from seqloom.data.formats.series import Series

    values, columns = table(), ("a", "b", "c")
    dates = DAYS.astype("datetime64[ms]")
    series = [Series("one", dates, values, columns, 0, "86400000 ms")]
    settings = ("task=forecast", "data.context=8", "data.horizon=3", "data.season=4", "data.calendar=true")
    run = untrained(((*settings, "data.time=day"), frame(values, columns), []), "lstm")
    save(run, tmp_path / "out")
    asked = [[table()[:20].tolist(), DAYS[:20].astype(str).tolist()], [table().tolist(), DAYS.astype(str).tolist()]]
    found = ask([(str(tmp_path / "out" / "predict.py"), asked)])[0]
    for one, end in zip(found, (20, 160), strict=True):
        assert same(one, expected(run, Series("one", dates[:end], values[:end], columns, 0, series[0].step)))


def frame(values, columns):
    import pandas

    return pandas.DataFrame({"day": DAYS} | {name: values[:, n] for n, name in enumerate(columns)})


def test_the_best_path_is_that_of_the_crf():
    from seqloom.exchange import script

    head = zoo.stirred(CRF(4, 3))
    names = {"np": np, "FIELDS": {"crf": {name: getattr(head, name).tolist() for name in ("pairs", "first", "last")}}}
    exec(script.BEST_PATH, names)
    for length in (1, 2, 7):
        scores = torch.randn(1, length, 3)
        assert names["best"](scores[0].numpy()) == head.sample(scores, 0)[0].tolist()


def test_the_command_exports_a_trained_run(tmp_path, monkeypatch, capsys):
    from seqloom.cli.main import main

    list(train(small(tmp_path), tmp_path / "run"))

    def typed(*words):
        monkeypatch.setattr(sys, "argv", ["seqloom", "export", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code, capsys.readouterr()

    code, said = typed(tmp_path / "run", "--to", "onnx", "--into", tmp_path / "out", "--json")
    told = json.loads(said.out)
    assert not code and {"encoder.onnx", "decoder.onnx", "fields.json", "predict.py"} == set(told["files"])
    run, words = load(tmp_path / "run"), ["abc", "hgfed", "zz"]
    answers = ask([(str(tmp_path / "out" / "predict.py"), [[word] for word in words])])[0]
    assert answers == [run.predict(word, beam=1)[0].output for word in words]
    code, said = typed(tmp_path / "run", "--to", "onnx", "--into", tmp_path / "out")
    assert code == 2 and said.err.startswith("error: ") and "not empty" in said.err
    code, said = typed(tmp_path / "run", "--to", "huggingface", "--into", tmp_path / "other")
    assert code == 2 and said.err.count("\n") == 1 and "a gru is not in the shape of one of these families" in said.err
    assert not (tmp_path / "other").exists()


def test_missing_packages_are_named(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("seqloom.exchange.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    from seqloom.exchange.onnx import folder

    with pytest.raises(SeqloomError, match=r"pip install 'seqloom\[onnx\]'"):
        folder.save(untrained(cases(tmp_path)["classify"], "gru"), tmp_path / "out")


@pytest.mark.parametrize("objective", ["masked", "causal", "bidirectional"])
def test_a_pretrained_body_is_refused_by_every_format(objective, tmp_path):
    settings = ("task=pretrain", f"train.objective={objective}", "data.target_tokenizer=words")
    run = untrained((settings, "\n".join(sentences()), []), "lstm")
    for write in (save, save_torch, pack):
        with pytest.raises(RunError, match="is not exported by itself"):
            write(run, tmp_path / "out.html")
    assert not any(tmp_path.iterdir())
