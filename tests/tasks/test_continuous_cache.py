"""A continuous cache beside a net: it says what the definition says, read in any pieces, and is worth its share."""

import copy
import shutil

import numpy as np
import pytest
import torch

from seqloom.architectures.build import build_generator
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import NEVER_WRITTEN, START
from seqloom.errors import RecipeError, RunError
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.runs.run import load, train
from seqloom.tasks import declare
from seqloom.tasks.continuous_cache import ContinuousCache
from seqloom.training.manifests import replace_file
from seqloom.training.tensors import tensor_bytes

TOKENS, LENGTH = 11, 4
WRITTEN = [token for token in range(TOKENS) if token not in NEVER_WRITTEN]


@pytest.fixture(scope="module", params=["gru", "transformer"])
def cached(request):
    """A net with weights drawn at random, a cache, and both together."""
    torch.manual_seed(0)
    model = Recipe.read("language", f"model.kind={request.param}", "model.size=16").resolved().model
    head = lambda size, *_: Categorical(size, TOKENS, impossible=NEVER_WRITTEN)  # noqa: E731
    net = build_generator(model, TokenEmbedding(TOKENS, 16), head).double().eval()
    cache = ContinuousCache(LENGTH, 7.0, 0.3)
    return net, cache, cache.wrap(net)


@pytest.fixture(scope="module")
def text():
    drawn = torch.tensor(np.random.default_rng(2).choice(WRITTEN, (3, 9)))
    drawn[:, 0] = START
    return drawn


def test_the_mixture_is_what_the_definition_says(cached, text):
    net, cache, model = cached
    with torch.no_grad():
        logits, _ = model(text, model.initial_state(3))
        states, _ = net.features(text, net.initial_state(3))
        alone = net.head(states).softmax(-1)
    for row in range(3):
        for step in range(9):
            wanted = alone[row, step].clone()
            pairs = [(states[row, place - 1], int(text[row, place])) for place in range(1, step + 1)][-LENGTH:]
            if pairs:
                cosines = [torch.cosine_similarity(states[row, step], key, dim=0) for key, _ in pairs]
                weights = (cache.sharpness * torch.stack(cosines)).softmax(0)
                wanted *= 1 - cache.share
                for weight, (_, token) in zip(weights, pairs, strict=True):
                    wanted[token] += cache.share * weight
            torch.testing.assert_close(logits[row, step].exp(), wanted)


def test_reading_in_pieces_and_step_by_step_is_reading_at_once(cached, text):
    _, _, model = cached
    with torch.no_grad():
        whole, _ = model(text, model.initial_state(3))
        first, state = model(text[:, :4], model.initial_state(3))
        rest, _ = model(text[:, 4:], state)
        torch.testing.assert_close(torch.cat([first, rest], 1), whole)
        step, state, answers = model.stepper(), model.initial_state(3), []
        for number in range(9):
            logits, state = step(text[:, number : number + 1], state)
            answers.append(logits)
    torch.testing.assert_close(torch.cat(answers, 1), whole)


@pytest.mark.parametrize("places", [range(4), range(5, 9), (0, 3, 4, 8), range(0)])
def test_padding_changes_nothing(cached, text, places):
    _, _, model = cached
    mask = torch.zeros(3, 9, dtype=torch.bool)
    mask[:, list(places)] = True
    with torch.no_grad():
        seen, state = model(torch.where(mask, text, 0), model.initial_state(3), mask)
        alone, end = model(text[:, list(places)], model.initial_state(3)) if len(places) else (seen[:, :0], None)
        torch.testing.assert_close(seen[:, list(places)], alone)
        after = model(text[:, :1], model.initial_state(3) if end is None else end)[0]
        torch.testing.assert_close(model(text[:, :1], state)[0], after)


def test_the_loss_is_the_surprise_of_the_distribution(cached, text):
    _, _, model = cached
    target = torch.where(text == START, WRITTEN[0], text).roll(-1, 1)
    with torch.no_grad():
        features, _ = model.features(text, model.initial_state(3))
        wanted = -model.head(features).log_softmax(-1).gather(-1, target[..., None])[..., 0]
        losses = model.head.negative_log_likelihood(features.flatten(0, 1), target.flatten())
    torch.testing.assert_close(losses, wanted.flatten())


