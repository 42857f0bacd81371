"""`cellwright stale NB`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@common
def command(call: Call, notebook: str) -> None:
    """Tell which cells' results still stand, which do not, and why.

    Judged by what `cellwright run` has on record: what other programs ran counts as never run.

    \b
    cellwright stale analysis.ipynb
    cellwright run analysis.ipynb --stale
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        data = book.stale()
        call.output.data(data, map(_row, data["cells"]), styled=True)
        call.output.warn(book.warnings())


def _row(cell: dict[str, Any]) -> str:
    why = cell["stale_reason"] or "; ".join(cell["warnings"])
    return (
        f"{cell['index']:>4}  {one_line(cell['cell']):12} {cell['state']:6} {one_line(why or '')}\n"
    )
