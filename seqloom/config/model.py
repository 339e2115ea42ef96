"""[model]: the settings of an architecture, and those that belong to the task rather than to the architecture.

`kind` chooses the class of a table: a setting of another kind cannot be written. A task with an encoder and a decoder
may set them apart, also in kind; a side takes from [model] what it does not say itself.
"""

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from ..architectures import ARCHITECTURES, Architecture
from ..architectures.pooling import POOLS
from .messages import format_value
from .section import Family, OneOf, Section, Text, as_tuple, setting

Side = Literal["encoder", "decoder"]
SIDES: tuple[Side, Side] = ("encoder", "decoder")

FROM = (
    "A run folder to start from: its body and tokenizer are taken along, and the head is new where the task differs; "
    '"" starts with random weights.'
)

if TYPE_CHECKING:  # what a task adds is put together with the settings of an architecture when its kind is known

    class Shape(Family, Architecture): ...

else:  # `from` can be no attribute in the text of a class
    Shape = create_model("Shape", __base__=Family, **{"from": (Text, Field(default="", description=FROM))})


class Model(Shape):
    """[model] of a network with one side."""

    reads_ahead: ClassVar[bool] = False  # whether it has an encoder that sees all of a sequence
    two_sided: ClassVar[bool] = False  # whether it has an encoder and a decoder

    @classmethod
    def of_architecture(cls, own: type[Architecture]) -> "tuple[type[Model], type[Architecture]]":
        """The classes that a table of this architecture is composed of."""
        return cls, own

    @classmethod
    def role(cls) -> "Role":
        return "both" if cls.two_sided else "encoder" if cls.reads_ahead else "forwards"

    def side(self, name: Side) -> Architecture:
        """The settings of one side, with nothing left to derive."""
        return self.complete()

    def resolved(self) -> "Model":
        """With nothing left to derive."""
        return self.complete()

    @property
    def start(self) -> str:
        """The folder whose weights it starts from, `model.from`; that is no name in Python."""
        return str(getattr(self, "from"))

    @model_validator(mode="after")
    def _buildable(self) -> Self:
        if wrong := self.fault():
            raise ValueError(f"the model {wrong}")
        return self


class EmbeddingModel(Model):
    embedding: int = setting(0, "Features of a token's embedding; 0 is as many as the first layer has.", ge=0, le=2**16)

    scaled_embedding: bool = setting(
        True,
        "Whether the embedding of a token is multiplied by the square root of its size; in BERT and GPT-2 it is not.",
    )

    def resolved(self) -> Model:
        return self.complete().model_copy(update={"embedding": self.embedding or self.sizes[0]})


class SegmentedModel(EmbeddingModel):
    segments: int = setting(
        0, "Kinds of segments that tokens belong to, as the first and the second of two texts; 0 is none.", ge=0, le=100
    )


class WordReading(EmbeddingModel):
    spelling: Literal["convolution", "recurrence"] = setting(
        "convolution", "The network that reads the characters of a word, if data.characters is above 0."
    )
    word_vectors: bool = setting(
        True, "Whether a word has an embedding of its own beside its character features; otherwise it has only those."
    )
    one_hot: bool = setting(
        False, "Whether a token is read as a one-hot vector, as long as the vocabulary, and has no embedding."
    )


class HiddenLayer(Model):
    hidden: int = setting(0, "Features of a hidden layer in front of the output layer; 0 is none.", ge=0, le=2**16)
    hidden_layers: int = setting(
        1, "How many such hidden layers there are, where model.hidden has features.", ge=1, le=100
    )

    hidden_activation: Literal["relu", "tanh"] = setting(
        "relu", "The activation function of such hidden layers; BERT's is tanh."
    )

    @model_validator(mode="after")
    def _hidden_layers_exist(self) -> Self:
        for name in ("hidden_layers", "hidden_activation"):
            if (value := getattr(self, name)) != type(self).model_fields[name].default and not self.hidden:
                raise ValueError(f"model.{name} is {format_value(value)}, but model.hidden is 0: there are none")
        return self


class Pooling(HiddenLayer):
    pool: Annotated[str, OneOf(POOLS, ("",))] = setting(
        "",
        "How a sequence becomes one vector: the mean, the sum divided by the square root of the length (sqrtn), the "
        "last element, the first, the maximum of each feature, or attention with learned queries; "
        '"" is what suits the kind.',
    )
    queries: int = setting(4, 'How many learned queries there are, where model.pool is "attention".', ge=1, le=1000)

    @model_validator(mode="after")
    def _queries_are_read(self) -> Self:
        if self.queries != type(self).model_fields["queries"].default and self.pool != "attention":
            raise ValueError(f'model.queries is {self.queries}, but only model.pool "attention" reads it')
        return self


class NonLocalBlocks(Model):
    non_local: int = setting(
        0,
        "Non-local blocks between the patches of an image, or the frames of a video, and what reads them: each looks "
        "at all others (Wang et al., 2018).",
        ge=0,
        le=100,
    )


