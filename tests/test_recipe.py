"""Recipes: every setting, what is refused and in which words, what is derived, and TOML there and back."""

import importlib
import itertools
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import assume, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from seqloom.config.builtin import builtin, describe
from seqloom.config.messages import literal, settings
from seqloom.config.names import ELSEWHERE, RENAMED
from seqloom.config.owners import settings_of
from seqloom.config.recipe import Recipe, fitting_kinds, seconds
from seqloom.config.tasks import USES
from seqloom.config.toml import LARGEST
from seqloom.errors import RecipeError

BASES = [
    Recipe.of({"task": task, "model": {"kind": kind}})
    for task in USES
    for kind in fitting_kinds(task)
    if kind != "gru-d" or task == "forecast"
]
BASES.insert(0, Recipe())
OWNERS = {name: base for base in reversed(BASES) for name in settings(type(base))}  # a recipe that has the setting
SETTINGS = {name: settings(type(base))[name] for name, base in OWNERS.items()}
SIZES = "a whole number from 1 to 65536, or a list of them"
SECTIONS = ["", "about", "data", "model", "model.encoder", "model.decoder", "train", "search"]


def refusal(*overrides: str, of: Recipe | None = None) -> str:
    """The sentence with which overrides are refused; always one line."""
    of = of or OWNERS.get(overrides[0].partition("=")[0], Recipe())
    with pytest.raises(RecipeError) as caught:
        of.override(*overrides)
    return one_line(caught.value)


def one_line(error: RecipeError) -> str:
    assert len(str(error).splitlines()) == 1
    return str(error)


def nested(names: dict[str, object]) -> dict[str, object]:
    """{"model.size": 3} as {"model": {"size": 3}}."""
    values: dict[str, object] = {}
    for name, value in names.items():
        *sections, key = name.split(".")
        table = values
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    return values


def value_of(recipe: Recipe, name: str) -> object:
    found: object = recipe
    for key in name.split("."):
        found = getattr(found, key)
    return found


# --- strategies: values for any setting, made from its declaration ---------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
times = st.builds("{}h{}m{}s".format, *[st.integers(1, 99)] * 3)
files = st.lists(texts.filter(lambda name: name.strip() and "\0" not in name), min_size=1, max_size=2)
ODD = {
    "train.time": times,
    "data.encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "cp1252"]),
    "data.separator": texts.filter(lambda text: text and not set(text) & {"\n", "\r"}),
    "data.source": st.lists(texts.filter(bool), min_size=1, max_size=3),
    "data.target": texts.filter(bool),
    "model.quantiles": st.sampled_from([[], [0.5], [0.1, 0.5, 0.9]]),
    "task": st.sampled_from(list(USES)),
}


def limit(name: str, kind: type, key: str) -> float | None:
    return next((getattr(one, key) for one in SETTINGS[name].limits if isinstance(one, kind)), None)


def values_for(name: str) -> st.SearchStrategy:
    setting = SETTINGS[name]
    if name in ODD:
        return ODD[name]
    if name.endswith("kind"):
        return st.sampled_from(fitting_kinds("seq2seq"))
    if setting.choices:
        return st.sampled_from(setting.choices)
    if setting.many and setting.type is str:
        return files
    low, high = limit(name, Ge, "ge"), limit(name, Le, "le")
    whole = st.integers(low, min(high or 0, 600)) | st.integers(low, high)
    return {
        str: texts,
        bool: st.booleans(),
        int: whole | st.lists(whole, min_size=1, max_size=3) if setting.many else whole,
        float: st.floats(
            limit(name, Gt, "gt") if low is None else low,
            limit(name, Lt, "lt") if high is None else high,
            exclude_min=low is None,
            exclude_max=high is None,
        ),
    }[setting.type]


@st.composite
def recipes(draw) -> Recipe:
    base = draw(st.sampled_from(BASES))
    names = draw(st.lists(st.sampled_from(list(settings(type(base)))), max_size=12, unique=True))
    values = {name: draw(values_for(name)) for name in names if name not in ("task", "model.kind")}
    values |= {"task": base.task, "model.kind": base.model.kind}
    try:
        return Recipe.of(nested(values))
    except RecipeError:
        assume(False)
        raise


# --- declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_has_one_sentence_of_help(name):
    help = SETTINGS[name].help
    assert help.endswith(".") and help[0].isupper() and ". " not in help


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_says_what_it_allows(name):
    assert SETTINGS[name].allowed


def test_numbers_have_bounds_on_both_sides():
    for setting in SETTINGS.values():
        if setting.type in (int, float):
            assert len([one for one in setting.limits if isinstance(one, Ge | Gt | Le | Lt)]) == 2


def test_the_settings_and_defaults_that_others_rely_on():
    """Names that code, recipes and people use: no line of this list changes without a version."""
    expected = """
        task = "seq2seq"
        about = {title = "", time = "", expected = ""}
        [data]
        sample = ""
        train = []
        validation = []
        test = []
        format = "guess"
        separator = "auto"
        source = ["source"]
        target = "target"
        encoding = "utf-8"
        on_bad_row = "error"
        source_tokenizer = "characters"
        target_tokenizer = "characters"
        lowercase = false
        min_count = 1
        vocabulary_size = 0
        max_length = 512
        too_long = "drop"
        validation_share = 0.1
        test_share = 0.1
        split_seed = 0
        [model]
        kind = "gru"
        size = 128
        depth = 0
        embedding = 0
        tied = false
        dropout = 0.1
        variational_dropout = false
        recurrent_weight_dropout = 0.0
        zoneout = 0.0
        merge = "concatenate"
        initial_state = "zero"
        attention = "additive"
        attention_style = "bahdanau"
        hard_attention = false
        bias = true
        layer_norm = false
        init = "uniform"
        init_gain = 1.0
        weight_constraint = "none"
        reset_gate = "after"
        [train]
        steps = 0
        time = ""
        seed = 0
        batch_tokens = 4096
        shuffle = true
        accumulate_batches = 1
        bptt_window = 0
        optimizer = "adamw"
        momentum = 0.9
        learning_rate = 1e-3
        schedule = "cosine"
        warmup = 0
        weight_decay = 0.01
        clip_norm = 1.0
        clip_value = 0.0
        ema = 0.0
        freeze = []
        teacher_forcing = 1.0
        teacher_forcing_schedule = "constant"
        shard = false
        label_smoothing = 0.0
        validate_every = 0
        patience = 0
        checkpoint_every = 0
        keep_checkpoints = 2
        [search]
        beam_size = 4
        length_penalty = 1.0
        max_length = 0
        """
    values = Recipe().model_dump(mode="json")
    for table, wanted in tomllib.loads(expected).items():
        assert wanted == ({key: values[table][key] for key in wanted} if isinstance(wanted, dict) else values[table])


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().train.steps = 3
    assert hash(Recipe()) == hash(Recipe())


