"""How the result of an edit reads at a terminal."""

from __future__ import annotations

import sys

from cellwright.cli.output import colors, one_line, printable, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.cli.output import Output

_WORDS = {
    "inserted": "inserted",
    "deleted": "deleted",
    "edited": "updated",
    "moved": "moved",
    "updated": "updated",
}


def report(
    output: Output,
    answer: dict[str, Any],
    done: str = "",
    *,
    show_diff: bool = False,
) -> None:
    """Tell what an edit did: what happened, the notebook, each cell with id and index, its type.

    `done` is what happened to the notebook as a whole; without it, a single cell is the subject.
    """
    if output.as_json:
        output.data(answer, "")
        return
    output.warn(answer["warnings"])
    if not answer["changed"]:
        output.say("Nothing changed")
        return
    if not answer["saved"]:
        output.say(f"Would change {one_line(answer['path'])}; nothing was saved", color="yellow")
    elif len(answer["cells"]) == 1 and not done:
        _one_cell(output, answer)
    else:
        output.say(f"✓ {one_line(done) or 'Notebook edited'}", color="green")
        output.say(f"  Notebook: {one_line(answer['path'])}")
        for cell in answer["cells"]:
            output.say(f"  {_WORDS[cell['kind']].capitalize()}: {_place(cell)}, {cell['type']}")
    if answer["saved"] and answer["change"]:
        output.say(f"  Change: {answer['change']}")
    if answer.get("backup"):
        output.say(f"  Backup: {one_line(answer['backup'])}")
    if show_diff:
        write(colored_diff(answer["diff"]))


def _one_cell(output: Output, answer: dict[str, Any]) -> None:
    cell = answer["cells"][0]
    output.say(f"✓ Cell {_WORDS[cell['kind']]}", color="green")
    output.say(f"  Notebook: {one_line(answer['path'])}")
    if cell["kind"] == "deleted":
        output.say(f"  Removed: {one_line(cell['handle'])} (was at index {cell['before']})")
        return
    name = "New cell" if cell["kind"] == "inserted" else "Cell"
    output.say(f"  {name}: {_place(cell)}")
    output.say(f"  Type: {cell['type']}")
    if cell.get("follows"):
        output.say(f"  Inserted after: {one_line(cell['follows'])}")


def _place(cell: dict[str, Any]) -> str:
    if cell["after"] is None:
        return f"{one_line(cell['handle'])} (was at index {cell['before']})"
    moved = cell["before"] is not None and cell["kind"] == "moved"
    index = f"{cell['before']} -> {cell['after']}" if moved else cell["after"]
    return f"{one_line(cell['handle'])} (index {index})"


def colored_diff(diff: str) -> str:
    """A diff with its lines coloured, and inside changed lines the words that changed."""
    if not colors(sys.stdout):
        return printable(diff)
    from cellwright.cli.words import highlight

    return "".join(highlight(printable(diff)))
