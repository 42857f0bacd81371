"""What the kernel's side has to do, statement by statement; the kit plays the frontend.

`PythonClient` is our own client under test: `cellwright_kernel` in any Python kernel that runs cells.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass, field
from typing import Protocol

from cellwright.protocol.conformance.rows import (
    Broken,
    ConformanceTable,
    Skipped,
    require,
    require_equal,
)
from cellwright.protocol.messages import (
    MANIPULATOR,
    METHODS,
    NESTED,
    NESTED_MARK,
    ON_CONTROL,
    TARGETS,
    is_request,
    read_params,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cellwright.protocol.messages import CommLike

    Respond = Callable[["Mapping[str, Any]"], "Sequence[Mapping[str, Any]]"]
    from collections.abc import Callable

    Hear = Callable[["CommLike"], None]


SHORT = 0.5
"""The timeout for a client under test where there is no answer."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call of the client ended, as the code that made it sees it."""

    result: Any = None
    error: str | None = None
    code: str = ""
    timed_out: bool = False


@dataclass
class ScriptedFrontend:
    """The kit as a frontend: answers requests as a row wants, and keeps the messages."""

    respond: Respond
    opened: list[CommLike] = field(default_factory=list)
    requests: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def hear(self, message: CommLike) -> list[tuple[str, Mapping[str, Any]]]:
        """Handle a message of the kernel; returns what to send, each with its comm."""
        if message.kind == "open" and message.target in TARGETS:
            self.opened.append(message)
        elif message.kind == "close":
            self.closed.append(message.comm_id)
        elif message.kind == "msg" and is_request(message.data):
            self.requests.append((message.comm_id, message.data))
            return [(message.comm_id, answer) for answer in self.respond(message.data)]
        return []


class ClientUnderTest(Protocol):
    """A kernel, and code in it that makes requests with the client under test."""

    async def call(
        self,
        frontend: ScriptedFrontend,
        method: str,
        params: Mapping[str, Any],
        *,
        patience: float = 30,
    ) -> CallResult:
        """Make one request from a cell that waits for the answer; `patience` is its timeout.

        Every message of the kernel goes to `frontend.hear`, and what that returns to the kernel.
        The opening of a comm from an earlier call is given to it again first.
        """
        ...

    async def interrupt_call(self, frontend: ScriptedFrontend) -> bool:
        """Interrupt a cell that waits; whether it ended soon. `Skipped` if that is impossible."""
        ...

    async def run_cell(self) -> bool:
        """Run any other cell; whether it ended well."""
        ...

    async def run_nested(self, frontend: ScriptedFrontend) -> str | None:
        """Run a cell inside one that waits for `execute_cell_range`; None if it did, or why not."""
        ...


KERNEL: ConformanceTable[ClientUnderTest] = ConformanceTable()
row = KERNEL.row
_PARAMS: dict[str, dict[str, Any]] = {
    "get_cell_count": {},
    "get_notebook_metadata": {},
    "get_cell_range": {"start": 0, "end": 2},
    "splice_cell_range": {
        "start": 1,
        "delete_count": 1,
        "cells": [{"cell_type": "markdown", "source": "# T", "metadata": {}}],
    },
    "set_notebook_metadata": {"metadata": {"k": 1}, "merge": True},
}
_RESULTS: dict[str, dict[str, Any]] = {
    "get_cell_count": {"count": 42},
    "get_notebook_metadata": {"metadata": {"k": 1}},
    "get_cell_range": {
        "cells": [
            {"cell_type": "code", "source": "x", "metadata": {}, "execution_count": None}
            | {"outputs": [{"output_type": "stream", "name": "stdout", "text": "1"}]},
            {"cell_type": "markdown", "source": ["a\n", "b"], "metadata": {}},
        ]
    },
    "splice_cell_range": {"affected_range": {"start": 1, "end": 2}},
    "set_notebook_metadata": {},
    "execute_cell_range": {},
}


