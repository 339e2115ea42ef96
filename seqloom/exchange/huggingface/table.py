"""Their names of weights and ours: one table a family, read both ways.

A row has a name of theirs, a name of ours, and what is done to the numbers on the way. In names, `*` stands for
`weight` and `bias`, `<a+b+c>` for several tensors of theirs that are one of ours, one below the other, and `{n}` and
the like for numbers that a family fills in, block by block. Nothing is left out on either side: what is missing or left
over is an error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...errors import RunError

Weights = Mapping[str, Tensor]
MOST_NAMED = 3  # of several missing or left-over weights


class Transform(NamedTuple):
    """Converts a tensor from their layout to ours, and back."""

    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor], Tensor]


SAME = Transform(lambda tensor: tensor, lambda tensor: tensor)
TRANSPOSED = Transform(Tensor.t, Tensor.t)  # which leaves a vector as it is
ROW = Transform(lambda tensor: tensor.flatten(), lambda tensor: tensor[None])  # a vector as a matrix of one row


class WeightRow(NamedTuple):
    theirs: str
    ours: str
    transform: Transform = SAME

    def fill(self, numbers: Mapping[str, int]) -> "WeightRow":
        return self._replace(theirs=self.theirs.format(**numbers), ours=self.ours.format(**numbers))

    def tensors(self) -> list[tuple[list[str], str, Transform]]:
        """For each tensor of ours: the names of theirs that it is made of, its own, and how."""
        kinds = ("weight", "bias") if self.theirs.endswith("*") else ("",)
        triples = []
        for kind in kinds:
            before, _, after = self.theirs.replace("*", kind).partition("<")
            several, _, rest = after.partition(">")
            names = [before + each + rest for each in several.split("+")] if after else [before]
            triples.append((names, self.ours.replace("*", kind), self.transform))
        return triples


def repeat_rows(rows: Iterable[WeightRow], numbers: Iterable[Mapping[str, int]]) -> list[WeightRow]:
    """The rows of one block for each of the blocks."""
    block = list(rows)
    return [row.fill(one) for one in numbers for row in block]


def read_weights(
    rows: Sequence[WeightRow], theirs: Weights, shapes: Mapping[str, torch.Size], place: object
) -> dict[str, Tensor]:
    """Our weights from theirs. Every one of `theirs` is used, and every one of `shapes`, which is ours, is found."""
    triples = [tensors for row in rows for tensors in row.tensors()]
    expected = [name for names, _, _ in triples for name in names]
    if missing := [name for name in expected if name not in theirs]:
        raise RunError(f"{place}: {list_names(missing)} missing, and nothing is filled in for a weight")
    if unknown := sorted(theirs.keys() - set(expected)):
        raise RunError(f"{place}: {list_names(unknown)} left over, which this architecture has no place for")
    if whole := [name for name in expected if not theirs[name].is_floating_point()]:
        raise RunError(f"{place}: {list_names(whole)} of whole numbers, but a weight is not")
    ours: dict[str, Tensor] = {}
    for names, name, transform in triples:
        parts = [transform.read(theirs[each]) for each in names if theirs[each].dim() in (1, 2)]
        if len({part.shape[1:] for part in parts}) != 1 or len(parts) < len(names):
            raise RunError(f"{place}: {list_names(names)} of shapes that do not fit together")
        joined = parts[0] if len(parts) == 1 else torch.cat(parts)
        if joined.shape != shapes[name]:
            actual, fits = [" × ".join(map(str, shape)) for shape in (joined.shape, shapes[name])]
            raise RunError(f"{place}: {list_names(names)} {actual}, but by config.json it is {fits}")
        ours[name] = joined.contiguous().float()
    assert ours.keys() == shapes.keys(), f"the table has no row for {sorted(shapes.keys() - ours.keys())}"
    return ours


def write_weights(rows: Sequence[WeightRow], ours: Weights) -> dict[str, Tensor]:
    """Their weights from ours."""
    theirs: dict[str, Tensor] = {}
    for row in rows:
        for names, name, transform in row.tensors():
            for each, part in zip(names, ours[name].chunk(len(names)), strict=True):
                theirs[each] = transform.write(part).detach().cpu().contiguous()
    return theirs


def list_names(names: Sequence[str]) -> str:
    """Names as the subject of a sentence, with its verb."""
    shown = ", ".join(repr(name)[:100] for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} others" if len(names) > MOST_NAMED else ""
    return f"the weight {shown} is" if len(names) == 1 else f"the weights {shown}{more} are"
