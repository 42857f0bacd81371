"""The sessions of one process: which kernel runs code, and what the code knows about itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import replace
from functools import partial
from typing import Protocol
from uuid import uuid4

from cellwright.document.costs import blake2b
from cellwright.errors import (
    InvalidEdit,
    KernelCannot,
    KernelError,
    KernelMissing,
    SessionNotFound,
)
from cellwright.kernel.environment import (
    SESSION_FILE_PREFIX,
    build_session_variables,
    write_session_file,
)
from cellwright.kernel.events import CommMessage
from cellwright.kernel.factory import KernelFactory, KernelOrder
from cellwright.kernel.pool import SessionPool
from cellwright.kernel.processes import make_mark
from cellwright.kernel.session import Key
from cellwright.kernel.transport import Code
from cellwright.protocol.bridge import CommBridge, add_kernel_path
from cellwright.workspace.api.values import Value
from cellwright.workspace.hosts.host import KernelAddress
from cellwright.workspace.runs.widgets import WidgetModels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.session import Session, Start
    from cellwright.kernel.transport import KernelInfo, Transport
    from cellwright.outputs.artifacts import ArtifactStore
    from cellwright.protocol.messages import Reply
    from cellwright.protocol.methods import NotebookAccess
    from cellwright.workspace.api.requests import EvalRequest
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.runs.run import RunOptions

_PYTHON = ("", "py", "python", "python3")
LOCAL = "local"
"""What a call names instead of a server to have a kernel of this machine."""


_CELL_KINDS: dict[str, tuple[type, ...]] = {
    "code": (str,),
    "title": (str,),
    "language": (str,),
    "reset": (bool,),
    "timeout": (int, float, type(None)),
}


class EvalCell:
    """One cell of an `eval` call: its code, and how it is run."""

    __slots__ = ("code", "language", "reset", "timeout", "title")

    def __init__(
        self,
        code: str,
        title: str = "",
        language: str = "",
        *,
        reset: bool = False,
        timeout: float | None = None,
    ) -> None:
        self.code = code
        self.title = title
        self.language = language
        self.reset = reset
        self.timeout = timeout

    @property
    def is_python(self) -> bool:
        """Whether its language is Python, which is also what no language means."""
        return self.language.lower() in _PYTHON

    @classmethod
    def parse(cls, value: Mapping[str, Any] | str, position: int = 0) -> EvalCell:
        """Make one of its JSON shape, or of its code alone."""
        if isinstance(value, str):
            return cls(value)
        for name, given in value.items():
            if name not in _CELL_KINDS:
                known = ", ".join(_CELL_KINDS)
                raise InvalidEdit(
                    f"a cell has no `{name}`", position=position, hint=f"It has {known}"
                )
            if not isinstance(given, _CELL_KINDS[name]) or (name == "timeout" and given is True):
                raise InvalidEdit(f"`{name}` is {given!r}", position=position)
        if "code" not in value:
            raise InvalidEdit("a cell needs `code`", position=position)
        return cls(**value)


class LentKernel(Value):
    """A kernel of ours that a Jupyter server uses too: `id` is what the server calls it."""

    id: str
    connection_file: str
    name: str
    life: str


class ToolBridge(Protocol):
    """Lets the code of a session call tools."""

    def variables(
        self, session: str, *, mode: str, root: str | None, cwd: str | None
    ) -> dict[str, str]:
        """Return what a session's kernel must know."""
        ...

    def forget(self, session: str) -> None:
        """Close the bridge for a session that is over."""
        ...


class KernelStarter(Protocol):
    """Starts kernels."""

    def starter(self, order: KernelOrder) -> Start:
        """Return what starts the kernel that is wanted."""
        ...

    def would_start(self, order: KernelOrder, kernel: Transport | None) -> bool:
        """Whether a kernel is the one that would be started, under any name."""
        ...

    async def release_spare(self) -> None:
        """End a kernel that is kept ready."""
        ...


