"""`cellwright git …`."""

from __future__ import annotations

import os
import sys

import click

from cellwright.cli import git
from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line, printable, write
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.notebook import Notebook


@click.group()
def command() -> None:
    """Let git diff notebooks as text and merge them by cell.

    \b
    cellwright git install            in this repository
    cellwright git install --global   in all of yours
    """


@command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@common
def install(call: Call, *, everywhere: bool) -> None:
    """Set up the diff driver and the merge driver.

    \b
    cellwright git install
    """
    place = _do(git.install, everywhere=everywhere)
    call.output.data({"installed": True, "attributes": place}, "")
    call.output.say("✓ Drivers installed", color="green")
    call.output.say(f"  Attributes: {one_line(place)}")


@command.command()
@click.option("--global", "everywhere", is_flag=True, help="For all repositories of this user.")
@common
def uninstall(call: Call, *, everywhere: bool) -> None:
    """Take the drivers away again.

    \b
    cellwright git uninstall
    """
    place = _do(git.uninstall, everywhere=everywhere)
    call.output.data({"installed": False, "attributes": place}, "")
    call.output.say("✓ Drivers removed", color="green")
    call.output.say(f"  Attributes: {one_line(place)}")


def _do(action, *, everywhere: bool) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    try:
        place: str = action(os.getcwd(), everywhere=everywhere)  # noqa: PTH109
    except git.GitError as error:
        raise click.UsageError(str(error)) from None
    return place


@command.command(hidden=True)
@click.argument("path")
def textconv(path: str) -> None:
    """Print a notebook as git shall compare it: its text view, or the file if it is broken."""
    from cellwright.document.files import read
    from cellwright.text.view import end_with_newline, to_text

    try:
        write(printable(end_with_newline(to_text(read(path)))))
    except CellwrightError:
        with open(path, "rb") as file:  # noqa: PTH123
            sys.stdout.buffer.write(file.read())


@command.command(hidden=True, name="merge-driver")
@click.argument("base")
@click.argument("current")
@click.argument("other")
@click.option("-L", "marker_size", type=int, default=7)
@click.option("-P", "name", default="the notebook")
def merge_driver(base: str, current: str, other: str, marker_size: int, name: str) -> int:
    """Merge OTHER into CURRENT, as git calls it; exit 1 if cells are in conflict."""
    from cellwright.document.files import read
    from cellwright.document.merge import merge
    from cellwright.document.notebook import Notebook

    def load(path: str) -> Notebook:
        # Added on both sides: git gives an empty file for a base that never was.
        return read(path) if os.path.getsize(path) else Notebook()  # noqa: PTH202

    try:
        merged = merge(load(base), load(current), load(other))
    except CellwrightError as error:
        click.echo(f"error: {name} cannot be merged by cell: {error}", err=True)
        return 1
    # git reads the result from the file of our side, which is a temporary one of its own.
    with open(current, "wb") as file:  # noqa: PTH123
        file.writelines(merged.with_markers("ours", "theirs", marker_size).parts())
    for conflict in merged.conflicts:
        click.echo(f"conflict: {name}, cell {conflict.handle}: {conflict.reason}", err=True)
    return 1 if merged.conflicts else 0
