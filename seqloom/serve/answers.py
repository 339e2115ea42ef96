"""What every answer has: headers that guard it, a name, and for a refusal the form of its protocol."""

import re
import secrets

from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from .limits import Refused

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Answer:
    """What is sent, with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._id, self.status, self.begun = send, request_id, 0, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun, self.status = True, message["status"]
            known = {name for name, _ in message["headers"]}
            more = [(name, value) for name, value in HEADERS.items() if name not in known]
            message = {**message, "headers": [*message["headers"], *more, (b"x-request-id", self._id.encode())]}
        await self._send(message)


async def wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def name_request(scope: Scope) -> str:
    """The client's own name for the request, if it is a plain one, or a new one."""
    header = next((value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"x-request-id"), "")
    return header if REQUEST_ID.fullmatch(header) else f"req-{secrets.token_hex(12)}"


def error_response(path: str, error: Refused) -> JSONResponse:
    """A refusal as the protocol of the path says it: a sentence, or OpenAI's object."""
    headers = {"retry-after": str(error.retry_after)} if error.retry_after else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if not path.startswith("/v1/"):
        return JSONResponse({"error": str(error)}, error.status, headers)
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(error.status, kind)
    body = {"message": str(error), "type": kind, "param": None, "code": error.reason.replace(" ", "_")}
    return JSONResponse({"error": body}, error.status, headers)
