"""The command line: parse, call, print; nothing else. Slow imports wait for the command that needs them."""

import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from importlib import import_module
from typing import Annotated

import typer

from ..errors import SeqloomError
from ..stopping import STOPPED, Interrupted, Stop, handle_signals
from . import launch

GRACE = 1.0  # seconds between the first process that hears a signal and the last
# The name of each command, which is that of its function, and the module that has it: only what was typed is imported.
COMMANDS = {
    "recipes": ".recipes",
    "config": ".recipes",
    "data": ".data",
    "train": ".train",
    "tune": ".train",
    "score": ".score",
    "predict": ".predict",
    "generate": ".generate",
    "fill": ".fill",
    "embed": ".embed",
    "serve": ".serve",
    "look": ".look",
    "doctor": ".look",
    "study": ".look",
    "quantize": ".score",
    "certify": ".score",
    "compare": ".compare",
    "check": ".check",
    "export": ".export",
    "pack": ".pack",
    "course": ".course",
}


def show_version(flag: bool) -> None:
    if flag:
        from .. import __version__

        print(f"seqloom {__version__}")
        raise typer.Exit


def prepare_command(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=show_version, help="Print the version.")
    ] = False,
) -> None:
    """From your own sequences to a trained, measured, understood model."""


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands: each is a function, and its parameters are what a person types."""
    built = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(prepare_command)
    for name in names:
        built.command()(getattr(import_module(COMMANDS[name], __package__), name))
    return built


def main(stop: Stop | None = None) -> None:
    """Do what was typed: a person's mistake is one sentence and exit code 2, a stop one sentence and 130."""
    with nullcontext(stop) if stop else handle_signals() as heard:
        run_command(heard)


def run_command(stop: Stop) -> None:
    debug = "--debug" in sys.argv
    try:
        stop.check()
        # A command that looks at the event says so; any other is interrupted.
        stop.message, stop.watched = lambda: "stopped", False
        typed = [word for word in sys.argv[1:2] if word in COMMANDS]
        build_app(typed or COMMANDS)(obj=stop)
    except Interrupted:
        if launch.is_first():
            print(stop.message(), file=sys.stderr, flush=True)
        if launch.is_one_of_several():
            # In good order the process would be aborted: torch's threads that still wait for the others never end.
            sys.stdout.flush()
            os._exit(STOPPED)
        raise SystemExit(STOPPED) from None
    except SeqloomError as error:
        if debug:
            raise
        if launch.is_first():
            print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except RuntimeError as error:
        if debug or launch.is_first():
            raise
        stop.watched = True  # a signal ends this wait, and interrupts nothing
        if stop.wait(GRACE):  # the first one heard the same signal before, and has told what is left
            os._exit(STOPPED)
        # Most often the first process is gone, and has told why.
        print(f"one of the processes ended: {str(error).splitlines()[0]}", file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None
