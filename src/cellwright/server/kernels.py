"""Kernels of the engine in a Jupyter server: a notebook that has one there is opened with it.

Jupyter's own code connects to the kernel as to any other. What a person does to it, interrupt,
restart or shut down, is done by the engine, whose kernel it stays. It outlives the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from contextvars import ContextVar
from uuid import uuid4

import jupyter_server
from jupyter_server.services.kernels.kernelmanager import (
    MappingKernelManager,
    ServerKernelManager,
)

from cellwright.app.workspaces import name_actor
from cellwright.engine import wire
from cellwright.engine.client import EngineConnection
from cellwright.engine.launch import greet_engine
from cellwright.errors import CellwrightError
from cellwright.workspace.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from jupyter_server.serverapp import ServerApp

log = logging.getLogger("cellwright.server")

_LOOK_EVERY = 0.5
_made: ContextVar[EngineKernel | None] = ContextVar("_made", default=None)


def use_engine_kernels(app: ServerApp) -> None:
    """Let the sessions of a server include those of notebooks whose kernels the engine runs.

    A page that opens a notebook looks for its session first, and uses that.
    """
    manager = app.kernel_manager
    if not isinstance(manager, MappingKernelManager) or manager.__class__.__module__.startswith(
        "jupyter_server.gateway"
    ):
        return  # its kernels are on another machine
    EngineKernels(app, manager).attach()


class EngineKernels:
    """Adds the kernels of the engine to a server."""

    def __init__(self, app: ServerApp, manager: MappingKernelManager) -> None:
        self.manager = manager
        self._sessions = app.session_manager
        self._root = os.path.realpath(os.path.expanduser(app.web_app.settings["server_root_dir"]))  # noqa: PTH111
        self._list, self._shut_down = self._sessions.list_sessions, manager.shutdown_all
        self._make = manager.kernel_manager_factory
        self._turn = asyncio.Lock()

    def attach(self) -> None:
        """Take part when sessions are listed, kernels are made, and the server ends."""
        self._sessions.list_sessions = self._list_with_ours
        self.manager.kernel_manager_factory = self._make_or_take
        self.manager.shutdown_all = self._shut_down_others

    def detach(self) -> None:
        """Let the server be as it was: from now on it has only kernels of its own."""
        self._sessions.list_sessions = self._list
        self.manager.kernel_manager_factory = self._make

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the engine; one that does not run has no kernels.

        Raises:
            CellwrightError: the engine does not answer, or could not do it.
        """
        return await asyncio.to_thread(self._ask, method, params)

    async def find(self, path: str) -> dict[str, Any] | None:
        """Find the kernel that a notebook has now."""
        with contextlib.suppress(CellwrightError, OSError):
            found: dict[str, Any] | None = (await self.act(path, "lend")).get("kernel")
            return found
        return None

    async def act(self, path: str, action: str) -> dict[str, Any]:
        """Have the engine do something to the kernel of a notebook."""
        return await self.ask("kernel", path=path, action=action)

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        caller = Caller(self._root, cwd=self._root, actor=name_actor("lab"))
        engine = greet_engine(
            lambda connected: EngineConnection(connected, lambda: wire.make_hello(caller)),
            start=False,
        )
        if engine is None:
            return {}
        try:
            answer: dict[str, Any] = engine.call(f"editor.{method}", params)
        finally:
            engine.close()
        return answer

    async def _list_with_ours(self, *args: Any, **more: Any) -> Any:
        async with self._turn:
            try:
                await self._add_new()
            except (CellwrightError, OSError) as error:
                log.info("the engine does not lend its kernels: %s", error)
            except Exception as error:  # noqa: BLE001  # not a reason for a page to open nothing
                # Jupyter Server does not document how to add a kernel: another version may differ.
                log.warning(
                    "Jupyter Server %s cannot use kernels of Cellwright's engine, so notebooks get"
                    " kernels of their own here: %s: %s",
                    *(jupyter_server.__version__, type(error).__name__, error),
                )
                self.detach()
        return await self._list(*args, **more)

    def _make_or_take(self, *args: Any, **more: Any) -> Any:
        kernel = _made.get()
        return self._make(*args, **more) if kernel is None else kernel

    async def _add_new(self) -> None:
        found = (await self.ask("kernels")).get("kernels", {})
        new = {real: each for real, each in found.items() if each["id"] not in self.manager}
        if not new:
            return
        taken = {session["path"] for session in await self._list()}
        for real, each in new.items():
            path = real.removeprefix(self._root.rstrip("/") + "/")
            if path != real and path not in taken:
                kernel = await EngineKernel.add(self, path, each)
                name = path.rpartition("/")[2]
                facts = {"path": path, "name": name, "type": "notebook"}
                await self._sessions.save_session(str(uuid4()), kernel_id=kernel.kernel_id, **facts)

    async def _shut_down_others(self, *args: Any, **more: Any) -> None:
        for kernel in map(self.manager.get_kernel, self.manager.list_kernel_ids()):
            if isinstance(kernel, EngineKernel):
                kernel.leave()
        await self._shut_down(*args, **more)


