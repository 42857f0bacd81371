"""Runs that go on after their tool has answered: a chat waits for them.

Tools answer within a minute, since clients elsewhere give up then. Here a person sees that cells
run, and can stop them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cellwright.tools.page import Page
from cellwright.tools.tool import ToolResult
from cellwright.tools.wording import has_failed, run_facts, shorten, show_run, summarize_run

if TYPE_CHECKING:
    from cellwright.workspace.asynchronous import AsyncWorkspace

_TOKENS = 8000


async def followed(answer: ToolResult, workspace: AsyncWorkspace) -> ToolResult:
    """The answer at the end of its run; the same, if it has no run that goes on.

    Whoever stops waiting stops the run.
    """
    run = answer.data.get("run")
    if not isinstance(run, str) or answer.data.get("done", True):
        return answer
    try:
        found = await workspace.attach(run)
    except asyncio.CancelledError:
        await workspace.cancel(run)
        raise
    if found["error"]:
        code, message = found["error"]["code"], shorten(found["error"]["message"], 400)
        return ToolResult(f"error: {code}: {message}", {"code": code, "run": run}, is_error=True)
    rows = (found["answer"] or {}).get("executions") or []
    page = Page(_TOKENS)
    page.head(summarize_run(rows))
    show_run(page, rows)
    data = {**answer.data, "done": True, "executions": run_facts(rows)}
    return page.to_result(data, is_error=any(map(has_failed, rows)))
