"""`--processes N`: start the processes of one training on this machine, watch them, begin anew if one is killed.

For several machines there is `torchrun`, which sets the same variables. Knows neither torch nor what is trained.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..stopping import SIGNALS, Stop
from ..training.cores import count_cores

RESTARTS = 5  # a process that is killed again and again is no accident
GRACE = 15.0  # seconds the others have to end by themselves after one has ended with a sentence
ATTEMPT = "TORCHELASTIC_RESTART_COUNT"  # torchrun's own name


def is_one_of_several() -> bool:
    """Whether this is one of several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first() -> bool:
    """Whether this is the process of rank 0, which prints."""
    return os.environ.get("RANK", "0") == "0"


def is_restart() -> bool:
    """Whether this training was begun before, by processes of which one was killed."""
    return int(os.environ.get(ATTEMPT, "0")) > 0


def launch(arguments: Sequence[str], processes: int, stop: Stop) -> int:
    """Run `seqloom ARGUMENTS` in so many processes; the exit code. After a kill all of them begin anew."""
    stop.patience = GRACE  # each of them has its own
    for attempt in range(RESTARTS + 1):
        stop.check()
        # What they inherit is held back until they hear it.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        started = start(arguments, processes, attempt)
        with forward_signals(started, stop):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            code = watch(started)
        if code >= 0:
            return code
        stop.check()
        print(f"a process was killed (signal {-code}): going on from the newest checkpoint", file=sys.stderr)
    return 1


def start(arguments: Sequence[str], processes: int, attempt: int) -> list[subprocess.Popen[bytes]]:
    """The processes, each with its own number, a place to meet, and its share of the cores."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = str(max(1, count_cores() // processes))
    # torch's own notes on how it was called are not for whoever trains; what fails is an exception beside its note.
    shared = {"OMP_NUM_THREADS": threads, "TORCH_CPP_LOG_LEVEL": "FATAL"} | dict(os.environ)
    shared |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(processes),
        ATTEMPT: str(attempt),
    }
    command = [sys.executable, "-m", "seqloom", *arguments]
    return [
        # In sessions of their own: what a terminal sends to all would reach them twice.
        subprocess.Popen(command, env={**shared, "RANK": str(n), "LOCAL_RANK": str(n)}, start_new_session=True)
        for n in range(processes)
    ]


def watch(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Wait until all have ended: the first code that is not 0, or the negative signal that one was killed by."""
    deadline = float("inf")
    while True:
        codes = [process.poll() for process in processes]
        killed = [code for code in codes if code is not None and code < 0]
        failed = [code for code in codes if code]
        if killed or time.monotonic() > deadline:
            for process in processes:
                process.kill()
                process.wait()
            return killed[0] if killed else failed[0]
        if None not in codes:
            return failed[0] if failed else 0
        if failed:
            deadline = min(deadline, time.monotonic() + GRACE)
        time.sleep(0.05)


@contextmanager
def forward_signals(processes: Sequence[subprocess.Popen[bytes]], stop: Stop) -> Iterator[None]:
    """Ctrl-C and SIGTERM go to all processes, also one that came before there were any."""

    def pass_on(number: int, frame: object) -> None:
        stop.set()
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in SIGNALS}
    if stop.is_set():
        pass_on(signal.SIGTERM, None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
