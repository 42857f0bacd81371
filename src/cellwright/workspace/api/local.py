"""Requests carried out in this process: for callers that block, and for callers that await."""

from __future__ import annotations

from cellwright.workspace.verbs import perform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from cellwright.kernel.events import InputRequested
    from cellwright.workspace.api.requests import Ask, Progress, Request
    from cellwright.workspace.caller import Caller

    A = TypeVar("A")

_THREADS = 256


class LocalApi:
    """Carries requests out in this process, and blocks until they are answered."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        return perform(self.caller, request)

    def close(self) -> None:
        """End the kernels that were started here."""
        self.caller.close()


class AsyncLocalApi:
    """Carries requests out in this process: files in threads, kernels on a loop of their own.

    A call that is cancelled stops the run it has started, and ends when that has.
    """

    def __init__(self, caller: Caller) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.caller = caller
        # Not asyncio's few: a call that waits for a lock must not keep others from their files.
        self._threads = ThreadPoolExecutor(_THREADS, "verb")

    async def call(self, request: Request[A]) -> A:
        """Carry a request out."""
        import asyncio

        loop = asyncio.get_running_loop()
        if not request.waits:
            return await loop.run_in_executor(self._threads, perform, self.caller, request)
        from cellwright.workspace.verbs import perform_on_loop

        fields: dict[str, Any] = {}
        if getattr(request, "progress", None) is not None:
            fields["progress"] = _report_on(loop, request.progress)  # type: ignore[attr-defined]
        if getattr(request, "ask", None) is not None:
            fields["ask"] = _ask_on(loop, request.ask)  # type: ignore[attr-defined]
        portal = await loop.run_in_executor(self._threads, lambda: self.caller.hub.portal)
        return await portal.wait_for(
            perform_on_loop(self.caller, request.replace(**fields) if fields else request)
        )

    async def close(self) -> None:
        """End the kernels that were started here."""
        import asyncio

        await asyncio.to_thread(self.caller.close)
        self._threads.shutdown(wait=False)


def _report_on(loop: Any, progress: Progress) -> Progress:
    """Return a function that calls `progress` on its own loop, from any thread."""

    def report(event: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(progress, event)

    return report


def _ask_on(loop: Any, ask: Ask) -> Ask:
    """Return a coroutine function that awaits `ask` on its own loop, from another loop."""
    import asyncio

    async def ask_here(request: InputRequested) -> str | None:
        return await ask(request)

    async def ask_there(request: InputRequested) -> str | None:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask_here(request), loop))

    return ask_there
