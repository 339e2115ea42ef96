"""Vectors of texts as a file: safetensors, or a table with a column for each number."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy

from ..arrays import Floats
from ..data.formats.lines import check_file, read_lines
from ..data.formats.tables import SkippedRows, drop_faults
from ..data.inputs import ending_of
from ..errors import DataError
from ..training.files import write_atomically
from .answer_table import WRITERS, check_table, write_table
from .embedding import Embedder

if TYPE_CHECKING:
    from .run import Run

TENSORS = ".safetensors"


def write_vectors(run: "Run", file: Path, out: Path, layer: int | None = None, words: bool = False) -> dict[str, Any]:
    """Write a vector for each text of a file, or for each word of them; what was written."""
    if out.suffix.lower() != TENSORS:
        if out.suffix.lower() not in WRITERS:
            known = ", ".join([TENSORS, *WRITERS])
            raise DataError(f"the ending is {out.suffix or 'none'}, but one of {known} was expected", out)
        check_table(out, [str(file)])
    elif not out.parent.is_dir():
        raise DataError("there is no folder for it", out)
    embedder = Embedder(run, layer)
    texts = read_texts(run, file)
    if not texts:
        raise DataError("there is no text in it", file)
    if words:
        embedded = embedder.words(texts)
        names = [word for one in embedded for word in one.words]
        rows = [number for number, one in enumerate(embedded) for _ in one.words]
        vectors = np.concatenate([one.vectors for one in embedded])
    else:
        names, rows, vectors = list(texts), list(range(len(texts))), embedder.texts(texts)
    save(out, names, rows, vectors, words)
    used = embedder.depth if layer is None else layer
    size = vectors.shape[1] if vectors.size else 0
    about = {"file": str(out), "texts": len(texts), "vectors": len(vectors), "size": size}
    return about | {"layer": used, "layers": embedder.depth, "cut": embedder.cut}


def read_texts(run: "Run", file: Path) -> list[str]:
    """A line each of a txt file; of any other what the run reads of it."""
    check_file(str(file))
    if ending_of(str(file)) == ".txt":
        lines = (line.text.strip() for line in read_lines(str(file), run.recipe.data.encoding))
        return [line for line in lines if line]
    table = run.task.read_inputs(str(file))
    return [one.value for one in drop_faults(table.inputs, str(file), False, SkippedRows(), "input")]


def save(out: Path, names: Sequence[str], rows: Sequence[int], vectors: Floats, words: bool) -> None:
    if out.suffix.lower() == TENSORS:
        tensors = {"vectors": vectors.astype(np.float32)}
        if words:
            tensors["texts"] = np.array(rows, dtype=np.int64)  # the number of the text that each stands in, from 0
        write_atomically(out, safetensors.numpy.save(tensors))
        return
    numbers = [f"v{number}" for number in range(1, vectors.shape[1] + 1)]
    with write_table(out, ["text", "word", *numbers] if words else ["text", *numbers]) as table:
        for name, row, vector in zip(names, rows, vectors.tolist(), strict=True):
            first = {"text": row + 1.0, "word": name} if words else {"text": name}
            table.write(first | dict(zip(numbers, vector, strict=True)))
