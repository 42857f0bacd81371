"""`cellwright engine ACTION`."""

from __future__ import annotations

import contextlib
import os
import time

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line
from cellwright.errors import EngineLost, EngineUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STOP_WITHIN = 30.0
_LINES = 50


@click.group()
def command() -> None:
    """Look after the background engine, which keeps kernels from one command to the next.

    It starts when first needed, and leaves by itself when it has nothing left to do.

    \b
    cellwright engine status
    cellwright engine stop
    """


def _ask(verb: str) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """What the engine answers, or None, and those that have made room for it.

    They are not greeted: one of another version can be asked too.
    """
    from cellwright.engine import location
    from cellwright.engine.client import EngineConnection
    from cellwright.engine.launch import try_connect

    found = []
    for path in (None, *location.draining_paths()):
        connected = try_connect(path)
        if connected is not None:
            client = EngineConnection(connected, None)
            try:
                found.append((path, client.call(verb, {})))
            except EngineLost:
                pass  # it left in this moment
            finally:
                client.close()
        elif path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108  # of one that died
    main = next((answer for path, answer in found if path is None), None)
    return main, [answer for path, answer in found if path is not None]


@command.command()
@common
def start(call: Call) -> None:
    """Start the engine, unless it runs already.

    \b
    cellwright engine start
    """
    from cellwright.engine.client import connect

    engine = connect(actor="cli:engine")
    assert engine is not None  # noqa: S101  # it was started, or an error raised
    with engine:
        found = engine.status()
    call.output.data({"running": True, **found}, f"The engine runs, process {found['pid']}\n")


@command.command()
@common
def status(call: Call) -> None:
    """Tell whether an engine runs, with its sessions and its runs.

    \b
    cellwright engine status --json
    """
    found, leaving = _ask("status")
    text = ["No engine runs\n"] if found is None else _describe(found)
    for other in leaving:
        text += _describe(other)
    nothing: dict[str, Any] = {"pid": None, "socket": None, "sessions": [], "runs": []}
    data = {"running": found is not None, **(found or nothing), "making_room": leaving}
    call.output.data(data, text, styled=True)


def _describe(found: dict[str, Any]) -> list[str]:
    from cellwright.cli.commands.runs import row as run_row
    from cellwright.cli.commands.sessions import row as session_row

    active = [run for run in found["runs"] if run["ended"] is None]
    draining = f", draining: {one_line(found['draining'])}" if found["draining"] else ""
    return [
        f"The engine runs, process {found['pid']}, version {found['version']}{draining}\n",
        f"  {len(found['sessions'])} sessions, {len(active)} runs, ",
        f"{len(found['clients'])} clients, up {found['seconds']:.0f} s\n",
        *map(session_row, found["sessions"]),
        *map(run_row, active),
    ]


@command.command()
@common
def stop(call: Call) -> None:
    """End the engine with all its kernels; what they had defined is lost.

    \b
    cellwright engine stop
    """
    found, leaving = _ask("stop")
    pids = [each["pid"] for each in (found, *leaving) if each is not None]
    deadline = time.monotonic() + _STOP_WITHIN
    for pid in pids:
        while _is_alive(pid):
            if time.monotonic() > deadline:
                raise EngineUnavailable(f"process {pid} did not end in {_STOP_WITHIN:g} s")
            time.sleep(0.02)
    data = {"stopped": bool(pids), "pid": pids[0] if pids else None, "pids": pids}
    text = [f"Stopped process {pid}\n" for pid in pids] or "No engine runs\n"
    call.output.data(data, text)


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


@command.command()
@click.option("-n", "--lines", default=_LINES, help="How many lines from the end; 0 for all.")
@common
def logs(call: Call, lines: int) -> None:
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
        call.output.say("No engine has left a log yet")
