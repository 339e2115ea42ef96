"""Settings as they are declared: help, bounds, defaults, names that are none."""

import subprocess
import sys
import tomllib

import pytest
from annotated_types import Ge, Gt, Le, Lt
from hypothesis import assume, given
from hypothesis import strategies as st

from seqloom.config.messages import literal, settings
from seqloom.config.names import ELSEWHERE, RENAMED
from seqloom.config.owners import settings_of
from seqloom.config.recipe import Recipe, list_kinds
from seqloom.config.tasks import USES
from seqloom.errors import RecipeError

from .settings import BASES, OWNERS, SECTIONS, SETTINGS, one_line, refusal, texts, value_of


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
    for kind in list_kinds("seq2seq"):
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
