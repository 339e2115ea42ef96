"""What a family of models is: its configuration, its table of names, and how it is built of our layers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn

from .table import WeightRow

Size = Annotated[int, Field(ge=1, le=1 << 24)]
Depth = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(ge=0, lt=1)]
Token = Annotated[int, Field(ge=0, lt=1 << 31)]
Activation = Literal["gelu", "gelu_python", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "silu", "swish"]

# The five that approximate by tanh differ in how it is written down, not in what is computed.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    **dict.fromkeys(("gelu", "gelu_python"), nn.GELU),
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), lambda: nn.GELU("tanh")),
    "relu": nn.ReLU,
    **dict.fromkeys(("silu", "swish"), nn.SiLU),
}


class FolderConfig(BaseModel):
    """What of a config.json changes what is computed; other keys are kept and not looked at.

    Fields have our names and, as aliases, theirs; the defaults are those of transformers, which may leave them out.
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, allow_inf_nan=False)

    tied: bool = Field(True, alias="tie_word_embeddings")
    id2label: dict[str, str] = Field(default_factory=lambda: {"0": "LABEL_0", "1": "LABEL_1"}, max_length=1 << 20)
    end: Token | list[Token] | None = Field(None, alias="eos_token_id")
    banned: list[list[Token]] = Field(default_factory=list, alias="bad_words_ids", max_length=10_000)
    # What these would change is not built here.
    is_decoder: Literal[False] = False
    add_cross_attention: Literal[False] = False
    position_embedding_type: Literal["absolute"] = "absolute"
    pruned_heads: dict[str, Any] = Field(default_factory=dict, max_length=0)

    @model_validator(mode="before")
    @classmethod
    def leave_out_nothing(cls, values: Any) -> Any:
        """`null` means the default in these files, but for what may be null."""
        return (
            {key: value for key, value in values.items() if value is not None} if isinstance(values, dict) else values
        )

    @property
    def labels(self) -> int:
        return len(self.id2label)


@dataclass(frozen=True)
class Parts:
    """What a model of a family is made of: the network, and what answers other questions about the same body."""

    network: nn.Module
    others: Mapping[str, nn.Module] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """A `head` is what an architecture answers: see `architectures`; an `extra` is a part that may be there or not."""

    name: str  # the `model_type`
    prefix: str  # of the names of the body's weights, which a folder of the body alone leaves out
    config: type[Any]
    architectures: Mapping[str, str]  # class of transformers -> the head that it has
    extras: Mapping[str, str]  # part that may be there -> how its weights' names begin
    needed: Mapping[str, frozenset[str]]  # architecture -> the extras that it cannot do without
    model: type[Any]
    build: Callable[[Any, str, frozenset[str]], Parts]  # from a configuration, a head and the extras
    rows: Callable[[Any, str, frozenset[str]], list[WeightRow]]
    ties: Callable[[Any], Mapping[str, str]]  # weight that may be stored a second time -> which one it is
    constants: Callable[[Any], Mapping[str, Tensor | None]]  # what old folders hold besides weights

    def is_bare(self, architecture: str) -> bool:
        """Whether its folder holds the body alone, without a prefix to its names."""
        return self.architectures[architecture] == "none"
