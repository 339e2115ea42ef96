"""Recurrent cells beside PyTorch's own layers: training steps, unequal lengths, single steps, long sequences, memory.

Each ratio is the peer's time (or memory) divided by ours: above 1 we are better; beside it stands the least it should
be. `python benchmarks/cells.py [training] [lengths] [step] [long] [memory] [1] [2] [plain] [quick] [CELL …]`:
without words, all sections and cells, with one thread and with two; `page` writes the tables into docs/benchmarks.md.
"""

import sys
from collections.abc import Callable

import torch
from _page import describe, write
from _timing import ROUNDS, best, chosen, megabytes, most, peak, table, threads
from torch import Tensor, nn

from seqloom.layers.cells import CELLS, Cell
from seqloom.layers.fast.native import library
from seqloom.layers.padding import lengths_to_mask
from seqloom.layers.recurrent import recurrent_encoder

SHAPES = ((32, 64, 128), (32, 64, 256), (64, 100, 512))
PEERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
RIVALS = ("gru-before", "peephole", "coupled", "lstm-normed", "peephole-full")  # PyTorch has none: beside nn.LSTM
NAMES = chosen((*PEERS, *RIVALS))
PLAIN = "plain" in sys.argv
MARKS = {"lstm": (1, 1, 1), "peephole-full": (1 / 1.6,) * 3}  # at the three shapes
MARKS |= dict.fromkeys(("gru", "rnn"), (1.2, 1.1, 1) if PLAIN else (1.5, 1.3, 1.1))
MARKS |= dict.fromkeys(("gru-before", "peephole", "coupled", "lstm-normed"), (0.8,) * 3)


def training(read: Callable[[Tensor], Tensor], module: nn.Module, x: Tensor) -> Callable[[], None]:
    """One step: forwards, backwards; the gradients of all weights and of the input."""

    def act() -> None:
        module.zero_grad()
        x.grad = None
        read(x).square().sum().backward()

    return act


