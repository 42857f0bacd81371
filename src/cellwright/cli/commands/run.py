"""Runs of notebooks: `cellwright run`, and `runs`, `attach` and `cancel` for runs in the engine."""

from __future__ import annotations

import contextlib
import json
import sys
import time

import click

from cellwright.cli.completion import complete_cell, complete_notebook_or_cell
from cellwright.cli.live import LiveCells
from cellwright.cli.options import CommandCall, common, expand_notebooks, server_option
from cellwright.cli.output import (
    BAD_NOTEBOOK,
    FAILED,
    INTERRUPTED,
    OK,
    STATUS_CODES,
    STATUS_ERRORS,
    TIMEOUT,
    complete_notes,
    describe_error,
    describe_problem,
    exit_code,
    is_terminal,
    one_line,
    print_json,
    read_input,
    style_status,
)
from cellwright.errors import CellwrightError, SessionNotFound
from cellwright.workspace.api.answers import EvalAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from cellwright.cli.output import CommandOutput
    from cellwright.workspace.api.answers import AttachAnswer, RunView
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.workspace import Workspace


@click.command()
@click.argument(
    "words",
    metavar="NB... [CELL]...",
    nargs=-1,
    required=True,
    shell_complete=complete_notebook_or_cell,
)
@click.option("--all", "run_all", is_flag=True, help="All code cells; the default.")
@click.option(
    "--above", metavar="C", shell_complete=complete_cell, help="The cells before this one."
)
@click.option(
    "--below", metavar="C", shell_complete=complete_cell, help="This cell and the cells after it."
)
@click.option("--stale", is_flag=True, help="Only stale cells.")
@click.option(
    "--replay",
    metavar="C",
    shell_complete=complete_cell,
    help="This cell, and the cells above that it needs.",
)
@click.option("--restart", is_flag=True, help="Restart the kernel first.")
@click.option("--check", is_flag=True, help="Compare with the outputs in the file; write nothing.")
@click.option(
    *("-o", "--output"),
    metavar="OUT.ipynb",
    help="Run a copy that is saved here, in a kernel of its own; NB stays as it is.",
)
@click.option(
    *("-p", "parameters"),
    multiple=True,
    metavar="NAME=VALUE|@FILE",
    help="A parameter, or a file of them in JSON or TOML; may be repeated.",
)
@click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
@click.option("--time-limit", type=float, default=0.0, metavar="S", help="Seconds for all cells.")
@click.option("--kernel", help="A kernelspec's name, or the path of an interpreter or environment.")
@server_option
@click.option("--answer", "answers", multiple=True, help="A line for input(); may be repeated.")
@click.option("--keep-going", is_flag=True, help="Continue after a cell that failed.")
@click.option(
    "--detach", type=float, metavar="S", help="Return after this many seconds; the run continues."
)
@common
def run_command(call: CommandCall, words: tuple[str, ...], **options: Any) -> int:
    """Run cells of notebooks and save their outputs in the files.

    What cells print is shown immediately. CELL is an id, cell-N or an index; A-B is a range of
    cells, A- all cells from A on. Several notebooks run one after the other, all of them even if
    one fails; Ctrl-C stops all. NB may be a pattern in quotes, or - for stdin with -o.

    \b
    cellwright run analysis.ipynb
    cellwright run analysis.ipynb ab12 4-7 --timeout 60
    cellwright run analysis.ipynb --above results
    cellwright run report.ipynb -o may.ipynb -p month=5 -p @settings.toml
    cellwright run 'reports/**/*.ipynb' --restart
    cellwright run analysis.ipynb --all --restart --check
    """
    notebooks, cells = _split_words(words)
    chosen = cells or any(options[name] is not None for name in ("above", "below", "replay"))
    if options.pop("run_all") and (chosen or options["stale"]):
        raise click.UsageError("--all runs all cells; do not name cells as well")
    if len(notebooks) > 1 and (chosen or options["output"]):
        raise click.UsageError("Cells and -o are for one notebook")
    options["parameters"] = _collect_parameters(options["parameters"])
    options = {name: value for name, value in options.items() if value not in (None, {}, ())}
    with call.workspace(start=True) as workspace:
        is_given = notebooks == ["-"]
        if is_given:
            clears = not chosen and not options.get("stale")
            notebooks = [_save_stdin(workspace, options, clears=clears)]
        if len(notebooks) == 1:
            code, data, error = _run_notebook(call, workspace, notebooks[0], cells, options)
            if is_given and "detach" not in options:  # its kernel was its own, as that of a copy
                with contextlib.suppress(SessionNotFound):
                    workspace.kernel("shutdown", session=notebooks[0])
            if call.output.as_json:
                print_json({"ok": code == OK, "data": data, "error": error})
            return code
        return _run_notebooks(call, workspace, notebooks, options)


