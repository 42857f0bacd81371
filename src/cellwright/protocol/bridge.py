"""From the comm messages of one kernel to the host of its notebook, and back.

Requests are carried out one after the other, in the order they came. Only the running of cells
does not hold up the others: a cell that is run may ask something itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict, deque
from dataclasses import dataclass
from functools import cache

from cellwright.protocol.messages import (
    METHODS,
    NESTED,
    NOTEKIT,
    ON_CONTROL,
    TARGETS,
    ErrorCode,
    ManipulatorRequest,
    Refusal,
    Reply,
    is_request,
    make_refusal,
    make_result,
    read_params,
    refusal_of,
    show_value,
)
from cellwright.protocol.methods import plan_run, read_or_edit, refuse_execution, run_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from typing import Any

    from cellwright.protocol.messages import CommLike
    from cellwright.protocol.methods import NotebookAccess, Plan

    FindNotebook = Callable[[], "NotebookAccess | None"]
    Send = Callable[[Reply], Awaitable[object]]
    RequestKey = tuple[str, str, Any]


_LOG = logging.getLogger("cellwright.protocol")


class CommBridge:
    """Answers the requests of one kernel.

    Args:
        host: finds the notebook when a request is carried out; None if there is none.
        send: sends an answer to the kernel; if it fails, the kernel is gone.
        waits: whether cells wait for the one that asks, if the kernel cannot run them inside it;
            otherwise they are refused at once.
    """

    def __init__(self, host: FindNotebook, send: Send, *, waits: bool = True) -> None:
        self._host = host
        self._send = send
        self._waits = waits
        self._desk = RequestDesk()
        self._queue: deque[ManipulatorRequest | Reply] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[int, tuple[str | None, Plan]] = {}

    def feed(self, message: CommLike, *, caller: str | None = None) -> bool:
        """Take a message of the kernel, and return whether it belongs to the protocol.

        Does not wait; what is to be done is done by tasks of this bridge. `caller` is the handle
        of the cell whose run the message is part of; None between cells.
        """
        if not self._desk.is_ours(message):
            return False
        received = self._desk.receive(message, caller)
        if received is not None:  # a refusal too: answers come in the order of the requests
            self._queue.append(received)
            if self._worker is None:
                self._worker = self._start(self._work())
        return True

    async def settle(self) -> None:
        """Wait until everything that was asked is answered."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def forget(self) -> None:
        """The kernel was restarted: its comms are gone, and what waits is not wanted any more."""
        self._queue.clear()
        self._desk.clear()

    async def close(self) -> None:
        """Stop, without answering what still waits."""
        self.forget()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._take(self._queue.popleft())
                await asyncio.sleep(0)  # a flood of requests must not hold up a cell's output
        finally:
            self._worker = None

    async def _take(self, request: ManipulatorRequest | Reply) -> None:
        if isinstance(request, Reply):
            await self._deliver(request)
            return
        try:
            host = self._host()
            if host is None:
                raise Refusal(ErrorCode.NO_ACTIVE_NOTEBOOK, "No active notebook is available")  # noqa: TRY301
            if request.method == "execute_cell_range":
                plan = await plan_run(host, request)
                self._refuse_own(request, plan)
                if not self._waits and plan.cells and request.caller and not request.nests:
                    raise refuse_execution(  # noqa: TRY301
                        plan.places[0],
                        "the cell that asks still runs, and its kernel runs no cell inside another",
                    )
                # Put down here, so that a request that follows sees it.
                self._running[id(request)] = (request.caller, plan)
                self._start(self._execute(host, request, plan))
                return
            data = make_result(request.id, await read_or_edit(host, request))
        except Exception as error:  # noqa: BLE001  # every request is answered
            data = self._refuse_error(request, error)
        await self._answer(request, data)

    async def _execute(self, host: NotebookAccess, request: ManipulatorRequest, plan: Plan) -> None:
        try:
            data = make_result(request.id, await run_plan(host, request, plan))
        except Exception as error:  # noqa: BLE001  # every request is answered
            data = self._refuse_error(request, error)
        finally:
            self._running.pop(id(request), None)
        await self._answer(request, data)

    def _refuse_own(self, request: ManipulatorRequest, plan: Plan) -> None:
        """Refuse to run the cell that asks, or one that waits for it: it would never end."""
        waiting, more = {request.caller}, {request.caller}
        while more:
            more = {
                caller
                for caller, other in self._running.values()
                if caller not in waiting and not waiting.isdisjoint(other.cells)
            }
            waiting |= more
        for handle, place in zip(plan.cells, plan.places, strict=True):
            if handle in waiting:
                raise refuse_execution(
                    place, "it is the cell that asks, or waits for it; nothing was run"
                )

    def _refuse_error(self, request: ManipulatorRequest, error: Exception) -> dict[str, Any]:
        refusal = refusal_of(error)
        if refusal.code is ErrorCode.INTERNAL_ERROR:
            _LOG.warning("%s failed: %s", request.method, refusal.message)
        return make_refusal(request.id, refusal)

    async def _answer(self, request: ManipulatorRequest, data: dict[str, Any]) -> None:
        answer = self._desk.answer(request, data)
        if answer is not None:
            await self._deliver(answer)

    async def _deliver(self, answer: Reply) -> None:
        try:
            await self._send(answer)
        except Exception as error:  # noqa: BLE001  # a kernel that is gone needs no answer
            _LOG.debug("an answer was not delivered: %s", error)


MOST_WAITING = 4096
"""Requests that may wait; more are refused at once."""
MOST_REMEMBERED = 4096
"""Answers about changes and runs that are kept for requests that come again."""
MOST_READ = 32
"""Answers of the notebook's content that are kept; they are large, and asking again does no harm."""
MOST_COMMS = 256
MOST_FOREIGN = 4096
"""Comms of other targets that are remembered, so that what they say is never taken for a request."""

