"""`cellwright edit NB …`."""

from __future__ import annotations

import functools
import json

import click

from cellwright.cli.changes import report
from cellwright.cli.options import Call, common
from cellwright.cli.output import one_line, print_json, printable, read_input, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TYPES = click.Choice(["code", "markdown", "raw"])


@click.group()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.pass_context
def command(context: click.Context, notebook: str) -> None:
    """Change cells of a notebook; a cell is named by id, `cell-N` or index.

    \b
    cellwright edit nb.ipynb replace ab12 'x = 2'
    echo 'print(x)' | cellwright edit nb.ipynb insert --after ab12
    cellwright edit nb.ipynb delete 3 --dry-run
    cellwright edit nb.ipynb apply edits.json --base 1f0a33c2d4e5
    """
    context.obj = notebook


class EditCommand(click.Command):
    """A command among whose arguments `-1` is a cell, counted from the end, not an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, with negative numbers out of click's sight."""
        left = super().parse_args(ctx, [_HIDE + a if _negative(a) else a for a in args])
        for name, value in ctx.params.items():
            ctx.params[name] = _shown(value)
        return left


_HIDE = "\0"


def _negative(word: str) -> bool:
    return word.startswith("-") and word[1:].isdigit()


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_shown, value))
    return value.removeprefix(_HIDE) if isinstance(value, str) else value


