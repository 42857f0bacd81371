"""`cellwright attach RUN`."""

from __future__ import annotations

import click

from cellwright.cli.commands.eval import CODES
from cellwright.cli.options import Call, common
from cellwright.cli.output import OK, print_json, write_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command()
@click.argument("run")
@click.option("--wait", type=float, metavar="S", help="Look away after so many seconds.")
@common
def command(call: Call, run: str, wait: float | None) -> int:
    """Follow a run from its beginning to its end; Ctrl-C looks away and does not stop it.

    \b
    cellwright attach r1a2b3c4d
    cellwright attach r1a2b3c4d --wait 5 --json
    """
    from cellwright.outputs.sanitize import Sanitizer

    harmless = Sanitizer()

    def progress(report: dict[str, Any]) -> None:
        if "missed" in report:
            call.output.warn([f"The first {report['missed']:,} events were not kept"])
        elif "text" in report and not call.output.as_json:
            write_bytes(harmless.feed(report["text"]).encode("utf-8", "backslashreplace"))

    with call.workspace() as workspace:
        found = workspace.attach(run, progress=progress, wait=wait)
    return report(call, found)


def report(call: Call, found: dict[str, Any]) -> int:
    """Tell how a run went, or that it goes on; returns the exit code."""
    answer = found["answer"] or {}
    statuses = [row["status"] for row in answer.get("executions") or answer.get("cells") or ()]
    failed = [status for status in statuses if status not in ("ok", "pending")]
    error = found["error"] and {**found["error"], "hint": None, "retryable": False}
    if call.output.as_json:
        print_json({"ok": not failed and error is None, "data": found, "error": error})
    elif not found["done"]:
        call.output.say(f"{found['run']} goes on after {found['seconds']:.1f} s")
    else:
        if error is not None:
            call.output.warn([error["message"]])
        call.output.say(f"{found['run']} ended after {found['seconds']:.1f} s")
    if error is not None:
        return CODES["cancelled"] if error["code"] == "EXECUTION_CANCELLED" else CODES["died"]
    return CODES[failed[0]] if failed else OK
