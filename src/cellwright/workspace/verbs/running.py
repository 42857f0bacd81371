"""Verbs that run code, follow runs, and look after kernels; most belong on the kernels' loop."""

from __future__ import annotations

import asyncio
import json
import time

from cellwright.errors import (
    InvalidEdit,
    KernelCannot,
    KernelMissing,
    NotebookNotFound,
    RunNotFound,
)
from cellwright.workspace.api.answers import (
    AttachAnswer,
    KernelAnswer,
    KernelSpecView,
    RemoteKernelView,
    SessionView,
    Variable,
    WatchAnswer,
)
from cellwright.workspace.hosts.host import KernelAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.change import State
    from cellwright.document.notebook import Notebook
    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.session import Session
    from cellwright.workspace.activity import Event
    from cellwright.workspace.api import requests
    from cellwright.workspace.api.answers import EvalAnswer, RunView
    from cellwright.workspace.caller import Caller
    from cellwright.workspace.notebook import OpenNotebook
    from cellwright.workspace.runs.execution import Execution, Executions
    from cellwright.workspace.runs.notebook_run import NotebookRun
    from cellwright.workspace.runs.run import Run, RunOptions

_ACTIONS = ("status", "interrupt", "restart", "variables", "shutdown", "connect")
_LOOK_EVERY = 0.5
_VARIABLES_WITHIN = 30.0
_VARIABLES = """
def _cellwright_variables():
    import json, types
    hidden = {"In", "Out", "exit", "quit", "get_ipython", "open", "display"}
    rows = []
    for name, value in list(globals().items()):
        if name.startswith("_") or name in hidden or isinstance(value, types.ModuleType):
            continue
        try:
            text = repr(value)
        except Exception as error:
            text = "<repr failed: %s>" % type(error).__name__
        size = getattr(value, "shape", None)
        if size is None:
            try:
                size = len(value)
            except Exception:
                size = None
        rows.append({"name": name, "type": type(value).__name__,
                     "size": None if size is None else str(size), "value": text[:200]})
    print(json.dumps(rows))
_cellwright_variables()
del _cellwright_variables
"""


# -- running cells ------------------------------------------------------------------------------


async def evaluate(caller: Caller, request: requests.EvalRequest) -> EvalAnswer:
    """Run code that belongs to no notebook, in a session or in a notebook's kernel."""
    from cellwright.workspace.runs.eval_run import EvalRun

    path = request.notebook
    if path is None and request.session.endswith(".ipynb"):
        path = request.session
    book = notebook = None
    if path is not None:
        book = await caller.hub.in_file_thread(caller.open, path)
        notebook = await caller.hub.in_file_thread(book.load)
    run = EvalRun(caller, request, book, notebook)
    await caller.hub.runs.start_and_follow(run)
    return run.answer()


async def run_cells(caller: Caller, request: requests.RunRequest) -> Executions:
    """Run cells of a notebook."""
    from cellwright.workspace.runs.run import RunOptions

    options = RunOptions.of(request)
    if request.resume is not None:
        resumed = await _resume_run(caller, request, options)
        if resumed is not None:
            return resumed

    def prepare() -> NotebookRun:
        book, how = caller.open(request.path), options
        if request.output is not None:
            # A kernel that was left by a run which was stopped has the state of that run.
            how = options.replace(copy_of=book.real, parameters=None, restart=True)
            book = _copy_notebook(book, request)
        return prepare_run(
            book,
            how,
            cells=request.cells,
            above=request.above,
            below=request.below,
            stale=request.stale,
            replay=request.replay,
        )

    run = await caller.hub.in_file_thread(prepare)
    if request.output is not None and not run.executions:  # a copy alone needs no kernel
        from cellwright.workspace.runs.execution import Executions

        return Executions(done=True, skipped=run.skipped)
    await follow_run(run)
    return run.answer()


def _copy_notebook(book: OpenNotebook, request: requests.RunRequest) -> OpenNotebook:
    """Save what a notebook holds under another name, on record, with parameters as a cell."""
    copy = book.caller.open(request.output or "")
    if copy.real == book.real:
        raise InvalidEdit(f"{copy.name} is the notebook itself", hint="Without an output it is run")
    state = _make_copy(book, request)
    copy.change(lambda notebook: notebook.become(state), create=True, label=f"copy of {book.name}")
    return copy


