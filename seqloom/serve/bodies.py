"""The body of a request: all of it, no more than is allowed, in time, and plain JSON."""

import asyncio
from collections.abc import Callable, Mapping

from starlette.types import Receive

from .json_check import check_json
from .limits import Limits, Refused

JSON = "application/json"


async def read_body(
    method: str, headers: Mapping[str, str], receive: Receive, limits: Limits, check_room: Callable[[], None]
) -> bytes:
    """All of it, which has to be JSON; of what only reads, nothing."""
    if method not in ("POST", "DELETE", "GET", "HEAD"):
        raise Refused(405, "method", f"{method[:20]} is no method of this server")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > limits.body:
        raise Refused(413, "body", f"a body has at most {limits.body:,} bytes")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "encoding", "bodies are sent as they are, without Content-Encoding")
    try:
        async with asyncio.timeout(limits.header_seconds):
            body = await receive_all(receive, limits.body)
    except TimeoutError:
        raise Refused(408, "slow", f"the body took more than {limits.header_seconds:g} seconds") from None
    if method != "POST":
        if body:
            raise Refused(400, "body", f"a {method} request has no body")
        return body
    check_room()
    # A page can send a body without a type and without asking first, but not without saying that it is a page.
    plain = not {"origin", "sec-fetch-site", "referer"} & headers.keys()
    content_type = headers.get("content-type", JSON if plain else "")
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise Refused(415, "type", f"only JSON is read: Content-Type: {JSON}")
    check_json(body, limits.depth)
    return body


async def receive_all(receive: Receive, most: int) -> bytes:
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "left", "the client left before its request was complete")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > most:
            raise Refused(413, "body", f"a body has at most {most:,} bytes")
        if not message.get("more_body"):
            return b"".join(chunks)
