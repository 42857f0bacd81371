from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from cellwright.app.workspaces import wants_engine
from cellwright.mcp.server import ClientWorkspaces, actor_name
from cellwright.tools.profiles import PROFILES
from tests.unit.mcp.serving import ERAS, door, serving

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_has_one_workspace_and_too_many_share_one(tmp_path: Path) -> None:
    workspaces = ClientWorkspaces(str(tmp_path), "agent", engine=False, say=lambda _: None)

    assert await workspaces.get("mcp:a") is await workspaces.get("mcp:a")
    found = [await workspaces.get(f"mcp:{number}") for number in range(80)]
    await workspaces.close()

    assert len({id(workspace) for workspace in found}) <= 65
    assert found[-1].actor == "mcp:others"


@pytest.mark.parametrize(
    ("client", "place", "actor"),
    [
        ("claude-code", "12", "mcp:claude-code-12"),
        ("Visual Studio Code", "", "mcp:Visual-Studio-Code"),
        ("../../etc", "1", "mcp:..-..-etc-1"),
        ("", "", "mcp:client"),
        ("\n\x1b[31m", "7", "mcp:31m-7"),
        ("x" * 500, "", "mcp:" + "x" * 40),
    ],
)
def test_clients_have_names_that_fit_into_a_line(client: str, place: str, actor: str) -> None:
    assert actor_name(client, place) == actor


@pytest.mark.parametrize(
    ("setting", "ci", "wanted"),
    [("auto", "", True), ("auto", "true", False), ("always", "true", True), ("never", "", False)],
)
def test_the_engine_is_used_where_the_settings_say_so(
    setting: str, ci: str, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_ENGINE", setting)
    monkeypatch.setenv("CI", ci)

    assert wants_engine() is wanted


@pytest.mark.parametrize("profile", sorted(PROFILES))
async def test_every_profile_is_served_to_clients_of_both_kinds(
    profile: str, tmp_path: Path
) -> None:
    tools = PROFILES[profile]
    for era in ERAS:
        async with serving(door(tmp_path, tools=tools), era) as client:
            listed = (await client.list_tools()).tools
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("no_such_tool", {})
        assert [one.name for one in listed] == [one.name for one in tools]
        assert listed[0].name in unknown.value.message
