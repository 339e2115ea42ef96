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


def test_every_setting_has_one_sentence_of_help_says_what_it_allows_and_has_bounds_on_both_sides():
    for name, setting in SETTINGS.items():
        assert setting.help.endswith(".") and setting.help[0].isupper() and ". " not in setting.help, name
        bounds = [one for one in setting.limits if isinstance(one, Ge | Gt | Le | Lt)]
        assert setting.allowed and (setting.type not in (int, float) or len(bounds) == 2), name


def test_the_settings_and_defaults_that_others_rely_on():
    """Names that code, recipes and people use: none of them changes without a version."""
    expected = """
        task="seq2seq" about.title="" about.time="" about.expected=""
        data.sample="" data.train=[] data.validation=[] data.test=[] data.format="guess" data.separator="auto"
        data.source=["source"] data.target="target" data.encoding="utf-8" data.on_bad_row="error"
        data.source_tokenizer="characters" data.target_tokenizer="characters" data.lowercase=false data.min_count=1
        data.vocabulary_size=0 data.max_length=512 data.too_long="drop"
        data.validation_share=0.1 data.test_share=0.1 data.split_seed=0
        model.kind="gru" model.size=128 model.depth=0 model.embedding=0 model.tied=false model.dropout=0.1
        model.variational_dropout=false model.recurrent_weight_dropout=0.0 model.zoneout=0.0 model.merge="concatenate"
        model.initial_state="zero" model.attention="additive" model.attention_style="bahdanau"
        model.hard_attention=false model.bias=true model.layer_norm=false model.init="uniform" model.init_gain=1.0
        model.weight_constraint="none" model.reset_gate="after"
        train.steps=0 train.time="" train.seed=0 train.batch_tokens=4096 train.shuffle=true train.accumulate_batches=1
        train.bptt_window=0 train.optimizer="adamw" train.momentum=0.9 train.learning_rate=0.001
        train.schedule="cosine" train.warmup=0 train.weight_decay=0.01 train.clip_norm=1.0 train.clip_value=0.0
        train.ema=0.0 train.freeze=[] train.teacher_forcing=1.0 train.teacher_forcing_schedule="constant"
        train.shard=false train.label_smoothing=0.0 train.validate_every=0 train.patience=0 train.checkpoint_every=0
        train.keep_checkpoints=2
        search.beam_size=4 search.length_penalty=1.0 search.max_length=0
        """
    for word in expected.split():
        name, _, value = word.partition("=")
        assert literal(value_of(Recipe(), name)) == value, name


def test_a_recipe_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().train.steps = 3
    assert hash(Recipe()) == hash(Recipe())


def test_reading_recipes_needs_no_torch():
    code = "import sys, seqloom.config.recipe as r; r.Recipe.read('seq2seq'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- names that are none ---------------------------------------------------------------------------------------------


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
    with pytest.raises(RecipeError, match='there is no setting "data.train"'):  # a dotted name in quotes is one name
        Recipe.of({"data.train": "a.csv"})


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


# --- values that do not fit ------------------------------------------------------------------------------------------


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


# --- combinations ----------------------------------------------------------------------------------------------------


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
        ("train.learning_rate=1", 1.0),
    ],
)
def test_an_override_means_what_a_person_means(override, value):
    found = value_of(Recipe().override(override), override.partition("=")[0].strip())
    assert found == value and type(found) is type(value)


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


def test_the_last_of_two_overrides_holds_and_none_changes_nothing():
    assert Recipe().override("model.size=2", "model.size=4").model.size == 4
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
    with pytest.raises(RecipeError, match="is not a duration") as caught:
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


def test_listed_sizes_say_depth_and_widths_and_one_size_holds_for_all_layers():
    body = Recipe().override("model.size=64", "model.depth=3").model.side("encoder")
    assert (body.size, body.sizes, body.width) == (64, (64, 64, 64), 64)
    model = Recipe().override("model.size=64,32,16", "model.decoder.size=48,24").resolved().model
    assert (model.depth, model.encoder.depth, model.decoder.depth) == (3, 3, 2)
    assert model.embedding == 48  # as the decoder's first layer
    encoder, decoder = model.side("encoder"), model.side("decoder")
    assert (encoder.sizes, encoder.width) == ((64, 32, 16), 16)
    assert (decoder.sizes, decoder.width) == ((48, 24), 24)


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
    assert "#" not in Recipe().to_toml(comments=False)
    assert "derived" not in Recipe.read("seq2seq").resolved().to_toml(comments=True)
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


def test_a_built_in_name_goes_before_a_file_of_that_name_and_a_file_needs_no_ending(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own").write_bytes(b"\xef\xbb\xbf[model]\r\nsize = 32\r\n")  # as Windows writes it
    assert Recipe.read("own").model.size == 32
    Path("seq2seq").write_text("[model]\nsize = 32\n")
    assert Recipe.read("seq2seq").data.sample == "dates"
    assert Recipe.read(Path("seq2seq")).model.size == 32


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


def test_a_file_too_large_or_too_deep_for_a_recipe_is_refused(tmp_path):
    path = tmp_path / "own.toml"
    assert "this is not TOML" in file_refusal(path, "[model]\nsize = " + "9" * 5000)
    assert "nested too deeply" in file_refusal(path, "x = " + "[" * 100_000)
    assert "too long for a recipe" in file_refusal(path, b"#" * (LARGEST + 1))
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


def test_the_built_in_recipes_are_these_and_one_needs_no_files():
    assert {"classify", "forecast", "pronounce", "seq2seq", "translate"} <= set(builtin())
    Recipe.read("seq2seq").check_data()


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
        ([], False),
        ([64, 0], False),
        (["64"], False),
        (0, False),
        ("64", False),
    ):
        assert fits(nested({f"{table}.size": value})) == right
    limits = [one["maxItems"] for one in find_lists(SCHEMA["$defs"]) if one.get("items", {}).get("maximum") == 65536]
    assert limits and set(limits) == {1000}


def find_lists(node: object) -> list[dict]:
    """Every schema of a list within this one."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and node.get("type") == "array" else []
    return own + [found for one in inner for found in find_lists(one)]


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
