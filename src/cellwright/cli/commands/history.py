"""What happened to a notebook: log, diff, undo, redo, blame, backup, forget, stale."""

from __future__ import annotations

import sys

import click

from cellwright.cli.changes import color_diff, report_change
from cellwright.cli.options import (
    CommandCall,
    NotebookReport,
    common,
    expand_notebooks,
    for_each_notebook,
)
from cellwright.cli.output import fit, measure_width, one_line, uses_colors
from cellwright.outputs import sanitize as _sanitize  # noqa: F401  # now: after a save nothing is opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cellwright.journal.history import Backup, Entry
    from cellwright.workspace.api.answers import BlameAnswer, CellStaleness
    from cellwright.workspace.workspace import Workspace

_LOOKED_AT = 50  # changes, for a run that came after the one that is undone


@click.command()
@click.argument("notebooks", metavar="NB...", nargs=-1, required=True, type=click.Path())
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most this many.")
@click.option("--follow", is_flag=True, help="Continue under the names that NB had before.")
@common
def log_command(
    call: CommandCall, notebooks: tuple[str, ...], limit: int | None, *, follow: bool
) -> int:
    """List the changes of notebooks, newest first, including those of other programs.

    \b
    cellwright log nb.ipynb -n 5
    cellwright log renamed.ipynb --follow
    """
    with call.workspace() as workspace:

        def report(name: str) -> NotebookReport:
            book = workspace.open(name)
            entries = book.log(limit, follow=follow)
            warnings = book.warnings()
            data = {"path": name, "entries": entries, "warnings": warnings}
            width = measure_width()
            rows = [_log_row(group, width) for group in _group_runs(entries)]
            if not (entries or follow):
                call.output.say("No changes on record; --follow also looks under earlier names")
            return NotebookReport(data, rows, warnings)

        return for_each_notebook(call, expand_notebooks(notebooks), report, styled=True)


