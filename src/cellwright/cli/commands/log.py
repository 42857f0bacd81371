"""`cellwright log NB`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import colors, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most so many.")
@common
def command(call: Call, notebook: str, limit: int | None) -> None:
    """List the changes of a notebook, the newest first, also those made without us.

    \b
    cellwright log nb.ipynb -n 5
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        entries = book.log(limit)
        warnings = book.warnings()
        data = {"path": notebook, "entries": entries, "warnings": warnings}
        call.output.data(data, map(_row, entries), styled=True)
        call.output.warn(warnings)


def _row(entry: dict[str, Any]) -> str:
    words = [f"{cell['kind']} {one_line(cell['handle'])}" for cell in entry["cells"][:4]]
    if len(entry["cells"]) > 4:
        words.append(f"and {len(entry['cells']) - 4} more")
    undone = "  (undone)" if entry.get("undone_by") else ""
    change = click.style(entry["id"], fg="yellow") if colors(sys.stdout) else entry["id"]
    label = f"  {one_line(entry['label'])}" if entry["label"] else ""
    return (
        f"{change}  {entry['when'][:19]}  {entry['kind']:8} {one_line(entry['actor'])}"
        f"{label}  {', '.join(words)}{undone}\n"
    )
