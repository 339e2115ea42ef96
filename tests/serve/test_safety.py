"""Who may ask, how and how much: attacks made by hand against a real server, each refused in under a second."""

import json
import socket
import threading
import time

import pytest

from seqloom.serve.json_check import check_json
from seqloom.serve.limits import Limits, Refused
from seqloom.serve.safety import host_of

OK = json.dumps({"run": "mood", "inputs": ["a good film"]}).encode()


def request(body: bytes = OK, *lines: str, method: str = "POST", path: str = "/predict", length: str = "") -> bytes:
    """A request as bytes; lines named like one of the usual headers take its place."""
    usual = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": length or str(len(body))}
    given = [line.partition(":")[0].lower() for line in lines]
    head = [f"{name}: {value}" for name, value in usual.items() if name.lower() not in given]
    return (
        "\r\n".join([f"{method} {path} HTTP/1.1", *head, *lines, "Connection: close", "", ""]).encode("latin-1") + body
    )


def send(server, *pieces: bytes, pause: float = 0.0) -> tuple[int, bytes, float]:
    """The status, the answer and how long it took; status 0 if the server hung up."""
    begun = time.monotonic()
    answer = b""
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.settimeout(5)
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            while more := connection.recv(65536):
                answer += more
        except (ConnectionError, BrokenPipeError):
            pass  # it has hung up while we were still sending
    status = int(answer.split()[1]) if answer else 0
    return status, answer, time.monotonic() - begun


def deep(levels: int) -> bytes:
    return b'{"run":"mood","inputs":[' + b"[" * levels + b"]" * levels + b"]}"


