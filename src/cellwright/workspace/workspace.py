"""The faces of the verbs: `Workspace` and `Book` for code that blocks, `Async…` for code that awaits.

Their methods are made from the requests in `requests.py`, with the same parameters and words. An
api carries the requests out: in this process, or over the engine's socket.
"""

from __future__ import annotations

import os
from typing import Concatenate, Generic, ParamSpec, Protocol, TypeVar

from cellwright.workspace.api import requests
from cellwright.workspace.caller import Caller
from cellwright.workspace.paths import confine, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from types import TracebackType
    from typing import Any, ClassVar, Self

    from cellwright.config.settings import Settings
    from cellwright.document.notebook import Notebook
    from cellwright.journal import Journal
    from cellwright.workspace.api.requests import Mode, PathLike, Request
    from cellwright.workspace.hub import Hub

P = ParamSpec("P")
A = TypeVar("A")
C = TypeVar("C", bound="Callable[..., object]")
Api = TypeVar("Api")


class WorkspaceApi(Protocol):
    """Carries requests out, and blocks until they are answered."""

    def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        ...

    def close(self) -> None:
        """Let go of everything that belongs to this caller alone."""
        ...


class AsyncWorkspaceApi(Protocol):
    """Carries requests out for callers that await.

    A call that is cancelled stops the run it has started, and ends when that has.
    """

    async def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        ...

    async def close(self) -> None:
        """Let go of everything that belongs to this caller alone."""
        ...


# -- methods made from requests -----------------------------------------------------------------


def _on_workspace(
    request: Callable[P, Request[A]],
) -> Callable[Concatenate[Workspace, P], A]:
    def call(self: Workspace, /, *args: P.args, **given: P.kwargs) -> A:
        return self.api.call(request(*args, **given))

    return _dress(call, request)


def _on_book(
    request: Callable[Concatenate[str, P], Request[A]],
) -> Callable[Concatenate[Book, P], A]:
    def call(self: Book, /, *args: P.args, **given: P.kwargs) -> A:
        return self.workspace.api.call(request(self.name, *args, **given))

    return _dress(call, request)


def _await_on_workspace(
    request: Callable[P, Request[A]],
) -> Callable[Concatenate[AsyncWorkspace, P], Coroutine[Any, Any, A]]:
    async def call(self: AsyncWorkspace, /, *args: P.args, **given: P.kwargs) -> A:
        return await self.api.call(request(*args, **given))

    return _dress(call, request)


def _await_on_book(
    request: Callable[Concatenate[str, P], Request[A]],
) -> Callable[Concatenate[AsyncBook, P], Coroutine[Any, Any, A]]:
    async def call(self: AsyncBook, /, *args: P.args, **given: P.kwargs) -> A:
        return await self.workspace.api.call(request(self.name, *args, **given))

    return _dress(call, request)


def _dress(call: C, request: Any) -> C:
    """Give a method the name, the words and the signature of its request."""
    call.__name__ = request.VERB
    call.__doc__ = request.__doc__
    call.__wrapped__ = _LazySignature(request)  # type: ignore[attr-defined]
    return call


class _LazySignature:
    """The signature of a method, for `help()` and `inspect`, made when it is asked for."""

    def __init__(self, request: type[Request[Any]]) -> None:
        self.request = request

    @property
    def __signature__(self) -> Any:
        from inspect import Parameter, Signature

        parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
        is_of_book = self.request.VERB in vars(Book)
        for name, kind, default in self.request.list_parameters()[is_of_book:]:
            how = Parameter.KEYWORD_ONLY if kind == "keyword" else Parameter.POSITIONAL_OR_KEYWORD
            value = Parameter.empty if default is ... else default
            parameters.append(Parameter(name, how, default=value))
        return Signature(parameters)


