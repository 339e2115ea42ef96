"""Settings of attention reach the layers, from a recipe and from Python alike."""

import pytest
import torch
from torch import nn

from seqloom import Recipe, load, train
from seqloom.architectures.build import build_labeler
from seqloom.errors import RecipeError, RunError
from seqloom.exchange import onnx
from seqloom.exchange.torch import save
from seqloom.layers.attention import Attention, MultiHeadAttention, Pooling, ProjectedAttention
from seqloom.layers.cells import RNNCell
from seqloom.layers.heads import Categorical
from seqloom.layers.transformer import CrossAttention

from .recipes import small_seq2seq

PAIRS = [(text, text[::-1]) for text in ("abc", "bca", "cab", "abcd") * 6]
FEW = ("model.size=16", "train.steps=2", "train.validate_every=2")


def model(*settings):
    """A small network that writes about a sequence, from a recipe."""
    recipe = Recipe.of({"task": "seq2seq"}).override("model.size=16", *settings)
    return small_seq2seq(recipe.resolved().model, 9, 9)


def heads(net):
    return [part for part in net.modules() if isinstance(part, MultiHeadAttention)]


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """A Transformer with hard attention on both sides, hardly trained."""
    folder = tmp_path_factory.mktemp("runs") / "hard"
    recipe = Recipe.of({"task": "seq2seq"}).override(*FEW, "model.kind=transformer", "model.hard_attention=true")
    list(train(recipe, folder, examples=PAIRS))
    return load(folder)


def test_a_transformer_with_hard_attention_looks_at_one_element_everywhere(hard):
    look = hard.look("abc", answer="cba")
    maps = [*look.measure("heads")]
    assert {found.kind for found in maps} == {"source", "itself"} and len(maps) == 3  # encoder, decoder, cross
    for found in maps:
        weights = torch.as_tensor(found.weights)
        assert weights.unique().tolist() == [0, 1] and (weights.sum(-1) == 1).all()
    assert len(hard.predict("abc", beam=2)) == 2


def test_hard_attention_has_no_form_in_torch(hard, tmp_path):
    with pytest.raises(RunError, match="torch.nn has no hard attention"):
        save(hard, tmp_path / "out")


def test_a_recurrent_decoder_has_an_attention_with_projections():
    [attention] = [part for part in model("model.attention=projected").modules() if isinstance(part, Attention)]
    assert isinstance(attention, ProjectedAttention)
    assert {name for name, _ in attention.named_parameters()} == {"query.weight", "key.weight", "value.weight"}


def test_sides_may_differ():
    net = model("model.kind=transformer", "model.decoder.hard_attention=true")
    assert [one.hard for one in heads(net.source)] == [False] and [one.hard for one in heads(net.decoder)] == [True] * 2


def labeler(*settings):
    recipe = Recipe.of({"task": "classify"}).override("model.size=16", *settings).resolved()
    return build_labeler(recipe.model, nn.Embedding(9, 16), lambda features: Categorical(features, 3), each=False)


def test_heads_have_the_widths_that_are_said_also_the_full_one():
    net = model("model.kind=transformer", "model.key_size=16", "model.heads=3", "model.value_size=5")
    assert [(one.width, one.value_width, one.out.in_features) for one in heads(net)] == [(16, 5, 15)] * 3
    with pytest.raises(RecipeError, match="has size 16 and heads 3, which must divide it evenly unless key_size"):
        model("model.kind=transformer", "model.heads=3")
    with pytest.raises(RecipeError, match="rotate pairs of features, but 5 in each head"):
        model("model.kind=transformer", "model.key_size=5")


def test_queries_and_memory_may_have_different_widths():
    net = model("model.kind=transformer", "model.encoder.size=24")
    [cross] = [part for part in net.modules() if isinstance(part, CrossAttention)]
    assert (cross.query.in_features, cross.key_value.in_features) == (16, 24)
    target, source = torch.tensor([[1, 2]]), torch.tensor([[3, 4, 5]])
    logits, _ = net(target, net.initial_state(1, source, torch.ones(1, 3, dtype=torch.bool)))
    assert logits.shape == (1, 2, 9)


