"""Rules about the data: what was cut, not known, not mixed, repeated, or told apart by nothing.

Each docstring says when the rule speaks. None of them prescribes a change to the model.
"""

from collections.abc import Iterator
from typing import Any

from .findings import Checkup, Finding

Split = dict[str, Any]


def part(checkup: Checkup, name: str) -> Split:
    """What the report says about a part of the data; nothing where there is no such report."""
    found: Split = checkup.data.get("splits", {}).get(name) or {}
    return found


def sides(split: Split) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (split.get("sides") or {}).items()


def cut_off(checkup: Checkup) -> Finding | None:
    """A twentieth of the training examples or more were cut or dropped for their length."""
    train = part(checkup, "train")
    if not train.get("examples"):
        return None
    cut = max((side.get("cut", 0) for _, side in sides(train)), default=0) + train.get("dropped", 0)
    share = cut / (train["examples"] + train.get("dropped", 0))
    if share < 0.05:
        return None
    longest, limit = max((side.get("whole", 0) for _, side in sides(train)), default=0), checkup.recipe.data.max_length
    return Finding(
        "examples are cut off",
        0.6 + 0.38 * share if checkup.skill < 0.9 else 0.3,
        f"{share:.0%} of the training examples were {'cut' if checkup.recipe.data.too_long == 'cut' else 'dropped'} as "
        f"longer than {limit} tokens; the longest has {longest or 'more'}.",
        {"share": share, "limit": float(limit), "longest": float(longest)},
        f"data.max_length={longest if longest > limit else 2 * limit}",
        "What the answer depends on may stand behind the cut.",
    )


def unknown(checkup: Checkup) -> Finding | None:
    """A tenth or more of the tokens of a side are unknown, in training or in validation."""
    shares = {
        name: max(
            side.get("unknown_share", 0.0),
            dict(sides(part(checkup, "validation"))).get(name, {}).get("unknown_share", 0.0),
        )
        for name, side in sides(part(checkup, "train"))
    }
    name, share = max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    if share < 0.1:
        return None
    data = checkup.recipe.data
    if data.vocabulary_size or data.min_count > 1:
        change = "data.vocabulary_size=0 data.min_count=1"
    elif checkup.recipe.task == "tag":
        change = "data.characters=16"
    else:
        change = f"data.{'target' if name == 'target' else 'source'}_tokenizer=bpe"
    return Finding(
        "unknown tokens",
        0.6 + 0.35 * share,
        f"{share:.0%} of the tokens of the {name} are unknown.",
        {"share": share},
        change,
        "All that is unknown looks the same to the model; subwords spell what they do not know.",
    )


def unmixed(checkup: Checkup) -> Finding | None:
    """A batch shows less than four fifths of the variety that a drawn one would."""
    found, train = checkup.evidence, checkup.recipe.train
    if found is None or found.mixed is None or found.drawn is None:
        return None
    share = found.mixed / max(found.drawn, 1e-9)
    if train.shuffle or share > 0.8:
        return None
    return Finding(
        "not shuffled",
        0.75 + 0.2 * (1 - share),
        f"The targets of a batch have {found.mixed:.0%} of all variety; drawn, they would have {found.drawn:.0%}.",
        {"mixed": found.mixed, "drawn": found.drawn},
        "train.shuffle=true",
        "Every batch teaches its own label and unteaches those of the batches before.",
    )


def alike(checkup: Checkup) -> Finding | None:
    """Although the order is drawn, a batch shows less than three fifths of the variety: lengths give labels away."""
    found, train = checkup.evidence, checkup.recipe.train
    if found is None or found.mixed is None or not train.shuffle or found.mixed > 0.6 or found.rows < 4:
        return None
    return Finding(
        "batches too much alike",
        0.55,
        f"The targets of a batch have {found.mixed:.0%} of the variety of all: rows of like length go together, and "
        "here they have like labels.",
        {"mixed": found.mixed},
        f"train.batch_tokens={4 * train.batch_tokens}",
        "Every batch teaches its own label and unteaches those of the batches before.",
    )


