"""Settings that nobody typed come from the person's data, are told, and are stored; typed ones stay as they are."""

import json
import random

import pytest

from seqloom.config.recipe import Recipe
from seqloom.runs.run import load, train
from seqloom.tasks.auto import find_season, settle

WORDS = ["the", "a", "film", "plot", "was", "is", "very", "really", "good", "bad", "fine", "awful", "and", "but"]


def write_sentences(path, rows=120):
    chance = random.Random(0)
    texts = [" ".join(chance.choices(WORDS, k=8)) for _ in range(rows)]
    path.write_text("source,target\n" + "".join(f"{text},{'pos' if 'good' in text else 'neg'}\n" for text in texts))


def write_codes(path, rows=120):
    chance = random.Random(0)
    codes = ["".join(chance.choices("ABC123-", k=6)) for _ in range(rows)]
    path.write_text("source,target\n" + "".join(f"x{code},{'one' if '1' in code else 'none'}\n" for code in codes))


def test_sentences_and_codes_are_read_differently(typed, tmp_path):
    write_sentences(tmp_path / "sentences.csv")
    write_codes(tmp_path / "codes.csv")
    found = []
    for name in ("sentences", "codes"):
        out, _, code = typed("data", "classify", f"data.train={name}.csv", "--json")
        assert code == 0
        found.append(json.loads(out)["settings"])
    ways = [(one["data"]["source_tokenizer"], one["model"]["kind"]) for one in found]
    assert ways == [("ngrams", "bag"), ("characters", "gru")]
    assert found[1]["model"]["size"] < 128 and found[1]["model"]["dropout"] > 0.3  # there are few of them


def test_symbols_that_come_again_and_again_are_cut_at_blanks_and_sentences_into_pieces(typed, tmp_path):
    chance = random.Random(0)
    sounds = ["".join(chance.choices("abcde", k=6)) for _ in range(100)]
    lines = [f"{word},{' '.join(word.upper())}" for word in sounds]
    (tmp_path / "sounds.csv").write_text("source,target\n" + "\n".join(lines))
    lines = [f"{word},{' '.join(word + letter for letter in word)}" for word in sounds]
    (tmp_path / "sentences.csv").write_text("source,target\n" + "\n".join(lines))
    for name, tokenizer in (("sounds", "words"), ("sentences", "bpe")):
        data = json.loads(typed("data", "seq2seq", f"data.train={name}.csv", "--json")[0])["settings"]["data"]
        assert (data["source_tokenizer"], data["target_tokenizer"]) == ("characters", tokenizer)


def test_what_is_typed_stays_and_the_rest_follows_it(typed, tmp_path):
    write_sentences(tmp_path / "sentences.csv")
    words = ("model.kind=lstm", "model.size=20", "train.learning_rate=0.5")
    settings = json.loads(typed("data", "classify", "data.train=sentences.csv", *words, "--json")[0])["settings"]
    assert settings["model"]["kind"] == "lstm" and settings["model"]["size"] == 20
    assert settings["train"]["learning_rate"] == 0.5 and settings["data"]["source_tokenizer"] == "words"
    out, _, _ = typed("data", "classify", "data.train=sentences.csv", "data.source_tokenizer=characters", "--json")
    assert json.loads(out)["settings"]["model"]["kind"] == "gru"


def test_a_sample_keeps_its_settings_and_so_does_a_recipe_for_certain_data():
    for name in ("classify", "forecast", "tag"):
        recipe = Recipe.read(name)
        assert settle(recipe).recipe is recipe
    assert not Recipe.read("sentiment", "data.train=reviews.csv").find_open()
    assert not Recipe.of({"task": "classify", "data": {"train": "reviews.csv"}}).find_open()


def test_open_settings_are_written_and_read_as_auto(typed, tmp_path):
    write_sentences(tmp_path / "sentences.csv")
    text, _, _ = typed("config", "classify", "data.train=sentences.csv", "model.dropout=0.4")
    assert 'source_tokenizer = "auto"' in text and 'kind = "auto"' in text and "dropout = 0.4" in text
    (tmp_path / "own.toml").write_text(text)
    direct = Recipe.read("classify", "data.train=sentences.csv", "model.dropout=0.4")
    read = Recipe.read(tmp_path / "own.toml")
    assert read.find_open() == direct.find_open()
    values = [settle(one).recipe.model_dump(exclude={"about"}) for one in (read, direct)]
    assert values[0] == values[1] and values[0]["model"]["dropout"] == 0.4
    assert "model.size" in Recipe.read("classify", "data.train=x.csv", "model.size=4", "model.size=auto").find_open()
    assert "model.size" in Recipe.of({"task": "classify", "model": {"size": "auto"}}).find_open()


def test_a_run_stores_what_was_settled_says_whose_data_it_is_and_goes_on(typed, tmp_path):
    write_sentences(tmp_path / "sentences.csv")
    words = ("train", "classify", "data.train=sentences.csv", "train.steps=4", "--into", "run")
    _, err, code = typed(*words)
    assert code == 0 and "settled from the data" in err and "data.source_tokenizer=ngrams" in err
    recipe = Recipe.read(tmp_path / "run" / "recipe.toml")
    assert not recipe.find_open() and recipe.model.kind == "bag" and recipe.about.title == "classify: sentences.csv"
    assert "classify: sentences.csv" in (tmp_path / "run" / "README.md").read_text()
    _, err, code = typed(*words, "--resume")
    assert code == 0 and "is finished" in err
    _, err, code = typed(*words, "model.dropout=0.9", "--resume")
    assert code == 2 and "model.dropout" in err


def test_examples_from_python_take_the_place_of_the_sample(tmp_path):
    chance = random.Random(0)
    texts = [" ".join(chance.choices(WORDS, k=8)) for _ in range(100)]
    rows = [(text, "pos" if "good" in text else "neg") for text in texts]
    list(train(Recipe.read("classify", "train.steps=2"), tmp_path / "run", examples=rows))
    recipe = load(tmp_path / "run").recipe
    assert (recipe.model.kind, recipe.data.sample, recipe.about.title) == ("bag", "", "classify: data from Python")


@pytest.mark.parametrize(
    ("step", "rows", "season"),
    [
        ("3600000 ms", 1000, 24),
        ("86400000 ms", 1000, 7),
        ("1 months", 100, 12),
        ("3 months", 100, 4),
        ("3600000 ms", 50, 1),  # which is too short to show a day twice, and to learn from
        ("", 1000, 1),
        ("0.5", 1000, 1),
        ("604800000 ms", 1000, 52),
    ],
)
def test_the_season_follows_from_the_step(step, rows, season):
    assert find_season(step, rows) == season


def test_a_forecast_of_hours(typed, tmp_path):
    rows = [f"2024-01-{1 + n // 24:02d} {n % 24:02d}:00,{n % 24}" for n in range(24 * 28)]
    (tmp_path / "hours.csv").write_text("date,load\n" + "\n".join(rows) + "\n")
    settings = json.loads(typed("data", "forecast", "data.train=hours.csv", "--json")[0])["settings"]
    data, model = settings["data"], settings["model"]
    assert data["season"] == 24 and data["horizon"] <= 24 * 28 // 10 < data["context"] < 24 * 28 // 2
    assert model["kind"] == "linear" and model["relative"] == "none" and not model["channel_independent"]
