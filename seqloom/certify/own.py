"""A person's own file: its cells and layers, each held against the laws. The file is run: it is asked for by name."""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import DataError
from ..layers.base import Layer
from ..layers.cell import Cell
from .laws import LAWS, SIZE, Finding, Subject, try_law

REQUIRED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_file(path: Path, name: str = "") -> Iterator[Finding]:
    """Every law on every cell and layer that the file defines, or on one of them."""
    for subject in find_subjects(path, name):
        for law in LAWS:
            yield try_law(law, subject)


def find_subjects(path: Path, name: str = "") -> list[Subject]:
    module = run_file(path)
    own = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and issubclass(value, Cell | Layer)
        and not inspect.isabstract(value)
    }
    if name and name not in own:
        raise DataError(f"there is no cell or layer {name!r}; there are {', '.join(own) or 'none'}", path)
    if not own:
        raise DataError("defines no class that is a Cell or a Layer of seqloom.layers", path)
    return [make_subject(path, one) for key, one in own.items() if not name or key == name]


def run_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise DataError("is not there, a Python file was expected", path)
    spec = importlib.util.spec_from_file_location(f"seqloom_checked_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DataError("is not a Python file: its name must end in .py", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = next((frame.lineno for frame in list_frames(error) if frame.filename == str(path)), None)
        raise DataError(f"cannot be run ({type(error).__name__}: {error})", path, line) from None
    finally:
        sys.modules.pop(spec.name, None)
    return module


def list_frames(error: Exception) -> list[Any]:
    """The frames of an error, the innermost first."""
    import traceback

    if isinstance(error, SyntaxError):
        return [error]
    return traceback.extract_tb(error.__traceback__)[::-1]


def make_subject(path: Path, kind: type[Any]) -> Subject:
    """Cells are made from inputs and size; a layer from as many sizes as it asks for, which are all the same."""
    build: Callable[..., Any] = kind
    if issubclass(kind, Cell):
        return Subject(kind.__name__, partial(build, SIZE, SIZE))
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    needed = [one for one in parameters if one.kind in REQUIRED and one.default is one.empty]
    strange = [one.name for one in needed if one.annotation not in (one.empty, int, "int")]
    if strange or len(needed) > 2:
        names = ", ".join(one.name for one in needed)
        raise DataError(
            f"{kind.__name__} is made from {names}, but only layers made from one or two sizes can be checked; "
            "derive one whose other arguments have defaults",
            path,
        )
    return Subject(kind.__name__, partial(build, *[SIZE] * len(needed)))