def _split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words of a command line into notebooks and cells; the first is a notebook."""
    is_notebook = [not at or word.endswith(".ipynb") for at, word in enumerate(words)]
    notebooks = [word for word, is_one in zip(words, is_notebook, strict=True) if is_one]
    cells = [word for word, is_one in zip(words, is_notebook, strict=True) if not is_one]
    return expand_notebooks(notebooks), cells


def _collect_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Read parameters, and files of them; the last one of a name counts."""
    found: dict[str, Any] = {}
    for text in texts:
        if text.startswith("@"):
            found |= _read_parameters(text[1:])
        else:
            from cellwright.workspace.runs.parameters import parse_parameters

            found |= parse_parameters([text], file="-p @FILE")
    return found


def _read_parameters(name: str) -> dict[str, Any]:
    text = read_input(name)
    try:
        if name.endswith(".toml"):
            import tomllib

            return tomllib.loads(text)
        values = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"{name}: {error}") from None
    if not isinstance(values, dict):
        raise click.UsageError(f"{name} must be an object: names and values")
    return values


def _save_stdin(workspace: Workspace, options: dict[str, Any], *, clears: bool) -> str:
    """Save the notebook on stdin, on record, as a copy with parameters; returns its name."""
    output: str | None = options.pop("output", None)
    if output is None:
        raise click.UsageError("A notebook on stdin needs -o OUT.ipynb")
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.runs.copies import make_copy_edits

    notebook = Notebook(sys.stdin.buffer.read())  # raises if it is none
    edits = make_copy_edits(notebook, options.pop("parameters", None), clears=clears)
    if edits:
        notebook.apply(edits)
    text = notebook.to_bytes().decode()
    workspace.open(output).write(text, json=True, label="copy of stdin")
    options["restart"] = True
    return output


def _run_notebooks(
    call: CommandCall, workspace: Workspace, notebooks: Sequence[str], options: dict[str, Any]
) -> int:
    """Run several notebooks one after the other; returns the first exit code that is not 0.

    Ctrl-C stops the cells that run, and the notebooks after them are not begun.
    """
    codes, rows, errors = [], [], []
    for notebook in notebooks:
        call.output.say(f"{one_line(notebook)}:")
        try:
            code, data, error = _run_notebook(call, workspace, notebook, [], options)
        except CellwrightError as problem:
            code, data, error = exit_code(problem), {"path": notebook}, None
            if call.output.as_json:
                error = describe_error(problem, "run")
            else:
                call.output.fail(problem)  # and run the others
        codes.append(code)
        rows.append(data)
        errors.append(error)
        if code == INTERRUPTED:
            break
    failed = sum(code != OK for code in codes)
    if call.output.as_json:
        error = next((each for each in errors if each is not None), None)
        print_json({"ok": not failed, "data": {"notebooks": rows}, "error": error})
    left = len(notebooks) - len(codes)
    counts = f"{len(codes) - failed} ok, {failed} failed" + (f", {left} not run" if left else "")
    call.output.say(f"{len(notebooks)} notebooks: {counts}", color="red" if failed else "green")
    if INTERRUPTED in codes:
        return INTERRUPTED
    return next((code for code in codes if code != OK), OK)


