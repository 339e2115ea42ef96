"""Under load: clients that leave stop their work, SIGTERM loses nothing, and memory stays flat. Long ones are soaks."""

import json
import re
import signal
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from .conftest import Server

LONG = {"model": "text", "prompt": "7 green", "max_tokens": 512, "n": 16, "temperature": 1.0, "stream": True}


def gauge(server, name):
    return float(re.search(rf"^{name} (\S+)$", requests.get(f"{server.url}/metrics").text, re.MULTILINE)[1])


def leave(server):
    """Ask for much, read a little of the answer, and go away."""
    body = json.dumps(LONG).encode()
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        head = "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json"
        connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert b"200 OK" in connection.recv(4096)


@pytest.mark.parametrize("times", [8, pytest.param(200, marks=pytest.mark.soak)])
def test_work_stops_when_its_clients_leave(server, times):
    assert requests.post(f"{server.url}/predict", json={"run": "text", "inputs": ["7 green"]}).status_code == 200
    for _ in range(times):
        leave(server)
        begun = time.monotonic()
        while gauge(server, "seqloom_texts_being_written"):
            assert time.monotonic() - begun < 1
    assert requests.get(f"{server.url}/v2/health/live").status_code == 200


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_sigterm_loses_nothing_that_is_in_flight(runs, times):
    asked = {"model": "text", "prompt": "7 green", "max_tokens": 64, "temperature": 0}
    for _ in range(times):
        server = Server(runs)
        assert requests.post(f"{server.url}/v1/completions", json=asked | {"max_tokens": 1}).status_code == 200
        with ThreadPoolExecutor(32) as pool:
            answers = [pool.submit(requests.post, f"{server.url}/v1/completions", json=asked) for _ in range(32)]
            begun = time.monotonic()
            while gauge(server, "seqloom_texts_being_written") < 1 and time.monotonic() - begun < 5:
                time.sleep(0.01)
            accepted = gauge(server, "seqloom_texts_being_written") + gauge(server, "seqloom_queue_length")
            server.process.send_signal(signal.SIGTERM)
            statuses = []
            for answer in answers:
                try:
                    statuses.append(answer.result(60).status_code)
                except requests.ConnectionError:
                    statuses.append(0)  # it came after the door was closed
        assert statuses.count(200) >= min(accepted, 32) > 0, statuses
        assert set(statuses) <= {200, 0, 503}
        assert "Traceback" not in server.stop() and server.process.returncode is not None


@pytest.mark.soak
def test_four_times_too_many_are_refused_at_once_and_the_others_keep_their_time(runs):
    """512 inputs may wait: 8 clients with 64 each fill that, 32 ask for four times as much."""
    server, body = Server(runs), {"run": "mood", "inputs": ["good film"] * 64}

    def ask(until):
        session, found = requests.Session(), []
        while time.monotonic() < until:
            begun = time.monotonic()
            answer = session.post(f"{server.url}/predict", json=body, timeout=60)
            found.append((answer.status_code, time.monotonic() - begun))
            if answer.status_code == 429:
                assert answer.headers["retry-after"] == "1"
                time.sleep(0.2)
        return found

    def load(clients):
        until = time.monotonic() + 20
        with ThreadPoolExecutor(clients) as pool:
            found = [one for part in pool.map(ask, [until] * clients) for one in part]
        assert {status for status, _ in found} <= {200, 429}
        return [sorted(took for status, took in found if status == wanted) for wanted in (200, 429)]

    try:
        ask(time.monotonic() + 1)  # which loads the run
        alone, none = load(8)
        accepted, refused = load(32)
    finally:
        server.stop()
    assert len(none) == 0 and len(refused) > 20 and len(accepted) > 20
    assert statistics.median(refused) < 0.1
    assert statistics.median(accepted) < 2 * statistics.median(alone)


def resident(server):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{server.process.pid}/status").read_text())[1])


@pytest.mark.soak
def test_ten_minutes_of_sixty_four_clients_no_error_and_memory_is_flat(runs):
    server, until, sizes = Server(runs), time.monotonic() + 600, []

    def ask(number):
        session, count = requests.Session(), 0
        while time.monotonic() < until:
            inputs = ["good film " * (1 + (number + count) % 9)]
            answer = session.post(f"{server.url}/predict", json={"run": "mood", "inputs": inputs}, timeout=30)
            assert answer.status_code == 200, answer.text
            count += 1
        return count

    with ThreadPoolExecutor(64) as pool:
        clients = [pool.submit(ask, number) for number in range(64)]
        while time.monotonic() < until:
            time.sleep(30)
            sizes.append(resident(server))
        assert sum(client.result() for client in clients) > 1000
    server.stop()
    assert max(sizes[2:]) < 1.05 * sizes[2]
