"""What pre-training pays on IMDB: a body taught on the texts of the training part, then fine-tuned on few labels.
The same for parts of speech: a body taught on the words of EWT's training part, then fine-tuned on 100 sentences.

`python benchmarks/pretraining.py` does the jobs that are not done, one after the other, on one core; a job is a run of
its own in results/pretraining/, and one that was killed is taken up where it was. `--list` says which there are, names
do these alone, `page` writes the table of docs/pretraining.md and its chart from benchmarks/pretraining.json.

The last tenth of the training part is for validation: reviews of one film stand close together, so it shares hardly a
film with the rest. With up to 500 labels no checkpoint is chosen: the weights of the last step count, so no label is
used beside the `n` of a job. With 5,000 a tenth of them, with all 25,000 that last tenth chooses the checkpoint and how
much NB-SVM counts beside the net (`model.nb_svm`). The pre-training reads no label at all. A job that is done again
after its test score is known is no longer honest: the page says where that happened.
"""

import gzip
import json
import os
import random
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SEQLOOM_DATA") or ROOT.parent / "shared" / "data") / "imdb"
WORK = Path(os.environ.get("SEQLOOM_RESULTS") or ROOT / "results") / "pretraining"
LEDGER, PAGE = ROOT / "benchmarks" / "pretraining.json", ROOT / "docs" / "pretraining.md"
CHART = ROOT / "docs" / "pictures" / "labels.svg"
HELD_OUT = 2500  # reviews at the end of the training part
VALIDATED = 1000  # of them that the loss of a body is measured on
TESTED = 5000  # reviews of the test part that are scored on, drawn once; with all labels all of them are
SEEDS = {20: 3, 100: 3, 500: 3, 5000: 1, 25000: 1}  # by the number of labels
STEPS = {20: 20, 100: 60, 500: 250, 5000: 1250, 25000: 4200}
FEW = 500  # labels that are too few to keep some apart
READ = ("data.source=text", "data.target=label", "data.max_length=1000", "data.too_long=cut", "data.lowercase=true")
BODIES = {
    "lstm": ("model.kind=lstm", "model.size=192", "model.embedding=192", "model.depth=1", "model.bidirectional=true"),
    "transformer": ("model.kind=transformer", "model.size=128", "model.depth=2", "model.heads=4", "model.norm=pre"),
}
# While it is pre-trained, and then: a Transformer has it in every block, and with 0.4 it learns next to nothing.
DROPOUT = {"lstm": (0.4, 0.5), "transformer": (0.1, 0.1)}
PRETRAIN = (
    "data.target=text", "data.lowercase=true", "data.target_tokenizer=words", "data.vocabulary_size=12000",
    "data.window=128", "train.objective=document", "model.tied=false", "train.batch_tokens=4096",
    "train.learning_rate=0.003", "train.validate_every=700", "train.checkpoint_every=700", "train.watch_every=0",
)  # fmt: skip
TAUGHT = {"lstm": 5600, "transformer": 3500}  # steps
LEARN = ("train.batch_tokens=4096", "train.watch_every=0", "train.learning_rate=0.001")
WAYS = ("pretrained", "scratch")
SCRATCH = ("data.source_tokenizer=words", "data.vocabulary_size=12000", "model.pool=mean")


TAGGED, TAG_SEEDS = 100, 3
TREEBANK = DATA.parent / "ud_english_ewt"
PRETRAIN_TAGS = (
    "data.target_tokenizer=spaced", "data.lowercase=true", "data.vocabulary_size=8000", "data.window=32",
    "train.objective=bidirectional", "model.kind=lstm", "model.size=128", "model.embedding=128", "model.depth=1",
    "model.bidirectional=true", "model.merge=separate", "model.tied=false", "model.dropout=0.3",
    "train.batch_tokens=512", "train.learning_rate=0.003", "train.steps=4000", "train.validate_every=500",
)  # fmt: skip


def read_sentences(part: str) -> list[str]:
    with gzip.open(TREEBANK / f"en_ewt-ud-{part}.conllu.gz", "rt", encoding="utf-8") as file:
        return [sentence for sentence in file.read().split("\n\n") if sentence.strip()]


def list_words(sentence: str) -> str:
    """The words of a sentence, with blanks between them."""
    rows = [line.split("\t") for line in sentence.splitlines() if not line.startswith("#")]
    return " ".join(row[1].replace(" ", "") for row in rows if row[0].isdigit())