class _Face(Generic[Api]):
    """What both kinds of workspace are made of: a caller, and an api that carries requests out."""

    add_engine: ClassVar[Callable[[Any, Caller], Any] | None] = None
    """Adds the way to the engine to an api of this process; the composition root sets it."""

    def __init__(
        self,
        root: PathLike | None = None,
        *,
        cwd: str | None = None,
        mode: Mode = "agent",
        actor: str = "python:caller",
        environ: Mapping[str, str] | None = None,
        journal: Journal | None = None,
        hub: Hub | None = None,
        owner: str | None = None,
        engine: bool = True,
        api: Api | None = None,
    ) -> None:
        self.caller = Caller(
            root,
            cwd=cwd,
            mode=mode,
            actor=actor,
            environ=environ,
            journal=journal,
            hub=hub,
            owner=owner,
        )
        self.api: Api = api or self._make_local_api()
        add_engine = type(self).add_engine
        if engine and api is None and hub is None and add_engine is not None:
            self.api = add_engine(self.api, self.caller)

    def _make_local_api(self) -> Api:
        raise NotImplementedError

    @property
    def cwd(self) -> str:
        """The folder that relative paths resolve against."""
        return self.caller.cwd

    @property
    def root(self) -> str | None:
        """The folder that no path may leave, if there is one."""
        return self.caller.root

    @property
    def mode(self) -> Mode:
        """What is allowed: `ask`, `edit` or `agent`."""
        return self.caller.mode

    @property
    def actor(self) -> str:
        """Who is asking, as `door:name`."""
        return self.caller.actor

    @property
    def settings(self) -> Settings:
        """The settings of the working folder."""
        return self.caller.settings


# -- blocking -----------------------------------------------------------------------------------


class Workspace(_Face[WorkspaceApi]):
    """Notebooks below one root, opened by path.

    Args:
        root: paths outside this folder are refused; None confines nothing.
        cwd: relative paths resolve against it; the process's own by default.
        mode: `ask`, `edit` or `agent`; what it forbids is refused.
        actor: who is asking, as `door:name`; an undo takes back that actor's own changes.
        environ: the caller's variables; the process's own by default.
        journal: the history to keep; the user's own by default.
        hub: kernels and history that are shared with other workspaces; its own by default.
        owner: what keeps a notebook's kernel alive; the actor by default.
        engine: whether a call about a notebook that the engine holds is passed on to it.
        api: carries the verbs out; in this process by default.
    """

    def _make_local_api(self) -> WorkspaceApi:
        from cellwright.workspace.api.local import LocalApi

        return LocalApi(self.caller)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the kernels that were started here, or hang up if they live in the engine."""
        self.api.close()
        self.caller.close()

    def open(self, path: PathLike) -> Book:
        """Return a notebook by path; it need not exist yet, since an edit may create it."""
        return Book(self, os.fspath(path))

    list = _on_workspace(requests.ListRequest)
    create = _on_workspace(requests.CreateRequest)
    eval = _on_workspace(requests.EvalRequest)
    runs = _on_workspace(requests.RunsRequest)
    attach = _on_workspace(requests.AttachRequest)
    cancel = _on_workspace(requests.CancelRequest)
    watch = _on_workspace(requests.WatchRequest)
    sessions = _on_workspace(requests.SessionsRequest)
    kernel = _on_workspace(requests.KernelRequest)
    kernel_specs = _on_workspace(requests.KernelSpecsRequest)
    artifact = _on_workspace(requests.ArtifactRequest)
    forget = _on_workspace(requests.ForgetRequest)


class Book:
    """A notebook of a workspace, named by its path; it holds nothing but that."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self.workspace = workspace
        self.name = name
        self.path = resolve(name, workspace.cwd)
        self.real = confine(self.path, workspace.root)

    def load(self) -> Notebook:
        """Return the notebook as it is now; its revision is remembered, to serve as a base."""
        read_file = _make_reader(self.workspace.caller, self.name)
        return self.workspace.api.call(requests.LoadRequest(self.name, read_file=read_file))

    read = _on_book(requests.ReadRequest)
    select = _on_book(requests.SelectRequest)
    outputs = _on_book(requests.OutputsRequest)
    run = _on_book(requests.RunRequest)
    stale = _on_book(requests.StaleRequest)
    executions = _on_book(requests.ExecutionsRequest)
    raw = _on_book(requests.RawRequest)
    edit = _on_book(requests.EditRequest)
    write = _on_book(requests.WriteRequest)
    write_file = _on_book(requests.WriteFileRequest)
    upgrade = _on_book(requests.UpgradeRequest)
    undo = _on_book(requests.UndoRequest)
    redo = _on_book(requests.RedoRequest)
    restore = _on_book(requests.RestoreRequest)
    log = _on_book(requests.LogRequest)
    blame = _on_book(requests.BlameRequest)
    backups = _on_book(requests.BackupsRequest)
    diff = _on_book(requests.DiffRequest)
    presence = _on_book(requests.PresenceRequest)
    warnings = _on_book(requests.WarningsRequest)


