"""Pre-training: what is predicted and what is seen, packed windows, exact resume, and starting other tasks from it."""

import json
import sys

import numpy as np
import pytest
import torch

from seqloom.cli.main import main
from seqloom.config.recipe import Recipe, list_kinds
from seqloom.data.masking import MASK
from seqloom.data.vocabulary import NEVER_WRITTEN
from seqloom.errors import DataError, RecipeError
from seqloom.models import Batch
from seqloom.runs.folder import read_config
from seqloom.runs.run import load, train
from seqloom.tasks import declare

from ..recipes import measured, texts

FEW = ("train.steps=4", "train.batch_tokens=64", "train.validate_every=2", "train.checkpoint_every=1")
NAMES = ["cat", "dog", "bird", "fish"]
WAYS = [("masked", "transformer"), ("causal", "lstm"), ("causal", "transformer"), ("bidirectional", "gru")]


def sentences(count: int = 40) -> dict:
    rows = [(f"the {NAMES[i % 4]} sat on the {NAMES[(i + 1) % 4]} and sang, again.",) for i in range(count)]
    return {"train": rows, "validation": rows[:6], "test": rows[4:10]}


def pretrain(objective: str = "masked", kind: str = "transformer", *more: str) -> Recipe:
    return Recipe.read(
        "pretrain", "data.sample=", f"train.objective={objective}", f"model.kind={kind}", "data.target_tokenizer=words",
        "data.vocabulary_size=0", "model.size=8", "model.depth=2", "model.tied=false", "data.window=16", *FEW, *more,
    )  # fmt: skip