def write_tagged() -> None:
    """The words of the treebank without their tags, and the sentences of each job."""
    train, dev = read_sentences("train"), read_sentences("dev")
    for name, sentences in {"words-train": train, "words-validation": dev[:500], "words-test": dev[500:600]}.items():
        (WORK / f"{name}.txt").write_text("\n".join(map(list_words, sentences)) + "\n", "utf-8")
    for seed in range(TAG_SEEDS):
        drawn = random.Random(seed).sample(train, TAGGED)
        parts = {"tags": drawn[TAGGED // 5 :], "tags-kept": drawn[: TAGGED // 5]}
        for name, sentences in parts.items():
            (WORK / f"{name}-{seed}.conllu").write_text("\n\n".join(sentences) + "\n\n", "utf-8")


def tag_settings(job: str) -> tuple[str, list[str]]:
    """The recipe of a job with parts of speech; a fifth of the sentences chooses the weights."""
    if job == "pretrain-tags":
        parts = ("train", "validation", "test")
        return "pretrain", [*(f"data.{part}={WORK / f'words-{part}'}.txt" for part in parts), *PRETRAIN_TAGS]
    way, _, seed = job.split("-")
    files = {"train": WORK / f"tags-{seed}.conllu", "validation": WORK / f"tags-kept-{seed}.conllu"}
    files["test"] = TREEBANK / "en_ewt-ud-test.conllu.gz"
    named = [f"data.{part}={file}" for part, file in files.items()]
    if way == "scratch":  # as it is by default, which knows letters of words, and counts
        return "tag", [*named, f"train.seed={seed}"]
    learn = ("model.dropout=0.5", "train.steps=100", "train.validate_every=10", "train.batch_tokens=1024")
    return "tag", [
        *named,
        f"model.from={WORK / 'pretrain-tags'}",
        *learn,
        "train.learning_rate=0.001",
        f"train.seed={seed}",
    ]


def read_rows(name: str) -> list[str]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return file.readlines()


def write_data() -> None:
    """The parts as files: the texts to pre-train on, and the labels of every job."""
    WORK.mkdir(parents=True, exist_ok=True)
    if (WORK / "done").exists():
        return
    rows = read_rows("train")
    train, held = rows[:-HELD_OUT], rows[-HELD_OUT:]
    test = read_rows("test")
    some = sorted(random.Random(0).sample(range(len(test)), TESTED))
    parts = {"train": train, "validation": held[:VALIDATED], "small": held[:100], "held-out": held}
    parts |= {"test": test, f"test-{TESTED}": [test[number] for number in some]}
    by_label = [[row for row in train if json.loads(row)["label"] == label] for label in (0, 1)]
    for count, seeds in SEEDS.items():
        for seed in range(seeds if count <= len(train) else 0):
            draw = random.Random(1000 * count + seed)
            drawn = [row for one in by_label for row in draw.sample(one, count // 2)]
            kept = drawn[::10] if count > FEW else []
            parts[f"labels-{count}-{seed}"] = [row for row in drawn if row not in set(kept)]
            parts |= {f"kept-{count}-{seed}": kept} if kept else {}
    for name, chosen in parts.items():
        (WORK / f"{name}.jsonl").write_text("".join(chosen), encoding="utf-8")
    write_tagged()
    (WORK / "done").touch()


def jobs() -> list[str]:
    """In the order in which they are done: a first seed of everything small, then further ones."""
    small = [count for count in SEEDS if SEEDS[count] > 1]
    ordered = [(count, seed) for seed in range(3) for count in sorted(small, reverse=True)]
    ordered += [(count, 0) for count in SEEDS if SEEDS[count] == 1]
    tuned = [f"{way}-{body}-{count}-{seed}" for count, seed in ordered for body in BODIES for way in WAYS]
    tags = [f"{way}-tags-{seed}" for seed in range(TAG_SEEDS) for way in WAYS]
    return [*(f"pretrain-{body}" for body in BODIES), *tuned, "pretrain-tags", *tags]


def settings(job: str) -> tuple[str, list[str]]:
    """The recipe of a job, and what differs from it."""
    if "tags" in job:
        return tag_settings(job)
    if job.startswith("pretrain-"):
        body = job.removeprefix("pretrain-")
        files = {"train": "train", "validation": "validation", "test": "small"}
        named = [f"data.{part}={WORK / file}.jsonl" for part, file in files.items()]
        own = (f"model.dropout={DROPOUT[body][0]}", f"train.steps={TAUGHT[body]}")
        return "pretrain", [*named, *PRETRAIN, *BODIES[body], *own]
    way, body, count, seed = job.split("-")
    steps, every = STEPS[int(count)], STEPS[int(count)] // (1 if int(count) <= FEW else 10)
    test = "test" if int(count) > 5000 else f"test-{TESTED}"
    kept = "small" if int(count) <= FEW else f"kept-{count}-{seed}"
    files = {"train": f"labels-{count}-{seed}", "validation": kept, "test": test}
    if int(count) > 5000:
        files |= {"train": "train", "validation": "held-out"}
    start = [f"model.from={WORK / f'pretrain-{body}'}"] if way == "pretrained" else [*SCRATCH, *BODIES[body]]
    named = [f"data.{part}={WORK / file}.jsonl" for part, file in files.items()]
    often = [f"train.steps={steps}", f"train.validate_every={every}", f"train.seed={seed}", "train.select_by=loss"]
    beside = [f"model.dropout={DROPOUT[body][1]}", f"model.nb_svm={'true' if int(count) > FEW else 'false'}"]
    return "classify", [*named, *start, *READ, *LEARN, *often, *beside]


def do(job: str) -> dict[str, Any]:
    """Train the run of a job, or what is left of it, and read its scores."""
    from seqloom.config.recipe import Recipe
    from seqloom.runs.run import load, train

    recipe, changes = settings(job)
    folder, begun, used = WORK / job, time.perf_counter(), time.process_time()
    for record in train(Recipe.read(recipe, *changes), folder, resume=True):
        if record.kind == "validation" or "starting from" in record.text:
            print(job, record.step, record.text or record.scores, flush=True)
    run = load(folder)
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text("utf-8").splitlines()]
    trained = max((record["seconds"] for record in records if record.get("seconds")), default=0.0)
    said = {"scores": run.scores["scores"], "training_seconds": trained, "steps": run.recipe.train.steps}
    if run.drop_mixture():
        said["net_alone"] = run.score(*run.recipe.data.test)["scores"]["accuracy"]["value"]
    said["notes"] = [record["text"] for record in records if "both together" in record.get("text", "")]
    return said | {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - used, "cores": 1}


def read_ledger() -> dict[str, Any]:
    return json.loads(LEDGER.read_text("utf-8")) if LEDGER.exists() else {}


def accuracies(ledger: dict[str, Any], way: str, count: int) -> list[float]:
    """By seed, of a way such as scratch-lstm; those of NB-SVM stand beside every run. With few labels of the net alone,
    also where NB-SVM was mixed into it, as it was by default for a while."""
    values = []
    for seed in range(SEEDS[count]):
        names = [f"{one}-{body}" for one in WAYS for body in BODIES] if way == "NB-SVM" else [way]
        done = [ledger[job] for name in names if (job := f"{name}-{count}-{seed}") in ledger]
        if done:
            accuracy = done[0]["scores"]["accuracy"]
            alone = done[0].get("net_alone", accuracy["value"]) if count <= FEW else accuracy["value"]
            values.append(accuracy["baselines"]["NB-SVM"] if way == "NB-SVM" else alone)
    return values


def describe(values: list[float]) -> str:
    if not values:
        return "–"
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread} ({len(values)})"


COLUMNS = {
    "pretrained-lstm": "LSTM, pre-trained",
    "scratch-lstm": "LSTM, from scratch",
    "pretrained-transformer": "Transformer, pre-trained",
    "scratch-transformer": "Transformer, from scratch",
    "NB-SVM": "NB-SVM",
}


def write_page() -> None:
    ledger = read_ledger()
    rows = [f"| labels | {' | '.join(COLUMNS.values())} | test reviews |", "|---|---|---|---|---|---|---|"]
    for count in SEEDS:
        cells = [describe(accuracies(ledger, way, count)) for way in COLUMNS]
        if any(cell != "–" for cell in cells):
            rows.append(f"| {count:,} | {' | '.join(cells)} | {'25,000' if count > 5000 else f'{TESTED:,}'} |")
    page = fill("labels", rows, PAGE.read_text("utf-8"))
    PAGE.write_text(fill("tags", tag_rows(ledger), page), "utf-8")
    draw_chart(ledger)


def fill(mark: str, rows: list[str], page: str) -> str:
    """The page with these rows between the two comments of a table."""
    marks = re.compile(rf"(<!-- {mark} -->\n).*?(\n<!-- /{mark} -->)", re.DOTALL)
    return marks.sub(lambda match: f"{match[1]}\n{chr(10).join(rows)}\n{match[2]}", page)


def tag_rows(ledger: dict[str, Any]) -> list[str]:
    names = {"pretrained": "LSTM, pre-trained on words", "scratch": "by default, from scratch"}
    rows = [f"| {TAGGED} sentences | accuracy | tag of the word |", "|---|---|---|"]
    for way, name in names.items():
        done = [
            ledger[job]["scores"]["accuracy"] for seed in range(TAG_SEEDS) if (job := f"{way}-tags-{seed}") in ledger
        ]
        rival = [one["baselines"]["tag of the word"] for one in done]
        rows.append(f"| {name} | {describe([one['value'] for one in done])} | {describe(rival)} |")
    return rows


def draw_chart(ledger: dict[str, Any]) -> None:
    from seqloom.look.charts.base import save
    from seqloom.look.charts.labels import LabelCurve, label_curve_chart

    curves = []
    for way, name in COLUMNS.items():
        points = [(count, values) for count in SEEDS if (values := accuracies(ledger, way, count))]
        if points:
            curves.append(LabelCurve(name, [count for count, _ in points], [values for _, values in points]))
    save(label_curve_chart(curves, "accuracy", "IMDB, test reviews; every point is a seed"), CHART)


def main(asked: list[str]) -> None:
    if asked == ["--list"]:
        print("\n".join(f"{'done' if job in read_ledger() else '    '} {job}" for job in jobs()))
        return
    if asked == ["page"]:
        write_page()
        return
    if unknown := [name for name in asked if name not in jobs()]:
        raise SystemExit(f"there is no job {unknown[0]}; --list names them")
    write_data()
    for job in asked or [job for job in jobs() if job not in read_ledger()]:
        result = do(job)
        ledger = read_ledger() | {job: result}
        LEDGER.write_text(json.dumps(ledger, indent=1, sort_keys=True) + "\n", "utf-8")
        print(job, result["scores"].get("accuracy", {}).get("value"), f"{result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
