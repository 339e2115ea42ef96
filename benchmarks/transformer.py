"""A Transformer layer beside PyTorch's own and that of x-transformers: training and inference, time and memory.

Each ratio is the peer's time divided by ours: above 1 we are faster, and so it should be. PyTorch's layer has the same
weights, and in inference takes its fast path. `python benchmarks/transformer.py [speed] [memory] [1] [2] [quick]`:
without words, all of it with one thread and with two. x-transformers is left out where it is not installed.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec

import torch
from _timing import best, chosen, megabytes, most, peak, table, threads
from torch import Tensor, nn

from seqloom.layers.base import Layer
from seqloom.layers.torch_transformer import from_torch

Read = Callable[[Tensor], Tensor]
LENGTHS = (1024, 2048, 4096, 8192)


def layers(size: int) -> dict[str, nn.Module]:
    """Ours and PyTorch's with the same weights, and x-transformers' of the same shape."""
    block = nn.TransformerEncoderLayer(size, size // 32, 4 * size, 0.0, "gelu", batch_first=True, norm_first=False)
    peer = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
    found = {"ours": from_torch(peer), "torch": peer}
    if find_spec("x_transformers"):
        from x_transformers import Encoder

        found["x-transformers"] = Encoder(dim=size, depth=1, heads=size // 32, attn_dim_head=32, attn_flash=True)
    return found


def reading(module: nn.Module) -> Read:
    return (lambda x: module(x, module.initial_state(len(x)))[0]) if isinstance(module, Layer) else module


def training(module: nn.Module, x: Tensor) -> Callable[[], None]:
    read = reading(module.train())

    def act() -> None:
        module.zero_grad()
        read(x).square().sum().backward()

    return act


def inference(module: nn.Module, x: Tensor) -> Callable[[], None]:
    read = reading(module)

    def act() -> None:
        module.eval()
        with torch.inference_mode():
            read(x)

    return act


def speed_rows() -> list[list[str]]:
    rows = []
    for size in (128, 256, 512):
        for time in (32, 128, 512):
            modules, x = list(layers(size).values()), torch.randn(max(1, 2048 // time), time, size)
            row = [str(size), f"{len(x)} × {time}"]
            for way in (training, inference):
                ours, *theirs = best([way(module, x) for module in modules])
                row += [f"{ours * 1e3:.1f}", *(f"{peer / ours:.2f}" for peer in theirs)]
            rows.append(row)
    return rows


def memory_rows() -> list[list[str]]:
    """One row a length: if memory is linear, MB per thousand elements stays the same."""
    rows = []
    for time in LENGTHS:
        found = [megabytes(__file__, name, way, str(time)) for way in ("training", "inference") for name in layers(128)]
        rows.append([str(time), *(f"{value:.0f}" for value in found), f"{found[0] / time * 1000:.0f}"])
    return rows


def alone(name: str, way: str, time: str) -> float:
    """The memory of one training step or inference of a layer of 128, batch 1."""
    act = {"training": training, "inference": inference}[way]
    act(layers(128)[name], torch.randn(1, 8, 128))()
    return most(act(layers(128)[name], torch.randn(1, int(time), 128)))


def main() -> None:
    peers = [name for name in layers(128) if name != "ours"]
    for number in threads():
        torch.set_num_threads(number)
        print(f"\n## {number} thread{'s' * (number > 1)}, matrix products at {peak() / 1e9:.0f} GFLOP/s")
        if "speed" in chosen(["speed", "memory"]):
            ratios = [f"{name} / ours" for name in peers]
            print("\n" + table(["d", "B × T", "training, ms", *ratios, "inference, ms", *ratios], speed_rows()))
    if "memory" in chosen(["speed", "memory"]):
        columns = [f"{way}: {name}, MB" for way in ("training", "inference") for name in ("ours", *peers)]
        print("\nThe most memory held, d = 128, batch 1, beyond weights and input.\n")
        print(table(["T", *columns, "training, MB a thousand"], memory_rows()))


if __name__ == "__main__":
    if "alone" in sys.argv:
        print(alone(*sys.argv[2:5]))
    else:
        main()
