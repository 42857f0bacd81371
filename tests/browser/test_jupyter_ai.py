"""The assistant as a persona, in a real Jupyter AI; a page of its chat is played over its WebSocket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from tests.browser.conftest import Server, read_saved, start_server
from tests.browser.test_chat_route import connect
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.test_chat_route import Client

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]

PERSONA = "jupyter-ai-personas::cellwright::CellwrightPersona"


@pytest.fixture
def server(server_places: tuple[pytest.MonkeyPatch, Path]) -> Iterator[Server]:
    python = ROOT / ".dev" / "jupyter-ai" / "bin" / "python"
    assert python.exists(), "`./dev test --all` makes it"
    notebooks = server_places[1] / "jupyter-ai"
    notebooks.mkdir()
    # Its MCP server would want a port that another program may have.
    options = "--ServerApp.jpserver_extensions={'jupyter_server_mcp': False}"
    command = (str(python), "-P", "-m", "jupyterlab", "--no-browser", options)
    with start_server(notebooks, *command) as started:
        yield started


async def say(person: Client, body: str, *attached: str, mode: str | None = None) -> str:
    """Send a message to the persona, and wait for the end of its answer."""
    message = {
        "type": "client",
        "action": "send",
        "id": uuid4().hex,
        "body": body,
        "metadata": {"to_persona": PERSONA, "settings": {"mode": mode}},
        "attachments": [{"type": "notebook", "value": name} for name in attached],
    }
    await person.socket.write_message(json.dumps(message))
    said = ""
    while not ((heard := await person.read())["action"] == "writing" and not heard["state"]):
        found: dict[str, Any] = heard.get("message", {})
        said = found["body"] if found.get("sender") == PERSONA else said
    return said


async def test_the_persona_reads_and_runs_a_notebook_after_the_person_said_yes_in_the_chat(
    server: Server,
) -> None:
    path = server.write("nb.ipynb", "print(6 * 7)", "# @Someone do it\nx = 1")
    async with connect(server, f"api/chat/ws/talk.chat?token={server.token}") as person:
        while PERSONA not in (await person.read()).get("users", {}):
            pass
        cells = await say(person, "#getNotebookCells show all cells", "nb.ipynb")
        assert "print(6 * 7)" in cells
        assert "mode `agent`" in await say(person, "#runNotebookCells run cell 1")
        asked = await say(person, "#runNotebookCells run cell 1", mode="agent")
        assert "Run cell 1 of nb.ipynb?" in asked
        assert "Answer `yes`" in await say(person, "perhaps")
        assert "outputs" not in {key for cell in read_saved(path) for key in cell if cell.get(key)}
        assert "42" in await say(person, "Yes.")
        assert "".join(read_saved(path)[0]["outputs"][0]["text"]) == "42\n"
        assert "outside" in await say(person, "show all cells", "../nb.ipynb")
