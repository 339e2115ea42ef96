"""Texts to ids and back, for every kind; and what is no tokenizer."""

import copy
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.data.vocabulary import END, PAD, SPECIALS, START, UNKNOWN
from seqloom.errors import RecipeError, RunError
from seqloom.fields import cutting, subwords
from seqloom.fields import id_table as units
from seqloom.fields.cutting import JOINER
from seqloom.fields.subwords import BYTE_OF, byte_names
from tests.tokenizing import learn_tokenizer, read_tokenizer

WORD = re.compile(r"\w+|[^\w\s]")
SUBWORDS = ("bpe", "wordpiece", "unigram")
KINDS = ("characters", "words", *SUBWORDS)
TEXTS = [
    "The cat sat on the mat.",
    "The dog didn't sit on the cat; it sat on the mat!",
    "Ein Mann schläft, während die Katze sitzt.",
    "Кошка сидит на коврике. 猫はマットの上に座った。",
    "a  b\tc\n d   ",
    f"a {JOINER} b{JOINER}c {JOINER}{JOINER}",
    "<pad> <unk> <sos> <eos>",
]


def learn(kind: str, texts=TEXTS, **how):
    return learn_tokenizer(kind, texts, **how)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return learn(request.param)


# --- laws of every kind ------------------------------------------------------------------------------------------


def test_known_texts_come_back(tokenizer):
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == tokenizer.normalize(text)


def test_many_texts_are_encoded_as_each_alone(tokenizer):
    texts = [*TEXTS, "", "a", "never seen: ξ"] * 3
    many = tokenizer.encode_many(texts)
    assert len(many) == len(texts)
    for text, row in zip(texts, many, strict=True):
        alone = tokenizer.encode(text)
        assert alone.dtype == row.dtype == np.int32
        assert alone.tolist() == row.tolist()


def test_no_text_at_all_is_no_row(tokenizer):
    assert len(tokenizer.encode_many([])) == 0


def test_ids_are_within_the_vocabulary_and_never_special_but_unknown(tokenizer):
    for text in [*TEXTS, "ξ", "<eos>", "</s><eos> <pad>"]:
        ids = tokenizer.encode(text)
        assert not np.isin(ids, [PAD, START, END]).any()
        assert ((ids >= 0) & (ids < len(tokenizer))).all()


def test_special_marks_around_a_text_are_silent(tokenizer):
    ids = tokenizer.encode("the cat").tolist()
    assert tokenizer.decode([START, *ids, END, PAD, PAD]) == "the cat"


def test_an_unknown_token_is_shown_as_such(tokenizer):
    assert "<unk>" in tokenizer.decode([UNKNOWN])
    assert tokenizer.names([PAD, UNKNOWN, START, END]) == list(SPECIALS)


def test_there_is_a_name_for_every_token_and_none_is_invisible(tokenizer):
    names = tokenizer.names(range(len(tokenizer)))
    assert len(names) == len(tokenizer) == len(tokenizer.symbols)
    assert all(name.strip() == name != "" for name in names)


def test_the_first_symbols_are_the_special_ones(tokenizer):
    assert tokenizer.symbols[:4] == SPECIALS


def test_json_gives_back_the_same_tokenizer(tokenizer):
    again = read_tokenizer(json.loads(json.dumps(tokenizer.to_json())))
    assert type(again) is type(tokenizer)
    assert again.to_json() == tokenizer.to_json()
    for text in TEXTS:
        assert again.encode(text).tolist() == tokenizer.encode(text).tolist()


def test_the_same_texts_give_the_same_tokenizer_in_any_order(tokenizer):
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    assert learn(tokenizer.kind, iter(shuffled)).to_json() == tokenizer.to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_lower_casing_makes_capitals_the_same(kind):
    tokenizer = learn(kind, lowercase=True)
    assert tokenizer.encode("THE Cat").tolist() == tokenizer.encode("the cat").tolist()
    assert tokenizer.decode(tokenizer.encode("THE Cat")) == "the cat" == tokenizer.normalize("THE Cat")
    again = read_tokenizer(tokenizer.to_json())
    assert again.encode("THE Cat").tolist() == tokenizer.encode("THE Cat").tolist()


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_with_lower_casing_no_capital_is_learned(kind):
    tokenizer = learn(kind, ["ABC Def"], lowercase=True)
    assert all(symbol == symbol.lower() for symbol in tokenizer.symbols)
    assert UNKNOWN not in tokenizer.encode("ABC Def")


