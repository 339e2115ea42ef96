"""How a text is asked for, and its tokens as they come: the same for every protocol."""

from dataclasses import dataclass

from ..search import Sampling
from ..tasks.decoding_options import DecodingOptions, Rules


@dataclass(frozen=True)
class Writing:
    """How a text is written, as all protocols say it. A temperature of None searches with a beam instead."""

    max_tokens: int = 0  # 0 is the recipe's
    temperature: float | None = None
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    count: int = 1
    alternatives: int = 0
    stop: tuple[str, ...] = ()
    beam: int | None = None  # the recipe's if not given

    @property
    def sampling(self) -> Sampling:
        """Checked: what contradicts itself is a SearchError."""
        temperature = 1.0 if self.temperature is None else self.temperature
        return Sampling(temperature, self.top_k, self.top_p, self.min_p, self.seed)

    def decoding(self, beam_size: int) -> DecodingOptions:
        """How an answer is searched for, with the recipe's beam size where none was asked for."""
        drawn = self.sampling if self.temperature else None
        beam = 1 if drawn or self.temperature == 0 or self.alternatives else self.beam
        return DecodingOptions(
            beam or beam_size,
            max_length=self.max_tokens,
            sampling=drawn,
            count=self.count,
            alternatives=self.alternatives,
            rules=Rules(stop=self.stop),
            timeout=0.0,  # the server's own limit holds
        )


@dataclass(frozen=True)
class Token:
    """One token of one text: what is certain of its text now, and why the text ends with it, if it does."""

    number: int  # of the text
    text: str
    name: str  # nothing for the end
    log: float | None
    finish: str = ""
    alternatives: dict[str, float] | None = None
    offset: int = 0  # characters before it, where that is known beforehand
