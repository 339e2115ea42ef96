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
        wanted = np.where(contexts == UNSEEN, UNSEEN, contexts * vocabulary + last)
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, places, UNSEEN)


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
            found, where, times = np.unique(pairs, return_inverse=True, return_counts=True)
            places.append(where.astype(np.int32))
            keys.append(found)
            counts.append(times)
        for length in range(1, order):
            # Below the highest order not occurrences count, but how many different tokens stand in front.
            longer, ending = places[length + 1], places[length][1:]
            endings = np.empty(len(keys[length]), dtype=np.int64)
            endings[longer] = ending[: len(longer)]
            counts[length - 1] = np.bincount(endings, minlength=len(keys[length - 1]))
        contexts = [1, *(len(found) for found in keys)]
        orders = (_make_order(*one, vocabulary) for one in zip(keys, counts, contexts, strict=False))
        return cls(vocabulary, tuple(orders))

    def losses(self, tokens: ArrayLike) -> Doubles:
        """Negative log-likelihood (nats) of each token of a text (T,), given those before it."""
        text = _check_tokens(tokens, self.vocabulary)
        chances = np.full(len(text), 1 / self.vocabulary)
        contexts = np.zeros(len(text), dtype=np.int64)  # the place of the n-gram that ends before each token
        for order in self.orders:
            places = order.find(contexts, text, self.vocabulary)
            known = contexts != UNSEEN
            # The order below has its say where a context passes something on, and all of it where that is unseen.
            chances *= np.where(known, order.passed[contexts], 1)
            chances += np.where(places != UNSEEN, order.kept[places], 0)
            # An n-gram that ends with a token is the context, one longer, of the token after it.
            contexts = np.concatenate([[UNSEEN], places[:-1]])
        return -np.log(chances)

    def probabilities(self, context: ArrayLike) -> Doubles:
        """The distribution (V,) of what follows these tokens."""
        text = _check_tokens(context, self.vocabulary)
        chances = np.full(self.vocabulary, 1 / self.vocabulary)
        for length, order in enumerate(self.orders):
            if length > len(text):
                break
            place = self._place(text[len(text) - length :])
            if place == UNSEEN:
                break
            first, last = np.searchsorted(order.keys, [place * self.vocabulary, (place + 1) * self.vocabulary])
            chances *= order.passed[place]
            chances[order.keys[first:last] - place * self.vocabulary] += order.kept[first:last]
        return chances

    def _place(self, tokens: Integers) -> int:
        place = np.zeros(1, dtype=np.int64)
        for order, token in zip(self.orders, tokens, strict=False):
            place = order.find(place, token, self.vocabulary)
        return int(place[0])


def _make_order(keys: Integers, counts: Integers, contexts: int, vocabulary: int) -> Order:
    """Discount the counts, and say what each context keeps and passes on."""
    context = keys // vocabulary
    totals = np.bincount(context, weights=counts, minlength=contexts)
    taken = np.minimum(_estimate_discounts(counts)[np.minimum(counts, 3)], counts)
    shares = np.where(totals > 0, totals, 1)
    passed = np.where(totals > 0, np.bincount(context, weights=taken, minlength=contexts) / shares, 1)
    return Order(keys, (counts - taken) / shares[context], passed)


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
