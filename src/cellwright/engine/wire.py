"""What goes over the socket: JSON-RPC 2.0, one message a line, in both directions.

A client calls verbs and gets answers; meanwhile the engine may send it events of the call
(`event`), and call back (`ask`). Errors carry the code, so that the same class is raised again.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections import deque
from typing import Any, NamedTuple

from cellwright.document.costs import GarbagePause
from cellwright.errors import (
    CellConflict,
    CellwrightError,
    Conflict,
    EngineDraining,
    EngineUnavailable,
    InvalidCall,
)
from cellwright.workspace.api.values import Value, to_members, to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cellwright.workspace.api.requests import Request
    from cellwright.workspace.caller import Caller

    WireMessage = dict[str, Any]

VERSION = 2
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


_LARGE = 2**18
_MANY = 2000
_SHARE = 2**20

_BATCH = 64

# Not JSON; decoding it says what is wrong.
_TOO_LONG = b"\xff"

# Made once: `json.dumps` with settings makes an encoder for every call.
_to_text = json.JSONEncoder(separators=(",", ":"), default=to_members).encode


def encode(message: WireMessage) -> bytes:
    """A message as a line; anything that a string can hold survives."""
    return _to_text(message).encode() + b"\n"


def decode(line: bytes) -> WireMessage:
    """A line as a message.

    Raises:
        InvalidCall: it is not a JSON object.
    """
    if line == _TOO_LONG:
        raise InvalidCall("a message is too long")
    try:
        message = _decode_fast(line) if len(line) > _LARGE else json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidCall("a message is not JSON") from None
    if not isinstance(message, dict):
        raise InvalidCall("a message is not an object")
    return message


def is_large(value: Any) -> bool:
    """Whether a value takes so long to encode that other clients would notice."""
    room, left = _LARGE, [value]
    for _ in range(_MANY):
        if not left or room < 0:
            break
        each = left.pop()
        if isinstance(each, str):
            room -= len(each)
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, (list, tuple)):
            left += each
        elif isinstance(each, Value):
            left += vars(each).values()
    return bool(left) or room < 0


def encode_in_pieces(message: WireMessage) -> bytes:
    """A large message as a line, made in many steps: between them other threads have a turn."""
    if isinstance(answer := message.get("result"), Value):
        try:
            return b"".join(_encode_answer(message, answer))
        except (ImportError, UnicodeEncodeError, OverflowError):  # half a character, a huge number
            message = {**message, "result": to_plain(answer)}
    return b"".join([*_encode(message), b"\n"])


def _encode_answer(message: WireMessage, answer: Value) -> Iterator[bytes]:
    """The line of a typed answer with many rows, by msgspec, which is many times as fast.

    It writes NaN as null, so it is for nothing that may hold other people's numbers.
    """
    from msgspec.json import Encoder

    encode = Encoder(enc_hook=to_members).encode
    yield encode({**message, "result": 0})[:-2] + b"{"
    for number, (name, value) in enumerate(answer.list_members().items()):
        yield b"%b%b:" % (b"," if number else b"", encode(name))
        if isinstance(value, str):
            pieces = (value[at : at + _SHARE] for at in range(0, len(value), _SHARE))
            yield b'"%b"' % b"".join(encode(piece)[1:-1] for piece in pieces)
        elif isinstance(value, list):
            yield b"["
            for at in range(0, len(value), _BATCH):
                rows = value[at : at + _BATCH]
                text = getattr(rows[0], "TEXT", None)
                is_long = text is not None and sum(len(getattr(row, text)) for row in rows) > _SHARE
                yield b"," if at else b""
                yield (b"".join(_encode(to_plain(rows))) if is_long else encode(rows))[1:-1]
            yield b"]"
        else:
            yield encode(value)
    yield b"}}\n"


def _encode(value: Any) -> Iterator[bytes]:
    if isinstance(value, str) and len(value) > _SHARE:
        yield b'"'
        for start in range(0, len(value), _SHARE):
            yield json.dumps(value[start : start + _SHARE]).encode()[1:-1]
        yield b'"'
    elif isinstance(value, dict) and is_large(value):
        yield b"{"
        for number, (name, each) in enumerate(value.items()):
            yield b"%b%b:" % (b"," if number else b"", json.dumps(str(name)).encode())
            yield from _encode(each)
        yield b"}"
    elif isinstance(value, (list, tuple)) and is_large(value):
        yield b"["
        for start in range(0, len(value), _BATCH):
            part = value[start : start + _BATCH]
            pieces: Iterable[Iterable[bytes]] = map(_encode, part)
            if not is_large(part):  # together, since every step costs
                pieces = [[_to_text(part).encode()[1:-1]]]
            for number, piece in enumerate(pieces):
                if start or number:
                    yield b","
                yield from piece
        yield b"]"
    else:
        yield _to_text(value).encode()


def _decode_fast(line: bytes) -> Any:
    import msgspec

    try:
        with GarbagePause():
            return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return json.loads(line)  # it also takes lone surrogates


def make_call(number: int | str, method: str, params: WireMessage) -> WireMessage:
    """Return a call, to be answered under its number."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def make_notification(method: str, params: WireMessage) -> WireMessage:
    """Return a message that is not answered."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def make_answer(number: int | str, result: Any) -> WireMessage:
    """Return the answer to a call."""
    return {"jsonrpc": "2.0", "id": number, "result": result}


def make_failure(number: int | str | None, error: CellwrightError) -> WireMessage:
    """Return why a call failed."""
    return {"jsonrpc": "2.0", "id": number, "error": encode_error(error)}


# -- the client's side, without I/O -------------------------------------------------------------


class ClientWire:
    """What a client says and hears on one connection; under a blocking and an awaiting client."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._numbers = itertools.count(1)

    def write_call(self, method: str, params: WireMessage) -> tuple[int, bytes]:
        """Return the number of a new call, and the line to send.

        Raises:
            EngineUnavailable: the call is too long for the engine.
        """
        number = next(self._numbers)
        line = encode(make_call(number, method, params))
        if len(line) > MAX_FRAME:
            raise EngineUnavailable(f"a call of {len(line):,} bytes is too long for it")
        return number, line

    def write_request(self, request: Request[Any]) -> tuple[int, bytes]:
        """Return the number of a new call of a verb, and the line to send."""
        params = request.to_wire()
        if request.waits and hasattr(request, "progress"):
            if getattr(request, "ask", None) is not None:
                params["can_ask"] = True
            if request.progress is None:
                params["silent"] = True
            elif getattr(request.progress, "wants_all", False):
                params["whole"] = True
        return self.write_call(request.VERB, params)

    @staticmethod
    def write_stop(number: int) -> bytes:
        """Return the line that stops a call."""
        return encode(make_notification("stop", {"call": number}))

    @staticmethod
    def write_input(number: str, text: str | None) -> bytes:
        """Return the line that answers a question of the engine."""
        return encode(make_answer(number, text))

    def read(self, chunk: bytes) -> Iterator[EventMessage | Question | Answered]:
        """Take what was received, and return what it says.

        Raises:
            InvalidCall: it is not what an engine says.
        """
        self._frames.feed(chunk)
        while (line := self._frames.next()) is not None:
            message = decode(line)
            method, facts = message.get("method"), message.get("params", {})
            if method == "event":
                yield EventMessage(facts.pop("call"), facts)
            elif method == "ask":
                yield Question(message["id"], facts["call"], facts["prompt"], facts["password"])
            elif "id" in message:
                error = message.get("error")
                yield Answered(message["id"], message.get("result"), error and decode_error(error))


