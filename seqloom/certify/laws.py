"""What every layer has to keep, tried on one that may be anybody's: from the smallest case on, so that the first that
fails is the smallest.

A law gives its cases, each in words and with a way to measure how far the layer is from keeping it. `seqloom check`
tries them on a person's own layers, the tests on every layer of the library.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..layers import recording
from ..layers.base import Layer, Memory
from ..layers.cell import Cell
from ..layers.embeddings import TokenEmbedding
from ..layers.heads import Categorical
from ..layers.padding import gather_steps, last_step
from ..layers.recurrent import Recurrent, ZeroState
from ..layers.state import State, map_state, repeat, select
from .certificate import EXACT, STENCIL, compare, compare_with_differences, measure_gap, stir, use_reproducible_float64

SIZE = 6  # features of what is read, written and remembered
ROWS, STEPS = 3, 4  # the largest batch and length that are tried
SYMBOLS = 40  # of the toy vocabulary
SURE = 0.5  # nats that the loss of a new model may be away from that of guessing
LEARNED = 0.25  # nats a symbol at which a few sequences are known by heart
UPDATES, RATE, KEPT = 400, 0.05, 8  # steps of training, their size, and the sequences to learn
LOOK = 20  # steps between looks at the loss

Case = tuple[str, Callable[[], float]]  # in words, and how far off it is


def draw_memory() -> Memory:
    """What a layer may look at, a row each."""
    values = torch.randn(ROWS, 3, SIZE)
    return Memory(values, torch.ones(ROWS, 3, dtype=torch.bool), values.mean(1), ((torch.randn(ROWS, SIZE),),))


@dataclass(frozen=True)
class Subject:
    """A cell or a layer that is tried, by how it is made, with the size of what it reads and the memory it looks at."""

    name: str
    make: Callable[[], nn.Module]
    inputs: int = SIZE
    memory: Callable[[], Memory] = draw_memory

    def layer(self) -> Layer:
        """With parameters at no special value, as it is asked for answers."""
        return stir(self.plain_layer())

    def plain_layer(self) -> Layer:
        part = self.make()
        return Recurrent(part, ZeroState()) if isinstance(part, Cell) else part  # type: ignore[return-value]


class Finding(NamedTuple):
    """Whether a law holds; nothing where it is not claimed."""

    subject: str
    law: str
    holds: bool | None
    gap: float | None
    limit: float | None
    case: str  # the smallest that fails, or why nothing is claimed


class Law(NamedTuple):
    name: str
    limit: float
    cases: Callable[[Subject], Iterator[Case]]


class NotClaimed(Exception):
    """A law that says nothing about a subject, and why."""


def try_law(law: Law, subject: Subject) -> Finding:
    """The first case that fails or, if none does, the largest gap. What a person's own code raises is a failure."""
    largest, words = 0.0, "building it"
    with use_reproducible_float64(), torch.enable_grad():
        try:
            for words, measure in law.cases(subject):
                gap = measure()
                if not gap <= law.limit:
                    return Finding(subject.name, law.name, False, gap, law.limit, words)
                largest = max(largest, gap)
        except NotClaimed as silence:
            return Finding(subject.name, law.name, None, None, None, str(silence))
        except Exception as error:
            reason = "".join(str(error).splitlines()[:1])[:200]
            return Finding(subject.name, law.name, False, None, law.limit, f"{words}: {type(error).__name__}: {reason}")
    return Finding(subject.name, law.name, True, largest, law.limit, "")


# --- reading ------------------------------------------------------------------------------------------------------


class Sample:
    """A layer with something to read: the same rows, alone or beside others."""

    def __init__(self, subject: Subject) -> None:
        self.net, self.memory = subject.layer(), subject.memory()
        self.x = torch.randn(ROWS, STEPS + 1, subject.inputs)

    def start(self, *rows: int) -> State:
        """The state of these rows, each with a memory of its own for layers that look at one."""
        return self.net.initial_state(len(rows), select(self.memory, torch.tensor(rows)))

    def read(self, x: Tensor, *rows: int, mask: Tensor | None = None) -> tuple[Tensor, State]:
        return self.net(x, self.start(*rows), mask)


