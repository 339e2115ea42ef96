"""Ctrl-C and SIGTERM, heard from the first moment of a command to its last. Imports nothing that is slow.

The first signal asks: whoever works looks at the event and ends in good order. The second interrupts, and so does the
first after a while. What cannot even be interrupted, a long call into a library, ends with the process.
"""

import os
import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 8.0  # seconds until an interruption: a service manager kills after ten
LAST = 1.5  # seconds more until the process ends, whatever it is in
SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = 130  # the exit code after a stop


class Interrupted(BaseException):
    """Nobody waits for the end of what is under way. Not a KeyboardInterrupt, which typer answers by itself."""


class Stop(threading.Event):
    """Set by the first signal. `message` says in one sentence what is left then, and how to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.message: Callable[[], str] = lambda: "stopped before anything was begun"
        self.watched = True  # whether somebody looks at it from time to time; otherwise a signal interrupts at once
        self.patience = PATIENCE
        self._over = threading.Event()

    def watch(self, message: Callable[[], str]) -> None:
        """From here on somebody looks at this event, and `message` says what a stop leaves."""
        self.message, self.watched = message, True
        self.check()

    def check(self) -> None:
        if self.is_set():
            raise Interrupted

    def listen(self) -> None:
        """Install the signal handlers."""
        for number in SIGNALS:
            signal.signal(number, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # held back until now by whoever started us: see `launch`
        self._pipe_out, self._pipe_in = os.pipe()
        os.set_blocking(self._pipe_in, False)
        signal.set_wakeup_fd(self._pipe_in, warn_on_full_buffer=False)
        threading.Thread(target=self._wait, name="patience", daemon=True).start()

    def close(self) -> None:
        """Stop listening for signals."""
        self._over.set()
        signal.set_wakeup_fd(-1)
        os.close(self._pipe_in)

    def _handle(self, number: int, frame: object) -> None:
        again = self.is_set()
        self.set()
        if again or not self.watched:
            raise Interrupted

    def _wait(self) -> None:
        """Beside the work, which may be in a call where no handler runs: the system itself writes each signal here."""
        while (heard := os.read(self._pipe_out, 1)) and heard[0] not in SIGNALS:
            pass
        if heard and not self._over.wait(self.patience):
            interrupt_main()
            if not self._over.wait(LAST):
                os.write(2, f"{self.message()}\n".encode())
                os._exit(STOPPED)
        os.close(self._pipe_out)


@contextmanager
def handle_signals() -> Iterator[Stop]:
    """Hear signals inside; afterwards they go where they went before."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    stop = Stop()
    stop.listen()
    try:
        yield stop
    finally:
        stop.close()
        for number, handler in before.items():
            signal.signal(number, handler)
