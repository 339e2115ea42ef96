"""What a request for completions may hold."""

import secrets
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from ..errors import DataError
from .engine import Engine
from .writing import Writing

Prompt = Annotated[str, Field(max_length=1 << 20)]
Ids = Annotated[list[StrictInt], Field(min_length=1, max_length=1 << 20)]


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")
    include_usage: bool = Field(default=False, description="Send the usage in a last chunk of its own.")


class Completion(BaseModel):
    """A request for completions."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"model": "language", "prompt": "Once upon", "max_tokens": 16, "seed": 1}]},
    )
    model: str = Field(description="The name of a run.")
    prompt: Prompt | Ids | Annotated[list[Prompt], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)] = (
        Field(default="", description="One beginning, or several: texts, or tokens by number as /tokenize gives them.")
    )
    max_tokens: int = Field(default=16, ge=0, description="The most tokens to write; 0 only with echo.")
    temperature: float = Field(default=1.0, ge=0, le=100, description="0 takes the likeliest token each time.")
    top_p: float = Field(
        default=1.0, gt=0, le=1, description="Draw from the fewest tokens that have this share together."
    )
    n: int = Field(default=1, ge=1, description="Texts for each prompt.")
    best_of: int | None = Field(default=None, description="As n, or not given: texts are not ranked here.")
    stream: bool = Field(default=False, description="Send pieces as server-sent events, `data: [DONE]` at the end.")
    stream_options: StreamOptions | None = Field(default=None, description="Of a stream.")
    logprobs: int | None = Field(
        default=None, ge=0, description="Tell log-probabilities, and so many of the likeliest tokens."
    )
    echo: bool = Field(
        default=False, description="Give the prompt as well, with its log-probabilities if they are asked for."
    )
    stop: str | list[str] | None = Field(default=None, description="Texts end before any of these.")
    seed: int | None = Field(
        default=None, description="The same seed writes the same; a new one is drawn if not given."
    )
    user: str | None = Field(default=None, description="Not used.")
    frequency_penalty: Literal[0] = Field(default=0, description="Not served: 0.")
    presence_penalty: Literal[0] = Field(default=0, description="Not served: 0.")
    suffix: None = Field(default=None, description="Not served: null.")
    logit_bias: None = Field(default=None, description="Not served: null.")

    @property
    def prompts(self) -> list[Any]:
        """Texts, or lists of tokens by number."""
        one = isinstance(self.prompt, str) or isinstance(self.prompt[0], int)
        return [self.prompt] if one else list(self.prompt)

    def writing(self) -> Writing:
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return Writing(
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=secrets.randbelow(1 << 31) if self.seed is None else self.seed,
            count=self.n,
            alternatives=self.logprobs or 0,
            stop=tuple(stop),
        )

    def check(self, engine: Engine) -> None:
        if self.best_of not in (None, self.n):
            raise DataError("best_of is not served unless it is n: texts are given as they are drawn")
        if self.max_tokens == 0 and not self.echo:
            raise DataError("max_tokens is 0, and without echo that is nothing")
        engine.check_inputs(self.prompts)
        engine.check_writing(len(self.prompts), self.writing())
