"""Looking inside leaves a model to those who use it meanwhile: nothing is hung on it or set in it that they meet."""

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.layers.cells import CELLS
from seqloom.layers.recurrent import recurrent_encoder
from seqloom.look.doctor.evidence import compute_mean_loss
from seqloom.look.measures import jacobians, norms
from seqloom.look.measures.costs import measure_body_costs
from seqloom.look.measures.reading import compute_features, copy_sharing_weights
from seqloom.runs.checkup import build_untrained
from seqloom.runs.run import load, train

from ..laws.zoo import MASKS, SIZE, D
from .models import MODELS, batch_for, labeler


@pytest.mark.parametrize(
    ("module", "measure", "name"),
    [
        (norms, norms.measure_shrinkage, "label transformer-post"),
        (jacobians, jacobians.compute_decays, "write lstm-bahdanau-additive"),
    ],
)
def test_what_others_read_meanwhile_is_not_measured(module, measure, name, monkeypatch):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    batch, another = batch_for(model, MASKS["right"]), batch_for(model, MASKS["right"].flip(0))
    alone = measure(model, batch)

    def beside(read, own):
        """Reading, after somebody else has read something else."""
        compute_features(model, another._replace(inputs=another.inputs.flip(1)))
        return compute_features(read, own)

    monkeypatch.setattr(module, "compute_features", beside)
    assert repr(measure(model, batch)) == repr(alone)


def test_a_copy_apart_has_the_same_weights_and_modules_of_its_own():
    model = MODELS["talk spectral"]()
    copy = copy_sharing_weights(model)
    assert [id(one) for one in copy.parameters()] == [id(one) for one in model.parameters()]
    assert [id(one) for one in copy.buffers()] == [id(one) for one in model.buffers()]
    assert not {id(part) for part in copy.modules()} & {id(part) for part in model.modules()}


class Peeked(list):
    """Tells, whenever one of them is asked for, whether a model is in training."""

    def __init__(self, batches, model):
        super().__init__(batches)
        self.model, self.seen = model, []

    def __iter__(self):
        for one in super().__iter__():
            self.seen.append(any(part.training for part in self.model.modules()))
            yield one


def test_dropout_is_tried_without_letting_others_feel_it():
    torch.manual_seed(0)
    model = labeler("gru-both").eval()
    model.dropout.p = 0.5
    batches = Peeked([batch_for(model, MASKS["right"])] * 2, model)
    assert compute_mean_loss(model, batches, dropping=True) != compute_mean_loss(model, batches)
    assert batches.seen == [False] * 4


def test_new_weights_are_drawn_without_disturbing_who_draws_beside(tmp_path):
    recipe = Recipe.of({"task": "classify"}).override("model.size=8", "train.steps=1")
    list(train(recipe, tmp_path / "run", examples=[("ab", "x"), ("ba", "y")] * 4))
    run, before = load(tmp_path / "run"), torch.get_rng_state()
    measure_body_costs({"lstm": lambda: recurrent_encoder(CELLS["lstm"], D, [SIZE])}, D, (2,), repeats=1)
    assert torch.equal(torch.get_rng_state(), before)
    build_untrained(run.task, run.recipe)
    assert torch.equal(torch.get_rng_state(), before)