class SessionManager:
    """The sessions of eval and of notebooks; for use on the event loop.

    Args:
        settings: how many sessions are kept, and for how long.
        store: where long output goes.
        folder: where the files are that tell code about its session.
        kernels: starts kernels; by default those of this machine and of servers.
        on_start: awaited once, before the first session.
        on_end: called with every session that is over.
    """

    def __init__(
        self,
        settings: Settings,
        store: ArtifactStore | None,
        folder: str,
        *,
        kernels: KernelStarter | None = None,
        on_start: Callable[[], Awaitable[object]] | None = None,
        on_end: Callable[[Session], object] | None = None,
    ) -> None:
        self.settings = settings
        self.store = store
        self.bridge: ToolBridge | None = None
        self._folder = folder
        self._kernels: KernelStarter = kernels or KernelFactory(settings)
        self._on_start = on_start
        self._on_end = on_end
        self._comms: dict[Session, CommBridge] = {}
        self._widgets: dict[Session, WidgetModels] = {}
        self._notebooks: dict[str, NotebookAccess] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.pool = SessionPool(
            settings,
            release_spare=self._kernels.release_spare,
            on_new=self._answer_comms,
            on_end=self._forget,
        )
        self._starting: asyncio.Task[None] | None = None
        self._session_files: dict[str, dict[str, str | None]] = {}
        self._mark = make_mark()  # by which the next engine knows files of one that was killed
        self._callers: dict[Key, tuple[str | None, str]] = {}
        self._lives_in: dict[Key, str] = {}  # the kernel of an editor that it is
        self._lent: dict[Key, str] = {}  # what a Jupyter server calls our kernel that it uses too
        self._remote: dict[Key, tuple[KernelAddress, str | None]] = {}  # of a server, by request
        self._said: set[str] = set()
        self._notes: dict[Key, list[str]] = {}

    async def close(self) -> None:
        """End all sessions."""
        try:
            try:
                await self.pool.close()
            finally:
                await self._kernels.release_spare()
        finally:
            for path in self._session_files:
                with contextlib.suppress(OSError):
                    os.unlink(path)  # noqa: PTH108

    async def _start(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start_once())
        await asyncio.shield(self._starting)

    async def _start_once(self) -> None:
        await self.pool.__aenter__()
        if self._on_start is not None:
            await self._on_start()

    # -- sessions ---------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def open_eval(
        self, cell: EvalCell, request: EvalRequest, caller: Caller
    ) -> AsyncIterator[tuple[Session, tuple[str, ...]]]:
        """Give a cell its session inside this block, and the names of withheld variables.

        Raises:
            KernelCannot: the session has another kernel than the one that was asked for.
        """
        await self._start()
        cwd = request.cwd or caller.cwd
        env, withheld = caller.build_environment(self.settings.pass_variables)
        kernel = request.kernel
        server = None if request.runner else _choose_server(request, caller)
        runner = request.runner or (kernel is None and server is None)
        name = caller.name_session(request.session)
        if not cell.is_python:
            if server is None:
                kernel = _find_spec(cell.language, env)
            else:
                kernel = await _find_remote_spec(cell.language, server)
            runner = False
            name = f"{name}:{cell.language.lower()}"
        key = Key(name, cwd, caller.origin)
        order = KernelOrder(
            cwd=cwd,
            env=env,
            kernel=kernel,
            runner=runner,
            tell=partial(self._note, key),
            variables=partial(self._describe_session, key, root=caller.root, mode=caller.mode),
        )
        # Code that asks for no kernel is content with the one that the session has.
        is_choosy = request.runner or kernel is not None or request.server is not None
        what = "runner" if runner else f"kernel {kernel or (server and server.server) or 'default'}"
        if key in self._remote and not is_choosy:
            address, spec = self._remote[key]
            order, what = _send_to(order, address, spec), _name_remote(address)
        elif server is not None:
            order = _send_to(order, server.replace(kernel_id=request.kernel_id or ""), kernel)
        start = self._kernels.starter(order)
        if is_per_call(request, caller):
            async with self.pool.per_call(key, start) as session:
                yield session, withheld
            return
        session = await self.pool.get(key, start, owner=caller.owner, client=caller.client)
        if session.note != what and (is_choosy or cell.reset or not session.note):
            # One that is not there costs no variables: it is looked up before.
            is_other = session.note and not self._kernels.would_start(order, session.transport)
            if is_other and not cell.reset:
                raise KernelCannot(
                    session.note.removeprefix("kernel "),
                    f"stand in for {what} in session `{request.session}`",
                    hint="Reset the session, or use another",
                )
            if is_other:
                await self.pool.end(key)
                session = await self.pool.get(key, start, owner=caller.owner, client=caller.client)
            session.note = what
        try:
            yield session, withheld
        finally:
            await self.pool.end_unstarted(session)

    async def open_notebook(
        self,
        path: str,
        caller: Caller,
        *,
        kernel: str | None,
        notebook_kernel: str | None,
        restart: bool = False,
        address: KernelAddress | None = None,
        request: RunOptions | EvalRequest | None = None,
        copy_of: str | None = None,
    ) -> tuple[Session, tuple[str, ...]]:
        """Return the one session of a notebook, in its folder, and the names of withheld variables.

        With `restart` its kernel is started anew, and may be another one. `address` is the kernel
        that an editor already runs the notebook in: there is only one, so it is used. `request`
        may name a server; a notebook that was given a kernel there keeps to that server until
        that kernel is shut down. A copy runs where the notebook would, and in its folder.

        Raises:
            KernelCannot: it has a kernel already, and not the one that was asked for.
        """
        key = _make_notebook_key(path)
        if address is not None and address.kernel_id == self._lent.get(key):
            address = None  # it is our own, which the editor uses too
        if address is not None and kernel not in (None, notebook_kernel):
            had = notebook_kernel or "of the editor"
            hint = "The notebook is open in an editor: choose its kernel there"
            raise KernelCannot(had, f"be changed for {kernel}", hint=hint)
        await self._start()
        env, withheld = caller.build_environment(self.settings.pass_variables)
        env = add_kernel_path(env)
        order = KernelOrder(
            cwd=os.path.dirname(copy_of or path),  # noqa: PTH120
            env=env,
            kernel=kernel,
            notebook_kernel=notebook_kernel,
            tell=partial(self._note, key),
            variables=partial(
                self._describe_session, key, notebook=path, root=caller.root, mode=caller.mode
            ),
        )
        server = None if request is None else _choose_server(request, caller)
        asked = kernel
        connected = self._remote.get(key) or self._remote.get(_make_notebook_key(copy_of or path))
        if address is not None:
            order = _send_to(order, address)
        elif request is not None and request.server is not None:
            asked = f"{kernel or 'a kernel'} {'here' if server is None else server.server}"
            order = order if server is None else _send_to(order, server, kernel)
        elif connected is not None:
            order = _send_to(order, *connected)
        elif server is not None:
            order = _send_to(order, server, kernel)
        start = self._kernels.starter(order)
        if address is not None and self._lives_in.get(key) != address.kernel_id:
            with contextlib.suppress(SessionNotFound):
                await self.pool.end(key)  # the editor has another kernel than the one we know
            self._lives_in[key] = address.kernel_id
        session = await self.pool.get(key, start, kind="notebook", owner=caller.owner)
        if kernel is None and asked is not None and session.transport is not None:
            is_there = session.to_json()["server"] == (server and server.server)
            asked = None if is_there else asked
        wanted = asked or session.note
        has_begun = session.executions or session.transport is not None
        # One that is not there costs no variables: it is looked up before.
        if (
            has_begun
            and wanted != session.note
            and not self._kernels.would_start(order, session.transport)
        ):
            if not restart:
                had = session.note or notebook_kernel or "default"
                raise KernelCannot(
                    had, f"be changed for {asked} while it has state", hint="Restart with it"
                )
            await self.pool.end(key)
            session = await self.pool.get(key, start, kind="notebook", owner=caller.owner)
        elif restart:
            try:
                await session.restart()
            except KernelError:
                await self.pool.end_unstarted(session)
                raise
        session.note = wanted
        if request is not None and request.server is not None and copy_of is None:
            self.disconnect(key)
            if server is not None:
                self._remote[key] = server, kernel
        self._callers[key] = (caller.root, caller.mode)
        return session, withheld

    async def connect(
        self,
        name: str,
        caller: Caller,
        address: KernelAddress,
        *,
        kernel: str | None = None,
        cwd: str | None = None,
    ) -> Session:
        """Give a session a kernel of a server: a new one, or the one whose id the address has.

        The name of a notebook is its real path. What the session runs from now on runs there,
        until it is shut down.

        Raises:
            KernelCannot: it has a kernel already.
            KernelError: no kernel could be started, or attached to.
        """
        await self._start()
        is_notebook = name.endswith(".ipynb")
        folder = os.path.dirname(name) if is_notebook else cwd or caller.cwd  # noqa: PTH120
        key = _make_notebook_key(name) if is_notebook else Key(name, folder, caller.origin)
        with contextlib.suppress(SessionNotFound):
            had = self.pool.find(name, folder, lambda each: each == key)
            if had.transport is not None and had.transport.is_alive:
                raise KernelCannot(
                    had.key.session, "be connected: it has a kernel", hint="Shut that down first"
                )
            await self.pool.end(key)
        env, _ = caller.build_environment(self.settings.pass_variables)
        order = KernelOrder(cwd=folder, env=env, runner=False)
        order = _send_to(order, address, kernel)
        session = await self.pool.get(
            key,
            self._kernels.starter(order),
            owner=caller.owner,
            **({"kind": "notebook"} if is_notebook else {"client": caller.client}),
        )
        try:
            await session.start()
        except BaseException:
            await self.pool.end_unstarted(session)
            raise
        session.note = "" if is_notebook else _name_remote(address)
        self._remote[key] = address, kernel
        return session

    def lend(self, session: Session) -> LentKernel | None:
        """Let a Jupyter server of this machine use the kernel of a notebook too, beside us.

        It stays ours: we start it again and end it. None if the session has no kernel that others
        can connect to.
        """
        transport = session.transport
        lend: Callable[[], str | None] = getattr(transport, "lend", lambda: None)
        file = lend()
        if transport is None or file is None or session.is_closed:
            return None
        kernel_id = self._lent.setdefault(session.key, str(uuid4()))
        return LentKernel(kernel_id, file, transport.info.name, session.life)

    def disconnect(self, key: Key) -> None:
        """Let what was connected to a server have a kernel of this machine again."""
        self._remote.pop(key, None)

    def take_notes(self, session: Session) -> list[str]:
        """Return what is to be said about the Python of a session's kernel, and was not yet."""
        return self._notes.pop(session.key, [])

    def _note(self, key: Key, said: str) -> None:
        if said not in self._said:
            self._said.add(said)
            self._notes.setdefault(key, []).append(said)

    # -- code -------------------------------------------------------------------------------

    def make_eval_code(
        self, cell: EvalCell, session: Session, caller: Caller, info: KernelInfo
    ) -> Code:
        """Return a cell of `eval` as its kernel gets it."""
        variables = {}
        if _takes_variables(info):
            variables = self._describe_session(session.key, root=caller.root, mode=caller.mode)
        return Code(cell.code, allow_stdin=True, env=variables)

    def make_notebook_code(
        self,
        source: str,
        cell_id: str | None,
        session: Session,
        path: str,
        info: KernelInfo,
        *,
        has_input: bool = False,
    ) -> Code:
        """Return a cell of a notebook as its kernel gets it.

        Without answers to `input()`, and when they are used up, it raises: code that asks whether
        to delete something must not take an empty line for a yes.
        """
        root, mode = self._callers.get(session.key, (None, "agent"))
        variables = {}
        if _takes_variables(info):
            variables = self._describe_session(session.key, notebook=path, root=root, mode=mode)
        return Code(
            source,
            allow_stdin=has_input,
            input_raises=True,
            env=variables,
            cell_id=cell_id,
            most_bytes=self.settings.notebook_output_bytes,
        )

    def _describe_session(
        self,
        key: Key,
        *,
        notebook: str | None = None,
        root: str | None = None,
        mode: str = "agent",
    ) -> dict[str, str | None]:
        """Return the variables that tell code where it is."""
        path = os.path.join(self._folder, _name_file(key))  # noqa: PTH118
        facts = {"session": key.session, "notebook": notebook, "root": root, "mode": mode}
        facts["owner"] = self._mark
        if self._session_files.get(path) != facts:  # once, and not before every cell
            with contextlib.suppress(OSError):  # a courtesy: code runs as well without it
                write_session_file(path, facts)
            self._session_files[path] = facts
        artifacts = None if self.store is None else str(self.store.directory)
        if artifacts is not None:
            with contextlib.suppress(OSError):  # code may write there before any output is stored
                if not os.path.isdir(artifacts):  # noqa: PTH112
                    os.makedirs(artifacts, mode=0o700, exist_ok=True)  # noqa: PTH103
        bridge: dict[str, str] = {}
        if self.bridge is not None:
            name, cwd, _ = key
            bridge = self.bridge.variables(name, mode=mode, root=root, cwd=cwd)
        return build_session_variables(session_file=path, artifacts_dir=artifacts, **bridge)

    # -- comms ------------------------------------------------------------------------------

    def serve_notebook(self, name: str, notebook: NotebookAccess) -> None:
        """Let the kernel of a notebook's session read, edit and run that notebook.

        The caller who ran a cell of it last answers for it. A session of `eval` has no notebook.
        """
        self._notebooks[name] = notebook

    def _answer_comms(self, session: Session) -> None:
        async def send(answer: Reply) -> None:
            if session.transport is None:
                raise KernelCannot(session.key.session, "be answered: it is gone")
            message = CommMessage(
                "msg", answer.comm_id, data=dict(answer.data), channel=answer.channel
            )
            await session.transport.send_comm(message)

        bridge = CommBridge(lambda: self._notebooks.get(session.key.session), send)
        widgets = WidgetModels()
        self._comms[session], self._widgets[session] = bridge, widgets

        def feed(message: CommMessage, caller: str | None) -> None:
            if not bridge.feed(message, caller=caller):
                widgets.feed(message, caller)

        def forget() -> None:
            bridge.forget()
            widgets.forget()

        session.on_comm, session.on_fresh = feed, forget

    def find_widgets(self, session: Session) -> WidgetModels:
        """Return the widgets of a session's kernel."""
        return self._widgets[session]

    async def tell_widgets(
        self, session: Session, caught: Mapping[str, list[dict[str, Any]]]
    ) -> None:
        """Tell a kernel what its Output widgets caught, as a page would."""
        for name, outputs in caught.items():
            if session.transport is None or not session.transport.is_alive:
                return
            data = {"method": "update", "state": {"outputs": outputs}, "buffer_paths": []}
            with contextlib.suppress(KernelError):  # what it knows of that is a courtesy
                await session.transport.send_comm(CommMessage("msg", name, data=data))

    def _forget(self, session: Session) -> None:
        self._widgets.pop(session, None)
        bridge = self._comms.pop(session, None)
        if bridge is not None:
            self._notebooks.pop(session.key.session, None)
            closing = asyncio.ensure_future(bridge.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        self._callers.pop(session.key, None)
        self._lives_in.pop(session.key, None)
        self._lent.pop(session.key, None)
        self._notes.pop(session.key, None)
        if self.bridge is not None:
            self.bridge.forget(session.key.session)
        if self._on_end is not None:
            self._on_end(session)


def _make_notebook_key(path: str) -> Key:
    return Key(path, os.path.dirname(path), f"notebook:{path}")  # noqa: PTH120


def _choose_server(request: RunOptions | EvalRequest, caller: Caller) -> KernelAddress | None:
    """Return the server that a call names, or else the setting; None for kernels of this machine."""
    chosen = request.server or caller.settings.server
    if chosen in ("", LOCAL):
        return None
    return make_server_address(chosen, request.server_token, caller)


def make_server_address(url: str, token: str | None, caller: Caller) -> KernelAddress:
    """Return the address of a server that the user chose, with its token: the nearest one given."""
    from urllib.parse import parse_qsl, urlsplit

    from cellwright.kernel.remote.server import parse_address

    address = parse_address(url)[0].url  # first: it says what is wrong with the rest
    inside = dict(parse_qsl(urlsplit(url).query)).get("token")
    return KernelAddress(address, "", token or inside or caller.server_token)


def find_named_server(url: str | None, settings: Settings) -> str:
    """Return the address of a server that a model names, if the user has named it too.

    The token is for the servers of the settings: a model must not send it elsewhere.

    Raises:
        KernelCannot: the user has not named it.
        InvalidEdit: the model names none.
    """
    from cellwright.kernel.remote.server import parse_address

    chosen = [each for each in (*settings.servers, settings.server) if each not in ("", LOCAL)]
    named = [parse_address(each)[0].url for each in chosen]
    known = ", ".join(dict.fromkeys(named)) or "it is empty"
    if not url:
        raise InvalidEdit("`server` is missing", hint=f"One of the setting `servers`; now {known}")
    wanted = parse_address(url)[0].url
    if wanted not in named:
        raise KernelCannot(
            wanted,
            "be used: it is not one of the setting `servers`",
            hint=f"The user can change the setting; now {known}",
        )
    return wanted


async def _find_remote_spec(language: str, server: KernelAddress) -> str:
    from cellwright.kernel.remote.server import RemoteServer

    found = await RemoteServer(server.server, server.token).specs()
    for name, spoken in found.languages.items():
        if language.lower() in (name.lower(), spoken.lower()):
            return name
    known = sorted({*found.languages.values()})
    raise KernelMissing(
        f"No kernel of {server.server} runs `{language}`",
        hint=f"There are kernels for {', '.join(known)}",
    )


def _name_remote(address: KernelAddress) -> str:
    return f"kernel {address.server}"


def _send_to(order: KernelOrder, address: KernelAddress, kernel: str | None = None) -> KernelOrder:
    """Order a kernel of a server: the one that the address names, or a new one."""
    return replace(
        order,
        server=address.server,
        server_token=address.token,
        kernel_id=address.kernel_id or None,
        kernel=kernel or (order.kernel if address.kernel_id else None),
    )


def _find_spec(language: str, env: Mapping[str, str]) -> str:
    from cellwright.kernel.discovery import list_specs

    specs = list_specs(env)
    for spec in specs:
        if language.lower() in (spec.name.lower(), spec.language.lower()):
            return spec.name
    known = sorted({spec.language for spec in specs} | {"py"})
    raise KernelMissing(
        f"No kernel here runs `{language}`", hint=f"There are kernels for {', '.join(known)}"
    )


def _takes_variables(info: KernelInfo) -> bool:
    """Whether code learns from variables where it is: others have other ways, or other folders."""
    return info.language == "python" and info.transport != "remote"


def _name_file(key: Key) -> str:
    name = blake2b(
        "\0".join((str(os.getpid()), *key)).encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()
    return f"{SESSION_FILE_PREFIX}{name}.json"


def find_kernel_name(notebook: Notebook) -> str | None:
    """Return the kernelspec that a notebook names."""
    kernelspec = notebook.metadata.get("kernelspec")
    name = kernelspec.get("name") if isinstance(kernelspec, dict) else None
    return name if isinstance(name, str) else None


def is_per_call(request: EvalRequest, caller: Caller) -> bool:
    """Whether a call of `eval` has a kernel of its own: as it says, or as the setting says."""
    if request.per_call is not None:
        return request.per_call
    return caller.settings.eval_mode == "per-call"
