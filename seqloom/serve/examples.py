"""Examples of a run's own test part to pick from, read again from the files that its recipe names."""

from base64 import b64encode
from glob import glob
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..data.pretokenized import SEPARATOR
from ..errors import RunError, SeqloomError
from ..look.charts.picture import encode_png
from ..runs.json_output import replace_nonfinite
from .models import Model

EXAMPLES = 40
WORDS, CHARACTERS = 30, 400  # of an example that is tagged: what is longer is not looked into
SHOWN = 20_000  # numbers of an example that are sent


def list_examples(model: Model) -> dict[str, Any]:
    """Examples of the test part, as they are asked, with the right answers; or why there are none."""
    try:
        return model.remember(read_examples)
    except SeqloomError as error:  # of which the reason is told, not what a person at a terminal would type
        reason = str(error).replace(str(model.run.folder), model.name).removeprefix(f"{model.name}: ")
        return {"part": "", "examples": [], "why": reason.partition(";")[0]}


def read_examples(model: Model) -> dict[str, Any]:
    """From the files that the recipe names."""
    check_files(model)
    part, chosen = model.run.pick_examples(EXAMPLES)
    examples = []
    for one in chosen:
        raw, truth = shorten(one.input, one.answer)
        picture = {} if one.picture is None else {"picture": as_png(one.picture)}
        ahead = {"ahead": replace_nonfinite(one.target)} if isinstance(one.target, dict) else {}  # of a series
        if np.size(raw) <= SHOWN:
            examples.append({"input": raw, "words": one.text, "target": truth, **picture, **ahead})
    return {"part": part, "examples": examples}


def shorten(raw: Any, truth: str) -> tuple[Any, str]:
    """An input as JSON; of a long list of words only the first, with as many of their tags."""
    if not isinstance(raw, str):
        plain = raw if isinstance(raw, tuple) else np.asarray(getattr(raw, "values", raw)).tolist()
        return replace_nonfinite(plain), truth
    if SEPARATOR not in raw:
        return raw, truth
    words, tags = raw.split(SEPARATOR), truth.split(" ")
    ends = accumulate(len(word) + 1 for word in words[:WORDS])
    few = max(1, sum(end <= CHARACTERS for end in ends))
    return SEPARATOR.join(words[:few]), " ".join(tags[:few]) if len(tags) == len(words) else ""


def check_files(model: Model) -> None:
    """Only plain files are read again: a recipe from elsewhere may name a pipe, which never ends."""
    data = model.run.recipe.data
    for name in (*data.train, *data.validation, *data.test):
        matching = [Path(path) for path in glob(name) or [name]]
        inside = [path for folder in matching if folder.is_dir() for path in folder.rglob("*") if not path.is_dir()]
        if not all(path.is_file() or path.is_dir() for path in (*matching, *inside)):
            raise RunError(f"{model.name}: the examples that it was trained on are not at hand; type one of your own")


def as_png(pixels: Any) -> str:
    return f"data:image/png;base64,{b64encode(encode_png(pixels)).decode()}"
