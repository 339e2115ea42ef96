"""Laws of heads, models, search and training."""

import itertools
from copy import deepcopy

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from seqloom.layers.crf import CRF
from seqloom.layers.heads import Bernoulli, Categorical, Mean, Normal, Quantiles
from seqloom.layers.padding import lengths_to_mask
from seqloom.layers.state import detach, map_state, select
from seqloom.models import Batch, GenerationObjective, Generator, Labeler, LabelingObjective
from seqloom.search import BeamOptions, Sampling, beam, greedy, sample, sample_tokens

from .zoo import DECODERS, ENCODERS, MASKS, NOTHING, PLAIN, SIZE, D, decoder, encoder, poisoned, talker, writer

each_decoder = pytest.mark.parametrize("name", DECODERS)
each_plain = pytest.mark.parametrize("name", PLAIN)
each_encoder = pytest.mark.parametrize("name", ENCODERS)
close = torch.testing.assert_close


def quantiles(inputs: int, classes: int) -> Quantiles:
    return Quantiles(inputs, 1, 1, (0.1, 0.5, 0.9))


def means(inputs: int, classes: int) -> Mean:
    return Mean(inputs, 1, 1)


TARGETS = {
    Categorical: lambda *shape: torch.randint(5, shape),
    CRF: lambda *shape: torch.randint(5, shape),
    Bernoulli: lambda *shape: torch.randint(2, (*shape, 5)).float(),
    Normal: lambda *shape: torch.randn(*shape, 5),
    quantiles: lambda *shape: torch.randn(*shape, 1, 1),
    means: lambda *shape: torch.randn(*shape, 1, 1),
}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# Heads


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("kind", TARGETS)
def test_a_loss_is_the_sum_over_what_is_valid(kind, side):
    head, mask, x, target = kind(SIZE, 5), MASKS[side], torch.randn(3, 6, SIZE), TARGETS[kind](3, 6)
    nn.init.normal_(head.pairs) if kind is CRF else None
    total, count = head.loss(poisoned(x, mask), target, mask)
    rows = [head.loss(x[r : r + 1, mask[r]], target[r : r + 1, mask[r]]) for r in range(3) if mask[r].any()]
    close(total, sum(s for s, _ in rows))
    assert count == mask.sum() == sum(n for _, n in rows)
    total.backward()
    assert all(p.grad.isfinite().all() for p in head.parameters())


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_a_loss_in_chunks_is_the_same(chunk):
    head, x, target = Categorical(SIZE, 7).double(), torch.randn(3, 6, SIZE).double(), torch.randint(7, (3, 6))
    found = []
    for head.chunk in (0, chunk):
        features = x.clone().requires_grad_()
        total, count = head.loss(features, target, MASKS["between"])
        found.append((total, count, *torch.autograd.grad(total, [features, *head.parameters()])))
    close(*found)


@pytest.mark.parametrize("chunk", [0, 4])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_an_impossible_class_is_told_never_and_has_no_part_in_the_loss(smoothing, chunk):
    """As if it were not there: the loss, its gradients and all probabilities are those of a head without it."""
    head = Categorical(SIZE, 7, chunk, smoothing, impossible=(0, 2)).double()
    less = Categorical(SIZE, 5, chunk, smoothing).double()
    possible = [1, 3, 4, 5, 6]
    less.project.weight.data, less.project.bias.data = head.project.weight[possible], head.project.bias[possible]
    x, classes = torch.randn(3, 6, SIZE).double(), torch.randint(5, (3, 6))
    target = torch.tensor(possible)[classes]
    for train in (True, False):
        found = []
        for one, told in ((head.train(train), target), (less.train(train), classes)):
            features = x.clone().requires_grad_()
            total, _ = one.loss(features, told, MASKS["between"])
            W, b, own = torch.autograd.grad(total, [one.project.weight, one.project.bias, features])
            found.append((total, *((W[possible], b[possible]) if one is head else (W, b)), own))
            assert one is less or not (W[[0, 2]].any() or b[[0, 2]].any())
        close(*found)
    chances = head(x).softmax(-1)
    close(chances[..., possible], less(x).softmax(-1))
    assert not chances[..., [0, 2]].any() and not head(x).isnan().any()
    drawn = head.sample(head(x).expand(200, 3, 6, 7), 50.0)
    assert set(drawn.unique().tolist()) == set(possible)


