"""Runs of every kind, tiny and trained once, and a server of them: in this process, or a real one on a free port."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from seqloom.config.recipe import Recipe
from seqloom.runs.run import Run, load, train
from seqloom.serve.app import create_app
from seqloom.serve.limits import Limits

from ..recipes import forecasting, small, walks

CHANCE = random.Random(0)
WORDS = ["good", "bad", "fine", "awful", "plot", "film", "the", "a"]
REVIEWS = [" ".join(CHANCE.choices(WORDS, k=CHANCE.randint(2, 9))) for _ in range(60)]
LABELED = [(text, "glad" if "good" in text else "sad") for text in REVIEWS]
TAGGED = [
    ("\t".join(text.split()), "\t".join("MOOD" if word in WORDS[:4] else "REST" for word in text.split()))
    for text in REVIEWS
]
TEXT = "".join(f"{number} green bottles hanging on the wall, é.\n" for number in range(40))
BARS = ["".join(CHANCE.choices("DEFGAB", k=8)) for _ in range(48)]
TUNES = "".join(f"X:{n}\nM:4/4\nL:1/8\nK:D\n|:{BARS[n]}|{BARS[-n]}:|\n\n" for n in range(24))
FEW = ("model.size=16", "train.steps=8", "train.batch_tokens=256", "train.validate_every=4")


def train_all(folder: Path, data: Path) -> None:
    """A run of every task that the server treats in a way of its own."""
    (data / "text.txt").write_text(TEXT, encoding="utf-8")
    language = (f"data.train={data / 'text.txt'}", "model.size=16", "train.steps=6", "train.batch_tokens=64")
    language = *language, "train.bptt_window=16", "train.validate_every=3", "model.ngram=0"
    list(train(Recipe.read("language", *language, "model.kind=gru"), folder / "text"))
    lines = "data.documents=lines", "model.kind=lstm", "model.ngram=4"  # which is mixed in
    list(train(Recipe.read("language", *language, *lines), folder / "lines"))
    list(train(Recipe.read("language", *language, "model.kind=transformer"), folder / "window"))
    list(train(small(data, "train.steps=30", "model.kind=gru"), folder / "backwards"))
    labeled, tagged = ({part: found for part in ("train", "validation", "test")} for found in (LABELED, TAGGED))
    words = "data.source_tokenizer=words"
    list(train(Recipe.of({"task": "classify"}).override(*FEW, words), folder / "mood", examples=labeled))
    for name, more in {"tags": [], "both": ["model.bidirectional=true"], "chain": ["model.crf=true"]}.items():
        recipe = Recipe.of({"task": "tag"}).override(*FEW, "model.kind=lstm", "model.bidirectional=false", *more)
        list(train(recipe, folder / name, examples=tagged))
    list(train(forecasting("model.kind=gru"), folder / "walk", examples=walks()))
    (data / "tunes.abc").write_text(TUNES)
    list(train(Recipe.read("music", f"data.train={data / 'tunes.abc'}", *FEW, "train.bptt_window=32"), folder / "tune"))
    paint(data)
    pictures = f"data.train={data / 'captions.csv'}", "data.format=images", "data.image_size=8", *FEW
    caption = "data.target_tokenizer=words", "model.encoder.kind=transformer", "model.patch=4"
    list(train(Recipe.of({"task": "caption"}).override(*pictures, *caption), folder / "caption"))
    draw = "data.source_tokenizer=words", "data.square=2", "search.beam_size=1", "model.kind=gru"
    list(train(Recipe.of({"task": "draw"}).override(*pictures, *draw), folder / "draw"))
    list(train(Recipe.read("transcribe", *FEW), folder / "notes"))
    filled = (
        f"data.train={data / 'text.txt'}",
        "data.target_tokenizer=words",
        "data.vocabulary_size=0",
        "data.window=16",
    )
    list(train(Recipe.read("pretrain", *filled, "model.depth=1", *FEW), folder / "body"))


def paint(folder: Path) -> None:
    """Squares that are red or blue and more or less bright, and a table with what they are called."""
    lines = ["image,caption"]
    for number in range(24):
        red, light = number % 2, 80 + 7 * number
        Image.new("RGB", (8, 8), (light, 0, 0) if red else (0, 0, light)).save(folder / f"{number}.png")
        lines.append(f"{number}.png,{'a red' if red else 'a blue'} square")
    (folder / "captions.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "runs"
    train_all(folder, tmp_path_factory.mktemp("data"))
    return folder


@pytest.fixture(scope="session")
def offline(runs: Path) -> Callable[[str], Run]:
    """The same runs, asked without a server."""
    loaded: dict[str, Run] = {}
    return lambda name: loaded.setdefault(name, load(runs / name))


@pytest.fixture(scope="session")
def client(runs: Path) -> Iterator[TestClient]:
    with TestClient(create_app(runs), base_url="http://localhost") as client:
        yield client


@pytest.fixture
def serving(runs: Path) -> Iterator[Callable[..., TestClient]]:
    """A server of its own, with limits of its own."""
    open_clients = []

    def serve(folder: Path = runs, token: str = "", **limits: float) -> TestClient:
        client = TestClient(create_app(folder, Limits(**limits), token=token), base_url="http://localhost")
        client.__enter__()
        open_clients.append(client)
        return client

    yield serve
    for client in open_clients:
        client.__exit__(None, None, None)


class Server:
    """A real one, in a process of its own, started as a person does."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "seqloom", "serve", str(folder), "--port", str(self.port), *options]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(f"no server came up: {self.stop()}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[0]


def tell(figure: str) -> None:
    """What a soak has measured, beside the machine's load; `pytest -s` shows it."""
    print(f"\n{figure}; load {os.getloadavg()[0]:.1f}")


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[Server]:
    found = Server(runs, "--header-seconds", "0.8")
    yield found
    found.stop()