def test_reading_recipes_needs_no_torch():
    code = "import sys, seqloom.config.recipe as r; r.Recipe.read('seq2seq'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- names that are none ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("model.sise", "model.size"),
        ("modle.size", "model.size"),
        ("model.encoder.kid", "model.encoder.kind"),
        ("model.encodr.kind", "model.encoder.kind"),
        ("steps", "train.steps"),
        ("model.steps", "train.steps"),
        ("train.lenght_penalty", "search.length_penalty"),
        ("taks", "task"),
    ],
)
def test_a_misspelled_or_misplaced_name_is_refused_with_the_right_one(name, right):
    assert refusal(f"{name}=3") == f"there is no setting {name}; did you mean {right}?"


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_setting_that_was_renamed_is_refused_with_its_new_name(old, new):
    assert new in SETTINGS and old not in SETTINGS
    assert refusal(f"{old}=3") == f"{old} is now {new}"
    if (side := new.replace("model.", "model.encoder.")) in SETTINGS:
        assert refusal(f"{old.replace('model.', 'model.encoder.')}=3").endswith(f" is now {side}")


@pytest.mark.parametrize(("ours", "theirs"), ELSEWHERE.items())
def test_names_of_other_tools_are_refused_with_ours(ours, theirs):
    for name in theirs.split():
        other = f"{ours.partition('.')[0]}.{name}"
        assert f"there is no setting {other}; here it is {ours}" in refusal(f"{other}=3", of=OWNERS[ours])


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["model.kind=lstm", "model.heads=8"], "lstm has no setting heads; transformer has"),
        (
            ["model.kind=rnn", "model.forget_bias=1"],
            "rnn has no setting forget_bias; lstm, peephole, coupled and minlstm have",
        ),
        (["model.kind=lstm", "model.window=8"], "lstm has no setting window; transformer has"),
        (["model.kind=mingru", "model.weight_constraint=none"], "mingru has no setting weight_constraint; rnn, lstm, "),
        (
            ["task=tag", "model.kind=transformer", "model.bidirectional=true"],
            "transformer has no setting bidirectional; rnn",
        ),
        (
            ["model.decoder.kind=transformer", "model.heads=8"],
            "gru has no setting heads; transformer has: model.decoder.heads",
        ),
        (["model.encoder.attention=dot"], "the encoder has no setting attention; the decoder has"),
        (["task=classify", "data.horizon=3"], "classify has no setting data.horizon; forecast has"),
        (
            ["task=classify", "model.tied=true"],
            "classify has no setting model.tied; seq2seq, caption, language, pretrain, music and draw have",
        ),
        (
            ["task=language", "model.bidirectional=true"],
            "language has no setting model.bidirectional; seq2seq, caption, classify",
        ),
        (["task=tag", "model.crf=true", "train.class_weights=true"], "with model.crf the loss is that of a whole path"),
        (
            ["task=classify", "search.beam_size=2"],
            "classify has no setting search.beam_size; seq2seq, caption and draw have",
        ),
        (
            ["task=classify", "model.encoder.size=2"],
            "classify has no setting model.encoder.size; seq2seq, caption and draw have",
        ),
        (
            ["task=classify", "search.num_beams=2"],
            "search.beam_size is meant, but classify has no setting search.beam_size",
        ),
        (["task=sort"], 'task must be one of "seq2seq", "caption", '),
        (["model.kind=lsmt"], 'not "lsmt"; did you mean "lstm"?'),
        (["task=language", "model.kind=gru-d"], "numbers of which some are missing"),
    ],
)
def test_a_setting_that_does_not_apply_is_refused_with_who_has_it(overrides, sentence):
    assert sentence in refusal(*overrides, of=Recipe())


def test_who_has_a_setting_is_true():
    for task in USES:
        having = {name for base in BASES if base.task == task for name in settings(type(base))}
        assert settings_of(task) == {name for name in having if "." in name and not name.startswith("about.")} | {
            name for name in ("model.encoder", "model.decoder") if f"{name}.kind" in having
        }


def test_another_kind_leaves_out_what_it_does_not_have_and_notes_it():
    recipe = Recipe.read("sentiment", "model.kind=lstm")
    assert recipe.model.kind == "lstm" and recipe.model.size == 32
    assert recipe.notes == ("left out, as lstm has no such setting: model.heads = 2, model.feed_forward = 32",)
    assert Recipe.read("seq2seq", "model.kind=transformer").notes == ()  # what was at its default is not missed
    assert recipe == Recipe.of(tomllib.loads(recipe.to_toml(comments=False)))
    assert recipe.resolved().notes == recipe.notes
    both = Recipe.read("digits", "model.decoder.kind=lstm")
    assert "as lstm has no such setting: model.decoder.positions" in both.notes[0]
    assert "as classify has no such setting: " in Recipe.read("wikitext", "task=classify").notes[0]
    assert (
        Recipe.read("vanishing", "model.activation=relu").override("model.kind=transformer").model.activation == "gelu"
    )


def test_a_run_s_own_recipe_takes_another_kind():
    """In a resolved recipe every setting is written down."""
    run = Recipe.of(tomllib.loads(Recipe.read("translate").resolved().to_toml(comments=False)))
    for kind in fitting_kinds("seq2seq"):
        assert run.override(f"model.kind={kind}").resolved().model.side("decoder").kind == kind


