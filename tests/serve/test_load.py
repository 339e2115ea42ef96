"""Under load: clients that leave stop their work, SIGTERM loses nothing, and memory stays flat. Long ones are soaks."""

import http.client
import json
import re
import signal
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from .conftest import Server, tell

LONG = {"model": "text", "prompt": "7 green", "max_tokens": 512, "n": 16, "temperature": 1.0, "stream": True}


def gauge(server, name):
    return float(re.search(rf"^{name} (\S+)$", requests.get(f"{server.url}/metrics").text, re.MULTILINE)[1])


def request_of(path, body):
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def leave(server):
    """Ask for much, read a little of the answer, and go away."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
        connection.sendall(request_of("/v1/completions", LONG))
        assert b"200 OK" in connection.recv(4096)


@pytest.mark.parametrize("times", [8, pytest.param(200, marks=pytest.mark.soak)])
def test_work_stops_when_its_clients_leave(server, times):
    assert requests.post(f"{server.url}/predict", json={"run": "text", "inputs": ["7 green"]}).status_code == 200
    longest = 0.0
    for _ in range(times):
        leave(server)
        begun = time.monotonic()
        while gauge(server, "seqloom_texts_being_written"):
            pass
        longest = max(longest, time.monotonic() - begun)
    tell(f"{times} clients left, and their work stopped after {longest:.3f} s at most")
    assert longest < 1
    assert requests.get(f"{server.url}/v2/health/live").status_code == 200


def read_answer(connection):
    """The status and the whole body of one answer; none if the connection ended before."""
    answer = http.client.HTTPResponse(connection)
    try:
        answer.begin()
        return answer.status, json.loads(answer.read())
    except (ConnectionError, http.client.HTTPException):
        return 0, None


def test_an_answer_comes_in_one_piece(server):
    """Its head and its body: a client that waits for it wakes up once."""
    with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
        for _ in range(20):
            connection.sendall(request_of("/predict", {"run": "mood", "inputs": ["good film"]}))
            head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
            assert int(re.search(rb"content-length: (\d+)", head)[1]) == len(body)


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_sigterm_loses_nothing_that_was_asked_before(runs, times):
    """32 clients have sent their requests: over connections that stood open, that are new, and one only half of it.

    At once comes the signal, so that some are being answered, some wait, some are not read and some not even accepted.
    """
    asked = {"model": "text", "prompt": "7 green", "max_tokens": 64, "temperature": 0}
    sent = request_of("/v1/completions", asked)
    for turn in range(times):
        server = Server(runs, "--seconds", "300", "--header-seconds", "60")  # however busy the machine is
        with ExitStack() as stack:

            def connect(server=server, stack=stack):
                return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 300))

            old = [connect() for _ in range(16)]
            for connection in old:
                connection.sendall(request_of("/v1/completions", asked | {"max_tokens": 1}))
            assert [read_answer(connection)[0] for connection in old] == [200] * 16
            new = [connect() for _ in range(16 - turn % 16)]
            for connection in [*old, *new[1:]]:
                connection.sendall(sent)
            new[0].sendall(sent[:40])
            late = [connect() for _ in range(turn % 16)]  # these are not accepted yet
            for connection in late:
                connection.sendall(sent)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            new[0].sendall(sent[40:])
            answers = [read_answer(connection) for connection in [*old, *new, *late]]
        assert [status for status, _ in answers] == [200] * 32
        assert len({body["choices"][0]["text"] for _, body in answers}) == 1
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", server.port), 1)
        assert server.process.wait(60) == 0
        assert server.stop().endswith("stopped; what was in flight is answered\n")
    tell(f"{times} signals with 32 requests sent before each, all answered")


@pytest.mark.soak
def test_four_times_too_many_are_refused_at_once_and_the_others_keep_their_time(runs):
    """512 inputs may wait: 8 clients with 64 each fill that, 32 ask for four times as much."""
    server = Server(runs)

    sent = request_of("/predict", {"run": "mood", "inputs": ["good film"] * 64})

    def ask(until):
        found = []
        with socket.create_connection(("127.0.0.1", server.port), 60) as connection:
            while time.monotonic() < until:
                begun = time.monotonic()
                connection.sendall(sent)
                status, _ = read_answer(connection)
                found.append((status, time.monotonic() - begun))
                if status == 429:
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
    refusal, time_alone, time_then = map(statistics.median, (refused, alone, accepted))
    tell(f"refused in {refusal:.3f} s; accepted in {time_then:.3f} s, without overload in {time_alone:.3f} s")
    assert refusal < 0.1
    assert time_then < 2 * time_alone


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
        answered = sum(client.result() for client in clients)
    server.stop()
    tell(f"{answered:,} answers; {sizes[2]:,} kB after 90 s, at most {max(sizes[2:]):,} kB later")
    assert answered > 1000
    assert max(sizes[2:]) < 1.05 * sizes[2]
