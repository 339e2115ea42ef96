"""A continuous cache (Grave, Joulin and Usunier, 2017): a word that was read a while ago is likely to come again.

The last tokens are kept, each with the state of the net that it came after. The more alike the present state is to one
of those, the more probable is the token that came then. Nothing is trained: how sharply states are compared, and how
much the cache is believed, is fitted on the validation part.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ..arrays import Doubles
from ..data.vocabulary import NEVER_WRITTEN
from ..layers.base import Layer
from ..layers.heads import Head
from ..layers.padding import full_mask
from ..models import Generator, device_of
from .wrapping import DecoderBeside, TokenMixingHead, wrap_generator

SHARPNESS = (2.0, 5.0, 10.0, 20.0, 40.0)  # that are tried: what the cosine of two states is multiplied by
ROUNDS = 50  # of expectation and maximization: the share stands still long before
MAX_LENGTH = 10_000  # tokens
NOTHING = -1  # the token of a place that is empty


class ContinuousCache(NamedTuple):
    """How many tokens are kept, how sharply their states are compared, and how much the cache is believed."""

    length: int
    sharpness: float
    share: float

    @classmethod
    def fit(
        cls, length: int, net: Doubles, measure: "Callable[[ContinuousCache], Doubles]"
    ) -> "tuple[ContinuousCache, Doubles]":
        """By the losses (N,) of the net on held-out tokens, and by those that `measure` finds of a cache alone; and the
        losses of both together."""
        chances, tried = np.exp(-net), []
        for sharpness in SHARPNESS:
            cached, share = np.exp(-measure(cls(length, sharpness, 1.0))), 0.5
            for _ in range(ROUNDS):
                believed = share * cached / (share * cached + (1 - share) * chances)
                share = (believed.sum() + 1) / (len(net) + 2)  # one token more for each: never all or nothing
            tried.append((cls(length, sharpness, float(share)), -np.log(share * cached + (1 - share) * chances)))
        return min(tried, key=lambda one: float(one[1].mean()))

    def wrap(self, net: Generator) -> Generator:
        """The net with the cache beside it; the net stays as it is."""
        with torch.no_grad():  # what one token gives says how wide a state is
            first = torch.zeros(1, 1, dtype=torch.long, device=device_of(net))
            features, _ = net.features(first, net.initial_state(1))
        return wrap_generator(net, CacheBeside(net.decoder, self, features[0, 0]), CachedHead(net.head, self))


class CacheBeside(DecoderBeside):
    """A decoder whose outputs have behind them the weights of the tokens in the cache, and these tokens."""

    def __init__(self, layer: Layer, cache: ContinuousCache, like: Tensor) -> None:
        super().__init__(layer)
        self.cache, self.like = cache, like

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        keys = self.like.new_zeros(batch, self.cache.length, len(self.like))
        tokens = torch.full(keys.shape[:2], NOTHING, device=keys.device)
        return keys, tokens, keys.new_zeros(batch, len(self.like))

    def look(self, y: Tensor, tokens: Tensor, mask: Tensor | None, *own: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The weights of what is in the cache at each place, and its tokens: (B, T, 2 length)."""
        (keys, kept, last), length = own, self.cache.length
        known = full_mask(tokens) if mask is None else mask
        order = torch.argsort(~known, dim=1, stable=True)  # what is read comes first, padding after it
        states = normalize(y, dim=-1).gather(1, order[..., None].expand_as(y))
        before = torch.cat([last[:, None], states], 1)  # the state that each token came after, and the last one
        came = tokens.gather(1, order)
        never = torch.isin(came, torch.tensor(NEVER_WRITTEN, device=came.device)) | ~before[:, :-1].any(-1)
        keys, kept = torch.cat([keys, before[:, :-1]], 1), torch.cat([kept, came.masked_fill(never, NOTHING)], 1)
        # A place sees the `length` tokens up to its own: its number among those that are read says where they begin.
        rank = (known.cumsum(1) - 1).clamp(min=0)
        places = rank[..., None] + 1 + torch.arange(length, device=y.device)
        alike = (normalize(y, dim=-1) @ keys.transpose(1, 2)).gather(2, places)
        candidates = kept[:, None].expand(-1, y.shape[1], -1).gather(2, places)
        weights = (
            (self.cache.sharpness * alike).masked_fill(candidates == NOTHING, -torch.inf).softmax(-1).nan_to_num(0)
        )
        count = known.sum(1)[:, None]
        carried = count + torch.arange(length, device=y.device)
        return torch.cat([weights * known[..., None], candidates.to(y)], -1), (
            keys.gather(1, carried[..., None].expand(-1, -1, keys.shape[-1])),
            kept.gather(1, carried),
            before.gather(1, count[..., None].expand(-1, -1, before.shape[-1]))[:, 0],
        )


class CachedHead(TokenMixingHead):
    """What the net expects, and the tokens of the cache by their weights."""

    def __init__(self, head: Head, cache: ContinuousCache) -> None:
        super().__init__(head, 2 * cache.length)
        self.share = cache.share

    def negative_log_likelihood(self, features: Tensor, target: Tensor) -> Tensor:
        if self.share < 1:
            return super().negative_log_likelihood(features, target)
        own, extra = self.split(features)  # the cache alone: what the net expects need not be computed
        return -self.find(extra, target).log().to(own)

    def mix(self, logits: Tensor, extra: Tensor) -> Tensor:
        weights, tokens = extra.double().view(*logits.shape[:-1], -1).chunk(2, -1)
        chances = logits.double().softmax(-1) * (1 - self.share * weights.sum(-1, keepdim=True))
        return chances.scatter_add(-1, tokens.long().clamp(min=0), self.share * weights).log().to(logits)

    def mix_losses(self, losses: Tensor, extra: Tensor, target: Tensor) -> Tensor:
        filled = extra.double().chunk(2, -1)[0].sum(-1)  # 1, or 0 where the cache is empty
        chances = losses.double().neg().exp() * (1 - self.share * filled)
        return -(chances + self.share * self.find(extra, target)).log().to(losses)

    def find(self, extra: Tensor, target: Tensor) -> Tensor:
        """What the cache alone says are the chances of the targets."""
        weights, tokens = extra.double().chunk(2, -1)
        return torch.where(tokens == target[..., None], weights, 0).sum(-1)