def _run_notebook(
    call: CommandCall,
    workspace: Workspace,
    notebook: str,
    cells: Sequence[str],
    options: dict[str, Any],
) -> tuple[int, dict[str, Any], dict[str, Any] | None]:
    """Run one notebook and report it; returns the exit code, and data and error for JSON."""
    from cellwright.cli.questions import answer_input

    can_ask = is_terminal(sys.stdin) and not call.output.as_json
    began = time.monotonic()
    live = LiveCells(call.output, shows_text=not options["check"])
    book = workspace.open(notebook)
    with live:
        done = book.run(
            list(cells) or None,
            progress=live,
            ask=live.wrap(answer_input) if can_ask else None,
            **options,
        )
    warnings = book.warnings()
    code = _exit_code_of_check(done) if options["check"] else _exit_code(done, is_over=done.done)
    if call.output.as_json:
        data = {"path": notebook, **done.to_json(), "warnings": warnings}
        return code, data, _find_error(done, code, notebook)
    if options["check"]:
        _print_check(call.output, done)
    for run in done:
        if (run.is_failure or run.is_unsaved) and _check_result(run) != "same":
            traceback = "\n".join((run.error and run.error.traceback) or ()).splitlines()
            call.output.report_failure(describe_failure(run, notebook)["message"], traceback)
        call.output.warn(complete_notes(run, notebook))
    call.output.warn(warnings)
    subject = options.get("output", notebook)
    _print_summary(call.output, done, subject, time.monotonic() - began)
    if done.skipped:
        names = one_line(", ".join(done.skipped))
        call.output.say(f"Skipped by the tag skip-execution: {names}")
    if not done.done:
        call.output.say(describe_detached(done.run))
    return code, {}, None


def _print_summary(
    output: CommandOutput, done: Sequence[Execution], subject: str, seconds: float
) -> None:
    """Print how many cells ended well, failed and were not reached, and how long it took."""
    output.say(summarize_cells(done, subject, seconds), color=_choose_color(done))


def summarize_cells(done: Sequence[Execution], subject: str, seconds: float) -> str:
    """Say in one line how many cells ended well, failed and were not reached."""
    counts = {
        "ok": sum(run.status == "ok" for run in done),
        "failed": sum(run.is_failure for run in done),
        "failed as expected": sum(run.status == "error" and run.expected for run in done),
        "running": sum(run.status == "running" for run in done),
        "not reached": sum(run.status == "pending" for run in done),
    }
    parts = [f"{count} {word}" for word, count in counts.items() if count or word == "ok"]
    cells = "1 cell" if len(done) == 1 else f"{len(done)} cells"
    return f"{one_line(subject)}: {', '.join(parts)} ({cells}, {seconds:.1f} s)"


def _choose_color(done: Sequence[Execution]) -> str:
    if any(run.is_failure for run in done):
        return "red"
    return "yellow" if any(run.status in ("pending", "running") for run in done) else "green"


def describe_detached(run: str) -> str:
    """Say how to follow a run that continues in the engine."""
    return f"Still running as {run}; `cellwright attach {run}` follows it"


def find_failure(done: Sequence[Execution]) -> Execution | None:
    """The execution that a command fails with: outputs that were not saved count most."""
    return next(
        (run for run in done if run.is_unsaved), next((run for run in done if run.is_failure), None)
    )


def describe_failure(run: Execution, notebook: str) -> dict[str, Any]:
    """Describe a cell that failed as an error, or whose outputs were not saved."""
    error, hint = run.error, ". ".join(complete_notes(run, notebook))
    if run.is_unsaved:
        message = f"cell {run.cell} (index {run.index}): its outputs were not saved"
        return describe_problem(run.save_error or "", message, hint)
    why = run.status.replace("_", " ")
    if error is not None and run.status == "error":
        why = f"{error.ename}: {error.evalue}"
    line = f", line {error.line}" if error is not None and error.line else ""
    message = f"cell {run.cell} (index {run.index}){line}: {why}"
    return describe_problem(
        STATUS_ERRORS[run.status], message, hint or "Its traceback is in the outputs"
    )


def _exit_code(done: Sequence[Execution], *, is_over: bool) -> int:
    """The exit code of outputs that were not saved, of the first failure, or of a time limit."""
    if any(run.is_unsaved for run in done):
        return BAD_NOTEBOOK
    failed = [run for run in done if run.is_failure]
    if failed:
        return STATUS_CODES[failed[0].status]
    return TIMEOUT if is_over and any(run.status == "pending" for run in done) else OK


def _exit_code_of_check(done: Sequence[Execution]) -> int:
    return OK if all(_check_result(run) in ("same", "unstored") for run in done) else FAILED


def _check_result(run: Execution) -> str:
    return "unchecked" if run.check is None else run.check.result


