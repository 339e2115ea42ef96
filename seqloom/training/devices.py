"""Where a model computes, and in which precision: what there is here, and what of it is fast, measured.

Weights, the loss, gradients and the optimizer are in single precision always; a lower one is for the products in
between (torch's autocast). Knows neither models nor files.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from time import perf_counter
from typing import Any, Literal

import torch

from ..counts import format_count
from ..errors import RecipeError
from ..layers.fast.native import library
from .cores import count_cores

Precision = Literal["float32", "bfloat16", "float16"]
DTYPES: dict[Precision, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
WORTH = 1.2  # times as fast as single precision a lower one must be: it costs exactness
PATIENCE = 0.05  # seconds that measuring a precision may take, its first product not counted
AT_LEAST = 5  # products
SIZES = {"cpu": 256, "cuda": 2048, "mps": 1024}  # of the matrices: what keeps such a device busy

Speeds = dict[str, float]  # precision: products a second, as shares of those in single precision


@dataclass(frozen=True)
class Machine:
    """What a run is trained on; `measured` is empty where the precision was asked for."""

    device: str
    precision: Precision
    measured: Speeds
    threads: int
    processes: int
    kernels: str = field(default="", compare=False)  # which ones compute on a processor, and why not the native ones

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        rates = ", ".join(f"{name} {share:.2f}" for name, share in self.measured.items() if name != "float32")
        threads = format_count(self.threads, "thread")
        where = f"{format_count(self.processes, 'process')} with {threads} each" if self.processes > 1 else threads
        speeds = f" (speed against float32: {rates})" if rates else ""
        return f"{self.precision} on {self.device}, {where}{speeds}" + (f", {self.kernels}" if self.kernels else "")


def is_available(device: str) -> bool:
    match device:
        case "cuda":
            return torch.cuda.is_available()
        case "mps":
            return torch.backends.mps.is_available()
    return device == "cpu"


def choose_device(requested: str) -> torch.device:
    """The device of that name here; of several GPUs, each process takes its own.

    "auto" is a GPU where there is one, else the processor; Apple's GPUs have no double precision and were never tried,
    so they must be asked for.
    """
    name = requested if requested != "auto" else "cuda" if is_available("cuda") else "cpu"
    if not is_available(name):
        raise RecipeError(f'train.device is "{name}", but torch finds no such device on this machine: say "auto"')
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    return torch.device(name)


def choose_machine(
    device: str, precision: str, processes: int = 1, measure: Callable[[torch.device], Speeds] | None = None
) -> Machine:
    """What "auto" comes to here; single precision, unless a lower one is measured to be much faster.

    Half precision (float16) overflows easily: it is taken only where bfloat16, which does not, is slow.
    """
    place = choose_device(device)
    threads = choose_threads(processes)
    if place.type == "mps" and processes > 1:
        raise RecipeError('train.device is "mps", on which torch lets only one process train: leave out --processes')
    kernels = str(library.status()) if place.type == "cpu" else ""
    if precision in DTYPES:
        return Machine(place.type, precision, {}, threads, processes, kernels)
    speeds = (measure or measure_precisions)(place)
    worthy = [name for name in ("bfloat16", "float16") if speeds.get(name, 0.0) >= WORTH]
    chosen: Precision = "bfloat16" if "bfloat16" in worthy else "float16" if worthy else "float32"
    return Machine(place.type, chosen, speeds, threads, processes, kernels)


def choose_threads(processes: int = 1) -> int:
    """The threads of each process: as many as torch takes (OMP_NUM_THREADS, if that is set), but no more than there are
    cores for."""
    if os.environ.get("OMP_NUM_THREADS", "").isdigit():
        return torch.get_num_threads()
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))  # torchrun's: the others are on other machines
    return min(torch.get_num_threads(), max(1, count_cores() // here))


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Inside, torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def measure_precisions(device: torch.device) -> Speeds:
    """How fast products of matrices are in each precision; on a processor half precision is no choice.

    Single precision is measured before the others and after them: a moment in which the machine is busy with something
    else must not make it look slow.
    """
    lower: list[Precision] = ["bfloat16"] if device.type == "cpu" else ["bfloat16", "float16"]
    single = time_product(device, torch.float32)
    seconds = {name: time_product(device, DTYPES[name], given_up=True) for name in lower}
    single = min(single, time_product(device, torch.float32))
    return {"float32": 1.0} | {name: single / time for name, time in seconds.items()}


def time_product(device: torch.device, dtype: torch.dtype, given_up: bool = False) -> float:
    """The shortest time of a product.

    The first one also sets up. If that takes all the patience, the others may be `given_up`: its time is the answer.
    """
    size = SIZES[device.type]
    a = torch.ones(size, size, dtype=dtype, device=device)
    times: list[float] = []
    first = perf_counter()
    while len(times) < AT_LEAST or perf_counter() - first < PATIENCE:
        start = perf_counter()
        (a @ a)[0, 0].item()  # waits for the device
        times.append(perf_counter() - start)
        if given_up and times[0] > PATIENCE:
            break
    return min(times)


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Inside, products are in this precision; nothing is changed for single precision, or before it is known."""
    if precision in ("auto", "float32"):
        return nullcontext()
    return torch.autocast(device.type, DTYPES[precision])  # type: ignore[index]  # checked by the settings
