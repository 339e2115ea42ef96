"""The entry point of the command line: it hears signals before it imports anything that takes time."""

import signal

from .stopping import SIGNALS, Stop


def main() -> None:
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
