"""`cellwright undo NB`."""

from __future__ import annotations

import click

from cellwright.cli.changes import report
from cellwright.cli.options import Call, common


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("change", required=False)
@click.option("--dry-run", is_flag=True, help="Change nothing, show the diff.")
@common
def command(call: Call, notebook: str, change: str | None, *, dry_run: bool) -> None:
    """Take back your newest change, or CHANGE; outputs come back with it.

    A cell that was changed again since is a conflict, and nothing is taken back.

    \b
    cellwright undo nb.ipynb
    cellwright undo nb.ipynb 3fa9c1d2
    """
    with call.workspace() as workspace:
        answer = workspace.open(notebook).undo(change, dry_run=dry_run)
        report(call.output, answer, f"Undone {answer['concerns']}", show_diff=dry_run)
        if answer["changed"] and answer["saved"]:
            call.output.say("  What running cells did in a kernel was not undone")
