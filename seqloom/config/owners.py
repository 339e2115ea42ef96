"""Who has a setting that a recipe does not have: other architectures, other tasks, the other side."""

from collections.abc import Iterable, Sequence

from ..architectures import ARCHITECTURES, Architecture
from .model import SIDES, side_parts
from .names import UNITS, find_foreign_name, find_new_name
from .tasks import USES


def explain_unknown(task: str, kinds: dict[str, str], path: Sequence[str], known: Iterable[str]) -> str:
    """What is known about a name that is none of the `known` settings of a task whose tables have these kinds."""
    name, table, key = ".".join(path), ".".join(path[:-1]), path[-1]
    if not all(part.isidentifier() for part in path):
        return ""
    if now := find_new_name(name):
        return f"{name} is now {now}"
    ours = find_foreign_name(name)
    if ours in known:
        return f"there is no setting {name}; here it is {ours}" + (f" ({UNITS[ours]})" if ours in UNITS else "")
    if table in kinds and (sentence := _explain_kind(task, kinds, table, key)):
        return sentence
    if tasks := [other for other in USES if name in settings_of(other)]:
        why = f", for {task} may not see the future" if key == "bidirectional" else ""
        return f"{task} has no setting {name}; {join_has(tasks)}{why}"
    if ours and (why := explain_unknown(task, kinds, ours.split("."), known)):
        return f"there is no setting {name}; {ours} is meant, but {why}"
    return ""


def _explain_kind(task: str, kinds: dict[str, str], table: str, key: str) -> str:
    """Why a table of one architecture does not have a setting that another, or the other side, has."""
    side = table.rpartition("model.")[2]
    if having := [kind for kind in find_kinds(task) if key in names_of(task, ARCHITECTURES[kind], side)]:
        there = [f"model.{one}.{key}" for one in SIDES if kinds.get(f"model.{one}") in having and table == "model"]
        return f"{kinds[table]} has no setting {key}; {join_has(having)}" + (f": {there[0]}" if there else "")
    other = "decoder" if side == "encoder" else "encoder"
    if side in SIDES and key in names_of(task, ARCHITECTURES[kinds[table]], other):
        why = ", for a decoder may not see the future" if key == "bidirectional" else ""
        return f"the {side} has no setting {key}; the {other} has{why}"
    return ""


def find_kinds(task: str) -> list[str]:
    """The kinds that a task may have, if what it reads suits them."""
    return [kind for kind, own in ARCHITECTURES.items() if task == "classify" or not own.only_classifies]


def names_of(task: str, own: type[Architecture], side: str = "") -> set[str]:
    """The settings of an architecture as one side of a task, or as its [model]."""
    shape, own = USES[task].model.of_architecture(own)
    parts = side_parts(own, side) if side in SIDES else [shape, *side_parts(own, shape.role())]
    return {name for part in parts for name in part.model_fields}


def settings_of(task: str) -> set[str]:
    """The dotted names of all settings of a task, whatever its architecture."""
    use = USES[task]
    names = {f"data.{name}" for name in use.data.model_fields} | {f"train.{name}" for name in use.train.model_fields}
    names |= {f"search.{name}" for name in use.search.model_fields}
    for own in (ARCHITECTURES[kind] for kind in find_kinds(task)):
        names |= {f"model.{name}" for name in names_of(task, own)}
        names |= {f"model.{side}.{name}" for side in SIDES if use.model.two_sided for name in names_of(task, own, side)}
    return names


def join_has(names: Sequence[str]) -> str:
    """`transformer has`, `lstm and gru have`."""
    *others, last = names
    return f"{', '.join(others)} and {last} have" if others else f"{last} has"
