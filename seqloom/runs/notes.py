"""From sentences that are handed to a function to notes that are yielded, while the work goes on."""

import threading
from collections.abc import Callable, Generator
from queue import SimpleQueue
from typing import Any, TypeVar

from ..data.preprocess import Note
from ..training.probe import Stopped

Result = TypeVar("Result")
Noted = TypeVar("Noted")


def yield_notes(
    work: Callable[[Note], Result], stop: threading.Event | None, make: Callable[[str], Noted]
) -> Generator[Noted, None, Result]:
    """Do the work and yield what `make` makes of every sentence as it comes; the result is what `yield from` gives.

    The work is done in a thread of its own: it speaks by calling a function, and only whoever iterates can be
    interrupted by a signal. Once `stop` is set, or nobody iterates any more, it ends with its next sentence.
    """
    sentences: SimpleQueue[str | None] = SimpleQueue()
    abandoned = threading.Event()
    outcome: dict[str, Any] = {}

    def note(sentence: str) -> None:
        if abandoned.is_set() or (stop is not None and stop.is_set()):
            raise Stopped
        sentences.put(sentence)

    def run() -> None:
        try:
            outcome["result"] = work(note)
        except BaseException as error:
            outcome["error"] = error
        finally:
            sentences.put(None)

    thread = threading.Thread(target=run, name="prepare", daemon=True)
    thread.start()
    try:
        while (sentence := sentences.get()) is not None:
            yield make(sentence)
    finally:
        abandoned.set()
        thread.join()
    if "error" in outcome:
        raise outcome.pop("error")
    return outcome["result"]
