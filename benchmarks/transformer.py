"""A Transformer layer beside PyTorch's own: training and inference, time and memory.

Each ratio is the peer's time divided by ours: above 1 we are faster. `python benchmarks/transformer.py [quick]`
"""

import sys
from collections.abc import Callable

import torch
from _timing import best, peak, table
from torch import Tensor, nn

from seqloom.layers.base import Layer
from seqloom.layers.torch_transformer import from_torch

ROUNDS = 3 if "quick" in sys.argv else 7


def pair(size: int) -> tuple[Layer, nn.TransformerEncoder]:
    """One layer with the same weights in both."""
    block = nn.TransformerEncoderLayer(size, size // 32, 4 * size, 0.0, "gelu", batch_first=True, norm_first=False)
    peer = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
    return from_torch(peer), peer


def training(read: Callable[[Tensor], Tensor], module: nn.Module, x: Tensor) -> Callable[[], None]:
    def act() -> None:
        module.zero_grad()
        read(x).square().sum().backward()

    return act


def inference(read: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], None]:
    def act() -> None:
        with torch.inference_mode():
            read(x)

    return act


def rows() -> list[list[str]]:
    found = []
    for size in (128, 256, 512):
        for time in (32, 128, 512):
            layer, peer = pair(size)
            x = torch.randn(max(1, 2048 // time), time, size)

            def ours(x: Tensor, layer: Layer = layer) -> Tensor:
                return layer(x, layer.start(len(x)))[0]

            ends = []
            for mode, wrap in (("train", None), ("eval", inference)):
                layer.train(mode == "train"), peer.train(mode == "train")
                acts = [
                    training(ours, layer, x) if wrap is None else wrap(ours, x),
                    training(peer, peer, x) if wrap is None else wrap(peer, x),
                ]
                mine, theirs = best(acts, ROUNDS)
                ends += [f"{mine * 1e3:.1f}", f"{theirs / mine:.2f}"]
            found.append([str(size), f"{len(x)} × {time}", *ends])
    return found


def main() -> None:
    for threads in (1, 2):
        torch.set_num_threads(threads)
        print(f"\n## {threads} thread{'s' * (threads > 1)}, matrix products at {peak() / 1e9:.0f} GFLOP/s\n")
        columns = ["d", "B × T", "training, ms", "peer / ours", "inference, ms", "peer / ours"]
        print(table(columns, rows()))


if __name__ == "__main__":
    main()