def test_a_recipe_that_was_renamed_is_refused_with_its_new_name():
    with pytest.raises(RecipeError, match="^the recipe transduce is now seq2seq$"):
        Recipe.read("transduce")


def test_a_name_like_no_other_is_refused_with_what_there_is():
    assert refusal("train.qqqq=3").endswith("; those of [train] are " + ", ".join(type(Recipe().train).model_fields))
    assert refusal("qqqq=3").endswith("; there are " + ", ".join(Recipe.model_fields))
    assert refusal("qqqq.zzzz=3").endswith("; there are " + ", ".join(Recipe.model_fields))
    assert refusal("=3").startswith('there is no setting "";')


def test_a_table_in_place_of_a_setting_is_refused():
    assert refusal("model=3") == "model is a table of settings; model.kind is one of them"
    assert refusal("model.encoder={}").startswith("model.encoder is a table of settings")


@pytest.mark.parametrize("section", SECTIONS)
@given(key=st.from_regex(r"[a-z_]{1,12}", fullmatch=True) | texts, value=st.integers() | texts)
def test_unknown_keys_never_pass(section, key, value):
    sections = section.split(".") if section else []
    assume(not any(name.split(".")[: len(sections) + 1] == [*sections, key] for name in SETTINGS))
    values: dict[str, object] = {key: value}
    for table in reversed(sections):
        values = {table: values}
    with pytest.raises(RecipeError, match="there is no setting") as caught:
        Recipe.of(values)
    one_line(caught.value)
    if not set(key) & {".", "="} and key == key.strip():
        name = ".".join([*sections, key])
        assert "there is no setting" in refusal(f"{name}=3")
        with pytest.raises(RecipeError, match="there is no setting"):
            Recipe().changed(name, value)


def test_a_dotted_name_in_quotes_is_one_name():
    with pytest.raises(RecipeError, match='there is no setting "data.train"'):
        Recipe.of({"data.train": "a.csv"})


