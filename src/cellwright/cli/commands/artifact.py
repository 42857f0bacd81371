"""`cellwright artifact`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import is_terminal, one_line, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("artifact", required=False)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Begin at this byte.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many bytes.")
@click.option("--delete", is_flag=True, help="Remove it.")
@common
def command(
    call: Call, artifact: str | None, offset: int, limit: int | None, *, delete: bool
) -> None:
    """Print output that was too long to show, or a picture; without an id, list what is kept.

    \b
    cellwright artifact
    cellwright artifact artifact://k3m9x2 --offset 1000 --limit 500
    cellwright artifact k3m9x2 > picture.png
    """
    from cellwright.workspace.artifacts import list_artifacts

    with call.here() as workspace:
        store = workspace.artifacts
        if artifact is None:
            found = list_artifacts(store)
            call.output.data({"artifacts": found}, map(_row, found), styled=True)
        elif delete:
            workspace.require("edit", "delete an artifact")
            store.delete(artifact)
            call.output.data({"deleted": artifact}, "Deleted\n")
        elif call.output.as_json:
            call.output.data(workspace.artifact(artifact, offset, limit or 65536), "")
        else:
            _print(call, workspace, artifact, offset, limit)


def _print(call: Call, workspace: Any, artifact: str, offset: int, limit: int | None) -> None:
    facts = workspace.artifacts.get(artifact)
    if is_terminal(sys.stdout) and not facts.mime.startswith("text/"):
        call.output.say(f"{facts}: send it to a file, `> FILE`, to look at it")
        return
    left = facts.size - offset if limit is None else limit
    while left > 0:
        part = workspace.artifacts.read(artifact, offset, min(left, 2**20))
        if is_terminal(sys.stdout):
            call.output.data(None, part.data.decode("utf-8", "replace"))
        else:
            write_bytes(part.data)
        left -= len(part.data)
        if part.next_offset is None:
            return
        offset = part.next_offset


def _row(artifact: dict[str, Any]) -> str:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(artifact["created"], UTC).isoformat(timespec="seconds")[:19]
    name = one_line(f"{artifact['name']} {artifact['origin']}".strip())
    return f"{artifact['id']}  {when}  {artifact['size']:>12,}  {one_line(artifact['mime']):16} {name}\n"
