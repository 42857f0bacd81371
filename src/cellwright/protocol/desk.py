"""Where requests come in: who asked, what was answered before. No I/O.

Each request id of a comm is carried out once. A request that comes again while it waits is served
by the one answer; one that comes after it gets that answer again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from cellwright.protocol.codes import Code, Refusal
from cellwright.protocol.wire import (
    METHODS,
    NESTED,
    NOTEKIT,
    ON_CONTROL,
    TARGETS,
    Answer,
    Request,
    is_request,
    read_params,
    refused,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from cellwright.protocol.wire import CommLike

    Key = tuple[str, str, Any]

MOST_WAITING = 4096
"""Requests that may wait; more are refused at once."""
MOST_REMEMBERED = 4096
"""Answers about changes and runs that are kept for requests that come again."""
MOST_READ = 32
"""Answers of the notebook's content that are kept; they are large, and asking again harms nobody."""
MOST_COMMS = 256

_READS = frozenset({"get_cell_range", "get_notebook_metadata"})


@dataclass(frozen=True, slots=True)
class _Comm:
    target: str
    features: frozenset[str]


class Desk:
    """All comms of one kernel that speak the protocol."""

    def __init__(self) -> None:
        self._comms: OrderedDict[str, _Comm] = OrderedDict()
        self._waiting: set[Key] = set()
        self._answers: OrderedDict[Key, Answer] = OrderedDict()
        self._reads: OrderedDict[Key, Answer] = OrderedDict()

    def receive(self, message: CommLike, caller: str | None = None) -> Request | Answer | None:
        """A request to carry out, an answer to send as it is, or nothing to do.

        `caller` is the handle of the cell that said it, if that is known.
        """
        if message.kind == "open":
            self._open(message)
        elif message.kind == "close":
            self._comms.pop(message.comm_id, None)
        elif self._speaks(message) and message.is_ours and is_request(message.data):
            return self._request(message, caller)
        return None

    def is_ours(self, message: CommLike) -> bool:
        """Whether a message belongs to the protocol, so that nobody else need look at it."""
        if message.kind == "open":
            return message.target in TARGETS
        return self._speaks(message)

    def answer(self, request: Request, data: Mapping[str, Any]) -> Answer | None:
        """Remember the answer to a request; None if the comm was closed meanwhile."""
        key = _key(request.comm_id, request.id)
        answer = self._make(request.comm_id, data)
        if key is not None:
            self._waiting.discard(key)
            is_read = request.method in _READS and data["status"] == "ok"
            self._remember(key, answer, is_read=is_read)
        return answer if request.comm_id in self._comms else None

    def clear(self) -> None:
        """Forget everything: the kernel is a new one."""
        self._comms.clear()
        self._waiting.clear()
        self._answers.clear()
        self._reads.clear()

    def _open(self, message: CommLike) -> None:
        if message.target in TARGETS:
            features = message.data.get("features")
            names = features if isinstance(features, list) else ()
            self._keep(
                message.comm_id,
                message.target,
                frozenset(name for name in names if isinstance(name, str)),
            )

    def _keep(self, comm_id: str, target: str, features: frozenset[str]) -> None:
        self._comms[comm_id] = _Comm(target, features)
        while len(self._comms) > MOST_COMMS:
            self._comms.popitem(last=False)

    def _speaks(self, message: CommLike) -> bool:
        """Whether a comm is one of ours; also if it was opened before anybody listened."""
        if message.comm_id in self._comms:
            return True
        data = message.data
        method = data.get("method")
        if message.kind != "msg" or "request_id" not in data or not isinstance(method, str):
            return False
        if method not in METHODS[NOTEKIT]:
            return False
        self._keep(message.comm_id, NOTEKIT, frozenset())  # the dialect that has all methods
        return True

    def _request(self, message: CommLike, caller: str | None) -> Request | Answer | None:
        data, comm = message.data, self._comms[message.comm_id]
        request_id, method = data.get("request_id"), data.get("method")
        key = _key(message.comm_id, request_id)
        if key is None:
            return self._refuse(
                message.comm_id,
                request_id,
                Code.INTERNAL_ERROR,
                f"Invalid request: request_id={shown(request_id)} is not a string",
            )
        known = self._answers.get(key) or self._reads.get(key)
        if known is not None or key in self._waiting:
            return known
        if not isinstance(method, str) or method not in METHODS[comm.target]:
            text = f"Unknown method: {_name(method)}"
            refusal = self._refuse(message.comm_id, request_id, Code.UNKNOWN_METHOD, text)
            return self._remember(key, refusal)
        if len(self._waiting) >= MOST_WAITING:
            text = f"Too many requests: {MOST_WAITING} are waiting"
            return self._refuse(message.comm_id, request_id, Code.INTERNAL_ERROR, text)
        self._waiting.add(key)
        return Request(
            message.comm_id,
            request_id,
            method,
            read_params(data),
            comm.target,
            caller,
            nests=NESTED in comm.features and data.get("nested") is not False,
        )

    def _remember(self, key: Key, answer: Answer, *, is_read: bool = False) -> Answer:
        shelf, most = (self._reads, MOST_READ) if is_read else (self._answers, MOST_REMEMBERED)
        shelf[key] = answer
        while len(shelf) > most:
            shelf.popitem(last=False)
        return answer

    def _refuse(self, comm_id: str, request_id: Any, code: Code, text: str) -> Answer:
        return self._make(comm_id, refused(request_id, Refusal(code, text)))

    def _make(self, comm_id: str, data: Mapping[str, Any]) -> Answer:
        comm = self._comms.get(comm_id)
        on_control = comm is not None and ON_CONTROL in comm.features
        return Answer(comm_id, data, "control" if on_control else "shell")


def _key(comm_id: str, request_id: Any) -> Key | None:
    """What a request is remembered by; 1, 1.0, True and "1" are four different ids."""
    if isinstance(request_id, str | int | float):
        return comm_id, type(request_id).__name__, request_id
    return None


def _name(method: Any) -> str:
    """A method as a message shows it: a word as it is, anything else as JSON, and never much."""
    is_word = isinstance(method, str) and method.isidentifier() and len(method) <= 80
    return str(method) if is_word else shown(method)
