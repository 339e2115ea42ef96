"""Transduction beyond two plain columns: a tag that says what to write, one vocabulary, examples from Python."""

import itertools

import numpy as np
import pandas
import pytest
import torch
from PIL import Image

from seqloom.config.recipe import Recipe
from seqloom.errors import DataError, RecipeError
from seqloom.runs.run import load, train
from seqloom.tasks import conditional_generation
from tests.preparing import prepare_task, restore_task
from tests.recipes import small

WORDS = ["abc", "bca", "cab", "bac", "acb", "cba", "aab", "bba", "cca", "abb"]
QUICK = (
    "model.size=32",
    "model.dropout=0.0",
    "train.learning_rate=0.01",
    "train.batch_tokens=512",
    "search.beam_size=2",
)


@pytest.fixture(scope="module")
def both_ways_round(tmp_path_factory):
    """A file in which the tag decides whether a word is copied or reversed, and a run that learned it by heart."""
    folder = tmp_path_factory.mktemp("tags")
    rows = [f"{word},{word if tag == 'same' else word[::-1]},{tag}" for word in WORDS for tag in ("same", "turned")]
    file = folder / "words.csv"
    file.write_text("word,answer,way\n" + "\n".join(rows) + "\n")
    recipe = Recipe().override(
        *(f"data.{part}={file}" for part in ("train", "validation", "test")),
        *("data.source=word", "data.target=answer", "data.tag=way", "train.steps=120", *QUICK),
    )
    list(train(recipe, folder / "run"))
    return load(folder / "run")


def test_the_tag_decides_what_is_written(both_ways_round):
    asked = [(word, tag) for word in WORDS for tag in ("same", "turned")]
    written = [best.output for best, *_ in both_ways_round.predict_many(asked)]
    right = [word if tag == "same" else word[::-1] for word, tag in asked]
    assert sum(map(str.__eq__, written, right)) >= 18
    assert both_ways_round.scores["scores"]["exact"]["value"] >= 0.9


def test_a_tag_is_one_more_element_in_front_of_the_source(both_ways_round):
    task = both_ways_round.task
    shown = task.shape.inspect(("abc", "turned"), "cba")
    batch = shown.batch
    assert shown.elements == ["<turned>", "a", "b", "c"]
    tokens, mask = batch.source
    assert tokens[0, 0] == len(task.source) + task.shape.inputs.tags.index("turned") and mask.all()
    assert tokens[0, 1:].tolist() == task.source.encode("abc").tolist()
    assert both_ways_round.model.source.embed.weight.shape[0] == len(task.source) + 2


@pytest.mark.parametrize("asked", ["abc", ("abc", "sideways")])
def test_a_missing_or_unknown_tag_is_refused_with_those_there_are(both_ways_round, asked):
    with pytest.raises(DataError, match="one of same, turned"):
        both_ways_round.predict(asked)


def test_a_tag_for_a_model_without_one_is_refused(tmp_path):
    recipe = Recipe().override("train.steps=1", *QUICK)
    list(train(recipe, tmp_path / "run", examples=[(word, word) for word in WORDS]))
    with pytest.raises(DataError, match="trained without one"):
        load(tmp_path / "run").predict(("abc", "same"))


def test_one_vocabulary_serves_both_sides():
    recipe = Recipe().override("data.shared=true").resolved()
    task, prepared = prepare_task(recipe, print, [("abc", "xyz")] * 12)
    assert task.source.symbols == task.target.symbols and {"a", "z"} <= set(task.source.symbols)
    assert task.shape.build().embed.weight.shape == task.shape.build().source.embed.weight.shape
    again = restore_task(recipe, task.to_json())
    assert again.source.symbols == again.target.symbols == task.source.symbols
    with pytest.raises(RecipeError, match="cut alike"):
        Recipe().override("data.shared=true", "data.source_tokenizer=words")


def test_lists_and_data_frames_from_python_train_alike(tmp_path):
    recipe = Recipe().override("data.source=word", "data.target=answer", "train.steps=2", *QUICK)
    pairs = [(word, word[::-1]) for word in WORDS * 3]
    frame = pandas.DataFrame(pairs, columns=["word", "answer"])
    weights = []
    for name, given in (("list", pairs), ("frame", frame), ("parts", {"train": pairs})):
        list(train(recipe, tmp_path / name, examples=given))
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] == weights[2]


def test_the_quick_look_at_validation_goes_over_all_of_a_sorted_file(monkeypatch):
    pairs = [(word, word) for word in sorted("".join(pair) for pair in itertools.product("abcd", repeat=2))]
    task, prepared = prepare_task(Recipe().override(*QUICK).resolved(), print, {"train": pairs, "validation": pairs})
    asked, answer = [], conditional_generation.ConditionalGeneration.answer

    def listening(self, model, inputs, options):
        asked.extend(inputs)
        return answer(self, model, inputs, options)

    monkeypatch.setattr(conditional_generation.ConditionalGeneration, "answer", listening)
    for most, expected in ((4, ["aa", "ba", "ca", "da"]), (16, [word for word, _ in pairs])):
        asked.clear()
        monkeypatch.setattr(conditional_generation, "QUICK", most)
        task.shape.validate(task.shape.build(), prepared)
        assert asked == expected


@pytest.mark.parametrize(
    ("examples", "sentence"),
    [
        ([("a",)] * 12, "example 0 of train: has 1 value,"),
        ([("a", "b")] * 11 + [("a", " ")], "example 11 of train: the target is empty"),
        ({"test": [("a", "b")]}, "train, and perhaps validation and test"),
        (pandas.DataFrame({"source": ["a"], "targets": ["b"]}), "no column 'target'; there are source, targets"),
    ],
)
def test_bad_examples_from_python_are_refused_with_their_place(tmp_path, examples, sentence):
    with pytest.raises(DataError, match=sentence):
        list(train(Recipe(), tmp_path / "run", examples=examples))


