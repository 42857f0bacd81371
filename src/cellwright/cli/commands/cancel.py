"""`cellwright cancel RUN`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common


@click.command()
@click.argument("run")
@common
def command(call: Call, run: str) -> None:
    """Stop a run: its cell is interrupted, and what it printed until then is kept.

    \b
    cellwright cancel r1a2b3c4d
    """
    with call.workspace() as workspace:
        found = workspace.cancel(run)
    text = f"Stopped {run}\n" if found["cancelled"] else f"{run} had ended already\n"
    call.output.data(found, text)