# --- values that do not fit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.size=0", f"model.size must be {SIZES}, not 0"),
        ("model.size=true", f"model.size must be {SIZES}, not true"),
        ("model.size=1e2", f"model.size must be {SIZES}, not 100.0"),
        ("model.size=big", f'model.size must be {SIZES}, not "big"'),
        ("model.size=", f'model.size must be {SIZES}, not ""'),
        ("model.size=[]", f"model.size must be {SIZES}, not []"),
        ("model.size=64,0", f"model.size must be {SIZES}, not 0"),
        ("model.size=64,big", f'model.size must be {SIZES}, not "big"'),
        ("model.size=64,", f'model.size must be {SIZES}, not ""'),
        ("model.size=[64, true]", f"model.size must be {SIZES}, not true"),
        ("model.size=[[64]]", f"model.size must be {SIZES}, not [64]"),
        ('model.size="64,32"', f'model.size must be {SIZES}, not "64,32"'),
        ("model.size=" + "1," * 1000 + "1", "model.size: 1001 layers are listed, but there can be at most 1000"),
        ("model.encoder.size=0", f"model.encoder.size must be {SIZES}, not 0"),
        ("model.decoder.size=[64, 65537]", f"model.decoder.size must be {SIZES}, not 65537"),
        ("model.depth=1,2", 'model.depth must be a whole number from 0 to 1000, not "1,2"'),
        ("model.forget_bias=-101", "model.forget_bias must be a number from -100 to 100, not -101"),
        ("model.dropout=1", "model.dropout must be a number from 0 to below 1, not 1"),
        ("model.dropout=false", "model.dropout must be a number from 0 to below 1, not false"),
        ("train.learning_rate=nan", "train.learning_rate must be a number from above 0 to 100, not nan"),
        ("train.learning_rate=inf", "train.learning_rate must be a number from above 0 to 100, not inf"),
        ("train.learning_rate=-inf", "train.learning_rate must be a number from above 0 to 100, not -inf"),
        ("train.seed=1\nx = 2", 'train.seed must be a whole number from 0 to 4294967295, not "1\\nx = 2"'),
        ("train.learning_rate=0", "train.learning_rate must be a number from above 0 to 100, not 0"),
        ('train.learning_rate="1e-4"', 'train.learning_rate must be a number from above 0 to 100, not "1e-4"'),
        ("model.bidirectional=1", "model.bidirectional must be true or false, not 1"),
        ("model.bidirectional=True", 'model.bidirectional must be true or false, not "True"'),
        (
            "model.norm=pree",
            'model.norm must be one of "post", "pre", "rezero", not "pree"; did you mean "pre"?',
        ),
        ("model.norm=3", 'model.norm must be one of "post", "pre", "rezero", not 3'),
        ("model.decoder.norm=qq", 'model.decoder.norm must be one of "post", "pre", "rezero", not "qq"'),
        ("data.target=", "data.target: a column has a name, or a number from 1"),
        ('data.train=["a", 3]', "data.train must be text or a list of texts, not 3"),
        ("data.train=a,,", 'data.train: ["a", "", ""] holds a name that no file can have'),
        ('data.train="a\\u0000"', 'data.train: ["a\\u0000"] holds a name that no file can have'),
        ("data.separator=", 'data.separator: "" cannot stand between two texts on one line'),
        ('data.separator="\\n"', 'data.separator: "\\n" cannot stand between two texts on one line'),
        (
            "data.encoding=utf9",
            'data.encoding: "utf9" is no text encoding; "utf-8", "latin-1" and "utf-16" are some',
        ),
        (
            "data.encoding=hex",
            'data.encoding: "hex" is no text encoding; "utf-8", "latin-1" and "utf-16" are some',
        ),
        (
            "train.time=5",
            'train.time: "5" is no time to train for; "90s", "5m", "1h" or "1h30m" would be',
        ),
        ("data.target=\udcff", "data.target: the text is not Unicode, so it cannot be written into a recipe"),
        ("train.steps", '"train.steps" has no =, but a setting is given as section.key=value'),
        ("model.size={a=[1], b=2}", f"model.size must be {SIZES}, not {{a = [1], b = 2}}"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_is_allowed(override, sentence):
    assert refusal(override) == sentence


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


def test_a_whole_number_is_fine_where_a_number_is_wanted():
    rate = Recipe().override("train.learning_rate=1").train.learning_rate
    assert rate == 1 and type(rate) is float


def test_the_error_is_short_however_long_the_mistake():
    for override in ("model.size=" + "x" * 10_000, "x" * 10_000 + "=3", "model.size=[" + "1," * 9999 + "]", "y" * 9999):
        assert len(refusal(override)) < 300


def test_huge_numbers_are_refused_like_any_other():
    for text in ("0x" + "f" * 20_000, "9" * 20_000, "{a = 0x" + "f" * 20_000 + "}", "1" + "0" * 400):
        assert refusal(f"train.seed={text}").startswith("train.seed must be a whole number")
        assert refusal(f"train.learning_rate={text}").startswith("train.learning_rate must be a number")


def test_deep_nesting_is_refused():
    assert refusal("model.size=" + "[" * 20_000).startswith("model.size must be")


# --- combinations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (
            ["model.decoder.bidirectional=true"],
            "the decoder has no setting bidirectional; the encoder has, for a decoder",
        ),
        (["model.size=127"], "the encoder has the odd size 127, but with bidirectional"),
        (["model.encoder.size=127"], "the encoder has the odd size 127, but with bidirectional"),
        (["model.size=64,33"], "the encoder has the odd size 33, but with bidirectional"),
        (["model.size=64,32", "model.depth=3"], "the encoder has depth 3, but its size lists 2 layers: depth 0 is"),
        (
            ["model.decoder.size=64,32", "model.decoder.depth=1"],
            "the decoder has depth 1, but its size lists 2 layers: depth 0 is as many as listed",
        ),
        (
            ["model.kind=rnn", "model.activation=gelu"],
            'model.activation must be one of "tanh", "sigmoid", "relu", "identity"',
        ),
        (["model.kind=transformer", "model.activation=tanh"], 'must be one of "relu", "gelu", "swiglu", not "tanh"'),
        (["model.kind=lstm", "model.layer_norm=true", "model.memory_size=64"], "has layer_norm and a memory_size, but"),
        (["model.layer_norm=true", "model.reset_gate=before"], 'only with reset_gate "after"'),
        (
            ["model.kind=lstm", "model.layer_norm=true", "model.candidate_activation=sigmoid"],
            'the encoder has the candidate_activation "sigmoid", but with layer_norm or a memory_size it is "tanh"',
        ),
        (
            ["model.kind=lstm", "model.memory_size=64", "model.candidate_activation=sigmoid"],
            'has the candidate_activation "sigmoid", but',
        ),
        (
            ["model.decoder.kind=transformer", "model.attention=dot"],
            "model.attention is set, but the encoder is gru and the decoder transformer: none of them reads it",
        ),
        (["model.kind=transformer", "model.size=64,64"], "the encoder lists sizes, but all layers of a Transformer"),
        (
            ["model.decoder.kind=transformer", "model.decoder.size=64,64"],
            "the decoder lists sizes, but all layers of a Transformer have the same",
        ),
        (
            ["model.kind=transformer", "model.positions=rotary", "model.size=12"],
            'the encoder has positions "rotary", which rotate pairs of features, but 3 in each head',
        ),
        (
            ["model.kind=convolution", "model.size=64,64"],
            'lists sizes, but all layers of kind "convolution" have the same',
        ),
        (["model.kind=linear", "model.size=64,64"], 'lists sizes, but all layers of kind "linear" have the same'),
        (
            ["model.kind=convolution", "model.kernel_size=4"],
            "the encoder has the even kernel_size 4, but with bidirectional",
        ),
        (
            ["model.kind=linear", "model.kernel_size=2"],
            "the encoder has the even kernel_size 2, but with bidirectional",
        ),
        (["model.decoder.kind=convolution", "model.attention=none"], "the decoder needs an attention"),
        (["model.decoder.kind=linear", "model.attention=none"], "the decoder needs an attention"),
        (
            ["model.tied=true", "model.embedding=64"],
            "model.tied wants the last layer as wide as a token's embedding: 128, not 64",
        ),
        (["model.tied=true", "model.size=64,32"], "as wide as a token's embedding: 32, not 64"),
        (["model.kind=transformer", "model.heads=3"], "the encoder has size 128 and heads 3"),
        (["model.decoder.kind=transformer", "model.decoder.heads=3"], "the decoder has size 128 and heads 3"),
        (["model.decoder.kind=transformer", "model.decoder.size=130"], "the decoder has size 130 and heads 4"),
        (["train.steps=10", "train.time=5m"], "train.steps and train.time are both given"),
        (["data.sample=dates", "data.train=a.csv"], "data.sample and files are both given"),
        (["data.sample=dates", "data.test=a.csv"], "data.sample and files are both given"),
        (["data.sample=dates", "data.validation=a.csv"], "data.sample and files are both given"),
        (["data.validation_share=0.5", "data.test_share=0.5"], "leave nothing to train on"),
        (["data.train=a", "data.format=lines"], 'data.train is one file, but data.format "lines" wants two'),
        (["data.train=a,b,c", "data.format=lines"], 'data.train is 3 files, but data.format "lines" wants two'),
        (["data.source=text", "data.target=text"], 'the column "text" is named twice'),
        (["train.steps=10", "train.warmup=11"], "train.warmup is 11 steps, but the whole training has 10"),
        (["train.warmup=2001"], "train.warmup is 2001 steps, but the whole training has 2000"),
    ],
)
def test_an_impossible_combination_is_refused_with_the_reason(overrides, reason):
    assert reason in refusal(*overrides)


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