def test_the_number_of_learned_queries_and_of_hidden_layers_is_a_setting():
    net = labeler("model.pool=attention", "model.queries=3", "model.hidden=7", "model.hidden_layers=2")
    [pool] = [part for part in net.modules() if isinstance(part, Pooling)]
    assert pool.queries.shape == (3, 16)
    products = [part for part in net.head.modules() if isinstance(part, nn.Linear)]
    assert sorted((one.in_features, one.out_features) for one in products) == [(7, 3), (7, 7), (16, 7)]
    y = torch.randn(2, 16)
    first, second, last = (
        next(p for p in products if (p.in_features, p.out_features) == w) for w in ((16, 7), (7, 7), (7, 3))
    )
    torch.testing.assert_close(net.eval().head(y), last(second(first(y).relu()).relu()))
    with pytest.raises(RecipeError, match='model.queries is 3, but only model.pool "attention" reads it'):
        labeler("model.queries=3")
    with pytest.raises(RecipeError, match="model.hidden_layers is 2, but model.hidden is 0"):
        labeler("model.hidden_layers=2")


def test_an_elman_network_may_have_a_sigmoid():
    cells = [
        part for part in model("model.kind=rnn", "model.activation=sigmoid").modules() if isinstance(part, RNNCell)
    ]
    assert cells and {cell.activation for cell in cells} == {"sigmoid"}


@pytest.mark.parametrize(("window", "refused"), [(2, False), (3, True), (99, True)])
def test_a_window_that_hides_nothing_is_refused(window, refused, tmp_path):
    recipe = Recipe.of({"task": "classify"}).override(*FEW, "model.kind=transformer", f"model.window={window}")
    training = train(recipe, tmp_path / "run", examples=[(text, text[0]) for text, _ in PAIRS])
    if not refused:
        list(training)
        return
    with pytest.raises(RecipeError, match=f"window is {window}, but no training example has more than 4 elements"):
        list(training)


@pytest.mark.parametrize(("window", "refused"), [(3, False), (4, True)])
def test_local_attention_comes_from_a_recipe_and_a_window_that_hides_nothing_is_refused(window, refused, tmp_path):
    settings = ("model.local_attention=monotonic", f"model.attention_window={window}")
    training = train(Recipe.of({"task": "seq2seq"}).override(*FEW, *settings), tmp_path / "run", examples=PAIRS)
    if refused:
        with pytest.raises(RecipeError, match=f"attention_window is {window}, but in no training example .* than 4 "):
            list(training)
        return
    list(training)
    run = load(tmp_path / "run")
    assert run.model.decoder.layers[0].attention.window == 3 and len(run.predict("abcd", beam=2)) == 2
    assert max(check["gap"] for check in onnx.save(run, tmp_path / "out")["checks"]) < 1e-5


@pytest.mark.parametrize(
    ("settings", "longest"), [(["model.positions=rotary"], 25), (["model.positions=learned", "train.bptt_window=8"], 8)]
)
def test_a_window_that_hides_nothing_of_a_language_is_refused(settings, longest, tmp_path):
    """Of documents when the state is carried, of the stretch that is read when it is not."""
    always = ("model.kind=transformer", f"model.window={longest}", "data.target_tokenizer=characters")
    recipe = Recipe.of({"task": "language"}).override(*FEW, *always, *settings)
    with pytest.raises(RecipeError, match=f"window is {longest}, but no training example has more than {longest} "):
        list(train(recipe, tmp_path / "run", examples=["abcd" * 6] * 20))


def test_without_biases_no_part_of_a_transformer_has_one_and_it_goes_to_torch(tmp_path):
    settings = ("model.kind=transformer", "model.positions=sinusoidal", "model.bias=false")
    list(train(Recipe.of({"task": "classify"}).override(*FEW, *settings), tmp_path / "run", examples=PAIRS))
    run = load(tmp_path / "run")
    assert not [name for name, _ in run.model.named_parameters() if name.endswith("bias")]
    assert max(one["gap"] for one in save(run, tmp_path / "out")["checks"]) < 1e-5
