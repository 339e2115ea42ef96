"""Gradients over training, probes of one's own labels, and angles of vectors: against what they are made of."""

import numpy as np
import pytest
import torch

from seqloom import Recipe, load, train
from seqloom.errors import DataError
from seqloom.look.measures.gradients import compute_gradient_flow
from seqloom.look.measures.vectors import Vectors
from seqloom.runs.snapshots import load_step

TEXTS = ["the red cat sat", "a blue dog ran", "the dog sat", "a cat ran off", "red dog", "blue cat sat off"] * 4


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training") / "run"
    quick = ("model.size=8", "train.steps=6", "train.checkpoint_every=2", "train.keep_checkpoints=3")
    recipe = Recipe.of({"task": "classify"}).override(*quick, "model.kind=gru", "data.source_tokenizer=words")
    list(train(recipe, folder, examples=[(text, "y" if "cat" in text else "n") for text in TEXTS]))
    return load(folder)


def test_the_gradient_at_every_kept_checkpoint_is_that_of_its_weights(run):
    look = run.look("the red cat", "y")
    found = dict(look.measure("gradient-history"))
    assert list(found) == ["step 0", "step 2", "step 4", "step 6", "the run"]
    for name, model in (("step 4", load_step(run, 4)), ("the run", run.net)):
        [expected] = compute_gradient_flow(model, look.batch, look.names)
        np.testing.assert_allclose(found[name][0].norms, expected.norms, rtol=1e-5)
    norms = [flows[0].norms for flows in found.values()]
    assert not np.allclose(norms[0], norms[1])
    assert "step 2" in str(look.draw("gradient-history").to_dict(validate=False))


def test_a_probe_of_ones_own_labels_finds_what_the_layer_holds(run):
    """The word itself stands in what the lowest level reads; a label drawn at random stands nowhere."""
    words = sorted({word for text in TEXTS for word in text.split()})
    labels = [" ".join("det" if word in ("the", "a") else "other" for word in text.split()) for text in TEXTS]
    found = run.probe(TEXTS, labels)
    assert [one.name for one in found] == [one.name for one in run.probe(TEXTS, [["x"]] * len(TEXTS))]
    assert max(one.accuracy for one in found) > found[0].majority and found[0].elements > 10
    chance = np.random.default_rng(0)
    drawn = [" ".join(chance.choice(["p", "q"], len(text.split()))) for text in TEXTS]
    assert min(one.accuracy for one in run.probe(TEXTS, drawn)) < 0.9 and len(words) > 5
    with pytest.raises(DataError, match="input 2 has 2 labels for 4 elements: a blue dog ran"):
        run.probe(TEXTS[:3], ["d o o o", "d o", "d o o"])


def test_the_command_line_probes_the_labels_of_a_file(run, typed, tmp_path):
    (tmp_path / "labels.tsv").write_text("".join(f"{text}\t{text[0]}\n" for text in TEXTS), encoding="utf-8")
    out, _, code = typed("look", run.folder, "--view", "probe", "--labels", "labels.tsv", "--out", "probe.json")
    assert code == 0 and "probe.json" in out and "accuracy" in (tmp_path / "probe.json").read_text()
    (tmp_path / "labels.tsv").write_text("no label\n", encoding="utf-8")
    _, err, code = typed("look", run.folder, "--labels", "labels.tsv")
    assert code == 2 and "labels.tsv, line 1" in err
    _, err, code = typed("look", run.folder, "--view", "gates", "--labels", "labels.tsv")
    assert code == 2 and "--labels is for the view probe" in err


@pytest.mark.parametrize("size", [4, 64, 1024])
def test_random_directions_are_nearly_orthogonal_by_one_over_the_root_of_their_width(size):
    torch.manual_seed(0)
    symbols = ["<pad>", *map(str, range(299))]
    found = Vectors(torch.randn(300, size), symbols).measure_angles()
    for cosines in (found.random, found.learned):
        assert cosines.std() == pytest.approx(1 / size**0.5, rel=0.1) and abs(cosines.mean()) < 0.1 / size**0.5
    alike = Vectors(torch.ones(300, size), symbols).measure_angles()
    assert alike.learned == pytest.approx(np.ones(5000)) and alike.expected == found.expected == size**-0.5
