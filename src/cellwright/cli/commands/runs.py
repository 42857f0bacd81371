"""`cellwright runs`."""

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
    """List what runs, and what ran lately, the newest first.

    \b
    cellwright runs
    cellwright attach r1a2b3c4d
    cellwright cancel r1a2b3c4d
    """
    with call.workspace() as workspace:
        found = workspace.runs()
    call.output.data({"runs": found}, map(row, found), styled=True)
    if not found:
        call.output.say("Nothing runs")


def row(run: dict[str, Any]) -> str:
    """A run on one line."""
    cells = run["cells"].values()
    done = sum(status not in ("pending", "running") for status in cells)
    count = f"{done}/{len(cells)}" if cells else ""
    subject = one_line(run["subject"])
    return f"{run['run']}  {run['state']:8} {run['seconds']:8.1f} s  {count:7} {subject}\n"
