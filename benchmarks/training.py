"""Whole training, data and optimizer included, beside a notebook's loop, Hugging Face's Trainer and Keras.

`python benchmarks/training.py [whole] [vocabulary] [processes] [1] [2] [quick] [page] [CASE …]`: without words, all of
it with one thread and with two; `page` writes the table of whole trainings into docs/benchmarks.md. Every act reads the
same examples once; a ratio is the peer's time divided by ours, above 1 we are faster, and the mark is 1.3. Keras,
transformers and accelerate are left out where they are not installed:
`pip install --no-deps keras optree namex ml-dtypes h5py absl-py accelerate psutil`. The data is looked for in the
folder that SEQLOOM_DATA names.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from _page import describe, write
from _timing import QUICK, best, chosen, clock, megabytes, most, peak, spreads, table, threads
from _trainers import END, MODELS, START, CarefulNotebook, Examples, HuggingFace, Keras, Notebook
from torch.nn import functional as F

from seqloom.config.recipe import Recipe
from seqloom.layers.chunked_cross_entropy import LinearCrossEntropy
from seqloom.tasks import declare
from seqloom.tasks.task import Feed
from seqloom.training.loop import Training
from seqloom.training.memory import keep_memory

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SEQLOOM_DATA") or ROOT.parent / "shared" / "data")
MARK = 1.3


PEERS = {"notebook": "notebook", "careful": "careful notebook", "Trainer": "Trainer", "Keras": "Keras"}


class Case(NamedTuple):
    title: str
    model: str  # the peers'
    settings: str
    rows: int  # in a peer's batch; ours holds as many tokens
    shape: dict[str, int]
    fixed: int = 0  # to which a notebook pads


WORDS = "data.source_tokenizer=words data.lowercase=true train.schedule=constant"
CASES = {
    "imdb-transformer": Case(
        "IMDB, 1 layer, d 32, 2 heads (the course's)",
        "Reviewer",
        f"task=classify {WORDS} data.vocabulary_size=50000 data.max_length=200 data.too_long=cut "
        "model.kind=transformer "
        "model.size=32 model.heads=2 model.feed_forward=32 model.dropout=0.1 "
        "model.positions=sinusoidal model.norm=post "
        "train.batch_tokens=25600",
        128,
        {"size": 32, "heads": 2, "feed_forward": 32, "depth": 1, "longest": 200},
        200,
    ),
    "imdb-lstm": Case(
        "IMDB, LSTM, d 128",
        "RecurrentReviewer",
        f"task=classify {WORDS} data.vocabulary_size=50000 data.max_length=200 data.too_long=cut model.kind=lstm "
        "model.size=128 model.embedding=128 model.bidirectional=false model.dropout=0 model.hidden=0 "
        "train.batch_tokens=25600",
        128,
        {"size": 128, "heads": 1, "feed_forward": 1, "depth": 1, "longest": 200},
        200,
    ),
    "multi30k-transformer": Case(
        "Multi30k, 2 + 2 layers, d 128, 4 heads",
        "Translator",
        f"task=seq2seq {WORDS} data.target_tokenizer=words data.vocabulary_size=8000 "
        "model.kind=transformer model.size=128 "
        "model.heads=4 model.feed_forward=512 model.depth=2 model.dropout=0.1 "
        "model.positions=sinusoidal model.norm=post "
        "train.batch_tokens=4096",
        128,
        {"size": 128, "heads": 4, "feed_forward": 512, "depth": 2, "longest": 100},
    ),
    "multi30k-gru": Case(
        "Multi30k, GRU with attention, d 256",
        "RecurrentTranslator",
        f"task=seq2seq {WORDS} data.target_tokenizer=words data.vocabulary_size=8000 model.kind=gru model.size=256 "
        "model.embedding=256 model.attention=dot model.attention_style=luong model.bidirectional=true model.dropout=0 "
        "train.batch_tokens=4096",
        128,
        {"size": 256, "heads": 1, "feed_forward": 1, "depth": 1, "longest": 100},
    ),
}


def examples_of(name: str) -> list[tuple[str, str]]:
    """So many that all of them are read in seconds."""
    if name.startswith("imdb"):
        with gzip.open(DATA / "imdb" / "train.jsonl.gz", "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for _, line in zip(range(20000), lines, strict=False)]
        return [(" ".join(re.findall(r"\w+|[^\w\s]", row["text"])), str(row["label"])) for row in rows]
    sides = []
    for language in ("de", "en"):
        with gzip.open(DATA / "multi30k" / f"train.{language}.gz", "rt", encoding="utf-8") as lines:
            sides.append([" ".join(re.findall(r"\w+|[^\w\s]", line)) for line in lines])
    return list(zip(*sides, strict=True))


class Ours:
    """The package's own loop over the prepared examples, validations and files left out."""

    def __init__(self, settings: str, examples: list[tuple[str, str]], most: int) -> None:
        recipe = Recipe().override(*settings.split(), "train.steps=1000000").resolved()
        form, few = declare(recipe), {"validation": examples[:2], "test": examples[:2]}
        # Words are learned from all, as is how much is padding; the first so many of them are trained on.
        task, everything = form.prepare(recipe, lambda text: None, {"train": examples, **few})
        self.padding = task.shape.padded_share(everything)
        self.task, self.prepared = form.prepare(
            recipe, lambda text: None, {"train": examples[:most], **few}, task.to_json()
        )
        torch.manual_seed(0)
        model = self.task.shape.build()
        feed = Feed(self.task, self.prepared)
        self.training = Training(self.task.objective(model), feed, self.task.recipe.train)

    def __call__(self) -> float:
        begun, epoch = clock(), self.training.progress.epoch
        with keep_memory():  # as `seqloom train` does
            while self.training.progress.epoch == epoch:
                self.training.advance()
        return clock() - begun

    def lists(self) -> tuple[list[torch.Tensor], list[Any]]:
        """The same ids for the peers; what is to be written with its start and end."""
        ids = self.prepared.splits["train"].ids
        sources = [torch.from_numpy(row.astype("int64")) for row in ids["source"]]
        if self.task.recipe.task == "classify":
            return sources, [int(row[0]) for row in ids["target"]]
        framed = [[START, *row.tolist(), END] for row in ids["target"]]
        return sources, [torch.tensor(row) for row in framed]


