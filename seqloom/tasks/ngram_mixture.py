"""An n-gram model of the training text, mixed into what a language model expects.

A net of a laptop's size has not seen enough of the text to know its rare phrases by heart; counting has. How much each
of the two
is believed depends on how well the n-gram model knows what came before, and is learned on the validation part.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..arrays import Doubles, Integers
from ..baselines.language import UNSEEN, NGram, Order
from ..data.vocabulary import END, NEVER_WRITTEN, START
from ..errors import RunError
from ..layers.base import Layer
from ..layers.heads import Head
from ..models import Generator
from .wrapping import DecoderBeside, TokenMixingHead, wrap_generator

PASSED = (0.1, 0.3, 0.6)  # what a context passes on to shorter ones: the less, the better it is known
ROUNDS = 50  # of expectation and maximization: the shares stand still long before
EXACT = 1 << 24  # whole numbers that single precision holds


class NGramMixture(NamedTuple):
    """An n-gram model over the tokens that can be written, and how much of what the net says is believed beside it."""

    ngram: NGram
    shares: Doubles  # (orders, len(PASSED) + 1): of the net, by the longest context that is known, and how well it is

    @classmethod
    def fit(cls, ngram: NGram, net: Doubles, contexts: Integers, tokens: Integers) -> "NGramMixture":
        """Learn the shares from the losses (N,) of the net on held-out tokens (N,) after these contexts (N, n)."""
        ngram = NGram(ngram.vocabulary, tuple(map(round_tables, ngram.orders)))
        mixture = cls(ngram, np.full((len(ngram.orders), len(PASSED) + 1), 0.5))
        chances, counted, cells = np.exp(-net), ngram.chances(contexts, tokens), mixture.find_cells(contexts)
        size = mixture.shares.size
        times = np.bincount(cells, minlength=size)
        for _ in range(ROUNDS):
            own = mixture.shares.ravel()[cells] * chances
            believed = own / (own + (1 - mixture.shares.ravel()[cells]) * counted)
            # One token more for each of the two: a cell with few tokens does not lean all to one side.
            shares = (np.bincount(cells, believed, minlength=size) + 1) / (times + 2)
            mixture = cls(ngram, shares.reshape(mixture.shares.shape))
        return mixture

    def describe(self, net: Doubles, contexts: Integers, tokens: Integers, of: str = "the network alone") -> str:
        """What mixing has brought on held-out tokens, in a sentence."""
        counted, share = self.ngram.chances(contexts, tokens), self.shares_after(contexts)
        mixed = share * np.exp(-net) + (1 - share) * counted
        own, count, both = (float(np.exp(-np.log(one).mean())) for one in (np.exp(-net), counted, mixed))
        return (
            f"an n-gram model of order {len(self.ngram.orders)} is mixed in: on validation the perplexity of "
            f"{of} is {own:.3f}, of the n-gram model alone {count:.3f}, of both together {both:.3f}"
        )

    def find_cells(self, contexts: Integers) -> Integers:
        """Which of the shares holds after each context (…, n)."""
        known = (contexts != UNSEEN).sum(-1) - 1
        passed = np.ones(known.shape)
        for length, order in enumerate(self.ngram.orders):
            here = known == length
            passed[here] = order.passed[contexts[here, length]]
        return known * (len(PASSED) + 1) + np.searchsorted(PASSED, passed)

    def shares_after(self, contexts: Integers) -> Doubles:
        """How much of the net is believed after each context (…, n)."""
        return self.shares.ravel()[self.find_cells(contexts)]

    def wrap(self, net: Generator) -> Generator:
        """The net with the n-gram model beside it; the net stays as it is."""
        outputs = self.ngram.vocabulary + len(NEVER_WRITTEN)
        numbers = number_tokens(outputs)
        return wrap_generator(net, ContextBeside(net.decoder, self.ngram, numbers), CountedHead(net.head, self))

    # --- in the run folder ---

    def to_arrays(self) -> dict[str, Any]:
        """By name: the shares, and the tables of each order."""
        arrays: dict[str, Any] = {"shares": self.shares}
        for number, order in enumerate(self.ngram.orders, 1):
            tables = {
                "keys": order.keys,
                "kept": order.kept.astype(np.float32),
                "passed": order.passed.astype(np.float32),
            }
            arrays |= {f"{number}.{name}": table for name, table in tables.items()}
        return arrays

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor], vocabulary: int, place: object) -> "NGramMixture":
        """What `to_arrays` gave; RunError if it cannot be that."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        count = (len(arrays) - 1) // 3
        names = {"shares", *(f"{n}.{part}" for n in range(1, count + 1) for part in ("keys", "kept", "passed"))}
        if not count or set(arrays) != names:
            raise RunError(f"{place}: does not hold the tables of an n-gram model")
        orders, contexts = [], 1
        for number in range(1, count + 1):
            keys, kept, passed = (arrays[f"{number}.{part}"] for part in ("keys", "kept", "passed"))
            if (
                keys.dtype != np.int64
                or not keys.ndim == kept.ndim == passed.ndim == 1
                or not 0 < len(keys) == len(kept) < EXACT
                or len(passed) != contexts
                or not (keys[0] >= 0 and keys[-1] < contexts * vocabulary and (np.diff(keys) > 0).all())
                or not all(((values >= 0) & (values <= 1)).all() for values in (kept, passed))
            ):
                raise RunError(f"{place}: the table of order {number} is not that of an n-gram model")
            orders.append(Order(keys, kept.astype(np.float64), passed.astype(np.float64)))
            contexts = len(keys)
        shares = arrays["shares"]
        if shares.shape != (count, len(PASSED) + 1) or not ((shares > 0) & (shares < 1)).all():
            raise RunError(f"{place}: the shares of the net are not between 0 and 1")
        return cls(NGram(vocabulary, tuple(orders)), shares)


