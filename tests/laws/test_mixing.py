"""A learned mix of layers (ELMo): against its formula, from a body of two directions, and with the body frozen."""

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import RecipeError
from seqloom.layers.mixing import Mix
from seqloom.runs.run import load, train
from seqloom.training.depths import measure_depths

from ..test_embed import FEW, KINDS, ROWS, TEXTS, rows_for

close = torch.testing.assert_close
PARTS = {"train": ROWS, "validation": ROWS[:6], "test": ROWS[:6]}


def test_the_mix_is_that_of_the_formula():
    mix, states = Mix(3), list(torch.randn(3, 2, 4, 5))
    close(mix(states), sum(states) / 3)
    with torch.no_grad():
        mix.shares.copy_(torch.tensor([0.0, 1.0, -2.0]))
        mix.scale.fill_(1.7)
    e = torch.tensor([1.0, torch.e, torch.e**-2])
    close(mix(states), 1.7 * sum(share * state for share, state in zip(e / e.sum(), states, strict=True)))


@pytest.fixture
def body(tmp_path_factory):
    (task, *settings), folder = KINDS["elmo"], tmp_path_factory.mktemp("mix") / "body"
    texts = {part: rows_for(task)[: len(rows)] for part, rows in PARTS.items()}
    list(train(Recipe.read(task, *FEW, *settings), folder, examples=texts))
    return folder


def test_the_head_sees_the_mix_and_the_frozen_body_is_that_of_the_other_run(body, tmp_path):
    few = [one for one in FEW if "size" not in one]
    learns = ("model.mix_layers=true", "train.freeze=encoder.layer.layer", "train.learning_rate=0.5", "model.pool=mean")
    recipe = Recipe.read("classify", *few, f"model.from={body}", *learns)
    list(train(recipe, tmp_path / "run", examples=PARTS))
    run, before = load(tmp_path / "run"), load(body)
    ours, theirs = (dict(one.named_parameters()) for one in (run.net.encoder.layer.layer, before.net.encoder.layer))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    mixed = run.net.encoder.layer.mix
    assert mixed.shares.abs().sum() > 0  # which has learned
    ids = torch.from_numpy(run.task.source.encode(TEXTS[2])).long()[None]
    mask = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        vectors = run.net.embed(ids)
        _, *states = before.net.encoder.layer.read_states(vectors, mask)
        close(states[-1], before.net.encoder(vectors, mask).values)
        shares = mixed.shares.softmax(0)
        wanted = mixed.scale * (shares[0] * states[0] + shares[1] * states[1])
        close(run.net.features(ids, mask), wanted.mean(1))
    depths = measure_depths(run.net.objective())
    assert depths["model.encoder.layer.mix.shares"] == 0 == depths["model.head.project.weight"]
    plain = measure_depths(before.net.objective())
    below = {
        name.replace(".layer.layer.", ".layer.", 1): depth for name, depth in depths.items() if ".layer.layer." in name
    }
    assert below and below == {name: depth for name, depth in plain.items() if name in below}


def test_one_layer_or_layers_of_different_sizes_are_not_mixed(tmp_path):
    for sizes in ("model.depth=1", "model.size=[8, 6]"):
        recipe = Recipe.read(
            "classify", *FEW, "data.source_tokenizer=words", "model.kind=gru", sizes, "model.mix_layers=true"
        )
        with pytest.raises(RecipeError, match="there are not several of one size"):
            list(train(recipe, tmp_path / sizes[-4:], examples=PARTS))


@pytest.mark.parametrize("kind", ["transformer", "convolution", "gru", "mingru"])
def test_padding_changes_nothing_of_a_mix(kind):
    task = Recipe.read("classify", *FEW, f"model.kind={kind}", "model.depth=2", "model.mix_layers=true")
    from seqloom.architectures.build import mix_layers

    layer = mix_layers(task.resolved().model.side("encoder").build_encoder(8).layer, 8).eval()
    x, mask = torch.randn(2, 5, 8), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    with torch.no_grad():
        both, alone = layer.read(x, mask), layer.read(x[1:, :3], mask[1:, :3])
    close(both[1:, :3], alone, atol=1e-6, rtol=1e-5)
    assert not both[1, 3:].any()
