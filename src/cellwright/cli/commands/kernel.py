"""`cellwright kernel ACTION`."""

from __future__ import annotations

import click

from cellwright.cli.commands.sessions import row
from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_session = click.argument("session", default="default")


@click.group()
def command() -> None:
    """See which kernels there are, and look after the one of a session.

    \b
    cellwright kernel specs
    """


@command.command()
@common
def specs(call: Call) -> None:
    """List the kernels that can be started here; `*` marks the one a notebook here would get.

    \b
    cellwright kernel specs
    """
    with call.workspace() as workspace:
        found = workspace.kernel_specs()
    call.output.data({"specs": found}, map(_spec, found), styled=True)


def _spec(spec: dict[str, Any]) -> str:
    if "problem" in spec:
        return f"* {one_line(spec['problem'])}\n  {one_line(spec['hint'])}\n"
    mark = "*" if spec["default"] else " "
    place = one_line(spec["python"] or spec["folder"] or "")
    return f"{mark} {one_line(spec['name']):16} {one_line(spec['language']):10} {place}\n"


def _act(call: Call, action: str, session: str) -> dict[str, Any]:
    with call.workspace() as workspace:
        return workspace.kernel(action, session)


@command.command()
@_session
@common
def status(call: Call, session: str) -> None:
    """Tell what a session's kernel is doing.

    \b
    cellwright kernel status mine
    """
    found = _act(call, "status", session)
    call.output.data(found, row(found), styled=True)


@command.command()
@_session
@common
def interrupt(call: Call, session: str) -> None:
    """Stop the cell that runs.

    \b
    cellwright kernel interrupt mine
    """
    found = _act(call, "interrupt", session)
    call.output.data(found, "Interrupted\n" if found["interrupted"] else "Nothing was running\n")


@command.command()
@_session
@common
def restart(call: Call, session: str) -> None:
    """Start the kernel anew; what it had defined is lost.

    \b
    cellwright kernel restart mine
    """
    call.output.data(_act(call, "restart", session), "Restarted; all variables are gone\n")


@command.command()
@_session
@common
def variables(call: Call, session: str) -> None:
    """List what a Python session has defined.

    \b
    cellwright kernel variables mine
    """
    found = _act(call, "variables", session)
    call.output.data(found, map(_variable, found["variables"]), styled=True)


def _variable(variable: dict[str, Any]) -> str:
    size = variable["size"] or ""
    value = one_line(variable["value"])[:60]
    return f"{one_line(variable['name']):20} {one_line(variable['type']):14} {size:10} {value}\n"


@command.command()
@_session
@common
def shutdown(call: Call, session: str) -> None:
    """End a session's kernel and everything it started.

    \b
    cellwright kernel shutdown mine
    """
    call.output.data(_act(call, "shutdown", session), "Ended\n")
