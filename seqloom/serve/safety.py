"""What stands before every route: who may ask, how, how much and for how long; and when nobody waits any more.

Servers of this kind were broken by pages of other sites that ask a local address, by parsers for anything but JSON, by
endless bodies and headers, and by work that went on after its client had left. Knows no route.
"""

import asyncio
import json
import re
import secrets
from collections.abc import Collection, Iterator
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits, Refused
from .metrics import Metrics

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
JSON = "application/json"
REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
LARGEST = 1 << 63  # of a whole number
LOCAL = ("localhost", "127.0.0.1", "::1")


class Guard:
    """The outermost layer of the server."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        hosts: Collection[str] = LOCAL,
        token: str = "",
        public: Collection[str] = (),
    ) -> None:
        """`public` are paths that need no token: the files of the page, which asks for it."""
        self.app, self.limits, self.metrics, self.public = app, limits, metrics, public
        self.hosts, self.token = {host.lower() for host in hosts}, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(send, request_id(scope))
        try:
            headers = self._check_headers(scope)
            body = await self._read_body(scope["method"], headers, receive)
            if "content-type" not in headers:  # Triton's client sends none
                scope = {**scope, "headers": [*scope["headers"], (b"content-type", JSON.encode())]}
            await self._watch(scope, body, receive, answer)
        except Refused as error:
            self.metrics.count("refusals", reason=error.reason)
            if not answer.begun:
                await error_response(scope["path"], error)(scope, receive, answer.send)
        finally:
            self.metrics.count("requests", route=route_of(scope), status=str(answer.status))

    def _check_headers(self, scope: Scope) -> dict[str, str]:
        found: list[tuple[bytes, bytes]] = scope["headers"]
        if len(found) > self.limits.headers:
            raise Refused(431, "headers", f"{len(found)} headers are sent, and at most {self.limits.headers} are read")
        asked = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if asked + sum(len(name) + len(value) for name, value in found) > self.limits.head:
            raise Refused(431, "headers", f"the path and the headers have more than {self.limits.head:,} bytes")
        if sum(name.lower() == b"host" for name, _ in found) != 1:
            raise Refused(400, "host", "a request has one Host header")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in found}
        if host_of(headers["host"]) not in self.hosts:
            raise Refused(421, "host", "the Host header names a machine that this server does not answer for (--allow)")
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin", "")
        if site not in ("none", "same-origin") or (origin and host_of(origin.partition("://")[2]) not in self.hosts):
            raise Refused(403, "origin", "pages of other sites may not ask this server")
        given = headers.get("authorization", "").encode("latin-1")
        if (
            self.token
            and scope["path"] not in self.public
            and not secrets.compare_digest(given, b"Bearer " + self.token)
        ):
            raise Refused(401, "token", "this server wants its token: Authorization: Bearer TOKEN")
        return headers

    async def _read_body(self, method: str, headers: dict[str, str], receive: Receive) -> bytes:
        """All of it, which has to be JSON; of what only reads, nothing."""
        if method not in ("POST", "DELETE", "GET", "HEAD"):
            raise Refused(405, "method", f"{method[:20]} is no method of this server")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.limits.body:
            raise Refused(413, "body", f"a body has at most {self.limits.body:,} bytes")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "encoding", "bodies are sent as they are, without Content-Encoding")
        try:
            async with asyncio.timeout(self.limits.header_seconds):
                body = await self._receive_all(receive)
        except TimeoutError:
            raise Refused(408, "slow", f"the body took more than {self.limits.header_seconds:g} seconds") from None
        if method != "POST":
            if body:
                raise Refused(400, "body", f"a {method} request has no body")
            return body
        # A page can send a body without a type and without asking first, but not without saying that it is a page.
        plain = not {"origin", "sec-fetch-site", "referer"} & headers.keys()
        said = headers.get("content-type", JSON if plain else "")
        if said.partition(";")[0].strip().lower() != JSON:
            raise Refused(415, "type", f"only JSON is read: Content-Type: {JSON}")
        check_json(body, self.limits.depth)
        return body

    async def _receive_all(self, receive: Receive) -> bytes:
        chunks, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refused(400, "left", "the client left before its request was complete")
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self.limits.body:
                raise Refused(413, "body", f"a body has at most {self.limits.body:,} bytes")
            if not message.get("more_body"):
                return b"".join(chunks)

    async def _watch(self, scope: Scope, body: bytes, receive: Receive, answer: "Answer") -> None:
        """Let the routes answer; if the client leaves or the time is over, the work is cancelled where it stands."""
        given = asyncio.Event()

        async def replay() -> Message:
            if given.is_set():
                await asyncio.Event().wait()  # the watch below is the only one who hears of the client
            given.set()
            return {"type": "http.request", "body": body, "more_body": False}

        work = asyncio.ensure_future(self.app(scope, replay, answer.send))
        gone = asyncio.create_task(until_left(receive))
        try:
            await asyncio.wait([work, gone], timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            elif gone.done():
                self.metrics.count("refusals", reason="left")
            else:
                raise Refused(503, "time", f"the answer took more than {self.limits.seconds:g} seconds", 5)
        finally:
            for task in (work, gone):
                task.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)


class Answer:
    """What is sent, with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._id, self.status, self.begun = send, request_id, 0, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            known = {name for name, _ in message["headers"]}
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in known]
            message = {**message, "headers": [*message["headers"], *more, (b"x-request-id", self._id.encode())]}
        await self._send(message)


