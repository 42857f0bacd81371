"""What goes over the socket: JSON-RPC 2.0, one message a line, in both directions.

A client calls verbs and gets answers; meanwhile the engine may send it events of the call
(`event`), and call back (`ask`). Errors carry the code, so that the same class is raised again.
"""

from __future__ import annotations

import json
from collections import deque

from cellwright.errors import CellConflict, CellwrightError, Conflict, InvalidCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

VERSION = 1
"""Of the messages; client and engine must have the same."""

MAX_FRAME = 256 * 2**20
"""The longest line that the engine takes; a longer one is refused, and read over."""


class Frames:
    """Cuts what is read into lines; one that is too long is dropped while it comes."""

    def __init__(self, most: int = MAX_FRAME) -> None:
        self._most = most
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._is_dropping = False

    def feed(self, chunk: bytes) -> None:
        """Take what was read."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            self._lines.append(_TOO_LONG if self._is_dropping else b"".join(self._parts))
            self._parts, self._size, self._is_dropping = [], 0, False
        self._add(rest)

    def next(self) -> bytes | None:
        """The next line that is whole, without its end; None if there is none yet."""
        return self._lines.popleft() if self._lines else None

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            self._parts, self._is_dropping = [], True
        elif part:
            self._parts.append(part)


# No JSON; whoever decodes it says what is wrong.
_TOO_LONG = b"\xff"


def encode(message: Message) -> bytes:
    """A message as a line; anything that a string can hold survives."""
    return json.dumps(message, separators=(",", ":"), allow_nan=True).encode() + b"\n"


def decode(line: bytes) -> Message:
    """A line as a message.

    Raises:
        InvalidCall: it is not a JSON object.
    """
    if line == _TOO_LONG:
        raise InvalidCall("a message is too long")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidCall("a message is not JSON") from None
    if not isinstance(message, dict):
        raise InvalidCall("a message is not an object")
    return message


def request(number: int | str, method: str, params: Message) -> Message:
    """A call, to be answered under its number."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: int | str, verb: str, params: Message, *, can_ask: bool, listens: bool) -> Message:
    """A call of a verb, with what the engine has to know about the caller besides."""
    aside = {**({"can_ask": True} if can_ask else {}), **({} if listens else {"silent": True})}
    return request(number, verb, {**params, **aside})


def notification(method: str, params: Message) -> Message:
    """Something to know, with no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def answer(number: int | str, result: Any) -> Message:
    """What a call came to."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def failure(number: int | str | None, error: CellwrightError) -> Message:
    """Why a call came to nothing."""
    return {"jsonrpc": "2.0", "id": number, "error": describe(error)}


_NUMBERS = {"INVALID_CALL": -32600}
_OURS = -32000


def describe(error: CellwrightError) -> Message:
    """An error as JSON-RPC has it, with all that is needed to raise it again."""
    facts: Message = {"code": error.code, "hint": error.hint, "retryable": error.retryable}
    facts["state"] = {
        name: value
        for name, value in vars(error).items()
        if name not in ("message", "hint", "cells") and _is_plain(value)
    }
    if isinstance(error, Conflict):
        facts["cells"] = [_conflict_to_json(cell) for cell in error.cells]
    return {"code": _NUMBERS.get(error.code, _OURS), "message": error.message, "data": facts}


def restore(shape: Message) -> CellwrightError:
    """The error that was described, as one to raise."""
    facts = shape.get("data") or {}
    code = facts.get("code")
    # The first that has the code: a class further down may share it.
    kind = next((each for each in _tree(CellwrightError) if each.code == code), CellwrightError)
    state = {
        **facts.get("state", {}),
        "message": str(shape.get("message")),
        "hint": facts.get("hint"),
    }
    if issubclass(kind, Conflict):
        state["cells"] = tuple(CellConflict(**cell) for cell in facts.get("cells", ()))
    return kind.restored(state)


def _tree(kind: type[CellwrightError]) -> list[type[CellwrightError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _tree(child))]


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def _conflict_to_json(cell: CellConflict) -> Message:
    names = ("handle", "index", "reason", "base", "current", "other")
    return {name: getattr(cell, name) for name in names}
