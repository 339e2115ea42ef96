"""Words from their characters, beside word embeddings and instead of them, one-hot vectors, and vectors from a file."""

import numpy as np
import pytest
import torch

from seqloom import Recipe, load, train
from seqloom.errors import RecipeError
from seqloom.exchange import onnx
from seqloom.fields.spelling import spell_vocabulary
from seqloom.fields.text import SpacedWords
from seqloom.layers.character_embeddings import SpelledVocabulary

FEW = ("model.size=8", "train.steps=2", "train.validate_every=2", "data.lowercase=false")
TEXTS = ["one cat sat", "two cats sit", "one dog ran", "two dogs run"] * 8
TASKS = {
    "classify": (["data.source_tokenizer=words", "model.kind=gru"], [(text, text[:3]) for text in TEXTS]),
    "seq2seq": (
        ["data.source_tokenizer=spaced", "data.target_tokenizer=words"],
        [(text, " ".join(reversed(text.split()))) for text in TEXTS],
    ),
    "language": (["data.target_tokenizer=words", "train.bptt_window=8"], TEXTS),
    "tag": ([], [(text, " ".join("ABC")) for text in TEXTS]),
}


def trained(task, folder, *settings):
    own, examples = TASKS[task]
    recipe = Recipe.of({"task": task}).override(*FEW, *own, *settings)
    list(train(recipe, folder, examples=examples))
    return load(folder)


def answers(run):
    return [(one.output, round(one.score, 5)) for one in run.predict("one cat sat")]


def vocabulary_model(*settings):
    return Recipe.of({"task": "language"}).override("model.size=8", "data.characters=5", *settings).resolved().model


@pytest.mark.parametrize("spelling", ["convolution", "recurrence"])
@pytest.mark.parametrize("beside", ["true", "false"])
def test_a_word_of_a_vocabulary_is_what_its_letters_and_perhaps_its_own_vector_say(spelling, beside):
    model = vocabulary_model(
        "data.target_tokenizer=words", f"model.spelling={spelling}", f"model.word_vectors={beside}", "model.dropout=0"
    )
    symbols = ["<pad>", "<unk>", "<sos>", "<eos>", "cat", "act", "extraordinary", "exnary"]
    embed = spell_vocabulary(symbols, 5, model, "decoder")
    alphabet = sorted(set("".join(symbols[4:])))
    vectors = embed(torch.arange(8)[None])[0]
    for number, letters in ((4, "cat"), (6, "extry"[:3] + "ry"), (5, "act")):
        spelled = embed.compose.letters(torch.tensor([[4 + alphabet.index(letter) for letter in letters]]))[0]
        if beside == "true":
            own = embed.compose.words(torch.tensor([number]))[0]
            spelled = embed.compose.join(torch.cat([own, spelled]))
        torch.testing.assert_close(vectors[number], spelled, rtol=1e-4, atol=1e-5)
    assert len({tuple(row) for row in vectors[1:4].tolist()}) == 3  # special symbols differ from each other
    torch.testing.assert_close(embed.table(), vectors)


@pytest.mark.parametrize("task", ["classify", "seq2seq", "language", "tag"])
def test_words_from_characters_alone_train_and_answer_in_every_task(task, tmp_path):
    run = trained(task, tmp_path / "run", "data.characters=4", "model.word_vectors=false")
    assert not [name for name, _ in run.model.named_parameters() if ".words." in name]
    assert answers(run) == answers(load(tmp_path / "run"))
    if task != "tag":
        assert any(isinstance(part, SpelledVocabulary) for part in run.model.modules())
        assert max(one["gap"] for one in onnx.save(run, tmp_path / "out")["checks"]) < 1e-4


def test_one_hot_vectors_are_as_long_as_the_largest_vocabulary_and_learn_nothing(tmp_path):
    run = trained("seq2seq", tmp_path / "run", "model.one_hot=true")
    size = max(len(run.task.source), len(run.task.target))
    assert run.recipe.model.embedding == size
    ids = torch.tensor([[4, 5]])
    assert torch.equal(run.model.embed(ids), torch.nn.functional.one_hot(ids, size).float())
    assert not list(run.model.embed.parameters()) and not list(run.model.source.embed.parameters())
    assert answers(run) == answers(load(tmp_path / "run"))


def test_a_decoder_and_composed_words_begin_with_the_vectors_of_a_file(tmp_path):
    values = np.random.default_rng(0).standard_normal((2, 8)).round(3)
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(("cat", "dog"), values, strict=True)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n", "utf-8")
    settings = ("data.characters=4", "train.learning_rate=1e-12", "train.weight_decay=0")
    run = trained("seq2seq", tmp_path / "run", *settings, f"data.target_vectors={tmp_path / 'vectors.txt'}")
    words, symbols = run.model.embed.compose.words, run.task.target.symbols
    found = words(torch.tensor([symbols.index("cat"), symbols.index("dog")]))
    torch.testing.assert_close(found.detach(), torch.from_numpy(values).float(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("classify", ["data.characters=4"], "nothing that is read is cut into words"),
        ("language", ["data.characters=4", "data.target_tokenizer=words", "model.tied=true"], "as an output layer"),
        ("seq2seq", ["model.word_vectors=false"], "model.word_vectors is set, but data.characters is 0"),
        ("language", ["model.one_hot=true", "model.tied=true"], "with model.one_hot no embedding is learned"),
        ("tag", ["model.one_hot=true", "data.characters=4"], "with model.one_hot no embedding is learned"),
    ],
)
def test_what_does_not_go_together_is_refused(task, settings, sentence):
    with pytest.raises(RecipeError) as caught:
        Recipe.of({"task": task}).override(*settings)
    assert sentence in str(caught.value)


def test_a_field_that_spells_comes_back_from_json():
    data = Recipe.of({"task": "language"}).override("data.target_tokenizer=spaced", "data.characters=4").data
    field = SpacedWords.fit(iter(TEXTS), data)
    assert SpacedWords.from_json(field.to_json()).characters == 4