# -- awaiting -----------------------------------------------------------------------------------


class AsyncWorkspace(_Face[AsyncWorkspaceApi]):
    """The verbs of `Workspace`, to be awaited; the arguments are the same."""

    def _make_local_api(self) -> AsyncWorkspaceApi:
        from cellwright.workspace.api.local import AsyncLocalApi

        return AsyncLocalApi(self.caller)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the kernels that were started here, or hang up if they live in the engine."""
        await self.api.close()

    def open(self, path: PathLike) -> AsyncBook:
        """Return a notebook by path; it need not exist yet, since an edit may create it."""
        return AsyncBook(self, os.fspath(path))

    list = _await_on_workspace(requests.ListRequest)
    create = _await_on_workspace(requests.CreateRequest)
    eval = _await_on_workspace(requests.EvalRequest)
    runs = _await_on_workspace(requests.RunsRequest)
    attach = _await_on_workspace(requests.AttachRequest)
    cancel = _await_on_workspace(requests.CancelRequest)
    watch = _await_on_workspace(requests.WatchRequest)
    sessions = _await_on_workspace(requests.SessionsRequest)
    kernel = _await_on_workspace(requests.KernelRequest)
    kernel_specs = _await_on_workspace(requests.KernelSpecsRequest)
    artifact = _await_on_workspace(requests.ArtifactRequest)
    forget = _await_on_workspace(requests.ForgetRequest)


class AsyncBook:
    """The verbs of `Book`, to be awaited."""

    def __init__(self, workspace: AsyncWorkspace, name: str) -> None:
        self.workspace = workspace
        self.name = name
        self.path = resolve(name, workspace.cwd)
        self.real = confine(self.path, workspace.root)

    async def load(self) -> Notebook:
        """Return the notebook as it is now; its revision is remembered, to serve as a base."""
        read_file = _make_reader(self.workspace.caller, self.name)
        return await self.workspace.api.call(requests.LoadRequest(self.name, read_file=read_file))

    read = _await_on_book(requests.ReadRequest)
    select = _await_on_book(requests.SelectRequest)
    outputs = _await_on_book(requests.OutputsRequest)
    run = _await_on_book(requests.RunRequest)
    stale = _await_on_book(requests.StaleRequest)
    executions = _await_on_book(requests.ExecutionsRequest)
    raw = _await_on_book(requests.RawRequest)
    edit = _await_on_book(requests.EditRequest)
    write = _await_on_book(requests.WriteRequest)
    write_file = _await_on_book(requests.WriteFileRequest)
    upgrade = _await_on_book(requests.UpgradeRequest)
    undo = _await_on_book(requests.UndoRequest)
    redo = _await_on_book(requests.RedoRequest)
    restore = _await_on_book(requests.RestoreRequest)
    log = _await_on_book(requests.LogRequest)
    blame = _await_on_book(requests.BlameRequest)
    backups = _await_on_book(requests.BackupsRequest)
    diff = _await_on_book(requests.DiffRequest)
    presence = _await_on_book(requests.PresenceRequest)
    warnings = _await_on_book(requests.WarningsRequest)


def _make_reader(caller: Caller, name: str) -> Callable[[str], Notebook]:
    """Return a function that reads a file which the engine names, confined to the root."""

    def read_file(path: str) -> Notebook:
        from cellwright.document import files
        from cellwright.workspace.paths import hold_folder

        with hold_folder(path, caller.root, name) as place:
            return files.read(path, max_bytes=caller.settings.max_file_bytes, reached=place)

    return read_file
