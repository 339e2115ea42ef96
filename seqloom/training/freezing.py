"""Parts of a model by their names, and freezing them."""

from collections.abc import Sequence
from difflib import get_close_matches

from torch import nn

from ..errors import RecipeError
from ..models import Objective

DEPTH = 3  # names such as "source.encoder.layer": further in, nobody looks for a part by its name


def freeze(objective: Objective, names: Sequence[str]) -> None:
    """Turn off gradients of the parts with these names."""
    for name in names:
        for part in find_parts(objective, name):
            part.requires_grad_(False)
    if not any(parameter.requires_grad for parameter in objective.parameters()):
        raise RecipeError(f"train.freeze = {list(names)} leaves no weight to train")


def find_parts(objective: Objective, name: str) -> list[nn.Module]:
    """The part of this path, such as "source.encoder"; else all whose path ends so, such as "encoder"."""
    parts = {path.removeprefix("model."): part for path, part in objective.named_modules() if list(part.parameters())}
    if name and name in parts:
        return [parts[name]]
    if matches := [part for path, part in parts.items() if path.endswith(f".{name}")]:
        return matches
    known = [path for path in parts if path not in ("", "model") and path.count(".") < DEPTH]
    near = get_close_matches(name, [*known, *{path.rsplit(".", 1)[-1] for path in known}], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"parts are {', '.join(p for p in known if '.' not in p)}"
    raise RecipeError(f"train.freeze names {name!r:.80}, but the model has no part of that name; {hint}")
