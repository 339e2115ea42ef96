"""Language models that only count: uniform, unigram (order 1), and the n-gram model every language model must beat.

`NGram` is modified Kneser–Ney (Chen and Goodman, 1999), interpolated down to a uniform distribution, so every token of
the vocabulary has a probability and all of them sum to 1. Tokens are ids below the size of the vocabulary, in arrays;
what they stand for is not known here. Documents are joined by whatever ends a document.

Every n-gram is the pair of its first n − 1 tokens, as their place in the table of that order, and its last token: one
integer. The tables are sorted, so that looking up a whole text is one binary search an order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Doubles, Integers

UNSEEN = -1


def compute_uniform_losses(tokens: ArrayLike, vocabulary: int) -> Doubles:
    """Negative log-likelihood (nats) of each token when all are alike."""
    return np.full(len(np.asarray(tokens)), np.log(vocabulary))


@dataclass(frozen=True)
class Order:
    """The n-grams of one length, and what each context (n-gram one shorter) keeps and passes on."""

    keys: Integers  # sorted: place of the context × vocabulary + last token
    kept: Doubles  # of each n-gram: the share of its context that it keeps after the discount
    passed: Doubles  # of each context: the share that goes to the order below

    def find(self, contexts: Integers, last: Integers, vocabulary: int) -> Integers:
        """The place of each n-gram, or UNSEEN."""
        keys = np.where(contexts == UNSEEN, UNSEEN, contexts * vocabulary + last)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, UNSEEN)


@dataclass(frozen=True)
class NGram:
    """An n-gram model of a vocabulary; the orders from 1 up."""

    vocabulary: int
    orders: tuple[Order, ...]

    @classmethod
    def fit(cls, tokens: ArrayLike, vocabulary: int, order: int) -> "NGram":
        """Count the n-grams of a text (T,) up to this order; order 1 is the unigram model."""
        text = _check_tokens(tokens, vocabulary)
        assert order >= 1 and len(text) >= order, "a text at least as long as the order"
        assert len(text) < 2**31 and len(text) * vocabulary < 2**63, (
            "places in a table times the vocabulary fit an integer"
        )
        places = [np.zeros(len(text) + 1, dtype=np.int32)]  # the empty n-gram stands everywhere
        keys, counts = [], []
        for length in range(1, order + 1):
            pairs = places[-1][: len(text) - length + 1].astype(np.int64) * vocabulary + text[length - 1 :]
            ngrams, where, times = np.unique(pairs, return_inverse=True, return_counts=True)
            places.append(where.astype(np.int32))
            keys.append(ngrams)
            counts.append(times)
        for length in range(1, order):
            # Below the highest order not occurrences count, but how many different tokens stand in front.
            longer, ending = places[length + 1], places[length][1:]
            endings = np.empty(len(keys[length]), dtype=np.int64)
            endings[longer] = ending[: len(longer)]
            counts[length - 1] = np.bincount(endings, minlength=len(keys[length - 1]))
        contexts = [1, *(len(ngrams) for ngrams in keys)]
        orders = (_make_order(*one, vocabulary) for one in zip(keys, counts, contexts, strict=False))
        return cls(vocabulary, tuple(orders))

    def losses(self, tokens: ArrayLike) -> Doubles:
        """Negative log-likelihood (nats) of each token of a text (T,), given those before it."""
        text = _check_tokens(tokens, self.vocabulary)
        begin = self.begin(1)
        contexts = np.concatenate([begin[:, None], self.read(text[None, :-1], begin)], 1)[0]
        return -np.log(self.chances(contexts[: len(text)], text))

    def probabilities(self, context: ArrayLike) -> Doubles:
        """The distribution (V,) of what follows these tokens."""
        text = _check_tokens(context, self.vocabulary)[-len(self.orders) :]
        begin = self.begin(1)
        return self.distributions(self.read(text[None], begin)[0, -1:] if len(text) else begin)[0]

    # A context is where one is in a text, for each order the place of the n-gram, one shorter, that ends there: (n,).

    def begin(self, rows: int) -> Integers:
        """The contexts (rows, n) before any token."""
        contexts = np.full((rows, len(self.orders)), UNSEEN, dtype=np.int64)
        contexts[:, 0] = 0
        return contexts

    def read(self, tokens: Integers, before: Integers) -> Integers:
        """The contexts (B, T, n) after each token (B, T) of rows that come from these contexts (B, n)."""
        after = np.zeros((*tokens.shape, len(self.orders)), dtype=np.int64)
        for length, order in enumerate(self.orders[:-1]):
            last = np.concatenate([before[:, None, length], after[:, :-1, length]], 1)[:, : tokens.shape[1]]
            after[..., length + 1] = order.find(last, tokens, self.vocabulary)
        return after

    def chances(self, contexts: Integers, tokens: Integers) -> Doubles:
        """The probability of each token (…) after its context (…, n)."""
        chances = np.full(tokens.shape, 1 / self.vocabulary)
        for length, order in enumerate(self.orders):
            context = contexts[..., length]
            places = order.find(context, tokens, self.vocabulary)
            # The order below has its say where a context passes something on, and all of it where that is unseen.
            chances *= np.where(context != UNSEEN, order.passed[context], 1)
            chances += np.where(places != UNSEEN, order.kept[places], 0)
        return chances

    def distributions(self, contexts: Integers) -> Doubles:
        """The probabilities (N, V) of all tokens after each context (N, n)."""
        chances = np.full((len(contexts), self.vocabulary), 1 / self.vocabulary)
        for row, context in zip(chances, contexts, strict=True):
            for order, place in zip(self.orders, context, strict=True):
                if place != UNSEEN:
                    begins = place * self.vocabulary
                    first, last = np.searchsorted(order.keys, [begins, begins + self.vocabulary])
                    row *= order.passed[place]
                    row[order.keys[first:last] - begins] += order.kept[first:last]
        return chances


def _make_order(keys: Integers, counts: Integers, contexts: int, vocabulary: int) -> Order:
    """Discount the counts, and say what each context keeps and passes on."""
    context = keys // vocabulary
    totals = np.bincount(context, weights=counts, minlength=contexts)
    discounts = np.minimum(_estimate_discounts(counts)[np.minimum(counts, 3)], counts)
    shares = np.where(totals > 0, totals, 1)
    passed = np.where(totals > 0, np.bincount(context, weights=discounts, minlength=contexts) / shares, 1)
    return Order(keys, (counts - discounts) / shares[context], passed)


def _estimate_discounts(counts: Integers) -> Doubles:
    """What is taken from a count of 0, 1, 2, and 3 or more (Chen and Goodman's estimate)."""
    n = np.bincount(np.minimum(counts, 5), minlength=6).astype(np.float64)
    if not n[1:5].all():  # too little text, or so much that every n-gram is frequent
        return np.array([0, 0.5, 0.5, 0.5])
    y = n[1] / (n[1] + 2 * n[2])
    estimates = [k - (k + 1) * y * n[k + 1] / n[k] for k in (1, 2, 3)]
    # Never nothing: what a context passes on is all that an unseen token gets.
    return np.array([0, *np.clip(estimates, 0.05, [1, 2, 3])])


def _check_tokens(tokens: ArrayLike, vocabulary: int) -> Integers:
    text = np.asarray(tokens, dtype=np.int64)
    assert text.ndim == 1, "one text; join documents by what ends a document"
    assert not len(text) or (text.min() >= 0 and text.max() < vocabulary), "ids below the size of the vocabulary"
    return text
