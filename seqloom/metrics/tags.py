"""How good the tags of a sentence are: the share of right tags, and F1 of the entities that they spell.

Tags of entities are B-, I-, E-, S- with a type, or O; the schemes BIO, BIOES and IOB1 are read alike, with the rules of
the conlleval script (and of seqeval): what looks like a beginning is one. Resampling draws whole sentences.
"""

from collections.abc import Collection, Hashable, Sequence

from .labels import Average, ClassScores, LabelPairs, find_sets, score_classes, score_f1
from .score import Score, ratio, score_sums

OUTSIDE = "O"
PREFIXES = ("B-", "I-", "E-", "S-")
Tags = Sequence[Sequence[str]]  # the tags of each sentence


def tag_accuracy(
    predictions: Sequence[Sequence[Hashable]], targets: Sequence[Sequence[Hashable]], *, intervals: bool = True
) -> Score:
    """The share (0 to 1) of tokens with the right tag."""
    right = [
        [sum(p == t for p, t in zip(predicted, truth, strict=True)), len(truth)]
        for predicted, truth in zip(predictions, targets, strict=True)
    ]
    return score_sums(right, ratio, "higher", "share of tokens, 0 to 1", intervals=intervals)


def entity_f1(predictions: Tags, targets: Tags, average: Average = "micro", *, intervals: bool = True) -> Score:
    """F1 (0 to 1) of entities: right if type, first and last token all are."""
    score = score_f1(_find_entities(predictions, targets), average, intervals=intervals)
    return Score(score.value, score.interval, score.better, "entity " + score.scale.replace("labels", "entities"))


def per_entity(predictions: Tags, targets: Tags, *, intervals: bool = True) -> dict[Hashable, ClassScores]:
    """Precision, recall and F1 of each type of entity."""
    return score_classes(_find_entities(predictions, targets), intervals=intervals)


def list_entities(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Type, first and last token of each entity of a sentence."""
    entities = []
    before, kind_before, first = OUTSIDE, "", 0
    for position, tag in enumerate((*tags, OUTSIDE)):
        place, kind = tag[0], tag[1:].removeprefix("-")
        changes = kind != kind_before
        if before != OUTSIDE and (before in "ES" or place in "BSO" or changes):
            entities.append((kind_before, first, position - 1))
        if place != OUTSIDE and (place in "BS" or before in "ESO" or changes):
            first = position
        before, kind_before = place, kind
    return entities


def spell_entities(tags: Collection[str]) -> bool:
    """Whether these tags are of the kind that `entity_f1` reads, and not all of them O."""
    return any(tag != OUTSIDE for tag in tags) and all(tag == OUTSIDE or tag[:2] in PREFIXES for tag in tags)


def _find_entities(predictions: Tags, targets: Tags) -> LabelPairs:
    claimed, there = ([list_entities(tags) for tags in sentences] for sentences in (predictions, targets))
    return find_sets(claimed, there, _get_type)


def _get_type(entity: Hashable) -> Hashable:
    assert isinstance(entity, tuple)
    return entity[0]
