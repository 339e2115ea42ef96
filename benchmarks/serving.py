"""The server: throughput with and without batches, and how much it adds to a direct call.

A classifier (LSTM, 2 × 256) reads texts of 40 words. Clients stand in a process of their own and ask over HTTP/1.1 with
connections that stay open; every answer is checked against the direct call. Ratios are of one run on one machine.

    python benchmarks/serving.py [seconds]
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
from pathlib import Path

WORDS = [f"word{number}" for number in range(500)]
CHANCE = random.Random(0)
TEXTS = [" ".join(CHANCE.choices(WORDS, k=40)) for _ in range(256)]


async def client(port: int, texts: list[str], until: float, found: list[tuple[str, str, float]]) -> None:
    """Ask, wait, ask again, over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    place = CHANCE.randrange(len(texts))
    while time.monotonic() < until:
        text = texts[place % len(texts)]
        body = json.dumps({"run": "run", "inputs": [text]}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}"
        begun = time.monotonic()
        writer.write(f"{head}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in answer.lower().split(b"\r\n") if line[:14] == b"content-length"
        )
        told = json.loads(await reader.readexactly(length))
        found.append((text, told["answers"][0]["predictions"][0]["output"], time.monotonic() - begun))
        place += 1
    writer.close()


async def ask(port: int, clients: int, seconds: float) -> tuple[list[tuple[str, str, float]], float]:
    """All answers, and how long it took until the last of them was there."""
    found: list[tuple[str, str, float]] = []
    begun = time.monotonic()
    await asyncio.gather(*(client(port, TEXTS, begun + seconds, found) for _ in range(clients)))
    return found, time.monotonic() - begun


def serve(folder: Path, batch: int) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "seqloom", "serve", str(folder), "--port", str(port), "--batch", str(batch)]
    server = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return server, port
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not come up")


def measure(port: int, clients: int, seconds: float) -> tuple[list[tuple[str, str, float]], float]:
    """In a process of their own, so that clients and server do not share an interpreter."""
    command = [sys.executable, __file__, "--client", str(port), str(clients), str(seconds)]
    found, took = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found, took


def main(seconds: float) -> None:
    import torch

    from seqloom import Recipe, load, train

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    examples = [(text, "a" if text < "word3" else "b") for text in TEXTS]
    few = ("model.kind=lstm", "model.size=256", "model.depth=2", "train.steps=8", "data.source_tokenizer=words")
    recipe = Recipe.of({"task": "classify"}).override(*few)
    list(train(recipe, folder / "run", examples=dict.fromkeys(("train", "validation", "test"), examples)))
    run = load(folder / "run")
    expected = {text: run.predict(text)[0].output for text in TEXTS}
    direct = []
    for text in TEXTS:
        begun = time.monotonic()
        run.predict(text)
        direct.append(time.monotonic() - begun)
    print(f"a direct call: p50 {1000 * statistics.median(direct):.2f} ms")
    speeds = {}
    for batch in (1, 64):
        server, port = serve(folder, batch)
        try:
            measure(port, 1, 1)  # which loads the run
            for clients in (1, 64):
                found, whole = measure(port, clients, seconds)
                assert all(expected[text] == answer for text, answer, _ in found), (
                    "an answer differs from the direct one"
                )
                speeds[batch, clients] = len(found) / whole
                p50 = 1000 * statistics.median(took for *_, took in found)
                speed = f"{speeds[batch, clients]:7.1f} answers/s, p50 {p50:.2f} ms"
                print(f"batches of at most {batch:2}, {clients:2} clients: {speed}", flush=True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    print(f"64 clients, with batches against without: {speeds[64, 64] / speeds[1, 64]:.1f} ×")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        print(json.dumps(asyncio.run(ask(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))))
    else:
        main(float(sys.argv[1]) if sys.argv[1:] else 5.0)