def test_several_source_columns_are_joined(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b,target\n" + "x,y,z\n" * 12)
    recipe = Recipe().override(f"data.train={file}", "data.source=a,b").resolved()
    _, prepared = prepare_task(recipe, print)
    assert prepared.splits["train"].raws["source"][0] == "x | y"


def test_what_stands_in_two_parts_is_counted(tmp_path):
    parts = {
        "train": [("a", "b"), ("a", "b"), ("c", "d")],
        "validation": [("a", "x")],
        "test": [("e", "f"), ("c", "d")],
    }
    _, prepared = prepare_task(Recipe().resolved(), print, parts)
    splits = prepared.report.splits
    assert (splits["train"].repeated, splits["train"].overlap) == (1, 0)
    assert [(splits[part].repeated, splits[part].overlap) for part in ("validation", "test")] == [(0, 1), (0, 1)]


def test_a_tagged_batch_reads_like_its_rows_alone(both_ways_round):
    """The tag in front shifts nothing: padding and neighbors change nothing."""
    task, model = both_ways_round.task, both_ways_round.model
    rows = [("ab", "ba", "turned"), ("abcabc", "abcabc", "same")]
    encoded = task.shape.encode(rows)
    together = task.objective(model)(task.shape.collate(encoded, [0, 1]))[0]
    alone = sum(task.objective(model)(task.shape.collate(encoded, [row]))[0] for row in (0, 1))
    assert torch.allclose(together, alone, atol=1e-4)


def test_numbers_are_turned_into_text(tmp_path):
    """A series of numbers that rises or falls, spelled: sound features to letters, in small."""
    rows = [(np.linspace(0, 1 - 2 * (n % 2), 5, dtype=np.float32)[:, None], ("up", "down")[n % 2]) for n in range(30)]
    parts = {part: rows for part in ("train", "validation", "test")}
    recipe = Recipe().override("data.source_type=numbers", "train.steps=60", *QUICK)
    list(train(recipe, tmp_path / "run", examples=parts))
    run = load(tmp_path / "run")
    assert run.scores["scores"]["exact"]["value"] == 1
    assert set(run.scores["scores"]["exact"]["baselines"]) == {"most frequent"}


def test_images_are_told_in_words(tmp_path):
    """Bright or dark; an image that comes twice has two right captions, and the baselines see as much."""
    images = [np.full((1, 8, 8, 3), 220 if n % 2 else 30, np.uint8) + np.uint8(n) for n in range(12)]
    rows = [(image, text) for n, image in enumerate(images) for text in CAPTIONS[n % 2]]
    parts = {part: rows for part in ("train", "validation", "test")}
    recipe = Recipe.of({"task": "caption"}).override(
        "data.target_tokenizer=words", "model.encoder.kind=transformer", "model.patch=4", "train.steps=60", *QUICK
    )
    list(train(recipe, tmp_path / "run", examples=parts))
    run = load(tmp_path / "run")
    scores = run.scores["scores"]["BLEU"]
    assert scores["value"] > scores["baselines"]["constant"] and set(scores["baselines"]) == {"constant", "most alike"}
    [best, *_] = run.predict(images[1])
    assert best.output in CAPTIONS[1]
    shown = run.task.shape.inspect(images[1], best.output)
    assert shown.elements == ["1", "2", "3", "4"] and shown.answers[-1] == "<eos>"  # four squares of the image


CAPTIONS = (("the sea at night is dark", "a dark sea at night"), ("the sun on a wall of white", "a wall in the sun"))


def test_a_folder_of_images_and_its_table_are_read(tmp_path):
    for n in range(12):
        Image.new("RGB", (20, 10), (20 * n, 0, 0)).save(tmp_path / f"{n}.png")
    table = tmp_path / "captions.csv"
    table.write_text("image,caption\n" + "".join(f"{n}.png,number {n}\n{n}.png,no {n}\n" for n in range(12)))
    recipe = Recipe.of({"task": "caption"}).override(
        f"data.train={table}", "data.format=images", "data.image_size=8", "model.patch=4", "train.steps=1", *QUICK
    )
    task, prepared = prepare_task(recipe.resolved(), print)
    assert sum(len(split) for split in prepared.splits.values()) == 24 and task.source.shape == (8, 8, 3)
    table.write_text("image,caption\n../0.png,out of the folder\n")
    with pytest.raises(DataError, match="captions.csv, line 2"):
        prepare_task(recipe.resolved(), print)


def test_what_writes_words_reports_sentence_bleu_and_ter(tmp_path):
    from sacrebleu import sentence_bleu
    from sacrebleu.metrics import TER

    texts = {"predictions": ["a b c d e", "a cat"], "references": ["a b c d f", "the cat sat"]}
    for tokenizer, named in (("words", True), ("characters", False)):
        made, _ = prepare_task(small(tmp_path, f"data.target_tokenizer={tokenizer}").resolved())
        metrics = made.declaration.metrics(made)
        assert named == ("TER" in metrics) == ("sentence BLEU" in metrics)
        if named:
            mean = sum(sentence_bleu(text, [right]).score for text, right in zip(*texts.values(), strict=True)) / len(
                texts["predictions"]
            )
            assert metrics["sentence BLEU"](*texts.values()).value == pytest.approx(mean)
            assert metrics["TER"](*texts.values()).value == pytest.approx(
                TER().corpus_score(texts["predictions"], [texts["references"]]).score
            )
