"""`embed`: vectors of texts and words of every kind that reads text, neighbors and analogies by brute force."""

import csv
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner

from seqloom.cli.main import build_app
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import SPECIALS
from seqloom.errors import DataError, RunError
from seqloom.runs.run import load, train

WORDS = ["the", "cat", "sat", "on", "a", "mat", "while", "one", "dog", "ran", "far", "and", "two", "birds", "sang"]
ROWS = [(" ".join(WORDS[(i * k) % len(WORDS)] for k in range(1, 6)), "ab"[i % 2]) for i in range(40)]
FEW = ("data.sample=", "train.steps=1", "train.batch_tokens=256", "model.size=8", "model.dropout=0")
KINDS = {
    "masked": ("pretrain", "model.kind=transformer", "model.heads=2", "model.depth=2", "data.target_tokenizer=words"),
    "elmo": ("pretrain", "model.kind=lstm", "model.depth=2", "train.objective=bidirectional", "model.tied=false",
             "data.target_tokenizer=bpe", "data.vocabulary_size=280"),
    "classify": ("classify", "model.kind=gru", "data.source_tokenizer=words", "model.depth=2"),
    "language": ("language", "model.kind=lstm", "data.target_tokenizer=bpe", "data.vocabulary_size=280",
                 "train.bptt_window=8", "data.documents=lines", "model.depth=1"),
    "letters": ("classify", "model.kind=convolution", "data.source_tokenizer=characters"),
    "tag": ("tag", "model.kind=lstm", "data.characters=4"),
}  # fmt: skip
TEXTS = ["the cat sat", "one dog", "birds sang on a mat while two dogs ran far"]
close = np.testing.assert_allclose


