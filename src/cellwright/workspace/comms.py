"""Kernels that ask about their notebook, and who answers them."""

from __future__ import annotations

import asyncio

from cellwright.errors import KernelCannot
from cellwright.kernel.events import CommMessage
from cellwright.protocol.bridge import CommBridge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.kernel.session import Session
    from cellwright.protocol.host import NotebookHost
    from cellwright.protocol.wire import Answer


class Comms:
    """One bridge for each session, and the notebook behind those that have one.

    A notebook is answered for by whoever ran a cell of it last. A session of `eval` has none:
    its kernel is told so.
    """

    def __init__(self) -> None:
        self._bridges: dict[Session, CommBridge] = {}
        self._hosts: dict[str, NotebookHost] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def serve(self, name: str, host: NotebookHost) -> None:
        """The session of that name is a notebook's, which is behind that host now."""
        self._hosts[name] = host

    def attach(self, session: Session) -> None:
        """Answer what the kernels of a new session ask."""

        async def send(answer: Answer) -> None:
            if session.transport is None:
                raise KernelCannot(session.key.session, "be answered: it is gone")
            message = CommMessage(
                "msg", answer.comm_id, data=dict(answer.data), channel=answer.channel
            )
            await session.transport.send_comm(message)

        bridge = CommBridge(lambda: self._hosts.get(session.key.session), send)
        self._bridges[session] = bridge
        session.on_comm = lambda message, caller: bridge.feed(message, caller=caller)
        session.on_fresh = bridge.forget

    def detach(self, session: Session) -> None:
        """A session is over."""
        bridge = self._bridges.pop(session, None)
        if bridge is not None:
            self._hosts.pop(session.key.session, None)
            closing = asyncio.ensure_future(bridge.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
