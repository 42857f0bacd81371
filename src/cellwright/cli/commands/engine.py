"""What lives in the background: `cellwright engine`, `kernel`, `sessions` and `artifact`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import click

from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import is_terminal, one_line, write_bytes
from cellwright.errors import ArtifactNotFound, EngineLost, EngineUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    from cellwright.outputs.artifacts import Artifact, ArtifactStore
    from cellwright.workspace.api.answers import KernelAnswer, KernelSpecView, SessionView, Variable
    from cellwright.workspace.api.values import Value

    V = TypeVar("V", bound=Value)


_STOP_WITHIN = 15.0
_TERM_WITHIN = 5.0
_KILL_WITHIN = 5.0
_LINES = 50


@click.group()
def engine_command() -> None:
    """Control the background engine, which keeps kernels alive between commands.

    It starts when it is first needed, and ends when it has been idle for some time.

    \b
    cellwright engine status
    cellwright engine stop
    """


def _ask_engines(verb: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]], list[int]]:
    """Ask the engine, and engines that it has replaced but which still work.

    Returns the answer of the engine, or None if none is running, and those of the others, and the
    processes that did not answer. No handshake is made, so that engines of other versions answer,
    too.
    """
    from cellwright.engine import location
    from cellwright.engine.client import EngineConnection
    from cellwright.engine.launch import find_peer_process, try_connect

    found, mute = [], []
    for path in (None, *location.draining_paths()):
        connected = try_connect(path)
        if connected is not None:
            pid = find_peer_process(connected)
            client = EngineConnection(connected, None)
            try:
                found.append((path, client.call(verb, {})))
            except EngineLost:
                pass  # it has just ended
            except EngineUnavailable:
                mute.append(pid)
            finally:
                client.close()
        elif path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108  # its engine has died
        else:
            pid = location.find_pid()
            # A child of an engine that has just ended may hold its lock for a moment longer.
            mute.append(pid if pid is not None and _is_alive(pid) else None)
    main = next((answer for path, answer in found if path is None), None)
    others = [answer for path, answer in found if path is not None]
    return main, others, [pid for pid in mute if pid is not None]


@engine_command.command()
@common
def start(call: CommandCall) -> None:
    """Start the engine if it is not running.

    \b
    cellwright engine start
    """
    from cellwright.engine.client import EngineApi
    from cellwright.workspace.caller import Caller

    engine = EngineApi(Caller(actor="cli:engine"))
    try:
        found = engine.call_engine("status")
    finally:
        engine.close()
    call.output.data({"running": True, **found}, f"The engine is running, process {found['pid']}\n")


@engine_command.command("status")
@common
def engine_status(call: CommandCall) -> None:
    """Show whether the engine is running, and its sessions and runs.

    \b
    cellwright engine status --json
    """
    found, leaving, mute = _ask_engines("status")
    if mute:
        raise EngineUnavailable(
            f"process {mute[0]} does not answer", hint="Stopping it ends it, answer or not"
        )
    text = ["No engine is running\n"] if found is None else _describe_engine(found)
    for other in leaving:
        text += _describe_engine(other)
    nothing: dict[str, Any] = {"pid": None, "socket": None, "sessions": [], "runs": []}
    data = {"running": found is not None, **(found or nothing), "making_room": leaving}
    call.output.data(data, text, styled=True)


def _describe_engine(found: dict[str, Any]) -> list[str]:
    from cellwright.cli.commands.run import run_row
    from cellwright.workspace.api.answers import RunView, SessionView

    active = [run for run in _restore(RunView, found["runs"]) if run.ended is None]
    draining = f", draining: {one_line(found['draining'])}" if found["draining"] else ""
    return [
        f"The engine is running, process {found['pid']}, version {found['version']}{draining}\n",
        f"  {len(found['sessions'])} sessions, {len(active)} runs, ",
        f"{len(found['clients'])} clients, up {found['seconds']:.0f} s\n",
        *session_rows(_restore(SessionView, found["sessions"])),
        *map(run_row, active),
    ]


def _restore(kind: type[V], shapes: list[dict[str, Any]]) -> list[V]:
    """Make values of data; an engine of another version may leave fields out."""
    nothing = dict.fromkeys(kind.FIELDS)
    return [kind.from_json({**nothing, **shape}) for shape in shapes]


@engine_command.command()
@common
def stop(call: CommandCall) -> None:
    """Stop the engine and all its kernels; their variables are lost.

    An engine that does not answer, or does not end in time, is killed.

    \b
    cellwright engine stop
    """
    found, leaving, mute = _ask_engines("stop")
    asked = [each["pid"] for each in (found, *leaving) if each is not None]
    deadline = time.monotonic() + _STOP_WITHIN
    killed = [pid for pid in asked if not _wait_end(pid, deadline)] + mute
    for pid in killed:
        _end_process(pid)
    if killed:
        from cellwright.kernel.local import sweep_leftovers

        sweep_leftovers()  # what its keepers could not end
    pids = asked + mute
    data = {"stopped": bool(pids), "pid": pids[0] if pids else None, "pids": pids}
    text = [f"Stopped process {pid}\n" for pid in pids] or "No engine is running\n"
    call.output.data(data, text)


def _end_process(pid: int) -> None:
    """End a process that does not listen: by SIGTERM, then by SIGKILL."""
    for number, within in ((signal.SIGTERM, _TERM_WITHIN), (signal.SIGKILL, _KILL_WITHIN)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # one that was stopped takes it only then
        if _wait_end(pid, time.monotonic() + within):
            return
    raise EngineUnavailable(f"process {pid} cannot be ended")


def _wait_end(pid: int, deadline: float) -> bool:
    while _is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


@engine_command.command()
@click.option("-n", "--lines", default=_LINES, help="How many lines; 0 for all.")
@common
def logs(call: CommandCall, lines: int) -> None:
    """Print the end of the engine's log.

    \b
    cellwright engine logs -n 20
    """
    from cellwright.engine.location import log_path

    path = log_path()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            found = file.readlines()
    except FileNotFoundError:
        found = []
    found = found[-lines:] if lines else found
    call.output.data({"path": path, "lines": [line.rstrip("\n") for line in found]}, found)
    if not found:
        call.output.say("There is no log yet")


_session = click.argument("session", default="default")


@click.group()
def kernel_command() -> None:
    """List kernels, or control the kernel of a session.

    \b
    cellwright kernel specs
    """


@kernel_command.command()
@click.option("--probe", is_flag=True, help="Start interpreters to see whether they have one.")
@click.option("--server", metavar="URL", help="Those of a Jupyter server or gateway.")
@common
def specs(call: CommandCall, *, probe: bool, server: str | None) -> None:
    """List the kernels that can be started here; `*` marks the default for notebooks.

    Without --probe nothing is started.

    \b
    cellwright kernel specs
    cellwright kernel specs --server http://127.0.0.1:8888/
    """
    with call.workspace() as workspace:
        found = workspace.kernel_specs(probe=probe, server=server)
    call.output.data({"specs": found}, map(_spec_row, found), styled=True)


def _spec_row(spec: KernelSpecView) -> str:
    if spec.problem is not None:
        return f"* {one_line(spec.problem)}\n  {one_line(spec.hint or '')}\n"
    mark = "*" if spec.default else " "
    place = one_line(spec.server or spec.python or spec.folder or "")
    return f"{mark} {one_line(spec.name or ''):16} {one_line(spec.language or ''):10} {place}\n"


def _act_on_kernel(call: CommandCall, action: str, session: str) -> KernelAnswer:
    with call.workspace() as workspace:
        return workspace.kernel(action, session)


@kernel_command.command("status")
@_session
@common
def kernel_status(call: CommandCall, session: str) -> None:
    """Show the state of a session's kernel.

    \b
    cellwright kernel status mine
    """
    found = _act_on_kernel(call, "status", session)
    call.output.data(found, session_rows([found]), styled=True)


@kernel_command.command()
@_session
@common
def interrupt(call: CommandCall, session: str) -> None:
    """Interrupt the running cell.

    \b
    cellwright kernel interrupt mine
    """
    found = _act_on_kernel(call, "interrupt", session)
    call.output.data(found, "Interrupted\n" if found.interrupted else "Nothing was running\n")


@kernel_command.command()
@_session
@common
def restart(call: CommandCall, session: str) -> None:
    """Restart the kernel; its variables are lost.

    \b
    cellwright kernel restart mine
    """
    call.output.data(
        _act_on_kernel(call, "restart", session), "Restarted; all variables are lost\n"
    )


@kernel_command.command()
@_session
@common
def variables(call: CommandCall, session: str) -> None:
    """List the variables of a Python session.

    \b
    cellwright kernel variables mine
    """
    found = _act_on_kernel(call, "variables", session)
    call.output.data(found, map(_variable_row, found.variables or ()), styled=True)


def _variable_row(variable: Variable) -> str:
    size = variable.size or ""
    value = one_line(variable.value)[:60]
    return f"{one_line(variable.name):20} {one_line(variable.type):14} {size:10} {value}\n"


@kernel_command.command()
@_session
@common
def shutdown(call: CommandCall, session: str) -> None:
    """Shut down a session's kernel and all processes that it started.

    \b
    cellwright kernel shutdown mine
    """
    call.output.data(_act_on_kernel(call, "shutdown", session), "Shut down\n")


@click.command()
@common
def sessions_command(call: CommandCall) -> None:
    """List running sessions and their kernels.

    Without an engine, a session ends with the process that uses it.

    \b
    cellwright sessions
    """
    with call.workspace() as workspace:
        sessions = workspace.sessions()
    call.output.data({"sessions": sessions}, session_rows(sessions), styled=True)
    if not sessions:
        call.output.say("No sessions are running")


def session_rows(sessions: Sequence[SessionView]) -> list[str]:
    """Render sessions, one a line: the path of a notebook or a name, and a folder or a server."""
    names = [one_line(each.session) for each in sessions]
    kernels = [one_line(each.kernel or "no kernel") for each in sessions]
    wide, kind = (max(map(len, column), default=0) for column in (names, kernels))
    return [
        f"{name:{wide}}  {each.state:6}  {kernel:{kind}}  {one_line(each.server or each.cwd)}\n"
        for each, name, kernel in zip(sessions, names, kernels, strict=True)
    ]


@click.command()
@click.argument("artifact", required=False)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Start at this byte.")
@click.option("--limit", type=click.IntRange(min=1), help="At most this many bytes.")
@click.option("--delete", is_flag=True, help="Delete it.")
@common
def artifact_command(
    call: CommandCall, artifact: str | None, offset: int, limit: int | None, *, delete: bool
) -> None:
    """Print a stored output or picture; without an id, list all that are stored.

    \b
    cellwright artifact
    cellwright artifact artifact://k3m9x2 --offset 1000 --limit 500
    cellwright artifact k3m9x2 > picture.png
    """
    with call.here() as workspace:
        caller = workspace.caller
        store = caller.hub.artifacts
        if artifact is not None and not caller.knows(store.get(artifact).origin):
            raise ArtifactNotFound(artifact[:80])
        if artifact is None:
            from dataclasses import asdict

            found = [each for each in store.list() if caller.knows(each.origin)]
            data = {"artifacts": list(map(asdict, found))}
            call.output.data(data, map(_artifact_row, found), styled=True)
        elif delete:
            caller.require("edit", "delete an artifact")
            store.delete(artifact)
            call.output.data({"deleted": artifact}, "Deleted\n")
        elif call.output.as_json:
            call.output.data(workspace.artifact(artifact, offset, limit or 65536), "")
        else:
            _print_artifact(call, store, artifact, offset, limit)


def _print_artifact(
    call: CommandCall, store: ArtifactStore, artifact: str, offset: int, limit: int | None
) -> None:
    facts = store.get(artifact)
    if is_terminal(sys.stdout) and not facts.mime.startswith("text/"):
        call.output.say(f"{facts}: redirect it to a file with `> FILE`")
        return
    left = facts.size - offset if limit is None else limit
    while left > 0:
        part = store.read(artifact, offset, min(left, 2**20))
        if is_terminal(sys.stdout):
            call.output.data(None, part.data.decode("utf-8", "replace"))
        else:
            write_bytes(part.data)
        left -= len(part.data)
        if part.next_offset is None:
            return
        offset = part.next_offset


def _artifact_row(artifact: Artifact) -> str:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(artifact.created, UTC).isoformat(timespec="seconds")[:19]
    name = one_line(f"{artifact.name} {artifact.origin}".strip())
    return f"{artifact.id}  {when}  {artifact.size:>12,}  {one_line(artifact.mime):16} {name}\n"