def chain():
    head = CRF(SIZE, 3)
    for parameter in head.parameters():
        nn.init.normal_(parameter)
    return head


def paths(head, x):
    """Every path of tags with its worth, spelled out."""
    scores = head(x)
    for tags in itertools.product(range(3), repeat=len(x)):
        worth = head.first[tags[0]] + head.last[tags[-1]] + sum(scores[t, tag] for t, tag in enumerate(tags))
        yield list(tags), worth + sum(head.pairs[pair] for pair in itertools.pairwise(tags))


@pytest.mark.parametrize("side", ["right", "left", "between"])
def test_a_crf_equals_brute_force(side):
    head, x, mask, target = chain(), torch.randn(3, 6, SIZE), MASKS[side], torch.randint(3, (3, 6))
    best = head.sample(head(poisoned(x, mask)), 0, mask)
    expected = torch.zeros(())
    for row in range(3):
        every = list(paths(head, x[row, mask[row]]))
        total = torch.stack([worth for _, worth in every]).logsumexp(0)
        expected = expected + total - dict((tuple(t), w) for t, w in every)[tuple(target[row, mask[row]].tolist())]
        assert best[row, mask[row]].tolist() == max(every, key=lambda pair: pair[1])[0]
    close(head.loss(poisoned(x, mask), target, mask)[0], expected)


@pytest.mark.parametrize("side", MASKS)
def test_a_crf_knows_the_log_probability_of_any_path_by_brute_force(side):
    head, x, mask, told = chain(), torch.randn(3, 6, SIZE), MASKS[side], torch.randint(3, (3, 6))
    found = head.log_probability(head(poisoned(x, mask)), told, mask)
    for row in range(3):
        if not mask[row].any():
            assert found[row] == 0
            continue
        every = list(paths(head, x[row, mask[row]]))
        own = dict((tuple(tags), worth) for tags, worth in every)[tuple(told[row, mask[row]].tolist())]
        close(found[row], own - torch.stack([worth for _, worth in every]).logsumexp(0))


def test_a_crf_draws_paths_as_often_as_they_are_likely():
    head, x = chain(), torch.randn(1, 2, SIZE)
    drawn = head.sample(head(x).expand(20_000, -1, -1))
    worth = torch.stack([worth for _, worth in paths(head, x[0])]).softmax(0)
    often = torch.bincount(drawn[:, 0] * 3 + drawn[:, 1], minlength=9) / 20_000
    close(often, worth, atol=0.02, rtol=0)


# Models


@each_encoder
@pytest.mark.parametrize("each", [True, False])
def test_labelers(name, each):
    model = Labeler(nn.Embedding(9, D), encoder(name), Categorical(SIZE, 5), each)
    target = torch.randint(5, (3, 6) if each else (3,))
    total, count, _ = LabelingObjective(model)(Batch(torch.randint(9, (3, 6)), MASKS["between"], target))
    assert total.isfinite() and count == (MASKS["between"].sum() if each else 3)


def test_a_generator_refuses_to_look_ahead():
    with pytest.raises(ValueError, match="causal"):
        Generator(nn.Embedding(9, D), encoder("gru-both").layer, Categorical(SIZE, 9))


@pytest.mark.parametrize("kind", [Normal, Bernoulli])
@each_plain
def test_one_sampler_serves_forecasts_and_music(name, kind):
    model, x = Generator(nn.Linear(5, D), decoder(name, *NOTHING), kind(SIZE, 5)), TARGETS[kind](2, 9)
    mask = lengths_to_mask(torch.tensor([9, 7]), 9)
    total, count, _ = GenerationObjective(model)(Batch.from_sequence(x, mask))
    assert total.isfinite() and count == 14
    steps = sample(model, model.head.sample, *model.prompt(x, mask, model.initial_state(2)))
    assert torch.stack(list(itertools.islice(steps, 4)), 1).shape == (2, 4, 5)


# Writing