# --- overrides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("train.steps=1_000", 1000),
        ("train.learning_rate=1e-4", 1e-4),
        ("train.learning_rate = 3e-3 # a remark", 3e-3),
        ("model.kind=lstm", "lstm"),
        ('model.kind = "lstm"', "lstm"),
        ("model.kind = lstm ", "lstm"),
        ("model.bidirectional=false", False),
        ("data.target=1", "1"),
        ("data.target=2024-01-01", "2024-01-01"),
        ("data.target=true", "true"),
        ("data.target=a=b", "a=b"),
        ("data.target=[1]", "[1]"),
        ('data.target="a b"', "a b"),
        ("data.target=x\ny = 3", "x\ny = 3"),
        ('data.target="x"\ny = 3', '"x"\ny = 3'),
        ("data.separator=  ", "  "),
        ("data.separator= | ", " | "),
        ('data.separator="\\t"', "\t"),
        ("data.train=a.csv", ("a.csv",)),
        ("data.train=a.en,b.de", ("a.en", "b.de")),
        ("data.train=a.en, b.de", ("a.en", "b.de")),
        ("data.train=2024", ("2024",)),
        ('data.train="a,b.csv"', ("a,b.csv",)),
        ('data.train=["a,b", "c"]', ("a,b", "c")),
        ("data.train=", ()),
        ("data.train=[]", ()),
        ("task=seq2seq", "seq2seq"),
        ("model.size=64", 64),
        ("model.size=64,32", (64, 32)),
        ("model.size = 64, 32 # a remark", (64, 32)),
        ("model.size=1_000,0x20", (1000, 32)),
        ("model.size=[64, 32]", (64, 32)),
        ("model.size=[64]", (64,)),
        ("model.encoder.size=64,32", (64, 32)),
        ("train.select_by=", ""),
        ("model.init_gain=2", 2.0),
    ],
)
def test_an_override_means_what_a_person_means(override, value):
    assert value_of(Recipe().override(override), override.partition("=")[0].strip()) == value


@settings_of_hypothesis(max_examples=400)
@given(st.sampled_from([name for name in SETTINGS if name.split(".")[-1] not in ("task", "kind", "from")]), st.data())
def test_an_override_with_the_value_in_toml_gives_that_value(name, data):
    value, base = data.draw(values_for(name)), OWNERS[name]
    override = f"{name}={literal(value)}"
    try:
        expected = Recipe.of(nested({"task": base.task, "model.kind": base.model.kind, name: value}))
    except RecipeError as error:
        assert refusal(override) == str(error)
        return
    assert base.override(override) == expected
    assert base.changed(name, value) == expected
    assert value_of(expected, name) == (tuple(value) if isinstance(value, list) else value)


@given(st.text() | st.builds("{}={}".format, st.sampled_from(list(SETTINGS)), st.text()))
def test_any_override_is_taken_or_refused_in_one_line(text):
    try:
        recipe = Recipe().override(text)
    except RecipeError as error:
        one_line(error)
    else:
        assert Recipe.of(tomllib.loads(recipe.to_toml(comments=True))) == recipe


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([*SETTINGS, *filter(None, SECTIONS)]), json)
def test_any_dictionary_is_taken_or_refused_in_one_line(name, value):
    try:
        Recipe.of(nested({name: value}))
    except RecipeError as error:
        one_line(error)


def test_the_last_of_two_overrides_holds():
    assert Recipe().override("model.size=2", "model.size=4").model.size == 4


def test_no_override_changes_nothing():
    assert Recipe().override() == Recipe()


def test_a_later_word_takes_back_its_rival():
    """`train.time=5m` replaces the steps of the file, files of one's own replace the sample, and back."""
    sample = Recipe.read("seq2seq")
    assert sample.data.sample and sample.train.steps
    own = sample.override("data.train=a.csv", "data.test=b.csv", "train.time=5m")
    assert (own.data.sample, own.data.train, own.train.steps, own.train.time) == ("", ("a.csv",), 0, "5m")
    back = own.override("data.sample=dates", "train.steps=7")
    assert (back.data.sample, back.data.train, back.data.test) == ("dates", (), ())
    assert (back.train.steps, back.train.time) == (7, "")
    assert own.changed("train.steps", 1234).train.time == ""


def test_taking_a_rival_away_gives_nothing_else_up():
    own = Recipe().override("data.train=a.csv", "train.time=5m")
    assert own.override("data.sample=", "train.steps=0") == own
    assert Recipe.read("seq2seq", "data.train=", "train.time=") == Recipe.read("seq2seq")


def test_what_is_said_of_both_sides_holds_for_both():
    """Even over a resolved recipe, in which both sides are spelled out: an override never falls flat."""
    run = Recipe.read("seq2seq").resolved().override("model.kind=lstm", "model.size=64", "model.dropout=0")
    for side in ("encoder", "decoder"):
        body = run.model.side(side)
        assert (body.kind, body.size, body.dropout) == ("lstm", 64, 0)
    apart = run.override("model.size=32", "model.encoder.size=16")
    assert (apart.model.side("encoder").size, apart.model.side("decoder").size) == (16, 32)


def test_sizes_may_be_listed_over_a_resolved_recipe_if_the_depth_follows():
    run = Recipe.read("seq2seq").resolved()
    assert "depth 0 is as many as listed" in refusal("model.size=64,32", of=run)
    listed = run.override("model.size=64,32", "model.depth=0").model
    assert listed.side("encoder").sizes == listed.side("decoder").sizes == (64, 32)


def test_changing_one_setting_is_checked():
    with pytest.raises(RecipeError, match="did you mean train.steps"):
        Recipe().changed("train.step", 3)
    with pytest.raises(RecipeError, match="whole number"):
        Recipe().changed("train.steps", 3.0)
    with pytest.raises(RecipeError, match="table of settings"):
        Recipe().changed("train", {})
    assert Recipe().changed("train.steps", 3).train.steps == 3
    for sizes in ([64, 32], (64, 32)):
        assert Recipe().changed("model.size", sizes).model.size == (64, 32)


# --- times -----------------------------------------------------------------------------------------------------------


@given(*[st.integers(0, 999_999)] * 3)
def test_a_time_is_the_sum_of_its_parts(hours, minutes, rest):
    text = "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
    assume(text)
    assert seconds(text) == hours * 3600 + minutes * 60 + rest


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "0s", "5 m", " 5m", "5m\n", "5M", "1.5h", "-5m", "5m1h", "5m5m", "5min", "٥m", "1" * 99 + "s"],
)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(RecipeError, match="is no time") as caught:
        seconds(text)
    one_line(caught.value)


# --- what is derived -------------------------------------------------------------------------------------------------