def collapsed(checkup: Checkup) -> Finding | None:
    """Nearly every answer is the most frequent label, which more than half, but not all, of the examples have."""
    found = checkup.evidence
    if found is None or found.usual is None or checkup.recipe.train.class_weights:
        return None
    answers, targets = found.usual.answers, found.usual.targets
    if answers < 0.97 or not 0.5 < targets < 0.99 or answers - targets < 0.02:
        return None
    return Finding(
        "only the most frequent label",
        0.75,
        f"{answers:.0%} of the answers are one label, which {targets:.0%} of the examples have.",
        {"answers": answers, "targets": targets},
        "train.class_weights=true",
        "Rare labels are so rare that never telling them costs little; balanced, every label counts alike.",
    )


def leak(checkup: Checkup) -> Finding | None:
    """A tenth or more of the validation or test inputs are training inputs, too."""
    shares = {
        name: part(checkup, name)["overlap"] / part(checkup, name)["examples"]
        for name in ("validation", "test")
        if part(checkup, name).get("examples") and "overlap" in part(checkup, name)
    }
    name, share = max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    if share < 0.1:
        return None
    return Finding(
        "scored on what it was taught",
        0.5 + 0.3 * share,
        f"{share:.0%} of the {name} inputs are among the training inputs.",
        {"share": share},
        "",
        "A score on examples that were learned by heart says nothing about others: take them out of one of the files.",
    )


def repeated(checkup: Checkup) -> Finding | None:
    """A third or more of the training examples have stood there before."""
    train = part(checkup, "train")
    share = train.get("repeated", 0) / max(train.get("examples", 0), 1)
    if share < 1 / 3:
        return None
    return Finding(
        "repeated examples",
        0.3,
        f"{share:.0%} of the training examples have stood there before.",
        {"share": share},
        "",
        "There is less to learn from than it seems, and what is repeated is learned by heart.",
    )


def other_kind(checkup: Checkup) -> Finding | None:
    """The labels of validation are spread in another way than those of training by a quarter, or far less is known."""
    train, validation = dict(sides(part(checkup, "train"))), part(checkup, "validation")
    worst, says = 0.0, ""
    for name, side in sides(validation):
        ours = train.get(name, {})
        moved = _moved(ours.get("balance") or {}, side.get("balance") or {})
        less = side.get("unknown_share", 0.0) - ours.get("unknown_share", 0.0)
        if validation.get("examples", 0) >= 50 and moved > max(worst, 0.25):
            worst, says = (
                moved,
                f"{moved:.0%} of the validation labels would have to change to be spread as in training",
            )
        if less > max(worst, 0.15):
            worst, says = less, f"{less:.0%} more of the {name} is unknown in validation than in training"
    if not says:
        return None
    given = bool(checkup.recipe.data.validation)
    return Finding(
        "validation is of another kind",
        0.55,
        f"{says}.",
        {"difference": worst},
        "data.validation=" if given else "",
        "What is learned from the one is not what the other asks for; rows drawn from the training file are.",
    )


def _moved(ours: dict[str, int], theirs: dict[str, int]) -> float:
    """Half the difference of the shares: what would have to move to make them alike."""
    if not ours or not theirs or len(ours) > 1000:
        return 0.0
    mine, other = (max(sum(counts.values()), 1) for counts in (ours, theirs))
    return sum(abs(ours.get(k, 0) / mine - theirs.get(k, 0) / other) for k in {*ours, *theirs}) / 2


def padding(checkup: Checkup) -> Finding | None:
    """More than two fifths of what is computed is padding."""
    share = float(checkup.data.get("padded_share", 0.0))
    if share < 0.4:
        return None
    return Finding(
        "padding",
        0.2,
        f"{share:.0%} of the training batches is padding: that much of the time is spent on nothing.",
        {"share": share},
        f"train.batch_tokens={2 * checkup.recipe.train.batch_tokens}",
        "In larger batches rows of like length find one another; very long examples may be worth dropping.",
    )
