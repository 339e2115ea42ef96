"""The web server around the application: it hears slow clients, and on SIGTERM answers all that was asked before."""

import asyncio
import select
import socket
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from .limits import Limits

ROUNDS = 5  # of the event loop, from a connection that the system holds to one whose requests are read
DRAIN_SECONDS = 1.0  # the most that connections are still taken in for; some clients never cease to come


class JoinedTransport:
    """A transport that sends in one go what is written in one turn of the event loop.

    uvicorn writes the head of an answer and its body apart: two calls of the system, and the client wakes up twice.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held:
            self._transport.write(b"".join(self._held))
            self._held.clear()


class Protocol(H11Protocol):
    """HTTP/1.1, for clients that finish their headers in time: uvicorn itself would wait for ever."""

    header_seconds = Limits.header_seconds
    _ending = False  # whether the next answer is the last one
    _partial = False  # whether a request has begun whose headers are not complete

    def connection_made(self, transport) -> None:  # type: ignore[no-untyped-def]
        super().connection_made(JoinedTransport(transport, self.loop))  # type: ignore[arg-type]
        self._late = self.loop.call_later(self.header_seconds, self._hang_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._partial = self.conn.their_state is h11.IDLE
        if not self._partial:  # the headers are there
            self._late.cancel()
            if self._ending:
                super().shutdown()
        elif self._late.cancelled():
            self._late = self.loop.call_later(self.header_seconds, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End with the answer under way. uvicorn hangs up where none is, even on a request that it has not read."""
        idle = self.cycle is None or self.cycle.response_complete
        if idle and not self.transport.is_closing() and (self._partial or self._has_unread()):
            self._ending = True  # and if the rest never comes, `_hang_up` does
        else:
            super().shutdown()

    def _has_unread(self) -> bool:
        """Whether the client has sent what the event loop has not handed over yet."""
        return bool(list_readable([self.transport.get_extra_info("socket")]))

    def _hang_up(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.close()


class Server(uvicorn.Server):
    """It ends on SIGTERM after all that clients have asked is answered, also what the system still held back."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._take_in()
        await super().shutdown(sockets)

    async def _take_in(self) -> None:
        """Accept the connections that wait: to close the door on them would reset them, whatever they have sent."""
        until, quiet = asyncio.get_running_loop().time() + DRAIN_SECONDS, 0
        while quiet < ROUNDS and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0)
            quiet = 0 if any(list_readable(list(server.sockets)) for server in self.servers) else quiet + 1


def list_readable(sockets: list[socket.socket]) -> list[socket.socket]:
    """The sockets with unread data."""
    poll = select.poll()  # select() refuses files beyond its thousandth
    places = {one.fileno(): one for one in sockets}
    for place in places:
        poll.register(place, select.POLLIN)
    return [places[place] for place, _ in poll.poll(0)]


def create_server(app: ASGIApp, limits: Limits, host: str, port: int) -> Server:
    protocol = type("Protocol", (Protocol,), {"header_seconds": limits.header_seconds})
    return Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=protocol,
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=int(limits.seconds) + 1,
        )
    )
