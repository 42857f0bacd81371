"""`cellwright engine`: start, stop and look at the background engine."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import click

from cellwright.cli.options import CommandCall, common
from cellwright.cli.output import one_line
from cellwright.errors import EngineLost, EngineUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

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


@engine_command.command()
@common
def status(call: CommandCall) -> None:
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
    from cellwright.cli.commands.kernel import session_rows
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
