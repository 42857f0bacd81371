"""`cellwright new NB`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common


@click.command()
@click.argument("notebook", metavar="NB")
@click.option("--kernel", metavar="NAME", help="The kernel it is for, such as python3.")
@common
def command(call: Call, notebook: str, kernel: str | None) -> None:
    """Make a notebook with no cells; refuses to touch a file that is there.

    \b
    cellwright new analysis.ipynb --kernel python3
    """
    with call.workspace() as workspace:
        answer = workspace.create(notebook, kernel=kernel)
        call.output.warn(answer["warnings"])
        call.output.data(answer, "")
        call.output.say(f"✓ Notebook created\n  Notebook: {notebook}", color="green")