def test_derived_settings_follow_from_the_others():
    recipe = Recipe().override("model.kind=transformer", "model.size=64", "train.steps=1000").resolved()
    assert (recipe.model.embedding, recipe.model.feed_forward, recipe.model.depth) == (64, 4 * 64, 1)
    assert (recipe.train.warmup, recipe.train.validate_every, recipe.train.checkpoint_every) == (50, 50, 50)


@given(st.integers(1, 10**9))
def test_derived_steps_keep_their_limits(steps):
    train = Recipe().changed("train.steps", steps).resolved().train
    assert 1 <= train.warmup <= min(1000, steps) and abs(train.warmup - min(steps / 20, 1000)) <= 1
    assert 1 <= train.validate_every <= min(500, steps) and abs(train.validate_every - min(steps / 20, 500)) <= 1
    assert train.checkpoint_every == train.validate_every


def test_given_settings_are_not_derived():
    texts = ["model.embedding=3", "model.feed_forward=5", "train.warmup=7", "train.validate_every=11"]
    recipe = Recipe().override("model.kind=transformer", *texts, "train.checkpoint_every=13").resolved()
    assert (recipe.model.embedding, recipe.model.feed_forward) == (3, 5)
    assert (recipe.train.warmup, recipe.train.validate_every, recipe.train.checkpoint_every) == (7, 11, 13)
    assert Recipe().changed("train.validate_every", 17).resolved().train.checkpoint_every == 17


def test_listed_sizes_say_depth_and_widths():
    model = Recipe().override("model.size=64,32,16", "model.decoder.size=48,24").resolved().model
    assert (model.depth, model.encoder.depth, model.decoder.depth) == (3, 3, 2)
    assert model.embedding == 48  # as the decoder's first layer
    encoder, decoder = model.side("encoder"), model.side("decoder")
    assert (encoder.sizes, encoder.width) == ((64, 32, 16), 16)
    assert (decoder.sizes, decoder.width) == ((48, 24), 24)


def test_one_size_holds_for_all_layers():
    body = Recipe().override("model.size=64", "model.depth=3").model.side("encoder")
    assert (body.size, body.sizes, body.width) == (64, (64, 64, 64), 64)


@pytest.mark.parametrize(
    ("overrides", "encoder", "decoder"),
    [
        ([], 1, 1),
        (["model.depth=2"], 2, 2),
        (["model.depth=3", "model.encoder.size=64,32"], 2, 3),
        (["model.depth=3", "model.encoder.depth=0"], 1, 3),
        (["model.size=64,32", "model.encoder.size=48"], 1, 2),
        (["model.size=64,32", "model.depth=2", "model.decoder.size=48"], 2, 2),
    ],
)
def test_a_depth_is_said_by_the_side_then_by_the_list_then_by_the_model(overrides, encoder, decoder):
    model = Recipe().override(*overrides).model
    assert (model.side("encoder").depth, model.side("decoder").depth) == (encoder, decoder)


def test_without_steps_or_time_there_is_a_usual_number_of_steps():
    steps = Recipe().resolved().train.steps
    assert steps > 0 and str(steps) in SETTINGS["train.steps"].help


def test_steps_wait_for_the_time_to_be_measured_out():
    waiting = Recipe().override("train.time=5m").resolved()
    assert (waiting.train.steps, waiting.train.warmup, waiting.train.validate_every) == (0, 0, 0)
    assert waiting.changed("train.steps", 40).resolved().train.warmup == 2


def test_a_side_takes_what_it_is_not_given_from_the_model():
    model = (
        Recipe().override("model.size=64", "model.depth=3", "model.encoder.size=32", "model.decoder.kind=lstm").model
    )
    encoder, decoder = model.side("encoder"), model.side("decoder")
    assert (encoder.kind, encoder.size, encoder.depth) == ("gru", 32, 3)
    assert (decoder.kind, decoder.size, decoder.depth) == ("lstm", 64, 3)
    assert encoder.bidirectional and "bidirectional" not in type(decoder).model_fields


@given(recipes())
def test_resolving_twice_changes_nothing(recipe):
    once = recipe.resolved()
    assert once.resolved() == once
    assert Recipe.of(once.model_dump(exclude_none=True)) == once


@given(recipes())
def test_resolving_changes_only_what_was_open(recipe):
    resolved = recipe.resolved()
    for name in settings(type(recipe)):
        before, after = value_of(recipe, name), value_of(resolved, name)
        assert before == after or before == 0 or name == "train.select_by"
    for side in ("encoder", "decoder"):
        assert resolved.model.side(side) == recipe.resolved().model.side(side)


# --- TOML ------------------------------------------------------------------------------------------------------------


@given(recipes(), st.booleans())
def test_a_written_recipe_reads_back_equal(recipe, comments):
    assert Recipe.of(tomllib.loads(recipe.to_toml(comments))) == recipe
    assert Recipe.of(tomllib.loads(recipe.resolved().to_toml(comments))) == recipe.resolved()


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.floats(allow_nan=False) | st.integers() | st.booleans())
def test_any_value_is_written_as_toml_reads_it(value):
    line = f"value = {literal(value)}"
    read = tomllib.loads(line)["value"]
    assert read == value and type(read) is type(value)
    assert not isinstance(value, float) or math.copysign(1, read) == math.copysign(1, value)
    assert len(line.splitlines()) == 1


@given(recipes())
def test_a_written_recipe_is_complete(recipe):
    """Every setting has its line; those of a side that are as in [model] only as a comment."""
    for text in (recipe.to_toml(comments=False), recipe.to_toml(comments=True)):
        values = tomllib.loads(text)
        for name in settings(type(recipe)):
            table: object = values
            for key in name.split("."):
                table = table.get(key) if isinstance(table, dict) else None
            same = name.startswith(("model.encoder", "model.decoder")) and value_of(recipe, name) == getattr(
                recipe.model, name.split(".")[-1], None
            )
            assert table is not None or same


