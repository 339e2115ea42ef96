"""An n-gram model beside a net: what is mixed is what was said, read in any pieces, and better than either alone."""

import shutil

import numpy as np
import pytest
import torch

from seqloom.architectures.build import build_generator
from seqloom.baselines.language import NGram
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import END, NEVER_WRITTEN
from seqloom.errors import RecipeError, RunError
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.heads import Categorical
from seqloom.runs.export import export_run
from seqloom.runs.run import load, train
from seqloom.tasks import declare
from seqloom.tasks.ngram_mixture import NGramMixture, number_tokens
from seqloom.training.manifests import replace_file
from seqloom.training.tensors import tensor_bytes

TOKENS, ORDER = 11, 4
WRITTEN = [token for token in range(TOKENS) if token not in NEVER_WRITTEN]


def draw_text(length, seed=0):
    draw = np.random.default_rng(seed)
    return np.cumsum(draw.integers(0, 3, length)) % len(WRITTEN)


@pytest.fixture(scope="module", params=["gru", "transformer"])
def mixed(request):
    """A net with weights drawn at random, an n-gram model, and both together."""
    torch.manual_seed(0)
    model = Recipe.read("language", f"model.kind={request.param}", "model.size=16").resolved().model
    head = lambda size, *_: Categorical(size, TOKENS, impossible=NEVER_WRITTEN)  # noqa: E731
    net = build_generator(model, TokenEmbedding(TOKENS, 16), head).double().eval()
    ngram = NGram.fit(draw_text(300), len(WRITTEN), ORDER)
    shares = np.random.default_rng(1).uniform(0.1, 0.9, (ORDER, 4))
    mixture = NGramMixture(ngram, shares)
    return net, mixture, mixture.wrap(net)


@pytest.fixture(scope="module")
def text():
    return torch.tensor(np.random.default_rng(2).choice(WRITTEN, (3, 9)))


def test_the_mixture_is_what_the_definition_says(mixed, text):
    net, mixture, model = mixed
    with torch.no_grad():
        logits, _ = model(text, model.initial_state(3))
        alone, _ = net(text, net.initial_state(3))
    numbers = number_tokens(TOKENS)
    for row in range(3):
        for step in range(9):
            read = numbers[text[row, : step + 1].numpy()]
            context = mixture.ngram.read(read[None], mixture.ngram.begin(1))[0, -1]
            share = mixture.shares_after(context[None])[0]
            wanted = share * alone[row, step].softmax(-1).numpy()
            wanted[WRITTEN] += (1 - share) * mixture.ngram.probabilities(read)
            np.testing.assert_allclose(logits[row, step].exp().numpy(), wanted, rtol=1e-9)
            assert wanted.sum() == pytest.approx(1)


def test_reading_in_pieces_and_step_by_step_is_reading_at_once(mixed, text):
    _, _, model = mixed
    with torch.no_grad():
        whole, _ = model(text, model.initial_state(3))
        first, state = model(text[:, :4], model.initial_state(3))
        rest, _ = model(text[:, 4:], state)
        torch.testing.assert_close(torch.cat([first, rest], 1), whole)
        step, state, told = model.stepper(), model.initial_state(3), []
        for number in range(9):
            logits, state = step(text[:, number : number + 1], state)
            told.append(logits)
    torch.testing.assert_close(torch.cat(told, 1), whole)


@pytest.mark.parametrize("places", [range(4), range(5, 9), (0, 3, 4, 8)])
def test_padding_changes_nothing(mixed, text, places):
    _, _, model = mixed
    mask = torch.zeros(3, 9, dtype=torch.bool)
    mask[:, list(places)] = True
    with torch.no_grad():
        seen, state = model(torch.where(mask, text, 0), model.initial_state(3), mask)
        alone, end = model(text[:, list(places)], model.initial_state(3))
        torch.testing.assert_close(seen[:, list(places)], alone)
        torch.testing.assert_close(model(text[:, :1], state)[0], model(text[:, :1], end)[0])


def test_the_loss_is_the_surprise_of_the_distribution(mixed, text):
    _, _, model = mixed
    with torch.no_grad():
        features, _ = model.features(text, model.initial_state(3))
        logits = model.head(features)
        target = text.roll(-1, 1)
        wanted = -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]
        found = model.head.negative_log_likelihood(features.flatten(0, 1), target.flatten())
    torch.testing.assert_close(found, wanted.flatten())