def reading(cell: Cell, batch: int, mask: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    first = tuple(torch.zeros(batch, size) for size in cell.sizes)
    return lambda x: cell.scan(x, first, mask)[0]


def peer_of(name: str, size: int, x: Tensor) -> Callable[[], None]:
    peer = PEERS.get(name, nn.LSTM)(size, size, batch_first=True)
    return training(lambda x: peer(x)[0], peer, x)


def packed(name: str, size: int, x: Tensor, lengths: Tensor) -> Callable[[], None]:
    """The peer over packed rows, and what it says padded again."""
    peer = PEERS[name](size, size, batch_first=True)

    def read(x: Tensor) -> Tensor:
        rows = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(peer(rows)[0], batch_first=True, total_length=x.shape[1])[0]

    return training(read, peer, x)


def operations(cell: nn.Module, batch: int, time: int) -> float:
    """The floating-point operations of the matrix products of one training step: forwards once, backwards twice."""
    return 6.0 * batch * time * sum(weight.numel() for weight in cell.parameters() if weight.dim() == 2)


def training_rows(top: float) -> list[list[str]]:
    rows = []
    for number, (batch, time, size) in enumerate(SHAPES):
        x = torch.randn(batch, time, size, requires_grad=True)
        for name in NAMES:
            cell = CELLS[name](size, size)
            ours, theirs = best([training(reading(cell, batch), cell, x), peer_of(name, size, x)])
            share, mark = operations(cell, batch, time) / ours / top, MARKS[name][number]
            ratio = [f"{theirs / ours:.2f}", f"{mark:.2f}", f"{share:.0%}"]
            rows.append([name, f"{batch}, {time}, {size}", f"{ours * 1e3:.1f}", *ratio])
    return rows


def length_rows(top: float) -> list[list[str]]:
    """Lengths spread evenly from a fifth of the longest to the longest, against padding and reading it all, and against
    `pack_padded_sequence`."""
    rows = []
    for batch, time, size in SHAPES:
        x = torch.randn(batch, time, size, requires_grad=True)
        lengths = torch.linspace(time / 5, time, batch).long()
        mask = lengths_to_mask(lengths, time)
        for name in (name for name in PEERS if name in NAMES):
            cell = CELLS[name](size, size)
            acts = [
                training(reading(cell, batch, mask), cell, x),
                peer_of(name, size, x),
                packed(name, size, x, lengths),
            ]
            ours, theirs, packing = best(acts)
            ratios = [f"{theirs / ours:.2f}", f"{packing / ours:.2f}", "1.50"]
            rows.append([name, f"{batch}, {time}, {size}", f"{ours * 1e3:.1f}", *ratios])
    return rows


def stepping(module: nn.Module, state: object) -> Callable[[], None]:
    """A hundred single steps, as in generating."""
    x = torch.randn(1, 1, 512)

    def act() -> None:
        for _ in range(100):
            module(x, state)

    return act


@torch.no_grad()
def step_rows(top: float) -> list[list[str]]:
    """One step of two layers of 512."""
    rows = []
    for name, mark in (("lstm", "8.00"), ("gru", "2.00"), ("rnn", "")):
        net, peer = (
            recurrent_encoder(CELLS[name], 512, [512, 512], merge="none"),
            PEERS[name](512, 512, 2, batch_first=True),
        )
        _, last = peer(torch.randn(1, 1, 512))
        ours, theirs = best([stepping(net, net.initial_state(1)), stepping(peer, last)])
        rows.append([name, f"{ours * 10:.3f}", f"{theirs / ours:.2f}", mark])
    return rows


def long_rows(top: float) -> list[list[str]]:
    """minGRU beside nn.GRU on long sequences, batch 16."""
    rows = []
    for size, times in ((128, (128, 512, 1024, 2048, 4096, 8192)), (512, (1024,))):
        for time in times:
            x = torch.randn(16, time, size, requires_grad=True)
            cell = CELLS["mingru"](size, size)
            ours, theirs = best([training(reading(cell, 16), cell, x), peer_of("gru", size, x)], min(ROUNDS, 5))
            mark = {128: "3.00", 512: "2.00"}[size] if time == 1024 else ""
            a_step = f"{ours / time * 1e6:.0f}"
            rows.append([str(size), str(time), f"{ours * 1e3:.1f}", a_step, f"{theirs / ours:.2f}", mark])
    return rows


def memory_rows(top: float) -> list[list[str]]:
    rows = []
    for batch, time, size in SHAPES:
        for name in NAMES:
            shape = [str(batch), str(time), str(size), *["plain"] * PLAIN]
            ours, theirs = (megabytes(__file__, who, name, *shape) for who in ("ours", "theirs"))
            rows.append(
                [name, f"{batch}, {time}, {size}", f"{ours:.0f}", f"{theirs:.0f}", f"{theirs / ours:.2f}", "1.00"]
            )
    return rows


def alone(who: str, name: str, batch: str, time: str, size: str) -> float:
    """The memory of one training step, after a small one that sets everything up."""

    def step(batch: int, time: int, size: int) -> Callable[[], None]:
        x = torch.randn(batch, time, size, requires_grad=True)
        cell = CELLS[name](size, size)
        return training(reading(cell, batch), cell, x) if who == "ours" else peer_of(name, size, x)

    step(2, 3, 4)()
    return most(step(int(batch), int(time), int(size)))


SECTIONS: dict[str, tuple[str, list[str], Callable[[float], list[list[str]]]]] = {
    "training": (
        "A training step; the peer is PyTorch's layer of that name, for the others nn.LSTM.",
        ["cell", "B, T, H", "ms", "peer / ours", "mark", "share of the peak"],
        training_rows,
    ),
    "lengths": (
        "A training step on lengths spread 1:5, against reading the padding too, and against packing.",
        ["cell", "B, T, H", "ms", "padded peer / ours", "packed peer / ours", "mark"],
        length_rows,
    ),
    "step": ("One step, batch 1, two layers of 512.", ["cell", "ms", "peer / ours", "mark"], step_rows),
    "long": (
        "A training step of a minGRU beside nn.GRU, batch 16.",
        ["H", "T", "ms", "µs a step", "peer / ours", "mark"],
        long_rows,
    ),
    "memory": (
        "The most memory that a training step holds, beyond weights and input.",
        ["cell", "B, T, H", "ours, MB", "peer, MB", "peer / ours", "mark"],
        memory_rows,
    ),
}


def main() -> None:
    for number in threads():
        torch.set_num_threads(number)
        top = peak()
        print(f"\n## {number} thread{'s' * (number > 1)}, matrix products at {top / 1e9:.0f} GFLOP/s", flush=True)
        for section in chosen(list(SECTIONS)):
            title, columns, rows = SECTIONS[section]
            made = f"{table(columns, rows(top))}\n\n{describe(number)}"
            print(f"\n{title}\n\n{made}", flush=True)
            if "page" in sys.argv and section in ("training", "lengths", "step"):
                write(f"cells {section} {number}", made)


if __name__ == "__main__":
    with library.use_native(not PLAIN):
        if "alone" in sys.argv:
            print(alone(*sys.argv[2:7]))
        else:
            main()
