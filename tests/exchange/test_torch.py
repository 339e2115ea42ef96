"""Plain PyTorch code computes what the run does, and answers as the run without this package."""

import ast

import pytest
import safetensors.torch
import torch

from seqloom.errors import RunError
from seqloom.exchange.torch import save

from .programs import ask, expected, jsonable, same
from .runs import cases, untrained

SINUSOIDAL = ("model.positions=sinusoidal",)
LEARNED = ("model.positions=learned", "model.max_positions=600", "model.norm=post", "model.activation=relu")
NONE = ("model.positions=none",)
BODIES = (
    ("rnn", ()),
    ("lstm", ()),
    ("gru", ("model.bias=false",)),
    ("transformer", SINUSOIDAL),
    ("transformer", LEARNED),
)
CASES = (
    *("classify", "classify-number", "classify-numbers", "tag", "tag-numbers", "seq2seq", "draw", "language"),
    *("language-documents", "music", "forecast", "forecast-alone"),
)


def settings_of(name, kind):
    return ("model.attention=none",) if name in ("seq2seq", "draw") and kind != "transformer" else ()


@pytest.mark.parametrize("name", CASES)
def test_what_torch_has_answers_without_this_package_as_the_run_does(name, tmp_path):
    case = cases(tmp_path)[name]
    programs, true, asked = [], [], [given for given in case[2] if not (isinstance(given, str) and not given)]
    for number, (kind, more) in enumerate(BODIES):
        run = untrained(case, kind, *more, *settings_of(name, kind))
        found = save(run, tmp_path / str(number))
        assert len(found["checks"]) == 5 and max(one["gap"] for one in found["checks"]) < 1e-5
        true.append([expected(run, given) for given in asked])
        programs.append((str(tmp_path / str(number) / "predict.py"), [[jsonable(given)] for given in asked]))
    for body, told, wanted in zip(BODIES, ask(programs, without=["seqloom"]), true, strict=True):
        for one, other, given in zip(told, wanted, asked, strict=True):
            assert same(one, other), (body, given, one, other)


def test_a_random_field_and_a_body_without_positions(tmp_path):
    run = untrained(cases(tmp_path)["tag"], "transformer", *NONE, "model.crf=true")
    save(run, tmp_path / "out")
    asked = ["the cat sat", "mat"]
    found = ask([(str(tmp_path / "out" / "predict.py"), [[given] for given in asked])], without=["seqloom"])[0]
    assert found == [expected(run, given) for given in asked]


def test_the_code_is_torch_alone_and_the_weights_are_all_there(tmp_path):
    save(untrained(cases(tmp_path)["classify"], "lstm"), tmp_path / "out")
    text = (tmp_path / "out" / "model.py").read_text()
    imported = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    assert imported == {"pathlib", "torch", "safetensors"}
    names = {"__name__": "model", "__file__": str(tmp_path / "out" / "model.py")}
    exec(text, names)
    net = names["load"]()
    kept = safetensors.torch.load_file(tmp_path / "out" / "model.safetensors")
    assert {name: tuple(value.shape) for name, value in net.state_dict().items()} == {
        name: tuple(value.shape) for name, value in kept.items()
    }
    assert any(isinstance(part, torch.nn.LSTM) for part in net.modules())


@pytest.mark.parametrize(
    ("name", "kind", "more", "reason"),
    [
        ("classify", "mingru", (), "MinGRUCell is not made of modules of torch.nn"),
        ("classify", "peephole", (), "PeepholeLSTMCell is not"),
        ("classify", "convolution", (), "Convolution is not"),
        ("classify", "transformer", ("model.positions=rotary",), "Rotary is not"),
        ("classify", "transformer", ("model.window=3", *SINUSOIDAL), "torch.nn has no window"),
        ("classify", "transformer", ("model.norm=rezero", *SINUSOIDAL), "ReZero is not"),
        ("classify", "transformer", ("model.norm_type=rms", *SINUSOIDAL), "RMSNorm is not"),
        ("classify", "transformer", ("model.activation=swiglu", *SINUSOIDAL), "SwiGLU is not"),
        ("classify", "lstm", ("model.merge=sum",), "Sum is not"),
        ("classify", "lstm", ("model.initial_state=learned",), "LearnedState is not"),
        ("classify-labels", "lstm", (), "Pooling is not"),
        ("seq2seq", "lstm", (), "Bahdanau is not"),
        ("caption", "lstm", ("model.attention=none",), "PatchEmbedding is not"),
    ],
)
def test_what_torch_has_not_is_refused_with_its_name(name, kind, more, reason, tmp_path):
    run = untrained(cases(tmp_path)[name], kind, *more)
    with pytest.raises(RunError, match=reason):
        save(run, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))


def test_code_that_computes_something_else_is_refused(tmp_path, monkeypatch):
    from seqloom.exchange.torch import code

    monkeypatch.setitem(code.POOLS, "ends", "values.mean(1)")
    with pytest.raises(RunError, match="away from the run"):
        save(untrained(cases(tmp_path)["classify"], "gru"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
