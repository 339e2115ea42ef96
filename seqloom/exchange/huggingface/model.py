"""A network in the shape of one of their families: logits, generation, another head.

The network is a `Labeler` or a `Generator` of our layers like any other, so it can be trained, searched with and
watched like any other; what is added here is what the folder says about it.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...errors import DataError, RunError
from ...layers.base import Memory
from ...layers.heads import Head, Loss
from ...layers.padding import full_mask
from ...models import Generator, Labeler
from ...search import BannedPhrases, BannedTokens, BeamOptions, Constraint, Hypothesis, StopTokens, beam, greedy
from .family import Family

if TYPE_CHECKING:
    from .tokenizer import FolderTokenizer


class NoHead(Head):
    """The head of a checkpoint that has none."""

    def forward(self, features: Tensor) -> Any:
        raise RunError("this model is a body without a head, so it has no logits: ask for its features, or give it one")

    def loss(self, features: Tensor, target: Tensor, mask: Tensor | None = None) -> Loss:
        return self(features)

    def sample(self, expected: Any, temperature: float = 1.0, mask: Tensor | None = None) -> Tensor:
        return self(expected)


MASKED = "masked"  # what a head answers that predicts masked tokens


class PretrainedModel(nn.Module):
    """What `load` gives: `network`, and beside it the configuration and the tokenizer of the folder."""

    def __init__(self, family: Family, settings: Any, architecture: str, extras: frozenset[str]) -> None:
        super().__init__()
        self.family, self.settings, self.architecture, self.extras = family, settings, architecture, extras
        self.config: dict[str, Any] = {}  # what config.json says, whether it matters here or not
        self.tokenizer: FolderTokenizer | None = None
        parts = family.build(self.settings, self.answers, extras)
        self.network: Any = parts.network
        self.others = nn.ModuleDict(parts.others)

    @property
    def rows(self) -> list[Any]:
        """The table of names for all of its weights."""
        return self.family.rows(self.settings, self.answers, self.extras)

    @property
    def answers(self) -> str:
        """What its head answers: masked tokens, a label a text or a token, what comes next, or nothing."""
        return self.family.architectures[self.architecture]

    @property
    def pooling_layer(self) -> nn.Linear | None:
        """The layer between the first token and the vector of a text, where there is one."""
        return None

    def count_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def check(self, ids: Tensor, mask: Tensor | None, symbols: int, body: nn.Module) -> tuple[Tensor, Tensor]:
        """The ids and their mask, of which nothing is beyond what the model knows."""
        if ids.dim() != 2 or ids.is_floating_point() or not ids.shape[1]:
            raise DataError(f"ids are whole numbers, rows × at least one place, but here they are {describe(ids)}")
        valid = full_mask(ids) if mask is None else mask.bool()
        if valid.shape != ids.shape:
            raise DataError(f"the mask is {describe(valid)}, but the ids are {describe(ids)}")
        ids = ids.masked_fill(~valid, 0)  # whatever stands under the mask is nobody's business
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < symbols:
            worst = int(ids.max()) if int(ids.min()) >= 0 else int(ids.min())
            raise DataError(f"the id {worst} is beyond the {symbols} tokens that this model has vectors for")
        tables: list[Any] = [part for part in body.modules() if getattr(part, "longest", None)]
        most = min((part.longest for part in tables), default=0)
        counted = any(part.count_padding for part in tables)
        longest = ids.shape[1] if counted else int(valid.sum(1).max()) if len(ids) else 0
        if most and longest > most:
            raise DataError(f"{longest} tokens are more than the {most} positions that this model has")
        return ids, valid


def describe(tensor: Tensor) -> str:
    return f"{' × '.join(map(str, tensor.shape)) or 'one number'} ({str(tensor.dtype).removeprefix('torch.')})"


class EncoderModel(PretrainedModel):
    """BERT and its kin: reads whole texts, answers once per token or once per text."""

    network: Labeler

    @property
    def pooling_layer(self) -> nn.Linear | None:
        return getattr(self.network.encoder.pool, "dense", None)

    def read(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Memory:
        """The features of every token (`values`) and of the text (`summary`)."""
        inputs, valid = self.prepare(ids, mask, segments)
        return self.network.encoder(self.network.embed(inputs), valid)

    def prepare(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None) -> tuple[Tensor, Tensor]:
        """The ids, with their segments if there are any, and the mask."""
        ids, valid = self.check(ids, mask, self.settings.vocabulary, self.network.encoder)
        if segments is None:
            return ids, valid
        known = getattr(self.settings, "segments", 0)
        if not known:
            raise DataError(f"a {self.family.name} has no segments, but some were given")
        if segments.shape == ids.shape:
            segments = segments.masked_fill(~valid, 0)
        if segments.shape != ids.shape or not set(segments.unique().tolist()) <= set(range(known)):
            raise DataError(f"segments are numbers from 0 to {known - 1}, one for each id")
        return torch.stack([ids, segments.to(ids)], -1), valid

    def logits(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, T, V) of every token's word or tag, or (B, labels) of a text's label."""
        return self.network(*self.prepare(ids, mask, segments))

    def next_sentence_logits(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """(B, 2): that the second segment follows the first, or that it does not."""
        if "next_sentence" not in self.others:
            raise RunError("this model has no head for the next sentence")
        return self.others["next_sentence"](self.read(ids, mask, segments).summary)


class WritingModel(PretrainedModel):
    """What generates: token after token, through our search."""

    network: Generator

    @abstractmethod
    def begin(self, ids: Tensor, mask: Tensor | None, steps: int) -> tuple[Tensor, Any]:
        """The last token before what is written, and the state there."""

    @torch.no_grad()
    def generate(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        *,
        steps: int = 20,
        beam_size: int = 1,
        length_penalty: float = 1.0,
    ) -> list[list[Hypothesis]]:
        """What each row is continued by, or its translations, best first; what the folder says about ending and banned
        tokens is obeyed."""
        last, state = self.begin(ids, mask, steps)
        ends, constraints = self.ends(), self.constraints()
        rules: Any = {"steps": steps, "end": ends[0] if ends else None, "constraints": constraints}
        rules["stops"] = [StopTokens([[one] for one in ends[1:]])] if ends[1:] else []
        step = self.network.stepper()
        if beam_size > 1:
            return beam(step, last, state, BeamOptions(beam_size=beam_size, length_penalty=length_penalty, **rules))
        return [[one] for one in greedy(step, last, state, **rules)]

    def ends(self) -> Sequence[int]:
        end = self.settings.end
        return end if isinstance(end, list) else [] if end is None else [end]

    def constraints(self) -> list[Constraint]:
        single = [one[0] for one in self.settings.banned if len(one) == 1]
        longer = [one for one in self.settings.banned if len(one) > 1]
        return [*([BannedTokens(single)] if single else []), *([BannedPhrases(longer)] if longer else [])]


class LanguageModel(WritingModel):
    """GPT-2: reads from left to right and writes on."""

    def logits(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, T, V): what comes after each token."""
        ids, valid = self.check(ids, mask, self.settings.vocabulary, self.network.decoder)
        logits, _ = self.network(ids, self.network.initial_state(len(ids)), valid)
        return logits

    def begin(self, ids: Tensor, mask: Tensor | None, steps: int) -> tuple[Tensor, Any]:
        ids, valid = self.check(ids, mask, self.settings.vocabulary, self.network.decoder)
        most = self.settings.positions - int(valid.sum(1).max()) + 1
        if steps > most:
            raise DataError(f"{steps} tokens more are beyond the {self.settings.positions} positions of this model")
        return self.network.prompt(ids, valid, self.network.initial_state(len(ids)))


class TranslationModel(WritingModel):
    """Marian: reads a source, writes a target."""

    def logits(
        self,
        ids: Tensor,
        mask: Tensor | None = None,
        decoder_ids: Tensor | None = None,
        decoder_mask: Tensor | None = None,
    ) -> Tensor:
        """(B, T, V): what comes after each token of the target, `decoder_ids`, which begins with the start token."""
        if decoder_ids is None:
            raise DataError("this model translates: give the ids of the target so far as decoder_ids, too")
        ids, valid = self.check(ids, mask, self.settings.vocabulary, self.network)
        written, known = self.check(decoder_ids, decoder_mask, self.settings.targets, self.network)
        logits, _ = self.network(written, self.network.initial_state(len(ids), ids, valid), known)
        return logits

    def begin(self, ids: Tensor, mask: Tensor | None, steps: int) -> tuple[Tensor, Any]:
        ids, valid = self.check(ids, mask, self.settings.vocabulary, self.network)
        return ids.new_full((len(ids), 1), self.settings.start), self.network.initial_state(len(ids), ids, valid)