def keeps_shapes(subject: Subject) -> Iterator[Case]:
    sample = Sample(subject)
    for rows, steps in product((1, 2, 3), (1, 2, 4)):

        def wrong(rows: int = rows, steps: int = steps) -> float:
            y, state = sample.read(sample.x[:rows, :steps], *range(rows))
            firsts: list[int] = []
            map_state(lambda tensor: firsts.append(tensor.shape[0]) or tensor, state)  # type: ignore[func-returns-value]
            fits = y.dim() == 3 and y.shape[:2] == (rows, steps) and all(first == rows for first in firsts)
            return 0.0 if fits else math.inf

        yield f"{rows} rows of {steps} elements: the output is (rows, elements, …), each state (rows, …)", wrong


def reads_in_pieces(subject: Subject) -> Iterator[Case]:
    sample = Sample(subject)
    if not sample.net.causal:
        raise NotClaimed("it is not causal: it reads whole sequences")
    for steps in range(2, STEPS + 1):
        for cut in range(1, steps):

            def gap(steps: int = steps, cut: int = cut) -> float:
                x, more = sample.x[:2, :steps], sample.x[:2, STEPS:]
                whole, last = sample.read(x, 0, 1)
                first, state = sample.read(x[:, :cut], 0, 1)
                second, state = sample.net(x[:, cut:], state)
                pieces = torch.cat([first, second, sample.net(more, state)[0]], 1)
                return measure_gap([pieces], [torch.cat([whole, sample.net(more, last)[0]], 1)])

            yield f"{steps} elements, read as {cut} and {steps - cut}", gap


def knows_no_future(subject: Subject) -> Iterator[Case]:
    sample = Sample(subject)
    if not sample.net.causal:
        raise NotClaimed("it is not causal: it may look ahead")
    for steps in range(2, STEPS + 1):
        for place in range(1, steps):

            def gap(steps: int = steps, place: int = place) -> float:
                x = sample.x[:1, :steps]
                other = torch.cat([x[:, :place], x[:, place:] + 1], 1)
                return measure_gap([sample.read(other, 0)[0][:, :place]], [sample.read(x, 0)[0][:, :place]])

            yield f"{steps} elements, the last {steps - place} changed: the first {place} must not", gap


def keeps_rows_apart(subject: Subject) -> Iterator[Case]:
    sample = Sample(subject)
    for rows, steps in product((2, 3), (1, 2, 4)):

        def gap(rows: int = rows, steps: int = steps) -> float:
            together, _ = sample.read(sample.x[:rows, :steps], *range(rows))
            alone = [sample.read(sample.x[row : row + 1, :steps], row)[0] for row in range(rows)]
            return measure_gap([together], [torch.cat(alone)])

        yield f"{rows} rows of {steps} elements, together and one by one", gap
    for order in ([1], [2, 0, 0], [2, 1, 0, 0]) if sample.net.causal else ():
        yield f"states of 3 rows, then of rows {order} of them", partial(measure_order_gap, sample, torch.tensor(order))


