"""The server: throughput with and without batches, what it adds to a direct call, and LitServe with the same run.

A classifier (LSTM, 2 × 256) reads texts of 40 words. Clients stand in a process of their own and ask over HTTP/1.1 with
connections that stay open; every answer is checked against the direct call. The servers run side by side and are asked
in turns, and the best of several rounds counts, so that a busy moment of the machine hits them all. Beside the clock
stands the processor time an answer of all processes of a server, which others on the machine hardly change. LitServe
(extra `bench`) calls `run.predict_many` on its batches, with the better of two waiting times.

    python benchmarks/serving.py [seconds] [rounds]
"""

import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WORDS = [f"word{number}" for number in range(500)]
CHANCE = random.Random(0)
TEXTS = [" ".join(CHANCE.choices(WORDS, k=40)) for _ in range(256)]
CLIENTS = (1, 64)
WAITS = (0.0, 0.01)  # seconds that LitServe waits for a batch to fill

Answered = tuple[str, str, float]  # the text, its label, and how long that took


# --- clients ---------------------------------------------------------------------------------------------------------


async def client(port: int, until: float, found: list[Answered]) -> None:
    """Ask, wait, ask again, over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    place = CHANCE.randrange(len(TEXTS))
    while time.monotonic() < until:
        text = TEXTS[place % len(TEXTS)]
        body = json.dumps({"run": "run", "inputs": [text]}).encode()
        head = "POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
        begun = time.monotonic()
        writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.lower().split(b"\r\n")
        length = next(int(line.split(b":")[1]) for line in lines if line[:14] == b"content-length")
        told = json.loads(await reader.readexactly(length))
        label = told["label"] if "label" in told else told["answers"][0]["predictions"][0]["output"]
        found.append((text, label, time.monotonic() - begun))
        place += 1
    writer.close()


async def ask(port: int, clients: int, seconds: float) -> tuple[list[Answered], float]:
    """All answers, and how long it took until the last of them was there."""
    found: list[Answered] = []
    begun = time.monotonic()
    await asyncio.gather(*(client(port, begun + seconds, found) for _ in range(clients)))
    return found, time.monotonic() - begun


def measure(port: int, clients: int, seconds: float) -> tuple[list[Answered], float]:
    """In a process of their own, so that clients and server do not share an interpreter."""
    command = [sys.executable, __file__, "--client", str(port), str(clients), str(seconds)]
    found, took = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found, took


# --- servers ---------------------------------------------------------------------------------------------------------


def start(*command: str) -> tuple[subprocess.Popen[bytes], int]:
    """A server in a process of its own, on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, *(word.replace("PORT", str(port)) for word in command)]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, env=alone, start_new_session=True, stdout=subprocess.DEVNULL), port


def start_all(folder: Path) -> dict[str, tuple[subprocess.Popen[bytes], int]]:
    ours = ("-m", "seqloom", "serve", str(folder), "--port", "PORT", "--batch")
    found = {"seqloom": start(*ours, "64"), "seqloom, batches of 1": start(*ours, "1")}
    if find_spec("litserve") is None:
        print("LitServe is not installed, and left out: pip install 'seqloom[bench]'", file=sys.stderr)
        return found
    for wait in WAITS:
        theirs = (str(Path(__file__).with_name("_litserve.py")), str(folder / "run"), "PORT", str(wait))
        found[f"LitServe, waits {1000 * wait:g} ms"] = start(*theirs)
    return found


def wait_for(name: str, server: subprocess.Popen[bytes], port: int) -> None:
    while server.poll() is None:
        try:
            measure(port, 1, 0.1)  # which loads the run
            return
        except subprocess.CalledProcessError:
            time.sleep(0.2)
    raise SystemExit(f"{name} did not come up")


