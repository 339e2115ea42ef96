"""Change what passes inside a model while it answers: a gate, a unit of a state, an attention weight.

A pull belongs to whoever makes it, in `pulling`; the model stays as it is. Places are named as the taps are.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ...arrays import Floats
from ...errors import DataError
from ...layers.tap import intervening, recording
from ...models import Batch
from ..names import GATES, STATES
from ..places import concatenate_steps, list_recurrences
from .attention import OVER_ITSELF, OVER_SOURCE, SUMMARY, find_attention_taps
from .reading import SOURCE, Model, Names, compute_features, disable_dropout, get_mask, list_bodies, name_body, take_row

Kind = Literal["gate", "state", "attention"]
Change = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True)
class Place:
    """Where one can pull, and what passes there without a pull: (steps, units), or (heads, steps, source)."""

    tap: str
    name: str
    kind: Kind
    steps: list[str]
    values: Floats
    units: list[str]  # their numbers; of attention, what is attended to
    backwards: bool = False


@dataclass(frozen=True)
class Intervention:
    """At a place, at one step or at all: set a unit (or all of them) to a value, or scale it."""

    tap: str
    step: int | None
    unit: int | None
    head: int = 0
    to: float | None = None
    scale: float = 1.0

    @property
    def is_nothing(self) -> bool:
        return self.to is None and self.scale == 1.0


def list_intervention_places(model: Model, batch: Batch, names: Names) -> list[Place]:
    """Every gate, state and attention of the model, over the first row of the batch."""
    batch = take_row(batch)
    with disable_dropout(model), torch.no_grad(), recording(model) as tape:
        compute_features(model, batch)
    places = []
    for level in list_recurrences(model):
        assert level.cell is not None
        if level.side == SOURCE and not batch.source:
            continue
        shown = get_mask(batch, level.side)[0].cpu()
        steps = names.of(level.side)[: int(shown.sum())]
        for name in (*level.cell.gates, *level.cell.entries):
            steps_seen = tape[f"{level.prefix}{name}"]
            values = (
                concatenate_steps(steps_seen[::-1] if level.backwards else steps_seen, True)[0]
                .cpu()[shown]
                .float()
                .numpy()
            )
            kind: Kind = "gate" if name in level.cell.gates else "state"
            called = {"gate": GATES, "state": STATES}[kind].get(name, f"{kind} {name}")
            units = [str(number) for number in range(values.shape[-1])]
            title = " of ".join(filter(None, [called, level.name]))
            places.append(Place(f"{level.prefix}{name}", title, kind, steps, values, units, level.backwards))
    return [*places, *_list_attentions(model, tape, names)]


def _list_attentions(model: Model, tape: dict[str, list[Tensor]], names: Names) -> Iterator[Place]:
    for side, (prefix, body) in list_bodies(model).items():
        for kind in (OVER_ITSELF, OVER_SOURCE, SUMMARY):
            read = names.source if kind == OVER_SOURCE else names.of(side)
            rows = names.target if kind == OVER_SOURCE else names.of(side)
            for tap, layer in find_attention_taps(body, prefix, kind):
                weights = torch.cat(tape[tap], -2)[0]
                heads: Floats = (weights if weights.dim() == 3 else weights[None]).float().cpu().numpy()
                heads = heads[:, : len(rows), : len(read)]
                if kind == SUMMARY:
                    rows = [f"query {number}" for number in range(1, heads.shape[1] + 1)]
                over = {OVER_SOURCE: "over the source", OVER_ITSELF: "over itself", SUMMARY: "of the summary"}[kind]
                title = " ".join(filter(None, [name_body(model, side), f"layer {layer} attention", over]))
                yield Place(tap, title, "attention", list(rows), heads, list(read))


@contextmanager
def intervene_on(model: nn.Module, places: Sequence[Place], pulls: Sequence[Intervention]) -> Iterator[None]:
    """Let the model answer with these pulls. Steps count from the first element that passes a place."""
    known = {place.tap: place for place in places}
    for pull in pulls:
        check_intervention(known, pull)
    passed: Counter[str] = Counter()

    def change(tap: str, value: Tensor) -> Tensor:
        place, first = known[tap], passed[tap]
        steps = value.shape[-2] if place.kind == "attention" else 1
        passed[tap] += steps
        for pull in (pull for pull in pulls if pull.tap == tap and not pull.is_nothing):
            step = len(place.steps) - 1 - pull.step if place.backwards and pull.step is not None else pull.step
            if step is not None and not first <= step < first + steps:
                continue
            rows = slice(None) if step is None else slice(step - first, step - first + 1)
            value = _change_weight(value, rows, pull) if place.kind == "attention" else _change_units(value, pull)
        return value

    with _intervene_at_taps(model, {pull.tap for pull in pulls}, change):
        yield


@contextmanager
def _intervene_at_taps(model: nn.Module, taps: set[str], change: Change) -> Iterator[None]:
    """Intervene at these taps and at no other: the rest of the model keeps its fast ways."""
    if not taps:
        yield
        return
    first, *rest = sorted(taps)
    with intervening(model, change, first), _intervene_at_taps(model, set(rest), change):
        yield


def check_intervention(known: dict[str, Place], pull: Intervention) -> None:
    if pull.tap not in known:
        raise DataError(f"there is no place {pull.tap[:80]!r} in this model")
    place = known[pull.tap]
    sizes = {"step": (pull.step, len(place.steps)), "unit": (pull.unit, len(place.units))}
    if place.kind == "attention":
        sizes["head"] = pull.head, len(place.values)
        if pull.unit is None:
            raise DataError("a pull at attention names the unit that is attended to")
    for name, (index, count) in sizes.items():
        if index is not None and not 0 <= index < count:
            raise DataError(f"{name} {index} is beyond the {count} of {place.name}")
    bounded = place.kind != "state" and pull.to is not None
    if bounded and not 0 <= pull.to <= 1:  # type: ignore[operator]
        raise DataError(f"a {place.kind} lies between 0 and 1, and {pull.to} does not")


def _change_units(value: Tensor, pull: Intervention) -> Tensor:
    """One unit, or all, of (B, units)."""
    units = slice(None) if pull.unit is None else slice(pull.unit, pull.unit + 1)
    moved = value.clone()
    moved[:, units] = moved[:, units] * pull.scale if pull.to is None else pull.to
    return moved


def _change_weight(value: Tensor, rows: slice, pull: Intervention) -> Tensor:
    """One weight of (B, steps, source) or (B, heads, steps, source); the others share what it leaves, as they did."""
    assert pull.unit is not None
    weights = value.clone()
    part = (weights[:, pull.head] if weights.dim() == 4 else weights)[:, rows]
    if pull.unit >= part.shape[-1]:  # it has not been read yet
        return weights
    old = part[..., pull.unit]
    new = (old * pull.scale).clamp(max=1) if pull.to is None else torch.full_like(old, pull.to)
    others = part.sum(-1) - old
    if bool((others <= 0).any()) and bool((new != old).any()):
        raise DataError("all attention is on this one element: there is no other to move its weight to")
    part *= ((1 - new) / others.clamp(min=torch.finfo(part.dtype).tiny))[..., None]
    part[..., pull.unit] = new
    return weights
