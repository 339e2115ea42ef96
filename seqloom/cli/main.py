"""The command line: parse, call, print; nothing else. Slow imports wait for the command that needs them."""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Annotated

import typer

from ..errors import SeqloomError
from ..stopping import STOPPED, Interrupted, Stop, handle_signals
from . import launch
from .check import check
from .compare import compare
from .course import course
from .data import data
from .embed import embed
from .export import export
from .fill import fill
from .generate import generate
from .look import doctor, look, study
from .pack import pack
from .predict import predict
from .recipes import config, recipes
from .score import certify, quantize, score
from .serve import serve
from .train import train, tune

COMMANDS = (
    *(recipes, config, data, train, tune, score, predict, generate, fill, embed, serve, look, doctor, study),
    *(quantize, certify, compare, check, export, pack, course),
)


def show_version(flag: bool) -> None:
    if flag:
        from .. import __version__

        print(f"seqloom {__version__}")
        raise typer.Exit


def before_any_command(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=show_version, help="Print the version.")
    ] = False,
) -> None:
    """From your own sequences to a trained, measured, understood model."""


def build_app(commands: Iterable[Callable[..., None]]) -> typer.Typer:
    """The command line with these commands: each is a function, and its parameters are what a person types."""
    built = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(before_any_command)
    for command in commands:
        built.command()(command)
    return built


app = build_app(COMMANDS)


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
        app(obj=stop)
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
        # Most often the first process is gone, and has told why.
        print(f"one of the processes ended: {str(error).splitlines()[0]}", file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        sys.stderr.close()
        raise SystemExit(0) from None
