"""`cellwright sessions`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@common
def command(call: Call) -> None:
    """List the sessions that run, with their kernels.

    Without an engine, sessions live as long as the process that uses them.

    \b
    cellwright sessions
    """
    with call.workspace() as workspace:
        sessions = workspace.sessions()
    call.output.data({"sessions": sessions}, map(row, sessions), styled=True)
    if not sessions:
        call.output.say("No session is running")


def row(session: dict[str, Any]) -> str:
    """A session on one line."""
    name = one_line(session["session"])
    kernel = session["kernel"] or "no kernel"
    return f"{name:20} {session['state']:6} {kernel:16} {one_line(session['cwd'])}\n"