class EventMessage(NamedTuple):
    """Something that happened during a call."""

    call: int
    facts: dict[str, Any]


class Question(NamedTuple):
    """A question of the engine: a cell of a call asks for input."""

    id: str
    call: int
    prompt: str
    password: bool


class Answered(NamedTuple):
    """The end of a call: its result, or its error."""

    call: int
    result: Any
    error: CellwrightError | None


# -- the greeting -------------------------------------------------------------------------------

_HELLO: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("cwd", "mode", "actor"), (str,)),
    "root": (str, type(None)),
    "environ": (dict,),
    "folder": (list, type(None)),
    "wire": (int,),
}


def make_hello(caller: Caller) -> WireMessage:
    """Return what a client says first; of its secrets only the names, and the one that is for us."""
    from cellwright.kernel.environment import ADDRESSES, CLIENT_PYTHON

    environ, withheld = caller.build_environment()
    ours = {name: caller.environ[name] for name in ADDRESSES if name in caller.environ}
    return {
        "wire": VERSION,
        "cwd": caller.cwd,
        "folder": identify_file(caller.cwd),
        "root": caller.root,
        "mode": caller.mode,
        "actor": caller.actor,
        "environ": {**environ, **ours, CLIENT_PYTHON: sys.executable},
        "withheld": list(withheld),
        "server_token": caller.server_token,
    }


def check_hello(params: Mapping[str, Any]) -> None:
    """Check the shape of a greeting.

    Raises:
        InvalidCall: it is not one.
    """
    for name, kinds in _HELLO.items():
        if not isinstance(params.get(name), kinds):
            raise InvalidCall(f"`hello` needs `{name}`")
    if not all(isinstance(word, str) for pair in params["environ"].items() for word in pair):
        raise InvalidCall("`environ` is names and values")
    withheld = params.get("withheld", [])
    if not isinstance(withheld, list) or not all(isinstance(name, str) for name in withheld):
        raise InvalidCall("`withheld` is a list of names")
    if not isinstance(params.get("server_token"), (str, type(None))):
        raise InvalidCall("`server_token` is a text")
    if not os.path.isabs(params["cwd"]):  # noqa: PTH117
        raise InvalidCall("`cwd` is not an absolute path")


def check_same_files(params: Mapping[str, Any]) -> None:
    """Check that a client sees the same files as we do.

    Raises:
        EngineDraining: it does not, as from inside a container.
    """
    if params["folder"] != identify_file(params["cwd"]):
        raise EngineDraining("it sees other files than you, as from outside a container")


def identify_file(path: str) -> list[int] | None:
    """Return what tells a file or folder from another of the same name; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return [status.st_dev, status.st_ino]


# -- errors -------------------------------------------------------------------------------------

_NUMBERS = {"INVALID_CALL": -32600}
_OURS = -32000


def encode_error(error: CellwrightError) -> WireMessage:
    """Return an error as JSON-RPC has it, with all that is needed to raise it again."""
    facts: WireMessage = {"code": error.code, "hint": error.hint, "retryable": error.retryable}
    facts["state"] = {
        name: value
        for name, value in vars(error).items()
        if name not in ("message", "hint", "cells") and _is_plain(value)
    }
    if isinstance(error, Conflict):
        facts["cells"] = [_conflict_to_json(cell) for cell in error.cells]
    return {"code": _NUMBERS.get(error.code, _OURS), "message": error.message, "data": facts}


def decode_error(shape: WireMessage) -> CellwrightError:
    """Return the error that `encode_error` described, to be raised."""
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
    return kind.restore(state)


def _tree(kind: type[CellwrightError]) -> list[type[CellwrightError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _tree(child))]


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, bool))


def _conflict_to_json(cell: CellConflict) -> WireMessage:
    names = ("handle", "index", "reason", "base", "current", "other")
    return {name: getattr(cell, name) for name in names}
