"""`kernel`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from cellwright.tools.errors import drop_shell_hint
from cellwright.tools.page import Page
from cellwright.tools.params import MaxTokens, Name, Params
from cellwright.tools.tool import Tool, ToolResult
from cellwright.tools.wording import format_count, quote_name, quote_path, shorten, to_facts

if TYPE_CHECKING:
    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.answers import KernelSpecView, SessionView, Variable


class KernelParams(Params):
    """Whose kernel, and what to do with it."""

    action: Literal[
        "status", "specs", "variables", "interrupt", "restart", "shutdown", "connect"
    ] = "status"
    path: Annotated[Name | None, Field(description="A notebook's kernel")] = None
    session: Annotated[Name | None, Field(description="An eval session's kernel")] = None
    server: Annotated[Name | None, Field(description="Jupyter server")] = None
    kernel: Annotated[Name | None, Field(description="Its kernelspec, or a kernel's id")] = None
    max_tokens: MaxTokens = 4000


async def manage_kernel(caller: ToolCaller, params: KernelParams) -> ToolResult:
    """Look at kernels, or look after one."""
    page = Page(params.max_tokens)
    # From the variable only: what a model sends is in transcripts.
    token = os.environ.get("CELLWRIGHT_SERVER_TOKEN")
    if params.action == "specs" and params.server:
        from cellwright.workspace.runs.sessions import find_named_server

        url = find_named_server(params.server, caller.workspace.settings)
        specs = await caller.workspace.kernel_specs(server=url, server_token=token)
        return _describe_specs(page, specs)
    if params.action == "specs":
        return _describe_specs(page, await caller.workspace.kernel_specs())
    name = params.path or params.session
    if params.path and not params.path.endswith(".ipynb"):
        name = caller.workspace.open(params.path).real
    if name is None and params.action == "status":
        return _describe_sessions(page, await caller.workspace.sessions())
    cut_off = await _find_running(caller, params)
    options: dict[str, str | None] = {}
    if params.action == "connect":
        options = {"server": params.server, "server_token": token, "kernel": params.kernel}
    found = await caller.workspace.kernel(params.action, name or "default", **options)
    page.head(_session_line(found))
    if params.action == "interrupt":
        page.head("Interrupted." if found.interrupted else "Nothing was running.")
    elif params.action == "restart":
        page.head(f"Restarted: its variables are gone.{cut_off}")
    elif params.action == "shutdown":
        page.head(f"Shut down: its variables are gone.{cut_off}")
    elif params.action == "variables":
        rows = [_variable_line(variable) for variable in found.variables or ()]
        if rows:
            cut = page.show(format_count(len(rows), "variable"), "\n".join(rows))
            if cut:
                page.leave_out(f"{cut:,} characters about variables; raise max_tokens")
        else:
            page.head("It has no variables.")
    elif params.action == "connect":
        use = (
            "notebook_run" if params.path else f"eval with session={quote_name(name or 'default')}"
        )
        page.head(f"Connected: {use} runs there, in its folder and with its files.")
        rows = [
            f"{quote_name(each.id)} {quote_name(each.name)} {each.state}"
            for each in found.kernels or ()
        ]
        page.say_all([f"already running there: {row}" for row in rows], "kernels")
    return page.to_result(found.replace(variables=None).to_json())


async def _find_running(caller: ToolCaller, params: KernelParams) -> str:
    """Which cell of a notebook a restart or a shutdown stops, as a sentence."""
    if params.action not in ("restart", "shutdown") or not params.path:
        return ""
    real = caller.workspace.open(params.path).real
    running = [
        cell
        for run in await caller.workspace.runs()
        if run.ended is None and run.subject == real
        for cell, status in run.cells.items()
        if status == "running"
    ]
    return f" Its cell {quote_name(running[0])} was running, and is stopped." if running else ""


def _describe_sessions(page: Page, rows: list[SessionView]) -> ToolResult:
    page.head(
        f"{format_count(len(rows), 'kernel')} running."
        if rows
        else "No kernel runs; one starts when needed."
    )
    page.say_all([_session_line(row) for row in rows], "kernels")
    return page.to_result({"sessions": to_facts(rows)})


def _session_line(row: SessionView) -> str:
    kernel = quote_name(row.kernel) if row.kernel else "no kernel"
    where = _place(row.server)
    return (
        f"{quote_name(row.session, 150)} · {row.state} · {kernel}{where} · "
        f"{format_count(row.executions, 'execution')} · {row.waiting} waiting"
    )


def _place(server: str | None) -> str:
    """Where a kernel is, behind its name; empty for this machine."""
    return f" on {quote_path(server)}" if server else ""


def _describe_specs(page: Page, rows: list[KernelSpecView]) -> ToolResult:
    page.head("Kernels that can be started:")
    lines = []
    for row in rows:
        if row.problem is not None:
            hint = drop_shell_hint(row.hint)
            lines.append(shorten(row.problem) + (f" hint: {hint}" if hint else ""))
            continue
        mark = " (default here)" if row.default else ""
        name, language = quote_name(row.name or ""), quote_name(row.language or "")
        lines.append(f"{name}{_place(row.server)} · {language}{mark}")
    page.say_all(lines, "kernels")
    return page.to_result({"specs": to_facts(rows)})


def _variable_line(row: Variable) -> str:
    shape = f" {row.size}" if row.size else ""
    return f"{row.name}: {row.type}{shape} = {shorten(row.value, 120)}"


KERNEL = Tool(
    name="kernel",
    title="Look after kernels",
    description="Kernels of notebooks and sessions.",
    model=KernelParams,
    call=manage_kernel,
    effects={
        "status": "read",
        "specs": "read",
        "variables": "run",
        "interrupt": "run",
        "restart": "run",
        "shutdown": "run",
        "connect": "run",
    },
    words={
        "status": "what runs",
        "specs": "kernels to choose from",
        "variables": "what it has defined",
        "interrupt": "stop the cell that runs",
        "restart": "a fresh one",
        "shutdown": "end it",
        "connect": "use a Jupyter server's kernel",
    },
    reference="kernel",
)
