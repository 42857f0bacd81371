"""`cellwright upgrade NB…`."""

from __future__ import annotations

import click

from cellwright.cli.changes import report
from cellwright.cli.options import Call, common


@click.command()
@click.argument("notebooks", metavar="NB…", nargs=-1, required=True, type=click.Path())
@click.option("--backup", is_flag=True, help="Also write a copy of the file as it was.")
@click.option("--dry-run", is_flag=True, help="Change nothing, show the diff.")
@common
def command(call: Call, notebooks: tuple[str, ...], *, backup: bool, dry_run: bool) -> None:
    """Make old notebooks nbformat 4.5, with an id for every cell.

    This is the only command that changes the version of a file.

    \b
    cellwright upgrade old.ipynb --backup
    """
    with call.workspace() as workspace:
        for notebook in notebooks:
            workspace.open(notebook).load()  # none is touched if one of them cannot be
        answers = [
            workspace.open(notebook).upgrade(backup=backup, dry_run=dry_run)
            for notebook in notebooks
        ]
        if call.output.as_json:
            call.output.data({"notebooks": answers}, "")
            return
        for answer in answers:
            report(call.output, answer, "Notebook upgraded", show_diff=dry_run)
