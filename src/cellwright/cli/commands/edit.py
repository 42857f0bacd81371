"""Changes to a notebook: `cellwright edit`, `new` and `upgrade`."""

from __future__ import annotations

import functools
import json
import os
from shlex import quote

import click

from cellwright.cli.changes import report_change
from cellwright.cli.completion import complete_cell
from cellwright.cli.options import CommandCall, common, expand_notebooks
from cellwright.cli.output import (
    BAD_NOTEBOOK,
    STATUS_CODES,
    complete_notes,
    exit_code,
    one_line,
    print_json,
    printable,
    read_input,
    write,
)
from cellwright.errors import CellwrightError
from cellwright.outputs import sanitize as _sanitize  # noqa: F401  # now: after a save nothing is opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cellwright.workspace.api.answers import EditAnswer


TYPES = click.Choice(["code", "markdown", "raw"])


class EditGroup(click.Group):
    """A group of verbs that come after the notebook, or after several."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the notebooks before the verb; without a verb, the text is edited."""
        if ctx.resilient_parsing:  # a shell asks what it can complete
            return super().parse_args(ctx, args)
        at = next((at for at, word in enumerate(args) if at and word in self.commands), len(args))
        names = [word for word in args[:at] if not word.startswith("-")]
        if not names:
            return super().parse_args(ctx, args)
        options = [word for word in args[:at] if word.startswith("-")]
        ctx.obj = names
        if at == len(args):
            if len(names) > 1:  # the second one is a verb that does not exist
                return super().parse_args(ctx, args)
            if "-h" not in options and "--help" not in options:
                return super().parse_args(ctx, [names[0], "text", *options])
        return super().parse_args(ctx, [*options, names[0], *args[at:]])


@click.group(cls=EditGroup)
@click.argument("notebook", metavar="NB", type=click.Path())
@click.pass_context
def edit_command(context: click.Context, notebook: str) -> None:
    """Change cells of a notebook; name a cell by id, `cell-N` or index.

    Without a verb, the text of the notebook is opened in $EDITOR, and what others change meanwhile
    is merged.

    \b
    cellwright edit nb.ipynb
    cellwright edit nb.ipynb replace ab12 'x = 2'
    echo 'print(x)' | cellwright edit nb.ipynb insert --after ab12
    cellwright edit nb.ipynb delete 3 --dry-run
    cellwright edit nb.ipynb apply edits.json --base 1f0a33c2d4e5
    cellwright edit 'reports/*.ipynb' clear-outputs
    """
    context.obj = context.obj or [notebook]


class EditCommand(click.Command):
    """A command that takes `-1` as an argument: the last cell, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with negative numbers hidden from click's options."""
        left = super().parse_args(ctx, [_HIDE + a if _is_negative(a) else a for a in args])
        for name, value in ctx.params.items():
            ctx.params[name] = _restore_negative(value)
        return left


_HIDE = "\0"


def _is_negative(word: str) -> bool:
    return word.startswith("-") and word[1:].isdigit()


def _restore_negative(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_restore_negative, value))
    return value.removeprefix(_HIDE) if isinstance(value, str) else value


