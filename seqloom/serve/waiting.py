"""The inputs that wait, the oldest first, and which of them are answered together."""

from collections import deque
from collections.abc import Callable

from .jobs import Job
from .limits import Limits, Refused


class Waiting:
    """Who changes `jobs` holds the batcher's lock."""

    def __init__(self, limits: Limits, give_up: Callable[[Job], None]) -> None:
        self.limits, self.jobs = limits, deque[Job]()
        self._give_up = give_up

    def check_room(self, inputs: int) -> None:
        if (waiting := len(self.jobs)) + inputs > self.limits.queue:
            sentence = f"{waiting} inputs are waiting, and at most {self.limits.queue} may"
            raise Refused(429, "queue", sentence, retry_after=1)

    def take(self, texts: bool) -> tuple[list[Job], str]:
        """The oldest input, with all that ask the same and fit, and why no more; one that writes a text if `texts`."""
        first = self._take_first(texts)
        if first is None:
            return [], ""
        batch, rest = [first], deque[Job]()
        if first.key is not None:
            while self.jobs and len(batch) < self.limits.batch:
                job = self.jobs.popleft()
                if (job.run, job.key) != (first.run, first.key):
                    rest.append(job)
                elif self._is_live(job):
                    batch.append(job)
            self.jobs.extendleft(reversed(rest))
        batch.sort(key=lambda job: job.size)
        return batch, "full" if len(batch) == self.limits.batch else "nothing else waiting"

    def _take_first(self, texts: bool) -> Job | None:
        while found := next((job for job in self.jobs if texts or job.deliver is None), None):
            self.jobs.remove(found)
            if self._is_live(found):
                return found
        return None

    def _is_live(self, job: Job) -> bool:
        if not job.cancelled:
            return True
        self._give_up(job)
        return False
