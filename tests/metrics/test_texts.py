"""Scores against brute force and against sacrebleu's own corpus score."""

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from seqloom.metrics import (
    bleu,
    chrf,
    exact_match,
    mean_sentence_bleu,
    ter,
    token_error_rate,
)
from seqloom.metrics.score import BOOTSTRAP_SEED, RESAMPLES

METRICS = {
    "exact": exact_match,
    "edits": token_error_rate,
    "bleu": bleu,
    "sentence bleu": mean_sentence_bleu,
    "chrf": chrf,
    "ter": ter,
}

WORDS = ("the", "a", "Cat", "cat", "sat", "on", "mat", ".", "2021", "größer", "猫", "don't", "3,5")
CASES = range(40)


def corpus(seed: int, most_references: int = 3) -> tuple[list[str], list[list[str]]]:
    """A few predictions, each with one or several references that share words with it, some of them empty."""
    draw = random.Random(seed)
    references = []
    predictions = []
    for _ in range(draw.randint(1, 8)):
        count = draw.randint(1, most_references)
        accepted = [" ".join(draw.choices(WORDS, k=draw.randint(0, 9))) for _ in range(count)]
        words = draw.choice(accepted).split()
        for _ in range(draw.randint(0, 2)):
            words.insert(draw.randint(0, len(words)), draw.choice(WORDS))
        references.append(accepted)
        predictions.append(" ".join(words))
    return predictions, references


def as_ranks(references: list[list[str]]) -> list[list[str | None]]:
    most = max(map(len, references))
    return [[r[rank] if rank < len(r) else None for r in references] for rank in range(most)]


def edits_by_definition(ours: tuple[str, ...], theirs: tuple[str, ...]) -> int:
    """The fewest insertions, deletions and replacements, straight from the recursive definition."""

    @cache
    def fewest(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return i + j
        replaced = fewest(i - 1, j - 1) + (ours[i - 1] != theirs[j - 1])
        return min(replaced, fewest(i - 1, j) + 1, fewest(i, j - 1) + 1)

    return fewest(len(ours), len(theirs))


@pytest.mark.parametrize("name", METRICS)
def test_intervals_are_there_when_nobody_says_otherwise(name):
    predictions, references = corpus(1)
    low, high = METRICS[name](predictions, references).interval
    assert low <= high


@pytest.mark.parametrize("seed", CASES)
def test_exact_match_counts_what_equals_a_reference(seed):
    predictions, references = corpus(seed)
    right = 0
    for prediction, accepted in zip(predictions, references, strict=True):
        right += any(prediction == reference for reference in accepted)
    assert exact_match(predictions, references, intervals=False).value == right / len(predictions)


@pytest.mark.parametrize("tokens", [list, str.split], ids=["characters", "words"])
@pytest.mark.parametrize("seed", CASES)
def test_token_error_rate_is_the_fewest_edits_to_the_nearest_reference(seed, tokens):
    predictions, references = corpus(seed)
    edits = length = 0
    for prediction, accepted in zip(predictions, references, strict=True):
        cut = [tuple(tokens(reference)) for reference in accepted]
        distances = [edits_by_definition(tuple(tokens(prediction)), reference) for reference in cut]
        edits += min(distances)
        length += max(len(r) for r, d in zip(cut, distances, strict=True) if d == min(distances))
    assert token_error_rate(predictions, references, tokens, intervals=False).value == edits / max(length, 1)


@pytest.mark.parametrize("lowercase", [False, True], ids=["cased", "lowercase"])
@pytest.mark.parametrize("seed", CASES)
def test_bleu_and_chrf_are_sacrebleus_to_the_last_digit(seed, lowercase):
    predictions, references = corpus(seed)
    for ours, theirs in ((bleu, BLEU(lowercase=lowercase)), (chrf, CHRF(lowercase=lowercase))):
        score = ours(predictions, references, lowercase=lowercase, intervals=False)
        assert score.value == theirs.corpus_score(predictions, as_ranks(references)).score
        assert score.signature == str(theirs.get_signature())


@pytest.mark.parametrize("seed", CASES)
def test_the_mean_of_sentence_bleu_is_that_of_sacrebleus_sentences(seed):
    predictions, references = corpus(seed)
    theirs = BLEU(effective_order=True)
    sentences = [theirs.sentence_score(text, right).score for text, right in zip(predictions, references, strict=True)]
    score = mean_sentence_bleu(predictions, references, intervals=False)
    assert score.value == pytest.approx(np.mean(sentences), abs=1e-9)
    assert "eff:yes" in score.signature and "mean over sentences" in score.scale


@pytest.mark.parametrize("seed", CASES)
def test_ter_is_sacrebleus(seed):
    predictions, references = corpus(seed)
    theirs = TER()
    score = ter(predictions, references, intervals=False)
    assert score.value == pytest.approx(theirs.corpus_score(predictions, as_ranks(references)).score, abs=1e-9)
    assert score.signature == str(theirs.get_signature())


def test_lowercase_forgives_capitals_and_says_so():
    predictions, references = ["THE CAT SAT ON THE MAT"], ["the cat sat on the mat"]
    for metric in (bleu, chrf):
        assert metric(predictions, references).value < 100
        forgiving = metric(predictions, references, lowercase=True)
        assert forgiving.value == pytest.approx(100) and "case:lc" in forgiving.signature


@pytest.mark.parametrize("name", ["exact", "edits", "bleu", "chrf"])
def test_the_interval_is_that_of_scoring_every_resample_anew(name):
    texts, references = [], []
    for seed in range(6):
        more_texts, more_references = corpus(seed)
        texts, references = texts + more_texts, references + more_references
    whole = METRICS[name](texts, references)

    def anew(rows: np.ndarray) -> float:
        some, accepted = [texts[row] for row in rows], [references[row] for row in rows]
        if name == "exact":
            return np.mean([text in right for text, right in zip(some, accepted, strict=True)])
        if name == "edits":
            edits, lengths = zip(*(nearest[row] for row in rows), strict=True)
            return sum(edits) / max(sum(lengths), 1)
        return {"bleu": BLEU(), "chrf": CHRF()}[name].corpus_score(some, as_ranks(accepted)).score

    nearest = []
    if name == "edits":
        for text, accepted in zip(texts, references, strict=True):
            options = [(edits_by_definition(tuple(text), tuple(r)), -len(r)) for r in accepted]
            nearest.append((min(options)[0], -min(options)[1]))
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [anew(generator.integers(len(texts), size=len(texts))) for _ in range(RESAMPLES)]
    assert whole.interval == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=1e-9)