def measure_order_gap(sample: Sample, order: Tensor) -> float:
    """Rows in another order, as they are and twice each, as a beam has them, against the rows as they were."""
    _, state = sample.read(sample.x[:, :STEPS], *range(ROWS))
    more = sample.x[:, STEPS:]
    expected, _ = sample.net(more, state)
    beams = torch.stack([order * 2 + 1, order * 2], 1).flatten()
    chosen, _ = sample.net(more[order], select(state, order))
    twice, _ = sample.net(more[beams // 2], select(repeat(state, 2), beams))
    return measure_gap([chosen, twice], [expected[order], expected[beams // 2]])


def ignores_padding(subject: Subject) -> Iterator[Case]:
    """Wherever it stands, and even if it is not a number; where it stands, the output is zero. Gradients are finite."""
    sample = Sample(subject)
    for steps in range(1, STEPS + 1):
        masks = sorted(product((True, False), repeat=steps), key=lambda one: -sum(one))
        read = cache(partial(read_padded, sample, masks))  # once for all of these, by the first that is asked
        for row, there in enumerate(masks):
            words = " ".join(str(int(one)) for one in there)
            yield f"padding (0) at {words}", partial(measure_padding_gap, sample, read, row, there)


def read_padded(sample: Sample, masks: Sequence[Sequence[bool]]) -> tuple[list[Tensor], bool]:
    """One sequence with each of these masks, beside another without padding: outputs, those of an element behind it
    and those of reading it in two pieces, where there is a next piece; and whether all gradients are finite."""
    rows, steps = (*[0] * len(masks), 1), len(masks[0])
    mask = torch.tensor([*masks, [True] * steps])
    poisoned = sample.x[list(rows), :steps].masked_fill(~mask[..., None], torch.nan)
    y, state = sample.read(poisoned, *rows, mask=mask)
    outputs = [y]
    if sample.net.causal:
        half = (steps + 1) // 2
        outputs.append(sample.net(sample.x[list(rows), STEPS:], state)[0])
        first, state = sample.read(poisoned[:, :half], *rows, mask=mask[:, :half])
        outputs.append(
            first if half == steps else torch.cat([first, sample.net(poisoned[:, half:], state, mask[:, half:])[0]], 1)
        )
    return outputs, has_finite_gradients(sample.net, outputs)


def measure_padding_gap(
    sample: Sample, read: Callable[[], tuple[list[Tensor], bool]], row: int, there: Sequence[bool]
) -> float:
    """A row with padding, against the same elements without: what comes after it is expected the same, and so is
    padding in pieces."""
    outputs, finite = read()
    kept, alone = torch.tensor(there), sample.start(0)
    y, *others = (output[row] for output in outputs)
    expected = torch.zeros_like(y)
    if kept.any():
        shown, alone = sample.net(sample.x[:1, : len(there)][:, kept], alone)
        expected[kept] = shown[0]
    wanted = [expected, sample.net(sample.x[:1, STEPS:], alone)[0][0], y] if sample.net.causal else [expected]
    if finite or read_padded(sample, [there])[1]:  # whose gradients are not finite is found by reading it alone
        return measure_gap([y, *others], wanted)
    return math.inf


def has_finite_gradients(net: Layer, outputs: Sequence[Tensor]) -> bool:
    """Of every parameter that the outputs depend on; true where gradients are not recorded."""
    total = torch.stack([output.sum() for output in outputs]).sum()
    used = [one for one in net.parameters() if one.requires_grad]
    if not total.requires_grad or not used:
        return True
    slopes = torch.autograd.grad(total, used, retain_graph=True, allow_unused=True)
    return all(bool(slope.isfinite().all()) for slope in slopes if slope is not None)


def is_not_changed_by_watching(subject: Subject) -> Iterator[Case]:
    sample = Sample(subject)
    for steps in (1, 2, 4):

        def gap(steps: int = steps) -> float:
            plain, _ = sample.read(sample.x[:2, :steps], 0, 1)
            with recording(sample.net):
                watched, _ = sample.read(sample.x[:2, :steps], 0, 1)
            return measure_gap([plain], [watched])

        yield f"{steps} elements, with and without a recording", gap


# --- equations and slopes -----------------------------------------------------------------------------------------


def follows_its_equations(subject: Subject) -> Iterator[Case]:
    """`equations(self, x, entries)`, if a cell has it, is one step as it is written on paper, x being the raw input."""
    cell = subject.make()
    stated = getattr(cell, "equations", None)
    if stated is None or not isinstance(cell, Cell):
        raise NotClaimed("no equations are stated: a method equations(self, x, entries) of a cell would")
    stir(cell)
    x = torch.randn(2, STEPS, SIZE, requires_grad=True)
    for steps in range(1, STEPS + 1):

        def gap(steps: int = steps) -> float:
            entries = tuple(torch.zeros(2, size) for size in cell.sizes)
            ours, _ = cell.scan(x[:, :steps], entries)
            expected = []
            for place in range(steps):
                entries = tuple(stated(x[:, place], entries))
                expected.append(entries[0])
            gaps = compare([ours], [torch.stack(expected, 1)], [x])
            return max(gaps.value or 0.0, gaps.gradient or 0.0)

        yield f"{steps} steps, value and gradient", gap


def has_measured_slopes(subject: Subject) -> Iterator[Case]:
    """Of three draws the best counts: a function may have kinks, and one of them may lie in the way."""

    def gap() -> float:
        gaps = []
        for _ in range(3):
            sample = Sample(subject)
            x = sample.x[:2, :3].clone().requires_grad_()
            used = [one for one in sample.net.parameters() if one.requires_grad]
            y = sample.read(x, 0, 1)[0]
            slopes = torch.autograd.grad(y.sum(), [x, *used], allow_unused=True)
            leaves = [one for one, slope in zip([x, *used], slopes, strict=True) if slope is not None]
            gaps.append(compare_with_differences(lambda: [sample.read(x, 0, 1)[0]], leaves).gradient or 0.0)  # noqa: B023
        return min(gaps)

    yield "2 rows of 3 elements, along a random line through the input and each parameter", gap


# --- learning -----------------------------------------------------------------------------------------------------


class Toy(nn.Module):
    """Symbols in, the layer, and what comes after each symbol; a layer that looks ahead tells the sum of all."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.embed, self.net = TokenEmbedding(SYMBOLS, SIZE), subject.plain_layer()
        width = self.net(torch.zeros(1, 1, SIZE), self.start(1))[0].shape[2]
        self.head = Categorical(width, SYMBOLS)

    def start(self, batch: int) -> State:
        values = torch.linspace(-1, 1, 3 * SIZE).view(1, 3, SIZE).expand(batch, -1, -1)
        mask = torch.ones(batch, 3, dtype=torch.bool)
        return self.net.initial_state(batch, Memory(values, mask, values.mean(1), ((values[:, 0],),)))

    def loss(self, symbols: Tensor) -> Tensor:
        """A symbol, expected from those before it; by what looks ahead, the last one from the others."""
        mask = torch.ones_like(symbols[:, :-1], dtype=torch.bool)
        y, _ = self.net(self.embed(symbols[:, :-1]), self.start(len(symbols)), mask)
        if self.net.causal:
            total, count = self.head.loss(y, symbols[:, 1:])
        else:
            total, count = self.head.loss(gather_steps(y, last_step(mask)), symbols[:, -1])
        return total / count


def draw_sequences(rows: int, length: int) -> Tensor:
    """All of them begin with a symbol of their own: else nobody could tell them apart."""
    return torch.cat([torch.arange(rows)[:, None], torch.randint(SYMBOLS, (rows, length))], 1)


def begins_by_guessing(subject: Subject) -> Iterator[Case]:
    def gap() -> float:
        with torch.no_grad():
            losses = [Toy(subject).loss(draw_sequences(SYMBOLS, 8)) for _ in range(5)]
        return abs(float(torch.stack(losses).mean()) - math.log(SYMBOLS))

    yield f"the loss of new models is ln {SYMBOLS} = {math.log(SYMBOLS):.2f} nats", gap


def learns_by_heart(subject: Subject) -> Iterator[Case]:
    """A cell has to remember: the same symbol is followed by different ones. Of other layers less is asked."""

    def gap() -> float:
        toy = Toy(subject)
        remembers = isinstance(toy.net, Recurrent)
        symbols = draw_sequences(KEPT, 4) if remembers else torch.randperm(SYMBOLS).view(KEPT, -1)
        optimizer = torch.optim.Adam(toy.parameters(), RATE)
        for update in range(1, UPDATES + 1):
            optimizer.zero_grad()
            toy.train().loss(symbols).backward()
            optimizer.step()
            if update % LOOK == 0 and (known := evaluate_loss(toy, symbols)) <= LEARNED:
                return known
        return evaluate_loss(toy, symbols)

    yield f"{KEPT} sequences of 5 symbols, {UPDATES} updates: nats a symbol", gap


@torch.no_grad()
def evaluate_loss(toy: Toy, symbols: Tensor) -> float:
    return float(toy.eval().loss(symbols))


READING = (
    Law("shapes, batch first", 0.0, keeps_shapes),
    Law("padding changes nothing", EXACT, ignores_padding),
    Law("the future does not change the past", EXACT, knows_no_future),
    Law("reading in pieces = reading at once", EXACT, reads_in_pieces),
    Law("rows do not change each other", EXACT, keeps_rows_apart),
    Law("watching changes nothing", EXACT, is_not_changed_by_watching),
)
LAWS = (
    *READING,
    Law("stated equations", EXACT, follows_its_equations),
    Law("finite differences", STENCIL, has_measured_slopes),
    Law("loss ln V at the start", SURE, begins_by_guessing),
    Law("learned by heart", LEARNED, learns_by_heart),
)
