"""Values and combinations that are refused, and in which words; those that are near and pass."""

from pathlib import Path

import pytest
from annotated_types import Ge, Gt, Le, Lt

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError

from .settings import OWNERS, SETTINGS, SIZES, limit, one_line, refusal


def read_refusals() -> list[tuple[list[str], str]]:
    """Overrides and the sentence with which they are refused; one that begins with … holds more."""
    text = (Path(__file__).parent / "refusals.txt").read_text("utf-8").replace("→\n    ", "→ ").replace("SIZES", SIZES)
    cases = [line.partition(" → ") for line in text.splitlines() if not line.startswith("#")]
    return [(left.split(" & "), sentence) for left, _, sentence in cases]


REFUSED = [
    *read_refusals(),
    (["model=3"], "model is a table of settings; model.kind is one of them"),
    (["model.encoder={}"], "… model.encoder is a table of settings"),
    (["model.size=" + "1," * 1000 + "1"], "model.size: 1001 layers are listed, but there can be at most 1000"),
    (["model.size=" + "[" * 20_000], "… model.size must be"),
    (["train.seed=1\nx = 2"], 'train.seed must be a whole number from 0 to 4294967295, not "1\\nx = 2"'),
    (["data.target=\udcff"], "data.target: the text is not Unicode, so it cannot be written into a recipe"),
    *(([text], "…") for text in ("model.size=" + "x" * 9999, "x" * 9999 + "=3", "model.size=[" + "1," * 9999 + "]")),
]


@pytest.mark.parametrize(("overrides", "sentence"), REFUSED, ids=[" ".join(words)[:80] for words, _ in REFUSED])
def test_overrides_are_refused_with_the_reason(overrides, sentence):
    said = refusal(*overrides)
    assert sentence.removeprefix("…").strip() in said if sentence.startswith("…") else sentence == said
    assert len(said) < 300  # however long the mistake


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.type in (int, float)])
def test_bounds_are_exact(name):
    """Just inside passes or contradicts another setting, just outside is refused as a value."""
    step = 1 if SETTINGS[name].type is int else 1e-9
    low = limit(name, Ge, "ge")
    outside = [low - step] if low is not None else [limit(name, Gt, "gt")]
    high = limit(name, Le, "le")
    outside += [high + (1 if step == 1 else high * 1e-9)] if high is not None else [limit(name, Lt, "lt")]
    for value in outside:
        with pytest.raises(RecipeError, match=f"^{name} must be"):
            OWNERS[name].changed(name, value)
    for value in (low, high):
        if value is not None:
            try:
                OWNERS[name].changed(name, value)
            except RecipeError as error:
                assert "must be a" not in str(error)


@pytest.mark.parametrize("value", [3, None, True, {"a": 1}, 1.5])
def test_files_are_named_by_text(value):
    with pytest.raises(RecipeError, match="data.train must be text or a list of texts, not"):
        Recipe.of({"data": {"train": value}})


@pytest.mark.parametrize("values", [3, None, [], "model", [("model", 3)]])
def test_what_is_no_table_is_refused(values):
    with pytest.raises(RecipeError, match="a recipe must be a table of settings"):
        Recipe.of(values)
    with pytest.raises(RecipeError, match="model must be a table of settings"):
        Recipe.of({"model": values})


def test_huge_numbers_are_refused_like_any_other():
    for text in ("0x" + "f" * 20_000, "9" * 20_000, "{a = 0x" + "f" * 20_000 + "}", "1" + "0" * 400):
        assert refusal(f"train.seed={text}").startswith("train.seed must be a whole number")
        assert refusal(f"train.learning_rate={text}").startswith("train.learning_rate must be a number")


@pytest.mark.parametrize(
    "overrides",
    [
        ["model.size=127", "model.bidirectional=false"],
        ["model.size=127", "model.encoder.size=128"],
        ["model.decoder.size=127"],
        ["model.size=127", "model.merge=sum"],
        ["model.size=127", "model.kind=convolution"],
        ["model.decoder.size=127,33"],
        ["model.size=64,32", "model.depth=2"],
        ["model.depth=3", "model.encoder.size=64,32"],
        ["model.size=64,32", "model.encoder.size=48"],
        ["model.size=64,64", "model.kind=transformer", "model.encoder.size=64", "model.decoder.kind=gru"],
        ["model.kind=orthogonal", "model.activation=relu"],
        ["model.kind=transformer", "model.activation=swiglu"],
        ["model.kind=lstm", "model.memory_size=64", "model.candidate_activation=tanh"],
        ["model.kind=lstm", "model.candidate_activation=sigmoid"],
        ["model.layer_norm=true"],
        ["model.recurrent_weight_dropout=0.1", "model.weight_constraint=spectral"],
        ["model.kind=mingru", "model.zoneout=0.1"],
        ["model.kind=transformer", "model.positions=rotary"],
        ["model.kind=transformer", "model.positions=sinusoidal", "model.size=12"],
        ["model.kind=transformer", "model.window=4"],
        ["model.kind=convolution", "model.kernel_size=5"],
        ["model.kind=convolution", "model.kernel_size=4", "model.bidirectional=false"],
        ["model.decoder.kind=convolution", "model.decoder.kernel_size=4"],
        ["model.encoder.kind=convolution", "model.attention=none"],
        ["model.tied=true"],
        ["model.tied=true", "model.size=64,32", "model.embedding=32"],
        ["model.tied=true", "model.encoder.size=64"],
        ["model.kind=transformer", "model.size=129", "model.heads=3", "model.positions=sinusoidal"],
        ["model.kind=transformer", "model.decoder.kind=gru", "model.decoder.size=127"],
        ["model.decoder.kind=transformer", "model.bidirectional=false"],
        ["model.kind=rnn", "model.attention=none"],
        ["train.steps=10", "train.warmup=10"],
        ["train.time=5m", "train.warmup=100000"],
        ["data.validation_share=0.5", "data.test_share=0.49"],
        ["data.validation_share=0", "data.test_share=0"],
        ["data.train=a,b", "data.format=lines", "data.test=c,d"],
        ["data.train=a,b", "data.validation=c,d"],
        ["data.train=a.csv", "data.format=csv"],
        ["data.test=a.csv"],
        ["data.validation=a,b"],
    ],
)
def test_a_possible_combination_passes(overrides):
    Recipe().override(*overrides)


def test_training_without_examples_is_refused_but_printing_is_not():
    recipe = Recipe.read("translate")
    assert recipe.to_toml(comments=True)
    with pytest.raises(RecipeError, match=r"data\.train=FILE") as caught:
        recipe.check_data()
    one_line(caught.value)
    recipe.override("data.train=a.en,a.de").check_data()
    recipe.override("data.sample=dates").check_data()
