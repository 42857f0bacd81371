"""`cellwright outputs NB`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("cells", nargs=-1, metavar="[CELL]...")
@click.option(
    "--max-tokens", type=click.IntRange(min=50), default=8000, help="Share it among the cells."
)
@common
def command(call: Call, notebook: str, cells: tuple[str, ...], max_tokens: int) -> None:
    """Describe what cells printed, showed and raised, within a budget.

    \b
    cellwright outputs nb.ipynb              all cells that have outputs
    cellwright outputs nb.ipynb 3 ab12       some cells
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        data = book.outputs(list(cells) or None, max_tokens=max_tokens)
        call.output.data(data, map(_cell, data["cells"]))
        call.output.warn(book.warnings())


def _cell(cell: dict[str, Any]) -> str:
    count = " " if cell["execution_count"] is None else cell["execution_count"]
    return f"── cell {cell['index']} {cell['handle']} [{count}]\n{cell['text']}\n"
