"""Drawing: an image from its name, square by square, by the engine that writes texts."""

import gzip
import struct
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image

from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import SPECIALS, START
from seqloom.errors import DataError
from seqloom.runs.run import load, train
from seqloom.search import score

BARS = {"down": np.s_[:, 2:4], "across": np.s_[2:4, :], "all": np.s_[:, :]}


def bars(count: int, seed: int = 0) -> list[tuple[np.ndarray, str]]:
    """Bright bars on a dark ground, each a little different."""
    chance = np.random.default_rng(seed)
    found = []
    for number in range(count):
        name = list(BARS)[number % len(BARS)]
        image = np.zeros((1, 6, 6, 1), dtype=np.uint8)
        image[0][BARS[name]] = chance.choice([200, 250])
        found.append((image, name))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    parts = {"train": bars(90), "validation": bars(12, 1), "test": bars(24, 2)}
    settings = (
        "data.square=2",
        "model.size=24",
        "train.steps=150",
        "train.learning_rate=0.01",
        "train.batch_tokens=256",
    )
    recipe = Recipe.of({"task": "draw"}).override(*settings, "data.source_tokenizer=words", "search.beam_size=1")
    folder = tmp_path_factory.mktemp("drawn") / "run"
    list(train(recipe, folder, examples=parts))
    return load(folder)


def test_a_name_is_drawn_as_images_of_that_name_are(run):
    for name in BARS:
        [best] = run.predict(name, 1)
        image, bright = np.array(best.pixels), np.zeros((6, 6), bool)
        bright[BARS[name]] = True
        assert ((image > 100) == bright).all() and len(best.squares) == 9


def test_what_is_looked_into_are_the_squares_that_were_drawn(run):
    [best] = run.predict("down", 1)
    assert run.look("down").target == [*best.squares, "<eos>"] == run.look("down", " ".join(best.squares)).target


def test_the_score_of_a_drawing_is_that_of_its_squares_when_they_are_given(run):
    task, model = run.task, run.model
    for answers, name in ((run.predict("down", width), "down") for width in (1, 3)):
        for one in answers:
            state = task.shape.begin(model, task.shape.inputs.encode([name]), [0])[1]
            ids = [len(SPECIALS) + int(square) for square in one.squares]
            [known] = score(model, torch.tensor([[START]]), state, [ids], end=None, piece=100)
            assert one.score == pytest.approx(sum(known.logs) / len(ids), abs=1e-4)


def test_baselines_know_that_only_squares_are_drawn(run):
    """Counted by hand: each square as often as in training, and once more."""
    task, examples = run.task, bars(24, 2)
    baselines = task.score(run.model, examples)["nats a square"].baselines
    seen = Counter(square for image, _ in bars(90) for square in task.target.encode_many([image])[0].tolist())
    count = len(task.target) - len(SPECIALS)
    told = [square for image, _ in examples for square in task.target.encode_many([image])[0].tolist()]
    assert baselines["uniform"] == pytest.approx(np.log(count))
    expected = np.mean([-np.log((seen[square] + 1) / (seen.total() + count)) for square in told])
    assert baselines["squares alone"] == pytest.approx(expected)


def test_the_scores_say_that_drawings_can_be_read(run):
    scores = run.scores["scores"]
    assert scores["read right"]["value"] > 0.7 and scores["read right"]["baselines"]["real images"] == 1
    assert scores["nats a square"]["value"] < min(scores["nats a square"]["baselines"].values())


def test_pieces_are_lines_of_the_drawing_and_the_seed_decides(run):
    generation = run.generate("down", count=2, seed=3)
    pieces = list(generation)
    texts = generation.finish()
    assert len(pieces) == 2 * 3 and [text.finish for text in texts] == ["end", "end"]
    for number, text in enumerate(texts):
        assert "".join(piece.text for piece in pieces if piece.number == number) == text.output
        assert len(text.output.splitlines()) == 6 and len(text.tokens) == 9
    again = run.generate("down", count=1, seed=3).finish()
    assert again[0].tokens == texts[0].tokens


def test_a_drawing_that_is_cut_short_is_dark_where_nothing_was_drawn(run):
    [text] = run.generate("all", length=4).finish()
    image = run.task.target.read_names(text.tokens)
    assert text.finish == "length" and image.shape == (6, 6, 1) and not image[2:, 2:].any() and image[:2].all()
    assert len(text.output.splitlines()) == 6


def test_drawings_are_kept_as_images(run, tmp_path):
    texts = run.generate("across", count=2).finish()
    [first, second] = run.keep(texts, tmp_path / "drawings")
    with Image.open(first) as opened:
        assert (np.asarray(opened)[..., None] == run.task.target.read_names(texts[0].tokens)).all()


def test_an_answer_in_shades_can_be_looked_at(run):
    [best] = run.predict("down", 1)
    shown = run.task.shape.inspect("down", best.output)
    assert shown.answers[:-1] == best.squares and shown.elements == ["down"]


def idx(array: np.ndarray) -> bytes:
    return struct.pack(">HBB", 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def test_images_and_labels_of_idx_files_are_drawn_by_the_names_given(tmp_path):
    images = np.concatenate([image[..., 0] for image, _ in bars(30)])
    files = [tmp_path / "images.gz", tmp_path / "labels.gz"]
    for file, array in zip(files, (images, np.arange(30, dtype=np.uint8) % 3), strict=True):
        file.write_bytes(gzip.compress(idx(array)))
    given = f"data.train={files[0]},{files[1]}", "data.format=idx", "data.square=3"
    recipe = Recipe.of({"task": "draw"}).override(
        *given, "model.size=8", "train.steps=2", "data.source_tokenizer=words"
    )
    list(train(recipe.override(f"data.names={','.join(BARS)}"), tmp_path / "run"))
    assert set(load(tmp_path / "run").task.source.symbols) > set(BARS)
    with pytest.raises(DataError, match="labels.gz, line 3: the label is 2, but data.names has names for 0 to 1"):
        list(train(recipe.override("data.names=down,across"), tmp_path / "fails"))
