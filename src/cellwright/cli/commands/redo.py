"""`cellwright redo NB`."""

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
    """Make your newest undone change again, or CHANGE.

    \b
    cellwright redo nb.ipynb
    cellwright redo nb.ipynb 3fa9c1d2
    """
    with call.workspace() as workspace:
        answer = workspace.open(notebook).redo(change, dry_run=dry_run)
        report(call.output, answer, f"Done again {answer['concerns']}", show_diff=dry_run)
