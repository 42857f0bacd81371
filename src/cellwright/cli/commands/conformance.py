"""`cellwright conformance`: test one side of the Notebook Manipulator Protocol."""

from __future__ import annotations

import os
import sys

import click

from cellwright.cli.options import CommandCall, common

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cellwright.kernel.local import LocalKernel
    from cellwright.protocol.conformance.rows import RowResult
    from cellwright.protocol.messages import CommLike


@click.command()
@click.argument("side", type=click.Choice(["frontend", "kernel"]))
@click.option(
    "--kernel", metavar="NAME", help="The kernel whose client is tested; default python3."
)
@click.option("--python", metavar="PATH", help="An interpreter whose ipykernel is tested instead.")
@common
def conformance_command(
    call: CommandCall, side: str, kernel: str | None, python: str | None
) -> int:
    """Test one side of the Notebook Manipulator Protocol, statement by statement.

    `frontend` tests our frontend with a notebook in memory; `kernel` tests the client
    `cellwright_kernel` in a Python kernel. Exits 1 if a statement fails.

    \b
    cellwright conformance frontend
    cellwright conformance kernel --python .venv/bin/python --json
    """
    import asyncio
    import logging

    from cellwright.protocol.conformance.rows import render

    if side == "frontend" and (kernel or python):
        raise click.UsageError("--kernel and --python are for `conformance kernel`")
    # The table provokes failures of the frontend on purpose.
    logging.getLogger("cellwright.protocol").setLevel(logging.CRITICAL)
    results = asyncio.run(_try_frontend() if side == "frontend" else _try_kernel(kernel, python))
    rows = [result.to_json() for result in results]
    failed = [result.id for result in results if result.verdict == "failed"]
    call.output.data({"side": side, "rows": rows, "failed": failed}, render(results))
    return 1 if failed else 0


async def _try_frontend() -> Sequence[RowResult]:
    from cellwright.protocol.conformance.frontend import FRONTEND
    from cellwright.protocol.conformance.reference import ReferenceFrontend

    peer = ReferenceFrontend()
    try:
        return await FRONTEND.run(peer)
    finally:
        await peer.close()


async def _try_kernel(name: str | None, python: str | None) -> Sequence[RowResult]:
    from cellwright.kernel.local import LocalKernel
    from cellwright.kernel.transport import Launch
    from cellwright.protocol.bridge import add_kernel_path
    from cellwright.protocol.conformance.kernel import KERNEL, PythonClient

    env = add_kernel_path(os.environ)
    python = python or (None if name else sys.executable)
    launch = Launch(os.getcwd(), env, python=python, kernel_name=name)  # noqa: PTH109
    kernel = LocalKernel(launch)
    await kernel.start()
    try:
        return await KERNEL.run(PythonClient(KernelRunner(kernel)))
    finally:
        await kernel.shutdown()


class KernelRunner:
    """Runs cells in a local kernel, for the conformance kit."""

    def __init__(self, kernel: LocalKernel) -> None:
        self._kernel = kernel
        self._sending: set[asyncio.Future[None]] = set()

    async def run(
        self,
        source: str,
        hear: Callable[[CommLike], None],
        metadata: Mapping[str, Any] | None = None,
    ) -> tuple[str, str]:
        """Run a cell; returns its text, and the name of its error or an empty string."""
        from cellwright.kernel.events import CommMessage
        from cellwright.kernel.transport import Code
        from cellwright.outputs.events import ErrorEvent, StreamEvent

        text, error = "", ""
        async for event in self._kernel.execute(Code(source, metadata=metadata or {})):
            if isinstance(event, CommMessage):
                hear(event)
            elif isinstance(event, StreamEvent):
                text += event.text
            elif isinstance(event, ErrorEvent):
                error = event.ename
        return text, error

    def send(self, comm_id: str, data: Mapping[str, Any], channel: str) -> None:
        """Send a message on a comm to the kernel, over `shell` or `control`."""
        import asyncio

        from cellwright.kernel.events import CommMessage

        message = CommMessage(
            "msg", comm_id, data=data, channel="control" if channel == "control" else "shell"
        )
        task = asyncio.ensure_future(self._kernel.send_comm(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def interrupt(self) -> None:
        """Interrupt the running cell."""
        await self._kernel.interrupt()
