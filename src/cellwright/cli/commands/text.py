"""A notebook as text or as a script: `cellwright read`, `write` and `sync`."""

from __future__ import annotations

import os
import sys

import click

from cellwright.cli.completion import complete_selection
from cellwright.cli.options import (
    CommandCall,
    NotebookReport,
    common,
    expand_notebooks,
    for_each_notebook,
)
from cellwright.cli.output import is_terminal, one_line, read_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cellwright.document.notebook import Notebook
    from cellwright.workspace.api.answers import OutlineRow, ReadAnswer, SelectAnswer
    from cellwright.workspace.workspace import Book, Workspace


@click.command()
@click.argument(
    "notebooks",
    metavar="NB[:SELECTOR]...",
    nargs=-1,
    required=True,
    shell_complete=complete_selection,
)
@click.option("--stale", is_flag=True, help="With --json: say which results are stale, and why.")
@click.option("--percent", is_flag=True, help="As a script in the percent format of jupytext.")
@common
def read_command(
    call: CommandCall, notebooks: tuple[str, ...], *, stale: bool, percent: bool
) -> int:
    """Print notebooks as text: a marker line for each cell, then its source.

    The text can be edited and given back to `cellwright write`. - is a notebook on stdin.

    \b
    cellwright read analysis.ipynb                  all of it
    cellwright read analysis.ipynb:20-40            some lines
    cellwright read analysis.ipynb:outline          headings and cells, with their lines
    cellwright read analysis.ipynb:section=Results  the part under a heading
    cellwright read analysis.ipynb:cell=ab12        one cell
    cellwright read analysis.ipynb:raw              the bytes of the file
    cellwright read analysis.ipynb --percent        as a script with `# %%` cells
    cellwright read '**/*.ipynb' | grep pandas      several, each below its name
    """
    with call.workspace() as workspace:
        return for_each_notebook(
            call,
            expand_notebooks(notebooks),
            lambda name: _read_notebook(call, workspace, name, stale=stale, percent=percent),
        )


def _read_notebook(
    call: CommandCall, workspace: Workspace, name: str, *, stale: bool, percent: bool
) -> NotebookReport:
    """Read one notebook, or the part of it that a selector asks for."""
    from cellwright.text.selectors import split_path
    from cellwright.text.view import end_with_newline

    path, selector = ("-", None) if name == "-" else split_path(name, os.path.exists)
    wants_data = call.output.as_json
    if path == "-" or percent:
        if selector is not None:
            raise click.UsageError("--percent is for whole notebooks")
        return _read_loaded(call, workspace, path, percent=percent)
    book = workspace.open(path)
    if selector == "raw" and not wants_data and not is_terminal(sys.stdout):
        return NotebookReport(None, book.raw(), [])
    found: ReadAnswer | SelectAnswer
    if selector is None:
        # Only `--json` shows the cells one by one; describing them takes longer than the text.
        found = book.read(stale=stale) if wants_data else book.read(cells=[])
        text = end_with_newline(found.text or "")
    else:
        found = book.select(selector)
        lines = [line.text + "\n" for line in found.lines if not line.context]
        text = render_outline(found.outline) if found.outline else "".join(lines)
        count = "" if found.total_cells is None else f", {found.total_cells} cells"
        call.output.say(f"{found.total_lines} lines{count} in total")
    warnings = book.warnings()
    # Only `--json` needs the answer as data, which takes long for a large notebook.
    data = {**found.to_json(), "warnings": warnings} if wants_data else None
    return NotebookReport(data, text, warnings)


def _read_loaded(
    call: CommandCall, workspace: Workspace, path: str, *, percent: bool
) -> NotebookReport:
    """Read a notebook that is whole here: one on stdin, or one that becomes a script."""
    from cellwright.text.view import end_with_newline, to_text

    warnings: list[str] = []
    if path == "-":
        from cellwright.document.notebook import Notebook

        notebook = Notebook(sys.stdin.buffer.read())
    else:
        book = workspace.open(path)
        notebook = book.load()
        warnings = book.warnings()
    text = make_script(notebook) if percent else to_text(notebook)
    data = None
    if call.output.as_json:
        from cellwright.workspace.status import describe_notebook

        data = describe_notebook(notebook, path).replace(text=text).to_json()
        data["warnings"] = warnings
    return NotebookReport(data, text if percent else end_with_newline(text), warnings)


def make_script(notebook: Notebook, path: str = "") -> str:
    """The script of a notebook, with the comments of its language or of a file's."""
    from cellwright.text.percent import find_comment, to_percent

    info = notebook.metadata.get("language_info")
    language = info.get("name") if isinstance(info, dict) else None
    return to_percent(notebook, find_comment(str(language or ""), path))