def round_tables(order: Order) -> Order:
    """As exact as the file is, so that a run answers alike before and after it is stored."""
    return Order(order.keys, *(values.astype(np.float32).astype(np.float64) for values in (order.kept, order.passed)))


def number_tokens(size: int) -> Integers:
    """For each token of the field its number among those that are written; a text begins as after an end."""
    numbers = np.cumsum(~np.isin(np.arange(size), NEVER_WRITTEN)) - 1
    numbers[START] = numbers[END]
    return np.maximum(numbers, 0)


class ContextBeside(DecoderBeside):
    """A decoder whose outputs have the contexts of an n-gram model behind them."""

    def __init__(self, layer: Layer, ngram: NGram, numbers: Integers) -> None:
        super().__init__(layer)
        self.ngram, self.numbers = ngram, numbers

    def begin(self, batch: int) -> tuple[Tensor, ...]:
        return (torch.from_numpy(self.ngram.begin(batch)),)

    def look(self, y: Tensor, tokens: Tensor, mask: Tensor | None, *own: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The contexts (B, T, n) after each token, and those after the last; padding is passed over."""
        [before] = own
        known = np.ones(tokens.shape, dtype=bool) if mask is None else mask.cpu().numpy()
        order = np.argsort(~known, 1, kind="stable")  # what is read comes first
        numbers = self.numbers[np.where(known, tokens.cpu().numpy(), 0)]
        first = before.cpu().numpy()
        after = self.ngram.read(np.take_along_axis(numbers, order, 1), first)
        whole = np.concatenate([first[:, None], after], 1)
        last = np.take_along_axis(whole, known.sum(1)[:, None, None], 1)[:, 0]
        contexts = np.empty_like(after)
        np.put_along_axis(contexts, order[..., None], after, 1)
        return torch.from_numpy(contexts * known[..., None]), (torch.from_numpy(last).to(before.device),)


class CountedHead(TokenMixingHead):
    """What the net expects and what the n-gram model expects."""

    def __init__(self, head: Head, mixture: NGramMixture) -> None:
        super().__init__(head, len(mixture.ngram.orders))
        self.mixture = mixture
        self.written = np.setdiff1d(np.arange(mixture.ngram.vocabulary + len(NEVER_WRITTEN)), NEVER_WRITTEN)

    def mix(self, logits: Tensor, extra: Tensor) -> Tensor:
        contexts = extra.long().cpu().numpy().reshape(-1, self.extra)
        counted = np.zeros((len(contexts), len(self.written) + len(NEVER_WRITTEN)))
        counted[:, self.written] = self.mixture.ngram.distributions(contexts)
        shares = torch.from_numpy(self.mixture.shares_after(contexts))[:, None]
        chances = logits.reshape(len(contexts), -1).double().softmax(-1).cpu() * shares
        mixed = (chances + torch.from_numpy(counted) * (1 - shares)).log()
        return mixed.view(logits.shape).to(logits)

    def mix_losses(self, losses: Tensor, extra: Tensor, target: Tensor) -> Tensor:
        contexts = extra.long().cpu().numpy()
        numbers = number_tokens(len(self.written) + len(NEVER_WRITTEN))[target.cpu().numpy()]
        counted = torch.from_numpy(self.mixture.ngram.chances(contexts, numbers))
        shares = torch.from_numpy(self.mixture.shares_after(contexts))
        mixed = -(losses.double().cpu().neg().exp() * shares + counted * (1 - shares)).log()
        return mixed.to(losses)
