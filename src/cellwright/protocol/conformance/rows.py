"""Rows of a conformance table: a statement, the check behind it, and how it went."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from typing import Any, Literal

    Level = Literal["protocol", "ours"]
    Verdict = Literal["passed", "failed", "skipped"]

Peer = TypeVar("Peer")
ROW_WITHIN = 60.0


class Broken(Exception):
    """A statement that does not hold; the message says what was seen instead."""


class Skipped(Exception):
    """A statement that cannot be tried with this peer; the message says why."""


@dataclass(frozen=True, slots=True)
class ConformanceRow(Generic[Peer]):
    """One statement.

    `level` is `protocol` for what version 1 says itself, and `ours` for what it leaves open and
    we have settled.
    """

    id: str
    statement: str
    level: Level
    check: Callable[[Peer], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RowResult:
    """How a row went."""

    id: str
    statement: str
    level: Level
    verdict: Verdict
    detail: str = ""

    def to_json(self) -> dict[str, str]:
        """The row as data."""
        return asdict(self)


class ConformanceTable(Generic[Peer]):
    """Collects rows: `@table.row("F-01", "…")` above a function makes it one."""

    def __init__(self) -> None:
        self.rows: list[ConformanceRow[Peer]] = []

    def row(
        self, id_: str, statement: str, level: Level = "protocol"
    ) -> Callable[[Callable[[Peer], Awaitable[None]]], Callable[[Peer], Awaitable[None]]]:
        """Add a row."""

        def add(check: Callable[[Peer], Awaitable[None]]) -> Callable[[Peer], Awaitable[None]]:
            self.rows.append(ConformanceRow(id_, statement, level, check))
            return check

        return add

    async def run(
        self, peer: Peer, *, within: float = ROW_WITHIN, only: Iterable[str] = ()
    ) -> list[RowResult]:
        """Try every row, or only those named, one after the other."""
        wanted = set(only)
        return [
            await _try(row, peer, within) for row in self.rows if not wanted or row.id in wanted
        ]


async def _try(row: ConformanceRow[Any], peer: Any, within: float) -> RowResult:
    verdict: Verdict = "passed"
    detail = ""
    try:
        async with asyncio.timeout(within):
            await row.check(peer)
    except Skipped as reason:
        verdict, detail = "skipped", str(reason)
    except Broken as reason:
        verdict, detail = "failed", str(reason)
    except TimeoutError:
        verdict, detail = "failed", f"it did not end within {within:g} s"
    except Exception as error:  # noqa: BLE001  # a peer that crashes fails the row, not the table
        verdict, detail = "failed", f"{type(error).__name__}: {error}"
    return RowResult(row.id, row.statement, row.level, verdict, detail)


def require(condition: object, seen: str) -> None:
    """Fail the row unless the condition holds."""
    if not condition:
        raise Broken(seen)


def require_equal(seen: Any, expected: Any, what: str) -> None:
    """Fail the row unless both are the same."""
    require(seen == expected, f"{what} is {_short(seen)}, not {_short(expected)}")


def render(results: Sequence[RowResult]) -> str:
    """Render the table for people: one line for each row, details below failures, a total."""
    width = max((len(result.id) for result in results), default=0)
    words = {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}
    lines = []
    for result in results:
        level = "" if result.level == "protocol" else "  (ours)"
        lines.append(f"{result.id:{width}}  {words[result.verdict]:8} {result.statement}{level}")
        if result.detail:
            lines.append(f"{'':{width}}           {result.detail}")
    passed = sum(result.verdict == "passed" for result in results)
    skipped = sum(result.verdict == "skipped" for result in results)
    tail = f", {skipped} skipped" if skipped else ""
    lines.append(f"{passed} of {len(results) - skipped} statements hold{tail}")
    return "\n".join(lines) + "\n"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