def editing(function: Callable[..., dict[str, Any] | list[Any]]) -> click.Command:
    """Make a command of a function that returns an edit, or a list of them."""

    @click.option("--base", metavar="REVISION", help="The revision the edit was made from.")
    @click.option("--expect", metavar="HASH", help="The hash the cell must have.")
    @click.option("--backup", is_flag=True, help="Also write a copy of the file as it was.")
    @click.option("--dry-run", is_flag=True, help="Change nothing, show the diff.")
    @click.option("--diff", "show_diff", is_flag=True, help="Show the diff.")
    @click.option("--create", is_flag=True, help="Make the notebook if there is none.")
    @click.option("--label", default="", help="A few words for the log.")
    @click.option(
        "--run",
        "run_after",
        type=click.Choice(["changed", "stale"]),
        help="Then run the cells that changed, or all that are stale.",
    )
    @click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
    @common
    @functools.wraps(function)
    def run(
        call: Call,
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
        notebook: str = click.get_current_context().obj
        made = function(*args, **kwargs)
        edits = made if isinstance(made, list) else [made]
        if expect is not None:
            edits = [
                {**edit, "expect": expect} if isinstance(edit, dict) else edit for edit in edits
            ]
        how: dict[str, Any] = {"timeout": timeout} if run_after else {}
        op = edits[0].get("op", "") if isinstance(edits[0], dict) else ""
        with call.workspace(start=run_after is not None) as workspace:
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
        return _report(call, answer, show_diff=dry_run or show_diff)

    return click.command(cls=EditCommand)(run)


def _report(call: Call, answer: dict[str, Any], *, show_diff: bool) -> int:
    """Tell what the edit did, and how cells that were run after it ended; returns the exit code."""
    if not answer.get("executions"):
        report(call.output, answer, show_diff=show_diff)
        return 0
    from cellwright.cli.commands.eval import CODES
    from cellwright.cli.commands.run import describe_failure

    failed = [
        run
        for run in answer["executions"]
        if run["status"] not in ("ok", "pending", "running") and not run["expected"]
    ]
    code = CODES[failed[0]["status"]] if failed else 0
    if call.output.as_json:
        error = describe_failure(failed[0]) if failed else None
        print_json({"ok": not failed, "data": answer, "error": error})
        return code
    from cellwright.outputs.describe import describe

    report(call.output, answer, show_diff=show_diff)
    for run in answer["executions"]:
        call.output.say(f"  Ran: {one_line(run['cell'])} (index {run['index']}), {run['status']}")
        if run["outputs"]:
            write(printable(describe(run["outputs"]).text) + "\n")
        call.output.warn(run["notes"])
    return code


def _source(source: str | None) -> str:
    """The source given, or stdin without the newline that ends it."""
    if source is not None and source != "-":
        return source
    return read_input("-").removesuffix("\n")


def places(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where a cell goes."""
    function = click.option("--at", type=int, metavar="N", help="Before the cell at index N.")(
        function
    )
    function = click.option("--before", metavar="CELL", help="Before this cell.")(function)
    return click.option("--after", metavar="CELL", help="After this cell.")(function)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@editing
@click.argument("cell", metavar="CELL")
@click.argument("source", required=False)
@click.option("--type", "cell_type", type=TYPES, help="Make it a cell of this type.")
@click.option("--clear-outputs", is_flag=True, help="Drop its outputs.")
def replace(
    cell: str, source: str | None, cell_type: str | None, *, clear_outputs: bool
) -> dict[str, Any]:
    """Give CELL another source: SOURCE, or what stdin holds.

    \b
    cellwright edit nb.ipynb replace ab12 'x = 2'
    """
    outputs = "clear" if clear_outputs else None
    return _given(op="replace", cell=cell, source=_source(source), type=cell_type, outputs=outputs)


@editing
@click.argument("cell", metavar="CELL")
@click.argument("old")
@click.argument("new")
@click.option("--count", type=int, help="How often OLD must occur; once by default.")
def replace_text(cell: str, old: str, new: str, count: int | None) -> dict[str, Any]:
    """Replace the text OLD in CELL by NEW.

    \b
    cellwright edit nb.ipynb replace-text ab12 foo bar
    """
    return _given(op="replace_text", cell=cell, old=old, new=new, count=count)


@editing
@click.argument("source", required=False)
@click.option("--type", "cell_type", type=TYPES, default="code", help="Code by default.")
@click.option("--id", "cell_id", help="The id of the new cell.")
@places
def insert(
    source: str | None,
    cell_type: str,
    cell_id: str | None,
    after: str | None,
    before: str | None,
    at: int | None,
) -> dict[str, Any]:
    """Add a cell: SOURCE, or what stdin holds; at the end unless told where.

    \b
    cellwright edit nb.ipynb insert --after ab12 'print(x)'
    """
    return _given(
        op="insert",
        source=_source(source),
        type=cell_type,
        id=cell_id,
        after=after,
        before=before,
        at=at,
    )


@editing
@click.argument("cell", metavar="CELL")
def delete(cell: str) -> dict[str, Any]:
    """Remove CELL.

    \b
    cellwright edit nb.ipynb delete -1
    """
    return {"op": "delete", "cell": cell}


@editing
@click.argument("cell", metavar="CELL")
@places
def move(cell: str, after: str | None, before: str | None, at: int | None) -> dict[str, Any]:
    """Put CELL somewhere else.

    \b
    cellwright edit nb.ipynb move ab12 --at 0
    """
    return _given(op="move", cell=cell, after=after, before=before, at=at)


@editing
@click.argument("cell", metavar="CELL")
@click.argument("line", type=int)
def split(cell: str, line: int) -> dict[str, Any]:
    """Divide CELL: its first LINE lines stay, the rest becomes a new cell.

    \b
    cellwright edit nb.ipynb split ab12 3
    """
    return {"op": "split", "cell": cell, "line": line}


@editing
@click.argument("cells", metavar="CELL…", nargs=-1, required=True)
def merge(cells: tuple[str, ...]) -> dict[str, Any]:
    """Join neighbouring cells into the first.

    \b
    cellwright edit nb.ipynb merge 2 3
    """
    return {"op": "merge", "cells": list(cells)}


@editing
@click.argument("cell", metavar="CELL")
@click.argument("cell_type", metavar="TYPE", type=TYPES)
def set_type(cell: str, cell_type: str) -> dict[str, Any]:
    """Make CELL code, markdown or raw.

    \b
    cellwright edit nb.ipynb set-type 0 markdown
    """
    return {"op": "set_type", "cell": cell, "type": cell_type}


@editing
@click.argument("metadata", metavar="JSON")
@click.option("--cell", metavar="CELL", help="Of this cell; the notebook's without it.")
@click.option("--replace", "replaces", is_flag=True, help="Replace instead of merging.")
def set_metadata(metadata: str, cell: str | None, *, replaces: bool) -> dict[str, Any]:
    """Merge JSON into the metadata; null removes a key.

    \b
    cellwright edit nb.ipynb set-metadata '{"tags": ["a"]}' --cell 2
    """
    return _given(
        op="set_metadata", cell=cell, metadata=_json(metadata), merge=False if replaces else None
    )


@editing
@click.argument("cells", metavar="[CELL…]", nargs=-1)
def clear_outputs(cells: tuple[str, ...]) -> dict[str, Any]:
    """Drop the outputs of some cells, or of all.

    \b
    cellwright edit nb.ipynb clear-outputs
    """
    return _given(op="clear_outputs", cells=list(cells) or None)


@editing
@click.argument("edits", metavar="EDITS.json", required=False)
def apply(edits: str | None) -> list[Any]:
    """Apply a list of edits in JSON, all or nothing; stdin if no file is given.

    \b
    cellwright edit nb.ipynb apply edits.json
    """
    value = _json(read_input(edits))
    value = value if isinstance(value, list) else [value]
    if not value:
        raise click.UsageError("The list of edits is empty")
    return list(value)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"Not JSON: {error}") from None


for _command in (
    replace,
    replace_text,
    insert,
    delete,
    move,
    split,
    merge,
    set_type,
    set_metadata,
    clear_outputs,
    apply,
):
    command.add_command(_command, _command.name and _command.name.replace("_", "-"))
