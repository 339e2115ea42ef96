"""Several real processes that train together over gloo, each forked from this one."""

import os
import socket
import traceback
from collections.abc import Callable
from pathlib import Path

from seqloom.training.processes import ProcessGroup, join_process_group, shutdown


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def together(count: int, act: Callable[[ProcessGroup], None], log: Path) -> None:
    """Let so many processes do this together; what goes wrong in one goes wrong here, with its trace."""
    port, started = free_port(), []
    for rank in range(count):
        child = os.fork()
        if child:
            started.append(child)
            continue
        try:
            names = {"RANK": rank, "WORLD_SIZE": count, "MASTER_PORT": port, "MASTER_ADDR": "127.0.0.1"}
            os.environ.update({name: str(value) for name, value in names.items()})
            act(join_process_group())
            shutdown()
            os._exit(0)
        except BaseException:
            (log / f"trace-{rank}").write_text(traceback.format_exc())
            os._exit(1)
    codes = [os.waitpid(child, 0)[1] for child in started]
    traces = [path.read_text() for path in sorted(log.glob("trace-*"))]
    assert not any(codes), "\n".join(traces)
