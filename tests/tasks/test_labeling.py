"""Classify and tag: sources and targets of every sort are learned by heart, resumed; what is wrong is said."""

import gzip
import itertools
import json
import random

import numpy as np
import pytest
import torch

from seqloom.config.recipe import Recipe
from seqloom.errors import DataError, RecipeError, RunError
from seqloom.runs.run import load, train
from tests.preparing import prepare_task, restore_task

CHANCE = random.Random(0)
WORDS = ["good", "bad", "fine", "awful", "plot", "film", "the", "a"]
REVIEWS = [" ".join(CHANCE.choices(WORDS[4:], k=4) + [CHANCE.choice(WORDS[:4])]) for _ in range(60)]
MOOD = {"good": "glad", "fine": "glad", "bad": "sad", "awful": "sad"}
LABELS = [MOOD[text.split()[-1]] for text in REVIEWS]
FEW = (
    "model.size=16",
    "model.dropout=0.0",
    "train.learning_rate=0.02",
    "train.batch_tokens=512",
    "train.validate_every=20",
    "train.checkpoint_every=20",
)


def series(label: int, length: int) -> np.ndarray:
    """Three variables, the first of which rises or falls."""
    steps = np.linspace(0, 1, length) * (1 if label else -1)
    return np.stack([steps * 5 + 100, np.sin(steps), np.zeros(length)], 1).astype(np.float32)


def picture(label: int) -> np.ndarray:
    """Bright above or bright below."""
    image = np.zeros((1, 8, 8, 1), np.uint8)
    image[0, : 4 if label else 8, :, 0], image[0, 4 * label :, :, 0] = 40, 200 * (1 - label) + 20
    return image


TOKENS = [(text, label) for text, label in zip(REVIEWS, LABELS, strict=True)]
SERIES = [(series(n % 2, 4 + n % 5), str(n % 2)) for n in range(40)]
GAPS = [(np.where(CHANCE.random() < 0.5, np.float32("nan"), values), label) for values, label in SERIES]
HOLES = np.random.default_rng(0)
SPARSE = [(np.where(HOLES.random(values.shape) < 0.3, np.float32("nan"), values), label) for values, label in SERIES]
IMAGES = [(picture(n % 2), str(n % 2)) for n in range(24)]
TAGGED = [
    ("\t".join(text.split()), "\t".join("MOOD" if w in MOOD else "REST" for w in text.split())) for text in REVIEWS
]
FRAMES = [(values, "\t".join("up" if row[0] > 100 else "down" for row in values)) for values, _ in SERIES]
SETS = [(text, ", ".join(sorted({w for w in text.split() if w in ("plot", "film")})) or "-") for text in REVIEWS]
RATED = [(text, str(2.5 + 2 * (label == "glad"))) for text, label in TOKENS]

W = "data.source_tokenizer=words"
CASES = {
    "words": ("classify", TOKENS, [W], "accuracy", 0.9),
    "characters": ("classify", TOKENS, [], "accuracy", 0.9),
    "pooled": ("classify", TOKENS, [W, "model.pool=attention", "model.hidden=8"], "accuracy", 0.9),
    "balanced": ("classify", TOKENS, [W, "train.class_weights=true", "model.pool=max"], "accuracy", 0.9),
    "sets": ("classify", SETS, [W, "data.target_type=labels"], "micro F1", 0.9),
    "numbers": ("classify", SERIES, ["data.source_type=numbers"], "accuracy", 0.9),
    "gaps": ("classify", GAPS, ["data.source_type=numbers"], "accuracy", 0.4),
    "images": ("classify", IMAGES, ["data.source_type=image", "model.kind=transformer"], "accuracy", 0.9),
    "tags": ("tag", TAGGED, [], "accuracy", 0.9),
    "chained": ("tag", TAGGED, ["model.crf=true", "data.characters=6"], "accuracy", 0.9),
    "recurrent": ("tag", TAGGED, ["data.characters=6", "model.spelling=recurrence"], "accuracy", 0.9),
    "frames": ("tag", FRAMES, ["data.source_type=numbers"], "accuracy", 0.9),
    "fading": ("classify", SPARSE, ["data.source_type=numbers", "model.kind=gru-d"], "accuracy", 0.9),
    "fades": ("tag", FRAMES, ["data.source_type=numbers", "model.kind=gru-d", "model.depth=2"], "accuracy", 0.9),
}  # fmt: skip


