"""The chat of a pane: about a notebook it has the notebook's tools, otherwise those for files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.assistant.availability import FILE_TOOLS, offer_tools
from cellwright.assistant.chat import Chat
from cellwright.tools.profiles.positron import POSITRON

if TYPE_CHECKING:
    from typing import Any

    from cellwright.assistant.availability import ToolOffer
    from cellwright.assistant.models.model.model import Model
    from cellwright.assistant.requests import ChatRequest, Detection
    from cellwright.assistant.workspaces import ChatWorkspaces


class PaneChat(Chat):
    """A chat that is a general assistant while notebook mode is off.

    While it is on, the tools for files are away: a notebook is not to be changed as a file.
    """

    def __init__(self, workspaces: ChatWorkspaces, model: Model, **options: Any) -> None:
        super().__init__(workspaces, model, tools=(*POSITRON, *FILE_TOOLS), **options)

    async def look(self, request: ChatRequest) -> tuple[Detection, ToolOffer]:
        """What a request is about and which tools it has, before anything is sent."""
        detection, offer = await super().look(request)
        if detection.context is not None:
            offer = offer_tools(
                request, POSITRON, has_notebook=True, edit_mode_edits=self.edit_mode_edits
            )
        return detection, offer
