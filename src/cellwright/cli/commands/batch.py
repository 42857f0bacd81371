"""`cellwright batch`: many notebooks, with parameters, in parallel, with a report."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time

import click

from cellwright.cli.live import LiveArea, Ticker
from cellwright.cli.options import CommandCall, common, expand_notebooks, server_option
from cellwright.cli.output import (
    FAILED,
    INTERRUPTED,
    OK,
    describe_problem,
    is_terminal,
    one_line,
    print_json,
    read_input,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from cellwright.batch import BatchReport
    from cellwright.cli.output import CommandOutput

_ROWS = 12
_USUAL_NAME = "cellwright-batch"


@click.command()
@click.argument("notebooks", nargs=-1, required=True, metavar="NB...")
@click.option(
    "--params",
    "files",
    multiple=True,
    metavar="FILE",
    help="Sets of parameters in CSV, JSON, TOML or YAML; every notebook is run with each.",
)
@click.option(
    "-p", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter for all runs."
)
@click.option(
    "--matrix",
    multiple=True,
    metavar="NAME=A,B,C",
    help="Values of a parameter; every combination is run.",
)
@click.option("--out", metavar="DIR|TEMPLATE", help="Where copies with the outputs are saved.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="How many run at once.")
@click.option("--retries", type=click.IntRange(min=0), default=0, help="Run again after a failure.")
@click.option("--timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell.")
@click.option("--time-limit", type=float, default=0.0, metavar="S", help="Seconds for a notebook.")
@click.option("--kernel", help="A kernelspec's name, or the path of an interpreter or environment.")
@server_option
@click.option(
    "--scheduler",
    metavar="ADDRESS|CLASS",
    help="Run on the workers of a Dask scheduler, such as tcp://host:8786.",
)
@click.option("--resume", is_flag=True, help="Leave out what the same batch has done before.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first failure.")
@click.option("--keep-going", is_flag=True, help="Continue after a cell that failed.")
@click.option("--only-stale", is_flag=True, help="Only notebooks with stale results.")
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="KIND[=FILE]",
    help="html, json or junit; by default saved as cellwright-batch.html, .json or .xml.",
)
@common
def batch_command(call: CommandCall, notebooks: tuple[str, ...], **options: Any) -> int:
    """Run many notebooks, each in a kernel of its own, several at a time.

    With --out the notebooks stay as they are, and copies get the outputs; parameters are a cell in
    the copy, as with papermill. A notebook is run once for each set of parameters. TEMPLATE is a
    path with {stem}, {folder}, {index} or names of parameters. Ctrl-C keeps what is done, and
    --resume runs the rest.

    \b
    cellwright batch 'docs/**/*.ipynb' --out build --report junit
    cellwright batch sales.ipynb --matrix year=2024,2025 --out 'reports/{stem}-{year}.ipynb'
    cellwright batch sales.ipynb --params regions.csv --out reports -j 4 --retries 1
    cellwright batch sales.ipynb --params regions.csv --out reports --resume
    """
    from cellwright.batch import plan_jobs, run_batch

    sets = _collect_sets(options.pop("files"), options.pop("parameters"))
    matrix = _parse_matrix(options.pop("matrix"))
    reports = [_parse_report(text) for text in options.pop("reports")]
    found = expand_notebooks(notebooks)
    # Refused before the terminal is ours.
    count = len(plan_jobs(found, parameters=sets, matrix=matrix, out=options["out"]))
    code = OK
    with LiveJobs(call.output, count) as live:
        try:
            report = run_batch(
                found,
                parameters=sets,
                matrix=matrix,
                progress=live,
                open_workspace=lambda: call.workspace(start=True),
                **options,
            )
        except KeyboardInterrupt as interrupt:
            report = interrupt.report  # type: ignore[attr-defined]
            code = INTERRUPTED
    code = code or (OK if report.ok else FAILED)
    for kind, path in reports:
        _save_report(report, kind, path)
        call.output.say(f"{path} has the report")
    _print_end(call.output, report, code)
    return code


def _print_end(output: CommandOutput, report: BatchReport, code: int) -> None:
    if output.as_json:
        failed = next(iter(report.failed), None)
        error = None
        if failed is not None:
            where = f"{failed.job.name}: {failed.message}"
            error = describe_problem("BATCH_FAILED", where)
        print_json({"ok": code == OK, "data": report.to_json(), "error": error})
        return
    output.say(report.summary(), color="green" if report.ok else "red")
    if code == INTERRUPTED:
        output.say("The same command with --resume runs the rest")


def _collect_sets(files: Sequence[str], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Read the sets of parameters of all files; those on the command line are in every set."""
    from cellwright.batch import read_parameters
    from cellwright.workspace.runs.parameters import parse_parameters

    common_ones = parse_parameters(texts, file="--params FILE")
    rows = [row for name in files for row in read_parameters(name, read_input(name))]
    if files and not rows:
        raise click.UsageError(f"{', '.join(files)}: no set of parameters")
    return [{**row, **common_ones} for row in rows or [{}]]