def _find_error(done: Sequence[Execution], code: int, notebook: str) -> dict[str, Any] | None:
    """Describe the first error of a run; None if the exit code says there is none."""
    if code == OK:
        return None
    found = find_failure(done)
    if found is not None:
        return describe_failure(found, notebook)
    differs = next((run for run in done if _check_result(run) == "differs"), None)
    if differs is not None:
        where = f"cell {differs.cell} (index {differs.index})"
        message, kind = f"{where}: its outputs differ from the file", "error"
    else:
        message, kind = "The time limit ended the run before its last cell", "timed_out"
    hint = "See `executions`" if differs is None else "The diff is in its `check`"
    return describe_problem(STATUS_ERRORS[kind], message, hint)


def _print_check(output: CommandOutput, done: Sequence[Execution]) -> None:
    """Print a row for each cell, with the diff below cells that differ."""
    rows = []
    for run in done:
        rows.append(f"{run.index:>4}  {one_line(run.cell or ''):12} {_check_result(run)}\n")
        diff = run.check.diff if run.check else ""
        rows += [f"      {one_line(line)}\n" for line in diff.splitlines()]
    output.data(None, rows)


@click.command()
@common
def runs_command(call: CommandCall) -> None:
    """List current and recent runs, newest first.

    \b
    cellwright runs
    cellwright attach r1a2b3c4d
    cellwright cancel r1a2b3c4d
    """
    with call.workspace() as workspace:
        found = workspace.runs()
    call.output.data({"runs": found}, map(run_row, found), styled=True)
    if not found:
        call.output.say("Nothing is running")


def run_row(run: RunView) -> str:
    """Render a run on one line."""
    cells = run.cells.values()
    done = sum(status not in ("pending", "running") for status in cells)
    count = f"{done}/{len(cells)}" if cells else ""
    status = style_status(run.status, 9)
    return f"{run.run}  {status} {run.seconds:8.1f} s  {count:7} {one_line(run.subject)}\n"


@click.command()
@click.argument("run")
@click.option("--wait", type=float, metavar="S", help="Return after this many seconds.")
@common
def attach_command(call: CommandCall, run: str, wait: float | None) -> int:
    """Follow a run from its beginning to its end; Ctrl-C leaves it and does not stop it.

    \b
    cellwright attach r1a2b3c4d
    cellwright attach r1a2b3c4d --wait 5 --json
    """
    with call.workspace() as workspace, LiveCells(call.output) as live:
        found = workspace.attach(run, progress=live, wait=wait)
    return _report_run(call, found)


def _report_run(call: CommandCall, found: AttachAnswer) -> int:
    """Print how a run ended, or that it continues; returns the exit code."""
    answer = found.answer
    ran: Sequence[Execution] = answer.cells if isinstance(answer, EvalAnswer) else answer or ()
    failed = [each.status for each in ran if each.is_failure]
    unsaved = find_failure([each for each in ran if each.is_unsaved])
    error: dict[str, Any] | None = None
    if found.error is not None:
        error = describe_problem(found.error.code, found.error.message)
    elif unsaved is not None:
        error = describe_failure(unsaved, found.subject)
    if call.output.as_json:
        print_json({"ok": not failed and error is None, "data": found, "error": error})
    elif not found.done:
        call.output.say(f"{found.run} is still running after {found.seconds:.1f} s")
    else:
        if error is not None:
            call.output.report_failure(error["message"])
        for each in ran:
            if each.is_failure and each.cell is not None:
                message = describe_failure(each, found.subject)["message"]
                call.output.report_failure(message, (each.error and each.error.traceback) or ())
        _print_summary(call.output, ran, found.run, found.seconds)
    if unsaved is not None:
        return BAD_NOTEBOOK
    if error is not None:
        is_cancelled = error["code"] == STATUS_ERRORS["cancelled"]
        return STATUS_CODES["cancelled" if is_cancelled else "died"]
    return STATUS_CODES[failed[0]] if failed else OK


@click.command()
@click.argument("run")
@common
def cancel_command(call: CommandCall, run: str) -> None:
    """Stop a run: interrupt its cell, and keep what it has printed.

    \b
    cellwright cancel r1a2b3c4d
    """
    with call.workspace() as workspace:
        found = workspace.cancel(run)
    text = f"Stopped {run}\n" if found.cancelled else f"{run} had already ended\n"
    call.output.data(found, text)