def processor_seconds(server: subprocess.Popen[bytes]) -> float:
    """What all processes of a server have used so far (Linux only): they are those of its session."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[3]) == server.pid:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


# --- the race --------------------------------------------------------------------------------------------------------


def train_run(folder: Path) -> Any:
    import torch

    from seqloom import Recipe, load, train

    torch.set_num_threads(1)
    examples = [(text, "a" if text < "word3" else "b") for text in TEXTS]
    few = ("model.kind=lstm", "model.size=256", "model.depth=2", "train.steps=8", "data.source_tokenizer=words")
    recipe = Recipe.of({"task": "classify"}).override(*few)
    list(train(recipe, folder / "run", examples=dict.fromkeys(("train", "validation", "test"), examples)))
    return load(folder / "run")


def time_direct(run: Any) -> tuple[float, float]:
    """The median time of one call without a server, and its mean processor time, in seconds."""
    times, spent = [], time.process_time()
    for text in TEXTS:
        begun = time.monotonic()
        run.predict(text)
        times.append(time.monotonic() - begun)
    return statistics.median(times), (time.process_time() - spent) / len(TEXTS)


def main(seconds: float, rounds: int) -> None:
    folder = Path(tempfile.mkdtemp())
    run = train_run(folder)
    expected = {text: run.predict(text)[0].output for text in TEXTS}
    servers = start_all(folder)
    best: dict[tuple[str, int], list[float]] = {}
    try:
        for name, served in servers.items():
            wait_for(name, *served)
        for _ in range(rounds):
            median, spent = time_direct(run)
            keep(best, ("a direct call", 1), 1 / median, median, spent)
            for name, (server, port) in servers.items():
                for clients in CLIENTS:
                    before = processor_seconds(server)
                    found, whole = measure(port, clients, seconds)
                    assert all(expected[text] == label for text, label, _ in found), "an answer differs"
                    spent = (processor_seconds(server) - before) / len(found)
                    median = statistics.median(took for *_, took in found)
                    keep(best, (name, clients), len(found) / whole, median, spent)
    finally:
        for server, _ in servers.values():
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
    tell(best)


def keep(best: dict[tuple[str, int], list[float]], key: tuple[str, int], speed: float, *times: float) -> None:
    """The best of all rounds: the highest speed, the shortest times."""
    print(
        f"{key[0]}, {key[1]} clients: {speed:.1f} answers a second, {[f'{1000 * one:.2f} ms' for one in times]}",
        flush=True,
    )
    before = best.get(key, [speed, *times])
    best[key] = [max(before[0], speed), *map(min, before[1:], times)]


def tell(best: dict[tuple[str, int], list[float]]) -> None:
    print(
        "\n| server | clients | answers a second | p50, ms | processor an answer, ms |\n| --- | --- | --- | --- | --- |"
    )
    for (name, clients), (speed, median, spent) in best.items():
        print(f"| {name} | {clients} | {speed:.0f} | {1000 * median:.2f} | {1000 * spent:.2f} |")
    ours, alone, direct = best["seqloom", 64], best["seqloom, batches of 1", 64], best["a direct call", 1]
    theirs = [one for (name, clients), one in best.items() if name.startswith("LitServe") and clients == 64]
    more = [1000 * (here - there) for here, there in zip(best["seqloom", 1][1:], direct[1:], strict=True)]
    gain = f"{ours[0] / alone[0]:.1f} ×, by the processor {alone[2] / ours[2]:.1f} ×"
    print(f"\n64 clients, with batches against without: {gain}")
    if theirs:
        fastest, leanest = max(one[0] for one in theirs), min(one[2] for one in theirs)
        print(f"64 clients, against LitServe: {ours[0] / fastest:.1f} ×, by the processor {leanest / ours[2]:.1f} ×")
    print(f"1 client, beyond a direct call: {more[0]:.2f} ms, by the processor {more[1]:.2f} ms")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--client", port, clients, seconds]:
            print(json.dumps(asyncio.run(ask(int(port), int(clients), float(seconds)))))
        case given:
            main(*(float(given[0]) if given else 5.0, int(given[1]) if given[1:] else 3))
