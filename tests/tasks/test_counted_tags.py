"""A tagger that begins with counts: as a hidden Markov model, and with the better of that and what training makes."""

import itertools
import json
import math
import random
from collections import Counter

import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import SPECIALS, UNKNOWN
from seqloom.errors import RecipeError, RunError
from seqloom.fields import WordList
from seqloom.layers.embeddings import TokenEmbedding
from seqloom.layers.lexicon import LexiconEmbedding
from seqloom.runs.run import load, train
from seqloom.tasks.counted_tags import BACKED_OFF, SHARED, UNSEEN
from tests.preparing import prepare_task

CHANCE = random.Random(0)
NAMES, PLACES, REST = ["Ana", "Bo", "Carla"], ["Rome", "Oslo", "Bo"], ["flew", "went", "to", "from", "."]
SENTENCES = [
    [CHANCE.choice(some) for some in (NAMES, REST, REST, PLACES)] + [f"{number}x", "."] for number in range(80)
]
TAGS = ["B-PER", "O", "O", "B-LOC", "O", "O"]  # of each
EXAMPLES = [("\t".join(words), "\t".join(TAGS)) for words in SENTENCES]


def begin(*settings):
    """A tagger that has counted, and whose net says nothing yet."""
    recipe = Recipe.read("tag", "model.lexicon=true", "data.characters=0", "model.size=8", *settings).resolved()
    task, task.prepared = prepare_task(recipe, examples=dict.fromkeys(("train", "validation", "test"), EXAMPLES))
    model = task.shape.build().eval()
    assert task.initialize(model, pytest.fail)
    with torch.no_grad():
        model.head.project.weight[:, : -len(task.target)] = 0
    return task, model


def test_the_path_of_tags_is_as_likely_as_in_a_hidden_markov_model():
    task, model = begin("model.crf=true")
    names = task.target.names
    words = Counter(pair for sentence in SENTENCES for pair in zip(sentence, TAGS, strict=True))
    seen = Counter(word for sentence in SENTENCES for word in sentence)
    share = {tag: (len(SENTENCES) * TAGS.count(tag) + 0.5) for tag in names}
    share = {tag: value / sum(share.values()) for tag, value in share.items()}
    once = {tag: share[tag] + sum(own == tag and seen[word] == 1 for word, own in words) for tag in names}
    once = {tag: value / sum(once.values()) for tag, value in once.items()}
    pairs = Counter(pair for _ in SENTENCES for pair in itertools.pairwise(TAGS))

    def speaks_for(word, tag):
        return (words[word, tag] + BACKED_OFF * once[tag]) / (seen[word] + BACKED_OFF) / share[tag]

    def follows(tag, before):
        counts = {name: pairs[before, name] + UNSEEN for name in names}
        return counts[tag] / sum(counts.values())

    asked = ["Bo", "to", "Oslo", "nowhere"]
    ways = {
        path: (len(SENTENCES) * (path[0] == TAGS[0]) + UNSEEN)
        * math.prod(speaks_for(word, tag) for word, tag in zip(asked, path, strict=True))
        * math.prod(follows(tag, before) for before, tag in itertools.pairwise(path))
        for path in itertools.product(names, repeat=len(asked))
    }
    best = max(ways, key=ways.__getitem__)
    [[answer]] = task.shape.predict(model, ["\t".join(asked)])
    assert answer.tags == list(best)
    assert answer.score == pytest.approx(math.log(ways[best] / sum(ways.values())), abs=1e-4)


def test_without_a_crf_each_word_has_the_tag_that_it_has_most_often():
    task, model = begin()
    counts = {word: Counter() for sentence in SENTENCES for word in sentence}
    for word, tag in (pair for sentence in SENTENCES for pair in zip(sentence, TAGS, strict=True)):
        counts[word][tag] += 1
    answers = [best.tags for [best] in task.shape.predict(model, [text for text, _ in EXAMPLES])]
    assert answers == [[counts[word].most_common(1)[0][0] for word in sentence] for sentence in SENTENCES]


def test_in_training_words_are_taken_for_unknown_as_often_as_they_are_doubted():
    embed = LexiconEmbedding(TokenEmbedding(6, 4), 2, torch.tensor([1, 1, 1, 1, 3, 1]))
    embed.table.copy_(torch.arange(12.0).view(6, 2))
    embed.doubt.copy_(torch.tensor([0, 0, 0, 0, 1.0, 0]))
    read = embed.train()(torch.tensor([[4, 5]]))
    assert torch.equal(read, embed.eval()(torch.tensor([[3, 5]])))
    assert torch.equal(embed(torch.tensor([[4, 5]]))[..., -2:], embed.table[None, 4:])


def test_a_tagger_of_own_data_is_no_worse_than_counting_though_training_spoils_it(typed, tmp_path):
    lines = ["\n".join(f"{word} {tag}" for word, tag in zip(words, TAGS, strict=True)) for words in SENTENCES]
    (tmp_path / "names.conll").write_text("\n\n".join(lines) + "\n")
    typed("train", "tag", "data.train=names.conll", "train.steps=2", "train.learning_rate=0.9", "--into", "run")
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())["validation_scores"]["accuracy"]
    assert scores["value"] >= scores["baselines"]["tag of the word"]
    records = map(json.loads, (tmp_path / "run" / "records.jsonl").read_text().splitlines())
    first = next(one for one in records if one["kind"] != "note")
    assert first["step"] == 0 and first["best"]
    assert load(tmp_path / "run").recipe.model.lexicon


