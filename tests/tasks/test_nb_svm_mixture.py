"""NB-SVM beside a trained classifier: the sum that the definition says, the same from a folder, better than either."""

import json
import shutil

import numpy as np
import pytest
import torch

from seqloom.baselines.nb_svm import NBSVM
from seqloom.config.recipe import Recipe
from seqloom.data.ragged import Ragged
from seqloom.errors import RecipeError, RunError
from seqloom.runs.export import export_run
from seqloom.runs.run import load, train
from seqloom.tasks.nb_svm_mixture import NBSVMMixture
from seqloom.training.manifests import replace_file
from seqloom.training.tensors import tensor_bytes

WORDS = ["good", "bad", "film", "plot", "not", "very", "the", "a"]


def draw_reviews(count, seed):
    """A label says whether "good" is meant, which "not" before it turns around."""
    draw, rows = np.random.default_rng(seed), []
    for _ in range(count):
        words = draw.choice(WORDS[2:4] + WORDS[5:], 6).tolist()
        verdict, turned = int(draw.integers(2)), int(draw.integers(2))
        words[3:3] = ["not"] * turned + [["bad", "good"][verdict]]
        rows.append({"text": " ".join(words), "label": ["down", "up"][verdict ^ turned]})
    return rows


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    for name, count in {"train": 120, "validation": 60, "test": 60}.items():
        lines = [json.dumps(row) for row in draw_reviews(count, len(name))]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    recipe = Recipe.read(
        "classify",
        *(f"data.{name}={folder / name}.jsonl" for name in ("train", "validation", "test")),
        *("data.source=text", "data.target=label", "data.source_tokenizer=words", "model.nb_svm=true"),
        *(f"model.kind={request.param}", "model.size=16", "train.steps=8", "train.validate_every=4"),
    )
    records = list(train(recipe, folder / "run"))
    return folder / "run", records


def test_what_is_mixed_is_the_sum_that_the_shares_say(run):
    folder, _ = run
    mixed, texts = load(folder), [row["text"] for row in draw_reviews(9, 7)]
    own = np.log(mixed.task.shape.probabilities(mixed.net, texts))
    counted = mixed.mixture.score(mixed.task.source.encode_many(texts))
    wanted = np.exp(mixed.mixture.shares[0] * own + mixed.mixture.shares[1] * counted)
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(mixed.predict_proba(texts), wanted, rtol=1e-4)
    alone = np.stack([mixed.predict_proba([text])[0] for text in texts])  # neighbors and padding change nothing
    np.testing.assert_allclose(alone, wanted, rtol=1e-4)


def test_it_is_the_baseline_of_the_same_name(run):
    """But for words that are not in the vocabulary, of which there are none here."""
    folder, _ = run
    mixed, rows = load(folder), [json.loads(line) for line in (folder.parent / "train.jsonl").read_text().splitlines()]
    texts = [row["text"] for row in draw_reviews(40, 8)]
    wanted = NBSVM.fit([row["text"] for row in rows], [row["label"] for row in rows]).scores(texts)
    np.testing.assert_allclose(mixed.mixture.score(mixed.task.source.encode_many(texts)), wanted, atol=1e-3)


def test_the_record_says_what_each_brings(run):
    folder, records = run
    [said] = [record.text for record in records if "NB-SVM of tokens" in record.text]
    assert "both together" in said
    rows = draw_reviews(200, 9)
    answers = [best.output for best, *_ in load(folder).predict([row["text"] for row in rows])]
    assert np.mean([answer == row["label"] for answer, row in zip(answers, rows, strict=True)]) > 0.95


def test_the_loss_is_that_of_the_answers(run):
    folder, _ = run
    mixed = load(folder)
    examples = [(row["text"], row["label"]) for row in draw_reviews(20, 11)]
    probabilities = mixed.predict_proba([text for text, _ in examples])
    places = [mixed.task.target.symbols.index(label) for _, label in examples]
    loss = mixed.task.shape.loss(mixed.model, mixed.task.shape.encode(examples))
    assert loss == pytest.approx(-np.log(probabilities[np.arange(20), places]).mean(), rel=1e-4)


@pytest.mark.parametrize("names", [2, 3])
def test_shares_are_those_by_which_the_labels_are_likeliest(names):
    draw = np.random.default_rng(names)
    net, counted = (torch.from_numpy(draw.normal(size=(400, names))) for _ in range(2))
    labels = torch.distributions.Categorical(logits=2 * net + 0.5 * counted).sample()
    empty = NBSVMMixture(np.zeros(0, np.int64), np.zeros((1, names)), np.zeros(names), np.ones(2))
    shares = empty.weigh(net, counted, labels).shares

    def measure(own, other):
        return float(torch.nn.functional.cross_entropy(own * net + other * counted, labels, reduction="sum"))

    best = measure(*shares)
    for own in (0.8, 1.25):
        assert measure(own * shares[0], shares[1]) > best - 0.2 and measure(shares[0], own * shares[1]) > best - 0.2
    np.testing.assert_allclose(shares, [2, 0.5], rtol=0.5)


def test_pairs_do_not_reach_over_the_end_of_a_text():
    source, labels = Ragged.of([[5, 6], [7, 5], [6], [7]] * 5), np.array([0, 1, 1, 0] * 5)
    mixture = NBSVMMixture.fit(source, labels, 8, 2)
    assert mixture.pairs.tolist() == [5 * 8 + 6, 7 * 8 + 5]


def test_exports_leave_it_out_and_say_so(run, tmp_path):
    folder, _ = run
    [note] = export_run(folder, "onnx", tmp_path / "out")["notes"]
    assert note.startswith("model.nb_svm: ")


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one | {"pairs": one["pairs"].flip(0)},
        lambda one: one | {"pairs": one["pairs"] + 10**9},
        lambda one: one | {"weights": one["weights"][:-1]},
        lambda one: one | {"shares": -one["shares"]},
        lambda one: one | {"biases": one["biases"] * torch.nan},
        lambda one: {name: value for name, value in one.items() if name != "biases"},
    ],
)
def test_tables_that_cannot_be_are_refused(run, tmp_path, change):
    folder, _ = run
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    arrays = {name: torch.from_numpy(array) for name, array in load(folder).mixture.to_arrays().items()}
    replace_file(copy, "mixture.safetensors", tensor_bytes(change(arrays)))
    with pytest.raises(RunError, match=r"mixture\.safetensors: .*(NB-SVM|not finite)"):
        load(copy)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["data.target_type=number"], "it answers with one label"),
        (["data.source_type=numbers"], "only texts have tokens"),
        (["model.kind=bag", "data.source_tokenizer=ngrams"], "begins as NB-SVM already"),
    ],
)
def test_what_has_no_evidence_is_refused(settings, why):
    with pytest.raises(RecipeError, match=why):
        Recipe.read("classify", "model.nb_svm=true", *settings)