@pytest.mark.parametrize("kind", KINDS)
def test_half_a_surrogate_pair_is_no_reason_to_stop(kind):
    tokenizer = learn(kind)
    assert len(tokenizer.encode("a\ud800b"))


# --- round trips -------------------------------------------------------------------------------------------------


@given(st.text())
def test_characters_come_back_exactly_if_they_were_seen(text):
    tokenizer = learn("characters", [text])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(st.lists(st.text(), min_size=1))
def test_words_come_back_with_white_space_normalized(texts):
    tokenizer = learn("words", texts)
    for text, row in zip(texts, tokenizer.encode_many(texts), strict=True):
        assert tokenizer.decode(row) == " ".join(text.split()) == tokenizer.normalize(text)


@given(st.text(st.sampled_from([JOINER, "a", " ", ".", "_", "\u00a0"])))
def test_a_joiner_in_the_text_is_not_taken_for_one(text):
    tokenizer = learn("words", [text])
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())


@pytest.fixture(scope="module", params=SUBWORDS)
def pairs(request):
    return learn(request.param)


@given(text=st.text())
def test_subwords_bring_back_any_text_exactly_and_nothing_is_unknown(pairs, text):
    ids = pairs.encode(text)
    assert pairs.decode(ids) == text
    assert UNKNOWN not in ids


@given(text=st.lists(st.sampled_from([" ", "\t", "\n", "\u00a0", "a", "'s", ".", "▁", "Ġ", "é", "<eos>"])).map("".join))
def test_subwords_bring_back_any_white_space_exactly(pairs, text):
    assert pairs.decode(pairs.encode(text)) == text


# --- each kind ---------------------------------------------------------------------------------------------------


def test_characters_are_numbered_as_counted():
    counts = Counter("".join(TEXTS))
    expected = sorted(counts, key=lambda letter: (-counts[letter], letter))
    assert learn("characters").symbols == (*SPECIALS, *expected)
    assert learn("characters", ["ab"]).encode("aξb").tolist() == [4, UNKNOWN, 5]


def test_words_are_cut_at_white_space_and_punctuation():
    tokenizer = learn("words", ["don't stop. (really)"])
    ids = tokenizer.encode("don't stop. (really)")
    tokens = ["don", f"{JOINER}'", f"{JOINER}t", "stop", f"{JOINER}.", "(", f"{JOINER}really", f"{JOINER})"]
    assert [tokenizer.symbols[number] for number in ids] == tokens
    assert tokenizer.names(ids) == ["don", "'", "t", "stop", ".", "(", "really", ")"]


@given(st.text())
def test_words_are_what_the_expression_finds(text):
    tokenizer = learn("words", [text])
    assert tokenizer.names(tokenizer.encode(text)) == WORD.findall(text)


def test_words_are_counted_as_if_each_text_were_cut_alone(monkeypatch):
    texts = [" ".join(random.Random(n).choices(["a", "b.", "c-d", "(e)", "f"], k=20)) for n in range(50)]
    expected = Counter(token for text in texts for word in text.split() for token in cutting.parts(word))
    assert cutting.count_words(texts, cutting.Cut()) == expected
    monkeypatch.setattr(cutting, "MOST_UNITS", 2)  # emptied after every text
    assert cutting.count_words(texts, cutting.Cut()) == expected


def test_counting_forgets_the_rarest_words_first_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(cutting, "MOST_COUNTED", 3)
    counts = cutting.count_words(["a a a b b c c d e"], cutting.Cut())
    assert counts == {"a": 3, "b": 2, "c": 2}


