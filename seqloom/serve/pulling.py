"""Pull it: change a gate, a state or an attention weight of a run while it answers, and see the answer move."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ..errors import DataError
from ..look.measures.interventions import Intervention, Place, intervene_on, list_intervention_places
from ..runs.json_output import replace_nonfinite
from .looking import AnswerRequest, InputRequest
from .models import Model
from .wire import engine_of

router = APIRouter(tags=["seqloom: pull it"])

NUMBERS = 60_000  # of a place that are sent
Number = Annotated[float, Field(ge=-1e6, le=1e6)]


class PullRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    place: str = Field(max_length=200, description="The place, as `/places` names it.")
    step: int | None = Field(default=None, ge=0, description="The element at which it is pulled; all if not given.")
    unit: int | None = Field(default=None, ge=0, description="The unit, or the element attended to; all if not given.")
    head: int = Field(default=0, ge=0, description="The head, of attention that has several.")
    to: Number | None = Field(default=None, description="The value that it is set to …")
    scale: Number = Field(default=1.0, description="… or what it is multiplied with; 1 changes nothing.")


class InterventionRequest(InputRequest):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "run": "dates",
                    "input": "3 mai 2024",
                    "pulls": [{"place": "source.encoder.layer.cell.taps.r", "step": 0, "scale": 0.0}],
                }
            ]
        },
    )
    pulls: list[PullRequest] = Field(max_length=64, description="All of them at once.")


@router.post("/places")
async def list_places(request: Request, body: AnswerRequest) -> dict[str, Any]:
    """Where one can pull: every gate, state and attention of the run, with what passes there for this input."""
    return await engine_of(request).inspect(body.run, body.input, body.answer, describe_places)


@router.post("/pull")
async def pull(request: Request, body: InterventionRequest) -> dict[str, Any]:
    """The answers to an input without the pulls and with them. The run itself stays as it is."""
    pulls = [Intervention(one.place, one.step, one.unit, one.head, one.to, one.scale) for one in body.pulls]
    return await engine_of(request).inspect(body.run, body.input, None, answer_pulled, pulls)


def places_of(model: Model, raw: Any, answer: str | None) -> list[Place]:
    look = model.look(raw, answer)
    return list_intervention_places(look.model, look.batch, look.names)


def describe_places(model: Model, raw: Any, answer: str | None) -> dict[str, Any]:
    places = []
    for place in places_of(model, raw, answer):
        about = {"place": place.tap, "name": place.name, "kind": place.kind, "steps": place.steps, "units": place.units}
        small = place.values.size <= NUMBERS
        places.append(
            about | {"values": replace_nonfinite(np.round(place.values.astype(float), 4).tolist()) if small else None}
        )
    if not places:
        raise DataError(f"{model.name} has no gate, state or attention to pull")
    return {"places": places}


def answer_pulled(model: Model, raw: Any, answer: str | None, pulls: list[Intervention]) -> dict[str, Any]:
    [before] = model.predict([raw], None)
    places = places_of(model, raw, answer) if pulls else []
    with intervene_on(model.run.net, places, pulls):
        [after] = model.predict([raw], None)
    return {"before": before, "after": after}
