"""`seqloom` and Python started from a process that has imported torch already: imports are two seconds of each start.

The process listens on a socket and forks for whatever a client asks it to run. The program has the client's arguments,
folder, environment and streams, and ends as any other. A client that is gone takes its program with it.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

SCORED, CUT = 60, 2000  # examples of each part of a sample that is scored; characters of a text
PROGRAM = "torch", "seqloom.cli.main", "seqloom.look", "seqloom.runs.run"
NEEDED_BY_MANY = "torch.utils.tensorboard", "sacrebleu", "rich.progress", "altair", "vl_convert", "babel.dates"
BATCH, VALIDATIONS = 1024, 2  # tokens, of a training that does not say how many; validations, if not when
LENGTHS = 4, 8  # of the sequences whose cost is measured for every kind
TUNES = 10  # of its own that what has learned tunes is scored by
LEARNED = 20  # times as much of the part that is trained on

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({place!r})
    asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [len(asked).to_bytes(8, "big")], [0, 1, 2])
    line.sendall(asked)
    [code] = line.recv(1)
sys.exit(code)
"""


@contextmanager
def start(folder: Path) -> Iterator[Path]:
    """The program `seqloom` in this folder, which also runs Python (`-c CODE`), while the context lasts."""
    place, client = folder / "socket", folder / "seqloom"
    client.write_text(CLIENT.format(python=sys.executable, place=str(place)))
    client.chmod(0o755)
    command, pipe = [sys.executable, __file__, place], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:  # ends with its standard input
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield client


def score_few(make: Callable[[], Mapping[str, Sequence[Any]]]) -> Callable[[], Mapping[str, Sequence[Any]]]:
    """A sample with few examples: few steps read few, and what they leave writes long answers, which no page shows."""

    def shorten(rows: Sequence[Any], times: int) -> Sequence[Any]:
        few = rows[:: -(-len(rows) // (times * SCORED)) or 1]
        return [(row[0][: times * CUT],) if len(row) == 1 else row for row in few]

    def made() -> Mapping[str, Sequence[Any]]:
        return {part: shorten(rows, LEARNED if part == "train" else 1) for part, rows in make().items()}

    return made


def wait_for_a_program(place: str) -> list[str]:
    """Returns in a process of its own for every program, with its arguments."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(place)
        door.listen()
        print("ready", flush=True)
        threading.Thread(target=lambda: os._exit(len(os.read(0, 1))), daemon=True).start()
        while True:
            line, _ = door.accept()
            if os.fork() == 0:
                break
            line.close()
            os.waitpid(-1, os.WNOHANG)
    size, streams, *_ = socket.recv_fds(line, 8, 3)
    with line.makefile("rb") as asked:
        words, folder, environment = json.loads(asked.read(int.from_bytes(size, "big")))
    if (program := os.fork()) != 0:
        for stream in streams:
            os.close(stream)
        follow(program, line)
    line.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return words


def follow(program: int, line: socket.socket) -> None:
    """Tell the client the exit code of its program; end the program when the client is gone."""

    def end() -> None:
        line.recv(1)
        with suppress(ProcessLookupError):
            os.kill(program, signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    line.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def lighten(words: list[str]) -> list[str]:
    """A training that reads small batches, unless it says how large ones."""
    said = any(word.startswith("train.batch_tokens=") for word in words)
    if said or words[0] != "train" or not words[1:] or words[1].startswith("-"):
        return words
    return [*words[:2], f"train.batch_tokens={BATCH}", *words[2:]]


def finish(act: Callable[[], object]) -> NoReturn:
    """Act and end as any program does, but leave its objects to the system: a forked process would copy every page of
    memory only to take them apart, which takes longer than most commands."""
    code: Any = 0
    try:
        act()
    except SystemExit as stopped:
        code = stopped.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if isinstance(code, str) else code or 0)


if __name__ == "__main__":
    for name in (*PROGRAM, *NEEDED_BY_MANY):
        import_module(name)
    import_module("seqloom.cli.main").build_app()  # with it, the modules of all commands
    os.fsync = os.fstat  # nothing waits for the disk
    import_module("seqloom.config.train").VALIDATIONS = VALIDATIONS
    import_module("seqloom.look.measuring").measure_costs.__defaults__ = (LENGTHS,)
    import_module("seqloom.tasks.music").WRITTEN = TUNES
    samples = import_module("seqloom.data.samples")
    samples.SAMPLES = {name: score_few(make) for name, make in samples.SAMPLES.items()}
    words = wait_for_a_program(sys.argv[1])
    if words[0] == "-c":
        sys.argv, sys.path[0] = words[:1], ""
        module = sys.modules["__main__"] = ModuleType("__main__")
        program = compile(words[1], "<string>", "exec")
        finish(lambda: exec(program, vars(module)))
    sys.argv = ["seqloom", *lighten(words)]
    finish(import_module("seqloom.__main__").main)