def test_unknown_words_become_unknown_and_punctuation_keeps_its_place():
    tokenizer = learn("words", ["the cat."])
    assert tokenizer.decode(tokenizer.encode("the  zebra.")) == "the <unk>."


def test_a_table_of_units_that_is_full_begins_anew(monkeypatch):
    tokenizer = learn("words")
    expected = [tokenizer.encode(text).tolist() for text in TEXTS]
    monkeypatch.setattr(units, "MOST_UNITS", 3)
    for _ in range(2):
        assert [tokenizer.encode(text).tolist() for text in TEXTS] == expected
    assert len(tokenizer._units._rows) < 20


def test_subwords_learn_what_is_frequent():
    tokenizer = learn("bpe", ["the cat and the hat"] * 5)
    assert tokenizer.names(tokenizer.encode("the the")) == ["the", "␣the"]


def test_subwords_have_as_many_symbols_as_asked_for_and_no_fewer_than_the_bytes():
    texts = [" ".join(random.Random(n).choices(TEXTS, k=3)) for n in range(20)]
    for kind, least in (("bpe", 256), ("unigram", 256), ("wordpiece", 512)):
        assert len(learn(kind, texts, max_size=least + 44)) == least + 44 + len(SPECIALS)
        assert len(learn(kind, texts, max_size=least)) == least + len(SPECIALS)
        with pytest.raises(RecipeError, match=f"data.vocabulary_size is {least - 1}"):
            learn(kind, texts, max_size=least - 1)


def test_word_pieces_are_the_longest_that_fit_each_time():
    tokenizer = learn("wordpiece", ["walk walked walking talk talked talking"] * 5)
    known = set(tokenizer.symbols)
    for word in ("walking", "talks", "stalked"):
        expected, start = [], 0
        while start < len(word):
            front = "￭" if start else ""
            stop = next(n for n in range(len(word), start, -1) if front + word[start:n] in known)
            expected.append(front + word[start:stop])
            start = stop
        assert [tokenizer.symbols[number] for number in tokenizer.encode(word)] == expected


def test_the_cut_of_a_unigram_model_is_the_likeliest_of_all_cuts():
    tokenizer = learn("unigram", ["walk walked walking talk talked talking"] * 5, max_size=270)
    logs = dict(zip(tokenizer.symbols[len(SPECIALS) :], tokenizer._pairs.logs, strict=True))

    def cuts(word):
        yield from ([[]] if not word else [])
        for stop in range(1, len(word) + 1):
            yield from ([word[:stop], *rest] for rest in cuts(word[stop:]) if word[:stop] in logs)

    for word in ("walking", "talks", "stalked"):
        told = sum(logs[tokenizer.symbols[number]] for number in tokenizer.encode(word))
        assert told == pytest.approx(max(sum(map(logs.get, cut)) for cut in cuts(word)))


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_damaged_subwords_of_other_ways_are_refused(kind):
    whole = learn(kind, ["walk walked"]).to_json()
    assert "lacks some of the 256 bytes" in refused(whole | {"symbols": [*SPECIALS, *whole["symbols"][5:]]})
    assert "names of bytes" in refused(whole | {"symbols": [*whole["symbols"], "日"]})
    if kind == "unigram":
        assert "log-probability each" in refused(whole | {"logs": whole["logs"][:-1]})
        assert "log-probability each" in refused(whole | {"logs": [1.0] * len(whole["logs"])})