class Patches(NonLocalBlocks):
    patch: int = setting(4, "The side, in pixels, of the squares that an image is cut into.", ge=1, le=1024)


class ReadingModel(EmbeddingModel):
    mix_layers: bool = setting(
        False,
        "Whether the head reads a learned mix of the outputs of all layers, as in ELMo, instead of the last layer.",
    )
    causal: bool = setting(
        False, "Whether an element sees only those before it, as in a language model that this one starts from."
    )

    reads_ahead: ClassVar[bool] = True


class ClassifyModel(WordReading, Patches, Pooling, SegmentedModel, ReadingModel):
    """Reads a sequence and answers once."""

    nb_svm: bool = Field(
        default=False,
        description="Whether NB-SVM, a linear model of tokens and pairs of neighbors (Wang and Manning, 2012), is "
        "interpolated with the trained network, with weights learned on the validation part.",
    )


class TagModel(WordReading, NonLocalBlocks, HiddenLayer, ReadingModel):
    crf: bool = setting(False, "Whether tags are predicted jointly by a conditional random field.")
    lexicon: bool = setting(
        False,
        "Whether the net reads, and begins with, how often each word had each tag in training; with model.crf it "
        "begins as a hidden Markov model.",
    )


class TranscribeModel(NonLocalBlocks, HiddenLayer, ReadingModel):
    """Reads a sequence and writes the tokens that its elements say, in their order."""

    frames: int = setting(
        1,
        "How many tokens an element can say in a row; 2 for spelling to sound, where an x is two sounds.",
        ge=1,
        le=100,
    )


class GeneratorModel(EmbeddingModel):
    tied: bool = setting(False, "Whether the output layer has the weights of the embedding.")
    output_bias: bool = setting(True, "Whether the output layer has a bias; GPT-2's has none.")

    @model_validator(mode="after")
    def _tied_fits(self) -> Self:
        sizes = self.side("decoder").sizes
        if self.tied and sizes[-1] != (vector := self.embedding or sizes[0]):
            raise ValueError(
                f"model.tied wants the last layer as wide as a token's embedding: {sizes[-1]}, not {vector}"
            )
        return self


class LanguageModel(WordReading, GeneratorModel):
    ngram: int = setting(
        0,
        "The order of an n-gram model of the training text that is interpolated with the network, with weights "
        "learned on the validation part; 0 is none.",
        ge=0,
        le=10,
    )
    cache: int = setting(
        0,
        "The number of most recent tokens in a continuous cache, which makes tokens more probable that came in "
        "similar states, with a weight learned on the validation part; 0 is no cache.",
        ge=0,
        le=10_000,
    )


class PretrainModel(SegmentedModel, GeneratorModel):
    """A body that reads text, with a head that predicts tokens."""

    reads_ahead: ClassVar[bool] = True

    output_transform: bool = setting(
        False,
        "Whether a hidden layer with a norm stands before the output layer that predicts masked tokens, as in BERT.",
    )


class EncoderDecoderModel(GeneratorModel):
    encoder: Architecture = Field(description="Where the encoder differs; what is not given is as in [model].")
    decoder: Architecture = Field(description="Where the decoder differs; what is not given is as in [model].")

    reads_ahead: ClassVar[bool] = True
    two_sided: ClassVar[bool] = True

    def side(self, name: Side) -> Architecture:
        return (self.encoder if name == "encoder" else self.decoder).complete()

    def resolved(self) -> Model:
        sides: dict[str, Architecture] = {name: self.side(name) for name in SIDES}
        return self.complete().model_copy(update={**sides, "embedding": self.embedding or sides["decoder"].sizes[0]})

    def list_same_settings(self, table: str) -> set[str]:
        side: Architecture = getattr(self, table)
        same = {name for name in list_inherited(type(self), type(side)) if getattr(self, name) == getattr(side, name)}
        return same | ({"kind"} if self.kind == side.kind else set())

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, values: Any) -> Any:
        """A side takes from [model] what it does not say itself; sizes that it lists say how deep it is."""
        if not isinstance(values, dict):
            return values
        filled = dict(values)
        for name in SIDES:
            own, side = values.get(name, {}), cls.model_fields[name].annotation
            if isinstance(own, dict) and isinstance(side, type):
                above = {key: values[key] for key in list_inherited(cls, side) if key in values}
                listed = own.get("size")
                if isinstance(listed, list | tuple) and above.get("depth") != len(listed):
                    above.pop("depth", None)
                filled[name] = above | own
        return filled

    @model_validator(mode="after")
    def _buildable(self) -> Self:
        for name in SIDES:
            if wrong := getattr(self, name).fault():
                raise ValueError(f"the {name} {wrong}")
        read = {key for name in SIDES for key in list_inherited(type(self), type(getattr(self, name)))}
        for key in side_class(ARCHITECTURES[self.kind], "both").model_fields:
            if key not in read | {"kind"} and getattr(self, key) != type(self).model_fields[key].default:
                kinds = f"the encoder is {self.encoder.kind} and the decoder {self.decoder.kind}"
                raise ValueError(f"model.{key} is set, but {kinds}: none of them reads it")
        return self


