"""The composition root: engine or in process, tool bridge, actor, settings; every door starts here.

It puts the rooms below together and adds nothing of its own. Importing it lets the kernels of
this process call tools.
"""

from __future__ import annotations

from cellwright.workspace.caller import Caller
from cellwright.workspace.workspace import AsyncBook, AsyncWorkspace, Book, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.workspace.hub import Hub
    from cellwright.workspace.workspace import AsyncWorkspaceApi, WorkspaceApi

__all__ = ["AsyncBook", "AsyncWorkspace", "Book", "Workspace"]


async def _start_bridge(hub: Hub) -> None:
    from cellwright.tools.bridge import start_bridge

    await start_bridge(hub)


def _add_engine(api: WorkspaceApi, caller: Caller) -> WorkspaceApi:
    from cellwright.app.beside import BesideEngine

    return BesideEngine(api, caller)


def _add_engine_async(api: AsyncWorkspaceApi, caller: Caller) -> AsyncWorkspaceApi:
    from cellwright.app.beside import AsyncBesideEngine

    return AsyncBesideEngine(api, caller)


Caller.extend_hub = staticmethod(_start_bridge)
Workspace.add_engine = staticmethod(_add_engine)
AsyncWorkspace.add_engine = staticmethod(_add_engine_async)