ATTACKS = {
    # who asks
    "another host": (request(OK, "Host: evil.example"), 421),
    "another host with our port": (request(OK, "Host: evil.example:8000"), 421),
    "a host that begins like ours": (request(OK, "Host: localhost.evil.example"), 421),
    "a host in user information": (request(OK, "Host: 127.0.0.1@evil.example"), 421),
    "two hosts": (request(OK, "Host: 127.0.0.1", "Host: evil.example"), 400),
    "no host": (request(OK, "host:"), 421),
    "the page of another site": (request(OK, "Origin: http://evil.example"), 403),
    "a sandboxed page": (request(OK, "Origin: null"), 403),
    "a cross-site fetch": (request(OK, "Sec-Fetch-Site: cross-site"), 403),
    "another port's page": (request(OK, "Sec-Fetch-Site: same-site"), 403),
    "a preflight": (request(b"", "Origin: http://evil.example", method="OPTIONS"), 403),
    # how
    "a form": (request(b"run=mood", "Content-Type: application/x-www-form-urlencoded"), 415),
    "multipart": (request(b"--x\r\n\r\n--x--", "Content-Type: multipart/form-data; boundary=x"), 415),
    "plain text": (request(OK, "Content-Type: text/plain"), 415),
    "a page without a type": (request(OK, "Content-Type:", "Origin: http://127.0.0.1"), 415),
    "gzip": (request(OK, "Content-Encoding: gzip"), 415),
    "trace": (request(b"", method="TRACE"), 405),
    "connect": (request(b"", method="CONNECT", path="evil.example:80"), (400, 404, 405)),
    "put": (request(OK, method="PUT"), 405),
    "no http": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n", 400),
    "a header without a colon": (request(OK, "nothing"), 400),
    "a NUL in a header": (request(OK, "X-A: a\x00b"), 400),
    "two lengths": (request(OK, "Content-Length: 5", f"Content-Length: {len(OK)}"), 400),
    "smuggling": (request(b"0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked, identity"), (400, 501)),
    "a body with GET": (request(OK, method="GET", path="/runs"), 400),
    "websocket": (request(b"", "Upgrade: websocket", "Connection: Upgrade", method="GET", path="/nowhere"), 404),
    # how much
    "10 MB": (request(b"x" * (10 << 20)), 413),
    "10 MB announced": (request(b"", length=str(10 << 20)), 413),
    "a negative length": (request(b"", length="-1"), 400),
    "a length of 30 digits": (request(b"", length="9" * 30), (400, 413)),
    "300 headers": (request(OK, *(f"X-{number}: a" for number in range(300))), 431),
    "a header of 100 kB": (request(OK, "X-A: " + "a" * 100_000), (400, 431)),
    "a path of 100 kB": (request(b"", method="GET", path="/" + "a" * 100_000), (400, 431)),
    "a path of 10 kB": (request(b"", method="GET", path="/runs/" + "a" * 10_000), 404),
    # what
    "no JSON": (request(b"{"), 400),
    "nothing": (request(b""), 400),
    "no UTF-8": (request(b'{"run": "\xff"}'), 400),
    "NaN": (request(b'{"run":"walk","inputs":[[[NaN, 1]]]}'), 400),
    "infinity": (request(b'{"run":"walk","inputs":[[[1e999, 1]]]}'), 400),
    "a number of 5,000 digits": (request(b'{"run":"walk","inputs":[' + b"9" * 5000 + b"]}"), 400),
    "a number of 100 digits": (request(b'{"run":"walk","inputs":[' + b"9" * 100 + b"]}"), 400),
    "half a surrogate pair": (request(rb'{"run":"mood","inputs":["\ud800"]}'), 400),
    "half of one in a key": (request(rb'{"\ud800":1}'), 400),
    "50 levels": (request(deep(50)), 400),
    "100,000 levels": (request(deep(100_000)), 400),
    "a megabyte of brackets": (request(b"[" * (1 << 20)), 400),
    "a field of ours": (request(b'{"run":"mood","inputs":["a"],"__class__":"x"}'), 400),
    "another type": (request(b'[{"run":"mood"}]'), 400),
    # where
    "traversal": (request(b"", method="GET", path="/runs/../../../etc/passwd"), 404),
    "encoded traversal": (request(b"", method="GET", path="/runs/..%2f..%2f..%2fetc%2fpasswd"), 404),
    "traversal in a model": (request(b"", method="GET", path="/v2/models/..%2Ftext"), 404),
    "traversal in JSON": (request(b'{"run":"../text","inputs":["a"]}'), 404),
    "an absolute run": (request(b'{"run":"/etc","inputs":["a"]}'), 404),
    "a URL as a run": (request(b'{"run":"http://evil.example/","inputs":["a"]}'), 404),
    "a NUL in a run": (request(rb'{"run":"mood\u0000","inputs":["a"]}'), 404),
    "a URL in the request line": (request(b"", method="GET", path="http://evil.example/runs"), (200, 400, 404, 421)),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_in_under_a_second(server, name):
    data, expected = ATTACKS[name]
    status, answer, seconds = send(server, data)
    allowed = expected if isinstance(expected, tuple) else (expected,)
    # A server that refuses before it has read all may hang up while the client is still sending.
    assert status in allowed or (status == 0 and len(data) > 1 << 19), answer[:300]
    assert seconds < 1
    assert b"Traceback" not in answer and b"root:" not in answer
    assert send(server, request())[0] == 200  # and the next one is served


def test_lists_of_ranges_are_no_matter(server):
    many = "Range: bytes=" + ",".join(f"{number}-" for number in range(1000))
    status, answer, seconds = send(server, request(b"", many, method="GET", path="/static/style.css"))
    assert status == 200 and len(answer) < 20_000 and seconds < 1


def test_slow_headers_are_cut_off(server):
    """The server of these tests waits 0.8 seconds for a request to be complete."""
    status, _, seconds = send(server, b"POST /predict HTTP/1.1\r\n", *[b"X-A: a\r\n"] * 12, pause=0.15)
    assert status in (0, 408) and seconds < 3
    status, _, seconds = send(server)  # or says nothing at all
    assert status == 0 and seconds < 2


def test_slow_headers_are_cut_off_after_a_good_request_too(server):
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.sendall(request().replace(b"Connection: close\r\n", b""))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with pytest.raises(ConnectionError):
            for _ in range(30):
                connection.sendall(b"X-A: a\r\n" if _ else b"GET /runs HTTP/1.1\r\n")
                time.sleep(0.1)


def test_slow_and_endless_bodies_are_cut_off(server):
    head = request(b"", "Transfer-Encoding: chunked", length="0").replace(b"Content-Length: 0\r\n", b"")
    status, _, seconds = send(server, head, *[b"1\r\n \r\n"] * 12, pause=0.1)
    assert status in (0, 408) and seconds < 3
    begun = time.monotonic()
    status, _, _ = send(server, head, *[b"10000\r\n" + b" " * 65536 + b"\r\n"] * 100)
    assert status in (0, 413) and time.monotonic() - begun < 2


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost:1234", "[::1]", "[::1]:80"])
def test_names_of_this_machine_are_allowed(server, host):
    assert send(server, request(OK, f"Host: {host}"))[0] == 200


def test_every_answer_is_guarded(client):
    for answer in (client.get("/"), client.get("/runs"), client.get("/nowhere"), client.post("/predict", content=b"{")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers


def test_a_request_may_have_a_name_of_its_own(client):
    assert client.get("/v2", headers={"x-request-id": "my-1"}).headers["x-request-id"] == "my-1"
    assert client.get("/v2", headers={"x-request-id": "a b\tc"}).headers["x-request-id"].startswith("req-")


def test_a_token_is_asked_for(serving):
    client = serving(token="secret")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}, {"authorization": "Bearer é"}):
        encoded = {name: value.encode("utf-8") for name, value in headers.items()}
        for path in (
            "/runs",
            "/runs/text/records",
            "/docs",
            "/static/../runs",
            "/metrics",
            "/v2/health/live",
            "/openapi.json",
        ):
            answer = client.get(path, headers=encoded)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/runs", headers={"authorization": "Bearer secret"}).status_code == 200
    for path in ("/", "/static/main.js", "/static/style.css"):  # the page, which asks for the token, is everybody's
        assert client.get(path).status_code == 200
    assert client.get("/v1/models").json()["error"]["type"] == "authentication_error"