class Seq2SeqModel(WordReading, Patches, EncoderDecoderModel):
    """An encoder of text, numbers or images, and a decoder."""

    shared_embedding: bool = setting(
        False, "Whether the source is read with the embedding of the target (Vaswani et al., 2017); needs data.shared."
    )


def _check_levels(levels: tuple[float, ...]) -> tuple[float, ...]:
    if list(levels) != sorted(set(levels)):
        raise ValueError(f"{format_value(levels)} must increase")
    if levels and 0.5 not in levels:
        raise ValueError(f"{format_value(levels)} lacks 0.5, which is the forecast itself")
    return levels


Level = Annotated[float, Field(gt=0, lt=1)]
Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(as_tuple, json_schema_input_type=Level | Annotated[list[Level], Field(max_length=99)]),
    AfterValidator(_check_levels),
    Field(max_length=99),
]


class ForecastModel(HiddenLayer):
    quantiles: Levels = setting((0.1, 0.5, 0.9), "The quantiles that are forecast; none is the mean alone.")
    relative: Literal["none", "last", "mean"] = setting(
        "last", "What the values of a window are relative to: nothing, its last values, or its mean and spread."
    )
    channel_independent: bool = setting(
        False, "Whether each variable is forecast from itself alone, all by the same weights."
    )
    patch_length: int = setting(1, "How many rows of a window are read as one element.", ge=1, le=10**6)

    @classmethod
    def of_architecture(cls, own: type[Architecture]) -> tuple[type[Model], type[Architecture]]:
        return (ForecastModel, own.whole_window) if own.whole_window else (SummarizedForecastModel, own)


class SummarizedForecastModel(Pooling, ForecastModel):
    """Forecasts from a summary of the window."""


# --- classes by kind -------------------------------------------------------------------------------------------------

Role = Literal["encoder", "decoder", "both", "forwards"]
KIND = "What reads and writes the sequences."


def side_parts(own: type[Architecture], role: Role) -> list[type[Section]]:
    """The classes that have the settings of an architecture as one side, as both, or as what neither reads ahead nor
    looks at a source."""
    parts = {"forwards": [own.start_settings], "decoder": [own.decoder_settings]}
    parts["encoder"] = [own.encoder_settings, *parts["forwards"]]
    parts["both"] = [*parts["decoder"], *parts["encoder"]]
    return [*(part for part in parts[role] if part is not Section), own]


@cache
def side_class(own: type[Architecture], role: Role) -> type[Architecture]:
    """The class of the settings of an architecture in this role."""
    bases: Any = tuple(side_parts(own, role))
    kind = own.model_fields["kind"]
    field: Any = (kind.annotation, Field(kind.default, description=KIND))
    return create_model(f"{own.__name__}{role.title()}", __base__=bases, kind=field)


@cache
def compose(shape: type[Model], own: type[Architecture], encoder: Any, decoder: Any) -> type[Model]:
    """The class of a [model] table: what the task adds to the settings of an architecture."""
    shape, own = shape.of_architecture(own)
    sides: dict[str, Any] = {}
    for name, side in (("encoder", encoder), ("decoder", decoder)) if shape.two_sided else ():
        sides[name] = (side, Field(default=None, description=shape.model_fields[name].description))
    bases: Any = (shape, side_class(own, shape.role()))
    return create_model(f"{own.__name__}{shape.__name__}", __base__=bases, **sides)


def model_class(shape: type[Model], kind: str, encoder: str, decoder: str) -> type[Model]:
    """The class of a [model] table of this kind, whose sides have these."""
    sides = (side_class(ARCHITECTURES[encoder], "encoder"), side_class(ARCHITECTURES[decoder], "decoder"))
    return compose(shape, ARCHITECTURES[kind], *(sides if shape.two_sided else (None, None)))


def model_union(shape: type[Model]) -> Any:
    """All classes of a [model] table as one type, for the JSON schema: `kind` divides them, but may be left out."""
    kinds = [own for own in ARCHITECTURES.values() if shape is ClassifyModel or not own.only_classifies]
    sides = [Union[tuple(side_class(own, name) for own in kinds)] if shape.two_sided else None for name in SIDES]  # noqa: UP007
    return Union[tuple(compose(shape, own, *sides) for own in kinds)]  # noqa: UP007


def list_inherited(model: type[Section], side: type[Section]) -> list[str]:
    """What a side takes from [model]: the settings of architectures that both declare alike."""
    ours, theirs = model.model_fields, side.model_fields
    return [
        name
        for name in theirs
        if name in ours
        and (ours[name].annotation, ours[name].metadata) == (theirs[name].annotation, theirs[name].metadata)
    ]