def render_outline(outline: Sequence[OutlineRow]) -> str:
    """Render an outline: a row for each heading and cell, with its lines."""
    rows = []
    for entry in outline:
        lines = f"{entry.first}-{entry.last}"
        name = "#" * entry.level if entry.kind == "heading" else f"  {entry.type}"
        mark = " *" if entry.has_outputs and entry.kind == "cell" else ""
        title = one_line(entry.title)[:80]
        rows.append(f"{lines:>12}  {one_line(entry.handle):12}  {name} {title}{mark}\n")
    return "".join(rows)


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("--from", "source", metavar="FILE", help="Read the text from this file; - is stdin.")
@click.option("--base", metavar="REVISION", help="The revision that the text was made from.")
@click.option("--backup", is_flag=True, help="Also write a copy of the old file.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@click.option("--percent", is_flag=True, help="The text is a script in the percent format.")
@common
def write_command(
    call: CommandCall,
    notebook: str,
    *,
    source: str | None,
    base: str | None,
    backup: bool,
    dry_run: bool,
    percent: bool,
) -> None:
    """Write edited text into a notebook; create the notebook if it is missing.

    The text is the whole notebook: cells that are missing from it are deleted.
    Cells that the text did not change keep every byte. With --base, changes that others made since
    are merged, and a cell that both sides changed is a conflict.

    \b
    cellwright read nb.ipynb | sed 's/foo/bar/' | cellwright write nb.ipynb
    cellwright write nb.ipynb --percent --from nb.py
    """
    # Now: after a save nothing is opened.
    from cellwright.cli.changes import report_change
    from cellwright.outputs import sanitize as _sanitize  # noqa: F401
    from cellwright.text.view import drop_last_newline

    given = read_input(source)
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        if source in (None, "-") and not given and _has_cells(book):
            raise click.UsageError(
                "There is no text on stdin, which would delete all cells: did the command before"
                " the pipe fail? `--from /dev/null` deletes them"
            )
        answer = book.write(
            given if percent else drop_last_newline(given),
            base=base,
            backup=backup,
            dry_run=dry_run,
            label="write",
            percent=(source or "script.py") if percent else "",
        )
        report_change(call.output, answer, "Notebook written", show_diff=dry_run)


def _has_cells(book: Book) -> bool:
    """Whether there is a notebook, with cells in it."""
    from cellwright.errors import NotebookNotFound

    try:
        return bool(book.read().cells)
    except NotebookNotFound:
        return False


@click.command()
@click.argument("notebook", metavar="NB.ipynb", type=click.Path())
@click.argument("script", metavar="NB.py", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would change.")
@common
def sync_command(call: CommandCall, notebook: str, script: str, *, dry_run: bool) -> None:
    """Make a notebook and its script in the percent format say the same.

    What changed on either side since the last sync is on both afterwards; a cell that changed on
    both is a conflict, and nothing is written. If one of the two is missing, it is created. If
    Cellwright did not write the script, the notebook takes all of its text. Outputs stay in the
    notebook.

    \b
    cellwright sync analysis.ipynb analysis.py
    """
    from cellwright.cli.changes import report_change
    from cellwright.outputs import sanitize as _sanitize  # noqa: F401

    has_script, given = os.path.exists(script), ""  # noqa: PTH110
    if has_script and not os.path.isfile(script):  # noqa: PTH113  # a FIFO would be waited for
        raise click.UsageError(f"{script} is not a file")
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        answer = None
        if has_script or not os.path.exists(book.path):  # noqa: PTH110
            from cellwright.text.percent import find_comment, parse_percent

            given = read_input(script)
            head = parse_percent(given, find_comment(path=script))
            answer = book.write(
                given, base=head.revision, dry_run=dry_run, label=f"sync {script}", percent=script
            )
        made = "" if dry_run else make_script(book.load(), script)
        is_new = not dry_run and (not has_script or made != given)
        if is_new:
            import hashlib

            old = hashlib.sha256(given.encode()).hexdigest()
            workspace.open(script).write_file(
                made, base=old if has_script else None, label=f"sync {notebook}"
            )
        changed = answer is not None and answer.changed
        if call.output.as_json:
            facts = {"notebook_changed": changed, "script_changed": is_new}
            call.output.data({"notebook": notebook, "script": script, **facts}, "")
            return
        if answer is not None and changed:
            report_change(call.output, answer, "Notebook written", show_diff=dry_run)
        if is_new:
            call.output.say(f"✓ Script written: {one_line(script)}", color="green")
        elif not changed:
            call.output.say("Both say the same already")