def test_a_cache_alone_is_certain_of_what_it_holds_and_never_of_anything_else(cached, text):
    """In single precision, in which the weights of a long cache do not add up to 1 exactly."""
    net, _, _ = cached
    alone = ContinuousCache(300, 7.0, 1.0).wrap(copy.deepcopy(net).float())
    long = torch.tensor(np.random.default_rng(3).choice(WRITTEN[:-1], (2, 600)))
    with torch.no_grad():
        features, _ = alone.features(long, alone.initial_state(2))
        for token in WRITTEN:
            chances = alone.head.negative_log_likelihood(features, torch.full_like(long, token)).neg().exp()
            assert chances.isfinite().all() and (chances >= 0).all()
            assert (token in WRITTEN[:-1]) == bool((chances > 0).any())


def test_share_and_sharpness_make_held_out_text_as_likely_as_they_can():
    draw = np.random.default_rng(0)
    net = draw.exponential(2.0, 500)
    known = {sharpness: draw.exponential(3.0, 500) for sharpness in (2.0, 5.0, 10.0, 20.0, 40.0)}
    known[10.0] = draw.exponential(1.0, 500)
    fitted, losses = ContinuousCache.fit(50, net, lambda tried: known[tried.sharpness])

    def surprise(sharpness, share):
        return -np.log(share * np.exp(-known[sharpness]) + (1 - share) * np.exp(-net)).mean()

    least = surprise(fitted.sharpness, fitted.share)
    assert fitted.sharpness == 10.0 and losses.mean() == pytest.approx(least)
    assert all(
        least <= surprise(sharpness, share) + 1e-4 for sharpness in known for share in np.linspace(0.01, 0.99, 50)
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A text whose paragraphs each have a word of their own, which nothing but the paragraph itself can teach."""
    folder, draw = tmp_path_factory.mktemp("cache"), np.random.default_rng(0)
    names = [f"name{number}" for number in range(40)]
    lines = [" ".join(f"the {name} came and" for _ in range(12)) + "\n" for name in draw.choice(names, 300)]
    (folder / "text.txt").write_text("".join(lines), encoding="utf-8")
    small = ("model.size=16", "train.steps=60", "train.batch_tokens=512", "train.bptt_window=16", "model.cache=20")
    recipe = Recipe.read("language", f"data.train={folder / 'text.txt'}", "data.target_tokenizer=words", *small)
    return folder / "run", list(train(recipe, folder / "run"))


def test_a_cache_tells_the_word_of_a_paragraph(run):
    folder, records = run
    note = next(record.text for record in records if "a cache of 20 tokens is mixed in" in record.text)
    with_it, without = (float(note.split(cut)[0].rsplit(" ", 1)[1]) for cut in (" with it", " without"))
    assert with_it < 0.9 * without
    loaded = load(folder)
    assert loaded.mixture.cache.length == 20 and loaded.mixture.ngram is not None
    texts = [load(folder).generate("the name3", length=10, seed=4).finish()[0].output for _ in range(2)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("values", [(0, 5, 0.5), (20.5, 5, 0.5), (20, -5, 0.5), (20, 5, 1.5), (20, 5), (1e9, 5, 0.5)])
def test_a_cache_that_is_none_is_refused(run, tmp_path, values):
    folder = tmp_path / "run"
    shutil.copytree(run[0], folder)
    tensors = {name: torch.from_numpy(array) for name, array in load(run[0]).mixture.to_arrays().items()}
    replace_file(folder, "mixture.safetensors", tensor_bytes(tensors | {"cache": torch.tensor(values).double()}))
    with pytest.raises(RunError, match=r"mixture\.safetensors: does not hold the length"):
        load(folder)


def test_chords_have_no_cache():
    with pytest.raises(RecipeError, match=r"model\.cache is 3, but chords"):
        declare(Recipe.read("chorales", "model.cache=3"))