def _parse_matrix(texts: Sequence[str]) -> dict[str, list[Any]]:
    from cellwright.workspace.runs.parameters import parse_value

    found: dict[str, list[Any]] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or not name.strip() or not values:
            raise click.UsageError(f"--matrix {text}: write it as NAME=A,B,C")
        listed = parse_value(values) if values.startswith("[") else None
        found[name.strip()] = (
            listed
            if isinstance(listed, list)
            else [parse_value(each) for each in values.split(",")]
        )
    return found


def _parse_report(text: str) -> tuple[str, str]:
    kind, _, path = text.partition("=")
    endings = {"html": "html", "json": "json", "junit": "xml"}
    if kind not in endings:
        raise click.UsageError(f"--report {text}: html, json or junit, with =FILE for another name")
    return kind, path or f"{_USUAL_NAME}.{endings[kind]}"


def _save_report(report: BatchReport, kind: str, path: str) -> None:
    from cellwright.batch import write_report
    from cellwright.errors import ConfigError

    data = write_report(report, kind).encode("utf-8", "replace")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if path.startswith(f"{_USUAL_NAME}."):
        # The person has not typed this name: it may be a link of the repository, or a FIFO.
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(path, flags, 0o666), "wb") as file:  # noqa: PTH123
            file.write(data)
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise ConfigError(f"The report cannot be saved as {path}: {reason}") from None


class LiveJobs:
    """Shows the jobs of a batch: what has ended as a line each, what runs in a table below.

    With `--json` every event is a line.
    """

    def __init__(self, output: CommandOutput, count: int) -> None:
        self._output = output
        self._count = count
        is_drawn = is_terminal(sys.stderr) and not (output.as_json or output.quiet)
        self._area = LiveArea() if is_drawn and os.environ.get("TERM") != "dumb" else None
        self._running: dict[str, dict[str, Any]] = {}
        self._ended = self._failed = self._skipped = 0
        self._began = time.monotonic()
        self._guard = threading.RLock()
        self._ticker = Ticker(self._draw)

    def __enter__(self) -> Self:
        """Begin to draw."""
        if self._area is not None:
            self._ticker.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Leave the terminal to others."""
        self._ticker.close()
        if self._area is not None:
            self._area.close()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event of the batch."""
        with self._guard:
            if self._output.as_json:
                print_json(event)
            kind, job = event["event"], event["job"]
            if kind == "start":
                self._running[job] = {"began": time.monotonic(), "done": 0, "of": 0}
            elif kind == "cell" and job in self._running:
                row = self._running[job]
                row["of"] = event["of"]
                row["done"] += event["status"] not in ("pending", "running")
                if event["status"] == "pending":  # of a first attempt, or of another
                    row["done"] = 0
            elif kind == "end":
                self._running.pop(job, None)
                self._ended += 1
                self._skipped += event["status"] == "skipped"
                self._failed += not event["ok"]
                self._say_end(event)

    def _say_end(self, event: dict[str, Any]) -> None:
        if self._area is not None:
            self._area.close()
        sign = "✓" if event["status"] == "ok" else "·" if event["ok"] else "✗"
        line = f"{sign} {one_line(event['job'])}  {event['status']}, {event['seconds']:.1f} s"
        color = "green" if event["status"] == "ok" else None if event["ok"] else "red"
        self._output.say(line, color=color)
        if event["message"] and not event["ok"]:
            where = f"cell {event['cell']}: " if event["cell"] else ""
            self._output.say(f"  {one_line(where + event['message'])}")
        self._draw()

    def _draw(self) -> None:
        with self._guard:
            if self._area is not None:
                self._area.draw("\n".join(self._list_rows(time.monotonic())))

    def _list_rows(self, now: float) -> list[str]:
        words = f"{self._ended} of {self._count} done, {self._failed} failed"
        if self._ended > self._skipped:  # what was skipped took no time
            each = (now - self._began) / (self._ended - self._skipped)
            left = each * (self._count - self._ended)
            words += f", about {left:.0f} s left"
        rows = [words]
        for job, row in list(self._running.items())[:_ROWS]:
            cells = f"cell {min(row['done'] + 1, row['of'])}/{row['of']}" if row["of"] else "starts"
            rows.append(f"  {one_line(job)}  {cells}, {now - row['began']:.0f} s")
        if len(self._running) > _ROWS:
            rows.append(f"  and {len(self._running) - _ROWS} more")
        return rows
