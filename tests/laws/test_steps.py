"""What single steps are made of: native products and the rest against PyTorch's, and what a state holds."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from seqloom.layers.cache import LEAST, Cache
from seqloom.layers.fast import native_steps
from seqloom.layers.fast.native import library
from seqloom.layers.fast.steps import product
from seqloom.layers.quantization import quantize_weight, quantize_weights, round_rows, use_eight_bits
from seqloom.layers.state import SharedLeaf, repeat, select, walk_state
from seqloom.search import BeamOptions, beam
from seqloom.search.choosing import find_top_log_probabilities

from .zoo import ENCODERS, MASKS, SIZE, D, poisoned, talker, writer

close = torch.testing.assert_close
each_kind = pytest.mark.parametrize("dtype", [torch.float, torch.double])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# --- native parts ---


@each_kind
@pytest.mark.parametrize("rows", [*range(1, 15), 32])
@pytest.mark.parametrize("outputs", [1, 15, 16, 64, 65, 200])
def test_a_native_product_is_the_product(rows, outputs, dtype, native):
    weight, bias = torch.randn(outputs, 37, dtype=dtype), torch.randn(outputs, dtype=dtype)
    x = torch.randn(rows, 50, dtype=dtype)[:, 5:42]  # rows that stand further apart than they are wide
    close(native_steps.product(weight, bias)(x), F.linear(x, weight, bias))
    close(native_steps.product(weight, None)(x), F.linear(x, weight))


def test_a_large_product_is_shared_out_among_threads(native):
    weight, x, before = torch.randn(700, 300), torch.randn(9, 300), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        close(native_steps.product(weight, None)(x), F.linear(x, weight), atol=1e-4, rtol=1e-4)
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def test_weights_are_laid_out_again_when_they_change(native):
    linear, x = nn.Linear(8, 24), torch.randn(2, 8)
    first = native_steps.product(linear.weight, linear.bias)(x)
    assert native_steps.get_layout(linear.weight, linear.bias, False) is native_steps.get_layout(
        linear.weight, linear.bias, False
    )
    linear.weight.mul_(2)
    linear.bias.add_(1)
    found = native_steps.product(linear.weight, linear.bias)(x)
    close(found, linear(x))
    assert not torch.equal(found, first)


CHANGES = {
    "weights in place": lambda model: [weight.mul_(1.5) for weight in model.decoder.parameters()],
    "a tensor in a parameter": lambda model: [setattr(w, "data", w * 1.5) for w in model.decoder.parameters()],
    "a norm": lambda model: setattr(model.decoder.layers[2], "norm", nn.RMSNorm(SIZE)),
    "another layer": lambda model: model.decoder.layers.__setitem__(2, talker("transformer-pre").decoder.layers[2]),
    "precision": lambda model: model.double(),
    "device and back": lambda model: model.to("meta").to_empty(device="cpu").load_state_dict(KEPT),
}
KEPT: dict = {}


@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_a_plan_of_layers_does_not_outlive_what_it_was_made_from(change, native):
    model = talker("transformer-post").eval()
    KEPT.update(talker("transformer-post").state_dict())
    last = torch.tensor([[1], [5]])
    for act in (lambda model: None, CHANGES[change]):
        act(model)
        model.eval()
        for _ in range(2):
            close(model.stepper()(last, model.initial_state(2))[0], model(last, model.initial_state(2))[0])


@torch.no_grad()
def test_two_searches_by_one_plan_do_not_disturb_each_other(native):
    model = talker("transformer-post").eval()
    one, two = model.stepper(), model.stepper()
    (first, state), (_, other) = (step(torch.tensor([[1]]), model.initial_state(1)) for step in (one, two))
    expected = model(torch.tensor([[4]]), model(torch.tensor([[1]]), model.initial_state(1))[1])[0]
    two(torch.tensor([[9]]), other)
    close(one(torch.tensor([[4]]), state)[0], expected)


@each_kind
@torch.no_grad()
def test_native_gelu_is_right_everywhere(dtype, native):
    x = torch.cat([torch.linspace(-12, 12, 4001, dtype=dtype), torch.tensor([0.0, -100, 100, 1e-20], dtype=dtype)])
    limit = 1e-12 if dtype is torch.double else 1e-6
    close(native_steps.gelu(dtype)(x.clone()), F.gelu(x), atol=limit, rtol=limit)


@each_kind
@pytest.mark.parametrize(("size", "count"), [(3, 3), (16, 1), (1000, 5), (1003, 64), (70, 65)])
def test_the_leading_tokens_are_those_of_all_probabilities(size, count, dtype, native):
    logits = 5 * torch.randn(4, 1, size, dtype=dtype)
    values, tokens = find_top_log_probabilities(logits, count)
    expected = logits[:, 0].log_softmax(-1).topk(count)
    close(values, expected[0])
    assert torch.equal(tokens, expected[1])


def test_of_equally_likely_tokens_the_first_leads_and_no_number_is_told_of(native):
    assert find_top_log_probabilities(torch.zeros(1, 1, 40), 3)[1].tolist() == [[0, 1, 2]]
    logits = torch.zeros(2, 1, 40)
    logits[1, 0, 7] = torch.nan
    values, _ = find_top_log_probabilities(logits, 2)
    assert values[0].isfinite().all() and values[1].isnan().all()


@pytest.mark.parametrize("side", MASKS)
@pytest.mark.parametrize("name", [name for name in ENCODERS if name.startswith("transformer")])
@torch.no_grad()
def test_a_native_encoder_is_the_encoder(name, side, native):
    model = writer("lstm-luong-dot", name).eval()
    x, mask = torch.randn(3, 6, D), MASKS[side]
    expected = model.source.encoder(x, mask)
    found = model.source.encoder.encode(poisoned(x, mask), mask)
    close(tuple(found[:3]), tuple(expected[:3]), atol=1e-5, rtol=1e-4)


# --- eight bits ---


@each_kind
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 7, 33])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (33, 70), (64, 200), (7, 129)])
def test_a_product_by_bytes_is_that_of_rounded_rows_and_weights(rows, inputs, outputs, dtype, kernels):
    weight, bias = torch.randn(outputs, inputs, dtype=dtype), torch.randn(outputs, dtype=dtype)
    x = torch.randn(rows, inputs + 3, dtype=dtype)[:, 1 : inputs + 1]
    if outputs > 3:
        weight[3] = 0  # nothing to scale by
    whole, scale = quantize_weight(weight)
    weight = whole * scale[:, None]
    with use_eight_bits(True):
        found = product(weight, bias)(x)
    close(found, F.linear(round_rows(x), weight, bias), atol=1e-12 if dtype is torch.double else 1e-4, rtol=1e-5)


def test_products_by_bytes_are_the_sums_of_whole_numbers(native):
    """In double precision the sums can be worked out one by one, and nothing is rounded on the way."""
    whole = torch.randint(-127, 128, (70, 1000))
    whole[:, 0] = 127  # so that the scale is 1
    x = torch.randint(-127, 128, (5, 1000))
    x[:, 0] = 127
    with use_eight_bits(True):
        found = native_steps.product(whole.double(), None)(x.double())
    assert torch.equal(found, (x @ whole.T).double())


def test_a_row_by_bytes_does_not_depend_on_its_neighbors(native):
    weight, x = torch.randn(70, 33), torch.randn(9, 33)
    x[3], x[4, 5], x[5, 6] = 0, torch.nan, torch.inf  # nothing to scale by, and no numbers
    with use_eight_bits(True):
        change = native_steps.product(weight, None)
    together, apart = change(x), torch.cat([change(row[None]) for row in x])
    assert torch.equal(together.nan_to_num(), apart.nan_to_num())
    assert together[3].eq(0).all() and together[4:6].isnan().all() and together[[0, 1, 2, 6, 7, 8]].isfinite().all()


@each_kind
def test_rounded_rows_are_as_near_as_eight_bits_can_be(dtype):
    x = torch.randn(4, 50, dtype=dtype)
    x[2] = 0
    assert ((round_rows(x) - x).abs() <= x.abs().amax(1, keepdim=True) / 127 / 2 * 1.001).all()
    close(round_rows(round_rows(x)), round_rows(x))


def test_rounding_twice_is_rounding_once():
    linear = nn.Linear(50, 40)
    quantize_weights(linear)
    once = linear.weight.clone()
    quantize_weights(linear)
    close(linear.weight, once, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("name", ["lstm", "gru", "transformer-post", "transformer-swiglu"])
@torch.no_grad()
def test_a_model_of_eight_bits_writes_alike_with_and_without_native_kernels(name, native):
    """And near to what its rounded weights say: rows are rounded too."""
    model = talker(name).double().eval()
    last, before = torch.tensor([[1], [5]]), model(torch.tensor([[1], [5]]), model.initial_state(2))[0]
    model.quantize_weights()
    read, _ = model(last, model.initial_state(2))
    with library.use_native(False):
        plain = model.stepper()
    fast, state, slow = model.stepper(), model.initial_state(2), model.initial_state(2)
    for _ in range(3):
        (found, state), (expected, slow) = fast(last, state), plain(last, slow)
        close(found, expected, atol=1e-9, rtol=1e-9)
    close(fast(last, model.initial_state(2))[0], read, atol=0.1, rtol=0.1)
    assert not torch.allclose(read, before, atol=1e-5)


# --- what a state holds ---


def held(state) -> int:
    """Bytes, nothing counted twice."""
    found: dict[int, int] = {}

    def note(tensor):
        found[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    def leaf(one):
        if isinstance(one, Cache):
            for tensor in (one.store.steps, one.store.valid):
                note(tensor) if tensor is not None else None
        else:
            assert isinstance(one, SharedLeaf)
            list(map(note, one.tensors))
        return one

    walk_state(note, leaf, state)
    return sum(found.values())


def room(length: int) -> int:
    """Steps that a cache of so many steps, read one by one, has room for."""
    found = LEAST
    while found < length:
        found = 2 * (found + 1)
    return found


@pytest.mark.parametrize(("length", "beams"), [(1, 1), (16, 3), (17, 3), (60, 2)])
@torch.no_grad()
def test_memory_is_what_the_formula_says(length, beams):
    """As `docs/generating.md` states it."""
    rows, source, layers = 2, 5, 2
    model = writer("transformer-pre", "gru-both").eval()  # two layers of SIZE
    state = model.initial_state(rows, torch.randint(3, 12, (rows, source)), torch.ones(rows, source, dtype=torch.bool))
    state, step = repeat(state, beams), model.stepper()
    for _ in range(length):
        _, state = step(torch.ones(rows * beams, 1).long(), state)
    own = 4 * layers * rows * beams * room(length) * 2 * SIZE
    memory = 4 * layers * rows * source * 2 * SIZE + rows * source
    assert held(state) == own + memory + 8 * rows * beams  # and a count of what was read
    assert length <= room(length) <= max(LEAST, 2 * length)


@torch.no_grad()
def test_reordering_copies_what_is_filled_and_keeps_the_room():
    cache = Cache.of(torch.zeros(3, 0, 4), torch.zeros(3, 0, dtype=torch.bool)).append(torch.randn(3, 5, 4), None)
    cache.store.steps[:, 5:] = torch.nan
    moved = select(cache, torch.tensor([2, 0, 0, 1]))
    close(moved.read()[0], cache.read()[0][[2, 0, 0, 1]])
    assert moved.store.steps.shape[1] == cache.store.steps.shape[1] > 5
    grown = moved.append(torch.ones(4, 1, 4), None)
    assert grown.store is moved.store


@torch.no_grad()
def test_beams_do_not_repeat_their_source():
    """What is projected of a source is the same tensor from the first step of a beam to its last."""
    model = writer("transformer-pre", "gru-both").eval()
    state = model.initial_state(2, torch.randint(3, 12, (2, 5)), torch.ones(2, 5, dtype=torch.bool))
    held_first = {leaf.tensors[0].data_ptr() for leaf in shared_of(state)}
    kept = []

    def step(last, state):
        kept.append({leaf.tensors[0].data_ptr() for leaf in shared_of(state)})
        return model.stepper()(last, state)

    beam(step, torch.ones(2, 1).long(), state, BeamOptions(beam_size=4, steps=5, end=None))
    assert len(kept) == 5 and all(places == held_first for places in kept)


def shared_of(state) -> list[SharedLeaf]:
    found = []
    walk_state(lambda tensor: tensor, lambda leaf: found.append(leaf) or leaf, state)
    return [leaf for leaf in found if isinstance(leaf, SharedLeaf)]
