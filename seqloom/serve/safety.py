"""What stands before every route: who may ask, how, how much and for how long; and when nobody waits any more.

Servers of this kind were broken by pages of other sites that ask a local address, by parsers for anything but JSON, by
endless bodies and headers, and by work that went on after its client had left. Knows no route.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .answers import Answer, error_response, name_request, until_left
from .json_check import check_json
from .limits import Limits, Refused
from .metrics import Metrics

JSON = "application/json"
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
        check_room: Callable[[], None] = lambda: None,
    ) -> None:
        """`public` are paths that need no token: the files of the page, which asks for it.

        `check_room` refuses work that cannot be taken now; it is asked before a body is looked into, so that to refuse
        is cheap when there is no time.
        """
        self.app, self.limits, self.metrics, self.public = app, limits, metrics, public
        self.check_room = check_room
        self.hosts, self.token = {host.lower() for host in hosts}, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = Answer(send, name_request(scope))
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
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        if len(pairs) > self.limits.headers:
            raise Refused(431, "headers", f"{len(pairs)} headers are sent, and at most {self.limits.headers} are read")
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in pairs) > self.limits.head:
            raise Refused(431, "headers", f"the path and the headers have more than {self.limits.head:,} bytes")
        if sum(name.lower() == b"host" for name, _ in pairs) != 1:
            raise Refused(400, "host", "a request has one Host header")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}
        if host_of(headers["host"]) not in self.hosts:
            raise Refused(421, "host", "the Host header names a machine that this server does not answer for (--allow)")
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin", "")
        if site not in ("none", "same-origin") or (origin and host_of(origin.partition("://")[2]) not in self.hosts):
            raise Refused(403, "origin", "pages of other sites may not ask this server")
        authorization = headers.get("authorization", "").encode("latin-1")
        if (
            self.token
            and scope["path"] not in self.public
            and not secrets.compare_digest(authorization, b"Bearer " + self.token)
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
        self.check_room()
        # A page can send a body without a type and without asking first, but not without saying that it is a page.
        plain = not {"origin", "sec-fetch-site", "referer"} & headers.keys()
        content_type = headers.get("content-type", JSON if plain else "")
        if content_type.partition(";")[0].strip().lower() != JSON:
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
        answered = asyncio.Event()

        async def replay() -> Message:
            if answered.is_set():
                await asyncio.Event().wait()  # the watch below is the only one who hears of the client
            answered.set()
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


def host_of(header: str) -> str:
    """The host of a Host header, without its port: `[::1]:8000` → `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def route_of(scope: Scope) -> str:
    """The pattern of the route, so that names do not become labels."""
    return str(getattr(scope.get("route"), "path", "none"))