def test_the_shares_make_held_out_text_as_likely_as_shares_can():
    ngram, held = NGram.fit(draw_text(300), len(WRITTEN), ORDER), draw_text(400, seed=5)
    contexts = np.concatenate([ngram.begin(1)[:, None], ngram.read(held[None, :-1], ngram.begin(1))], 1)[0]
    net = np.random.default_rng(3).exponential(1.5, len(held))
    fitted = NGramMixture.fit(ngram, net, contexts, held)
    counted, cells = fitted.ngram.chances(contexts, held), fitted.find_cells(contexts)

    def surprise(shares):
        share = shares.ravel()[cells]
        # With the one token more for each of the two that every cell is fitted with.
        return -np.log(share * np.exp(-net) + (1 - share) * counted).sum() - np.log(shares * (1 - shares)).sum()

    least = surprise(fitted.shares)
    for place in np.ndindex(fitted.shares.shape):
        for other in (-0.02, 0.02):
            changed = fitted.shares.copy()
            changed[place] = np.clip(changed[place] + other, 0.01, 0.99)
            assert surprise(changed) > least - 1e-6


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on a text of somebody's own, for which nothing was typed."""
    folder = tmp_path_factory.mktemp("mixture")
    lines = [f"{number % 7} green bottles hanging on the {number % 3} wall.\n" for number in range(300)]
    (folder / "text.txt").write_text("".join(lines), encoding="utf-8")
    small = ("model.size=8", "train.steps=6", "train.batch_tokens=256", "train.bptt_window=16")
    recipe = Recipe.read("language", f"data.train={folder / 'text.txt'}", *small)
    return folder / "run", list(train(recipe, folder / "run"))


def test_a_text_of_ones_own_is_at_least_as_well_known_as_by_counting(run):
    folder, records = run
    assert any(record.kind == "note" and "n-gram model of order 6 is mixed in" in record.text for record in records)
    told = load(folder).scores["scores"]["perplexity"]
    assert told["value"] < told["baselines"]["6-gram"] * 1.02
    assert told["value"] == pytest.approx(
        load(folder).score(folder.parent / "text.txt")["scores"]["perplexity"]["value"], rel=0.5
    )


def test_what_is_stored_answers_as_before(run):
    folder, _ = run
    first, again = load(folder), load(folder)
    assert first.mixture is not None and len(first.mixture.ngram.ngram.orders) == 6
    texts = [one.generate("3 green", length=30, seed=4).finish()[0].output for one in (first, again)]
    assert texts[0] == texts[1]
    step, read = first.predict("1 green bottles hang"), first.follow()
    assert step[0].output == "i"
    read.read("1 green bottles hang")


def test_an_export_holds_the_network_alone_and_says_so(run, tmp_path):
    summary = export_run(run[0], "torch", tmp_path / "torch")
    assert summary["notes"] and "model.ngram" in summary["notes"][0]


def test_tables_that_are_none_are_refused(run, tmp_path):
    tensors = {name: torch.from_numpy(array) for name, array in load(run[0]).mixture.to_arrays().items()}

    def damage(name, change):
        folder = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(run[0], folder)
        changed = {key: value.clone() for key, value in tensors.items()}
        change(changed)
        replace_file(folder, "mixture.safetensors", tensor_bytes(changed))
        with pytest.raises(RunError, match=r"mixture\.safetensors"):
            load(folder)

    damage("missing", lambda found: found.pop("2.keys"))
    damage("unsorted", lambda found: found["2.keys"].copy_(found["2.keys"].flip(0)))
    damage("negative", lambda found: found["1.keys"].sub_(10**6))
    damage("beyond", lambda found: found["3.keys"].add_(10**12))
    damage("too-likely", lambda found: found["3.kept"].add_(2))
    damage("short", lambda found: found.update({"3.passed": found["3.passed"][:-1]}))
    damage("shares", lambda found: found["shares"].fill_(1.5))


def test_chords_are_not_counted():
    with pytest.raises(RecipeError, match="chords"):
        declare(Recipe.read("chorales", "model.ngram=3"))


def test_a_text_begins_as_after_an_end():
    numbers = number_tokens(TOKENS)
    assert numbers[2] == numbers[END] and sorted(set(numbers[WRITTEN])) == list(range(len(WRITTEN)))
