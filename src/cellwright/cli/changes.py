"""Print what an edit changed: the cells in words, and a diff with colours."""

from __future__ import annotations

import re
import sys
from difflib import SequenceMatcher

import click

from cellwright.cli.output import measure_width, one_line, printable, uses_colors, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cellwright.cli.output import CommandOutput
    from cellwright.workspace.api.answers import CellChangeView, EditAnswer


_CONTINUED = " ↪ "
_word = re.compile(r"\w+|\s+|[^\w\s]")
_color = re.compile(r"(\x1b\[[0-9;]*m)")
_VERBS = {
    "inserted": "inserted",
    "deleted": "deleted",
    "edited": "updated",
    "moved": "moved",
    "updated": "updated",
}


def report_change(
    output: CommandOutput,
    answer: EditAnswer,
    done: str = "",
    *,
    show_diff: bool = False,
) -> None:
    """Print what an edit did: to which notebook, and to which cells.

    `done` says what happened to the notebook as a whole; without it, a change of a single cell is
    described as a change of that cell.
    """
    if output.as_json:
        output.data(answer, "")
        return
    output.warn(answer.warnings)
    if not answer.changed:
        output.say("Nothing changed")
        return
    if not answer.saved:
        output.say(f"Would change {one_line(answer.path)}; nothing was saved", color="yellow")
    elif len(answer.cells) == 1 and not done:
        _report_cell(output, answer)
    else:
        output.say(f"✓ {one_line(done) or 'Notebook edited'}", color="green")
        output.say(f"  Notebook: {one_line(answer.path)}")
        for cell in answer.cells:
            output.say(f"  {_VERBS[cell.kind].capitalize()}: {_describe_place(cell)}, {cell.type}")
    if answer.saved and answer.change:
        output.say(f"  Change: {answer.change}")
    if answer.backup:
        output.say(f"  Backup: {one_line(answer.backup)}")
    if show_diff:
        write(color_diff(answer.diff))


def _report_cell(output: CommandOutput, answer: EditAnswer) -> None:
    cell = answer.cells[0]
    output.say(f"✓ Cell {_VERBS[cell.kind]}", color="green")
    output.say(f"  Notebook: {one_line(answer.path)}")
    if cell.kind == "deleted":
        output.say(f"  Removed: {one_line(cell.handle)} (was at index {cell.before})")
        return
    name = "New cell" if cell.kind == "inserted" else "Cell"
    output.say(f"  {name}: {_describe_place(cell)}")
    output.say(f"  Type: {cell.type}")
    if cell.follows:
        output.say(f"  Inserted after: {one_line(cell.follows)}")


def _describe_place(cell: CellChangeView) -> str:
    if cell.after is None:
        return f"{one_line(cell.handle)} (was at index {cell.before})"
    moved = cell.before is not None and cell.kind == "moved"
    index = f"{cell.before} -> {cell.after}" if moved else cell.after
    return f"{one_line(cell.handle)} (index {index})"


def color_diff(diff: str) -> str:
    """A diff for stdout: in colours if it shows them, and folded to the width of a terminal."""
    text = printable(diff)
    text = "".join(highlight_words(text)) if uses_colors(sys.stdout) else text
    width = measure_width()
    return text if width is None else "\n".join(fold_line(line, width) for line in text.split("\n"))


def fold_line(line: str, width: int) -> str:
    """A line in as many lines as it needs; each but the first begins with a sign, in its colours."""
    if len(line) * 2 <= width:
        return line
    from rich.cells import cell_len

    parts: list[str] = []
    colors = ""
    column = 0
    for piece in _color.split(line):
        if _color.fullmatch(piece):
            colors = "" if piece == "\x1b[0m" else colors + piece
            parts.append(piece)
            continue
        for letter in piece:
            wide = 8 - column % 8 if letter == "\t" else cell_len(letter)
            if column + wide > width:
                reset = "\x1b[0m" if colors else ""
                parts.append(f"{reset}\n{_CONTINUED}{colors}")
                column = len(_CONTINUED)
                wide = 8 - column % 8 if letter == "\t" else wide
            parts.append(letter)
            column += wide
    return "".join(parts)


def highlight_words(diff: str) -> Iterator[str]:
    """Colour the lines of a diff; compare neighbouring - and + lines word by word."""
    removed: list[str] = []
    added: list[str] = []
    lines = diff.split("\n")
    rows = [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    if rows[:1] and rows[0].startswith("--- ") and rows[1:2] and rows[1].startswith("+++ "):
        # The file names; further down, such a line belongs to a cell.
        yield from (click.style(line, bold=True) for line in rows[:2])
        rows = rows[2:]
    for line in rows:
        if line.startswith("-") and not added:
            removed.append(line)
        elif line.startswith("+"):
            added.append(line)
        else:
            yield from _highlight_block(removed, added)
            removed, added = ([line], []) if line.startswith("-") else ([], [])
            if not removed:
                yield click.style(line, fg="cyan") if line.startswith("@@") else line
    yield from _highlight_block(removed, added)


def _highlight_block(removed: list[str], added: list[str]) -> Iterator[str]:
    if len(removed) != len(added):
        yield from (click.style(line, fg="red") for line in removed)
        yield from (click.style(line, fg="green") for line in added)
        return
    pairs = [_compare_lines(old, new) for old, new in zip(removed, added, strict=True)]
    yield from (old for old, _ in pairs)
    yield from (new for _, new in pairs)


def _compare_lines(old: str, new: str) -> tuple[str, str]:
    """Colour two lines, with the words that differ in reverse video."""
    one, two = _word.findall(old[1:]), _word.findall(new[1:])
    left_words, right_words = ([w for w in line if not w.isspace()] for line in (one, two))
    if SequenceMatcher(None, left_words, right_words, autojunk=False).ratio() < 0.4:
        # Two different lines: marking nearly every word would not help.
        return click.style(old, fg="red"), click.style(new, fg="green")
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    left, right = click.style("-", fg="red"), click.style("+", fg="green")
    for kind, a, b, c, d in matcher.get_opcodes():
        differs = kind != "equal"
        left += click.style("".join(one[a:b]), fg="red", reverse=differs) if a < b else ""
        right += click.style("".join(two[c:d]), fg="green", reverse=differs) if c < d else ""
    return left, right