async def until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def request_id(scope: Scope) -> str:
    """The client's own name for the request, if it is a plain one, or a new one."""
    given = next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-request-id"), "")
    return given if REQUEST_ID.fullmatch(given) else f"req-{secrets.token_hex(12)}"


def host_of(header: str) -> str:
    """The host of a Host header, without its port: `[::1]:8000` → `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def route_of(scope: Scope) -> str:
    """The pattern of the route, so that names do not become labels."""
    return str(getattr(scope.get("route"), "path", "none"))


def check_json(body: bytes, depth: int) -> None:
    """Refuse what is no plain JSON: NaN, numbers beyond 64 bits, deep nesting, half a surrogate pair."""
    try:
        for value, level in walk(json.loads(body.decode("utf-8"), parse_constant=refuse_constant)):
            if level > depth:
                raise Refused(400, "json", f"the JSON is nested more than {depth} deep")
            if isinstance(value, float) and value - value != 0:
                raise ValueError("a number is too large")
            if isinstance(value, int) and abs(value) >= LARGEST:
                raise ValueError("a whole number is beyond 64 bits")
            if isinstance(value, str):
                value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(400, "json", "the JSON holds half of a surrogate pair, which is no text") from None
    except RecursionError:
        raise Refused(400, "json", f"the JSON is nested more than {depth} deep") from None
    except ValueError as error:
        raise Refused(400, "json", f"the body is no JSON: {str(error)[:120]}") from None


def refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def walk(value: Any) -> Iterator[tuple[Any, int]]:
    """Every value and every key, with how deep it stands."""
    waiting = [(value, 1)]
    while waiting:
        found, level = waiting.pop()
        yield found, level
        if isinstance(found, dict):
            waiting += [(one, level + 1) for pair in found.items() for one in pair]
        elif isinstance(found, list):
            waiting += [(one, level + 1) for one in found]


def error_response(path: str, error: Refused) -> JSONResponse:
    """A refusal as the protocol of the path says it: a sentence, or OpenAI's object."""
    headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if not path.startswith("/v1/"):
        return JSONResponse({"error": str(error)}, error.status, headers)
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(error.status, kind)
    told = {"message": str(error), "type": kind, "param": None, "code": error.reason.replace(" ", "_")}
    return JSONResponse({"error": told}, error.status, headers)
