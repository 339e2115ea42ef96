"""[train] and [search]: how a model learns, and how it writes."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ..counts import format_count
from ..errors import RecipeError
from .messages import format_value
from .optimizers import ADAPTIVE, MOMENTUM, OPTIMIZERS
from .section import Family, OneOf, ReadIf, Text, Texts, setting

VALIDATIONS = 20  # of a training, unless train.validate_every says otherwise
DEFAULT_STEPS = 2000
TIME = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)


def seconds(text: str) -> int:
    """The seconds of a time budget such as "90s", "5m", "1h" or "1h30m"."""
    match = TIME.fullmatch(text)
    hours, minutes, rest = (int(number or 0) for number in match.groups()) if match else (0, 0, 0)
    total = 3600 * hours + 60 * minutes + rest
    if not total:
        raise RecipeError(f'{format_value(text)} is not a duration; write "90s", "5m", "1h" or "1h30m"')
    return total


def _check_time(text: str) -> str:
    if text:
        try:
            seconds(text)
        except RecipeError as error:
            raise ValueError(str(error)) from None
    return text


Time = Annotated[Text, AfterValidator(_check_time)]
Steps = Annotated[int, Field(ge=0, le=10**9)]


def find_even_part(whole: int, most: int) -> int:
    """The largest part of `whole` steps that divides them, from half of `most` to `most`; the whole, if none does."""
    return next((part for part in range(min(whole, most), most // 2, -1) if whole % part == 0), whole)


class Train(Family):
    """[train] settings that every task has."""

    table = "train"

    steps: Steps = setting(
        0, f"Steps of the optimizer; 0 is as many as train.time allows, or {DEFAULT_STEPS} without a budget."
    )
    time: Time = setting(
        "", 'A budget such as "90s", "5m" or "1h30m" instead of steps, turned into steps at the start.'
    )
    seed: int = setting(0, "The seed of everything random: the same seed, the same run.", ge=0, le=2**32 - 1)
    batch_tokens: int = setting(4096, "Tokens a batch: source and target together, padding included.", ge=1, le=10**9)
    accumulate_batches: int = setting(
        1, "How many batches, one after the other, make one step together.", ge=1, le=10**6
    )
    optimizer: Annotated[str, OneOf(OPTIMIZERS)] = setting("adamw", "The optimizer, one of torch's own.")
    momentum: Annotated[
        float, ReadIf(lambda train: train.optimizer in MOMENTUM, f"with train.optimizer {' or '.join(MOMENTUM)}")
    ] = setting(0.9, "The momentum of sgd.", ge=0, lt=1)
    beta2: Annotated[
        float, ReadIf(lambda train: train.optimizer in ADAPTIVE, f"with train.optimizer {' or '.join(ADAPTIVE)}")
    ] = setting(
        0.999,
        "Adam's second beta, the decay of its mean of squared gradients; lower values give smaller steps to weights "
        "that seldom have a gradient, such as the embeddings of rare tokens.",
        ge=0,
        lt=1,
    )
    learning_rate: float = setting(1e-3, "The learning rate at its highest, after the warm-up.", gt=0, le=100)
    schedule: Literal["cosine", "ramp-times-cosine", "linear", "constant", "inverse-root"] = setting(
        "cosine", "The learning rate schedule after the warm-up."
    )
    warmup: Steps = setting(0, "Steps in which the rate rises from nothing; 0 is a twentieth of all, at most 1000.")
    weight_decay: float = setting(0.01, "Weight decay of matrices; vectors such as biases have none.", ge=0, le=100)
    clip_norm: float = setting(1.0, "Gradient clipping: the largest norm of a gradient; 0 is no limit.", ge=0, le=10**9)
    clip_value: float = setting(
        0.0, "Gradient clipping: the largest absolute value of an entry; 0 is no limit.", ge=0, le=10**9
    )
    ema: float = setting(
        0.0, "Exponential averaging of the weights, such as 0.999: the average is what is kept; 0 is none.", ge=0, lt=1
    )
    freeze: Texts = setting((), 'Parts of the model that do not learn, such as "embed", "source" or "encoder".')
    unfreeze_every: Steps = setting(
        0,
        "Gradual unfreezing: at first only the head learns, and after every so many steps one more layer, from the "
        "top down, the embedding last; 0 lets all learn from the start.",
    )
    layer_decay: float = setting(
        1.0,
        "Discriminative learning rates: a layer learns at this share of the rate of the layer above it, the head at "
        "the full rate; 1 is the same rate for all.",
        gt=0,
        le=1,
    )
    device: Literal["auto", "cpu", "cuda", "mps"] = setting(
        "auto", "Where it is trained: auto is a GPU if there is one, else the processor."
    )
    precision: Literal["auto", "float32", "bfloat16", "float16"] = setting(
        "auto", "The precision of matrix products in training; auto is float32 unless another is measured to be faster."
    )
    shard: bool = setting(
        False, "Whether several processes hold a share of the weights each (FSDP2) instead of all of them (DDP)."
    )
    watch_every: Steps = setting(
        100, "Steps between looks at the gradient of every layer and at recurrent weights; 0 is never."
    )
    validate_every: Steps = setting(
        0,
        "Steps between validations; 0 is a twentieth of all, at most 500, and with train.time so many that they take "
        "about a tenth of it.",
    )
    validation_tokens: int = setting(
        0,
        "Tokens of a validation during training, of examples from all over the part, at least 50; 0 is a tenth of "
        "those trained on in between, and at the end all are read.",
        ge=0,
        le=10**12,
    )
    select_by: Literal["", "loss", "score"] = setting(
        "",
        'What selects the best weights and decides when to stop: the validation loss or score; "" is the score for '
        "tasks with labels, otherwise the loss.",
    )
    patience: int = setting(0, "Validations without progress after which training stops; 0 is never.", ge=0, le=10**9)
    checkpoint_every: Steps = setting(
        0, "Steps between checkpoints; 0 is about a twentieth of all, so that one precedes every validation."
    )
    keep_checkpoints: int = setting(2, "How many checkpoints are kept: the newest.", ge=1, le=10**6)

    def model_settings(self) -> dict[str, object]:
        """The settings of [model] that follow from those of [train]."""
        return {}

    @property
    def known_steps(self) -> int:
        """All steps of the training, or 0 while a time budget has not become steps."""
        return self.steps or (0 if self.time else DEFAULT_STEPS)

    def resolved(self, window: int = 0, best: Literal["loss", "score"] = "loss") -> "Train":
        """With everything filled in that follows; `window` and `best` are what the task takes unless it is said."""
        if (window and not self.bptt_window) or not self.select_by:
            settled: dict[str, object] = {"bptt_window": self.bptt_window or window} if window else {}
            return self.model_copy(update=settled | {"select_by": self.select_by or best}).resolved()
        steps = self.known_steps
        if not steps:
            return self
        usual = min(500, max(1, steps // VALIDATIONS))
        validate_every = self.validate_every or usual
        return self.model_copy(
            update={
                "steps": steps,
                "warmup": self.warmup or min(1000, max(1, steps // 20)),
                "validate_every": validate_every,
                "validation_tokens": self.validation_tokens
                or max(1, validate_every * self.batch_tokens * self.accumulate_batches // 10),
                "checkpoint_every": self.checkpoint_every or find_even_part(validate_every, usual),
            }
        )

    @model_validator(mode="after")
    def _steps_fit(self) -> Self:
        if self.steps and self.time:
            raise ValueError("train.steps and train.time are both given, but the time decides the steps: choose one")
        if self.known_steps and self.warmup > self.known_steps:
            raise ValueError(
                f"train.warmup is {format_count(self.warmup, 'step')}, but the whole training has {self.known_steps}"
            )
        return self


class ShuffledTrain(Train):
    shuffle: bool = setting(
        True, "Whether every epoch reads the examples in an order of its own; if not, they come as they stand."
    )


class GeneratorTrain(Train):
    """How a model learns that writes one element after the other."""

    bptt_window: Steps = setting(
        0,
        "Truncated backpropagation through time: elements per window, one step a window; 0 is the whole sequence, or "
        "128 in endless texts.",
    )
    teacher_forcing: float = setting(
        1.0, "Teacher forcing: the share of true tokens a decoder reads at the last step, else its own.", ge=0, le=1
    )
    teacher_forcing_schedule: Annotated[
        Literal["constant", "linear", "exponential", "inverse-sigmoid"],
        ReadIf(lambda train: train.teacher_forcing < 1, "with a train.teacher_forcing below 1"),
    ] = setting("constant", "How that share falls from 1 to train.teacher_forcing over all steps.")

    teacher_forcing_per: Literal["token", "sequence"] = setting(
        "token", "Whether teacher forcing is drawn for each token, or once for a whole sequence."
    )

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.teacher_forcing_schedule == "exponential" and self.teacher_forcing == 0:
            raise ValueError(
                'train.teacher_forcing is 0, which an "exponential" train.teacher_forcing_schedule '
                "never reaches: say 0.01"
            )
        if self.teacher_forcing_per == "sequence" and self.teacher_forcing == 1:
            raise ValueError(
                'train.teacher_forcing_per is "sequence", but train.teacher_forcing is 1: the truth is always read, '
                "and nothing is drawn"
            )
        return self


ONE_BY_ONE = ReadIf(
    lambda train: train.objective != "document", 'with train.objective "masked", "causal" or "bidirectional"'
)


class SmoothedTrain(Train):
    label_smoothing: Annotated[float, ONE_BY_ONE] = setting(
        0.0, "Label smoothing: the share of probability spread evenly over all classes.", ge=0, lt=1
    )


class SampledTrain(SmoothedTrain):
    """[train] of tasks that predict tokens of a large vocabulary."""

    sampled_softmax: Annotated[int, ONE_BY_ONE] = setting(
        0,
        "Sampled softmax: the number of sampled words that the true word is compared with; 0 is the full softmax.",
        ge=0,
        le=10**7,
    )

    @model_validator(mode="after")
    def _smoothed_or_sampled(self) -> Self:
        if self.sampled_softmax and self.label_smoothing:
            raise ValueError(
                "train.label_smoothing gives probability to all words, but train.sampled_softmax looks at few: "
                "choose one"
            )
        return self


class Seq2SeqTrain(SmoothedTrain, GeneratorTrain, ShuffledTrain):
    """[train] of sequence-to-sequence tasks."""


class MusicTrain(SmoothedTrain, GeneratorTrain):
    """For documents without a source, which are read in order."""


class LanguageTrain(SampledTrain, MusicTrain):
    """[train] of language modeling."""


MASKED = ReadIf(lambda train: train.objective == "masked", 'with train.objective "masked"')


class PretrainTrain(SampledTrain):
    objective: Literal["masked", "causal", "bidirectional", "document"] = setting(
        "masked",
        "What is predicted: masked tokens from all others (as BERT), the next token from those before it (as GPT), "
        "each token from those before it and, apart from that, from those after it (as ELMo), or the words of the "
        "rest of a text from an excerpt of it.",
    )
    mask_share: Annotated[float, MASKED] = setting(
        0.15,
        "The share of tokens to predict: of these, 80 % are hidden, 10 % are another token, and 10 % stay.",
        gt=0,
        lt=1,
    )
    whole_words: Annotated[bool, MASKED] = setting(
        False, "Whether all tokens of a word are masked together, and not each by itself."
    )
    next_sentence: Annotated[bool, MASKED] = setting(
        False,
        "Whether it is predicted, too, if the second half of a window follows the first or stands elsewhere; both "
        "losses count alike.",
    )

    def model_settings(self) -> dict[str, object]:
        """The settings of [model] that follow from what is predicted, where the architecture has them."""
        match self.objective:
            case "causal":
                return {"bidirectional": False}
            case "bidirectional":
                return {"bidirectional": True, "merge": "separate"}
        return {}


class LabelTrain(SmoothedTrain, ShuffledTrain):
    """For what gives labels, to a sequence or to each of its elements."""

    class_weights: bool = setting(
        False, "Whether the loss is weighted so that every label counts alike, however rare it is."
    )
    linear_probe: bool = setting(
        True,
        "Whether a new output layer on a body of model.from begins as a logistic regression on what the body knows of "
        "the training examples, and not at random (Kumar et al., 2022).",
    )


class Search(Family):
    """How an output is searched for. Only tasks that write about a source have settings of it."""


class BeamWidth(Search):
    beam_size: int = setting(4, "How many outputs beam search keeps side by side; 1 is greedy.", ge=1, le=1000)


class BeamSearch(BeamWidth):
    length_penalty: float = setting(
        1.0, "The power of its length that an output's score is divided by; 0 is none.", ge=0, le=10
    )
    max_length: int = setting(
        0, "The most tokens written; 0 is twice the longest training target and 10.", ge=0, le=10**6
    )
    timeout: float = setting(
        60.0, "The most seconds that an answer is written for, when one is asked for; 0 is no limit.", ge=0, le=10**6
    )


class TextSearch(BeamSearch):
    allow_unknown: bool = setting(
        False, "Whether <unk>, which stands for what the vocabulary does not have, may be written."
    )
