"""The entry point of the command line: it hears signals before it imports anything that takes time."""

import gc
import os
import signal

from .stopping import SIGNALS, Stop

STARTING = 400_000  # objects: torch and this package make some 320,000, nearly all of which stay


def collect_late() -> None:
    """No search for garbage while everything is imported: it would go through the same objects again and again, half a
    second in all. The first search finds itself in front of them, sets them aside for good, and is as usual from then
    on."""
    usual = gc.get_threshold()

    def begin(phase: str, info: dict[str, int]) -> None:
        gc.callbacks.remove(begin)
        gc.freeze()
        gc.set_threshold(*usual)

    gc.callbacks.append(begin)
    gc.set_threshold(STARTING, *usual[1:])


def main() -> None:
    # pydantic would read the metadata of every installed package in search of plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    collect_late()
    stop = Stop()
    stop.listen()
    try:
        from .cli.main import main as command

        command(stop)
    finally:
        for number in SIGNALS:  # what was to be said has been said
            signal.signal(number, signal.SIG_IGN)
        stop.close()


if __name__ == "__main__":
    main()
