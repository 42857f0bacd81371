"""`cellwright blame NB`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB")
@common
def command(call: Call, notebook: str) -> None:
    """Tell which change last touched the source or type of each cell."""
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        rows = book.blame()
        call.output.data({"path": notebook, "cells": rows}, map(_row, rows))
        call.output.warn(book.warnings())


def _row(row: dict[str, Any]) -> str:
    who = "before our first change"
    if row["change"] is not None:
        label = f"  {printable(row['label'])}" if row["label"] else ""
        who = f"{row['change']}  {row['when'][:19]}  {printable(row['actor'])}{label}"
    return f"{row['index']:4}  {printable(row['handle']):12} {row['type']:8}  {who}\n"
