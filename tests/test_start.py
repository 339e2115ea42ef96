"""`model.from`: a run that starts from another one's weights and tokenizer, for the same task or another."""

import shutil

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError, RunError
from seqloom.runs.folder import read_config
from seqloom.runs.run import load, train
from seqloom.training.tensors import copy_weights, read_tensors

from .recipes import measured, texts

KINDS = ["lstm", "mingru", "convolution", "transformer"]  # one of each family: those of one are built alike
FEW = ("train.steps=2", "train.batch_tokens=256", "train.validate_every=1", "train.checkpoint_every=1")
WORDS = ["the", "cat", "sat", "on", "a", "mat", "while", "one", "dog", "ran", "far", "and", "two", "birds", "sang"]


def examples(count: int = 60) -> dict:
    rows = [(" ".join(WORDS[(i * k) % len(WORDS)] for k in range(1, 6)), "ab"[i % 2]) for i in range(count)]
    return {"train": rows, "validation": rows[:10], "test": rows[:10]}


def texts_alone(count: int = 60) -> dict:
    return {part: [(source,) for source, _ in rows] for part, rows in examples(count).items()}


def language(folder, kind="gru", *more):
    recipe = Recipe.read(
        "language", "data.sample=", "data.target_tokenizer=bpe", "data.vocabulary_size=280", f"model.kind={kind}",
        "model.size=8", "model.depth=2", "model.dropout=0", "train.bptt_window=8", *FEW, *more,
    )  # fmt: skip
    list(train(recipe, folder, examples=texts_alone()))
    return folder


def classify(start, *more):
    return Recipe.read("classify", "data.sample=", f"model.from={start}", *FEW, *more)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return language(tmp_path_factory.mktemp("start") / "language")


def test_the_settings_of_the_body_and_the_tokenizer_come_along(written):
    recipe = classify(written, "model.dropout=0.5")
    assert (recipe.model.kind, recipe.model.size, recipe.model.depth, recipe.model.embedding) == ("gru", 8, 2, 8)
    assert (recipe.model.causal, recipe.model.bidirectional) == (True, False)
    assert (recipe.data.source_tokenizer, recipe.data.vocabulary_size) == ("bpe", 280)
    assert recipe.model.dropout == 0.5  # which is of this training
    again = Recipe.of(recipe.model_dump(mode="json"))
    assert again == recipe


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model.size=16", "model.size is 16, but .*has 8: leave it out"),
        ("data.source_tokenizer=words", 'data.source_tokenizer is "words", but .*has "bpe": leave it out'),
        ("model.kind=lstm", 'model.kind is "lstm", but .*has "gru": leave it out'),
    ],
)
def test_a_setting_that_contradicts_the_run_is_refused(written, setting, says):
    with pytest.raises(RecipeError, match=says) as error:
        classify(written, setting)
    assert "\n" not in str(error.value)


