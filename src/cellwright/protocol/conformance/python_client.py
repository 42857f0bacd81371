"""Our own client under test: `cellwright_kernel` in any kernel of Python that runs cells."""

from __future__ import annotations

import asyncio
import json
from typing import Protocol

from cellwright.protocol.conformance.kernel import CallResult, ScriptedFrontend
from cellwright.protocol.conformance.rows import Broken, Skipped
from cellwright.protocol.messages import NESTED, NESTED_MARK, ON_CONTROL, TARGETS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from cellwright.protocol.messages import CommLike

    Hear = Callable[["CommLike"], None]

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
