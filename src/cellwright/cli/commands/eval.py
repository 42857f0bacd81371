"""`cellwright eval`."""

from __future__ import annotations

import json
import os
import sys

import click

from cellwright.cli.options import Call, common
from cellwright.cli.output import (
    FAILED,
    INTERRUPTED,
    KERNEL,
    OK,
    TIMEOUT,
    is_terminal,
    print_json,
    read_input,
    write_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CODES = {
    "ok": OK,
    "error": FAILED,
    "timed_out": TIMEOUT,
    "cancelled": INTERRUPTED,
    "died": KERNEL,
    "pending": FAILED,
}
ERRORS = {
    "error": "CELL_FAILED",
    "timed_out": "EXECUTION_TIMED_OUT",
    "cancelled": "EXECUTION_CANCELLED",
    "died": "KERNEL_DIED",
}


@click.command()
@click.argument("code", nargs=-1)
@click.option("-s", "--session", default="default", help="Share state with earlier calls of it.")
@click.option("--kernel", help="A kernelspec's name, or an interpreter's or environment's path.")
@click.option("--runner", is_flag=True, help="The plain Python runner; the default.")
@click.option("--server", metavar="URL", help="Run on a Jupyter server or gateway.")
@click.option("--kernel-id", metavar="ID", help="A kernel of the server to attach to.")
@click.option("--language", default="", help="A language that some kernel here speaks.")
@click.option(
    "--title", "titles", multiple=True, help="A title for the next cell; may be repeated."
)
@click.option("--cells", metavar="FILE", help="JSON: [{code, title, language, reset, timeout}].")
@click.option("--reset", is_flag=True, help="Begin with a fresh kernel.")
@click.option("--per-call", is_flag=True, help="Use a kernel that ends with this call.")
@click.option("--timeout", type=float, metavar="S", help="Seconds for each cell; 0 is no limit.")
@click.option("--answer", "answers", multiple=True, help="A line for input(); may be repeated.")
@click.option("--keep-going", is_flag=True, help="Run the cells after one that failed, too.")
@click.option(
    "--detach", type=float, metavar="S", help="Answer after so many seconds; the run goes on."
)
@common
def command(call: Call, code: tuple[str, ...], **options: Any) -> int:
    """Run code, cell by cell, and print what it prints; from stdin if none is given.

    \b
    cellwright eval 'import sys; sys.version'
    cellwright eval 'x = 20' 'x + 1'                    two cells, one state
    cellwright eval --kernel ir 'summary(cars)'         another kernel
    echo 'print(1)' | cellwright eval --timeout 5 -
    """
    cells = _cells(code, options)
    printer = _Printer(call, cells)
    with call.workspace(start=True) as workspace:
        answer = workspace.eval(
            cells,
            session=options["session"],
            kernel=options["kernel"],
            runner=options["runner"],
            server=options["server"],
            server_token=os.environ.get("CELLWRIGHT_SERVER_TOKEN"),
            kernel_id=options["kernel_id"],
            per_call=options["per_call"],
            timeout=options["timeout"],
            answers=options["answers"],
            keep_going=options["keep_going"],
            ask=ask_at_terminal if printer.can_ask else None,
            progress=printer.take,
            detach=options["detach"],
        )
    rows = answer["cells"]
    failed = [row for row in rows if row["status"] not in ("ok", "pending")]
    if call.output.as_json:
        error = _error(failed[0]) if failed else None
        print_json({"ok": not failed, "data": answer, "error": error})
    else:
        if not answer["done"]:
            call.output.say(f"It goes on as {answer['run']}; `cellwright attach {answer['run']}`")
        for row in rows:
            notes = [*row.get("notes", ()), *_left_out(row)]
            call.output.warn(notes)
    return CODES[failed[0]["status"]] if failed else OK


def _cells(code: tuple[str, ...], options: dict[str, Any]) -> list[dict[str, Any]]:
    if options["cells"] is not None:
        if code:
            raise click.UsageError("Give code, or --cells, not both")
        try:
            cells = json.loads(read_input(options["cells"]))
        except ValueError as error:
            raise click.UsageError(f"--cells is not JSON: {error}") from None
        if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
            raise click.UsageError("--cells must hold a list of objects")
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


def _error(row: dict[str, Any]) -> dict[str, Any]:
    error = row["error"]
    message = f"{error['ename']}: {error['evalue']}" if error else " ".join(row["notes"])
    notes = " ".join(row["notes"]) or "Its traceback is in the text"
    return {"code": ERRORS[row["status"]], "message": message, "hint": notes, "retryable": False}


def _left_out(row: dict[str, Any]) -> list[str]:
    if not row.get("truncated") or row["artifact"] is None:
        return []
    where = f"artifact://{row['artifact']}"
    return [f"{row['total_lines']:,} lines of output; all of it is kept as {where}"]


class _Printer:
    """Prints what cells say while they run, and on a terminal how far they are."""

    def __init__(self, call: Call, cells: list[dict[str, Any]]) -> None:
        from cellwright.outputs.sanitize import Sanitizer

        self._call = call
        self._titles = [cell.get("title") or "" for cell in cells]
        self._harmless = Sanitizer()
        self._shows_status = is_terminal(sys.stderr) and (len(cells) > 1 or any(self._titles))
        self.can_ask = is_terminal(sys.stdin) and not call.output.as_json

    def take(self, report: dict[str, Any]) -> None:
        """Print one report."""
        if "status" in report:
            self._status(report["cell"], report["status"])
        elif "text" in report and not self._call.output.as_json:
            # Harmless also in a pipe: at its other end sits a terminal, or a model.
            write_bytes(self._harmless.feed(report["text"]).encode("utf-8", "backslashreplace"))

    def _status(self, cell: int, status: str) -> None:
        if not self._shows_status:
            return
        if status == "running" and cell == 0:
            for number in range(len(self._titles)):
                self._say(number, "pending" if number else "running")
        elif status == "running":
            self._say(cell, "running")
        else:
            self._say(cell, "complete" if status == "ok" else status.replace("_", " "))

    def _say(self, cell: int, word: str) -> None:
        colors = {"complete": "green", "running": "cyan", "pending": "bright_black"}
        title = f" {self._titles[cell]}" if self._titles[cell] else ""
        text = f"[{cell + 1}/{len(self._titles)}]{title}: {word}"
        self._call.output.say(text, color=colors.get(word, "red"))


async def ask_at_terminal(request: Any) -> str | None:
    """Ask the person at the terminal for a line."""
    import asyncio
    import getpass
    import threading

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str | None] = loop.create_future()

    def settle(text: str | None) -> None:
        if not answer.done():
            answer.set_result(text)

    def wait() -> None:
        try:
            text = getpass.getpass(request.prompt) if request.password else input(request.prompt)
        except (EOFError, OSError):
            text = None
        loop.call_soon_threadsafe(settle, text)

    # A thread that nobody waits for: the cell may end before the person answers.
    threading.Thread(target=wait, daemon=True).start()
    return await answer
