"""Counters and histograms, and the text that Prometheus reads."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64)

Labels = tuple[tuple[str, str], ...]


class Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum}"
        yield f"{name}_count {total}"


class Metrics:
    """What the server has done so far. Counted from two threads: the web server's and the batcher's."""

    HELP = {
        "seqloom_requests_total": "Requests answered, by route and status.",
        "seqloom_refusals_total": "Requests refused, by reason.",
        "seqloom_batches_total": "Batches, by why they left: full, or nothing else was waiting.",
        "seqloom_tokens_total": "Tokens written; rate() of it is tokens a second.",
        "seqloom_loads_total": "Runs loaded and unloaded.",
        "seqloom_cancelled_total": "Inputs whose client left, or whose time was over, before they were answered.",
    }
    HISTOGRAMS = {
        "seqloom_queue_wait_seconds": ("How long an input waited for the model.", SECONDS),
        "seqloom_batch_size": ("Inputs in a batch.", SIZES),
        "seqloom_batch_seconds": ("How long a batch took.", SECONDS),
    }

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: dict[str, Counter[Labels]] = {name: Counter() for name in self.HELP}
        self._histograms = {name: Histogram(bounds) for name, (_, bounds) in self.HISTOGRAMS.items()}
        self.gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def count(self, name: str, number: int = 1, **labels: str) -> None:
        with self._lock:
            self._counters[f"seqloom_{name}_total"][tuple(labels.items())] += number

    def observe(self, name: str, value: float) -> None:
        with self._lock:
            self._histograms[f"seqloom_{name}"].observe(value)

    def text(self) -> str:
        """In Prometheus' text format, version 0.0.4."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, counter in self._counters.items():
            yield f"# HELP {name} {self.HELP[name]}\n# TYPE {name} counter"
            for labels, value in sorted(counter.items()) or [((), 0)]:
                label_text = ",".join(f'{label}="{escape(text)}"' for label, text in labels)
                yield f"{name}{{{label_text}}} {value}" if label_text else f"{name} {value}"
        for name, histogram in self._histograms.items():
            yield f"# HELP {name} {self.HISTOGRAMS[name][0]}\n# TYPE {name} histogram"
            yield from histogram.lines(name)
        for name, (says, value_of) in self.gauges.items():
            yield f"# HELP {name} {says}\n# TYPE {name} gauge\n{name} {value_of()}"


def escape(text: str) -> str:
    """A label's value as the format wants it."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
