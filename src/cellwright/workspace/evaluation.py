"""`eval`: cells of code that belong to no notebook, run in sessions that keep their state."""

from __future__ import annotations

import contextlib
import os
from functools import partial
from hashlib import blake2b
from typing import Protocol

from cellwright.errors import InvalidEdit, KernelCannot, KernelMissing
from cellwright.kernel.environment import (
    build_kernel_environment,
    build_session_variables,
    write_session_file,
)
from cellwright.kernel.execution import Recorder
from cellwright.kernel.factory import KernelFactory, KernelRequest
from cellwright.kernel.pool import SessionPool
from cellwright.kernel.session import Key
from cellwright.kernel.transport import Code
from cellwright.protocol.kernel_path import with_kernel_path
from cellwright.workspace.comms import Comms

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.document.cells import Cell
    from cellwright.kernel.execution import Execution
    from cellwright.kernel.session import Ask, Session
    from cellwright.kernel.transport import KernelInfo
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.outputs.collector import Collector
    from cellwright.workspace.eval_call import EvalCall, EvalCell

    Progress = Callable[[dict[str, Any]], object]

_PYTHON = ("", "py", "python", "python3")


class ToolBridge(Protocol):
    """Lets the code of a session call tools; there may be none."""

    def variables(
        self, session: str, *, mode: str, root: str | None, cwd: str | None
    ) -> dict[str, str]:
        """What a session's kernel must know, as `for_session` takes it."""
        ...

    def forget(self, session: str) -> None:
        """A session is over."""
        ...


