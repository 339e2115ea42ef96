"""What the models reach on real data, each row within its budget of time, beside its mark and its baselines.

`python benchmarks/results.py` does the rows that are not done; `python benchmarks/results.py trec` one of them, again
if it was done; `python benchmarks/results.py --list` says which there are. A row is a run of its own in results/:
killed, it is taken up where it was. The ledger benchmarks/results.json says what is done, and docs/results.md is
written from it.

Nothing is tuned here: the settings of a row were chosen on validation examples, and the test part is scored once.
"""

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SEQLOOM_DATA") or ROOT.parent / "shared" / "data")
WORK = ROOT / "results"
LEDGER, PAGE = ROOT / "benchmarks" / "results.json", ROOT / "docs" / "results.md"


class Row(NamedTuple):
    title: str
    recipe: str
    settings: str  # {} stands for the folder of the data
    score: str  # the one that the mark is about
    mark: str
    budget: str


ROWS = {
    "imdb-course": Row(
        "IMDB, the course's own model (1 layer, d 32, 2 heads), trained on the first 200 words; "
        "test reviews are read whole",
        "classify",
        "data.train={}/imdb/train.jsonl.gz data.test={}/imdb/test.jsonl.gz data.source=text data.target=label "
        "data.source_tokens=words data.lowercase=true data.max_size=50000 data.max_length=200 data.too_long=cut "
        "data.validation_share=0.05 model.kind=transformer model.size=32 model.heads=2 model.feed_forward=32 "
        "model.dropout=0.1 train.batch=16384 train.rate=2e-3",
        "accuracy",
        "82.2 %",
        "3m",
    ),
    "trec": Row(
        "TREC questions, 6 classes",
        "classify",
        "data.train={}/trec/TREC.train.all.gz data.test={}/trec/TREC.test.all.gz data.format=txt data.separator=' ' "
        "data.source=2 data.target=1 data.source_tokens=words data.lowercase=true model.kind=convolution "
        "model.size=300 model.embedding=200 model.window=3 model.depth=2 model.pool=largest model.dropout=0.5 "
        "train.batch=1024 train.rate=1e-3 train.smoothing=0.2",
        "accuracy",
        "90 %",
        "1m",
    ),
    "vowels": Row(
        "Japanese vowels",
        "classify",
        "data.train={}/japanese_vowels/JapaneseVowels_TRAIN.ts.gz "
        "data.test={}/japanese_vowels/JapaneseVowels_TEST.ts.gz "
        "data.source_type=numbers model.kind=gru model.size=128 model.pool=mean model.dropout=0.3 train.batch=1024 "
        "train.rate=2e-3",
        "accuracy",
        "98 %",
        "1m",
    ),
    "mnist-rows": Row(
        "MNIST, row by row",
        "classify",
        "data.train={}/mnist/train-images-idx3-ubyte.gz,{}/mnist/train-labels-idx1-ubyte.gz "
        "data.test={}/mnist/t10k-images-idx3-ubyte.gz,{}/mnist/t10k-labels-idx1-ubyte.gz data.source_type=numbers "
        "model.kind=gru model.size=128 model.dropout=0.2 train.batch=4096 train.rate=3e-3 data.validation_share=0.05",
        "accuracy",
        "98.8 %",
        "10m",
    ),
    "ewt": Row(
        "UD English EWT, part of speech",
        "tag",
        "data.train={}/ud_english_ewt/en_ewt-ud-train.conllu.gz "
        "data.validation={}/ud_english_ewt/en_ewt-ud-dev.conllu.gz "
        "data.test={}/ud_english_ewt/en_ewt-ud-test.conllu.gz data.characters=16 data.lowercase=true data.min_count=2 "
        "model.kind=lstm model.size=256 model.embedding=128 model.dropout=0.5 train.batch=2048 train.rate=2e-3",
        "accuracy",
        "94.0 %",
        "10m",
    ),
}


def settings_of(name: str, data: str) -> list[str]:
    row = ROWS[name]
    return [row.recipe, *shlex.split(row.settings.replace("{}", data)), f"train.time={row.budget}"]


def run(name: str) -> None:
    """Train a row, or go on with it, and write its result into the ledger."""
    row, folder = ROWS[name], WORK / name
    begun = time.time()
    train = [sys.executable, "-m", "seqloom", "train", *settings_of(name, str(DATA))]
    subprocess.run([*train, "--into", str(folder), "--resume"], check=True, cwd=ROOT)
    scores = json.loads((folder / "scores.json").read_text())["scores"]
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    recipe = (folder / "recipe.toml").read_text()
    seed = next(line.split("=")[1].strip() for line in recipe.splitlines() if line.startswith("seed"))
    done = ledger() | {
        name: {
            "title": row.title,
            "mark": row.mark,
            "budget": row.budget,
            "score": row.score,
            "scores": scores,
            "steps": records[-1]["step"],
            "seconds": round(records[-1]["seconds"]),
            "whole": round(time.time() - begun),
            "seed": int(seed),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        }
    }
    LEDGER.write_text(json.dumps(done, indent=2, ensure_ascii=False) + "\n")


def ledger() -> dict[str, dict[str, Any]]:
    return json.loads(LEDGER.read_text()) if LEDGER.exists() else {}


def page(done: dict[str, dict[str, Any]]) -> str:
    """The table of all rows that are done, with what was reached whether or not it beats the mark."""
    head = """# Results on real data

Every row is one run of the product as it is: `python benchmarks/results.py NAME` trains it within its budget of time
and scores the test part once. Settings were chosen on validation examples; for `trec` the test scores of three weaker
settings were seen meanwhile. The data is not part of the project; its folder is named by `SEQLOOM_DATA`. Marks are
published figures or the courses' own; the interval is a bootstrap over the test examples (95 %); seconds are those of
training with its validations, on the machine that is named.

| row | data | reached | 95 % interval | mark | baselines | steps | seconds | seed | machine |
|---|---|---|---|---|---|---|---|---|---|
"""
    return head + "".join(f"{line(name, one)}\n" for name, one in done.items()) + commands(done)


def line(name: str, one: dict[str, Any]) -> str:
    score = one["scores"][one["score"]]
    low, high = score["interval"]
    rivals = ", ".join(f"{rival} {value:.3f}" for rival, value in score["baselines"].items())
    cells = [
        name,
        one["title"],
        f"{one['score']} **{score['value']:.3f}**",
        f"{low:.3f}–{high:.3f}",
        one["mark"],
        rivals,
    ]
    cells += [f"{one['steps']:,}", str(one["seconds"]), str(one["seed"]), one["machine"]]
    return f"| {' | '.join(cells)} |"


def commands(done: dict[str, dict[str, Any]]) -> str:
    """What to type for each row, without the script."""
    typed = [f"seqloom train {shlex.join(settings_of(name, 'DATA'))}" for name in done if name in ROWS]
    return "\n## The commands\n\n```text\n" + "\n\n".join(typed) + "\n```\n"


def main() -> None:
    asked = sys.argv[1:]
    if asked == ["--list"]:
        for name, row in ROWS.items():
            print(f"{name:14} {'done' if name in ledger() else 'open'}  {row.budget:>4}  {row.title}")
        return
    WORK.mkdir(exist_ok=True)
    for name in set(asked) & set(ledger()):
        shutil.rmtree(WORK / name, ignore_errors=True)
    for name in asked or [name for name in ROWS if name not in ledger()]:
        run(name)
    PAGE.write_text(page(ledger()), encoding="utf-8")


if __name__ == "__main__":
    main()
