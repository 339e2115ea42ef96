"""From a request to the batcher and back: what the protocols call. Knows no HTTP.

A handler that is cancelled, because its client left or its time is over, cancels what it waits for.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Sequence
from concurrent.futures import Future
from typing import Any

from ..errors import DataError
from . import explaining
from .batching import Batcher
from .jobs import Job, Work, results_of
from .limits import Limits
from .metrics import Metrics
from .runs import Runs
from .sessions import Sessions
from .writing import Token, Writing

NUMBERS = 16  # of a series or an image are looked into for each character of a text: a step reads many at once


class Engine:
    def __init__(self, runs: Runs, limits: Limits, metrics: Metrics) -> None:
        self.runs, self.limits, self.metrics = runs, limits, metrics
        self.batcher = Batcher(runs, limits, metrics)
        self.sessions = Sessions(limits, metrics)

    async def ask(self, run: str, work: Work, payloads: Sequence[Any], key: Hashable | None = None) -> list[Any]:
        """The answers to all payloads; with a key, they share batches with others of the same key."""
        self.runs.check(run)
        jobs = [Job(run, work, payload, key, size_of(payload)) for payload in payloads]
        self.batcher.submit(jobs)
        try:
            return await results_of(jobs)
        finally:
            for job in jobs:
                job.cancel()

    async def call(self, run: str, work: Any, *arguments: Any) -> Any:
        """Call a function with the loaded run, outside any batch."""
        [answer] = await self.ask(run, lambda model, _: [work(model, *arguments)], [None])
        return answer

    async def stream(self, run: str, work: Work) -> AsyncIterator[Any]:
        """The items of one iterator, as they come."""
        self.runs.check(run)
        loop, items = asyncio.get_running_loop(), asyncio.Queue[Any]()
        end = object()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(items.put_nowait, item)

        def finish(future: "Future[Any]") -> None:
            if not loop.is_closed():
                put(end)

        job = Job(run, work, deliver=put)
        job.future.add_done_callback(finish)
        self.batcher.submit([job])
        try:
            while (item := await items.get()) is not end:
                yield item
            job.future.result()
        finally:
            job.cancel()

    # --- what every protocol asks ---

    async def predict(self, run: str, inputs: Sequence[Any], beam: int | None = None) -> list[dict[str, Any]]:
        self.check_inputs(inputs)
        self.check_answers(run, len(inputs), 1, beam, 0)
        return await self.ask(run, lambda model, raws: model.predict(raws, beam), inputs, ("predict", beam))

    async def answer(self, run: str, inputs: Sequence[Any], how: Writing) -> list[dict[str, Any]]:
        self.check_inputs(inputs)
        self.check_writing(len(inputs), how)
        self.check_answers(run, len(inputs), how.count, how.beam, how.max_tokens)
        return await self.ask(run, lambda model, raws: model.answer(raws, how), inputs, ("answer", how))

    async def generate(self, run: str, prompt: str, how: Writing) -> AsyncIterator[Token]:
        """Texts written on, token by token."""
        async for token in self.stream(run, lambda model, _: model.generate(prompt, how)):
            self.metrics.count("tokens")
            yield token

    async def explain(self, run: str, raw: Any, answer: str | None, step: int | None) -> dict[str, Any]:
        return await self.inspect(run, raw, answer, explaining.explain, step)

    async def inspect(self, run: str, raw: Any, answer: str | None, work: Any, *more: Any) -> dict[str, Any]:
        """A look inside while this is answered: many passes of the model, so the input is short."""
        words = raw if isinstance(raw, list) else [raw]
        most = self.limits.explained * (1 if any(isinstance(one, str) for one in words) else NUMBERS)
        if (size := size_of(raw) + len(answer or "")) > most:
            raise DataError(f"the input has {size:,} characters or numbers, and at most {most:,} are looked into")
        return await self.call(run, work, raw, answer, *more)

    def check_inputs(self, inputs: Sequence[Any]) -> None:
        for raw in inputs:
            if (size := size_of(raw)) > self.limits.input:
                raise DataError(
                    f"an input is {size:,} characters or numbers long, and at most {self.limits.input:,} are read"
                )

    def check_answers(self, run: str, prompts: int, count: int, beam: int | None, tokens: int) -> None:
        """Refuse too much searching at once; what the request leaves open, the recipe says."""
        entry = self.runs.check(run)
        searched = entry.answer_tokens > 1
        beams = (beam or entry.recipe.search.beam_size) if searched else 1
        if beam is not None:
            self.limits.check_work(prompts, count, beam, 1)
        # A recipe may allow longer answers than a request may ask for: they count as the longest that it may.
        tokens = min(tokens or entry.answer_tokens, self.limits.tokens)
        self.limits.check_work(prompts, count, min(beams, self.limits.beam), tokens)

    def check_writing(self, prompts: int, how: Writing) -> None:
        self.limits.check_work(prompts, how.count, how.beam or 1, how.max_tokens or 1)
        if how.alternatives > self.limits.alternatives:
            raise DataError(f"at most {self.limits.alternatives} other tokens are told, not {how.alternatives}")
        _ = how.sampling


def size_of(raw: Any) -> int:
    """Characters of a text, or numbers in nested lists."""
    if isinstance(raw, str):
        return len(raw)
    return sum(map(size_of, raw)) if isinstance(raw, list | tuple) else 1