def answer_well(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Answer as a good frontend does."""
    return [_ok(data, _RESULTS[str(data.get("method"))])]


def _ok(data: Mapping[str, Any], result: Any, **more: Any) -> dict[str, Any]:
    return {"request_id": data.get("request_id"), "status": "ok", "result": result, **more}


def _error(data: Mapping[str, Any], code: str, message: str) -> dict[str, Any]:
    error = {"code": code, "message": message}
    return {"request_id": data.get("request_id"), "status": "error", "error": error}


async def _call(
    peer: ClientUnderTest, respond: Respond = answer_well, method: str = "get_cell_count"
) -> tuple[CallResult, ScriptedFrontend]:
    frontend = ScriptedFrontend(respond)
    return await peer.call(frontend, method, _PARAMS[method]), frontend


def _require_result(called: CallResult) -> Any:
    if called.error is not None:
        raise Broken(f"it raised {called.error}")
    return called.result


@row("K-01", "The kernel opens a comm with a target of the protocol before it asks")
async def _(peer: ClientUnderTest) -> None:
    frontend = ScriptedFrontend(answer_well)
    _require_result(await peer.call(frontend, "get_cell_count", {}))
    _require_result(await peer.call(frontend, "get_cell_count", {}))
    known = [message.comm_id for message in frontend.opened]
    for comm_id, _ in frontend.requests:
        require(comm_id in known, "a request came on a comm that was not opened")
    require(len(frontend.requests) == 2, f"there were {len(frontend.requests)} requests, not 2")


@row("K-02", "All requests go over one comm")
async def _(peer: ClientUnderTest) -> None:
    frontend = ScriptedFrontend(answer_well)
    for _ in range(5):
        _require_result(await peer.call(frontend, "get_cell_count", {}))
    comms = {comm_id for comm_id, _ in frontend.requests}
    require_equal(len(comms), 1, "the number of comms")


@row("K-03", "A request has a known method and a request_id that is a string")
async def _(peer: ClientUnderTest) -> None:
    for method in _PARAMS:
        called, frontend = await _call(peer, method=method)
        _require_result(called)
        (_, data), *_ = frontend.requests or [("", {})]
        require_equal(data.get("method"), method, "the method")
        require(data.get("method") in METHODS[MANIPULATOR], "the method is unknown")
        request_id = data.get("request_id")
        require(isinstance(request_id, str) and request_id, f"the request_id is {request_id!r}")


@row("K-04", "Every request has an id of its own")
async def _(peer: ClientUnderTest) -> None:
    frontend = ScriptedFrontend(answer_well)
    for _ in range(20):
        _require_result(await peer.call(frontend, "get_cell_count", {}))
    ids = [data.get("request_id") for _, data in frontend.requests]
    require_equal(len(set(map(str, ids))), 20, "the number of different ids")


@row("K-05", "The parameters arrive as the protocol has them")
async def _(peer: ClientUnderTest) -> None:
    for method in ("get_cell_range", "splice_cell_range", "set_notebook_metadata"):
        called, frontend = await _call(peer, method=method)
        _require_result(called)
        params = read_params(frontend.requests[0][1])
        for key, value in _PARAMS[method].items():
            if key == "cells":
                kinds = [cell.get("cell_type") for cell in params.get("cells", ())]
                require_equal(kinds, ["markdown"], "the types of the cells")
            else:
                require_equal(params.get(key), value, f"`{key}`")


@row("K-10", "The result reaches the code that asked, while its cell runs")
async def _(peer: ClientUnderTest) -> None:
    for method in _PARAMS:
        called, _ = await _call(peer, method=method)
        require_equal(_require_result(called), _RESULTS[method], f"the result of {method}")


@row("K-11", "An answer with an error raises in the code that asked, with message and code")
async def _(peer: ClientUnderTest) -> None:
    called, _ = await _call(
        peer, lambda data: [_error(data, "OUT_OF_BOUNDS", "Cell range out of bounds: end=9")]
    )
    require(called.error is not None, f"nothing was raised; the result is {called.result!r}")
    require("Cell range out of bounds: end=9" in str(called.error), f"it says {called.error!r}")


@row("K-12", "An error with a code that is not in the table raises too", "ours")
async def _(peer: ClientUnderTest) -> None:
    called, _ = await _call(peer, lambda data: [_error(data, "MODE_FORBIDS", "Not in this mode")])
    require("Not in this mode" in str(called.error), f"it says {called.error!r}")


@row("K-13", "Fields that the client does not know are ignored", "ours")
async def _(peer: ClientUnderTest) -> None:
    called, _ = await _call(peer, lambda data: [_ok(data, {"count": 42, "more": [1]}, extra={})])
    require_equal(_require_result(called).get("count"), 42, "the count")


@row("K-14", "An answer to another request is not taken for one's own")
async def _(peer: ClientUnderTest) -> None:
    called, _ = await _call(
        peer,
        lambda data: [
            {"request_id": uuid.uuid4().hex, "status": "ok", "result": {"count": 1}},
            _ok(data, {"count": 42}),
        ],
    )
    require_equal(_require_result(called), {"count": 42}, "the result")


@row("K-15", "A second answer to the same request is ignored")
async def _(peer: ClientUnderTest) -> None:
    called, _ = await _call(peer, lambda data: [_ok(data, {"count": 42}), _ok(data, {"count": 43})])
    require_equal(_require_result(called), {"count": 42}, "the result")
    called, _ = await _call(peer, lambda data: [_ok(data, {"count": 44})])
    require_equal(_require_result(called), {"count": 44}, "the next result")


@row("K-16", "After an error the same comm is used")
async def _(peer: ClientUnderTest) -> None:
    frontend = ScriptedFrontend(lambda data: [_error(data, "INVALID_RANGE", "no")])
    await peer.call(frontend, "get_cell_count", {})
    frontend.respond = answer_well
    _require_result(await peer.call(frontend, "get_cell_count", {}))
    comms = {comm_id for comm_id, _ in frontend.requests}
    require_equal(len(comms), 1, "the number of comms")
    require_equal(frontend.closed, [], "the list of comms that were closed")


@row("K-17", "Without an answer the call raises when its time is up")
async def _(peer: ClientUnderTest) -> None:
    called = await peer.call(ScriptedFrontend(lambda _: []), "get_cell_count", {}, patience=SHORT)
    require(called.error is not None, "nothing was raised")
    require(called.timed_out, f"it raised {called.error}, which is not a timeout")


@row("K-18", "After that the next call works, and an answer that is late is ignored")
async def _(peer: ClientUnderTest) -> None:
    frontend = ScriptedFrontend(lambda _: [])
    await peer.call(frontend, "get_cell_count", {}, patience=SHORT)
    late = [data for _, data in frontend.requests]
    frontend.respond = lambda data: [
        *(_ok(old, {"count": 1}) for old in late),
        _ok(data, {"count": 42}),
    ]
    require_equal(
        _require_result(await peer.call(frontend, "get_cell_count", {})), {"count": 42}, "it"
    )


@row("K-19", "A cell that waits can be interrupted, and the next cell runs")
async def _(peer: ClientUnderTest) -> None:
    require(await peer.interrupt_call(ScriptedFrontend(lambda _: [])), "the cell went on waiting")
    require(await peer.run_cell(), "the next cell did not run")
    called, _ = await _call(peer)
    require_equal(_require_result(called), {"count": 42}, "the next result")


@row("K-20", "A client that offers nested_execute runs cells while the one that asks waits", "ours")
async def _(peer: ClientUnderTest) -> None:
    problem = await peer.run_nested(ScriptedFrontend(answer_well))
    require(problem is None, str(problem))
    require(await peer.run_cell(), "the next cell did not run")


__all__ = ["KERNEL", "CallResult", "ClientUnderTest", "ScriptedFrontend", "Skipped", "answer_well"]


MARKER = "cellwright-conformance:"
_CALL = """
def _conformance_call(method, params, patience):
    import json
    from cellwright_kernel.client import get_client
    from cellwright_kernel.errors import NotebookError
    client = get_client()
    try:
        result = client.wait(
            client.submit(method, params, nests=method == "execute_cell_range"), patience
        )
        said = {"result": result}
    except NotebookError as error:
        said = {"error": error.message, "code": error.code,
                "timed_out": isinstance(error, TimeoutError)}
    print("%s" + json.dumps(said))
""".replace("%s", MARKER)


class KernelUnderTest(Protocol):
    """A Python kernel that the kit runs cells in."""

    async def run(
        self, source: str, hear: Hear, metadata: Mapping[str, Any] | None = None
    ) -> tuple[str, str]:
        """Run a cell; returns its text, and the name of its error or an empty string.

        `hear` is given every comm message, and may call `send`. With metadata for the request,
        it may be called while another cell runs.
        """
        ...

    def send(self, comm_id: str, data: Mapping[str, Any], channel: str) -> None:
        """Send a message on a comm to the kernel, over `shell` or `control`."""
        ...

    async def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        ...


class PythonClient:
    """A `ClientUnderTest` whose calls are cells that use `cellwright_kernel`."""

    def __init__(self, runner: KernelUnderTest) -> None:
        self._runner = runner
        self._opened: list[CommLike] = []
        self._is_ready = False

    async def call(
        self,
        frontend: ScriptedFrontend,
        method: str,
        params: Mapping[str, Any],
        *,
        patience: float = 30,
    ) -> CallResult:
        """Make one request from a cell that waits for the answer."""
        await self._prepare()
        frontend.opened[:] = self._opened
        text, error = await self._runner.run(
            f"_conformance_call({method!r}, {_literal(params)}, {patience!r})",
            lambda message: self._answer(frontend, message),
        )
        _, found, said = text.partition(MARKER)
        if not found:
            return CallResult(error=error or "nothing")
        data = json.loads(said.partition("\n")[0])
        return CallResult(
            data.get("result"),
            data.get("error"),
            data.get("code", ""),
            timed_out=bool(data.get("timed_out")),
        )

    async def interrupt_call(self, frontend: ScriptedFrontend) -> bool:
        """Interrupt a cell that waits."""
        await self._prepare()
        asked = asyncio.Event()

        def hear(message: CommLike) -> None:
            self._answer(frontend, message)
            if frontend.requests:
                asked.set()

        waiting = asyncio.ensure_future(
            self._runner.run("_conformance_call('get_cell_count', {}, 60)", hear)
        )
        try:
            async with asyncio.timeout(20):
                await asked.wait()
                await asyncio.sleep(0.2)  # until it waits for the answer
                await self._runner.interrupt()
                _, error = await asyncio.shield(waiting)
        except TimeoutError:
            waiting.cancel()
            return False
        return error == "KeyboardInterrupt"

    async def run_cell(self) -> bool:
        """Run any other cell."""
        text, error = await self._runner.run("print(6 * 7)", lambda _: None)
        return (text.strip(), error) == ("42", "")

    async def run_nested(self, frontend: ScriptedFrontend) -> str | None:
        """Run a cell inside one that waits."""
        await self._prepare()
        if NESTED not in self._features:
            raise Skipped("this client does not offer it")
        inner: list[asyncio.Future[tuple[str, str]]] = []

        async def run_inside(comm_id: str, request_id: Any) -> tuple[str, str]:
            said = await self._runner.run(
                "print('inside'); inside = 1", lambda _: None, {NESTED_MARK: request_id}
            )
            answer = {"request_id": request_id, "status": "ok", "result": {}}
            self._send(comm_id, answer)
            return said

        def hear(message: CommLike) -> None:
            if message.kind == "msg" and message.data.get("method") == "execute_cell_range":
                work = run_inside(message.comm_id, message.data.get("request_id"))
                inner.append(asyncio.ensure_future(work))
            else:
                self._answer(frontend, message)

        text, error = await self._runner.run(
            "inside = 0\n_conformance_call('execute_cell_range', {'start': 0, 'end': 1}, 10)\n"
            "print('after', inside)",
            hear,
        )
        if not inner:
            raise Broken("there was no request to run cells")
        if error or "after 1" not in text:
            inner[0].cancel()
            return f"the cell around it said {text!r} {error}"
        said = await inner[0]
        return None if said == ("inside\n", "") else f"the cell inside it said {said!r}"

    async def _prepare(self) -> None:
        if self._is_ready:
            return

        # The comm is opened here, so that it is known on which channel answers are wanted.
        code = f"{_CALL}\nfrom cellwright_kernel.client import get_client\nget_client()._open()"
        _, error = await self._runner.run(code, lambda message: self._answer(None, message))
        if error:
            raise Broken(f"the client could not be loaded: {error}")
        self._is_ready = True

    @property
    def _features(self) -> list[Any]:
        features = self._opened[-1].data.get("features") if self._opened else None
        return features if isinstance(features, list) else []

    def _answer(self, frontend: ScriptedFrontend | None, message: CommLike) -> None:
        if message.kind == "open" and message.target in TARGETS:
            self._opened.append(message)
        if frontend is not None:
            for comm_id, data in frontend.hear(message):
                self._send(comm_id, data)

    def _send(self, comm_id: str, data: Mapping[str, Any]) -> None:
        self._runner.send(comm_id, data, "control" if ON_CONTROL in self._features else "shell")


def _literal(value: Any) -> str:
    """Write a JSON value as Python code."""
    return repr(json.loads(json.dumps(value)))