def edit_action(function: Callable[..., dict[str, Any] | list[Any]]) -> click.Command:
    """Add a verb: a function that returns an edit, or a list of edits."""

    @click.option("--base", metavar="REVISION", help="The revision that the edit was made for.")
    @click.option("--expect", metavar="HASH", help="The hash that the cell must have.")
    @click.option("--backup", is_flag=True, help="Also write a copy of the old file.")
    @click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
    @click.option("--diff", "show_diff", is_flag=True, help="Show the diff.")
    @click.option("--create", is_flag=True, help="Create the notebook if it is missing.")
    @click.option("--label", default="", help="A label for the log.")
    @click.option(
        "--run",
        "run_after",
        type=click.Choice(["changed", "stale"]),
        help="Then run the changed cells, or all stale ones.",
    )
    @click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
    @common
    @functools.wraps(function)
    def run(
        call: CommandCall,
        *args: Any,
        base: str | None,
        expect: str | None,
        backup: bool,
        dry_run: bool,
        show_diff: bool,
        create: bool,
        label: str,
        run_after: str | None,
        timeout: float,
        **kwargs: Any,
    ) -> int:
        notebooks = expand_notebooks(click.get_current_context().obj)
        if len(notebooks) > 1 and function.__name__ != "clear_outputs":
            raise click.UsageError("Of the verbs, only clear-outputs takes several notebooks")
        made = function(*args, **kwargs)
        edits = made if isinstance(made, list) else [made]
        if expect is not None:
            edits = [
                {**edit, "expect": expect} if isinstance(edit, dict) else edit for edit in edits
            ]
        how: dict[str, Any] = {"timeout": timeout} if run_after else {}
        op = edits[0].get("op", "") if isinstance(edits[0], dict) else ""
        code, answers = 0, []
        with call.workspace(start=run_after is not None) as workspace:
            for notebook in notebooks:
                if len(notebooks) > 1:
                    workspace.open(notebook).load()  # if one cannot be read, none is changed
            for notebook in notebooks:
                answer = workspace.open(notebook).edit(
                    edits,
                    base=base,
                    backup=backup,
                    dry_run=dry_run,
                    create=create,
                    label=label or str(op),
                    run=run_after,  # type: ignore[arg-type]  # the choices of the option
                    **how,
                )
                answers.append(answer)
                if len(notebooks) == 1 or not call.output.as_json:
                    code = code or _report_edit(call, answer, show_diff=dry_run or show_diff)
        if len(notebooks) > 1 and call.output.as_json:
            call.output.data({"notebooks": answers}, "")
        return code

    return edit_command.command(cls=EditCommand)(run)


def _report_edit(call: CommandCall, answer: EditAnswer, *, show_diff: bool) -> int:
    """Print what the edit did and how the cells ran after it; returns the exit code."""
    if not answer.executions:
        report_change(call.output, answer, show_diff=show_diff)
        return 0
    from cellwright.cli.commands.run import describe_failure, find_failure

    failed = find_failure(answer.executions)
    code = 0
    if failed is not None:
        code = BAD_NOTEBOOK if failed.is_unsaved else STATUS_CODES[failed.status]
    if call.output.as_json:
        error = None if failed is None else describe_failure(failed, answer.path)
        print_json({"ok": failed is None, "data": answer, "error": error})
        return code
    from cellwright.outputs.describe import describe

    report_change(call.output, answer, show_diff=show_diff)
    for run in answer.executions:
        color = "red" if run.is_failure else None
        place = f"{one_line(run.cell or '')} (index {run.index})"
        call.output.say(f"  Ran: {place}, {run.status}", color=color)
        if run.outputs:
            write(printable(describe(run.outputs).text) + "\n")
        call.output.warn(complete_notes(run, answer.path))
    return code


def _read_source(source: str | None) -> str:
    """The given source, or stdin without its last newline."""
    if source is not None and source != "-":
        return source
    return read_input("-").removesuffix("\n")


def place_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say where a cell goes."""
    function = click.option("--at", type=int, metavar="N", help="Before the cell at index N.")(
        function
    )
    function = click.option(
        "--before", metavar="CELL", help="Before this cell.", shell_complete=complete_cell
    )(function)
    return click.option(
        "--after", metavar="CELL", help="After this cell.", shell_complete=complete_cell
    )(function)


def _make_edit(**fields: Any) -> dict[str, Any]:
    """An edit of the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
@click.argument("source", required=False)
@click.option("--type", "cell_type", type=TYPES, help="Change the cell to this type.")
@click.option("--clear-outputs", is_flag=True, help="Remove its outputs.")
def replace(
    cell: str, source: str | None, cell_type: str | None, *, clear_outputs: bool
) -> dict[str, Any]:
    """Replace the source of CELL with SOURCE, or with stdin.

    \b
    cellwright edit nb.ipynb replace ab12 'x = 2'
    """
    outputs = "clear" if clear_outputs else None
    return _make_edit(
        op="replace", cell=cell, source=_read_source(source), type=cell_type, outputs=outputs
    )


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
@click.argument("old")
@click.argument("new")
@click.option("--count", type=int, help="How many times OLD must occur; once by default.")
def replace_text(cell: str, old: str, new: str, count: int | None) -> dict[str, Any]:
    """Replace the text OLD in CELL with NEW.

    \b
    cellwright edit nb.ipynb replace-text ab12 foo bar
    """
    return _make_edit(op="replace_text", cell=cell, old=old, new=new, count=count)


