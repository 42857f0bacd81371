"""Which notebook a request is about: the eight scenarios, and every odd way to name a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from cellwright.assistant.availability import offer_tools
from cellwright.assistant.requests import (
    ChatRequest,
    FileReference,
    NotebookEditor,
    SessionReference,
    ToolAttachment,
    attached_notebooks,
    detect,
    mentioned_files,
)
from cellwright.journal.executions import ExecutionRecord
from cellwright.tools.profiles.positron import POSITRON

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import AsyncWorkspace
    from cellwright.workspace.api.requests import Mode

MODES: tuple[Mode, ...] = ("ask", "edit", "agent")
READING = ["GetNotebookCells", "GetCellOutputs"]
ALL = [*READING, "RunNotebookCells", "AddNotebookCell", "UpdateNotebookCell"]
NONE: list[str] = []
A, B, C = "sales.ipynb", "other.ipynb", "third.ipynb"

# Number, notebooks attached, the one in the active editor, the notebook it is about, and the
# tools in modes ask, edit and agent.
SCENARIOS = [
    (1, [A], A, A, (READING, READING, ALL)),
    (2, [A], A, A, (READING, READING, ALL)),
    (3, [A], A, A, (READING, READING, ALL)),
    (4, [A], B, None, (NONE, NONE, NONE)),
    (5, [], A, None, (NONE, NONE, NONE)),
    (6, [A, B], B, B, (READING, READING, ALL)),
    (7, [A, B], A, A, (READING, READING, ALL)),
    (8, [A, B], None, None, (NONE, NONE, NONE)),
]


def asked(
    *attached: object, editor: str | None = None, mode: Mode = "ask", prompt: str = ""
) -> ChatRequest:
    references = [FileReference(each) if isinstance(each, str) else each for each in attached]
    return ChatRequest(
        prompt=prompt,
        mode=mode,
        references=references,
        editor=NotebookEditor(path=editor) if editor is not None else None,
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario[0]))
async def test_the_scenarios_in_every_mode(
    scenario: tuple[int, list[str], str | None, str | None, tuple[list[str], ...]],
    mode: Mode,
    workspace: AsyncWorkspace,
) -> None:
    _, attached, active, about, tools = scenario
    found = await detect(asked(*attached, editor=active, mode=mode), workspace)

    assert (found.context.path if found.context else None) == about
    assert bool(found.reason) == (about is None)
    request = ChatRequest(prompt="", mode=mode)
    offer = offer_tools(request, POSITRON, has_notebook=found.context is not None)
    assert offer.names == tools[MODES.index(mode)]


async def test_with_none_active_and_another_active_it_is_off(workspace: AsyncWorkspace) -> None:
    assert (await detect(asked(A, B, editor=C), workspace)).context is None
    assert (await detect(asked(), workspace)).context is None


async def test_inline_in_a_cell_it_is_on_without_an_attachment(workspace: AsyncWorkspace) -> None:
    editor = NotebookEditor(path=A, editing="sum")
    found = await detect(ChatRequest(prompt="", location="cell", editor=editor), workspace)
    assert found.context is not None
    assert [(cell.id, cell.selection) for cell in found.context.selected_cells] == [
        ("sum", "active")
    ]
    assert (await detect(ChatRequest(prompt="", location="cell"), workspace)).context is None


@pytest.mark.parametrize(
    "spelling",
    [
        "./sales.ipynb",
        "sub/../sales.ipynb",
        "{folder}/sales.ipynb",
        "file://{folder}/sales.ipynb",
        "file://localhost{folder}/sales.ipynb",
        "FILE://{folder}/s%61les.ipynb#cell",
        "link.ipynb",
        "hard.ipynb",
        "linked/sales.ipynb",
        "bare-link",
    ],
)
async def test_the_same_file_by_another_name_matches(
    spelling: str, folder: Path, workspace: AsyncWorkspace
) -> None:
    (folder / "sub").mkdir()
    (folder / "link.ipynb").symlink_to("sales.ipynb")
    (folder / "bare-link").symlink_to("sales.ipynb")
    (folder / "linked").symlink_to(".")
    os.link(folder / "sales.ipynb", folder / "hard.ipynb")
    name = spelling.format(folder=folder)

    assert (await detect(asked(name, editor=A), workspace)).context is not None
    opened = await detect(asked(A, editor=name), workspace)
    assert opened.context is not None
    assert opened.context.cell_count == 7


@pytest.mark.parametrize(
    "odd",
    [
        "",
        "nul\0.ipynb",
        "file://elsewhere/sales.ipynb",
        "https://example.org/sales.ipynb",
        "file:",
        "x" * 5000 + ".ipynb",
        "\ud800.ipynb",
        "loop.ipynb",
        "missing.ipynb",
        "broken.ipynb",
        "folder.ipynb",
        "../outside.ipynb",
    ],
)
async def test_no_name_of_a_file_is_an_exception(
    odd: str, folder: Path, workspace: AsyncWorkspace
) -> None:
    (folder / "loop.ipynb").symlink_to("loop.ipynb")
    (folder / "broken.ipynb").write_bytes(b"{")
    (folder / "folder.ipynb").mkdir()
    for request in (asked(odd, editor=A), asked(A, editor=odd), asked(odd, editor=odd)):
        found = await detect(request, workspace)
        assert found.context is None
        assert found.reason
        assert "\n" not in found.reason


async def test_nothing_that_is_attached_is_an_exception(workspace: AsyncWorkspace) -> None:
    odd = [
        None,
        7,
        object(),
        {"uri": A},
        ToolAttachment("getNotebookCells"),
        SessionReference(None),
    ]
    assert (await detect(asked(*odd, editor=A), workspace)).context is None
    assert (await detect(asked(*odd, A, editor=A), workspace)).context is not None
    assert (await detect(asked(FileReference(None), editor=A), workspace)).context is None  # type: ignore[arg-type]


async def test_a_session_of_the_notebook_counts_as_attached(workspace: AsyncWorkspace) -> None:
    assert (await detect(asked(SessionReference(A), editor=A), workspace)).context is not None
    assert (await detect(asked(SessionReference(B), editor=A), workspace)).context is None


async def test_a_file_that_is_mentioned_is_attached(workspace: AsyncWorkspace) -> None:
    found = await detect(asked(editor=A, prompt="What is in @sales.ipynb?"), workspace)
    assert found.context is not None


def test_mentions_are_names_behind_an_at_sign() -> None:
    prompt = 'see @a.ipynb, @"b c.ipynb" and (@d/e.ipynb), not me@f.ipynb nor @@g.ipynb @'
    assert mentioned_files(prompt) == ["a.ipynb", "b c.ipynb", "d/e.ipynb"]


def test_only_notebooks_are_attached_notebooks(folder: Path) -> None:
    request = asked("data.csv", A, "report.IPYNB", A)
    names = [path.rpartition("/")[2] for path in attached_notebooks(request, str(folder))]
    assert names == ["sales.ipynb", "report.IPYNB"]


@pytest.mark.parametrize("name", ["./sales.ipynb", "x/../sales.ipynb", "file://{}/sales.ipynb"])
async def test_tools_get_the_plain_name(name: str, folder: Path, workspace: AsyncWorkspace) -> None:
    (folder / "x").mkdir()
    found = await detect(asked(A, editor=name.format(folder)), workspace)
    assert found.context is not None
    assert found.context.path == "sales.ipynb"


async def test_the_reason_says_what_to_do(workspace: AsyncWorkspace) -> None:
    assert "Attach it with @sales.ipynb" in (await detect(asked(editor=A), workspace)).reason
    other = await detect(asked(A, editor=B), workspace)
    assert "other.ipynb is open in the active editor" in other.reason
    gone = await detect(asked("gone.ipynb", editor="gone.ipynb"), workspace)
    assert "gone.ipynb" in gone.reason


async def test_a_cell_that_died_with_its_engine_is_not_called_running(
    folder: Path, workspace: AsyncWorkspace
) -> None:
    book = workspace.open(A)
    ran = ExecutionRecord(
        cell="load", index=1, hash="", source="", kernel="k", status="running", count=None,
        began=1.0, seconds=0.0, actor="test:ada",
    )  # fmt: skip
    workspace.caller.journal.record_execution(book.real, ran)

    async def find_state() -> str | None:
        editor = NotebookEditor(path=A, editing="load")
        found = await detect(ChatRequest(prompt="", location="cell", editor=editor), workspace)
        assert found.context is not None
        (cell,) = found.context.selected_cells
        return cell.run and cell.run.execution

    with Workspace(folder) as other:
        other.caller.hub.leases.own(book.real)
        assert await find_state() == "running"  # by another process
        other.caller.hub.leases.release(book.real)
    assert await find_state() == "idle"
