"""Several processes that make every step together, over torch.distributed: who is who, and what they tell each other.

Every process reads every batch and trains on its own rows of it: what is read, in which order, and what a step is the
gradient of do not depend on how many there are. The first process alone validates, writes and speaks.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from datetime import timedelta
from typing import Any, cast

import torch
from torch import Tensor, distributed, nn
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # torch exports them by a star
from torch.nn.parallel import DistributedDataParallel

from ..layers.state import State
from ..models import Batch, Objective
from .carried import flatten_state, unflatten_state

PATIENCE = timedelta(hours=1)  # how long the others wait while the first one validates


class ProcessGroup:
    """The processes of this training, of which this one is number `rank`."""

    def __init__(self, rank: int = 0, count: int = 1) -> None:
        self.rank, self.count = rank, count

    @property
    def first(self) -> bool:
        return self.rank == 0

    # --- what they say ---

    def broadcast(self, data: bytes = b"") -> bytes:
        """Send bytes from the first process to all."""
        if self.count == 1:
            return data
        length = torch.tensor([len(data)])
        distributed.broadcast(length, 0)
        content = torch.frombuffer(bytearray(data), dtype=torch.uint8) if self.first and data else None
        received = torch.zeros(int(length), dtype=torch.uint8) if content is None else content
        distributed.broadcast(received, 0)
        return received.numpy().tobytes()

    def all_reduce(self, *values: float) -> list[float]:
        """Each value, added up over all processes."""
        if self.count == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(total)
        return total.tolist()

    # --- whose rows are whose ---

    def part(self, batch: Batch) -> tuple[Batch, float]:
        """The own rows of a batch, and what their loss counts: nothing where there are fewer rows than processes."""
        if self.count == 1:
            return batch, 1.0
        own = len(batch.mask) > self.rank
        return batch.rows(slice(self.rank, None, self.count) if own else slice(0, 1)), float(own)

    def gather_state(self, state: State, rows: int) -> dict[str, Tensor]:
        """The tensors of a state that has so many rows over all processes."""
        return {name: self._gather_tensor(tensor, rows) for name, tensor in flatten_state(state).items()}

    def _gather_tensor(self, tensor: Tensor, rows: int) -> Tensor:
        if self.count == 1:
            return tensor
        most = -(-rows // self.count)
        own = tensor.new_zeros(most, *tensor.shape[1:])
        own[: len(tensor)] = tensor
        every = [torch.zeros_like(own) for _ in range(self.count)]
        distributed.all_gather(every, own.contiguous())
        return torch.stack(every, 1).flatten(0, 1)[:rows]  # row r of process p is row r · count + p of all

    def scatter_state(self, tensors: dict[str, Tensor], like: State, place: str) -> State:
        """The own rows of a state that was joined."""
        rows = next(iter(tensors.values())).shape[0]
        part = slice(self.rank, None, self.count) if rows > self.rank else slice(0, 1)
        return unflatten_state({name: tensor[part] for name, tensor in tensors.items()}, like, place)

    # --- what they train ---

    def learner(self, objective: Objective, shard: bool) -> Objective:
        """What holds the weights that are learned: the objective itself or, in shards, a copy (FSDP2)."""
        if self.count == 1 or not shard:
            return objective
        from torch.distributed.fsdp import fully_shard

        copy = deepcopy(objective)
        for tensor in copy.state_dict().values():  # as DDP does: all begin with what the first one has
            distributed.broadcast(tensor, 0)
        fully_shard(copy)
        return copy

    def wrap(self, learner: Objective, shard: bool) -> nn.Module:
        """What is called in training: it adds up the gradients of all processes on the way back."""
        if self.count == 1 or shard:
            return learner
        # A window that goes on does not read its source again: the encoder is then unused.
        return DistributedDataParallel(learner, find_unused_parameters=True)


@contextmanager
def synchronize_gradients(trained: nn.Module, last: bool) -> Iterator[None]:
    """Only after the last batch of a step do the processes add up what they have."""
    if isinstance(trained, DistributedDataParallel):
        with nullcontext() if last else trained.no_sync():
            yield
        return
    if hasattr(trained, "set_requires_gradient_sync"):
        cast(Any, trained).set_requires_gradient_sync(last)
    yield


def join_process_group() -> ProcessGroup:
    """The processes that torchrun or `--processes` has started, this one among them; or this one alone."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        return ProcessGroup()
    rank = int(os.environ["RANK"])
    if not distributed.is_initialized():
        ours = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"  # else torchrun has one running
        port = int(os.environ["MASTER_PORT"])
        store = TCPStore(os.environ["MASTER_ADDR"], port, is_master=ours and rank == 0, timeout=PATIENCE)
        # After a killed process all begin anew, and must not find what the dead have left in the store.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
            backend = "cpu:gloo,cuda:nccl"
        own = PrefixStore(f"attempt_{attempt}", store)
        distributed.init_process_group(backend, store=own, rank=rank, world_size=count, timeout=PATIENCE)
    return ProcessGroup(rank, count)


def shutdown() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()
