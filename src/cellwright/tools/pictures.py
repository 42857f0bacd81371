"""Pictures that were kept as artifacts, as a model gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cellwright.errors import OutputError
from cellwright.outputs.describe import describe

if TYPE_CHECKING:
    from cellwright.outputs.images import ModelImage
    from cellwright.tools.tool import Caller

_LARGEST = 20_000_000


async def picture_of(
    caller: Caller, artifact: str, mime: str, total: int
) -> tuple[ModelImage, ...]:
    """The picture that an artifact holds, scaled; nothing if there is none to show."""
    if not mime.startswith("image/") or total > _LARGEST:
        return ()
    try:
        whole = await caller.workspace.artifact(artifact, 0, total)
    except OutputError:
        return ()  # it made room for others meanwhile
    data = whole.get("base64") or whole.get("text")
    shown = {"output_type": "display_data", "metadata": {}, "data": {mime: data}}
    return describe([shown], 100, images=1).images
