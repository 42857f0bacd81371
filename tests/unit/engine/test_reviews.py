"""What a person has not accepted yet is known to the engine, whatever becomes of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.engine.editors import OpenReviews
from cellwright.errors import CellwrightError
from tests.kernels.dialects import SCRIPT
from tests.unit.workspace.memory import MemoryKernels, make_hub
from tests.unit.workspace.stages import make_content

if TYPE_CHECKING:
    from pathlib import Path


def test_changes_are_kept_until_they_are_accepted_or_undone(tmp_path: Path) -> None:
    hub, path = make_hub(MemoryKernels()), tmp_path / "nb.ipynb"
    path.write_bytes(make_content("script", SCRIPT))
    reviews, real = OpenReviews(hub), str(path)
    with Workspace(tmp_path, cwd=str(tmp_path), hub=hub, actor="mcp:agent") as workspace:
        book = workspace.open("nb.ipynb")
        book.edit([{"op": "replace", "cell": "a", "source": "before it was open"}])
        reviews.begin(real)
        edits = [{"op": "replace", "cell": name, "source": "new"} for name in ("b", "c")]
        both = book.edit([*edits, {"op": "insert", "source": "more", "id": "more", "at": 0}]).change
        gone = book.edit([{"op": "delete", "cell": "a"}]).change
        found = reviews.list(real)
        assert [each["change"] for each in found] == [both, gone]
        assert (found[0]["actor"], found[0]["inserted"]) == ("mcp:agent", ["more"])
        assert reviews.find_before(real, gone, "a") == "before it was open"
        assert reviews.find_before(real, both, "more") is None

        reviews.accept(real, [both], ["b", "more"])
        assert reviews.list(real)[0]["cells"] == ["c"]
        reviews.accept(real, [both], ["c"])
        assert [each["change"] for each in reviews.list(real)] == [gone]
        book.undo(gone)
        assert gone not in [each["change"] for each in reviews.list(real)]
        with pytest.raises(CellwrightError):
            reviews.find_before(real, "no-such-change", "a")
        left = [each["change"] for each in reviews.list(real)]
        reviews.move(real, str(tmp_path / "moved.ipynb"))
        assert reviews.list(real) == []
        assert left, "the undo itself is a change of the agent"
    hub.close()