def _make_copy(book: OpenNotebook, request: requests.RunRequest) -> State:
    """Make the copy in memory; it is saved in one step, never with the outputs of another run."""
    from cellwright.workspace.runs.copies import make_copy_edits

    source = book.host.read()
    some = (request.cells, request.above, request.below, request.replay)
    runs_all = not request.stale and all(each is None for each in some)
    edits = make_copy_edits(source, request.parameters, clears=runs_all)
    return source.apply(edits).after if edits else source.state


# -- continuing what was stopped ----------------------------------------------------------------


async def _resume_run(
    caller: Caller, request: requests.RunRequest, options: RunOptions
) -> Executions | None:
    """Continue what an earlier call began; None if it has to begin with the first cell."""
    from cellwright.workspace.runs.execution import Executions

    hub = caller.hub
    target = await hub.in_file_thread(caller.open, request.output or request.path)
    active = hub.runs.find_active(target.real)
    if active is not None:
        if request.progress is not None:
            request.progress({"run": active.id})
        await active.follow(request.progress, from_start=True)
    found = await hub.in_file_thread(_find_rest, caller, target, request)
    if found is None:
        return None
    notebook, rest, done = found
    if not rest:
        return Executions(done, run=active.id if active is not None else "", done=True)
    from cellwright.workspace.runs.notebook_run import NotebookRun

    how = options.replace(restart=False, parameters=None)
    if request.output is not None:
        source = await hub.in_file_thread(caller.open, request.path)
        how = how.replace(copy_of=source.real)
    run = NotebookRun(target, notebook, rest, how)
    await follow_run(run)
    answer = run.answer()
    rows = [*done, *answer]
    return Executions(rows, run=answer.run, done=answer.done, usage=answer.usage)


def _find_rest(
    caller: Caller, target: OpenNotebook, request: requests.RunRequest
) -> tuple[Notebook, list[Cell], list[Execution]] | None:
    """Find the cells that were not reached; None if those before them have to run again.

    That is so if the notebook is not what was begun, had other parameters, or its kernel is gone.
    """
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.runs.choice import choose_unfinished
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.runs.parameters import Parameters
    from cellwright.workspace.staleness import PARAMETERS, find_language

    try:
        notebook = target.host.read()
    except NotebookNotFound:
        return None
    parameters = request.parameters or {}
    if request.output is not None:
        wanted = Notebook.of_state(_make_copy(caller.open(request.path), request))
        if [cell.hash for cell in notebook.cells] != [cell.hash for cell in wanted.cells]:
            return None
        parameters = {}  # they are a cell of the copy
    since = request.resume or 0.0
    records = [run for run in target.list_executions() if run.began >= since]
    life = _find_life(target)
    is_alive = any(run.kernel == life for run in records)
    if not is_alive:
        life = records[-1].kernel if records else ""
    rest, done = choose_unfinished(notebook, records, life, since)
    if rest and not is_alive:
        return None
    source = ""
    if parameters:
        source = Parameters(parameters, notebook.cells).source(find_language(notebook))
    set_before = [run.source for run in records if run.cell == PARAMETERS and run.kernel == life]
    if set_before != ([source] if source else []):
        return None
    ended = [
        Execution(
            run.status,
            cell.handle,
            cell.index,
            outputs=cell.to_dict().get("outputs", []),
            seconds=run.seconds,
            count=run.count,
            expected=run.status == "error",
            saved=True,
        )
        for cell in notebook.cells
        if (run := done.get(cell.handle)) is not None
    ]
    return notebook, rest, ended


def prepare_run(
    book: OpenNotebook, options: RunOptions, notebook: Notebook | None = None, **which: Any
) -> NotebookRun:
    """Choose cells of a notebook; blocks, since it reads the notebook and its record.

    `notebook` is what it holds now; it is read if it is not given. `which` is as for `choose_code`.
    """
    from cellwright.workspace.runs.choice import choose_code
    from cellwright.workspace.runs.notebook_run import NotebookRun

    found = book.host.read() if notebook is None else notebook
    choice = choose_code(
        found,
        **which,
        executions=lambda: book.journal.executions(book.real),
        life=lambda: _find_life(book),
    )
    run = NotebookRun(book, found, choice.cells, options)
    run.skipped = [cell.handle for cell in choice.skipped]
    return run


async def follow_run(run: NotebookRun) -> None:
    """Run the cells that were chosen, and wait as the options say."""
    from cellwright.workspace.runs.notebook_access import KernelAccess

    book = run.book
    book.hub.sessions.serve_notebook(book.real, KernelAccess(book))
    await book.hub.runs.start_and_follow(run)


