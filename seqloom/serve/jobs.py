"""Inputs that wait for the batcher's thread, and waiting for their answers in the event loop."""

import asyncio
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .models import Model

Work = Callable[[Model, Sequence[Any]], Any]  # one answer for each payload, in their order


@dataclass(eq=False)
class Job:
    """One input that waits. Of the same `key`, the work of several is done by one call."""

    run: str
    work: Work
    payload: Any = None
    key: Hashable | None = None  # none: it is done by itself
    size: int = 1  # its length
    deliver: Callable[[Any], None] | None = None  # where items go one by one, if the work gives an iterator
    future: "Future[Any]" = field(default_factory=Future)
    born: float = field(default_factory=time.monotonic)
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True

    def finish(self, answer: Any) -> None:
        with suppress(InvalidStateError):  # nobody waits for it any more
            self.future.set_result(answer)

    def fail(self, error: BaseException) -> None:
        """What is no Exception, such as a panic of a tokenizer, would end the web server's loop: it becomes one."""
        with suppress(InvalidStateError):
            self.future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))


async def results_of(jobs: Sequence[Job]) -> list[Any]:
    """The answers of all jobs, or the first mistake. Their thread wakes this one once, not once for each."""
    if not jobs:
        return []
    loop, over, left = asyncio.get_running_loop(), asyncio.Event(), len(jobs)

    def count(future: "Future[Any]") -> None:
        nonlocal left
        left -= 1
        if (not left or future.exception() is not None) and not loop.is_closed():
            loop.call_soon_threadsafe(over.set)

    for job in jobs:
        job.future.add_done_callback(count)
    await over.wait()
    for job in jobs:
        if job.future.done():
            job.future.result()  # which raises what went wrong
    return [job.future.result() for job in jobs]