def test_the_interval_of_a_share_is_about_as_wide_as_the_closed_form():
    right, count = 300, 1000
    score = exact_match(["yes"] * count, ["yes"] * right + ["no"] * (count - right))
    half = 1.96 * np.sqrt(score.value * (1 - score.value) / count)
    assert score.interval == pytest.approx((score.value - half, score.value + half), abs=half / 5)


@pytest.mark.parametrize("name", METRICS)
def test_a_better_answer_moves_every_score_the_way_it_says(name):
    metric = METRICS[name]
    worse, best = metric(["the dog sat there"], ["the cat sat there"]), metric(["a b c d"], ["a b c d"])
    assert (best.value > worse.value) == (worse.better == "higher") and best.value != worse.value


@pytest.mark.parametrize("name", METRICS)
def test_without_intervals_the_values_are_the_same(name):
    predictions, references = corpus(5)
    quick = METRICS[name](predictions, references, intervals=False)
    assert quick.interval is None and quick.value == METRICS[name](predictions, references).value


def test_a_text_alone_is_a_reference_and_not_a_list_of_characters():
    assert exact_match(["ab", "b"], ["ab", "ab"]).value == 0.5
    assert token_error_rate(["ab"], ["ab"]) == token_error_rate(["ab"], [["ab"]])
    assert bleu(["a b c d"], ["a b c d"]).value == pytest.approx(100)


def test_a_wrong_number_of_references_is_refused():
    for metric in METRICS.values():
        with pytest.raises(ValueError, match="shorter|2 predictions .* 1 references"):
            metric(["a", "b"], ["a"])


def test_empty_texts_score_without_dividing_by_zero():
    assert token_error_rate([""], [""]).value == 0
    assert token_error_rate(["abc"], [""]).value == 3
    assert bleu([""], ["a b c d"]).value == 0
    assert chrf([""], ["a b c d"]).value == 0
    assert mean_sentence_bleu([""], ["a b c d"]).value == 0
    assert ter([""], [""]).value == 0
    assert ter([""], ["a b c d"]).value == 100


@pytest.mark.soak
@given(st.lists(st.tuples(st.text(max_size=12), st.lists(st.text(max_size=12), min_size=1, max_size=3)), min_size=1))
def test_any_texts_at_all_score_like_their_definitions(pairs):
    predictions, references = [text for text, _ in pairs], [accepted for _, accepted in pairs]
    for ours, theirs in ((bleu, BLEU()), (chrf, CHRF())):
        score = ours(predictions, references, intervals=False)
        assert score.value == theirs.corpus_score(predictions, as_ranks(references)).score
    nearest = [min((edits_by_definition(tuple(text), tuple(r)), -len(r)) for r in accepted) for text, accepted in pairs]
    edits, length = sum(e for e, _ in nearest), -sum(minus for _, minus in nearest)
    assert token_error_rate(predictions, references, intervals=False).value == edits / max(length, 1)