def _find_life(book: OpenNotebook) -> str:
    """Return the life of the kernel that a notebook has now; a new one, if it has none."""
    address = book.host.kernel()
    if address is not None and address.life is not None:
        return address.life or "none yet"  # an editor hears whatever runs in its kernel
    session = book.hub.find_session(book.real)
    kernel = None if session is None else session.transport
    return session.life if session and kernel is not None and kernel.is_alive else "none yet"


# -- runs by id ---------------------------------------------------------------------------------


async def list_runs(caller: Caller, _: requests.RunsRequest) -> list[RunView]:
    """List what runs, and what ran lately."""
    if not caller.hub.has_runs:
        return []
    runs = caller.hub.runs
    return [run for run in runs.list() if caller.knows(runs.get(run.run).origin)]


async def attach(caller: Caller, request: requests.AttachRequest) -> AttachAnswer:
    """Follow a run from its beginning; looking away does not stop it."""
    run = _find_run(caller, request.run)
    await run.follow(request.progress, request.wait, from_start=True, stops=False)
    return _describe_run(run)


async def cancel(caller: Caller, request: requests.CancelRequest) -> AttachAnswer:
    """Stop a run, and wait until its kernel has obeyed or was ended."""
    run = _find_run(caller, request.run)
    was_stopped = run.cancel()
    await run.wait()
    return _describe_run(run).replace(cancelled=was_stopped)


def _find_run(caller: Caller, run_id: str) -> Run:
    """Return a run that this caller may know of."""
    run = caller.hub.runs.get(run_id)
    if not caller.knows(run.origin):
        raise RunNotFound(run_id)
    return run


def _describe_run(run: Run) -> AttachAnswer:
    answer = run.last_answer if run.is_over else run.answer()
    return AttachAnswer.extend(run.describe(), done=run.is_over, answer=answer)


async def watch(caller: Caller, request: requests.WatchRequest) -> WatchAnswer:
    """Report events of one notebook, or of all in the root, as they happen."""
    hub, progress, until = caller.hub, request.progress, request.until
    book = None
    if request.path is not None:
        book = await hub.in_file_thread(caller.open, request.path)
    real = None if book is None else book.real
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[Event] = asyncio.Queue()
    unsubscribe = hub.events.subscribe(
        real, lambda event: loop.call_soon_threadsafe(waiting.put_nowait, event)
    )
    deadline = None if request.wait is None else time.monotonic() + request.wait
    count = 0

    async def look() -> str | None:
        if book is None:
            return None
        # It may have been opened in an editor, or closed there, since the last look.
        return await hub.in_file_thread(hub.find_host(book).signature)

    try:
        seen, has_differed = await look(), False
        if request.announce:
            progress({"event": "watching", "notebook": real, "when": time.time()})
        # What happened before the end is reported.
        while until is None or not waiting.empty() or not until():
            left = _LOOK_EVERY if deadline is None else deadline - time.monotonic()
            if left <= 0:
                break
            try:
                async with asyncio.timeout(min(left, _LOOK_EVERY)):
                    event = await waiting.get()
            except TimeoutError:
                now = await look()
                if now == seen or real is None or not waiting.empty():
                    continue
                if not has_differed:  # an edit of ours is in the file before it is reported
                    has_differed = True
                    continue
                if hub.has_runs and hub.runs.is_busy(real):
                    seen = now  # what a cell says is saved now and then, while it runs
                    continue
                event = {"event": "outside", "notebook": real, "when": time.time()}
            seen, has_differed = await look(), False
            if real is None and not caller.knows(f"notebook:{event['notebook']}"):
                continue
            count += 1
            progress(event)
    finally:
        unsubscribe()
    return WatchAnswer(count)


# -- kernels ------------------------------------------------------------------------------------


async def list_sessions(caller: Caller, _: requests.SessionsRequest) -> list[SessionView]:
    """List the sessions and their kernels."""
    if not caller.hub.has_kernels:
        return []
    return [
        SessionView(**session.to_json())
        for session in caller.hub.sessions.pool
        if caller.knows(session.key.origin)
    ]


async def act_on_kernel(caller: Caller, request: requests.KernelRequest) -> KernelAnswer:
    """Look at a session's kernel, or do something to it."""
    action, name = request.action, caller.name_session(request.session)
    if action not in _ACTIONS:
        raise InvalidEdit(f"Unknown action {action!r}", hint=f"One of {', '.join(_ACTIONS)}")
    if name.endswith(".ipynb"):  # a notebook's session is named by its real path
        name = (await caller.hub.in_file_thread(caller.open, name)).real
    if action == "connect":
        return await _connect(caller, request, name)
    pool = caller.hub.sessions.pool
    session = pool.find(name, request.cwd, lambda key: caller.knows(key.origin))
    interrupted = variables = None
    if action == "interrupt":
        interrupted = session.interrupt()
    elif action == "restart":
        await session.restart()
    elif action == "variables":
        variables = await _list_variables(session)
    elif action == "shutdown":
        await pool.end(session.key)
        caller.hub.sessions.disconnect(session.key)
    return KernelAnswer(**session.to_json(), interrupted=interrupted, variables=variables)