def acts_of(case: Case, ours: Ours) -> dict[str, Callable[[], float]]:
    sources, labels = ours.lists()
    sizes = ours.task.sizes()
    shape = case.shape | {"source": sizes["source"], "target": sizes["target"]}
    acts: dict[str, Callable[[], float]] = {"ours": ours}
    examples = Examples(sources, labels)
    acts["notebook"] = Notebook(MODELS[case.model](shape), examples, case.rows, case.fixed)
    acts["careful"] = CarefulNotebook(MODELS[case.model](shape), examples, case.rows)
    if find_spec("transformers") and find_spec("accelerate"):
        acts["Trainer"] = HuggingFace(MODELS[case.model](shape), examples, case.rows)
    if find_spec("keras"):
        acts["Keras"] = Keras(case.model, shape, sources, labels, case.rows, case.fixed)
    return acts


def whole(number: int) -> None:
    """Each once to set up, and then in turns; the best of each counts."""
    names = chosen(list(CASES))
    lines = []
    for name in names:
        case = CASES[name]
        reviews = name.startswith("imdb")
        ours = Ours(case.settings, examples_of(name), (512 if QUICK else 1536) if reviews else (384 if QUICK else 1024))
        acts = acts_of(case, ours)
        tokens = int(ours.task.shape.lengths(ours.prepared.splits["train"].ids).sum())
        taken: dict[str, list[float]] = {way: [] for way in acts}
        for turn in range(3 if QUICK else 4):
            for way, act in acts.items():
                seconds = act()
                if turn:
                    taken[way].append(seconds)
        times = {way: min(each) for way, each in taken.items()}
        spreads.extend(median(each) / min(each) - 1 for each in taken.values())
        ratios = [f"{times[way] / times['ours']:.2f}" if way in times else "–" for way in PEERS]
        lines.append([case.title, f"{tokens / times['ours']:,.0f}", f"{ours.padding:.1%}", *ratios])
        print(lines[-1], file=sys.stderr, flush=True)
    columns = ["model", "tokens a second", "padding", *(f"{way} / ours" for way in PEERS.values())]
    made = f"{table(columns, lines)}\n\n{describe(number)}"
    print(f"\n## {number} thread{'s' * (number > 1)}; the mark is {MARK}, and 5 % of padding\n\n{made}")
    if "page" in sys.argv:
        write(f"training whole {number}", made)