def test_the_names_of_bytes_are_those_of_the_library():
    from tokenizers import pre_tokenizers

    assert sorted(byte_names()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = learn("bpe", ["x"])
    for text in map(chr, [*range(0x20, 0x400), 0x20AC, 0x1F600]):
        assert bytes(BYTE_OF[tokenizer.symbols[number]] for number in tokenizer.encode(text)) == text.encode()


def test_bytes_that_are_no_character_alone_are_named_in_hexadecimal():
    tokenizer = learn("bpe", ["x"])
    assert tokenizer.names(tokenizer.encode("é a\n")) == ["\\xc3", "\\xa9", "␣", "a", "⏎"]


def test_subwords_of_a_text_are_what_the_library_gives_for_it_whole():
    """Cutting a text into words with the blanks before them changes nothing: the library never merges over them."""
    texts = [f"{a}{blank}{b}" for a in TEXTS for b in TEXTS for blank in (" ", "  ", "\n", " \u00a0 ", "'s ")]
    tokenizer = learn("bpe", TEXTS * 3)
    library = tokenizer._pairs._library
    for text in texts:
        assert tokenizer.encode(text).tolist() == [number + len(SPECIALS) for number in library.encode(text).ids]


@pytest.mark.parametrize("kind", SUBWORDS)
def test_another_process_with_one_thread_learns_the_same_subwords(kind):
    texts = [" ".join(random.Random(n).choices(TEXTS, k=3)) for n in range(30)]
    program = (
        "import json, sys; from tests.tokenizing import learn_tokenizer; "
        f"print(json.dumps(learn_tokenizer({kind!r}, json.load(sys.stdin), max_size=540).to_json()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(texts),
        env=os.environ | {"RAYON_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == learn(kind, texts, max_size=540).to_json()


def test_the_sample_subwords_are_learned_from_is_bounded_fair_and_the_same_every_time(monkeypatch):
    monkeypatch.setattr(subwords, "SAMPLE_PIECES", 1000)
    monkeypatch.setattr(subwords, "SAMPLE_PIECE", 10)
    texts = [f"{n:010d}" * 2 for n in range(5000)]  # two pieces each
    kept = subwords.sample(iter(texts))
    assert kept == subwords.sample(iter(texts))
    assert len(kept) == 1000 and all(len(piece) == 10 for piece in kept)
    thirds = Counter(int(piece) * 3 // 5000 for piece in kept)
    assert all(abs(thirds[third] - 1000 / 3) < 5 * (1000 * 2 / 9) ** 0.5 for third in range(3))
    assert subwords.sample(texts[:3]) == [f"{n:010d}" for n in range(3) for _ in range(2)]


# --- ten million characters on one line --------------------------------------------------------------------------

LONG = 250_000  # what takes a step for each pair of characters takes minutes here as well


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["a", " ", "a.", "。", "ab "], ids=["one word", "blanks", "mixed", "marks", "words"])
def test_a_very_long_line_is_no_catastrophe(kind, unit):
    """Ten million characters, once a kind, go through `test_prepare`."""
    text = unit * (LONG // len(unit))
    tokenizer = learn(kind, ["a ab. 。"])
    ids = tokenizer.encode(text)
    if kind == "characters":
        assert len(ids) == len(text)
    if kind == "words":
        tokens = (WORD.findall(piece) for word in text.split() for piece in subwords.pieces(word, subwords.PIECE))
        assert len(ids) == sum(map(len, tokens))
    if kind in SUBWORDS:
        assert tokenizer.decode(ids) == text


def test_a_word_longer_than_any_word_comes_back_too(monkeypatch):
    monkeypatch.setattr(cutting, "PIECE", 4)
    monkeypatch.setattr(subwords, "PIECE", 4)
    text = "abcdefghij .....,,,,, x"
    for kind in ("words", *SUBWORDS):
        tokenizer = learn(kind, [text])
        assert tokenizer.decode(tokenizer.encode(text)) == text


# --- what is no tokenizer ----------------------------------------------------------------------------------------


def refused(found: object) -> str:
    with pytest.raises(RunError) as caught:
        read_tokenizer(found)
    sentence = str(caught.value)
    assert "\n" not in sentence and len(sentence) < 300
    return sentence


def test_what_is_no_tokenizer_is_refused(tokenizer):
    whole = tokenizer.to_json()
    assert "table" in refused(None) and "table" in refused([whole])
    assert "lowercase" in refused(whole | {"lowercase": 1})
    assert "'syllables'" in refused(whole | {"kind": "syllables"})
    assert "kind" in refused(whole | {"kind": ["bpe"]})
    assert "not a list" in refused({key: value for key, value in whole.items() if key != "symbols"})
    assert "special" in refused(whole | {"symbols": whole["symbols"][1:]})
    assert "comes twice" in refused(whole | {"symbols": [*whole["symbols"], whole["symbols"][-1]]})
    assert "not a text" in refused(whole | {"symbols": [*whole["symbols"], 4_000_000_000]})
    assert "not a list" in refused(whole | {"symbols": {symbol: 4_000_000_000 for symbol in whole["symbols"]}})


def test_a_character_has_one_character():
    assert "several characters" in refused(learn("characters", ["ab"]).to_json() | {"symbols": [*SPECIALS, "ab"]})


def test_damaged_subwords_are_refused():
    whole = learn("bpe").to_json()
    symbols, merges = whole["symbols"], whole["merges"]
    assert "lacks some of the 256 bytes" in refused(whole | {"symbols": [s for s in symbols if s != "a"], "merges": []})
    assert "names of bytes" in refused(whole | {"symbols": [*symbols, "a b"]})
    assert "not a list" in refused(whole | {"merges": None})
    assert "not a pair" in refused(whole | {"merges": [*merges, ["a"]]})
    assert "not a pair" in refused(whole | {"merges": ["a b"]})
    assert "not a pair" in refused(whole | {"merges": [["a", 1]]})
    assert "not in the vocabulary" in refused(whole | {"merges": [["z", "z"]]})
    assert "not in the vocabulary" in refused(whole | {"merges": [["zzz", "a"]]})


def test_a_panic_inside_of_the_library_is_refused(pairs, monkeypatch):
    class PanicException(BaseException):
        pass

    def panic(*_, **__):
        raise PanicException("index out of bounds")

    for model in ("BPE", "WordPiece", "Unigram"):
        monkeypatch.setattr(f"tokenizers.models.{model}", panic)
    assert "index out of bounds" in refused(pairs.to_json())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
def test_a_mutated_tokenizer_is_refused_or_still_works(tokenizer, data):
    found = copy.deepcopy(tokenizer.to_json())
    for _ in range(data.draw(st.integers(1, 4))):
        key = data.draw(st.sampled_from([*found, "symbols", "merges"]))
        value = found.get(key)
        if isinstance(value, list) and value and data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(value) - 1))
            new = data.draw(json_values | st.sampled_from(value))
            value[place : place + data.draw(st.integers(0, 1))] = [new]
        else:
            found[key] = data.draw(json_values)
    try:
        read = read_tokenizer(found)
    except RunError as error:
        assert "\n" not in str(error) and len(str(error)) < 300
        return
    for text in TEXTS:
        ids = read.encode(text)
        assert (ids < len(read)).all()
        read.decode(ids)


# --- blanks and line breaks --------------------------------------------------------------------------------------


def test_cut_at_blanks_a_word_is_what_stands_between_them():
    tokenizer = learn_tokenizer("spaced", ["the <unk> , said ￭x <eos>"])
    assert tokenizer.kind == "spaced" and "," in tokenizer.symbols and "<unk>" in tokenizer.symbols
    ids = tokenizer.encode("said , the <unk> ￭x new <eos>").tolist()
    assert ids.count(UNKNOWN) == 3  # <unk> is what it says, <eos> is no end, and new is new
    assert tokenizer.decode(ids) == "said , the <unk> ￭x <unk> <unk>"


@pytest.mark.parametrize("kind", ["words", "spaced"])
def test_line_breaks_are_tokens_where_they_are_to_be(kind):
    text = "  To be,  or\nnot\n\nto be ."
    tokenizer = learn_tokenizer(kind, [text], breaks=True)
    again = read_tokenizer(tokenizer.to_json())
    for one in (tokenizer, again):
        ids = one.encode(text)
        assert one.decode(ids) == one.normalize(text) == "To be, or\nnot\n\nto be ."
        assert one.names(ids).count("⏎") == 3
    assert "\n" not in learn_tokenizer(kind, [text]).symbols