@each_decoder
@torch.no_grad()
def test_prompts_of_mixed_lengths_continue_as_one_by_one(name):
    model = writer(name, "gru-both").eval()
    source = torch.randint(3, 12, (3, 5)), torch.tensor([[1] * 5, [0, 0, 1, 1, 1], [1, 1, 0, 0, 0]]).bool()
    y, state = torch.randint(3, 12, (3, 6)), model.initial_state(3, *source)
    for side in ("left", "right", "between"):
        together = greedy(model, *model.prompt(y, MASKS[side], state), steps=8, end=2)
        best = beam(model, *model.prompt(y, MASKS[side], state), BeamOptions(beam_size=3, steps=5, end=2))
        for row in range(3):
            one = y[row : row + 1, MASKS[side][row]]
            alone = model.prompt(one, torch.ones_like(one).bool(), select(state, torch.tensor([row])))
            assert [together[row].tokens] == [one.tokens for one in greedy(model, *alone, steps=8, end=2)]
            [found] = beam(model, *alone, BeamOptions(beam_size=3, steps=5, end=2))
            assert [h.tokens for h in best[row]] == [h.tokens for h in found]


@each_decoder
@torch.no_grad()
def test_a_beam_of_one_is_greedy(name):
    model = writer(name, "gru-both").eval()
    state = model.initial_state(3, torch.randint(3, 12, (3, 5)), lengths_to_mask(torch.tensor([5, 4, 2]), 5))
    last = torch.full((3, 1), 1)
    for [found], expected in zip(
        beam(model, last, state, BeamOptions(beam_size=1, steps=8, end=2)),
        greedy(model, last, state, steps=8, end=2),
        strict=True,
    ):
        assert found.tokens == expected.tokens
        close(found.logs, expected.logs)


@each_decoder
@torch.no_grad()
def test_a_score_is_the_sum_of_the_log_probabilities(name):
    """Read again in one piece, what was written has the probabilities that the ledger says."""
    model = writer(name, "gru-both").eval()
    source = torch.randint(3, 12, (2, 5)), lengths_to_mask(torch.tensor([5, 2]), 5)
    state, last = model.initial_state(2, *source), torch.full((2, 1), 1)
    for row, found in enumerate(beam(model, last, state, BeamOptions(beam_size=3, steps=6, end=2, length_penalty=0.7))):
        for tokens, logs, score, *_ in found:
            written = torch.tensor([[1, *tokens, 2][: len(logs) + 1]])
            gains = model(written[:, :-1], select(state, torch.tensor([row])))[0].log_softmax(-1)
            close(torch.tensor(logs), gains[0].gather(1, written[0, 1:, None])[:, 0])
            assert abs(score - sum(logs) / len(logs) ** 0.7) < 1e-6


def test_draws_are_as_frequent_as_they_are_likely_and_the_seed_decides():
    logits = torch.tensor([0.0, 1.0, -1.0, 0.5])
    counts = {}
    for seed in (1, 1, 2):
        found = sample_tokens(
            lambda last, state: (logits.expand(20_000, 1, 4), ()),
            Sampling(temperature=2.0, seed=seed),
            torch.zeros(20_000, 1),
            (),
            steps=1,
            end=9,
        )
        counts.setdefault(seed, []).append(torch.bincount(torch.tensor([one.tokens[0] for one in found])))
    close(counts[1][0] / 20_000, (logits / 2).softmax(0), atol=0.02, rtol=0)
    assert torch.equal(*counts[1]) and not torch.equal(counts[1][0], counts[2][0])


def brute_force(model, state):
    """The best way to write up to three of four tokens, 2 being the end."""
    found = {}
    for tokens in itertools.product(range(4), repeat=3):
        gains = model(torch.tensor([[1, *tokens[:-1]]]), state)[0][0].log_softmax(-1)
        kept = tokens[: tokens.index(2) + 1] if 2 in tokens else tokens
        found[kept] = sum(gains[time, token].item() for time, token in enumerate(kept))
    return max(found.items(), key=lambda pair: pair[1])


@each_decoder
@torch.no_grad()
def test_a_wide_beam_finds_the_best(name):
    model = writer(name, "gru-both", vocabulary=4).eval()
    state = model.initial_state(2, torch.randint(4, (2, 3)), lengths_to_mask(torch.tensor([3, 2]), 3))
    found = beam(model, torch.ones(2, 1).long(), state, BeamOptions(beam_size=64, steps=3, end=2, length_penalty=0.0))
    for row in range(2):
        tokens, score = brute_force(model, select(state, torch.tensor([row])))
        assert found[row][0].tokens == [token for token in tokens if token != 2]
        assert abs(found[row][0].score - score) < 1e-4


# Training