class EngineKernel(ServerKernelManager):
    """A kernel of the engine, as Jupyter Server sees it."""

    @classmethod
    async def add(cls, engine: EngineKernels, path: str, found: dict[str, Any]) -> EngineKernel:
        """Add the kernel of a notebook to those of a server."""
        manager = engine.manager
        kernel = cls(parent=manager, log=manager.log, owns_kernel=False)
        kernel.kernel_name, kernel._file = found["name"], found["connection_file"]
        kernel._engine, kernel._manager, kernel._path = engine, manager, path
        # A manager adds only kernels that it starts itself; this one runs, and is there at once.
        token = _made.set(kernel)
        try:
            await manager.start_kernel(kernel_id=found["id"], kernel_name=found["name"])
        finally:
            _made.reset(token)
        return kernel

    async def start_kernel(self, *, kernel_id: str, **more: Any) -> None:
        """Connect to the kernel, which the engine has started."""
        del more  # how to start it
        self.kernel_id = kernel_id
        self._callbacks: dict[str, list[Callable[[], object]]] = {"restart": [], "dead": []}
        self._turn = asyncio.Lock()
        self.load_connection_file(self._file)
        self._seen = self._identify()
        self.ready.set_result(None)
        self._watching = asyncio.ensure_future(self._watch())

    async def interrupt_kernel(self) -> None:
        """Have the engine interrupt it."""
        await self._engine.act(self._path, "interrupt")

    async def restart_kernel(self, now: bool = False, **more: Any) -> None:  # noqa: ARG002, FBT001, FBT002
        """Have the engine restart it."""
        async with self._turn:
            if (await self._engine.act(self._path, "restart")).get("kernel") is None:
                raise RuntimeError("the engine has no such kernel any more")
            self._seen = self._identify()

    async def shutdown_kernel(self, now: bool = False, restart: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Have the engine end it: the person wants no more of it."""
        self._watching.cancel()
        await self._engine.act(self._path, "shutdown")

    async def is_alive(self) -> bool:
        """Whether it runs, as far as can be seen."""
        return self._identify() is not None

    def leave(self) -> None:
        """Leave it as it is: the server ends, and the engine does not."""
        self._watching.cancel()
        self._manager.stop_watching_activity(self.kernel_id)
        self._manager.remove_kernel(self.kernel_id)

    def add_restart_callback(self, callback: Callable[[], object], event: str = "restart") -> None:
        """Call something when it was restarted, or has died."""
        self._callbacks[event].append(callback)

    def remove_restart_callback(
        self, callback: Callable[[], object], event: str = "restart"
    ) -> None:
        """Call it no more."""
        with contextlib.suppress(ValueError):
            self._callbacks[event].remove(callback)

    def _identify(self) -> tuple[int, int] | None:
        """Return what identifies the process: each writes its file anew; None if it has ended."""
        try:
            found = os.stat(self._file)  # noqa: PTH116
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    async def _watch(self) -> None:
        """Notice that the engine has restarted or ended it, for an agent or because it died."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            async with self._turn:
                now = self._identify()
                if now == self._seen:
                    continue
                if now is None and await self._engine.find(self._path) is None:
                    break
                if now is not None:  # its sockets are where they were
                    self._seen = now
                    self._tell("restart")
        self._manager.stop_watching_activity(self.kernel_id)
        self._tell("dead")
        self._manager.remove_kernel(self.kernel_id)

    def _tell(self, event: str) -> None:
        for callback in list(self._callbacks[event]):
            callback()
