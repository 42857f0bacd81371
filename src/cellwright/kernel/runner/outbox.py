"""Requests on their way to a runner, which reads them when it has time."""

from __future__ import annotations

import asyncio
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Outbox:
    """Writes lines of JSON to a descriptor without ever holding the event loop up."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._rest = bytearray()
        self._is_open = True

    def send(self, request: dict[str, Any]) -> None:
        """Send a request, or line it up; nothing happens if nobody is there to read it."""
        if self._is_open:
            is_waiting = bool(self._rest)
            self._rest += json.dumps(request).encode() + b"\n"
            if not is_waiting:
                self._write()
                self._wait_for_room()

    def close(self) -> None:
        """Close the descriptor; what was not sent is lost."""
        if self._is_open:
            self._is_open = False
            if self._rest:
                self._loop.remove_writer(self._descriptor)
            os.close(self._descriptor)

    def _wait_for_room(self) -> None:
        if self._is_open and self._rest:
            self._loop.add_writer(self._descriptor, self._write)

    def _write(self) -> None:
        try:
            done = os.write(self._descriptor, self._rest)
        except BlockingIOError:
            return
        except OSError:  # the runner is gone, which is noticed elsewhere
            self.close()
            return
        del self._rest[:done]
        if not self._rest:
            self._loop.remove_writer(self._descriptor)
