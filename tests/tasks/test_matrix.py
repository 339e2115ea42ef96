"""Every kind in every task, by recipe alone: it trains, answers, scores, is watched, and resumes."""

import numpy as np
import pytest
import torch

from seqloom.architectures import ARCHITECTURES
from seqloom.architectures.build import build_forecaster
from seqloom.config.recipe import Recipe
from seqloom.layers.attention import Attention
from seqloom.layers.heads import Mean
from seqloom.layers.tap import recording
from seqloom.runs.run import load, train

from ..recipes import forecasting, measured, small, small_seq2seq, walks

ALL = [kind for kind in ARCHITECTURES if kind != "bag"]  # which classifies texts alone: test_bag.py
KINDS = [kind for kind in ALL if kind != "gru-d"]  # which reads numbers alone
OPTIONS = [
    *(
        "model.attention=none",
        "model.attention=dot",
        "model.attention=scaled",
        "model.attention_style=luong",
        "model.hard_attention=true",
    ),
    *(
        "model.bidirectional=false",
        "model.merge=mean",
        "model.merge=sum",
        "model.merge=project",
        "model.initial_state=learned",
    ),
    *(
        "model.size=[12,16]",
        "model.tied=true",
        "model.bias=false",
        "model.variational_dropout=true",
        "model.zoneout=0.1",
    ),
    *("model.recurrent_weight_dropout=0.2", "model.weight_constraint=spectral", "model.weight_constraint=orthogonal"),
    *(f"model.init={way}" for way in ("xavier", "orthogonal", "identity", "normal")),
    *("model.reset_gate=before", "model.layer_norm=true"),
    *("model.kind=lstm model.layer_norm=true", "model.kind=lstm model.memory_size=24"),
    *("model.kind=lstm model.candidate_activation=sigmoid", "model.kind=lstm model.forget_bias=-1.0"),
    *("model.kind=peephole model.peephole=full", "model.kind=peephole model.peephole_gates=fo"),
    *("model.kind=peephole model.peephole_output=old", "model.kind=rnn model.activation=relu"),
    *(f"model.kind=transformer model.norm={norm}" for norm in ("post", "pre", "rezero")),
    *(f"model.kind=transformer model.positions={way}" for way in ("learned", "rotary", "none")),
    *("model.kind=transformer model.activation=swiglu model.norm_type=rms", "model.kind=transformer model.window=3"),
    "model.kind=transformer model.attention_dropout=0.2",
    *("model.encoder.kind=transformer", "model.encoder.kind=lstm model.decoder.kind=transformer"),
    *("model.encoder.size=20", "model.encoder.kind=convolution model.decoder.kind=coupled"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_trains_answers_and_resumes(kind, tmp_path):
    recipe = small(tmp_path, f"model.kind={kind}", "train.steps=6", "train.checkpoint_every=2")
    told = [record for record in train(recipe, tmp_path / "whole") if record.best]
    run = load(tmp_path / "whole")
    _, prepared = run.task.declaration.prepare(run.recipe, print)
    assert run.task.shape.validate(run.model, prepared) == told[-1].scores  # saving and loading changed nothing
    assert len(run.predict("abc", beam=2)) == 2
    assert set(run.scores["scores"]) == {"exact", "token error rate", "BLEU", "chrF"}
    records = measured(train(recipe, tmp_path / "cut"))
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("kind", ALL)
def test_dropout_is_felt_even_by_a_single_layer_that_reads_numbers(kind):
    recipe = Recipe.read("forecast", "model.size=8", "model.dropout=0.5").override(f"model.kind={kind}").resolved()
    torch.manual_seed(0)
    model = build_forecaster(recipe.model, 3, 4, lambda inputs: Mean(inputs, 2, 1))
    x, mask = torch.randn(2, 4, 3), torch.ones(2, 4, dtype=torch.bool)
    assert not torch.equal(model(x, mask), model(x, mask))
    model.eval()
    assert torch.equal(model(x, mask), model(x, mask))


@pytest.mark.parametrize("kind", ALL)
def test_every_kind_forecasts_and_resumes(kind, tmp_path):
    values = walks(90)
    recipe = forecasting(f"model.kind={kind}", *["model.depth=2"] * (kind != "linear"))
    told = [record for record in train(recipe, tmp_path / "whole", examples=values) if record.best]
    run = load(tmp_path / "whole")
    _, prepared = run.task.declaration.prepare(run.recipe, print, values)
    assert run.task.shape.validate(run.model, prepared) == told[-1].scores  # saving and loading changed nothing
    [answer] = run.predict(values)
    assert [len(one) for one in answer.values.values()] == [recipe.data.horizon] * 2
    records = measured(train(recipe, tmp_path / "cut", examples=values))
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", examples=values, resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("options", ["model.kind=gru", *OPTIONS])
def test_every_option_changes_the_model_and_learns(options, tmp_path):
    """One step, and the loss of what was read is smaller; the settings name another network than the default."""
    recipe = Recipe.read("seq2seq", "model.size=16", "model.dropout=0.1", "model.depth=2", *options.split())
    torch.manual_seed(0)
    model = small_seq2seq(recipe.resolved().model, 9, 8)
    torch.manual_seed(0)
    plain = small_seq2seq(Recipe.read("seq2seq", "model.size=16", "model.depth=2").resolved().model, 9, 8)
    assert options == "model.kind=gru" or repr(named(model)) != repr(named(plain))
    source, target = torch.randint(4, 8, (8, 6)), torch.randint(4, 9, (8, 5))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(15):
        features, _ = model.features(target[:, :-1], model.initial_state(8, source, torch.ones_like(source).bool()))
        loss, count = model.head.loss(features, target[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / count.item())
    assert np.isfinite(losses).all() and min(losses[-3:]) < losses[0]


def named(model):
    """What a model is made of, and what each part starts with."""
    parts = [
        (name, type(part).__name__, [v for v in vars(part).values() if isinstance(v, bool | int | float | str)])
        for name, part in model.named_modules()
    ]
    return parts, [(name, tuple(p.shape), p.double().sum().item()) for name, p in model.named_parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_of_every_kind_can_be_watched_while_it_looks(kind, tmp_path):
    model = small_seq2seq(Recipe.read("seq2seq", "model.size=16", f"model.kind={kind}").resolved().model, 9, 8)
    source = torch.randint(4, 8, (1, 6))
    with recording(model.decoder, "*weights") as tape:
        model(torch.tensor([[2, 5]]), model.eval().initial_state(1, source, torch.ones_like(source).bool()))
    assert tape and all(torch.allclose(w.sum(-1), torch.ones(())) for values in tape.values() for w in values)
    assert kind == "transformer" or any(isinstance(part, Attention) for part in model.modules())


WORDS = [("good film", "glad"), ("bad plot", "sad"), ("a fine film", "glad"), ("an awful plot", "sad")] * 4
FEW = {
    "classify": (WORDS, ["data.source_tokenizer=words"]),
    "tag": ([(text, " ".join("x" * len(text.split()))) for text, _ in WORDS], ["data.characters=4"]),
    "caption": ([(np.full((1, 8, 8, 3), 16 * n, np.uint8), label) for n, (_, label) in enumerate(WORDS)], []),
    "draw": ([(np.full((1, 8, 8, 3), 16 * n, np.uint8), label) for n, (_, label) in enumerate(WORDS)], []),
}


@pytest.mark.parametrize("task", FEW)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_serves_every_task_that_reads(kind, task, tmp_path):
    """Tasks that write without a source, and forecasts, have the same test beside their own."""
    examples, more = FEW[task]
    parts = {part: examples for part in ("train", "validation", "test")}
    recipe = Recipe.of({"task": task}).override(f"model.kind={kind}", "model.size=16", "train.steps=2", *more)
    told = [record for record in train(recipe, tmp_path / "run", examples=parts) if record.best]
    run = load(tmp_path / "run")
    _, prepared = run.task.declaration.prepare(run.recipe, print, parts)
    assert run.task.shape.validate(run.model, prepared) == told[-1].scores  # saving and loading changed nothing
    assert len(run.predict(examples[0][task == "draw"], 2)) >= 1
    assert all(score["baselines"] for score in run.scores["scores"].values())
