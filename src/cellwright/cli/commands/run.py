"""`cellwright run NB [CELL]...`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.commands.eval import CODES, ERRORS, ask_at_terminal
from cellwright.cli.options import Call, common
from cellwright.cli.output import OK, is_terminal, print_json, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("cells", nargs=-1, metavar="[CELL]...")
@click.option("--all", "run_all", is_flag=True, help="All code cells; the default.")
@click.option("--above", metavar="C", help="The cells before this one.")
@click.option("--below", metavar="C", help="This cell and those after it.")
@click.option("--stale", is_flag=True, help="Those whose results do not stand any more.")
@click.option("--restart", is_flag=True, help="In a fresh kernel.")
@click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
@click.option("--kernel", help="A kernelspec's name, or an interpreter's or environment's path.")
@click.option("--answer", "answers", multiple=True, help="A line for input(); may be repeated.")
@click.option("--keep-going", is_flag=True, help="Run the cells after one that failed, too.")
@common
def command(call: Call, notebook: str, cells: tuple[str, ...], **options: Any) -> int:
    """Run cells of a notebook; their outputs are then in the file.

    What cells print is shown as it comes. Without an engine, the kernel ends with this command.

    \b
    cellwright run analysis.ipynb
    cellwright run analysis.ipynb ab12 cd34 --timeout 60
    cellwright run analysis.ipynb --above results
    """
    chosen = cells or options["above"] or options["below"] or options["stale"]
    if options.pop("run_all") and chosen:
        raise click.UsageError("--all is all there is; name no cells beside it")
    shows = is_terminal(sys.stderr)
    from cellwright.outputs.sanitizer import Sanitizer

    harmless = Sanitizer()

    def progress(report: dict[str, Any]) -> None:
        if "text" in report and not call.output.as_json:
            write_bytes(harmless.feed(report["text"]).encode("utf-8", "backslashreplace"))
        elif "status" in report and shows:
            call.output.say(f"[{report['cell']}] {report['status']}", color="cyan")

    can_ask = is_terminal(sys.stdin) and not call.output.as_json
    with call.workspace() as workspace:
        book = workspace.open(notebook)
        done = book.run(
            list(cells) or None,
            progress=progress,
            ask=ask_at_terminal if can_ask else None,
            **options,
        )
        warnings = book.warnings()
    failed = [run for run in done if run.status not in ("ok", "pending")]
    if call.output.as_json:
        data = {"path": notebook, "executions": [run.to_json() for run in done]}
        error = describe_failure(failed[0].to_json()) if failed else None
        print_json({"ok": not failed, "data": {**data, "warnings": warnings}, "error": error})
    else:
        for run in failed:
            call.output.warn([describe_failure(run.to_json())["message"]])
        for run in done:
            call.output.warn(run.notes)
        call.output.warn(warnings)
        ran = sum(run.status != "pending" for run in done)
        call.output.say(f"{ran} of {len(done)} cells ran in {notebook}")
    return CODES[failed[0].status] if failed else OK


def describe_failure(run: dict[str, Any]) -> dict[str, Any]:
    """A cell that did not end well, as an error."""
    error = run["error"]
    why = f"{error['ename']}: {error['evalue']}" if error else run["status"].replace("_", " ")
    return {
        "code": ERRORS[run["status"]],
        "message": f"cell {run['cell']} (index {run['index']}): {why}",
        "hint": " ".join(run["notes"]) or "Its traceback is in the outputs",
        "retryable": False,
    }
