"""`cellwright new NB`."""

from __future__ import annotations

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
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
        call.output.say("✓ Notebook created", color="green")
        call.output.say(f"  Notebook: {one_line(notebook)}")
