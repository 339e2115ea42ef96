"""Recurrent cells beside PyTorch's own layers: training steps, unequal lengths, single steps, long sequences.

Each ratio is the peer's time divided by ours: above 1 we are faster. `python benchmarks/cells.py [quick]`
"""

import sys
from collections.abc import Callable

import torch
from _timing import best, peak, table
from torch import Tensor, nn

from seqloom.layers.cells import CELLS, Cell
from seqloom.layers.padding import mask_of
from seqloom.layers.recurrent import recurrent_encoder

SHAPES = ((32, 64, 128), (32, 64, 256), (64, 100, 512))
PEERS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
RIVALS = ("gru-before", "peephole", "coupled", "lstm-normed", "peephole-full")  # PyTorch has none: beside nn.LSTM
ROUNDS = 3 if "quick" in sys.argv else 7


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


def operations(cell: nn.Module, batch: int, time: int) -> float:
    """The floating-point operations of the matrix products of one training step: forwards once, backwards twice."""
    return 6.0 * batch * time * sum(weight.numel() for weight in cell.parameters() if weight.dim() == 2)


def training_rows(top: float) -> list[list[str]]:
    rows = []
    for batch, time, size in SHAPES:
        x = torch.randn(batch, time, size, requires_grad=True)
        for name in (*PEERS, *RIVALS):
            cell, peer = CELLS[name](size, size), PEERS.get(name, nn.LSTM)(size, size, batch_first=True)
            ours, theirs = best(
                [training(reading(cell, batch), cell, x), training(lambda x, peer=peer: peer(x)[0], peer, x)], ROUNDS
            )
            share = operations(cell, batch, time) / ours / top
            rows.append([name, f"{batch}, {time}, {size}", f"{ours * 1e3:.1f}", f"{theirs / ours:.2f}", f"{share:.0%}"])
    return rows


def length_rows() -> list[list[str]]:
    """Lengths spread evenly from a fifth of the longest to the longest, against padding and reading it all."""
    rows = []
    for batch, time, size in SHAPES:
        x, mask = (
            torch.randn(batch, time, size, requires_grad=True),
            mask_of(torch.linspace(time / 5, time, batch).long(), time),
        )
        for name, kind in PEERS.items():
            cell, peer = CELLS[name](size, size), kind(size, size, batch_first=True)
            ours, theirs = best(
                [training(reading(cell, batch, mask), cell, x), training(lambda x, peer=peer: peer(x)[0], peer, x)],
                ROUNDS,
            )
            rows.append([name, f"{batch}, {time}, {size}", f"{ours * 1e3:.1f}", f"{theirs / ours:.2f}"])
    return rows


def stepping(module: nn.Module, state: object) -> Callable[[], None]:
    """A hundred single steps, as in generating."""
    x = torch.randn(1, 1, 512)

    def act() -> None:
        for _ in range(100):
            module(x, state)

    return act


@torch.no_grad()
def step_rows() -> list[list[str]]:
    """One step of two layers of 512."""
    rows = []
    for name, kind in PEERS.items():
        net, peer = recurrent_encoder(CELLS[name], 512, [512, 512], merge="none"), kind(512, 512, 2, batch_first=True)
        _, last = peer(torch.randn(1, 1, 512))
        ours, theirs = best([stepping(net, net.start(1)), stepping(peer, last)], ROUNDS)
        rows.append([name, f"{ours * 10:.3f}", f"{theirs / ours:.2f}"])
    return rows


def long_rows() -> list[list[str]]:
    """minGRU beside nn.GRU on long sequences, batch 16."""
    rows = []
    for size, times in ((128, (128, 1024, 8192)), (512, (1024,))):
        for time in times:
            x = torch.randn(16, time, size, requires_grad=True)
            cell, peer = CELLS["mingru"](size, size), nn.GRU(size, size, batch_first=True)
            ours, theirs = best(
                [training(reading(cell, 16), cell, x), training(lambda x, peer=peer: peer(x)[0], peer, x)],
                min(ROUNDS, 5),
            )
            rows.append([str(size), str(time), f"{ours * 1e3:.1f}", f"{ours / time * 1e6:.1f}", f"{theirs / ours:.2f}"])
    return rows


def main() -> None:
    for threads in (1, 2):
        torch.set_num_threads(threads)
        top = peak()
        print(f"\n## {threads} thread{'s' * (threads > 1)}, matrix products at {top / 1e9:.0f} GFLOP/s\n")
        print("A training step; the peer is PyTorch's layer of that name, for the others nn.LSTM.\n")
        print(table(["cell", "B, T, H", "ms", "peer / ours", "share of the peak"], training_rows(top)))
        print("\nLengths spread 1:5, against reading the padding too.\n")
        print(table(["cell", "B, T, H", "ms", "peer / ours"], length_rows()))
        print("\nOne step, batch 1, two layers of 512.\n")
        print(table(["cell", "ms", "peer / ours"], step_rows()))
        print("\nminGRU beside nn.GRU, batch 16.\n")
        print(table(["H", "T", "ms", "µs a step", "peer / ours"], long_rows()))


if __name__ == "__main__":
    main()