@edit_action
@click.argument("source", required=False)
@click.option(
    "--type", "cell_type", type=TYPES, default="code", help="The type of the cell; code by default."
)
@click.option("--id", "cell_id", help="The id of the new cell.")
@place_options
def insert(
    source: str | None,
    cell_type: str,
    cell_id: str | None,
    after: str | None,
    before: str | None,
    at: int | None,
) -> dict[str, Any]:
    """Add a cell with SOURCE, or with stdin; at the end by default.

    \b
    cellwright edit nb.ipynb insert --after ab12 'print(x)'
    """
    return _make_edit(
        op="insert",
        source=_read_source(source),
        type=cell_type,
        id=cell_id,
        after=after,
        before=before,
        at=at,
    )


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
def delete(cell: str) -> dict[str, Any]:
    """Remove CELL.

    \b
    cellwright edit nb.ipynb delete -1
    """
    return {"op": "delete", "cell": cell}


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
@place_options
def move(cell: str, after: str | None, before: str | None, at: int | None) -> dict[str, Any]:
    """Move CELL to another place.

    \b
    cellwright edit nb.ipynb move ab12 --at 0
    """
    return _make_edit(op="move", cell=cell, after=after, before=before, at=at)


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
@click.argument("line", type=int)
def split(cell: str, line: int) -> dict[str, Any]:
    """Split CELL: its first LINE lines stay, the rest becomes a new cell.

    \b
    cellwright edit nb.ipynb split ab12 3
    """
    return {"op": "split", "cell": cell, "line": line}


@edit_action
@click.argument("cells", metavar="CELL…", nargs=-1, required=True, shell_complete=complete_cell)
def merge(cells: tuple[str, ...]) -> dict[str, Any]:
    """Merge neighbouring cells into the first.

    \b
    cellwright edit nb.ipynb merge 2 3
    """
    return {"op": "merge", "cells": list(cells)}


@edit_action
@click.argument("cell", metavar="CELL", shell_complete=complete_cell)
@click.argument("cell_type", metavar="TYPE", type=TYPES)
def set_type(cell: str, cell_type: str) -> dict[str, Any]:
    """Change the type of CELL to code, markdown or raw.

    \b
    cellwright edit nb.ipynb set-type 0 markdown
    """
    return {"op": "set_type", "cell": cell, "type": cell_type}


@edit_action
@click.argument("metadata", metavar="JSON")
@click.option(
    "--cell",
    metavar="CELL",
    help="The cell; without it, the notebook.",
    shell_complete=complete_cell,
)
@click.option("--replace", "replaces", is_flag=True, help="Replace instead of merging.")
def set_metadata(metadata: str, cell: str | None, *, replaces: bool) -> dict[str, Any]:
    """Merge JSON into the metadata; null removes a key.

    \b
    cellwright edit nb.ipynb set-metadata '{"tags": ["a"]}' --cell 2
    """
    return _make_edit(
        op="set_metadata",
        cell=cell,
        metadata=_parse_json(metadata),
        merge=False if replaces else None,
    )


@edit_action
@click.argument("cells", metavar="[CELL…]", nargs=-1, shell_complete=complete_cell)
def clear_outputs(cells: tuple[str, ...]) -> dict[str, Any]:
    """Remove the outputs of some cells, or of all; of several notebooks at once, too.

    \b
    cellwright edit nb.ipynb clear-outputs
    cellwright edit a.ipynb b.ipynb clear-outputs
    """
    return _make_edit(op="clear_outputs", cells=list(cells) or None)


@edit_action
@click.argument("edits", metavar="EDITS.json", required=False)
def apply(edits: str | None) -> list[Any]:
    """Apply a list of edits in JSON, all or none; from stdin if no file is given.

    \b
    cellwright edit nb.ipynb apply edits.json
    """
    value = _parse_json(read_input(edits))
    value = value if isinstance(value, list) else [value]
    if not value:
        raise click.UsageError("The list of edits is empty")
    return list(value)


