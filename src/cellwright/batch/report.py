"""What a batch did, for people (HTML), for CI (JUnit) and for programs (JSON)."""

from __future__ import annotations

import datetime as dt
import html
import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from cellwright.outputs.sanitize import make_visible

if TYPE_CHECKING:
    from cellwright.batch.jobs import ChangedOutputs, JobResult

_LEAST_SECONDS = 0.05  # less would be shown as 0.0
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --mute: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #f85149; --mute: #9ca3af; } }
* { box-sizing: border-box; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 60rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; } p { margin: 0 0 1rem; color: var(--mute); }
details, .row { border-top: 1px solid var(--line); padding: .6rem 0; }
summary { cursor: pointer; } summary::before { content: "▸"; color: var(--mute); }
details[open] summary::before { content: "▾"; }
summary, .row { display: flex; gap: .7rem; flex-wrap: wrap; }
.name { flex: 1 1 12rem; } .time { color: var(--mute); }
.good { color: var(--good); } .bad { color: var(--bad); } .mute { color: var(--mute); }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); border-radius: 6px;
  font: 13px/1.4 ui-monospace, monospace; margin: .5rem 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .6rem; }
.pair img { max-width: 100%; background: #fff; border: 1px solid var(--line); border-radius: 4px; }
figure { margin: 0; } figcaption { color: var(--mute); font-size: .85rem; }
"""


class BatchReport:
    """The results of a batch, in the order of its jobs."""

    def __init__(self, results: list[JobResult], *, began: float, seconds: float) -> None:
        self.results = results
        self.began = began
        self.seconds = seconds

    @property
    def failed(self) -> list[JobResult]:
        """Those that did not end well."""
        return [result for result in self.results if not result.ok]

    @property
    def ok(self) -> bool:
        """Whether all ended well."""
        return not self.failed

    def raise_for_status(self) -> None:
        """Raise `CellFailed` for the first notebook that did not end well, if there is one."""
        from cellwright.errors import CellFailed

        for result in self.failed[:1]:
            where = f"{result.job.name}, cell {result.cell}" if result.cell else result.job.name
            raise CellFailed(result.status, f"{where}: {result.message}")

    def summary(self) -> str:
        """Say in one line how many did what, and how long it took."""
        counts = {
            "ok": sum(result.status == "ok" for result in self.results),
            "failed": sum(not r.ok and r.status != "cancelled" for r in self.results),
            "skipped": sum(result.status == "skipped" for result in self.results),
            "not finished": sum(result.status == "cancelled" for result in self.results),
        }
        words = ", ".join(f"{n} {word}" for word, n in counts.items() if n or word == "ok")
        number = "1 run" if len(self.results) == 1 else f"{len(self.results)} runs"
        return f"{number}: {words} in {self.seconds:.1f} s"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "ok": self.ok,
            "began": _format_time(self.began),
            "seconds": round(self.seconds, 3),
            "runs": [result.to_json() for result in self.results],
        }


def write_report(report: BatchReport, kind: str) -> str:
    """Return a report as `html`, `json` or `junit`."""
    if kind == "json":
        return json.dumps(report.to_json(), indent=1, default=str) + "\n"
    return _write_junit(report) if kind == "junit" else _write_html(report)


# -- JUnit --------------------------------------------------------------------------------------


def _write_junit(report: BatchReport) -> str:
    bad = sum(not r.ok and r.status != "cancelled" for r in report.results)
    skipped = sum(result.status in ("skipped", "cancelled") for result in report.results)
    head = (
        f'<testsuite name="cellwright batch" tests="{len(report.results)}" failures="{bad}"'
        f' errors="0" skipped="{skipped}" time="{report.seconds:.3f}"'
        f' timestamp="{_format_time(report.began)}">'
    )
    cases = "\n".join(map(_write_case, report.results))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n'


def _write_case(result: JobResult) -> str:
    group = result.job.notebook.removesuffix(".ipynb").replace("/", ".")
    head = f"<testcase classname={_attribute(group)} name={_attribute(result.job.name)}"
    head += f' time="{result.seconds:.3f}"'
    if result.status == "ok":
        return f"{head}/>"
    if result.status in ("skipped", "cancelled"):
        said = result.message or " ".join(result.notes)
        return f"{head}><skipped message={_attribute(said)}/></testcase>"
    where = f"cell {result.cell} (index {result.index}): " if result.cell else ""
    text = escape(_xml("\n".join(result.traceback) or result.message))
    return (
        f"{head}><failure type={_attribute(result.status)}"
        f" message={_attribute(where + result.message)}>{text}</failure></testcase>"
    )


def _attribute(text: str) -> str:
    return quoteattr(_xml(text))


def _xml(text: str) -> str:
    """Text that XML can write, with everything visible that a reader would not see."""
    return "".join(
        sign if sign in "\t\n\r" or "\x20" <= sign <= "\ud7ff" or sign >= "\ue000" else "\ufffd"
        for sign in make_visible(text)
        if sign not in "\ufffe\uffff"
    )


# -- HTML ---------------------------------------------------------------------------------------


def _write_html(report: BatchReport) -> str:
    failed_first = sorted(report.results, key=lambda result: result.ok)
    rows = "\n".join(map(_write_row, failed_first))
    state = "good" if report.ok else "bad"
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_escape(report.summary())}</title><style>{_STYLE}</style></head>
<body><h1 class="{state}">{_escape(report.summary())}</h1>
<p>{_escape(_format_time(report.began))}</p>
{rows}
</body></html>
"""


def _write_row(result: JobResult) -> str:
    state = "mute" if result.status in ("skipped", "cancelled") else "good" if result.ok else "bad"
    head = (
        f'<span class="{state}">{_escape(result.status)}</span>'
        f'<span class="name">{_escape(result.job.name)}</span>'
        f'<span class="time">{_describe_changes(result)}{result.ran}/{result.cells} cells, '
        f"{result.seconds:.1f} s</span>"
    )
    body = []
    if result.message:
        where = f"cell {result.cell} (index {result.index}): " if result.cell else ""
        body.append(f"<div>{_escape(where + result.message)}</div>")
    if result.traceback:
        body.append(f"<pre>{_escape(chr(10).join(result.traceback))}</pre>")
    if result.job.output:
        body.append(f"<div class=mute>saved as {_escape(result.job.output)}</div>")
    if result.attempts > 1:
        body.append(f"<div>run {result.attempts} times</div>")
    slow = ", ".join(
        f"cell {index}: {seconds:.1f} s"
        for index, seconds in result.slowest
        if seconds >= _LEAST_SECONDS
    )
    body += [f"<div class=mute>slowest: {slow}</div>"] if slow else []
    body += [f"<div class=mute>{words}</div>" for words in _describe_usage(result.usage)]
    notes = [note for note in result.notes if note != result.message]
    body += [f"<div>{_escape(note)}</div>" for note in notes[:10]]
    body += map(_write_change, result.changed)
    if not body:
        return f'<div class="row">{head}</div>'
    is_open = "" if result.ok else " open"
    return f"<details{is_open}><summary>{head}</summary>{''.join(body)}</details>"


def _describe_changes(result: JobResult) -> str:
    count = len(result.changed)
    return f"{count} changed {'output' if count == 1 else 'outputs'}, " if count else ""


def _describe_usage(usage: dict[str, float]) -> list[str]:
    if not usage:
        return []
    megabytes = usage["peak_bytes"] / 1e6
    return [f"kernel: {usage['cpu_seconds']:.1f} s of CPU, {megabytes:,.0f} MB at its peak"]


def _write_change(change: ChangedOutputs) -> str:
    found = [f"<div>cell {_escape(change.cell)} (index {change.index}) shows something else</div>"]
    if change.diff:
        found.append(f"<pre>{_escape(change.diff)}</pre>")
    if change.old or change.new:
        sides = [*(("before", one) for one in change.old), *(("now", one) for one in change.new)]
        figures = "".join(
            f'<figure><img alt="{side}" src="data:{mime};base64,{data}">'
            f"<figcaption>{side}</figcaption></figure>"
            for side, (mime, data) in sides
        )
        found.append(f'<div class="pair">{figures}</div>')
    return "".join(found)


def _escape(text: str) -> str:
    """Text for a page, with everything visible that a reader would not see, or see elsewhere."""
    return html.escape(make_visible(text))


def _format_time(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).isoformat(timespec="seconds")
