"""What a request of the Open Inference Protocol v2 may hold."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .writing import Writing

OUTPUTS = {"output": "BYTES", "score": "FP64", "prediction": "BYTES"}

Datatype = (
    Literal["BYTES", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64"]
    | Literal["INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]
)
Size = Annotated[int, Field(ge=0, le=1 << 31)]
Name = Annotated[str, Field(max_length=200)]


class SequenceParameters(BaseModel):
    """Parameters of a request; what belongs to extensions that are not served has no effect and is not refused."""

    model_config = ConfigDict(extra="allow")
    sequence_id: int | Name = Field(default=0, description="The session that this input continues; 0 or empty is none.")
    sequence_start: bool = Field(default=False, description="Begin the session.")
    sequence_end: bool = Field(default=False, description="End it after this input.")
    beam: int | None = Field(default=None, ge=1, description="The beam size, of what searches for its answer.")


class InputTensor(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Name = Field(description="input.")
    shape: list[Size] = Field(max_length=8, description="The first axis counts the inputs.")
    datatype: Datatype = Field(description="BYTES for text.")
    parameters: dict[str, Any] = Field(default={}, description="Of extensions that are not served: no effect.")
    data: list[Any] = Field(description="Nested, or flat in row-major order.")


class OutputName(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Name = Field(description=f"One of {', '.join(OUTPUTS)}.")
    parameters: dict[str, Any] = Field(default={}, description="Of extensions that are not served: no effect.")


class Inference(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"inputs": [{"name": "input", "shape": [1], "datatype": "BYTES", "data": ["3 mai 2024"]}]}]
        },
    )
    id: Name | None = Field(default=None, description="Comes back with the answer.")
    parameters: SequenceParameters = Field(
        default=SequenceParameters(), description="Of the session, and of the search."
    )
    inputs: list[InputTensor] = Field(min_length=1, max_length=1, description="One tensor: a batch of inputs.")
    outputs: list[OutputName] | None = Field(default=None, max_length=8, description="Which are wanted; all if none.")


class GenerateParameters(BaseModel):
    model_config = ConfigDict(extra="forbid")
    temperature: float | None = Field(
        default=None, ge=0, le=100, description="0 takes the likeliest token; none, the beam."
    )
    top_p: float = Field(default=1.0, gt=0, le=1, description="Draw from the fewest tokens with this share together.")
    top_k: int = Field(default=0, ge=0, description="Draw from so many tokens; 0 is from all.")
    max_tokens: int | None = Field(default=None, ge=1, description="The most tokens to write; else the recipe's.")
    stop: list[str] | str = Field(default=[], description="The text ends before any of these.")
    seed: int = Field(default=0, description="The same seed draws the same.")
    details: bool = Field(default=False, description="Tell tokens, their log-probabilities and why the text ended.")

    def writing(self) -> Writing:
        return Writing(
            max_tokens=self.max_tokens or 0,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=self.seed,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop),
        )


class Generate(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text_input": "Once upon", "parameters": {"temperature": 0.8}}]},
    )
    id: Name | None = Field(default=None, description="Comes back with the answer.")
    text_input: str = Field(
        description="What is answered, or written on; for a run that reads numbers, nested lists of them as JSON."
    )
    parameters: GenerateParameters = Field(default=GenerateParameters(), description="How it is written.")