class Evaluator:
    """Runs cells in a pool of sessions; for use inside an event loop."""

    def __init__(
        self,
        settings: Settings,
        store: ArtifactStore | None,
        folder: str,
        on_end: Callable[[Session], object] | None = None,
    ) -> None:
        self.bridge: ToolBridge | None = None
        self._settings = settings
        self._store = store
        self._folder = folder
        self._supply = KernelFactory(settings)
        self.comms = Comms()
        self._on_end = on_end
        self.pool = SessionPool(
            settings,
            release_spare=self._supply.release_spare,
            on_new=self.comms.attach,
            on_end=self._ended,
        )
        self._started = False
        self._session_files: dict[str, dict[str, str | None]] = {}
        self._callers: dict[Key, tuple[str | None, str]] = {}

    def _ended(self, session: Session) -> None:
        self.comms.detach(session)
        self._callers.pop(session.key, None)
        if self.bridge is not None:
            self.bridge.forget(session.key.session)
        if self._on_end is not None:
            self._on_end(session)

    async def close(self) -> None:
        """End all sessions."""
        try:
            try:
                await self.pool.close()
            finally:
                await self._supply.release_spare()
        finally:
            for path in self._session_files:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108

    async def _start(self) -> None:
        if not self._started:
            self._started = True
            await self.pool.__aenter__()

    async def eval(
        self,
        cells: Iterable[EvalCell],
        call: EvalCall,
        *,
        progress: Progress | None = None,
        ask: Ask | None = None,
        stop: asyncio.Event | None = None,
        done: Callable[[int, Execution], object] | None = None,
    ) -> None:
        """Run cells in order, and stop after the first that fails unless told to go on.

        `progress` gets `{"cell", "status"}` when one begins (`running`) or ends, and
        `{"cell", "text"}` for every piece of its output; `done` gets each cell's place and
        execution. `stop` ends it before its time.
        """
        await self._start()
        report = progress or _ignore
        for position, cell in enumerate(cells):
            report({"cell": position, "status": "running"})
            execution = await self._one(position, cell, call, report=report, ask=ask, stop=stop)
            if done is not None:
                done(position, execution)
            report({"cell": position, "status": execution.status})
            if execution.status != "ok" and not (call.keep_going and not _is_set(stop)):
                break

    async def _one(
        self,
        position: int,
        cell: EvalCell,
        call: EvalCall,
        *,
        report: Progress,
        ask: Ask | None,
        stop: asyncio.Event | None,
    ) -> Execution:
        order, withheld = self._order(cell, call)
        timeout = self._timeout(cell.timeout if cell.timeout is not None else call.timeout)
        recorder = Recorder(
            self._settings,
            self._store,
            lambda text: report({"cell": position, "text": text}),
            withheld,
        )
        async with self._session(cell, call, order) as session:
            ran = await session.run(
                partial(self._code, cell, session, call),
                timeout=timeout,
                reset=cell.reset and not call.per_call,
                on_event=recorder.feed,
                on_retry=recorder.begin_again,
                answers=call.answers,
                ask=ask,
                stop=stop,
            )
        return recorder.finish(ran, timeout)

    def _timeout(self, asked: float | None) -> float:
        if asked is None:
            return self._settings.eval_timeout
        most = self._settings.eval_timeout_max
        if asked < 0 or (most and asked > most):
            raise InvalidEdit(
                f"a timeout of {asked:g} s", hint=f"From 0, which is no limit, to {most:g} s"
            )
        return asked

    def _order(self, cell: EvalCell, call: EvalCall) -> tuple[KernelRequest, tuple[str, ...]]:
        env, withheld = build_kernel_environment(call.environ, self._settings.pass_variables)
        kernel = call.kernel
        runner = call.runner or (kernel is None and call.server is None)
        if cell.language.lower() not in _PYTHON:
            kernel, runner = self._spec_for(cell.language, env), False
        order = KernelRequest(
            cwd=call.cwd,
            env=env,
            kernel=kernel,
            runner=runner,
            server=call.server,
            server_token=call.server_token,
            kernel_id=call.kernel_id,
        )
        return order, withheld

    @staticmethod
    def _spec_for(language: str, env: Mapping[str, str]) -> str:
        from cellwright.kernel.discovery import list_specs

        specs = list_specs(env)
        for spec in specs:
            if language.lower() in (spec.name.lower(), spec.language.lower()):
                return spec.name
        known = sorted({spec.language for spec in specs} | {"py"})
        raise KernelMissing(
            f"No kernel here speaks `{language}`", hint=f"There are kernels for {', '.join(known)}"
        )

    @contextlib.asynccontextmanager
    async def _session(
        self, cell: EvalCell, call: EvalCall, order: KernelRequest
    ) -> AsyncIterator[Session]:
        language = cell.language.lower()
        name = call.session if language in _PYTHON else f"{call.session}:{language}"
        key = Key(name, call.cwd)
        start = self._supply.starter(order)
        if call.per_call:
            async with self.pool.per_call(key, start) as session:
                yield session
            return
        what = "runner" if order.runner else f"kernel {order.kernel or order.server or 'default'}"
        session = await self.pool.get(key, start, owner=call.owner)
        if session.note != what:
            if session.note and not cell.reset:
                raise KernelCannot(
                    session.note,
                    f"stand in for {what} in session `{name}`",
                    hint="Reset the session, or use another",
                )
            if session.note:
                await self.pool.end(key)
                session = await self.pool.get(key, start, owner=call.owner)
            session.note = what
        yield session

    def _code(self, cell: EvalCell, session: Session, call: EvalCall, info: KernelInfo) -> Code:
        variables = self._variables(session, info, root=call.root, mode=call.mode)
        return Code(cell.code, allow_stdin=True, env=variables)

    def _variables(
        self,
        session: Session,
        info: KernelInfo,
        *,
        notebook: str | None = None,
        root: str | None = None,
        mode: str = "agent",
    ) -> dict[str, str | None]:
        """What tells code where it is."""
        # Another language has its own ways, and another machine other folders.
        if info.language != "python" or info.transport == "remote":
            return {}
        path = os.path.join(self._folder, _file_name(session.key))  # noqa: PTH118
        facts = {"session": session.key.session, "notebook": notebook, "root": root, "mode": mode}
        if self._session_files.get(path) != facts:  # once, and not before every cell
            with contextlib.suppress(OSError):  # a courtesy: code runs as well without it
                write_session_file(path, facts)
            self._session_files[path] = facts
        artifacts = None if self._store is None else str(self._store.directory)
        bridge: dict[str, str] = {}
        if self.bridge is not None:
            name, cwd = session.key
            bridge = self.bridge.variables(name, mode=mode, root=root, cwd=cwd)
        return build_session_variables(session_file=path, artifacts_dir=artifacts, **bridge)

    async def notebook_session(
        self,
        path: str,
        *,
        kernel: str | None,
        notebook_kernel: str | None,
        owner: str | None = None,
        environ: Mapping[str, str] | None = None,
        restart: bool = False,
        root: str | None = None,
        mode: str = "agent",
    ) -> tuple[Session, tuple[str, ...]]:
        """The one session of a notebook, in its folder, and the variables withheld from it.

        With `restart` its kernel is started anew, and may be another one.

        Raises:
            KernelCannot: it has a kernel already, and not the one that was asked for.
        """
        await self._start()
        given = os.environ if environ is None else environ
        env, withheld = build_kernel_environment(given, self._settings.pass_variables)
        env = with_kernel_path(env)
        folder = os.path.dirname(path)  # noqa: PTH120
        order = KernelRequest(cwd=folder, env=env, kernel=kernel, notebook_kernel=notebook_kernel)
        start = self._supply.starter(order)
        key = Key(path, folder)
        session = await self.pool.get(key, start, kind="notebook", owner=owner)
        wanted = kernel or session.note
        if session.executions and wanted != session.note:
            if not restart:
                had = session.note or notebook_kernel or "the default kernel"
                raise KernelCannot(
                    had, f"be changed for {kernel} while it has state", hint="Restart with it"
                )
            await self.pool.end(key)
            session = await self.pool.get(key, start, kind="notebook", owner=owner)
        elif restart:
            await session.restart()
        session.note = wanted
        self._callers[key] = (root, mode)
        return session, withheld

    def notebook_code(
        self, session: Session, path: str, cell: Cell
    ) -> Callable[[KernelInfo], Code]:
        """A cell of a notebook, as its kernel gets it."""

        def code(info: KernelInfo) -> Code:
            root, mode = self._callers.get(session.key, (None, "agent"))
            variables = self._variables(session, info, notebook=path, root=root, mode=mode)
            return Code(cell.source, allow_stdin=True, env=variables, cell_id=cell.id)

        return code

    def collector(self) -> Collector:
        """What takes the outputs of one cell of a notebook."""
        from cellwright.outputs.collector import Collector

        store = self._store
        return Collector(
            limit_bytes=self._settings.notebook_output_bytes,
            spill=None if store is None else lambda: store.create(name="outputs"),
        )


def _file_name(key: Key) -> str:
    name = blake2b(f"{os.getpid()}\0{key.session}\0{key.cwd}".encode(), digest_size=8).hexdigest()
    return f"session-{name}.json"


def _is_set(stop: asyncio.Event | None) -> bool:
    return stop is not None and stop.is_set()


def _ignore(_: dict[str, Any]) -> None:
    """Take a report, and do nothing with it."""
