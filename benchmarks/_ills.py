"""The runs that the doctor is tried on: illnesses planted by a setting or by the data, healthy runs, and recall at a
distance. Each is a recipe, settings and examples; what is done with them is `doctor.py`'s business.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from seqloom.data.samples import SAMPLES

Examples = dict[str, list[tuple[str, str]]]
SMALL = (
    *("model.size=32", "model.dropout=0.1", "train.steps=200", "train.batch_tokens=1024", "train.learning_rate=1e-2"),
    "train.validate_every=20",
)


def named() -> Examples:
    """Some of the sample of names: the languages of names of countries and languages."""
    found = SAMPLES["names"]()
    return {part: list(found[part][:rows]) for part, rows in {"train": 5000, "validation": 500, "test": 200}.items()}


class Ill(NamedTuple):
    """`names` are the findings that would be right; the first is what was planted."""

    plant: str
    settings: tuple[str, ...]
    names: tuple[str, ...]
    examples: Callable[[], Examples] = named
    recipe: str = "classify"


LETTERS, NOISE, QUESTION = "ABCDEFGH", "abcdefgh", "?"


def recalled(lags: Sequence[int], rows: int, seed: int, length: int = 0) -> list[tuple[str, str]]:
    """Texts of one length with one capital in each, so many steps before the question at the end, and the capital.

    The shortest that holds all distances is taken, unless a `length` is given.
    """
    chance = random.Random(seed)
    length = length or max(lags) + 1
    pairs = []
    for row in range(rows):
        text = [*chance.choices(NOISE, k=length - 1), QUESTION]
        letter = chance.choice(LETTERS)
        text[-1 - lags[row % len(lags)]] = letter
        pairs.append(("".join(text), letter))
    chance.shuffle(pairs)
    return pairs


def distant(*lags: int, length: int = 0, rows: int = 3000) -> Callable[[], Examples]:
    def make() -> Examples:
        return {
            part: recalled(lags, count, seed, length)
            for seed, (part, count) in enumerate({"train": rows, "validation": 400, "test": 400}.items())
        }

    return make


def by_label() -> Examples:
    """Sorted by label, as a file that was put together label by label is."""
    found = named()
    return found | {"train": sorted(found["train"], key=lambda row: row[1])}


def drawn_labels() -> Examples:
    """Every label is that of another example."""
    chance, found = random.Random(0), named()
    for rows in found.values():
        labels = [label for _, label in rows]
        chance.shuffle(labels)
        rows[:] = [(text, label) for (text, _), label in zip(rows, labels, strict=True)]
    return found


def few_of(rows: int) -> Callable[[], Examples]:
    def make() -> Examples:
        found = named()
        return found | {"train": found["train"][:rows]}

    return make


def rare(share: float = 0.03) -> Examples:
    """German or not, hardly ever German."""
    found = {}
    for number, (part, rows) in enumerate(named().items()):
        chance = random.Random(number)
        told = [(text, "German" if label == "German" else "other") for text, label in rows]
        found[part] = [row for row in told if row[1] == "other" or chance.random() < share * 24]
    return found


def leaking() -> Examples:
    found = named()
    return found | {"validation": found["train"][:300], "test": found["train"][300:600]}


RECALL = (
    "model.size=32",
    "train.steps=300",
    "train.batch_tokens=1024",
    "train.learning_rate=3e-3",
    "model.dropout=0",
    "model.pool=last",
)
FORWARDS = (*RECALL, "model.bidirectional=false")
LOOKING = (*RECALL, "model.kind=transformer", "train.learning_rate=2e-3")

TEN: dict[str, Ill] = {
    "W_h × 3": Ill(
        "an RNN whose recurrent weights start three times as large, without clipping",
        (
            *SMALL,
            "model.kind=rnn",
            "model.size=64",
            "model.bidirectional=false",
            "model.init_gain=3",
            "train.clip_norm=0",
            "train.learning_rate=3e-3",
        ),
        ("exploding gradients",),
    ),
    "rate × 30": Ill("a rate thirty times too high", (*SMALL, "train.learning_rate=0.3"), ("rate too high",)),
    "rate / 100": Ill("a rate a hundred times too low", (*SMALL, "train.learning_rate=1e-4"), ("rate too low",)),
    "forget bias −3": Ill(
        "an LSTM whose forget gate starts closed; the letter stands 12 steps back",
        (*FORWARDS, "model.kind=lstm", "model.forget_bias=-3"),
        ("forgets at once", "short memory"),
        distant(12),
    ),
    "post-LN × 12": Ill(
        "twelve layers that normalize behind, without a warm-up",
        (
            *SMALL,
            "model.kind=transformer",
            "model.depth=12",
            "model.norm=post",
            "train.warmup=1",
            "train.batch_tokens=768",
            "train.learning_rate=3e-3",
        ),
        ("no warm-up",),
    ),
    "dropout 0.9": Ill("nine tenths left out", (*SMALL, "model.dropout=0.9"), ("too much dropout",)),
    "cut off": Ill(
        "a limit of 10 tokens; the letter is the 15th of 20",
        (*RECALL, "model.kind=gru", "data.max_length=10", "data.too_long=cut"),
        ("examples are cut off",),
        distant(5, length=20),
    ),
    "sorted": Ill(
        "examples sorted by label and read as they stand", (*SMALL, "train.shuffle=false"), ("not shuffled",), by_label
    ),
    "labels drawn": Ill("labels of other examples", SMALL, ("nothing to learn",), drawn_labels),
    "window 4": Ill(
        "a Transformer that sees 4 steps; the letter stands 12 back",
        (*LOOKING, "model.window=4"),
        ("short memory",),
        distant(12),
    ),
}
MORE: dict[str, Ill] = {
    "size 2": Ill("two features", (*SMALL, "model.size=2"), ("model too small",)),
    "batch of one": Ill("an example a step", (*SMALL, "train.batch_tokens=16"), ("batches too small",)),
    "smoothing 0.9": Ill(
        "nine tenths of the belief spread out",
        (*SMALL, "train.label_smoothing=0.9"),
        ("unusual train.label_smoothing",),
    ),
    "decay 10": Ill(
        "a weight decay of 10", (*SMALL, "train.weight_decay=10"), ("decay too strong", "unusual train.weight_decay")
    ),
    "frozen": Ill("nothing learns but the head", (*SMALL, "train.freeze=encoder,embed"), ("unusual train.freeze",)),
    "clip 1e-6, SGD": Ill(
        "gradients shortened to a millionth",
        (*SMALL, "train.optimizer=sgd", "train.learning_rate=0.5", "train.clip_norm=1e-6"),
        ("gradients clipped too much", "unusual train.clip_norm", "unusual train.optimizer"),
    ),
    "endless warm-up": Ill(
        "the rate never arrives",
        (*SMALL, "train.warmup=200", "train.learning_rate=5e-4"),
        ("endless warm-up", "rate too low"),
    ),
    "zoneout 0.95": Ill(
        "units that hardly move", (*SMALL, "model.zoneout=0.95"), ("too much dropout", "unusual model.zoneout")
    ),
    "rate × 100, Transformer": Ill(
        "a Transformer at a rate of 0.2",
        (*SMALL, "model.kind=transformer", "model.depth=2", "train.learning_rate=0.2"),
        ("rate too high",),
    ),
    "300 examples": Ill(
        "a large model and few examples",
        (*SMALL, "model.size=128", "train.steps=300"),
        ("overfitting",),
        few_of(300),
    ),
    "rare label": Ill("one label in 30 examples", (*SMALL, "train.steps=60"), ("only the most frequent label",), rare),
    "leak": Ill("validation from the training part", SMALL, ("training examples in the scores",), leaking),
    "unknown words": Ill(
        "words of which most occur once",
        (*SMALL, "data.source_tokenizer=words", "data.min_count=5"),
        ("unknown tokens",),
    ),
    "patience 1": Ill(
        "stopped at the first validation that is no better",
        (*SMALL, "train.patience=1", "train.validate_every=2", "train.learning_rate=1e-2"),
        ("stopped too early",),
    ),
    "no positions": Ill(
        "a Transformer without positions; the order is what counts",
        (*LOOKING, "model.positions=none", "model.depth=2"),
        ("no positions",),
        distant(6),
    ),
}
HEALTHY: dict[str, tuple[str, tuple[str, ...]]] = {
    "names, gru": ("classify", ("model.size=64", "train.steps=200", "train.batch_tokens=2048")),
    "names, lstm": ("classify", ("model.kind=lstm", "model.size=64", "train.steps=200", "train.batch_tokens=2048")),
    "names, transformer": (
        "classify",
        (
            "model.kind=transformer",
            "model.depth=2",
            "model.size=64",
            "train.steps=200",
            "train.batch_tokens=2048",
            "train.learning_rate=2e-3",
        ),
    ),
    "names, convolution": (
        "classify",
        ("model.kind=convolution", "model.depth=2", "model.size=64", "train.steps=200", "train.batch_tokens=2048"),
    ),
    "recall, gru": ("classify", (*FORWARDS, "model.kind=gru")),
    "recall, lstm": ("classify", (*FORWARDS, "model.kind=lstm")),
    "tokens, lstm": ("tag", ("model.size=48", "train.steps=80", "train.batch_tokens=2048")),
    "manual, gru": (
        "language",
        ("model.size=96", "train.steps=150", "train.batch_tokens=1600", "train.bptt_window=50"),
    ),
    "manual, transformer": (
        "language",
        (
            "model.kind=transformer",
            "model.depth=2",
            "model.size=64",
            "train.steps=120",
            "train.batch_tokens=1600",
            "train.bptt_window=50",
            "train.learning_rate=2e-3",
        ),
    ),
    "dates, gru": ("seq2seq", ("model.size=48", "train.steps=250", "train.batch_tokens=1024")),
    "tunes, lstm": ("music", ("model.size=64", "train.steps=60", "train.batch_tokens=2048", "train.bptt_window=128")),
    "ball, lstm": ("ball", ("model.size=48", "train.steps=200")),
    "co2, gru": ("forecast", ("model.size=32", "train.steps=120", "train.batch_tokens=4096")),
    "shapes": ("caption", ("model.size=48", "train.steps=80", "train.batch_tokens=2048")),
}
# What is read in place of a recipe's sample: eight distances in one file.
OWN = dict.fromkeys(("recall, gru", "recall, lstm"), distant(4, 6, 8, 12, 16, 24, 32, 48, rows=4000))
LAGS = (4, 6, 9, 13, 19, 28, 40, 60)  # each about 1.45 times the one before
KINDS = {
    "rnn": (*FORWARDS, "model.kind=rnn", "train.learning_rate=1e-3"),
    "lstm": (*FORWARDS, "model.kind=lstm"),
    "gru": (*FORWARDS, "model.kind=gru"),
    "transformer, window 16": (*LOOKING, "model.window=16"),
}
