"""`cellwright backup NB`."""

from __future__ import annotations

import click

from cellwright.cli.changes import report
from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option(
    "--restore", metavar="CHANGE", help="Bring back the state after a change, or `first`."
)
@click.option("--dry-run", is_flag=True, help="Change nothing, show the diff.")
@common
def command(call: Call, notebook: str, restore: str | None, *, dry_run: bool) -> None:
    """List the states that can be brought back to the byte, or bring one back.

    `first` is the notebook as it was before we first changed it.

    \b
    cellwright backup nb.ipynb
    cellwright backup nb.ipynb --restore first
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        if restore is not None:
            report(
                call.output,
                book.restore(restore, dry_run=dry_run),
                f"Restored {restore}",
                show_diff=dry_run,
            )
            return
        states = book.backups()
        warnings = book.warnings()
        data = {"path": notebook, "states": states, "warnings": warnings}
        call.output.data(data, map(_row, states))
        call.output.warn(warnings)


def _row(state: dict[str, Any]) -> str:
    return f"{state['id']:10} {state['when'][:19]}  {state['kind']:8} {one_line(state['label'])}\n"
