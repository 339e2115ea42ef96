"""Rules about the data: what was cut, not known, not mixed, repeated, or told apart by nothing.

Each docstring says when the rule speaks. None of them prescribes a change to the model.
"""

from collections.abc import Iterator
from typing import Any

from .findings import Checkup, Finding

Split = dict[str, Any]


def get_part(checkup: Checkup, name: str) -> Split:
    """What the report says about a part of the data; nothing where there is no such report."""
    return checkup.data.get("splits", {}).get(name) or {}


def list_sides(split: Split) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from (split.get("sides") or {}).items()


def check_truncation(checkup: Checkup) -> Finding | None:
    """A twentieth of the training examples or more were cut or dropped for their length."""
    train = get_part(checkup, "train")
    if not train.get("examples"):
        return None
    cut = max((side.get("cut", 0) for _, side in list_sides(train)), default=0) + train.get("dropped", 0)
    share = cut / (train["examples"] + train.get("dropped", 0))
    if share < 0.05:
        return None
    longest, limit = (
        max((side.get("whole", 0) for _, side in list_sides(train)), default=0),
        checkup.recipe.data.max_length,
    )
    return Finding(
        "examples are cut off",
        0.6 + 0.38 * share if checkup.skill < 0.9 else 0.3,
        f"{share:.0%} of the training examples were {'cut' if checkup.recipe.data.too_long == 'cut' else 'dropped'} as "
        f"longer than {limit} tokens; the longest has {longest or 'more'}.",
        {"share": share, "limit": float(limit), "longest": float(longest)},
        f"data.max_length={longest if longest > limit else 2 * limit}",
        "The answer may depend on elements behind the cut.",
    )


def check_unknown_tokens(checkup: Checkup) -> Finding | None:
    """A tenth or more of the tokens of a side are unknown, in training or in validation."""
    shares = {
        name: max(
            side.get("unknown_share", 0.0),
            dict(list_sides(get_part(checkup, "validation"))).get(name, {}).get("unknown_share", 0.0),
        )
        for name, side in list_sides(get_part(checkup, "train"))
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
        "All unknown tokens are the same to the model; subwords can spell any text.",
    )


def check_shuffling(checkup: Checkup) -> Finding | None:
    """A batch shows less than four fifths of the variety that a drawn one would."""
    evidence, train = checkup.evidence, checkup.recipe.train
    if evidence is None or evidence.mixed is None or evidence.drawn is None:
        return None
    share = evidence.mixed / max(evidence.drawn, 1e-9)
    if train.shuffle or share > 0.8:
        return None
    return Finding(
        "not shuffled",
        0.75 + 0.2 * (1 - share),
        f"The targets of a batch have {evidence.mixed:.0%} of the entropy of all targets; "
        f"in a random order they would have {evidence.drawn:.0%}.",
        {"mixed": evidence.mixed, "drawn": evidence.drawn},
        "train.shuffle=true",
        "Every batch trains its own label and undoes what the batches before have trained.",
    )


def check_batch_variety(checkup: Checkup) -> Finding | None:
    """Although the order is drawn, a batch shows less than three fifths of the variety: lengths give labels away."""
    evidence, train = checkup.evidence, checkup.recipe.train
    if evidence is None or evidence.mixed is None or not train.shuffle or evidence.mixed > 0.6 or evidence.rows < 4:
        return None
    return Finding(
        "batches too much alike",
        0.55,
        f"The targets of a batch have {evidence.mixed:.0%} of the entropy of all: batches are made by "
        "length, and here equal lengths have equal labels.",
        {"mixed": evidence.mixed},
        f"train.batch_tokens={4 * train.batch_tokens}",
        "Every batch trains its own label and undoes what the batches before have trained.",
    )


def check_collapse(checkup: Checkup) -> Finding | None:
    """Nearly every answer is the most frequent label, which more than half, but not all, of the examples have."""
    evidence = checkup.evidence
    if evidence is None or evidence.usual is None or checkup.recipe.train.class_weights:
        return None
    answers, targets = evidence.usual.answers, evidence.usual.targets
    if answers < 0.97 or not 0.5 < targets < 0.99 or answers - targets < 0.02:
        return None
    return Finding(
        "only the most frequent label",
        0.75,
        f"{answers:.0%} of the answers are one label, which {targets:.0%} of the examples have.",
        {"answers": answers, "targets": targets},
        "train.class_weights=true",
        "Rare labels are so rare that never predicting them costs little; with class weights every label counts alike.",
    )


def check_leakage(checkup: Checkup) -> Finding | None:
    """A tenth or more of the validation or test inputs are training inputs, too."""
    shares = {
        name: get_part(checkup, name)["overlap"] / get_part(checkup, name)["examples"]
        for name in ("validation", "test")
        if get_part(checkup, name).get("examples") and "overlap" in get_part(checkup, name)
    }
    name, share = max(shares.items(), key=lambda pair: pair[1], default=("", 0.0))
    if share < 0.1:
        return None
    return Finding(
        "training examples in the scores",
        0.5 + 0.3 * share,
        f"{share:.0%} of the {name} inputs are among the training inputs.",
        {"share": share},
        "",
        "A score on training examples says nothing about new ones: remove them from one of the files.",
    )


def check_repetition(checkup: Checkup) -> Finding | None:
    """A third or more of the training examples are repetitions."""
    train = get_part(checkup, "train")
    share = train.get("repeated", 0) / max(train.get("examples", 0), 1)
    if share < 1 / 3:
        return None
    return Finding(
        "repeated examples",
        0.3,
        f"{share:.0%} of the training examples are repetitions.",
        {"share": share},
        "",
        "There are fewer distinct examples than it seems, and repeated ones are memorized.",
    )


def check_distribution_shift(checkup: Checkup) -> Finding | None:
    """The labels of validation are spread in another way than those of training by a quarter, or far less is known."""
    train, validation = dict(list_sides(get_part(checkup, "train"))), get_part(checkup, "validation")
    worst, says = 0.0, ""
    for name, side in list_sides(validation):
        ours = train.get(name, {})
        moved = _compare_shares(ours.get("balance") or {}, side.get("balance") or {})
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
    own_file = bool(checkup.recipe.data.validation)
    return Finding(
        "validation data differs",
        0.55,
        f"{says}.",
        {"difference": worst},
        "data.validation=" if own_file else "",
        "The model is selected on other data than it is trained on; rows split off the training file would not differ.",
    )


def _compare_shares(ours: dict[str, int], theirs: dict[str, int]) -> float:
    """Half the difference of the shares: what would have to move to make them alike."""
    if not ours or not theirs or len(ours) > 1000:
        return 0.0
    mine, other = (max(sum(counts.values()), 1) for counts in (ours, theirs))
    return sum(abs(ours.get(k, 0) / mine - theirs.get(k, 0) / other) for k in {*ours, *theirs}) / 2


def check_padding(checkup: Checkup) -> Finding | None:
    """More than two fifths of what is computed is padding."""
    share = float(checkup.data.get("padded_share", 0.0))
    if share < 0.4:
        return None
    return Finding(
        "padding",
        0.2,
        f"{share:.0%} of the training batches is padding: that share of the computation is wasted.",
        {"share": share},
        f"train.batch_tokens={2 * checkup.recipe.train.batch_tokens}",
        "Larger batches can be sorted by length better; consider dropping very long examples.",
    )
