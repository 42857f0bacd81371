"""`cellwright run NB [CELL]...`."""

from __future__ import annotations

import sys

import click

from cellwright.cli.commands.eval import CODES, ERRORS, ask_at_terminal
from cellwright.cli.options import Call, common
from cellwright.cli.output import (
    FAILED,
    OK,
    TIMEOUT,
    is_terminal,
    one_line,
    print_json,
    write_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from cellwright.cli.output import Output
    from cellwright.workspace.runs.execution import Execution


@click.command()
@click.argument("notebook", metavar="NB", type=click.Path())
@click.argument("cells", nargs=-1, metavar="[CELL]...")
@click.option("--all", "run_all", is_flag=True, help="All code cells; the default.")
@click.option("--above", metavar="C", help="The cells before this one.")
@click.option("--below", metavar="C", help="This cell and those after it.")
@click.option("--stale", is_flag=True, help="Those whose results do not stand any more.")
@click.option("--replay", metavar="C", help="This cell, after those above that it needs.")
@click.option("--restart", is_flag=True, help="In a fresh kernel.")
@click.option(
    "--check", is_flag=True, help="Compare with the outputs in the file, and write nothing."
)
@click.option(
    "-p", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter; may be repeated."
)
@click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
@click.option("--time-limit", type=float, default=0.0, metavar="S", help="Seconds for all of them.")
@click.option("--kernel", help="A kernelspec's name, or an interpreter's or environment's path.")
@click.option("--answer", "answers", multiple=True, help="A line for input(); may be repeated.")
@click.option("--keep-going", is_flag=True, help="Run the cells after one that failed, too.")
@click.option(
    "--detach", type=float, metavar="S", help="Answer after so many seconds; the run goes on."
)
@common
def command(call: Call, notebook: str, cells: tuple[str, ...], **options: Any) -> int:
    """Run cells of a notebook; their outputs are then in the file.

    What cells print is shown as it comes. CELL is an id, cell-N or an index; A-B is all from one
    to the other, A- all from one on.

    \b
    cellwright run analysis.ipynb
    cellwright run analysis.ipynb ab12 4-7 --timeout 60
    cellwright run analysis.ipynb --above results
    cellwright run report.ipynb -p year=2026 -p 'regions=["north", "south"]'
    cellwright run analysis.ipynb --all --restart --check
    """
    from cellwright.workspace.runs.parameters import parse_parameters

    chosen = cells or any(options[name] is not None for name in ("above", "below", "replay"))
    if options.pop("run_all") and (chosen or options["stale"]):
        raise click.UsageError("--all is all there is; name no cells beside it")
    options["parameters"] = parse_parameters(options["parameters"])
    # What is not said need not be passed on.
    options = {name: value for name, value in options.items() if value not in (None, {}, ())}
    can_ask = is_terminal(sys.stdin) and not call.output.as_json
    with call.workspace(start=True) as workspace:
        book = workspace.open(notebook)
        done = book.run(
            list(cells) or None,
            progress=_printer(call.output, shows_text=not options["check"]),
            ask=ask_at_terminal if can_ask else None,
            **options,
        )
        warnings = book.warnings()
    code = _check_code(done) if options["check"] else _code(done, is_over=done.done)
    if call.output.as_json:
        data = {"path": notebook, **done.to_json(), "warnings": warnings}
        print_json({"ok": code == OK, "data": data, "error": _error(done, code)})
        return code
    if options["check"]:
        _show_check(call.output, done)
    for run in done:
        if run.is_failure and _result(run) != "same":
            call.output.warn([describe_failure(run.to_json())["message"]])
            for line in run.traceback:
                call.output.say(f"    {line}")
        call.output.warn(run.notes)
    call.output.warn(warnings)
    ran = sum(run.status != "pending" for run in done)
    call.output.say(f"{ran} of {len(done)} cells ran in {notebook}")
    if not done.done:
        call.output.say(f"It goes on as {done.run}; `cellwright attach {done.run}`")
    return code


def _printer(output: Output, *, shows_text: bool) -> Callable[[dict[str, Any]], None]:
    """What shows the progress of a run: text as it comes, and on a terminal what runs."""
    from cellwright.outputs.sanitize import Sanitizer

    harmless = Sanitizer()
    shows_status = is_terminal(sys.stderr)

    def progress(report: dict[str, Any]) -> None:
        if "text" in report and shows_text and not output.as_json:
            write_bytes(harmless.feed(report["text"]).encode("utf-8", "backslashreplace"))
        elif shows_status and report.get("status", "pending") != "pending":
            output.say(f"[{report['cell']}] {report['status']}", color="cyan")

    return progress


def _code(done: Sequence[Execution], *, is_over: bool) -> int:
    """The exit code: of the first cell that failed, or that the time was over before the last."""
    failed = [run for run in done if run.is_failure]
    if failed:
        return CODES[failed[0].status]
    return TIMEOUT if is_over and any(run.status == "pending" for run in done) else OK


def _check_code(done: Sequence[Execution]) -> int:
    return OK if all(_result(run) in ("same", "unstored") for run in done) else FAILED


def _result(run: Execution) -> str:
    return "unchecked" if run.check is None else str(run.check["result"])


def _error(done: Sequence[Execution], code: int) -> dict[str, Any] | None:
    """What went wrong first, if anything did."""
    if code == OK:
        return None
    found = next((run for run in done if run.is_failure), None)
    if found is not None:
        return describe_failure(found.to_json())
    differs = next((run for run in done if _result(run) == "differs"), None)
    if differs is not None:
        where = f"cell {differs.cell} (index {differs.index})"
        message, kind = f"{where}: its outputs are not those in the file", "error"
    else:
        message, kind = "The time limit was over before the last cell", "timed_out"
    hint = "See `executions`" if differs is None else "The diff is in its `check`"
    return {"code": ERRORS[kind], "message": message, "hint": hint, "retryable": False}


def _show_check(output: Output, done: Sequence[Execution]) -> None:
    """A row for every cell, and the diff below those that differ."""
    rows = []
    for run in done:
        rows.append(f"{run.index:>4}  {one_line(run.cell):12} {_result(run)}\n")
        diff = run.check["diff"] if run.check else ""
        rows += [f"      {one_line(line)}\n" for line in diff.splitlines()]
    output.data(None, rows)


def describe_failure(run: dict[str, Any]) -> dict[str, Any]:
    """A cell that did not end well, as an error."""
    error = run["error"]
    why = run["status"].replace("_", " ")
    if error and run["status"] == "error":
        why = f"{error['ename']}: {error['evalue']}"
    line = f", line {error['line']}" if error and error.get("line") else ""
    return {
        "code": ERRORS[run["status"]],
        "message": f"cell {run['cell']} (index {run['index']}){line}: {why}",
        "hint": ". ".join(run["notes"]) or "Its traceback is in the outputs",
        "retryable": False,
    }
