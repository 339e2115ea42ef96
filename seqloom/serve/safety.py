"""What stands before every route: who may ask, how, how much and for how long; and when nobody waits any more.

Servers of this kind were broken by pages of other sites that ask a local address, by parsers for anything but JSON, by
endless bodies and headers, and by work that went on after its client had left. Knows no route.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .answers import Answer, error_response, name_request, wait_until_left
from .bodies import JSON, read_body
from .limits import Limits, Refused
from .metrics import Metrics

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
            body = await read_body(scope["method"], headers, receive, self.limits, self.check_room)
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

    async def _watch(self, scope: Scope, body: bytes, receive: Receive, answer: "Answer") -> None:
        """Let the routes answer; if the client leaves or the time is over, the work is cancelled where it stands."""
        replayed, answered, gone = False, False, asyncio.create_task(wait_until_left(receive))

        async def replay() -> Message:
            nonlocal replayed
            if replayed:
                await asyncio.Event().wait()  # the watch is the only one who hears of the client
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        def leave(_: "asyncio.Task[None]") -> None:
            if not answered:
                clock.reschedule(0)  # so its time is over now

        gone.add_done_callback(leave)
        try:
            async with asyncio.timeout(self.limits.seconds) as clock:
                await self.app(scope, replay, answer.send)
        except TimeoutError:
            if not clock.expired():
                raise
            if not gone.done():
                sentence = f"the answer took more than {self.limits.seconds:g} seconds"
                raise Refused(503, "time", sentence, 5) from None
            self.metrics.count("refusals", reason="left")
        finally:
            answered = True
            gone.cancel()


def host_of(header: str) -> str:
    """The host of a Host header, without its port: `[::1]:8000` → `::1`."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def route_of(scope: Scope) -> str:
    """The pattern of the route, so that names do not become labels."""
    return str(getattr(scope.get("route"), "path", "none"))