def _group_runs(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Group the entries, newest first: the cells that one run saved one after the other."""
    group: list[Entry] = []
    for entry in entries:
        if group and not _is_same_run(entry, group[-1]):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _is_same_run(earlier: Entry, later: Entry) -> bool:
    """Whether two neighbours look like one run: it goes from the top of a notebook down."""
    if not (earlier.kind == later.kind == "run" and earlier.actor == later.actor):
        return False
    ended = max((cell.after or 0 for cell in earlier.cells), default=-1)
    return ended < min((cell.after or 0 for cell in later.cells), default=-1)


def _log_row(group: list[Entry], width: int | None) -> str:
    """Render a change, or the cells of a run: on one line, or in a terminal cut to its width."""
    entry = group[0]
    cells = [cell for each in reversed(group) for cell in each.cells]
    words = [f"{cell.kind} {one_line(cell.handle)}" for cell in cells[:4]]
    if len(cells) > 4:
        words.append(f"and {len(cells) - 4} more")
    if len(group) > 1:
        words.append(f"from {group[-1].id} on")
    undone = "  (undone)" if entry.undone_by else ""
    label = f"run of {len(cells)} cells" if len(group) > 1 else entry.label
    label = f"  {one_line(label)}" if label else ""
    name = f"  [{one_line(entry.path)}]" if entry.path else ""
    when = f"{entry.when[:10]} {entry.when[11:16]}" if width else entry.when[:19]
    rest = f"  {when}  {entry.kind:8} {one_line(entry.actor)}{name}{label}  {', '.join(words)}"
    rest = fit(rest, width and width - len(entry.id) - len(undone)) + undone
    change = click.style(entry.id, fg="yellow") if uses_colors(sys.stdout) else entry.id
    return f"{change}{rest}\n"


@click.command()
@click.argument("words", metavar="NB... [A [B]]", nargs=-1, required=True, type=click.Path())
@common
def diff_command(call: CommandCall, words: tuple[str, ...]) -> int:
    """Show what changed between two states, cell by cell.

    A and B are a change id (the state after that change), ID^ (the state before it), `first`,
    `now`, or another notebook; - is a notebook on stdin. Without B: from A until now. Without
    both: the newest change. Of three or more notebooks, or a pattern in quotes, the newest change
    of each.

    \b
    cellwright diff nb.ipynb
    cellwright diff nb.ipynb first
    cellwright diff nb.ipynb 3fa9c1d2^ 77b0a2ee
    cellwright diff old.ipynb new.ipynb
    git show HEAD:nb.ipynb | cellwright diff - nb.ipynb
    cellwright diff 'reports/*.ipynb'
    """
    names = expand_notebooks(words)
    is_list = len(names) > 2 and all(name.endswith(".ipynb") for name in names)
    if not is_list and len(names) > 3:
        raise click.UsageError("Name one notebook and two states of it, or only notebooks")
    with call.workspace() as workspace:

        def report(name: str) -> NotebookReport:
            book = workspace.open(name)
            states = () if is_list or len(names) != len(words) else names[1:]
            if len(states) == 1 and states[0].endswith(".ipynb"):
                answer = book.diff("now", states[0])  # two files, as for `diff`
            else:
                answer = book.diff(*states)
            warnings = book.warnings()
            data = {**answer.to_json(), "warnings": warnings} if call.output.as_json else None
            return NotebookReport(data, color_diff(answer.diff), warnings)

        if "-" in names[:2]:
            report_of_stdin = _compare_stdin(workspace, names)
            return for_each_notebook(call, names[:1], lambda _: report_of_stdin, styled=True)
        chosen = names if is_list or len(names) != len(words) else names[:1]
        return for_each_notebook(call, chosen, report, styled=True)


def _compare_stdin(workspace: Workspace, names: Sequence[str]) -> NotebookReport:
    """Compare a notebook on stdin with a file, in the order in which they are named."""
    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.api.answers import describe_change

    if len(names) != 2:
        raise click.UsageError("Compare - with one notebook")
    first, second = (
        Notebook(sys.stdin.buffer.read()) if name == "-" else workspace.open(name).load()
        for name in names
    )
    change = Change.between(first.state, second.state)
    answer = describe_change(change, "stdin" if names[0] == "-" else names[0], names[1])
    return NotebookReport(answer, color_diff(answer.diff))


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("change", required=False)
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@common
def undo_command(call: CommandCall, notebook: str, change: str | None, *, dry_run: bool) -> None:
    """Undo your newest change, or CHANGE; outputs are restored, too.

    If a cell was changed again since, that is a conflict and nothing is undone.

    \b
    cellwright undo nb.ipynb
    cellwright undo nb.ipynb 3fa9c1d2
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        answer = book.undo(change, dry_run=dry_run)
        report_change(call.output, answer, f"Undone {answer.concerns}", show_diff=dry_run)
        if not (answer.changed and answer.saved):
            return
        call.output.say("  Variables in the kernel are not undone")
        if answer.concerns and _has_run_since(book.log(_LOOKED_AT), answer.concerns):
            before = f"{one_line(notebook)} --restore {answer.concerns}^"
            call.output.say("  Outputs of later runs stay. To restore all as it was before:")
            call.output.say(f"  `cellwright backup {before}`")


def _has_run_since(entries: Iterable[Entry], change: str) -> bool:
    """Whether cells ran after a change; the newest entry is the first."""
    from itertools import takewhile

    return any(entry.kind == "run" for entry in takewhile(lambda e: e.id != change, entries))


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("change", required=False)
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@common
def redo_command(call: CommandCall, notebook: str, change: str | None, *, dry_run: bool) -> None:
    """Redo your newest undone change, or CHANGE.

    \b
    cellwright redo nb.ipynb
    cellwright redo nb.ipynb 3fa9c1d2
    """
    with call.workspace() as workspace:
        answer = workspace.open(notebook).redo(change, dry_run=dry_run)
        report_change(call.output, answer, f"Redone {answer.concerns}", show_diff=dry_run)


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@common
def blame_command(call: CommandCall, notebook: str) -> None:
    """Show which change last touched the source or type of each cell.

    \b
    cellwright blame nb.ipynb
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        rows = book.blame()
        warnings = book.warnings()
        call.output.data(
            {"path": notebook, "cells": rows, "warnings": warnings}, map(_blame_row, rows)
        )
        call.output.warn(warnings)


def _blame_row(row: BlameAnswer) -> str:
    who = "before the first recorded change"
    if row.change is not None:
        label = f"  {one_line(row.label)}" if row.label else ""
        who = f"{row.change}  {(row.when or '')[:19]}  {one_line(row.actor or '')}{label}"
    return f"{row.index:4}  {one_line(row.handle):12} {row.type:8}  {who}\n"


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("--restore", metavar="CHANGE", help="Restore the state after a change, or `first`.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@common
def backup_command(call: CommandCall, notebook: str, restore: str | None, *, dry_run: bool) -> None:
    """List earlier states of a notebook, or restore one byte for byte.

    `first` is the notebook before the first change that Cellwright made.

    \b
    cellwright backup nb.ipynb
    cellwright backup nb.ipynb --restore first
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        if restore is not None:
            report_change(
                call.output,
                book.restore(restore, dry_run=dry_run),
                f"Restored {restore}",
                show_diff=dry_run,
            )
            return
        states = book.backups()
        warnings = book.warnings()
        data = {"path": notebook, "states": states, "warnings": warnings}
        call.output.data(data, map(_backup_row, states))
        if not states:
            call.output.say("No earlier states on record")
        call.output.warn(warnings)


def _backup_row(state: Backup) -> str:
    return f"{state.id:10} {state.when[:19]}  {state.kind:8} {one_line(state.label)}\n"


@click.command()
@click.argument("notebook", metavar="[NB]", required=False, type=click.Path())
@click.option("--all", "everything", is_flag=True, help="Of all notebooks.")
@click.option(
    "--before",
    metavar="DATE",
    help="Only what is older: 2026-05-31, or 2026-05-31T12:00; in UTC unless it says otherwise.",
)
@click.option("--dry-run", is_flag=True, help="Remove nothing; count what would be removed.")
@common
def forget_command(
    call: CommandCall, notebook: str | None, before: str | None, *, everything: bool, dry_run: bool
) -> None:
    """Remove history, remembered revisions and artifacts of a notebook, for good.

    The notebook itself stays as it is; its changes cannot be undone afterwards. NB may have been
    deleted. With --before and no NB, everything older is removed, for all notebooks. With --root,
    only the notebooks in that folder count.

    \b
    cellwright forget secret.ipynb
    cellwright forget --before 2026-05-31
    cellwright forget --all
    """
    if (notebook and everything) or not (notebook or everything or before):
        raise click.UsageError("Name a notebook, or use --all")
    seconds = None if before is None else _parse_date(before)
    with call.workspace() as workspace:
        found = workspace.forget(notebook, before=seconds, dry_run=dry_run)
        done = "To be removed" if dry_run else "Removed"
        counts = ", ".join(
            f"{getattr(found, name)} {name}"
            for name in ("changes", "revisions", "executions", "artifacts")
        )
        call.output.data(found, f"{done}: {counts}\n")
        call.output.warn(
            f"{path} is a damaged journal and may hold more; `forget --all` removes it"
            for path in found.left
        )


def _parse_date(text: str) -> float:
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--before {text!r} is not a date such as 2026-05-31") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@common
def stale_command(call: CommandCall, notebook: str) -> None:
    """List which results are current, which are stale, and why.

    Only runs of Cellwright count: for cells that another program ran, nothing is recorded.

    \b
    cellwright stale analysis.ipynb
    cellwright run analysis.ipynb --stale
    """
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        data = book.stale()
        rows = (_stale_row(cell, measure_width()) for cell in data.cells)
        call.output.data(data, rows, styled=True)
        call.output.warn(book.warnings())


def _stale_row(cell: CellStaleness, width: int | None) -> str:
    """Render a cell; in a terminal a long reason continues below itself."""
    why = one_line(cell.stale_reason or "; ".join(cell.warnings) or "")
    name = fit(one_line(cell.cell), width and max(12, width // 3))
    head = f"{cell.index:>4}  {name:12} {cell.state:6} "
    if width is None or (len(head) + len(why)) * 2 <= width:
        return f"{head.rstrip()}\n" if not why else f"{head}{why}\n"
    from textwrap import wrap

    text = head + f"\n{' ' * len(head)}".join(wrap(why, max(20, width - len(head))))
    return "".join(f"{fit(line, width).rstrip()}\n" for line in text.split("\n"))
