"""As much of HTTP/1.1 as the tool bridge needs: one request, one answer, a connection each."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_BODY = 8 * 2**20
_MOST_HEADERS = 16 * 2**10
_DIGITS = frozenset("0123456789")


class BadRequest(Exception):
    """A request that is refused before anything is done."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked; names of headers are in small letters."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def bearer(self) -> str:
        """The token that came with it; empty if there is none."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""


async def read_request(reader: asyncio.StreamReader, check: Callable[[Request], None]) -> Request:
    """Read a request; `check` sees it before its body is read, and may refuse it.

    Raises:
        BadRequest: it is no request, too long, or was refused.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "TOO_LONG", "The headers are too long"
        ) from None
    if len(head) > _MOST_HEADERS:
        raise BadRequest(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "TOO_LONG", "The headers are too long"
        )
    request = _parse(head.decode("latin-1"))
    check(request)
    if "transfer-encoding" in request.headers:
        raise BadRequest(HTTPStatus.LENGTH_REQUIRED, "NO_LENGTH", "Give a Content-Length")
    length = request.headers.get("content-length", "0")
    if not length or not _DIGITS.issuperset(length):
        raise _bad("Content-Length is no number")
    if len(length) > 12 or int(length) > MOST_BODY:
        raise BadRequest(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "TOO_LONG", f"More than {MOST_BODY:,} bytes"
        )
    body = await reader.readexactly(int(length))
    return Request(request.method, request.target, request.headers, body)


def _parse(head: str) -> Request:
    first, *lines = head[:-4].split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _bad("This is no HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise _bad("A header is broken, or there twice")
        headers[name.lower()] = value.strip()
    return Request(words[0], unquote(words[1].partition("?")[0]), headers)


def _bad(message: str) -> BadRequest:
    return BadRequest(HTTPStatus.BAD_REQUEST, "BAD_REQUEST", message)


async def write_answer(
    writer: asyncio.StreamWriter, status: HTTPStatus, value: dict[str, Any]
) -> None:
    """Answer with JSON, and say that the connection ends with it."""
    body = json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