def prepare(*settings: str):
    recipe = pretrain(*settings).resolved()
    task, prepared = declare(recipe).prepare(recipe, lambda line: None, sentences())
    torch.manual_seed(0)
    return task, prepared, task.shape.build().eval()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One of each way, with what was said."""
    folder, said = tmp_path_factory.mktemp("pretrained"), {}
    for way in WAYS:
        said[way] = texts(train(pretrain(*way), folder / "-".join(way), examples=sentences()))
    return folder, said


@pytest.mark.parametrize("way", WAYS)
def test_an_epoch_reads_every_place_once_without_padding(way):
    task, prepared, _ = prepare(*way)
    places = len(task.shape.places(prepared.splits["train"].ids))
    for epoch in range(2):
        batches = [task.shape.batch(prepared, rows) for rows in task.shape.order(prepared, epoch)]
        assert sum(int(batch.mask.sum()) for batch in batches) == places
        padded = sum(int((~batch.mask).sum()) for batch in batches)
        assert padded < 2 * 16  # beside the first and the last window of all
    assert task.shape.padded_share(prepared) < 0.15


@pytest.mark.parametrize("file", ["texts.txt", "texts.csv", "texts.jsonl"])
def test_texts_stand_in_any_format(file, tmp_path):
    rows = [text for (text,) in sentences(8)["train"]]
    written = {"txt": rows, "csv": ["text,stars", *(f'"{one}",3' for one in rows)]}
    written["jsonl"] = [json.dumps({"text": one, "stars": 3}) for one in rows]
    (tmp_path / file).write_text("".join(f"{line}\n" for line in written[file.partition(".")[2]]), encoding="utf-8")
    parts = [f"data.{part}={tmp_path / file}" for part in ("train", "validation", "test")]
    recipe = pretrain("masked", "gru", *parts, "data.documents=lines").resolved()
    _, prepared = declare(recipe).prepare(recipe, lambda line: None)
    assert list(prepared.splits["train"].raws["target"]) == rows


def test_logits_are_computed_at_the_chosen_places_only(monkeypatch):
    task, prepared, model = prepare()
    batch, seen, plain = (
        task.shape.batch(prepared, task.shape.order(prepared, 0)[0]),
        [],
        type(model.head).negative_log_likelihood,
    )

    def measure(head, features, target):
        seen.append(len(features))
        return plain(head, features, target)

    monkeypatch.setattr(type(model.head), "negative_log_likelihood", measure)
    model.objective()(batch)
    assert seen == [int(batch.loss_mask.sum())] and seen[0] < int(batch.mask.sum()) / 2


@pytest.mark.parametrize("kind", [kind for kind in list_kinds("pretrain") if kind != "linear"])
def test_what_is_hidden_is_not_seen(kind):
    """The prediction at a masked place is the same whatever the hidden word is; only the target differs."""
    _, _, model = prepare("masked", kind)
    ids = torch.tensor([[5, 6, 7, 8, 9, 10]])
    inputs, told = ids.clone(), torch.zeros_like(ids).bool()
    inputs[0, 2], told[0, 2] = MASK, True
    losses = []
    for word in (7, 8):
        target = ids.clone()
        target[0, 2] = word
        loss, count, _ = model.objective()(Batch(inputs, torch.ones_like(told), target, loss_mask=told))
        logits = model.head(model.features(inputs, torch.ones_like(told))[told])
        torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits, torch.tensor([word])))
        losses.append(loss)
        assert count == 1
    assert losses[0] != losses[1]


def test_neither_direction_sees_what_it_predicts():
    task, _, model = prepare("bidirectional", "gru")
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    mask = torch.ones_like(ids).bool()
    before = model.directions(ids, mask)
    for place in range(5):
        other = ids.clone()
        other[0, place] = 10
        for old, new, reads in zip(
            before, model.directions(other, mask), (range(place + 1), range(place, 5)), strict=True
        ):
            for seen in reads:
                torch.testing.assert_close(new[0, seen], old[0, seen])
    batch = Batch(ids, mask, ids)
    logits = task.shape.logits(model, batch)
    together = torch.nn.functional.cross_entropy(logits[1:-1], ids[0, 1:-1])
    each = [torch.nn.functional.cross_entropy(model.head(one)[0, 1:-1], ids[0, 1:-1]) for one in before]
    assert together <= sum(each) / 2 + 1e-6  # the mean of two log-probabilities, normalized, loses nothing
    total, count, _ = model.objective()(batch)
    assert count == 8
    there, back = (model.head(one)[0].log_softmax(-1) for one in before)
    spelled = sum(-there[t, ids[0, t]] for t in range(1, 5)) + sum(-back[t, ids[0, t]] for t in range(4))
    torch.testing.assert_close(total, spelled)


def test_what_is_never_written_is_never_predicted():
    task, _, model = prepare("bidirectional", "gru")
    logits = task.shape.logits(model, Batch(ids := torch.tensor([[5, 6, 7]]), torch.ones_like(ids).bool(), ids))
    assert torch.isinf(logits[:, list(NEVER_WRITTEN)]).all()


def test_masks_change_from_epoch_to_epoch_and_not_for_the_scores():
    task, prepared, model = prepare()
    first, again, later = (task.shape.batch(prepared, task.shape.order(prepared, epoch)[0]) for epoch in (0, 0, 1))
    assert torch.equal(first.inputs, again.inputs) and torch.equal(first.loss_mask, again.loss_mask)
    assert not torch.equal(first.loss_mask, later.loss_mask)
    assert task.shape.validate(model, prepared) == task.shape.validate(model, prepared)


@pytest.mark.parametrize("way", WAYS)
def test_resume_in_the_middle_of_an_epoch_is_exact(way, runs, tmp_path):
    folder, _ = runs
    records = measured(train(pretrain(*way), tmp_path / "cut", examples=sentences()))
    next(records)
    records.close()
    list(train(pretrain(*way), tmp_path / "cut", examples=sentences(), resume=True))
    weights = [(path / "model.safetensors").read_bytes() for path in (folder / "-".join(way), tmp_path / "cut")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("way", WAYS)
def test_other_tasks_start_from_it(way, runs, tmp_path):
    folder, said = runs
    start = folder / "-".join(way)
    recipe = Recipe.read("classify", "data.sample=", f"model.from={start}", "train.steps=1", "train.batch_tokens=256")
    examples = {part: [(text, text.split()[1]) for (text,) in rows] for part, rows in sentences().items()}
    list(train(recipe, tmp_path / "run", examples=examples))
    taken = read_config(tmp_path / "run").start
    assert {name.split(".")[0] for name in taken.loaded} == {"embed", "encoder"}
    assert load(tmp_path / "run").task.source.to_json() == load(start).task.target.to_json()
    if way[0] != "causal":
        assert any("filled in: " in line for line in said[way])


def test_it_learns_what_stands_in_a_blank(tmp_path):
    says = dict(zip(NAMES, ["purrs", "barks", "sings", "swims"], strict=True))
    rows = [(f"the {name} {verb} .",) for name, verb in says.items()] * 20
    learn = ("train.steps=120", "train.learning_rate=0.03", "train.mask_share=0.3", "train.batch_tokens=256")
    recipe = pretrain("masked", "gru", "model.dropout=0", "model.size=16", "train.validate_every=120", *learn)
    list(train(recipe, tmp_path / "run", examples={"train": rows, "validation": rows[:8], "test": rows[:8]}))
    run = load(tmp_path / "run")
    for name, verb in says.items():
        [words] = run.fill(f"the ___ {verb} .", 3)
        assert words[0].output == name, words
        assert run.predict(f"the {name} ___ .")[0].output == f"the {name} {verb} ."
    scores = run.scores["scores"]
    assert scores["accuracy"]["value"] > scores["accuracy"]["baselines"]["most frequent"]


@pytest.mark.parametrize("way", [("masked", "transformer"), ("bidirectional", "gru")])
def test_several_blanks_are_filled_and_none_is_refused(way, runs):
    run = load(runs[0] / "-".join(way))
    found = run.fill("the ___ sat on ____ and", 4)
    assert [len(words) for words in found] == [4, 4]
    for words in found:
        chances = [word.probability for word in words]
        assert chances == sorted(chances, reverse=True) and all(word.output.strip() for word in words)
    texts = [one.output for one in run.predict("the ___ sat on ____ and", beam=6)]
    assert len(set(texts)) == 6 and texts[0] == f"the {found[0][0].output} sat on {found[1][0].output} and"
    with pytest.raises(DataError, match="there is no blank in 'the cat'"):
        run.fill("the cat")
    with pytest.raises(DataError, match="there is no blank"):
        run.predict("the cat")


def test_all_words_of_a_blank_have_probability_one_together(runs):
    run = load(runs[0] / "masked-transformer")
    [words] = run.fill("the ___ sat", 10**4)
    assert np.isclose(sum(word.probability for word in words), 1)


@pytest.mark.parametrize("tokenizer", ["bpe", "characters", "spaced"])
def test_a_blank_of_subwords_takes_its_space_and_one_of_characters_its_length(tokenizer, tmp_path):
    recipe = pretrain("masked", "gru", f"data.target_tokenizer={tokenizer}", "train.whole_words=true", "train.steps=1",
                      *["data.vocabulary_size=300"] * (tokenizer == "bpe"))  # fmt: skip
    list(train(recipe, tmp_path / "run", examples=sentences()))
    run = load(tmp_path / "run")
    [best, *_] = run.predict("the ___ sat")
    assert best.output.startswith("the ") and best.output.endswith(" sat")
    if tokenizer == "characters":
        assert len(best.output) == len("the ___ sat")


def test_what_cannot_be_taught_is_refused(runs):
    with pytest.raises(RecipeError, match='"bidirectional" teaches two recurrent directions'):
        pretrain("bidirectional", "transformer")
    with pytest.raises(RecipeError, match="model.tied is set"):
        pretrain("bidirectional", "gru", "model.tied=true")
    with pytest.raises(RecipeError, match="model.max_positions is 8, but data.window is 16"):
        prepare("masked", "transformer", "model.positions=learned", "model.max_positions=8")
    for other in ("causal-lstm", "causal-transformer"):
        with pytest.raises(Exception, match="has no blanks to fill"):
            load(runs[0] / other).fill("the ___ sat")


def test_the_command_ranks_words_for_every_blank(runs, monkeypatch, capsys):
    for more, expected in (([], 2), (["--json"], 1)):
        monkeypatch.setattr(
            sys, "argv", ["seqloom", "fill", str(runs[0] / "masked-transformer"), "the ___ sat", "--best", "2", *more]
        )
        with pytest.raises(SystemExit) as stopped:
            main()
        lines = capsys.readouterr().out.splitlines()
        assert not stopped.value.code and len(lines) == expected
    [words] = json.loads(lines[0])["blanks"]
    assert words[0]["probability"] >= words[1]["probability"] > 0


PAIRED = ("masked", "transformer", "train.next_sentence=true", "model.segments=2", "model.heads=2")


def test_halves_of_a_window_follow_each_other_or_come_from_elsewhere():
    task, prepared, _ = prepare(*PAIRED)
    plain, same, _ = prepare("masked", "transformer")
    follows, changed = [], 0
    for epoch in range(6):
        for rows in task.shape.order(prepared, epoch):
            batch, alone = task.shape.batch(prepared, rows), plain.shape.batch(same, rows)
            assert torch.equal(task.shape.batch(prepared, rows).inputs, batch.inputs)  # by place alone
            ids, segments = batch.inputs.unbind(-1)
            for row, (begin, end, _) in enumerate(rows.tolist()):
                middle, length = (end - begin) // 2, end - begin
                assert segments[row, :length].tolist() == [0] * middle + [1] * (length - middle)
                assert torch.equal(batch.target[row, :middle], alone.target[row, :middle])
                kept = torch.equal(batch.target[row], alone.target[row])
                changed += not kept
                assert kept or not batch.follows[row]
                assert batch.follows[row] or length > 2
            seen = ~batch.loss_mask & batch.mask
            assert torch.equal(ids[seen], batch.target[seen])  # the other half is masked as it stands there
            follows += batch.follows.tolist()
    share = np.mean(follows)
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(len(follows)) + 0.02 and changed


def test_both_losses_are_added():
    task, prepared, model = prepare(*PAIRED)
    batch = task.shape.batch(prepared, task.shape.order(prepared, 0)[0])
    total, count, _ = model.objective()(batch)
    memory = model.encoder(model.embed(batch.inputs), batch.mask)
    told = batch.loss_mask
    words = torch.nn.functional.cross_entropy(model.head(memory.values[told]), batch.target[told])
    pairs = torch.nn.functional.cross_entropy(model.relation(memory.summary), batch.follows)
    torch.testing.assert_close(total / count, words + pairs)


def test_a_run_of_pairs_trains_resumes_fills_and_is_started_from(tmp_path):
    records = list(train(pretrain(*PAIRED), tmp_path / "run", examples=sentences()))
    assert any("next sentence" in record.scores for record in records if record.kind == "validation")
    run = load(tmp_path / "run")
    assert run.fill("the ___ sat on the dog")[0]
    rows = [(text, "ab"[number % 2]) for number, (text,) in enumerate(sentences()["train"])]
    recipe = Recipe.read("classify", "data.sample=", f"model.from={tmp_path / 'run'}", *FEW)
    assert recipe.model.segments == 2
    list(train(recipe, tmp_path / "labels", examples={"train": rows, "validation": rows[:6], "test": rows[:6]}))
    assert load(tmp_path / "labels").predict(rows[0][0])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["train.next_sentence=true"], "needs two segments, but the body has none: say model.segments=2"),
        (["train.next_sentence=true", "model.segments=1"], "needs two segments, but the body has 1"),
    ],
)
def test_pairs_need_segments(settings, says):
    with pytest.raises(RecipeError, match=says):
        Recipe.read("pretrain", *settings)


OBJECTIVES = {"masked": "transformer", "causal": "transformer", "bidirectional": "gru", "document": "transformer"}
READ = {  # which objectives read a setting
    "train.mask_share=0.3": ["masked"],
    "train.whole_words=true": ["masked"],
    "train.next_sentence=true": ["masked"],
    "model.output_transform=true": ["masked"],
    "model.output_bias=false": ["masked", "causal", "bidirectional"],
    "train.label_smoothing=0.1": ["masked", "causal", "bidirectional"],
    "train.sampled_softmax=20": ["masked", "causal", "bidirectional"],
}


@pytest.mark.parametrize("setting", READ)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_setting_of_one_objective_is_refused_with_another(setting, objective):
    settings = (f"train.objective={objective}", f"model.kind={OBJECTIVES[objective]}", "model.tied=false", setting)
    if objective in READ[setting]:
        Recipe.read("pretrain", *settings, *["model.segments=2"] * ("next" in setting))
        return
    name, value = setting.split("=")
    with pytest.raises(RecipeError, match=f"{name} is {value}, but .*(read only with|does not read it)"):
        Recipe.read("pretrain", *settings)