@edit_command.command("text")
@common
def edit_text(call: CommandCall) -> int:
    """Edit the text of a notebook in $VISUAL or $EDITOR, as `edit NB` does.

    \b
    cellwright edit nb.ipynb text
    """
    from cellwright.text.view import drop_last_newline, end_with_newline

    notebook: str = click.get_current_context().obj[0]
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        found = book.read()
        before = end_with_newline(found.text or "")
        editor = _find_editor()
        place = _write_draft(notebook, before)
        again = f"cellwright write {quote(notebook)} --from {quote(place)} --base {found.revision}"
        is_typed = f"Your text is in {place}; `{again}` tries it again"
        problem = _open_editor(editor, place)
        after = read_input(place)
        if problem is not None:
            if after != before:
                call.output.warn([is_typed])
            else:
                os.unlink(place)  # noqa: PTH108
            raise click.UsageError(problem)
        if after == before:
            call.output.say("Nothing changed")
            os.unlink(place)  # noqa: PTH108
            return 0
        try:
            answer = book.write(drop_last_newline(after), base=found.revision, label="edit")
        except CellwrightError as error:
            call.output.fail(error)
            call.output.warn([is_typed])
            return exit_code(error)
        os.unlink(place)  # noqa: PTH108
        report_change(call.output, answer, "Notebook written")
    return 0


_LONGEST_STEM = 40  # characters, of which a file name may have 63 if each takes four bytes


def _write_draft(notebook: str, text: str) -> str:
    """Save the text where an editor finds it, under a name that tells it the language."""
    import tempfile

    stem = os.path.basename(notebook).removesuffix(".ipynb")[:_LONGEST_STEM]  # noqa: PTH119
    descriptor, place = tempfile.mkstemp(f".{stem}.py", "cellwright-")
    with open(descriptor, "wb") as file:  # noqa: PTH123
        file.write(text.encode("utf-8", "surrogatepass"))
    return place


def _find_editor() -> list[str]:
    """The command of the person's editor; raises `click.UsageError` if it cannot be one."""
    from shlex import split

    named = (os.environ.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
    command = next(filter(None, named), "vi")
    try:
        return split(command)
    except ValueError as error:
        raise click.UsageError(f"The editor `{command}` is not a valid command: {error}") from None


def _open_editor(command: list[str], place: str) -> str | None:
    """Let the person edit a file; returns what went wrong, if anything."""
    import subprocess

    try:
        code = subprocess.run([*command, place], check=False).returncode  # noqa: S603
    except OSError as error:
        hint = "set EDITOR, or use `cellwright read` and `write`"
        return f"{command[0]}: {error.strerror}; {hint}"
    return f"{command[0]} ended with exit code {code}; nothing is changed" if code else None


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"Not JSON: {error}") from None


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.option("--kernel", metavar="NAME", help="The kernel of the notebook, such as python3.")
@common
def new_command(call: CommandCall, notebook: str, kernel: str | None) -> None:
    """Create a notebook without cells; never overwrites a file.

    \b
    cellwright new analysis.ipynb --kernel python3
    """
    with call.workspace() as workspace:
        answer = workspace.create(notebook, kernel=kernel)
        call.output.warn(answer.warnings)
        call.output.data(answer, "")
        call.output.say("✓ Notebook created", color="green")
        call.output.say(f"  Notebook: {one_line(notebook)}")


@click.command()
@click.argument("notebooks", metavar="NB…", nargs=-1, required=True, type=click.Path())
@click.option("--backup", is_flag=True, help="Also write a copy of the old file.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show the diff.")
@common
def upgrade_command(
    call: CommandCall, notebooks: tuple[str, ...], *, backup: bool, dry_run: bool
) -> None:
    """Upgrade old notebooks to nbformat 4.5, with an id for every cell.

    Only this command changes the version of a file.

    \b
    cellwright upgrade old.ipynb --backup
    """
    names = expand_notebooks(notebooks)
    with call.workspace() as workspace:
        for notebook in names:
            workspace.open(notebook).load()  # if one cannot be read, none is changed
        answers = [
            workspace.open(notebook).upgrade(backup=backup, dry_run=dry_run) for notebook in names
        ]
        if call.output.as_json:
            call.output.data({"notebooks": answers}, "")
            return
        for answer in answers:
            report_change(call.output, answer, "Notebook upgraded", show_diff=dry_run)
