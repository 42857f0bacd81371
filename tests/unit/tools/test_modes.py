"""What a mode allows: of every tool and of every action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import allowed_effects
from cellwright.tools.toolbox import Toolbox
from tests.unit.tools.conftest import Call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.tools.tool import ToolCaller
    from cellwright.workspace.api.requests import Mode

    InMode = Callable[[Mode], ToolCaller]

MODES: tuple[Mode, ...] = ("ask", "edit", "agent")

# The table of the design: every tool, every action, its effect.
READ = [
    ("notebook_list", {}),
    ("notebook_read", {"path": "nb.ipynb"}),
    ("notebook_outputs", {"path": "nb.ipynb"}),
    ("notebook_history", {"path": "nb.ipynb", "action": "log"}),
    ("notebook_history", {"path": "nb.ipynb", "action": "diff"}),
    ("kernel", {"action": "status"}),
    ("kernel", {"action": "specs"}),
    ("GetNotebookCells", {"path": "nb.ipynb"}),
    ("GetCellOutputs", {"path": "nb.ipynb", "cellId": "load"}),
    ("read", {"path": "nb.ipynb"}),
    ("get_cell_count", {"path": "nb.ipynb"}),
    ("get_notebook_metadata", {"path": "nb.ipynb"}),
    ("get_cell_range", {"path": "nb.ipynb", "start": 0, "end": 1}),
]
EDIT = [
    ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": 0}]}),
    ("notebook_history", {"path": "nb.ipynb", "action": "undo"}),
    ("notebook_history", {"path": "nb.ipynb", "action": "redo"}),
    ("notebook_history", {"path": "nb.ipynb", "action": "restore", "change": "first"}),
    ("AddNotebookCell", {"path": "nb.ipynb", "type": "code", "index": -1, "content": ""}),
    ("UpdateNotebookCell", {"path": "nb.ipynb", "cellId": "load", "content": ""}),
    ("NotebookEdit", {"notebook_path": "nb.ipynb", "cell_id": "load", "new_source": ""}),
    ("notebook", {"notebook_path": "nb.ipynb", "action": "edit", "cell_index": 0, "content": ""}),
    ("notebook", {"notebook_path": "nb.ipynb", "action": "insert", "cell_index": 0, "content": ""}),
    ("notebook", {"notebook_path": "nb.ipynb", "action": "delete", "cell_index": 0}),
    ("edit", {"path": "a.txt", "edits": [{"old_text": "", "new_text": "x"}]}),
    ("write", {"path": "a.txt", "content": "x"}),
    ("write", {"path": "nb.ipynb", "content": ""}),
    ("splice_cell_range", {"path": "nb.ipynb", "start": 0, "delete_count": 1}),
    ("set_notebook_metadata", {"path": "nb.ipynb", "metadata": {}}),
]
RUN = [
    ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": 0}], "run": "changed"}),
    ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": 0}], "run": "stale"}),
    ("notebook_run", {"path": "nb.ipynb"}),
    ("kernel", {"action": "variables", "path": "nb.ipynb"}),
    ("kernel", {"action": "interrupt", "path": "nb.ipynb"}),
    ("kernel", {"action": "restart", "path": "nb.ipynb"}),
    ("kernel", {"action": "shutdown", "path": "nb.ipynb"}),
    ("kernel", {"action": "connect", "server": "http://127.0.0.1:1", "session": "s"}),
    ("eval", {"cells": [{"code": "print 1"}]}),
    ("python", {"cells": [{"code": "print 1"}]}),
    ("RunNotebookCells", {"path": "nb.ipynb", "cellIds": ["load"]}),
    ("execute_cell_range", {"path": "nb.ipynb", "start": 0, "end": 1}),
]  # fmt: skip
CALLS = [*((c, "read") for c in READ), *((c, "edit") for c in EDIT), *((c, "run") for c in RUN)]


def test_the_table_speaks_of_every_tool_and_every_action() -> None:
    told = {(name, str(arguments.get("action"))) for (name, arguments), _ in CALLS}
    for tool in PROFILES["all"]:
        for action in tool.effects if not isinstance(tool.effects, str) else ["None"]:
            assert (tool.name, action) in told


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("asked", "effect"), CALLS, ids=[f"{c[0]}-{c[1].get('action', i)}" for i, (c, _) in enumerate(CALLS)]
)  # fmt: skip
async def test_a_call_is_allowed_or_answered_with_the_mode_that_allows_it(
    asked: tuple[str, dict[str, Any]], effect: str, mode: Mode, in_mode: InMode, folder: Path
) -> None:
    if asked[1].get("action") == "restore":  # there must be a history
        edits = [{"op": "replace", "cell": "load", "source": "x"}]
        await Call(in_mode("agent"))("notebook_edit", path="nb.ipynb", edits=edits)
    before = (folder / "nb.ipynb").read_bytes()
    answer = await Call(in_mode(mode))(asked[0], "all", **asked[1])
    is_allowed = effect in allowed_effects(mode)
    assert (answer.data.get("code") == "MODE_FORBIDS") == (not is_allowed)
    if not is_allowed:
        assert answer.is_error
        assert f"Mode `{mode}` does not allow" in answer.text
        assert "Switch to mode `agent`" in answer.text
        assert (folder / "nb.ipynb").read_bytes() == before
        assert not (folder / "a.txt").exists()


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_of_which_nothing_is_allowed_is_not_listed(mode: Mode) -> None:
    listed = {tool.name for tool in Toolbox(PROFILES["all"], mode).list_tools()}
    allowed = {name for (name, _), effect in CALLS if effect in allowed_effects(mode)}
    assert listed == allowed


@pytest.mark.parametrize("arguments", [{}, {"path": 5}, {"nothing": True}])
async def test_a_forbidden_tool_is_forbidden_whatever_its_arguments(
    arguments: dict[str, Any], in_mode: InMode
) -> None:
    for name in ("notebook_run", "notebook_edit", "RunNotebookCells", "NotebookEdit", "write"):
        answer = await Call(in_mode("ask"))(name, "all", **arguments)
        assert answer.data["code"] == "MODE_FORBIDS"


def actions(box: Toolbox, name: str, parameter: str = "action") -> list[str]:
    (row,) = [row for row in box.table() if row["name"] == name]
    values: list[str] = row["inputSchema"]["properties"][parameter]["enum"]
    return values


def test_a_tool_of_mixed_effects_lists_only_the_allowed_actions() -> None:
    ask, agent = Toolbox(PROFILES["native"], "ask"), Toolbox(PROFILES["native"], "agent")
    assert actions(ask, "notebook_history") == ["log", "diff"]
    assert actions(ask, "kernel") == ["status", "specs"]
    assert actions(agent, "notebook_history") == ["log", "diff", "undo", "redo", "restore"]
    assert len(actions(agent, "kernel")) == 7
    (row,) = [row for row in ask.table() if row["name"] == "kernel"]
    assert "restart" not in row["description"]


async def test_a_setting_lets_mode_edit_edit_but_not_run(
    in_mode: InMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_EDIT_MODE_EDITS", "true")
    caller = in_mode("edit")
    box = Toolbox(PROFILES["native"], "edit", edit_mode_edits=True)
    assert actions(box, "notebook_edit", "run") == ["none"]
    assert actions(box, "notebook_history") == ["log", "diff", "undo", "redo", "restore"]
    edits = [{"op": "replace", "cell": "load", "source": "x"}]
    done = await box.call("notebook_edit", {"path": "nb.ipynb", "edits": edits}, caller)
    assert not done.is_error
    words = {"path": "nb.ipynb", "edits": edits, "run": "changed"}
    assert (await box.call("notebook_edit", words, caller)).data["code"] == "MODE_FORBIDS"


async def test_in_ask_the_mode_to_switch_to_is_the_nearest_that_allows_it(
    caller: ToolCaller,
) -> None:
    box = Toolbox(PROFILES["native"], "ask", edit_mode_edits=True)
    words = {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": 0}]}
    assert "Switch to mode `edit`" in (await box.call("notebook_edit", words, caller)).text
    run = await box.call("notebook_run", {"path": "nb.ipynb"}, caller)
    assert "Switch to mode `agent`" in run.text