def test_a_recipe_of_a_file_takes_what_it_does_not_say(written, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f'task = "classify"\n[model]\nfrom = "{written}"\ndropout = 0.2\n', encoding="utf-8")
    recipe = Recipe.read(file)
    assert (recipe.model.kind, recipe.model.size, recipe.data.source_tokenizer) == ("gru", 8, "bpe")
    file.write_text(f'task = "classify"\n[model]\nfrom = "{written}"\nsize = 10\n', encoding="utf-8")
    with pytest.raises(RecipeError, match="model.size is 10, but .*has 8"):
        Recipe.read(file)
    with pytest.raises(RecipeError, match="neither a run folder nor a Hugging Face folder"):
        classify(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_body_of_every_kind_is_carried_and_frozen_parts_stay_to_the_bit(kind, tmp_path):
    start = language(tmp_path / "language", kind)
    recipe = classify(start, "train.freeze=embed,encoder", "model.dropout=0.4")
    said = texts(train(recipe, tmp_path / "run", examples=examples()))
    theirs, ours = read_tensors(start / "model.safetensors"), read_tensors(tmp_path / "run" / "model.safetensors")
    body = [tensor for name, tensor in ours.items() if not name.startswith("head.")]
    carried = [tensor for name, tensor in theirs.items() if not name.startswith("head.")]
    assert len(body) == len(carried) > 2
    for tensor in body:
        assert any(torch.equal(tensor, other) for other in carried)
    known = read_config(tmp_path / "run").start
    assert {name.split(".")[0] for name in known.loaded} == {"embed", "encoder"}
    assert {name.split(".")[0] for name in known.new} == {"head"} and known.fields == ["source"]
    assert {*known.loaded, *known.new} == ours.keys()
    assert any("are loaded and" in line and "(head) are new" in line for line in said)


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_a_causal_body_reads_a_text_as_the_language_model_does(kind, tmp_path):
    start = load(language(tmp_path / "language", kind))
    recipe = classify(start.folder, "train.freeze=embed,encoder", "model.dropout=0")
    list(train(recipe, tmp_path / "run", examples=examples()))
    run = load(tmp_path / "run")
    text = examples()["train"][3][0]
    ids = torch.from_numpy(run.task.source.encode(text).astype("int64"))[None]
    assert run.task.source.to_json() == start.task.target.to_json()
    mask = torch.ones_like(ids).bool()
    with torch.no_grad():
        memory = run.model.encoder(run.model.embed(ids), mask)
        expected, _ = start.net.features(ids, start.net.initial_state(1), mask)
    torch.testing.assert_close(memory.values, expected)


def test_the_head_goes_on_where_the_answers_are_the_same(tmp_path, written):
    first = classify(written)
    list(train(first, tmp_path / "first", examples=examples()))
    list(train(classify(tmp_path / "first"), tmp_path / "again", examples=examples()))
    assert read_config(tmp_path / "again").start.new == []
    other = {part: [(source, label * 2) for source, label in rows] for part, rows in examples().items()}
    list(train(classify(tmp_path / "first"), tmp_path / "other", examples=other))
    start = read_config(tmp_path / "other").start
    assert {name.split(".")[0] for name in start.new} == {name.split(".")[0] for name in start.left} == {"head"}


def test_a_source_is_read_by_what_read_before(tmp_path, written):
    list(train(classify(written), tmp_path / "labels", examples=examples()))
    recipe = Recipe.read(
        "seq2seq", "data.sample=", f"model.from={tmp_path / 'labels'}", "data.target_tokenizer=words", *FEW
    )
    list(train(recipe, tmp_path / "run", examples=examples()))
    start = read_config(tmp_path / "run").start
    assert {name.split(".")[0] for name in start.loaded} == {"source"}
    assert {name.split(".")[0] for name in start.new} == {"embed", "decoder", "head"}


@pytest.mark.parametrize("objective", ["masked", "bidirectional"])
def test_a_tagger_starts_from_a_body_that_has_read_words_between_blanks(tmp_path, objective):
    body = Recipe.read(
        *("pretrain", "data.sample=", "data.target_tokenizer=spaced", f"train.objective={objective}", "data.window=8"),
        *("data.vocabulary_size=0", "model.kind=lstm", "model.bidirectional=true", "model.tied=false", *FEW),
    )
    list(train(body, tmp_path / "body", examples=texts_alone()))
    tags = {part: [(source, " ".join(source.split()[::-1])) for source, _ in rows] for part, rows in examples().items()}
    tag = Recipe.read("tag", "data.sample=", f"model.from={tmp_path / 'body'}", *FEW)
    list(train(tag, tmp_path / "tags", examples=tags))
    start, before, after = read_config(tmp_path / "tags").start, load(tmp_path / "body"), load(tmp_path / "tags")
    assert {name.split(".")[0] for name in start.new} == {"head"}
    assert {name.split(".")[0] for name in start.loaded} == {"embed", "encoder"}
    known = before.task.target.encode_many([source for source, _ in examples()["test"]])
    read = after.task.source.encode_many([source for source, _ in examples()["test"]])
    assert known.values.tolist() == read.values.tolist()


def test_a_run_of_something_else_is_refused(tmp_path, written):
    tag = Recipe.read("tag", "data.sample=", f"model.from={written}", *FEW)
    with pytest.raises(RecipeError, match="text cut into bpe, but here the source is words that somebody has cut"):
        list(train(tag, tmp_path / "run", examples=examples()))
    assert not (tmp_path / "run").exists()
    with pytest.raises(RecipeError, match="model.from and data.vectors both"):
        list(train(classify(written, "data.vectors=words.txt"), tmp_path / "run", examples=examples()))


@pytest.mark.parametrize("stop_after", [0, 1])
def test_resume_is_exact_and_needs_the_other_run_only_before_a_checkpoint(tmp_path, written, stop_after):
    start = tmp_path / "start"
    shutil.copytree(written, start)
    recipe = classify(start, "train.unfreeze_every=1", "train.layer_decay=0.5")
    list(train(recipe, tmp_path / "whole", examples=examples()))
    records = measured(train(recipe, tmp_path / "cut", examples=examples()))
    for _ in range(max(stop_after, 1)):
        next(records)
    records.close()
    if stop_after:
        shutil.rmtree(start)
    else:
        shutil.rmtree(tmp_path / "cut" / "checkpoints")
    list(train(None, tmp_path / "cut", examples=examples(), resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


def test_other_weights_than_at_the_beginning_are_refused(tmp_path, written):
    start = tmp_path / "start"
    shutil.copytree(written, start)
    records = measured(train(classify(start), tmp_path / "cut", examples=examples()))
    next(records)
    records.close()
    shutil.rmtree(tmp_path / "cut" / "checkpoints")
    shutil.rmtree(start)
    language(start, "gru", "train.seed=5")
    with pytest.raises(RunError, match="have changed since"):
        list(train(None, tmp_path / "cut", examples=examples(), resume=True))


def test_a_run_can_be_asked_and_scored_after_the_other_is_gone(tmp_path, written):
    start = tmp_path / "start"
    shutil.copytree(written, start)
    list(train(classify(start), tmp_path / "run", examples=examples()))
    shutil.rmtree(start)
    run = load(tmp_path / "run")
    assert run.predict(examples()["train"][0][0])[0].output in "ab"
    assert copy_weights(run.model).keys() == read_tensors(tmp_path / "run" / "model.safetensors").keys()