def recipe(task: str, *overrides: str) -> Recipe:
    return Recipe.of({"task": task}).override("train.steps=60", *FEW, *overrides)


@pytest.mark.parametrize("name", CASES)
def test_sources_and_targets_of_every_sort_are_learned_by_heart_and_resumed(name, tmp_path):
    task, examples, overrides, score, enough = CASES[name]
    parts = {"train": examples, "validation": examples, "test": examples}
    given = recipe(task, *overrides)
    list(train(given, tmp_path / "whole", examples=parts))
    run = load(tmp_path / "whole")
    assert run.scores["scores"][score]["value"] >= enough
    assert set(run.scores["scores"][score]["baselines"])
    [best, *_] = run.predict(examples[0][0])
    assert best.output == examples[0][1] or task == "tag" or name == "gaps"
    records = train(given, tmp_path / "cut", examples=parts)
    for record in records:
        if record.step >= 20:
            break
    records.close()
    list(train(given, tmp_path / "cut", examples=parts, resume=True))
    weights = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in ("whole", "cut")]
    assert weights[0] == weights[1]


def fresh(task: str, examples, *overrides: str):
    """A task and a model of it whose opinions are strong and learned from nothing."""
    made, _ = prepare_task(recipe(task, *overrides).resolved(), str, {"train": examples, "test": examples})
    torch.manual_seed(0)
    model = made.shape.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return made, model


@pytest.mark.parametrize("hidden", ["", "model.hidden=6"])
@pytest.mark.parametrize("crf", [True, False])
def test_the_score_of_tags_is_their_log_probability_among_all_tags_of_that_length(crf, hidden):
    texts = ["plot good film", "a", "awful the film bad fine"]
    tags = ["N\tA\tN", "D", "A\tD\tN\tA\tA"]
    examples = [("\t".join(text.split()), tag) for text, tag in zip(texts, tags, strict=True)]
    task, model = fresh("tag", examples, f"model.crf={str(crf).lower()}", *filter(None, [hidden]))
    for text, [answer] in zip(texts, task.shape.predict(model, texts), strict=True):
        batch = task.shape.collate(task.shape.encode([("\t".join(text.split()), "\t".join(answer.tags))]), [0])
        with torch.no_grad():
            scores = model(batch.inputs, batch.mask)[0].double().numpy()
        head = getattr(model.head, "head", model.head)
        worth = {}
        for path in itertools.product(range(len(task.target)), repeat=len(scores)):
            worth[path] = sum(scores[place, tag] for place, tag in enumerate(path))
            if crf:
                worth[path] += (head.first[path[0]] + head.last[path[-1]]).item()
                worth[path] += sum(head.pairs[pair].item() for pair in itertools.pairwise(path))
        best = max(worth, key=lambda path: worth[path])
        assert [task.target.names[tag] for tag in best] == answer.tags
        total = np.logaddexp.reduce(list(worth.values()))
        assert answer.score == pytest.approx(worth[best] - total, abs=1e-4)
        assert len(answer.tags) == 1 or answer.score < -1e-2  # else it would say nothing