def test_a_full_queue_refuses_before_it_looks_into_the_body(serving):
    client = serving(queue=0)
    answer = client.post("/predict", content=b"{" * 1000, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert client.get("/runs").status_code == 200  # what only reads is answered


def test_what_takes_too_long_is_given_up(serving, monkeypatch):
    from seqloom.serve import explaining

    client, released = serving(seconds=0.5), threading.Event()
    monkeypatch.setattr(explaining, "explain", lambda *arguments: released.wait() and {})
    answer = client.post("/explain", json={"run": "mood", "input": "a"})
    assert (
        answer.status_code == 503 and answer.headers["retry-after"] == "5" and "0.5 seconds" in answer.json()["error"]
    )
    released.set()  # only now; then the others are answered again
    asked = {"run": "mood", "inputs": ["a"]}
    assert any(client.post("/predict", json=asked).status_code == 200 for _ in range(20))


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ((300, 1, 1, 1), "inputs is 300"),
        ((1, 17, 1, 1), "count is 17"),
        ((1, 1, 17, 1), "beam is 17"),
        ((1, 1, 1, 513), "tokens is 513"),
        ((256, 1, 1, 257), "65,792 steps"),
        ((16, 16, 1, 512), "steps"),
        ((10, 2, 8, 512), "steps"),
    ],
)
def test_the_product_of_all_that_multiplies_is_capped(asked, says):
    with pytest.raises(Refused, match=says):
        Limits().check_work(*asked)
    Limits().check_work(8, 1, 16, 512)


def test_hosts_without_their_ports():
    assert [host_of(text) for text in ("A.b:80", "a.b", "[::1]:80", "[::1]", "")] == ["a.b", "a.b", "::1", "::1", ""]


def test_plain_json_is_let_through():
    check_json(json.dumps({"a": [1, -2.5, None, True, "é😀", {"b": []}]}).encode(), 32)
    check_json(deep(28), 32)


def test_what_takes_longer_than_a_request_may_is_put_together_once(serving, monkeypatch):
    """The charts' library, the first time ever on a busy machine: who asks again waits for the rest, not anew."""
    begun, over = [], threading.Event()

    def slow():
        begun.append(over.wait(30))
        return "vega"

    monkeypatch.setattr("seqloom.serve.site.read_library", slow)
    client = serving(seconds=0.2)
    assert client.get("/vega.js").status_code == 503
    threading.Timer(0.05, over.set).start()
    assert client.get("/vega.js").text == client.get("/vega.js").text == "vega"
    assert len(begun) == 1