def test_comments_give_help_choices_and_what_is_derived():
    text = Recipe().override("model.encoder.kind=transformer", "model.encoder.size=32").to_toml(comments=True)
    lines = text.splitlines()
    flat = " ".join(line.removeprefix("# ") for line in lines)
    for name, setting in settings(type(Recipe())).items():
        if not name.startswith(("model.encoder", "model.decoder")) and len(setting.choices) != 1:
            choices = f" One of {', '.join(map(literal, setting.choices))}." if setting.choices else ""
            assert setting.help + choices in flat
    assert 'One of "rnn", "lstm", ' in flat and 'One of "seq2seq", "caption", ' in flat
    assert "embedding = 0  # derived: 128" in lines
    assert "depth = 0  # derived: 1" in lines and "feed_forward = 0  # derived: 128" in lines
    assert "steps = 0  # derived: 2000" in lines
    assert "size = 128" in lines
    encoder = lines[lines.index("[model.encoder]") : lines.index("[model.decoder]")]
    assert 'kind = "transformer"' in encoder and "size = 32" in encoder and "# depth = 1" in encoder
    assert max(map(len, lines)) <= 120


def test_listed_sizes_are_written_as_lists_and_read_back():
    recipe = Recipe().override("model.size=64,32", "model.encoder.size=[48]", "model.encoder.depth=0")
    lines = recipe.to_toml(comments=True).splitlines()
    assert "size = [64, 32]" in lines and "depth = 0  # derived: 2" in lines
    encoder = lines[lines.index("[model.encoder]") : lines.index("[model.decoder]")]
    assert "size = [48]" in encoder
    decoder = lines[lines.index("[model.decoder]") : lines.index("[train]")]
    assert "# size = [64, 32]" in decoder and "# depth = 2" in decoder
    for comments in (True, False):
        assert Recipe.of(tomllib.loads(recipe.to_toml(comments))) == recipe
        assert Recipe.of(tomllib.loads(recipe.resolved().to_toml(comments))) == recipe.resolved()


def test_without_comments_there_are_none():
    assert "#" not in Recipe().to_toml(comments=False)


def test_a_resolved_recipe_has_nothing_left_to_derive():
    text = Recipe.read("seq2seq").resolved().to_toml(comments=True)
    assert "derived" not in text


# --- files -----------------------------------------------------------------------------------------------------------


def file_refusal(path: Path, content: bytes | str) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(RecipeError) as caught:
        Recipe.read(path)
    return one_line(caught.value)


def test_a_file_reads_with_its_overrides(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('[data]\ntrain = "a.csv"\n[model]\nsize = 32\n')
    for given_path in (path, str(path)):
        recipe = Recipe.read(given_path, "model.size=64", "train.steps=9")
        assert (recipe.data.train, recipe.model.size, recipe.train.steps) == (("a.csv",), 64, 9)


def test_a_file_without_an_ending_is_still_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own").write_text("[model]\nsize = 32\n")
    assert Recipe.read("own").model.size == 32


def test_a_built_in_name_goes_before_a_file_of_that_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("seq2seq").write_text("[model]\nsize = 32\n")
    assert Recipe.read("seq2seq").data.sample == "dates"
    assert Recipe.read(Path("seq2seq")).model.size == 32


def test_windows_files_read_alike(tmp_path):
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xef\xbb\xbf[model]\r\nsize = 32\r\n")
    assert Recipe.read(path).model.size == 32


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("[model]\nsize = \n", 2, "this is not TOML"),
        ("[model]\nsize = 3\nsize = 4\n", 3, "this is not TOML"),
        ("[model]\nsize = [3,\n\n", 2, "this is not TOML"),
        (b"[about]\n\ntitle = '\xff'\n", 3, "not UTF-8"),
        (b"\n\xff", 2, "not UTF-8"),
        (b"\xff", 1, "not UTF-8"),
        ("[model]\ndepth = 1\nsise = 3\n", 3, "there is no setting model.sise; did you mean model.size?"),
        ("# size\n[model]\ndepth = 1\nsize = 'x'\n", 4, "model.size must be a whole number"),
        ("[data]\nformat = 'csv'\ntrain = [\n  'a',\n  3,\n]\n", 6, "data.train must be text or a list of texts"),
        ("[model]\nencoder.heads = 3\nencoder.kind = 'transformer'\n", 1, "the encoder has size 128 and heads 3"),
        ("[modle]\nsize = 3\n", 1, "there is no setting modle; did you mean model?"),
        ("\n[model.decoder]\nbidirectional = true\n", 3, "a decoder may not see the future"),
        ("[train]\nsteps = 3\ntime = '5m'\n", 1, "train.steps and train.time are both given"),
        ("model = 3\n", 1, "model must be a table of settings, not 3"),
    ],
)
def test_a_mistake_in_a_file_is_said_with_file_and_line(tmp_path, content, line, reason):
    path = tmp_path / "own.toml"
    sentence = file_refusal(path, content)
    assert sentence.startswith(f"{path}, line {line}: ")
    assert reason in sentence


def test_a_number_too_long_for_toml_is_refused(tmp_path):
    assert "this is not TOML" in file_refusal(tmp_path / "own.toml", "[model]\nsize = " + "9" * 5000)


def test_a_file_nested_too_deeply_is_refused(tmp_path):
    assert "nested so deeply" in file_refusal(tmp_path / "own.toml", "x = " + "[" * 100_000)


def test_a_file_too_large_for_a_recipe_is_refused(tmp_path):
    path = tmp_path / "own.toml"
    assert "can be no recipe" in file_refusal(path, b"#" * (LARGEST + 1))
    path.write_bytes(b"#" * LARGEST)
    assert Recipe.read(path) == Recipe()