def test_the_score_of_a_label_is_its_log_probability_and_that_of_several_theirs_together():
    for examples, more in ((TOKENS, ()), (SETS, ("data.target_type=labels",))):
        task, model = fresh("classify", examples, W, *more)
        given = [text for text, _ in examples[:5]]
        for text, answers in zip(given, task.shape.predict(model, given, 2), strict=True):
            batch = task.shape.collate(task.shape.encode([(text, examples[0][1])]), [0])
            with torch.no_grad():
                logits = model(batch.inputs, batch.mask)[0].double().numpy()
            if not more:
                chances = np.exp(logits) / np.exp(logits).sum()
                expected = {name: np.log(chance) for name, chance in zip(task.target.names, chances, strict=True)}
                assert {one.output: one.score for one in answers} == pytest.approx(expected, abs=1e-5)
                assert answers[0].score >= answers[1].score
                continue
            chances = 1 / (1 + np.exp(-logits))
            sets = {}
            for told in itertools.product([0, 1], repeat=len(chances)):
                names = tuple(name for name, there in zip(task.target.names, told, strict=True) if there)
                sets[names] = np.log(np.where(told, chances, 1 - chances)).sum()
            [answer] = answers
            best = max(sets, key=lambda names: sets[names])
            assert sorted(best) == sorted(filter(None, answer.output.replace("-", "").split(", ")))
            assert answer.score == pytest.approx(sets[best], abs=1e-5)


def test_a_rating_is_scored_with_all_of_its_digits():
    examples = [(text, repr(123456 + 3 * (label == "glad") + 0.01 * n)) for n, (text, label) in enumerate(TOKENS)]
    task, model = fresh("classify", examples, W, "data.target_type=number")
    told = np.array([one.value for [one] in task.shape.predict(model, [text for text, _ in examples])])
    errors = told - np.array([float(target) for _, target in examples])
    scores = task.score(model, examples)
    assert scores["absolute error"].score.value == pytest.approx(np.abs(errors).mean())
    assert scores["root mean square error"].score.value == pytest.approx((errors**2).mean() ** 0.5)
    targets = np.array([float(target) for _, target in examples])
    explained = 1 - (errors**2).sum() / ((targets - targets.mean()) ** 2).sum()
    assert scores["R²"].score.value == pytest.approx(explained)


def test_a_rating_is_a_number_with_its_doubt(tmp_path):
    parts = {part: RATED for part in ("train", "validation", "test")}
    list(
        train(
            recipe("classify", "data.source_tokenizer=words", "data.target_type=number"),
            tmp_path / "run",
            examples=parts,
        )
    )
    run = load(tmp_path / "run")
    [answer] = run.predict("the film good")
    assert answer.value == pytest.approx(4.5, abs=0.7) and 0 < answer.spread < 2
    scores = run.scores["scores"]
    assert scores["absolute error"]["value"] < scores["absolute error"]["baselines"]["mean"]
    assert scores["R²"]["baselines"]["mean"] == pytest.approx(0, abs=1e-6)


def test_padding_and_neighbors_change_no_answer():
    for name, (task, examples, overrides, *_) in CASES.items():
        made, prepared = prepare_task(recipe(task, *overrides).resolved(), print, examples)
        torch.manual_seed(0)
        model = made.shape.build().eval()
        given = [source for source, _ in examples[:7]]
        together = made.shape.predict(model, given)
        for one, found in zip(given, together, strict=True):
            [alone] = made.shape.predict(model, [one])
            assert [answer.output for answer in alone] == [answer.output for answer in found], name
            assert [a.score for a in alone] == pytest.approx([a.score for a in found], abs=1e-4)


def test_parts_are_drawn_with_equal_shares_of_labels():
    uneven = [(text, "rare" if number % 10 == 0 else "usual") for number, text in enumerate(REVIEWS)]
    _, prepared = prepare_task(recipe("classify").resolved(), print, uneven)
    assert {part: report.sides["target"].balance for part, report in prepared.report.splits.items()} == {
        "train": {"usual": 44, "rare": 4}, "validation": {"usual": 5, "rare": 1}, "test": {"usual": 5, "rare": 1},
    }  # fmt: skip


def test_a_label_unseen_in_training_is_a_miss_and_no_crash(tmp_path):
    parts = {"train": TOKENS, "validation": [*TOKENS[:3], ("good film", "new")], "test": [("good film", "new")]}
    list(train(recipe("classify", "train.steps=2"), tmp_path / "run", examples=parts))
    assert load(tmp_path / "run").scores["scores"]["accuracy"]["value"] == 0
    parts = {"train": TAGGED, "validation": TAGGED[:2], "test": [("good\tfilm", "NEW\tREST")]}
    list(train(recipe("tag", "train.steps=2"), tmp_path / "tags", examples=parts))
    assert load(tmp_path / "tags").scores["scores"]["accuracy"]["value"] <= 0.5


