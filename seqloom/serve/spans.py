"""Where else: the units of a layer that are on over a span of an input, and spans of test examples where they are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field

from ..arrays import Floats
from ..errors import DataError
from ..look.measures.spans import (
    Activations,
    SpanScale,
    average_windows,
    choose_units,
    compute_shares,
    find_matches,
    record_levels,
)
from .examples import check_files, shorten
from .looking import AnswerRequest
from .models import Model
from .wire import engine_of

router = APIRouter(tags=["seqloom: pull it"])

EXAMPLES, ELEMENTS = 100, 6_000  # of the test part that are searched, at most
UNITS, MATCHES = 8, 20  # that are told, at most


class Span(AnswerRequest):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"run": "dates", "input": "3 mai 2024", "level": "encoder layer 1", "start": 2, "end": 5}]
        },
    )
    level: str = Field(max_length=200, description="The layer, as `/levels` names it.")
    start: int = Field(ge=0, description="The first step of the span, counted from 0.")
    end: int = Field(ge=1, description="The step behind its last one.")


@dataclass(frozen=True)
class SearchedExamples:
    """What passed every level of a run while it read examples of its test part."""

    part: str
    inputs: list[Any]
    levels: list[dict[str, Activations]]  # of each example
    scales: dict[str, SpanScale]


@router.post("/levels")
async def list_levels(request: Request, body: AnswerRequest) -> dict[str, Any]:
    """The layers of the run, each with the steps that it takes over this input: spans of them can be looked for."""
    return await engine_of(request).inspect(body.run, body.input, body.answer, describe_levels)


@router.post("/similar-spans")
async def find_similar_spans(request: Request, body: Span) -> dict[str, Any]:
    """The units that are on all over a span, and the spans of the run's test examples where most of them are on."""
    span = body.level, body.start, body.end
    return await engine_of(request).inspect(body.run, body.input, body.answer, find_similar, span)


def describe_levels(model: Model, raw: Any, answer: str | None) -> dict[str, Any]:
    look = model.look(raw, answer)
    levels = record_levels(look.model, look.batch, look.names)
    if not levels:
        raise DataError(f"{model.name} has no layer that goes step by step")
    return {"levels": [{"level": one.level, "steps": one.steps, "units": one.values.shape[1]} for one in levels]}


def find_similar(model: Model, raw: Any, answer: str | None, span: tuple[str, int, int]) -> dict[str, Any]:
    level, start, end = span
    look = model.look(raw, answer)
    known = {one.level: one for one in record_levels(look.model, look.batch, look.names)}
    if level not in known:
        raise DataError(f"there is no layer {level[:80]!r}; there are {', '.join(known)}")
    own = known[level]
    if not start < end <= len(own.steps):
        raise DataError(f"the span from {start} to {end} does not lie within the {len(own.steps)} steps of {level}")
    searched = model.remember(search_examples)
    scale = searched.scales[level]
    units = choose_units(own.values, start, end, scale, UNITS)
    activations = [levels[level] for levels in searched.levels]
    shares = [compute_shares(one.values, units, scale) for one in activations]
    windows = [average_windows(one, end - start) for one in shares]
    others = [
        hide(one, start, end) if searched_input == raw else one
        for searched_input, one in zip(searched.inputs, shares, strict=True)
    ]
    matches = find_matches(others, end - start, MATCHES)
    scaled = np.round(scale.standardize(own.values), 3)
    return {
        "units": [
            {"unit": one.number, "high": one.side > 0, "bounded": one.bounded, "values": scaled[:, one.number].tolist()}
            for one in units
        ],
        "matches": [
            {"example": one.example, "steps": activations[one.example].steps, "start": one.start}
            | {"share": one.share, "shares": one.shares}
            for one in matches
        ],
        "usual": float(np.mean(np.concatenate(windows))) if any(map(len, windows)) else 0.0,
        "part": searched.part,
        "examples": len(activations),
        "elements": sum(len(one.steps) for one in activations),
    }


def hide(shares: Floats, start: int, end: int) -> Floats:
    """The span that was chosen is not found again, where its input is one of the examples."""
    hidden = shares.copy()
    hidden[start:end] = 0
    return hidden


def search_examples(model: Model) -> SearchedExamples:
    """The examples that are searched, read once and cached."""
    check_files(model)
    part, chosen = model.run.pick_examples(EXAMPLES)
    inputs, recorded, elements = [], [], 0
    for one in chosen:
        look = model.run.look(one.input if one.inspected is None else one.inspected, one.answer)
        levels = record_levels(look.model, look.batch, look.names)
        inputs.append(shorten(one.input, "")[0])
        recorded.append({level.level: level for level in levels})
        elements += max((len(level.steps) for level in levels), default=0)
        if elements >= ELEMENTS:
            break
    if not recorded:
        raise DataError(f"{model.name}: its test part has no example to search")
    scales = {level: SpanScale.fit([levels[level].values for levels in recorded]) for level in recorded[0]}
    return SearchedExamples(part, inputs, recorded, scales)