def rows_for(task):
    if task == "tag":
        return [(text, " ".join("XY"[len(word) > 2] for word in text.split())) for text, _ in ROWS]
    return [(text,) for text, _ in ROWS] if task in ("pretrain", "language") else ROWS


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made = {}
    for kind, (task, *settings) in KINDS.items():
        rows, folder = rows_for(task), tmp_path_factory.mktemp("embed") / kind
        recipe = Recipe.read(task, *FEW, *settings)
        list(train(recipe, folder, examples={"train": rows, "validation": rows[:6], "test": rows[:6]}))
        made[kind] = load(folder)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_layer_is_what_the_head_sees_and_neighbors_in_a_batch_change_nothing(kind, runs):
    run = runs[kind]
    together = run.embed(TEXTS)
    for text, found in zip(TEXTS, together, strict=True):
        close(run.embed(text), found, atol=1e-5)
        field = run.task.fields.get("source", run.task.fields["target"])
        encoded = field.encode_many([text])
        inputs, mask = field.collate(encoded, [0], run.recipe.model)
        with torch.no_grad():
            if run.net.generates:
                begun = torch.nn.functional.pad(inputs, (1, 0), value=SPECIALS.index("<sos>"))
                values = run.net.features(begun, run.net.initial_state(1))[0][0, 1:]
            else:
                values = run.net.encoder(run.net.embed(inputs), mask).values[0]
        close(found, values.double().mean(0).numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_layer_zero_is_the_embedding_and_words_are_means_of_their_tokens(kind, runs):
    run = runs[kind]
    field = run.task.fields.get("source", run.task.fields["target"])
    inputs, _ = field.collate(field.encode_many(["the cat sat"]), [0], run.recipe.model)
    with torch.no_grad():
        table = run.net.embed(inputs)[0].double()
    if not run.net.generates and run.recipe.model.kind == "transformer":
        assert run.recipe.model.positions == "rotary"  # which add nothing to the embedding
    close(run.embed("the cat sat", layer=0), table.mean(0).numpy(), atol=1e-5)
    words, vectors = run.embed_words("the cat sat")
    assert words == ["the", "cat", "sat"] and len(vectors) == 3
    if field.kind in ("words", "spelled"):
        close(vectors.mean(0), run.embed("the cat sat"), atol=1e-5)


def test_a_layer_that_is_not_there_is_refused(runs):
    with pytest.raises(DataError, match="the layer is 3, but this model has the embedding, 0, and layers 1 to 2"):
        runs["classify"].embed("the cat", layer=3)


def test_neighbors_and_analogies_are_those_of_brute_force(runs):
    run = runs["classify"]
    table = run.net.embed.weight.detach().double().numpy()
    names = run.task.source.symbols
    units = {name: row / np.linalg.norm(row) for name, row in zip(names, table, strict=True) if name not in SPECIALS}
    near = run.lexicon.nearest("cat", 100)
    wanted = sorted((name for name in units if name != "cat"), key=lambda name: -float(units[name] @ units["cat"]))
    assert [one.word for one in near] == wanted and len(near) == len(WORDS) - 1
    close([one.cosine for one in near], [units[name] @ units["cat"] for name in wanted], atol=1e-9)
    towards = units["dog"] - units["cat"] + units["birds"]
    best = max((name for name in units if name not in ("cat", "dog", "birds")), key=lambda name: units[name] @ towards)
    assert run.lexicon.analogy("cat", "dog", "birds", 1)[0].word == best
    with pytest.raises(DataError, match="'penguin' is not among the 15 words"):
        run.lexicon.nearest("penguin")


@pytest.mark.parametrize("kind", ["masked", "elmo", "language", "tag"])
def test_no_answer_is_a_special_symbol(kind, runs):
    found = {one.word for one in runs[kind].lexicon.nearest("cat", 10_000)}
    assert found and not found & {*SPECIALS, ""} and "cat" not in found


def test_letters_are_no_words(runs):
    with pytest.raises(RunError, match="its vocabulary is characters, which are no words"):
        runs["letters"].lexicon.nearest("a")


def test_analogies_of_a_file_are_counted_by_section(runs, tmp_path):
    file, run = tmp_path / "questions.txt", runs["classify"]
    lexicon = run.lexicon
    truth = lexicon.analogy("cat", "dog", "birds", 1)[0].word
    wrong = next(word for word in WORDS if word not in (truth, "cat", "dog", "birds"))
    file.write_text(f": one\ncat dog birds {truth}\ncat dog birds {wrong}\n: two\ncat dog birds penguin\n")
    assert lexicon.answer(str(file)) == {
        "one": {"right": 1, "asked": 2, "unknown": 0},
        "two": {"right": 0, "asked": 0, "unknown": 1},
    }
    file.write_text("cat dog birds\n")
    with pytest.raises(DataError, match="the line has 3 words, but an analogy has four"):
        lexicon.answer(str(file))


def ask(*arguments):
    return CliRunner().invoke(build_app(), ["embed", *map(str, arguments)])


def test_the_command_writes_what_python_gives(runs, tmp_path):
    run, file = runs["classify"], tmp_path / "texts.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    wanted = run.embed(TEXTS, layer=1)
    for ending in ("safetensors", "csv", "parquet"):
        out = tmp_path / f"vectors.{ending}"
        said = ask(run.folder, "--file", file, "--out", out, "--layer", 1, "--json")
        assert said.exit_code == 0 and json.loads(said.stdout)["vectors"] == 3, said.output
        if ending == "safetensors":
            found = load_file(out)["vectors"]
        elif ending == "csv":
            rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
            assert [row["text"] for row in rows] == TEXTS
            found = np.array([[float(row[f"v{n}"]) for n in range(1, 9)] for row in rows])
        else:
            import pyarrow.parquet

            rows = pyarrow.parquet.read_table(out).to_pylist()
            found = np.array([[row[f"v{n}"] for n in range(1, 9)] for row in rows])
        close(found, wanted, atol=1e-6)
    assert ask(run.folder, "--file", file, "--out", out, "--words").exit_code == 0
    rows = pyarrow.parquet.read_table(out).to_pylist()
    assert [row["word"] for row in rows] == " ".join(TEXTS).split()
    said = ask(run.folder, "--nearest", "cat", "--best", 2)
    assert said.exit_code == 0 and len(said.stdout.splitlines()) == 3
    said = ask(run.folder, "--analogy", "cat", "dog", "birds", "--best", 1, "--json")
    [truth] = run.lexicon.analogy("cat", "dog", "birds", 1)
    assert [one["word"] for one in json.loads(said.stdout)["words"]] == [truth.word]
    file.write_text(f": one\ncat dog birds {truth.word}\ncat dog birds penguin\n")
    said = ask(run.folder, "--questions", file)
    assert "100.0%  one: 1 of 1; 1 have an unknown word" in said.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing is asked"),
        (("--file", "texts.txt"), "give both"),
        (("--file", "texts.txt", "--out", "vectors.npy"), "the ending is .npy"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments, says, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("the cat\n")
    said = ask(runs["classify"].folder, *arguments)
    assert said.exit_code and says in str(said.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts.txt"]