# --- files ----------------------------------------------------------------------------------------------------------


def trained(tmp_path, *overrides: str, task: str = "classify"):
    list(train(recipe(task, "train.steps=3", *overrides), tmp_path / "run"))
    return load(tmp_path / "run")


def test_a_table_of_numbers_is_a_sequence_of_one_and_may_have_gaps(tmp_path):
    rows = [f"{n % 7},{'' if n % 3 == 0 else n % 5},{'yes' if n % 2 else 'no'}" for n in range(40)]
    file = tmp_path / "students.csv"
    file.write_text("hours,sleep,passed\n" + "\n".join(rows) + "\n")
    run = trained(
        tmp_path, f"data.train={file}", "data.source=hours,sleep", "data.target=passed", "data.source_type=numbers"
    )
    assert run.task.source.gaps and run.task.source.inputs == 6
    inputs = [one.value for one in run.task.read_inputs(str(file)).inputs]
    assert len(inputs) == 40 and inputs[1].shape == (1, 2) and np.isnan(inputs[0][0, 1])
    assert len(run.predict_many(inputs)) == 40
    file.write_text("hours,sleep,passed\n3,much,yes\n")
    with pytest.raises(DataError, match="students.csv, line 2: 'sleep' is 'much', but a number"):
        run.predict(file)


def test_rows_of_a_series_are_one_sequence(tmp_path):
    lines = [f"clip{n},{t},{t * n % 3},{'walk' if n % 2 else 'run'}" for n in range(20) for t in range(1 + n % 4)]
    file = tmp_path / "clips.csv"
    file.write_text("clip,x,y,act\n" + "\n".join(lines) + "\n")
    common = (
        f"data.train={file}",
        "data.source=x,y",
        "data.series=clip",
        "data.source_type=numbers",
        "data.target=act",
    )
    whole = recipe("classify", *common, "data.validation_share=0.0", "data.test_share=0.0")
    _, prepared = prepare_task(whole.resolved(), print)
    assert prepared.splits["train"].ids["source"].lengths.tolist() == [1 + n % 4 for n in range(20)]
    frames = trained(tmp_path, *common, task="tag")
    assert set(frames.task.target.names) == {"walk", "run"}
    file.write_text("clip,x,y,act\na,1,2,walk\na,1,2,run\n")
    with pytest.raises(DataError, match="clips.csv, line 2: the target changes within the series 'a'"):
        trained(tmp_path / "other", *common)
    file.write_text("clip,x,y,act\na,1,2,walk\nb,1,2,run\na,1,2,walk\n")
    with pytest.raises(DataError, match="line 4: the series 'a' goes on here"):
        trained(tmp_path / "another", *common)


def test_conll_columns_are_tagged_and_uneven_tables_refused(tmp_path):
    blocks = ["\n".join(f"{w} {t}" for w, t in zip(a.split("\t"), b.split("\t"), strict=True)) for a, b in TAGGED]
    file = tmp_path / "words.conll"
    file.write_text("\n\n".join(blocks) + "\n")
    run = trained(tmp_path, f"data.train={file}", task="tag")
    [answer] = run.predict("the film good")
    assert answer.words == ["the", "film", "good"] and len(answer.tags) == 3
    assert answer.output == " ".join(f"{w}/{t}" for w, t in zip(answer.words, answer.tags, strict=True))
    table = tmp_path / "words.tsv"
    table.write_text("source\ttarget\na b c\tX Y Z\na b\tX\n")
    with pytest.raises(DataError, match="words.tsv, line 3: 2 elements with 1 tag:"):
        trained(tmp_path / "other", f"data.train={table}", task="tag")


def test_a_target_that_is_no_number_is_refused_with_its_place(tmp_path):
    file = tmp_path / "rated.csv"
    file.write_text("source,target\ngood,4.5\nbad,two\n")
    with pytest.raises(DataError, match="rated.csv, line 3: the target 'two' is not a number"):
        trained(tmp_path, f"data.train={file}", "data.target_type=number")