@given(content=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")))
def test_any_file_is_read_or_refused_in_one_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    try:
        Recipe.read(path)
    except RecipeError as error:
        assert one_line(error).startswith(str(path))


def test_what_cannot_be_opened_is_refused(tmp_path):
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    for path, reason in (
        (folder, "cannot be read"),
        (tmp_path / "none.toml", "there is no such file"),
        (tmp_path / "none", "there is no such file"),
        (str(tmp_path / "none"), "there is no such file"),
        (tmp_path / ("x" * 5000 + ".toml"), "cannot be read"),
        ("a\0b.toml", "cannot be read"),
        ("line\nbreak.toml", "there is no such file"),
    ):
        with pytest.raises(RecipeError, match=reason) as caught:
            Recipe.read(path)
        one_line(caught.value)


# --- built-in recipes ------------------------------------------------------------------------------------------------


def test_the_built_in_recipes_are_these():
    assert {"classify", "forecast", "pronounce", "seq2seq", "translate"} <= set(builtin())


@pytest.mark.parametrize("name", builtin())
def test_a_built_in_recipe_reads_resolves_and_describes_itself(name):
    recipe = Recipe.read(name)
    assert Recipe.of(tomllib.loads(recipe.to_toml(comments=True))) == recipe
    assert recipe.resolved().resolved() == recipe.resolved()
    title, size, time, data = describe(name)
    assert (title, time) == (recipe.about.title, recipe.about.time) and title and time
    assert size == shapes_of(recipe)
    assert data == (f"sample {recipe.data.sample}" if recipe.data.sample else "your own files")


def shapes_of(recipe):
    return " → ".join(dict.fromkeys(recipe.model.side(side).shape for side in ("encoder", "decoder")))


def test_the_shapes_of_two_unlike_sides_and_of_unlike_layers():
    assert shapes_of(
        Recipe().override("model.decoder.kind=lstm", "model.decoder.size=64", "model.decoder.depth=2")
    ) == ("gru 128 × 1 → lstm 64 × 2")
    listed = Recipe().override("model.kind=lstm", "model.size=64,32")
    assert shapes_of(listed) == "lstm 64, 32"
    assert shapes_of(listed.override("model.decoder.size=48")) == "lstm 64, 32 → lstm 48 × 1"


@pytest.mark.parametrize("name", builtin())
def test_all_kinds_are_one_word_apart_in_every_built_in_recipe(name):
    recipe = Recipe.read(name)
    for kind in fitting_kinds(recipe.task):
        if kind == "gru-d" and recipe.task != "forecast":
            with pytest.raises(RecipeError, match="numbers of which some are missing"):
                Recipe.read(name, f"model.kind={kind}")
        else:
            changed = Recipe.read(name, f"model.kind={kind}")
            assert changed.model.side("encoder").kind == changed.model.side("decoder").kind == kind
            assert Recipe.of(tomllib.loads(changed.to_toml(comments=True))) == changed
            assert changed.override(f"model.kind={recipe.model.kind}").model.kind == recipe.model.kind


def test_the_recipe_that_needs_no_files_is_complete():
    Recipe.read("seq2seq").check_data()


def test_pairs_of_a_pronouncing_dictionary_stand_two_blanks_apart():
    data = Recipe.read("pronounce", "data.train=words.txt").data
    assert (data.format, data.separator, data.source_tokenizer, data.target_tokenizer) == (
        "txt",
        "  ",
        "characters",
        "words",
    )


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("seq2sek", 'there is no recipe "seq2sek"; did you mean seq2seq? built in are '),
        ("qqqq", 'there is no recipe "qqqq"; built in are '),
        ("", 'there is no recipe ""; built in are'),
        ("seq2\nseq", 'there is no recipe "seq2\\nseq"; did you mean seq2seq?'),
        ("seq2seq.toml", "there is no file seq2seq.toml; the built-in recipe is called seq2seq"),
        ("../recipes/seq2seq", "../recipes/seq2seq: there is no such file"),
    ],
)
def test_an_unknown_recipe_is_refused_with_the_nearest_and_the_list(tmp_path, monkeypatch, name, start):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as caught:
        Recipe.read(name)
    assert one_line(caught.value).startswith(start)


# --- JSON schema -----------------------------------------------------------------------------------------------------


def resolve(schema: dict, node: dict) -> dict:
    reference = node.get("$ref")
    return schema["$defs"][reference.removeprefix("#/$defs/")] if reference else node


SCHEMA = Recipe.schema()


def schema_names(node: dict, prefix: str = "") -> set[str]:
    """Every dotted name that a schema allows; each of its tables must be closed."""
    node = resolve(SCHEMA, node)
    names = set()
    for choice in node.get("anyOf", []):
        names |= schema_names(choice, prefix)
    if "properties" in node:
        assert node["additionalProperties"] is False
        for key, inner in node["properties"].items():
            names |= schema_names(inner, f"{prefix}{key}.") or {prefix + key}
    return names


def test_the_schema_has_every_setting_and_no_other():
    assert schema_names(SCHEMA) - {"search"} == set(SETTINGS)  # which is empty where nothing is searched for


def fits(values: object) -> bool:
    return Draft202012Validator(SCHEMA).is_valid(values)


@pytest.mark.parametrize("name", builtin())
@pytest.mark.parametrize("comments", [True, False])
def test_the_schema_takes_every_built_in_recipe(name, comments):
    for recipe in (Recipe.read(name), Recipe.read(name).resolved()):
        assert fits(tomllib.loads(recipe.to_toml(comments)))


@pytest.mark.parametrize("table", ["model", "model.encoder"])
def test_the_schema_takes_a_size_or_a_list_of_them_within_bounds(table):
    for value, right in (
        (64, True),
        ([64, 32], True),
        ([1] * 1000, True),
        ([], False),
        ([1] * 1001, False),
        ([64, 0], False),
        (["64"], False),
        (0, False),
        ("64", False),
    ):
        assert fits(nested({f"{table}.size": value})) == right


@given(st.sampled_from(list(SETTINGS)), json)
def test_what_the_schema_refuses_is_refused(name, value):
    values = nested({name: value})
    if not fits(values):
        with pytest.raises(RecipeError):
            Recipe.of(values)


def test_every_row_of_the_results_is_a_recipe_that_can_be_read(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    results = importlib.import_module("results")
    for name, row in results.ROWS.items():
        recipe, *settings = results.settings_of(name, "DATA")
        assert Recipe.read(recipe).override(*settings).resolved().train.time == row.budget


def test_two_recipes_are_equal_when_their_settings_are():
    variants = [Recipe(), Recipe().changed("model.size", 64), Recipe().changed("train.seed", 1)]
    for one, other in itertools.combinations(variants, 2):
        assert one != other
    assert Recipe().changed("model.size", 128) == Recipe()
