"""Language: every kind trains, goes on and writes; its loss is that of the whole text; its writing is repeatable."""

import math

import numpy as np
import pytest
import torch

from seqloom.architectures import ARCHITECTURES
from seqloom.baselines.language import NGram
from seqloom.config.recipe import Recipe
from seqloom.data.vocabulary import END, NEVER_WRITTEN, START, UNKNOWN
from seqloom.errors import RecipeError, RunError, SearchError
from seqloom.models import Batch
from seqloom.runs.run import Run, load, train
from seqloom.tasks.generation import SamplingOptions
from tests.preparing import prepare_task

from ..recipes import measured, small

KINDS = [kind for kind in ARCHITECTURES if kind not in ("gru-d", "bag")]  # that one continues series of numbers
TEXT = "".join(f"{number} green bottles hanging on the wall, é.\n" for number in range(40))
SETTINGS = (
    "model.size=16",
    "train.steps=6",
    "train.batch_tokens=64",
    "train.bptt_window=8",
    "train.validate_every=3",
    "model.ngram=0",
)


def recipe_of(folder, *settings, text=TEXT):
    (folder / "text.txt").write_text(text, encoding="utf-8")
    return Recipe.read("language", f"data.train={folder / 'text.txt'}", *SETTINGS, *settings)


def prepared_of(folder, *settings, text=TEXT):
    task, prepared = prepare_task(recipe_of(folder, *settings, text=text).resolved(), print)
    torch.manual_seed(0)
    return task, prepared, task.shape.build().eval()


@pytest.mark.parametrize(
    ("kind", "documents"), [*((kind, "file") for kind in KINDS), ("gru", "lines"), ("transformer", "lines")]
)
def test_every_kind_trains_goes_on_and_writes(kind, documents, tmp_path):
    trains_goes_on_and_writes(tmp_path, f"model.kind={kind}", f"data.documents={documents}")


def test_learning_from_a_draw_of_the_words_goes_on_as_well(tmp_path):
    trains_goes_on_and_writes(tmp_path, "train.sampled_softmax=12", "model.tied=true")


def trains_goes_on_and_writes(tmp_path, *settings):
    settings = *settings, "train.checkpoint_every=2"
    recipe = recipe_of(tmp_path, *settings)
    told = [record for record in train(recipe, tmp_path / "whole") if record.best]
    run = load(tmp_path / "whole")
    _, prepared = prepare_task(run.recipe, print)
    sample = prepared.sample_validation(run.recipe.train.validation_tokens)
    assert run.task.shape.validate(run.model, sample) == told[-1].scores
    [written] = run.generate("1 green", length=20).finish()
    assert written.output.startswith("1 green") and len(written.logs) <= 20
    assert set(run.scores["scores"]["perplexity"]["baselines"]) == {"uniform", "unigram", "6-gram"}
    records = measured(train(recipe, tmp_path / "cut"))
    next(records)
    records.close()
    list(train(recipe, tmp_path / "cut", resume=True))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    "settings",
    [
        "data.target_tokenizer=words data.line_breaks=true model.tied=true",
        "data.target_tokenizer=bpe data.vocabulary_size=300",
        "data.documents=paragraphs",
    ],
)
def test_words_subwords_and_paragraphs_are_learned_too(settings, tmp_path):
    text = TEXT.replace("3", "\n3")
    list(train(recipe_of(tmp_path, *settings.split(), text=text), tmp_path / "run"))
    run = load(tmp_path / "run")
    assert run.score(tmp_path / "text.txt")["scores"]["perplexity"]["value"] > 1
    assert {"uniform", "unigram"} == set(run.score(tmp_path / "text.txt")["scores"]["perplexity"]["baselines"])


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_a_model_may_not_see_what_it_is_to_write(kind):
    with pytest.raises(
        RecipeError, match=r"has no setting model.bidirectional; .* for language may not see the future"
    ):
        Recipe.read("language", f"model.kind={kind}", "model.bidirectional=true")


