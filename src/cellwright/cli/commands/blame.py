"""`cellwright blame NB`."""

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
    """Tell which change last touched the source or type of each cell.

    \b
    cellwright blame nb.ipynb
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        rows = book.blame()
        warnings = book.warnings()
        call.output.data({"path": notebook, "cells": rows, "warnings": warnings}, map(_row, rows))
        call.output.warn(warnings)


def _row(row: dict[str, Any]) -> str:
    who = "before our first change"
    if row["change"] is not None:
        label = f"  {one_line(row['label'])}" if row["label"] else ""
        who = f"{row['change']}  {row['when'][:19]}  {one_line(row['actor'])}{label}"
    return f"{row['index']:4}  {one_line(row['handle']):12} {row['type']:8}  {who}\n"