async def _connect(caller: Caller, request: requests.KernelRequest, name: str) -> KernelAnswer:
    """Give a session, or a notebook, a kernel of a server that the user allows.

    Raises:
        KernelCannot: the server is not allowed, or the session has a kernel already.
        KernelError: the server does not answer, or has no such kernel.
    """
    from cellwright.kernel.remote.server import RemoteServer
    from cellwright.workspace.runs.sessions import find_named_server

    url = find_named_server(request.server, caller.settings)
    server = RemoteServer(url, request.server_token)
    kernels = await server.kernels()
    is_running = any(each.id == request.kernel for each in kernels)
    session = await caller.hub.sessions.connect(
        name,
        caller,
        KernelAddress(url, request.kernel or "" if is_running else "", request.server_token),
        kernel=None if is_running else request.kernel,
        cwd=request.cwd,
    )
    shown = [RemoteKernelView(each.id, each.name, each.state) for each in kernels]
    return KernelAnswer(**session.to_json(), kernels=shown)


async def _list_variables(session: Session) -> list[Variable]:
    """List what a user's Python code has defined.

    Raises:
        KernelCannot: it is another language, or the kernel does not answer.
    """
    from cellwright.kernel.transport import Code
    from cellwright.outputs.events import StreamEvent

    texts: list[str] = []

    def take(event: KernelEvent) -> None:
        if isinstance(event, StreamEvent) and event.name == "stdout":
            texts.append(event.text)

    code = Code(_VARIABLES, silent=True, store_history=False)
    ran = await session.run(code, timeout=_VARIABLES_WITHIN, on_event=take)
    if ran.outcome.status != "ok":
        raise KernelCannot(session.note or "kernel", "list its variables")
    try:
        return [Variable(**row) for row in json.loads("".join(texts))]
    except ValueError:
        return []


async def list_kernel_specs(
    caller: Caller, request: requests.KernelSpecsRequest
) -> list[KernelSpecView]:
    """List every kernel: those of this machine, of the server that was chosen, or of one alone."""
    from cellwright.workspace.runs.sessions import LOCAL, make_server_address

    chosen = request.server or caller.settings.server
    far: list[KernelSpecView] = []
    if chosen not in ("", LOCAL):
        far = await _list_remote_specs(make_server_address(chosen, request.server_token, caller))
        if request.server is not None:
            return far
    near = await caller.hub.in_file_thread(_list_local_specs, caller, request.probe)
    return far + [row.replace(default=False, why=None) for row in near] if far else near


async def _list_remote_specs(server: KernelAddress) -> list[KernelSpecView]:
    from cellwright.kernel.remote.server import RemoteServer

    found = await RemoteServer(server.server, server.token).specs()
    return [
        KernelSpecView(
            name,
            language=language,
            origin="server",
            server=server.server,
            default=name == found.default,
            why="it is the server's default" if name == found.default else None,
        )
        for name, language in found.languages.items()
    ]


def _list_local_specs(caller: Caller, probe: bool) -> list[KernelSpecView]:  # noqa: FBT001
    """List the kernels of this machine; a default that is missing is replaced by the reason."""
    from cellwright.kernel.discovery import choose_kernel, list_specs

    chosen, why, problem = None, "", None
    try:
        choice = choose_kernel(
            caller.cwd,
            env=caller.environ,
            setting=caller.settings.kernel or None,
            probe=probe,
        )
        chosen, why = choice.spec, choice.why
    except KernelMissing as error:
        problem = error
    specs = list_specs(caller.environ, chosen.python if chosen else None)
    if chosen is not None and all(spec.command != chosen.command for spec in specs):
        specs = [chosen, *specs]
    rows = []
    if problem is not None:
        rows.append(KernelSpecView(default=True, problem=problem.message, hint=problem.hint))
    for spec in specs:
        is_default = chosen is not None and spec.command == chosen.command
        rows.append(
            KernelSpecView(
                spec.name,
                spec.display_name,
                spec.language,
                spec.origin,
                spec.python,
                spec.folder,
                is_default,
                why if is_default else None,
            )
        )
    return rows