@pytest.mark.parametrize("kind", ["gru", "transformer"])
@pytest.mark.parametrize("documents", ["file", "lines"])
def test_a_model_without_an_opinion_has_the_perplexity_of_its_vocabulary(kind, documents, tmp_path):
    task, prepared, model = prepared_of(tmp_path, f"model.kind={kind}", f"data.documents={documents}")
    torch.nn.init.zeros_(model.head.project.weight)
    torch.nn.init.zeros_(model.head.project.bias)
    scores = task.score(model, task.shape.examples(prepared, "test"))
    written = len(task.target) - 2  # the padding and the start are never written
    assert math.isclose(scores["perplexity"].score.value, written, rel_tol=1e-6)
    assert math.isclose(scores["perplexity"].baselines["uniform"], written, rel_tol=1e-6)


def test_only_streams_go_on_from_batch_to_batch(tmp_path):
    for settings, expected in (
        ("data.documents=file", [True, False, False]),
        ("data.documents=lines", [True, True, True]),
        ("model.kind=transformer", [True, True, True]),
        ("model.kind=transformer model.window=4", [True, False, False]),
    ):
        task, prepared, _ = prepared_of(tmp_path, *settings.split())
        assert [
            task.shape.batch(prepared, rows).starts_sequence for rows in task.shape.order(prepared, 0)[:3]
        ] == expected


def alone(task, model, text):
    """The losses of one text, read at once."""
    framed = torch.tensor([[START, *task.target.encode(text), END]])
    batch = Batch.from_sequence(framed, torch.ones_like(framed).bool())
    features, _ = model.features(batch.inputs, model.initial_state(1))
    return model.head.negative_log_likelihood(features[0], batch.target[0])


@pytest.mark.parametrize("kind", ["gru", "lstm", "transformer", "convolution", "mingru"])
def test_the_loss_is_the_sum_over_documents_read_one_by_one(kind, tmp_path):
    text = "\n".join("abcdefgh "[: 1 + number % 9] * (1 + number % 3) for number in range(60))
    task, prepared, model = prepared_of(
        tmp_path, f"model.kind={kind}", "data.documents=lines", "train.bptt_window=40", text=text
    )
    ids = prepared.splits["validation"].ids
    with torch.no_grad():
        expected = sum(alone(task, model, text).sum().item() for (text,) in task.shape.examples(prepared, "validation"))
    assert math.isclose(task.shape.losses(model, ids).sum(), expected, rel_tol=1e-5)


def test_a_text_is_scored_as_a_whole_though_it_is_read_in_windows(tmp_path):
    task, prepared, model = prepared_of(tmp_path, "model.kind=gru")
    [[text]] = task.shape.examples(prepared, "validation")
    with torch.no_grad():
        expected = alone(task, model, text)
    np.testing.assert_allclose(task.shape.losses(model, prepared.splits["validation"].ids), expected, atol=1e-5)


def test_streams_of_a_long_text_are_read_in_with_a_lead(tmp_path, monkeypatch):
    """Cut into rows, what an echo of one step tells is told as if nothing had been cut."""
    monkeypatch.setattr("seqloom.data.streams.STREAM", 40)
    monkeypatch.setattr("seqloom.data.streams.LEAD", 10)
    task, prepared, model = prepared_of(tmp_path, "model.kind=convolution", "model.kernel_size=5")
    [[text]] = task.shape.examples(prepared, "validation")
    with torch.no_grad():
        expected = alone(task, model, text)
    np.testing.assert_allclose(task.shape.losses(model, prepared.splits["validation"].ids), expected, atol=1e-5)


def test_a_transformer_is_scored_by_overlapping_windows(tmp_path):
    task, prepared, model = prepared_of(tmp_path, "model.kind=transformer", "train.bptt_window=10")
    stream, losses = (
        task.shape.places(prepared.splits["test"].ids),
        task.shape.losses(model, prepared.splits["test"].ids),
    )
    inputs, targets = (torch.from_numpy(of(np.arange(len(stream)))) for of in (stream.inputs, stream.targets))
    assert not task.shape.carries and len(stream) > 30
    for start, counts, stop in ((0, 0, 10), (5, 10, 15), (10, 15, 20)):
        with torch.no_grad():
            features, _ = model.features(inputs[None, start:stop], model.initial_state(1))
            expected = model.head.negative_log_likelihood(features[0], targets[start:stop])[counts - start :]
        np.testing.assert_allclose(losses[counts:stop], expected, atol=1e-5)


