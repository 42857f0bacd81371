"""`cellwright diff NB [A [B]]`."""

from __future__ import annotations

import click

from cellwright.cli.changes import colored_diff
from cellwright.cli.options import Call, common


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("before", metavar="[A", required=False)
@click.argument("after", metavar="[B]]", required=False)
@common
def command(call: Call, notebook: str, before: str | None, after: str | None) -> None:
    """Show what changed between two states, cell by cell.

    A and B are change ids (the state after it), ID^ (before it), `first`, `now`, or another
    notebook. Without B: from A until now. Without both: the newest change.

    \b
    cellwright diff nb.ipynb
    cellwright diff nb.ipynb first
    cellwright diff nb.ipynb 3fa9c1d2^ 77b0a2ee
    cellwright diff old.ipynb new.ipynb
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        if before is not None and before.endswith(".ipynb") and after is None:
            # Two files are meant as with diff: from the first to the second.
            answer = book.diff("now", before)
        else:
            answer = book.diff(before, after)
        warnings = book.warnings()
        call.output.data(
            {**answer, "warnings": warnings}, colored_diff(answer["diff"]), styled=True
        )
        call.output.warn(warnings)