# --- a large vocabulary -----------------------------------------------------------------------------------------

SIZE, CLASSES, PIECE = 256, 33_000, (1 << 25) // 33_000


def losses(elements: int) -> dict[str, Callable[[], object]]:
    torch.manual_seed(0)
    features = torch.randn(elements, SIZE, requires_grad=True)
    matrix, bias = torch.randn(CLASSES, SIZE).mul_(0.05).requires_grad_(), torch.zeros(CLASSES, requires_grad=True)
    target = torch.randint(0, CLASSES, (elements,))

    def ours() -> None:
        features.grad = matrix.grad = bias.grad = None
        LinearCrossEntropy.apply(features, target, matrix, bias, None, 0.0, PIECE).backward()

    def plain() -> None:
        features.grad = matrix.grad = bias.grad = None
        F.cross_entropy(F.linear(features, matrix, bias), target, reduction="sum").backward()

    return {"ours": ours, "torch": plain}


def vocabulary(number: int) -> None:
    lines = []
    for elements in (2048, 4096) if QUICK else (2048, 4096, 8192):
        ours, plain = best(list(losses(elements).values()), 3)
        room = [megabytes(__file__, name, str(elements)) for name in ("ours", "torch")]
        lines.append(
            [f"{elements:,}", f"{ours * 1e3:.0f}", f"{plain / ours:.2f}", *(f"{value:,.0f}" for value in room)]
        )
    columns = ["elements", "ms, forwards and backwards", "torch / ours", "most memory, MB", "torch's, MB"]
    print(f"\nA loss over {CLASSES:,} words, d {SIZE}, {number} threads; the mark is 1.\n\n{table(columns, lines)}")


# --- processes against threads ----------------------------------------------------------------------------------


def speed(*more: str, threads: int) -> float:
    """The tokens a second that a real run says at its end."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ("model.kind=transformer", "model.size=256", "model.depth=3", "train.batch_tokens=8192")
        steps = ("train.steps=20", "train.validate_every=20", "data.sample=dates", "search.beam_size=1")
        command = [sys.executable, "-m", "seqloom", "train", "seq2seq", *settings, *steps, "--into", f"{folder}/run"]
        surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        subprocess.run([*command, *more], check=True, capture_output=True, env=surroundings)
        lines = [json.loads(line) for line in Path(folder, "run", "records.jsonl").read_text().splitlines()]
        return max(line["tokens_per_second"] for line in lines[1:])  # the first step sets up


def processes() -> None:
    ways: dict[str, list[float]] = {"one thread": [], "two threads": [], "two processes": []}
    gains = []
    for _ in range(2 if QUICK else 3):
        torch.set_num_threads(1)
        one = peak()
        torch.set_num_threads(2)
        gains.append(peak() / one)
        ways["one thread"].append(speed(threads=1))
        ways["two threads"].append(speed(threads=2))
        ways["two processes"].append(speed("--processes", "2", threads=1))
    found = {name: max(values) for name, values in ways.items()}
    products, gain = max(gains), found["two processes"] / found["one thread"]
    print("\n" + table(list(found), [[f"{value:,.0f}" for value in found.values()]]))
    threads_gain = found["two threads"] / found["one thread"]
    print(
        f"\nTokens a second. Two processes gain {gain:.2f}, two threads {threads_gain:.2f}, "
        f"in plain products two threads gain {products:.2f}: {gain / products:.0%} of that; the mark is 85 %."
    )


def main() -> None:
    sections = chosen(["whole", "vocabulary", "processes"])
    for number in threads():
        torch.set_num_threads(number)
        if "whole" in sections:
            whole(number)
        if "vocabulary" in sections:
            vocabulary(number)
    if "processes" in sections:
        processes()


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        name, elements = sys.argv[2:]
        losses(8)[name]()
        print(most(losses(int(elements))[name]))
    else:
        main()