def test_what_is_compared_with_was_counted_in_the_training_text(tmp_path):
    task, prepared, _ = prepared_of(tmp_path)
    rivals = task.declaration.baselines(task, prepared.splits["test"].ids)
    [[seen]], [[unseen]] = task.shape.examples(prepared, "train"), task.shape.examples(prepared, "test")
    written = [number for number in range(len(task.target)) if number not in NEVER_WRITTEN]
    size = len(written)
    counted = [written.index(token) for token in [*task.target.encode(seen), END]]
    told = [written.index(token) for token in [*task.target.encode(unseen), END]]
    chances = [(counted.count(token) + 1) / (len(counted) + size) for token in told]
    np.testing.assert_allclose(rivals["unigram"], -np.log(chances))
    np.testing.assert_allclose(rivals["6-gram"], NGram.fit(counted, size, 6).losses(told))


def test_bits_per_character_are_the_same_loss_in_another_unit(tmp_path):
    task, prepared, model = prepared_of(tmp_path, "data.target_tokenizer=bpe", "data.vocabulary_size=280")
    examples = task.shape.examples(prepared, "train")
    scores, losses = task.score(model, examples), task.shape.losses(model, prepared.splits["train"].ids)
    assert math.isclose(scores["bits per character"].score.value, losses.sum() / math.log(2) / len(examples[0][0]))
    assert math.isclose(scores["perplexity"].score.value, math.exp(losses.mean()), rel_tol=1e-9)


def test_unknown_words_have_no_bits_because_they_were_not_spelled(tmp_path):
    task, prepared, model = prepared_of(tmp_path, "data.target_tokenizer=words")
    assert set(task.score(model, task.shape.examples(prepared, "test"))) == {"perplexity"}


# --- writing ----------------------------------------------------------------------------------------------------


def writer(folder, *settings, text=TEXT):
    task, _, model = prepared_of(folder, *settings, text=text)
    for parameter in model.parameters():  # an opinion of its own
        torch.nn.init.normal_(parameter, std=0.3)
    return Run(folder, task, model)


@pytest.mark.parametrize("kind", ["gru", "transformer"])
def test_the_same_seed_writes_the_same_whatever_stands_beside_it(kind, tmp_path):
    run = writer(tmp_path, f"model.kind={kind}")
    two = run.generate("1 g", length=30, seed=7, count=2).finish()
    three = run.generate("1 g", length=30, seed=7, count=3).finish()
    assert [text.output for text in two] == [text.output for text in three[:2]]
    assert len({text.output for text in three}) == 3
    assert run.generate("1 g", length=30, seed=8).finish()[0].output != two[0].output


@pytest.mark.parametrize("tokens", ["characters", "words", "bpe"])
def test_pieces_are_the_text_as_it_comes(tokens, tmp_path):
    run = writer(tmp_path, f"data.target_tokenizer={tokens}", "data.vocabulary_size=300")
    found = run.generate("green bottles", length=25)
    pieces = [str(piece) for piece in found]
    [whole] = found.finish()
    assert "".join(pieces) == whole.text and len(pieces) > 5
    assert tokens != "words" or whole.output.startswith("green bottles ")


def test_no_more_is_done_than_is_asked_for(tmp_path, monkeypatch):
    run = writer(tmp_path)
    steps = []
    features = type(run.model).features
    monkeypatch.setattr(type(run.model), "features", lambda *args: steps.append(1) or features(*args))
    pieces = iter(run.generate("", length=1000))
    next(pieces), next(pieces)
    assert len(steps) < 10


