"""A tagger that begins as a hidden Markov model: with how often each word had each tag, and which tag followed which.

Counts need no training, and neighbors and letters improve them: the net begins where counting ends.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..arrays import Doubles, Integers
from ..data.ragged import Ragged
from ..data.vocabulary import SPECIALS, UNKNOWN
from ..fields.endings import RARE

BACKED_OFF = 0.1  # how many occurrences of a known word the tags of unknown ones that look like it count for
SHARED = 8.0  # the same, of the words that share a letter less, beside those that share an ending
UNSEEN = 0.1  # how often neighbors that never occurred count as seen
DOUBTED = 4.0  # a word that occurs n times is taken for an unknown one in a share of DOUBTED / (DOUBTED + n)
SMALL = 0.1  # the part of their usual spread that the weights of the net's features begin with


def count_tags(words: Integers, tags: Integers, symbols: int, names: int) -> Doubles:
    """How often each word has each tag (symbols, names); tags that have no number do not count."""
    known = (tags >= 0) & (tags < names)
    return (
        np.bincount(words[known] * names + tags[known], minlength=symbols * names)
        .reshape(symbols, names)
        .astype(np.float64)
    )


def find_closest(alike: Integers) -> Integers:
    """What each word is read as where it is unknown: the first of its look-alikes that there is."""
    return alike[np.arange(len(alike)), (alike != UNKNOWN).argmax(1)]


def weigh_words(counts: Doubles, alike: Integers) -> tuple[Doubles, Doubles]:
    """How much each word speaks for each tag, log p(tag | word) / p(tag), and log p(tag). A word that was never seen
    speaks like the rare ones that look `alike` (symbols, levels), the more of them the closer they are; one that looks
    like none, as those that were seen once."""
    share = counts.sum(0) + 0.5
    share /= share.sum()
    once = counts[len(SPECIALS) :][counts[len(SPECIALS) :].sum(1) == 1].sum(0) + share
    new = np.tile(once / once.sum(), (len(counts), 1))  # how the tags of each were if it were new
    frequent = counts.sum(1) > RARE
    frequent[find_closest(alike)] = False  # what is read as an ending was rare, however often that was
    rare = np.where(frequent[:, None], 0, counts)
    likely = counts + BACKED_OFF * new
    for level in alike.T[::-1]:  # from all that share a shape to those that share the most letters
        words = np.flatnonzero(level != UNKNOWN)
        together = np.zeros_like(counts)
        np.add.at(together, level[words], rare[words])
        together[level[words]] += SHARED * new[words]  # which is the same for all words of an ending
        new[words] = together[level[words]] / together[level[words]].sum(1, keepdims=True)
        likely[words] = counts[words] + BACKED_OFF * new[words]
        likely[level[words]] = new[words]
    return np.log(likely / likely.sum(1, keepdims=True) / share), np.log(share)


def weigh_neighbors(tags: Ragged, names: int) -> tuple[Doubles, Doubles]:
    """log p(tag | the tag before) (names, names), and log p(tag) of the first one (names,)."""
    values, lengths = tags.values.astype(np.int64), tags.lengths
    first = values[tags.offsets[:-1][lengths > 0]]
    inner = np.ones(len(values), dtype=bool)
    inner[tags.offsets[:-1][lengths > 0]] = False
    before, after = values[:-1][inner[1:]], values[1:][inner[1:]]
    known = before >= 0
    pairs = count_tags(before[known], after[known], names, names) + UNSEEN
    starts = np.bincount(first[first >= 0], minlength=names) + UNSEEN
    return np.log(pairs / pairs.sum(1, keepdims=True)), np.log(starts / starts.sum())


@torch.no_grad()
def begin_with_counts(model: Any, train: Mapping[str, Ragged], names: int, alike: Integers) -> None:
    """Fill the lexicon, and let the head begin with what it says: with a CRF as a hidden Markov model."""
    embed, head = model.embed, model.head
    source = train["source"].values
    words = (source[:, 0] if source.ndim == 2 else source).astype(np.int64)
    counts = count_tags(words, train["target"].values.astype(np.int64), len(embed.table), names)
    evidence, share = weigh_words(counts, alike)
    embed.table.copy_(torch.from_numpy(evidence))
    embed.doubt.copy_(torch.from_numpy(DOUBTED / (DOUBTED + counts.sum(1))))
    head.project.weight.mul_(SMALL)
    head.project.weight[:, -names:] = torch.eye(names)
    if head.outcome == "path":
        pairs, starts = weigh_neighbors(train["target"], names)
        head.pairs.copy_(torch.from_numpy(pairs))
        head.first.copy_(torch.from_numpy(starts))
        head.project.bias.zero_()
    else:
        head.project.bias.copy_(torch.from_numpy(share))