def test_one_label_alone_is_refused(tmp_path):
    with pytest.raises(DataError, match="nothing to tell apart"):
        list(train(recipe("classify"), tmp_path / "run", examples=[("a", "x")] * 30))


def test_japanese_vowels_and_mnist_are_read(shared_data, tmp_path):
    vowels = shared_data / "japanese_vowels"
    parts = {"train": "TRAIN", "test": "TEST"}
    files = [f"data.{part}={vowels / f'JapaneseVowels_{name}.ts.gz'}" for part, name in parts.items()]
    with pytest.raises(DataError, match='set data.source_type to "numbers"'):
        trained(tmp_path, *files)
    run = trained(tmp_path / "vowels", *files, "data.source_type=numbers")
    assert run.scores["examples"] == 370 and len(run.task.target) == 9
    # Two small IDX files as MNIST has them: magic, sizes, bytes.
    for name, header, content in (
        ("images", b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (20, 4, 4)), bytes(range(256)) + bytes(64)),
        ("labels", b"\0\0\x08\x01" + (20).to_bytes(4, "big"), bytes([0, 1] * 10)),
    ):
        (tmp_path / f"{name}-ubyte.gz").write_bytes(gzip.compress(header + content))
    both = ",".join(str(tmp_path / f"{name}-ubyte.gz") for name in ("images", "labels"))
    for kind in ("numbers", "image"):
        run = trained(tmp_path / kind, f"data.train={both}", f"data.source_type={kind}", "model.patch=2")
        assert run.task.target.names == ("0", "1")
        given = [one.value for one in run.task.read_inputs(str(tmp_path / "images-ubyte.gz")).inputs]
        assert len(run.predict_many(given)) == 20


# --- what a person and a hostile file may get wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "override", "reason"),
    [
        ("classify", "model.attention=dot", "has no setting"),
        ("classify", "search.beam_size=2", "has no setting"),
        ("tag", "model.pool=mean", "has no setting"),
        ("tag", "model.decoder.size=3", "has no setting"),
        ("seq2seq", "train.class_weights=true", "has no setting"),
    ],
)
def test_a_setting_that_a_task_has_no_use_for_is_refused(task, override, reason):
    with pytest.raises(RecipeError, match=reason):
        Recipe.of({"task": task}).override(override)


def test_a_folder_whose_fields_are_of_another_kind_is_refused(tmp_path):
    parts = {part: TOKENS for part in ("train", "validation", "test")}
    list(train(recipe("classify", "train.steps=2"), tmp_path / "run", examples=parts))
    run = load(tmp_path / "run")
    saved = json.loads(json.dumps(run.task.to_json()))
    saved["fields"]["source"] = saved["fields"]["target"]
    with pytest.raises(RunError, match="source is 'label', but the recipe says 'characters'"):
        restore_task(run.recipe, saved)
    for broken in ({}, {"fields": {}, "facts": {}}, {"fields": [], "facts": {}}):
        with pytest.raises(RunError):
            restore_task(run.recipe, broken)


def test_tags_are_weighed_and_smoothed_as_torch_does_it():
    made, model = fresh("tag", TAGGED, "train.class_weights=true", "train.label_smoothing=0.1")
    tags = [tag for _, text in TAGGED for tag in text.split("\t")]
    weights = torch.tensor([len(tags) / (2 * tags.count(name)) for name in made.target.names])
    features, target = torch.randn(5, 7, model.head.project.in_features), torch.randint(2, (5, 7))
    logits = model.head(features).flatten(0, 1)
    for training, theirs in (
        (True, torch.nn.CrossEntropyLoss(weights, reduction="sum", label_smoothing=0.1)),
        (False, torch.nn.CrossEntropyLoss(reduction="sum")),
    ):
        total, count = model.head.train(training).loss(features, target, torch.ones(5, 7, dtype=torch.bool))
        torch.testing.assert_close(total, theirs(logits, target.flatten()))
        assert count == 35