@each_plain
def test_windows_carry_the_state_and_cut_the_gradient(name):
    """Together they lose what the whole loses; each gets the gradient of the whole with the past held fixed."""
    objective = GenerationObjective(talker(name).eval()).double()
    batch = Batch.from_sequence(torch.randint(12, (3, 10)), lengths_to_mask(torch.tensor([10, 7, 4]), 10))
    whole, count, end = objective(batch)
    state, total, number = None, 0.0, 0
    for start, window in zip(range(0, 9, 4), batch.windows(4), strict=True):
        assert window.starts_sequence == (start == 0)
        loss, n, after = objective(window, state)
        if state is not None:
            before = objective.model.features(
                batch.inputs[:, :start], objective.model.initial_state(3), batch.mask[:, :start]
            )[1]
            close(gradient(objective, objective(window, detach(before))[0]), gradient(objective, loss))
            map_state(lambda t: t if not t.requires_grad else pytest.fail("the graph goes on"), state)
        total, number, state = total + loss.item(), number + n, detach(after)
    close(torch.tensor(total).double(), whole.detach())
    assert number == count
    y = torch.randint(12, (3, 2))
    close(objective.model(y, state)[0], objective.model(y, end)[0])


def gradient(objective, loss):
    return torch.autograd.grad(loss, list(objective.parameters()), retain_graph=True, allow_unused=True)


def training_batch():
    torch.manual_seed(1)
    y, source = torch.randint(3, 12, (4, 7)), torch.randint(3, 12, (4, 5))
    masks = lengths_to_mask(torch.tensor([7, 3, 5, 4]), 7), lengths_to_mask(torch.tensor([5, 2, 1, 4]), 5)
    return Batch.from_sequence(y, masks[0], (source, masks[1]))


def rows(batch, start, stop):
    return Batch(*(part[start:stop] for part in batch[:3]), tuple(part[start:stop] for part in batch.source))


def update(objective, optimizer, batches):
    """One step on these batches: their sum, divided once by the count over all batches and processes."""
    optimizer.zero_grad()
    total = torch.zeros(2)
    for batch in batches:
        loss, count, _ = objective(batch)
        loss.backward()
        total += torch.stack([loss.detach(), count])
    processes = 1
    if distributed.is_initialized():
        distributed.all_reduce(total)
        processes = distributed.get_world_size()
    for parameter in objective.parameters():
        if parameter.grad is not None:
            parameter.grad *= processes / total[1]  # DDP has averaged over the processes
    optimizer.step()
    return (total[0] / total[1]).item()


def trained(objective, batches):
    optimizer = torch.optim.SGD(objective.parameters(), 0.1)
    losses = torch.tensor([update(objective, optimizer, batches) for _ in range(3)])
    return losses, [p.detach() for p in objective.parameters()]


@each_decoder
def test_accumulating_is_the_same_as_one_batch(name):
    model, batch = writer(name, "lstm-both").eval(), training_batch()  # nothing random inside
    whole = trained(GenerationObjective(deepcopy(model)), [batch])
    close(trained(GenerationObjective(model), [rows(batch, 0, 1), rows(batch, 1, 4)]), whole, atol=1e-6, rtol=1e-5)


def one_of_two(rank, file, name, found):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    objective = DistributedDataParallel(GenerationObjective(writer(name, "lstm-both")))
    losses, parameters = trained(objective, [rows(training_batch(), *((0, 1), (1, 4))[rank])])
    if rank == 0:
        save_file({"losses": losses, **{str(n): p for n, p in enumerate(parameters)}}, found)
    distributed.destroy_process_group()


@pytest.mark.parametrize("name", ["lstm-bahdanau-additive", "transformer-pre"])
def test_two_processes_are_one(name, tmp_path):
    torch.manual_seed(0)
    losses, parameters = trained(GenerationObjective(writer(name, "lstm-both")), [training_batch()])
    arguments = tmp_path / "meet", name, tmp_path / "found"
    multiprocessing.start_processes(one_of_two, arguments, nprocs=2, start_method="fork")  # which imports nothing anew
    ours = {"losses": losses, **{str(n): p for n, p in enumerate(parameters)}}
    close(load_file(tmp_path / "found"), ours, atol=1e-6, rtol=0)


@each_decoder
def test_a_few_examples_are_learned_by_heart(name):
    objective, batch = GenerationObjective(writer(name, "gru-both")).eval(), training_batch()
    optimizer = torch.optim.Adam(objective.parameters(), 0.02)
    steps = range(200 if name == "rnn-sigmoid" else 80)  # whose slope is a quarter at most
    assert any(update(objective, optimizer, [batch]) < 0.1 for _ in steps)
