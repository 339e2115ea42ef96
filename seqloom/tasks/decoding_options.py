"""How answers are searched for, and rules that every text obeys. Knows fields of text, and no model."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..arguments import check_real, check_text, check_texts, check_whole, describe_value
from ..data.vocabulary import END, UNKNOWN
from ..errors import SearchError
from ..fields import Text
from ..search import (
    BannedPhrases,
    BannedTokens,
    Constraint,
    MinLength,
    NoRepeat,
    Prefix,
    RepetitionPenalty,
    RequiredTokens,
    Sampling,
    Stop,
    StopText,
)


@dataclass(frozen=True)
class Rules:
    """What every text obeys. Texts here are turned into tokens as the model's own are."""

    ban: Sequence[str] = ()  # never written
    require: Sequence[str] = ()  # written somewhere; a token each
    prefix: str = ""  # what is written first
    stop: Sequence[str] = ()  # what ends a text, which then ends before it
    no_repeat: int = 0  # no so many tokens in a row are written twice; 0 is free
    repetition_penalty: float = 1.0  # what was written before becomes so much rarer
    min_length: int = 0  # tokens at least
    allow_unknown: bool = False  # whether the symbol for what the vocabulary does not have may be written

    def __post_init__(self) -> None:
        for name in ("ban", "require", "stop"):
            check_texts(name, getattr(self, name))
        check_text("the prefix", self.prefix)
        for name in ("no_repeat", "min_length"):
            check_whole(name, getattr(self, name), 0)
        check_real("repetition_penalty", self.repetition_penalty)

    def constraints(self, field: Text, rows: int, steps: int) -> list[Constraint]:
        """The constraints for this many rows and steps."""
        constraints: list[Constraint] = [] if self.allow_unknown else [BannedTokens([UNKNOWN])]
        if self.ban:
            constraints.append(BannedPhrases([encode_rule(field, text) for text in self.ban]))
        if self.prefix:
            constraints.append(Prefix([encode_rule(field, self.prefix)] * rows))
        if self.min_length:
            constraints.append(MinLength(min(self.min_length, steps), END))
        if self.require:
            constraints.append(RequiredTokens([encode_single(field, text) for text in self.require], END, steps))
        if self.no_repeat:
            constraints.append(NoRepeat(self.no_repeat))
        if self.repetition_penalty != 1:
            constraints.append(RepetitionPenalty(self.repetition_penalty))
        return constraints

    def stops(self, field: Text) -> list[Stop]:
        return [StopText(field.decode, self.stop)] if any(self.stop) else []


@dataclass(frozen=True)
class DecodingOptions:
    """How answers are searched for: by a beam, or drawn where there is a sampling."""

    beam_size: int
    groups: int = 1
    diversity: float = 0.5
    best: int = 0  # how many answers are given; 0 is all that are kept
    length_penalty: float | None = None  # the recipe's, if not given
    max_length: int = 0  # tokens at most; 0 is the recipe's
    sampling: Sampling | None = None
    count: int = 1  # how many answers are drawn
    alternatives: int = 0  # how many of the likeliest tokens are given for each step
    rules: Rules = Rules()
    timeout: float | None = None  # seconds an answer at most; 0 is no limit, and the recipe's is taken if not given

    def __post_init__(self) -> None:
        least = {"beam_size": 1, "groups": 1, "best": 0, "max_length": 0, "count": 1, "alternatives": 0}
        for name, at_least in least.items():
            check_whole("the beam size" if name == "beam_size" else name, getattr(self, name), at_least)
        check_real("diversity", self.diversity)
        if self.length_penalty is not None:
            check_real("length_penalty", self.length_penalty)
        for name, value, kind in (("sampling", self.sampling, Sampling), ("rules", self.rules, Rules)):
            if value is not None and not isinstance(value, kind):
                raise SearchError(f"the {name} is {describe_value(value)}, but {kind.__name__} was expected")
        if self.alternatives and self.sampling is None and self.beam_size > 1:
            raise SearchError("alternatives are given of answers that are written one by one: a beam of 1")


def encode_rule(field: Text, text: str) -> list[int]:
    """The tokens of a text that is part of a rule; all of it must be known."""
    ids: list[int] = field.encode(text).tolist()
    if not ids or UNKNOWN in ids:
        raise SearchError(f"the rule {text[:80]!r} is empty or holds what this model never writes")
    return ids


def encode_single(field: Text, text: str) -> int:
    ids = encode_rule(field, text)
    if len(ids) > 1:
        names = " ".join(field.names(ids))
        raise SearchError(f"a token can be required, but {text[:80]!r} is {len(ids)} of them: {names[:80]}")
    return ids[0]
