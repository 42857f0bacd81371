"""The floor for Jupyter kernels: jupyter_client, blocking, and nothing around it.

Its kernel is as jupyter_client starts it. Ours keeps IPython's history in memory, as nbclient's do,
and does not sleep at the end of a cell, which is why it can be faster.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jupyter_client.manager import start_new_kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class RawClient:
    """A kernel of this environment, run by hand."""

    def __init__(self, folder: str) -> None:
        # `python3` of the environment that this runs in.
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", cwd=folder, env=dict(os.environ)
        )

    def run(self, code: str, take: Callable[[Any], None] | None = None) -> None:
        """Run a cell until its reply has come and the kernel is idle."""
        sent = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg()
            if message["parent_header"].get("msg_id") != sent:
                continue
            if take is not None:
                take(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while self.client.get_shell_msg()["parent_header"].get("msg_id") != sent:
            pass

    def close(self) -> None:
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
