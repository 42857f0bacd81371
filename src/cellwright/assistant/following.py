"""Runs that go on after their tool has answered: a chat waits for them.

Tools answer within a minute, since clients elsewhere give up then. Here a person sees that cells
run, and can stop them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from cellwright.tools.page import Page
from cellwright.tools.tool import Answer
from cellwright.tools.words import is_failure, one_line, run_facts, summary, tell_run

if TYPE_CHECKING:
    from cellwright.workspace.workspace import AsyncWorkspace

_TOKENS = 8000


async def followed(answer: Answer, workspace: AsyncWorkspace) -> Answer:
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
        code, message = found["error"]["code"], one_line(found["error"]["message"], 400)
        return Answer(f"error: {code}: {message}", {"code": code, "run": run}, is_error=True)
    rows = (found["answer"] or {}).get("executions") or []
    page = Page(_TOKENS)
    page.head(summary(rows))
    tell_run(page, rows)
    data = {**answer.data, "done": True, "executions": run_facts(rows)}
    return Answer(page.text(), data, tuple(page.pictures), is_error=any(map(is_failure, rows)))
