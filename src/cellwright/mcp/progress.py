"""What happens during a call, as progress notifications: rising numbers, and not too many."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from cellwright.mcp.results import clean
from cellwright.tools.wording import shorten

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

_AT_MOST_EVERY = 0.25
_AT_LEAST_EVERY = 10.0  # clients give up on calls that stay silent
_SMALL = 0.001
_LONGEST = 200


class Progress:
    """Tells one client how far its call is; `take` is the tools' `Caller.progress`.

    `expected` is how many cells there will be, where the call itself says so.
    """

    def __init__(self, session: ServerSession, expected: int = 0) -> None:
        self._session = session
        self._expected = expected
        self._cells: dict[Any, str] = {}
        self._said = ""
        self._now = ""
        self._told = -1.0
        self._news = asyncio.Event()

    def take(self, event: dict[str, Any]) -> None:
        """One event of a run."""
        if "run" in event and "cell" not in event:
            self._now = f"run {event['run']} has begun"
        elif "status" in event:
            name = event.get("handle", event.get("cell"))
            self._cells[name] = event["status"]
            if event["status"] == "pending":
                return
            place = list(self._cells).index(name) + 1
            total = max(self._expected, len(self._cells))
            self._now = f"cell {place} of {total} ({shorten(str(name))}): "
            self._now += str(event["status"])
        elif "text" in event:
            lines = shorten(str(event["text"])[-_LONGEST:])
            self._said = lines or self._said
        self._news.set()

    async def report(self) -> None:
        """Send notifications until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AT_LEAST_EVERY):
                    await self._news.wait()
            self._news.clear()
            await self._tell()
            await asyncio.sleep(_AT_MOST_EVERY)

    async def _tell(self) -> None:
        over = sum(status not in ("pending", "running") for status in self._cells.values())
        self._told = max(float(over), self._told + _SMALL)  # it must rise every time
        known = max(self._expected, len(self._cells))
        total = float(known) if known > over else None
        message = " · ".join(part for part in (self._now, self._said) if part)
        await self._session.report_progress(self._told, total, clean(message[: 2 * _LONGEST]))
