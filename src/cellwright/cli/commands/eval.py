"""`cellwright eval`: run code that belongs to no notebook."""

from __future__ import annotations

import json
import sys

import click

from cellwright.cli.commands.run import describe_detached
from cellwright.cli.live import LiveCells
from cellwright.cli.options import CommandCall, common, server_option
from cellwright.cli.output import (
    OK,
    STATUS_CODES,
    STATUS_ERRORS,
    describe_problem,
    is_terminal,
    print_json,
    read_input,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cellwright.cli.output import CommandOutput
    from cellwright.workspace.runs.execution import Execution


@click.command()
@click.argument("code", nargs=-1)
@click.option("-s", "--session", default="default", help="The session whose state is used.")
@click.option("--kernel", help="A kernelspec's name, or the path of an interpreter or environment.")
@click.option("--runner", is_flag=True, help="The plain Python runner; the default.")
@server_option
@click.option("--kernel-id", metavar="ID", help="A kernel of the server to attach to.")
@click.option("--language", default="", help="The language of the code; selects a kernel.")
@click.option(
    "--title", "titles", multiple=True, help="A title for the next cell; may be repeated."
)
@click.option("--cells", metavar="FILE", help="JSON: [{code, title, language, reset, timeout}].")
@click.option("--reset", is_flag=True, help="Start with a fresh kernel.")
@click.option(
    "--per-call", is_flag=True, default=None, help="Use a kernel that ends with this call."
)
@click.option("--timeout", type=float, metavar="S", help="Seconds for each cell; 0 is no limit.")
@click.option("--answer", "answers", multiple=True, help="A line for input(); may be repeated.")
@click.option("--keep-going", is_flag=True, help="Continue after a cell that failed.")
@click.option(
    "--detach", type=float, metavar="S", help="Return after this many seconds; the run continues."
)
@common
def eval_command(call: CommandCall, code: tuple[str, ...], **options: Any) -> int:
    """Run code, cell by cell, and print its output; reads stdin if no code is given.

    \b
    cellwright eval 'import sys; sys.version'
    cellwright eval 'x = 20' 'x + 1'                    two cells, one state
    cellwright eval --kernel ir 'summary(cars)'         another kernel
    echo 'print(1)' | cellwright eval --timeout 5 -
    """
    from cellwright.cli.questions import answer_input

    cells = _collect_cells(code, options)
    can_ask = is_terminal(sys.stdin) and not call.output.as_json
    with call.workspace(start=True) as workspace, _EvalPrinter(call.output, cells) as live:
        answer = workspace.eval(
            cells,
            session=options["session"],
            kernel=options["kernel"],
            runner=options["runner"],
            server=options["server"],
            kernel_id=options["kernel_id"],
            per_call=options["per_call"],
            timeout=options["timeout"],
            answers=options["answers"],
            keep_going=options["keep_going"],
            ask=live.wrap(answer_input) if can_ask else None,
            progress=live,
            detach=options["detach"],
        )
    failed = [run for run in answer.cells if run.is_failure]
    if call.output.as_json:
        error = _describe_error(failed[0]) if failed else None
        print_json({"ok": not failed, "data": answer, "error": error})
    else:
        if not answer.done:
            call.output.say(describe_detached(answer.run))
        for run in answer.cells:
            call.output.warn([*run.notes, *_describe_cut(run)])
    return STATUS_CODES[failed[0].status] if failed else OK


def _collect_cells(code: tuple[str, ...], options: dict[str, Any]) -> list[dict[str, Any]]:
    if options["cells"] is not None:
        if code:
            raise click.UsageError("Give code or --cells, not both")
        try:
            cells = json.loads(read_input(options["cells"]))
        except ValueError as error:
            raise click.UsageError(f"--cells is not JSON: {error}") from None
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise click.UsageError("--cells must be a list of objects")
    else:
        sources = [read_input(None) if text == "-" else text for text in code or ("-",)]
        titles = [*options["titles"], *[""] * len(sources)]
        cells = [
            {"code": source, "title": title, "language": options["language"]}
            for source, title in zip(sources, titles, strict=False)
        ]
    if options["reset"] and cells:
        cells[0]["reset"] = True
    return cells


def _describe_error(run: Execution) -> dict[str, Any]:
    notes = " ".join(run.notes)
    message = f"{run.error.ename}: {run.error.evalue}" if run.error else notes
    return describe_problem(
        STATUS_ERRORS[run.status], message, notes or "Its traceback is in the text"
    )


def _describe_cut(run: Execution) -> list[str]:
    if not run.truncated or run.artifact is None:
        return []
    return [f"{run.total_lines:,} lines of output; all stored as artifact://{run.artifact}"]


class _EvalPrinter(LiveCells):
    """Prints what cells print, and on a terminal the status of each cell."""

    _COLORS = {"complete": "green", "running": "cyan", "pending": "bright_black"}  # noqa: RUF012

    def __init__(self, output: CommandOutput, cells: list[dict[str, Any]]) -> None:
        self._titles = [cell.get("title") or "" for cell in cells]
        super().__init__(output, shows_cells=len(cells) > 1 or any(self._titles))

    def show_status(self, report: dict[str, Any]) -> None:
        """Show the status of a cell, and which cells wait for it."""
        cell, status = report["cell"], report["status"]
        if status == "running":
            self._print_line(cell, "running")
            for number in range(1, len(self._titles) if cell == 0 else 0):
                self._print_line(number, "pending")
        else:
            self._print_line(cell, "complete" if status == "ok" else status.replace("_", " "))

    def _print_line(self, cell: int, word: str) -> None:
        title = f" {self._titles[cell]}" if self._titles[cell] else ""
        text = f"[{cell + 1}/{len(self._titles)}]{title}: {word}"
        self.say(text, self._COLORS.get(word, "red"))