def test_the_likeliest_is_what_reading_all_again_would_choose(tmp_path):
    run = writer(tmp_path)
    [text] = run.generate("1 green", length=12, temperature=0).finish()
    read = run.task.target.encode("1 green").tolist()
    for name, log in zip(text.tokens, text.logs, strict=True):
        with torch.no_grad():
            logits, _ = run.model(torch.tensor([read]), run.model.initial_state(1))
        logs = logits[0, -1].log_softmax(-1)
        logs[[0, 1, 2]] = -torch.inf
        read.append(int(logs.argmax()))
        assert run.task.target.names(read[-1:]) == [name] and math.isclose(log, logs.max().item(), abs_tol=1e-5)


def test_a_transformer_writes_on_beyond_its_window(tmp_path):
    run = writer(tmp_path, "model.kind=transformer", "model.positions=learned", "model.max_positions=8")
    [text] = run.generate("1 green bottles hanging", length=40, temperature=0).finish()
    assert len(text.logs) == 40
    read = run.task.target.encode("1 green bottles hanging").tolist()
    kept: list[int] = []
    for number in range(40):  # half a window is read, and as much is written until it is full
        kept = read[-4:] if number % 5 == 0 else [*kept, read[-1]]
        with torch.no_grad():
            logits, _ = run.model(torch.tensor([kept]), run.model.initial_state(1))
        logits[..., [0, 1, 2]] = -torch.inf
        read.append(int(logits[0, -1].argmax()))
    assert run.task.target.decode(read) == text.output


def test_chance_goes_on_when_a_window_is_read_again(tmp_path):
    """A model without an opinion writes chance itself: the same as one that carries its state."""
    outputs = []
    for kind in ("transformer", "gru"):
        run = writer(tmp_path, f"model.kind={kind}")
        torch.nn.init.zeros_(run.model.head.project.weight)
        torch.nn.init.zeros_(run.model.head.project.bias)
        outputs.append([text.output for text in run.generate("1", length=40, count=3).finish()])
    assert outputs[0] == outputs[1]


def test_documents_end_where_the_model_ends_them(tmp_path):
    run = writer(tmp_path, "data.documents=lines")
    with torch.no_grad():
        run.model.head.project.bias[END] = 100
    [text] = run.generate("1 green").finish()
    assert (text.text, text.finish, text.tokens, len(text.logs)) == ("", "end", [], 1)


def test_what_cannot_be_asked_for_is_refused(tmp_path):
    run = writer(tmp_path)
    with pytest.raises(SearchError, match="the length is 0, but it is at least 1"):
        run.generate(length=0)
    with pytest.raises(SearchError, match="temperature"):
        run.generate(temperature=-1)
    list(train(small(tmp_path, "train.steps=1"), tmp_path / "pairs"))
    with pytest.raises(RunError, match="a run whose task is seq2seq answers what it is asked: seqloom predict"):
        load(tmp_path / "pairs").generate()


def test_an_answer_is_what_may_come_next(tmp_path):
    run = writer(tmp_path)
    answers = run.predict("1 green", beam=3)
    assert [answer.probability for answer in answers] == sorted((a.probability for a in answers), reverse=True)
    everything = run.predict("", beam=10**6)
    writes = run.task.writer
    with torch.no_grad():
        logits, _ = run.model(*writes.read_prompt(run.model, [writes.encode_opening("")]))
    unknown = float(logits[0, -1].double().softmax(-1)[UNKNOWN])  # which is never an answer
    assert math.isclose(sum(answer.probability for answer in everything), 1 - unknown, rel_tol=1e-6)


def test_texts_from_python_are_read_as_one_or_each_on_its_own(tmp_path):
    recipe = Recipe.read("language", "data.sample=", *SETTINGS)
    list(train(recipe, tmp_path / "one", examples=TEXT))
    list(train(recipe.override("data.documents=lines"), tmp_path / "many", examples=TEXT.splitlines()))
    assert load(tmp_path / "one").scores["examples"] == 1 and load(tmp_path / "many").scores["examples"] == 4


def test_defaults_are_the_same_wherever_they_are_said():
    ask = SamplingOptions()
    assert (ask.length, ask.temperature, ask.top_k, ask.top_p, ask.seed, ask.count) == (400, 1.0, 0, 1.0, 0, 1)