_READS = frozenset({"get_cell_range", "get_notebook_metadata"})


@dataclass(frozen=True, slots=True)
class _Comm:
    target: str
    features: frozenset[str]


class RequestDesk:
    """All comms of one kernel that speak the protocol."""

    def __init__(self) -> None:
        self._comms: OrderedDict[str, _Comm] = OrderedDict()
        self._foreign: OrderedDict[str, None] = OrderedDict()
        self._waiting: set[RequestKey] = set()
        self._answers: OrderedDict[RequestKey, Reply] = OrderedDict()
        self._reads: OrderedDict[RequestKey, Reply] = OrderedDict()

    def receive(
        self, message: CommLike, caller: str | None = None
    ) -> ManipulatorRequest | Reply | None:
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
        """Whether a message belongs to the protocol, so that no one else need look at it."""
        if message.kind == "open":
            if message.target in TARGETS:
                return True
            self._comms.pop(message.comm_id, None)
            self._foreign[message.comm_id] = None
            while len(self._foreign) > MOST_FOREIGN:
                self._foreign.popitem(last=False)
            return False
        return self._speaks(message)

    def answer(self, request: ManipulatorRequest, data: Mapping[str, Any]) -> Reply | None:
        """Remember the answer to a request; None if the comm was closed meanwhile."""
        key = _make_key(request.comm_id, request.id)
        answer = self._make(request.comm_id, data)
        if key is not None:
            self._waiting.discard(key)
            is_read = request.method in _READS and data["status"] == "ok"
            self._remember(key, answer, is_read=is_read)
        return answer if request.comm_id in self._comms else None

    def clear(self) -> None:
        """Forget everything: the kernel is a new one."""
        self._comms.clear()
        self._foreign.clear()
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
        if message.comm_id in self._foreign:
            return False
        data = message.data
        method = data.get("method")
        if message.kind != "msg" or "request_id" not in data or not isinstance(method, str):
            return False
        if method not in METHODS[NOTEKIT]:
            return False
        self._keep(message.comm_id, NOTEKIT, frozenset())  # the dialect that has all methods
        return True

    def _request(self, message: CommLike, caller: str | None) -> ManipulatorRequest | Reply | None:
        data, comm = message.data, self._comms[message.comm_id]
        request_id, method = data.get("request_id"), data.get("method")
        key = _make_key(message.comm_id, request_id)
        if key is None:
            return self._refuse(
                message.comm_id,
                request_id,
                ErrorCode.INTERNAL_ERROR,
                f"Invalid request: request_id={show_value(request_id)} is not a string",
            )
        known = self._answers.get(key) or self._reads.get(key)
        if known is not None or key in self._waiting:
            return known
        if not isinstance(method, str) or method not in METHODS[comm.target]:
            text = f"Unknown method: {_name_method(method)}"
            refusal = self._refuse(message.comm_id, request_id, ErrorCode.UNKNOWN_METHOD, text)
            return self._remember(key, refusal)
        if len(self._waiting) >= MOST_WAITING:
            text = f"Too many requests: {MOST_WAITING} are waiting"
            return self._refuse(message.comm_id, request_id, ErrorCode.INTERNAL_ERROR, text)
        self._waiting.add(key)
        return ManipulatorRequest(
            message.comm_id,
            request_id,
            method,
            read_params(data),
            comm.target,
            caller,
            nests=NESTED in comm.features and data.get("nested") is not False,
        )

    def _remember(self, key: RequestKey, answer: Reply, *, is_read: bool = False) -> Reply:
        shelf, most = (self._reads, MOST_READ) if is_read else (self._answers, MOST_REMEMBERED)
        shelf[key] = answer
        while len(shelf) > most:
            shelf.popitem(last=False)
        return answer

    def _refuse(self, comm_id: str, request_id: Any, code: ErrorCode, text: str) -> Reply:
        return self._make(comm_id, make_refusal(request_id, Refusal(code, text)))

    def _make(self, comm_id: str, data: Mapping[str, Any]) -> Reply:
        comm = self._comms.get(comm_id)
        on_control = comm is not None and ON_CONTROL in comm.features
        return Reply(comm_id, data, "control" if on_control else "shell")


def _make_key(comm_id: str, request_id: Any) -> RequestKey | None:
    """What a request is remembered by; 1, 1.0, True and "1" are four different ids."""
    if isinstance(request_id, str | int | float):
        return comm_id, type(request_id).__name__, request_id
    return None


def _name_method(method: Any) -> str:
    """A method as a message shows it: a word as it is, anything else as JSON, and never much."""
    is_word = isinstance(method, str) and method.isidentifier() and len(method) <= 80
    return str(method) if is_word else show_value(method)


@cache  # it is asked for at every run
def kernel_path() -> str | None:
    """The folder that has `cellwright_kernel`, and `cellwright` for `%load_ext`, and no more.

    The client's own folder would do too, but beside it lie all packages of this environment, of
    which a kernel of another one must not see any.
    """
    from importlib.util import find_spec

    spec = find_spec("cellwright_kernel")
    found = list((spec and spec.submodule_search_locations) or ())
    return os.path.join(found[0], "path") if found else None  # noqa: PTH118


def add_kernel_path(env: Mapping[str, str]) -> dict[str, str]:
    """The variables of a kernel, with that folder at the end of its PYTHONPATH."""
    folder = kernel_path()
    known = [part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    if folder is None or folder in known:
        return dict(env)
    return {**env, "PYTHONPATH": os.pathsep.join([*known, folder])}
