"""One thread that does all the work: what waits runs together, sorted by length; what is written, a bit at a time.

Inputs that ask the same of the same run form a batch; nobody waits for a batch to fill, it is what came while the model
was busy. If a batch fails, its inputs are tried one by one: a bad one fails alone. Texts that are being written take
turns between batches. The thread's heartbeat is what the server's liveness means.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ..search import Abandoned, stop_unless_wanted
from .jobs import Job
from .limits import Limits, Refused
from .metrics import Metrics
from .runs import Runs
from .waiting import Waiting

TURN = 0.01  # seconds that a text is written before the next one is
PULSE = 0.25  # seconds between heartbeats when there is nothing to do


class Batcher:
    def __init__(self, runs: Runs, limits: Limits, metrics: Metrics) -> None:
        self.runs, self.limits, self.metrics = runs, limits, metrics
        self._waiting = Waiting(limits, self._give_up)
        self._writing: deque[tuple[Job, Iterator[Any]]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._beat = time.monotonic()
        self._thread = threading.Thread(target=self._live, name="batcher", daemon=True)
        metrics.gauges["seqloom_queue_length"] = "Inputs that wait.", lambda: len(self._waiting.jobs)
        metrics.gauges["seqloom_texts_being_written"] = "Texts under way.", lambda: len(self._writing)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Finish what is here, take nothing more, and end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(self.limits.seconds)

    @property
    def alive(self) -> bool:
        """Whether the thread is there and has come around lately: a request may take its time, no more."""
        return self._thread.is_alive() and time.monotonic() - self._beat < self.limits.seconds

    def check_room(self, inputs: int = 1) -> None:
        """Refuse what would be refused later: any thread may ask, and it costs nothing."""
        if self._closing:
            raise Refused(503, "closing", "the server is shutting down", retry_after=5)
        self._waiting.check_room(inputs)

    def submit(self, jobs: Sequence[Job]) -> None:
        """Let these wait for their turn: all of them, or none."""
        with self._changed:
            self.check_room(len(jobs))
            self._waiting.jobs.extend(jobs)
            self._changed.notify()

    # --- in the thread ---

    def _live(self) -> None:
        while True:
            self._beat = time.monotonic()
            with self._changed:
                if not self._waiting.jobs and not self._writing:
                    if self._closing:
                        return
                    self._changed.wait(PULSE)
                batch, why = self._waiting.take(len(self._writing) < self.limits.streams)
            if batch:
                self._run(batch, why)
            self._write()

    def _give_up(self, job: Job) -> None:
        self.metrics.count("cancelled")
        job.fail(Abandoned())

    def _run(self, batch: list[Job], why: str) -> None:
        start = time.monotonic()
        for job in batch:
            self.metrics.observe("queue_wait_seconds", start - job.born)
        self.metrics.observe("batch_size", len(batch))
        self.metrics.count("batches", left=why)
        self._answer(batch)
        self.metrics.observe("batch_seconds", time.monotonic() - start)

    def _answer(self, batch: list[Job]) -> None:
        try:
            model = self.runs.load(batch[0].run)
            with stop_unless_wanted(lambda: any(not job.cancelled for job in batch)):
                answers = batch[0].work(model, [job.payload for job in batch])
            if batch[0].deliver is not None:
                self._writing.append((batch[0], iter(answers)))
                return
            assert len(answers) == len(batch), "one answer for each"
        except Abandoned:
            for job in batch:
                self._give_up(job)
        except BaseException as error:  # whatever it is, this thread must not end
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for job in batch:
                self._beat = time.monotonic()
                self._answer([job])
        else:
            for job, answer in zip(batch, answers, strict=True):
                job.finish(answer)

    def _write(self) -> None:
        """Every text that is being written has a turn."""
        for _ in range(len(self._writing)):
            job, items = self._writing.popleft()
            self._beat = start = time.monotonic()
            try:
                with stop_unless_wanted(lambda job=job: not job.cancelled):  # type: ignore[misc]
                    while time.monotonic() - start < TURN:
                        if job.cancelled:
                            raise Abandoned
                        job.deliver(next(items))  # type: ignore[misc]
            except StopIteration:
                job.finish(None)
            except Abandoned:
                self._give_up(job)
            except BaseException as error:
                job.fail(error)
            else:
                self._writing.append((job, items))