def test_a_tagger_with_counts_is_cut_and_resumed_to_the_same_weights(tmp_path):
    every = ("train.checkpoint_every=2", "train.validate_every=3")
    recipe = Recipe.read("tag", "model.lexicon=true", "model.size=8", "train.steps=6", *every)
    list(train(recipe, tmp_path / "whole", examples=EXAMPLES))
    walk = train(recipe, tmp_path / "cut", examples=EXAMPLES)
    next(record for record in walk if record.kind != "note" and record.step >= 3)
    walk.close()
    list(train(None, tmp_path / "cut", examples=EXAMPLES, resume=True))
    both = [load(tmp_path / name).model.state_dict() for name in ("whole", "cut")]
    assert all(torch.equal(a, b) for a, b in zip(*(one.values() for one in both), strict=True))


def test_an_unknown_word_speaks_like_the_rare_ones_that_end_alike():
    """Counted anew, from the shape of a word to its last two letters (Brants, 2000)."""
    words = [("walking", "V"), ("talking", "V"), ("king", "N"), ("Berlin", "P"), ("Dublin", "P"), ("cat", "N")]
    examples = [(word, tag) for word, tag in words for _ in range(1 + (word == "king"))]
    settings = ("model.lexicon=true", "data.endings=2", "data.characters=0", "model.size=8")
    task, task.prepared = prepare_task(
        Recipe.read("tag", *settings).resolved(), examples=dict.fromkeys(("train", "validation", "test"), examples)
    )
    model = task.shape.build().eval()
    task.initialize(model, pytest.fail)
    names, numbers = task.target.names, {symbol: number for number, symbol in enumerate(task.source.symbols)}
    assert numbers.keys() >= {"a…ng", "a…g", "a…", "A…in", "A…n", "A…"} and "a…at" not in numbers  # one word has it
    assert task.source.encode("Turin sing eat 7").tolist() == [numbers["A…in"], numbers["a…ng"], numbers["a…"], UNKNOWN]
    share = {tag: sum(own == tag for _, own in examples) + 0.5 for tag in names}
    share = {tag: value / sum(share.values()) for tag, value in share.items()}
    once = {tag: share[tag] + sum(own == tag for word, own in words if word != "king") for tag in names}
    likely = {tag: value / sum(once.values()) for tag, value in once.items()}
    for ending, shared in {"a…": "walking talking king king cat", "a…g": "walking talking king king"}.items():
        tags = [dict(words)[word] for word in shared.split()]
        likely = {tag: (tags.count(tag) + SHARED * likely[tag]) / (len(tags) + SHARED) for tag in names}
        told = [math.log(likely[tag] / share[tag]) for tag in names]
        assert model.embed.table[numbers[ending]].tolist() == pytest.approx(told, abs=1e-5)
    likely = {
        tag: (tags.count(tag) + SHARED * likely[tag]) / (len(tags) + SHARED) for tag in names
    }  # …ng, the same words
    known = {tag: (2 * (tag == "N") + BACKED_OFF * likely[tag]) / (2 + BACKED_OFF) / share[tag] for tag in names}
    assert model.embed.table[numbers["king"]].exp().tolist() == pytest.approx(list(known.values()), rel=1e-5)
    assert (
        model.embed.unknown[numbers["king"]] == numbers["a…ng"] and model.embed.unknown[numbers["cat"]] == numbers["a…"]
    )


def test_words_that_are_too_rare_for_the_vocabulary_are_read_by_their_endings():
    examples = [(f"{word} the", "N D") for word in ("raking", "baking", "shaking")]
    settings = ("model.lexicon=true", "data.endings=3", "data.min_count=2", "data.characters=4", "model.size=8")
    task, task.prepared = prepare_task(
        Recipe.read("tag", *settings).resolved(), examples=dict.fromkeys(("train", "validation", "test"), examples)
    )
    numbers = {symbol: number for number, symbol in enumerate(task.source.symbols)}
    assert task.source.encode("raking the")[:, 0].tolist() == [numbers["a…ing"], numbers["the"]]
    plain = Recipe.read("tag", *settings, "data.characters=0").resolved()
    _, prepared = prepare_task(plain, examples=dict.fromkeys(("train", "validation", "test"), examples))
    assert (
        prepared.report.splits["train"].sides["source"].unknown_share == 0.5
    )  # every other word is none of the vocabulary
    model = task.shape.build().eval()
    task.initialize(model, pytest.fail)
    noun = task.target.names.index("N")
    for ending in ("a…ing", "a…ng", "a…g"):
        assert model.embed.table[numbers[ending]].argmax() == noun


def test_endings_are_of_words():
    with pytest.raises(RecipeError, match="data.endings is set, but only words have endings"):
        Recipe.read("tag", "data.source_type=numbers", "data.endings=2", "data.characters=0").resolved()
    for said in ({"longest": 9, "endings": 1}, {"longest": 2, "endings": 99}, {"longest": "2", "endings": 1}):
        with pytest.raises(RunError, match="endings"):
            WordList.from_json({"kind": "listed", "lowercase": False, "symbols": [*SPECIALS, "a"]} | said)
