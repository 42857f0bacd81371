from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import click.testing
import pytest

from cellwright.cli.commands import mcp
from cellwright.cli.main import main
from cellwright.mcp import clients
from cellwright.mcp.clients import NAMES, build_snippet


@pytest.mark.parametrize("client", NAMES)
def test_a_snippet_is_what_the_client_can_parse(client: str) -> None:
    found = build_snippet(client, None, [])
    parsed = tomllib.loads(found.text) if client == "codex" else json.loads(found.text)

    assert parsed == found.data
    server = _server(parsed)
    assert Path(server["command"]).is_absolute()
    assert os.access(server["command"], os.X_OK)
    assert "mcp" in server["args"]
    assert found.where


def test_claude_is_told_not_to_use_its_own_editor() -> None:
    assert build_snippet("claude", None, []).data["permissions"] == {"deny": ["NotebookEdit"]}


@pytest.mark.parametrize("client", ["cursor", "vscode"])
def test_editors_get_their_workspace_as_the_root(client: str) -> None:
    assert _server(build_snippet(client, None, []).data)["args"][-2:] == [
        "--root",
        "${workspaceFolder}",
    ]


def test_the_desktop_gets_a_folder_because_it_has_none_of_its_own(tmp_path: Path) -> None:
    words = _server(build_snippet("claude-desktop", str(tmp_path), []).data)["args"]

    assert words[-2:] == ["--root", str(tmp_path)]
    assert "--root" in _server(build_snippet("claude-desktop", None, []).data)["args"]


def test_a_path_with_quotes_survives_in_toml() -> None:
    words = ["--root", 'a "b" \\ é']

    assert _server(tomllib.loads(build_snippet("codex", None, words).text))["args"][-2:] == words


def test_the_command_lists_the_clients_without_importing_them() -> None:
    assert mcp.CLIENTS == clients.NAMES


def test_the_command_prints_a_snippet_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--print-config", "vscode", "--mode", "ask", "--profile", "text"]) == 0
    printed = capfd.readouterr()

    words = _server(json.loads(printed.out))["args"]
    assert words[-4:] == ["--profile", "text", "--mode", "ask"]
    assert ".vscode/mcp.json" in printed.err


def test_the_command_answers_in_json_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "mcp", "--print-config", "codex", "--root", "/srv"]) == 0

    data = json.loads(capfd.readouterr().out)["data"]
    assert data["config"]["mcp_servers"]["cellwright"]["args"][-2:] == ["--root", "/srv"]


@pytest.mark.parametrize("folder", ["/", "~"])
def test_everything_is_served_only_when_it_was_named(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(folder).expanduser())
    served: list[str] = []
    monkeypatch.setattr("cellwright.mcp.running.run_server", lambda root, **_: served.append(root))

    assert main(["mcp"]) == 2
    assert served == []
    assert main(["mcp", "--root", "."]) == 0
    assert served == [os.path.realpath(Path(folder).expanduser())]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--root", "nowhere"], 2),
        (["--profile", "none"], 2),
        (["--mode", "none"], 2),
        (["--http", "nonsense"], 2),
        (["--http", "0.0.0.0:0"], 2),
        (["--http", "127.0.0.1:0", "--tls-cert", "c.pem"], 2),
        (["--insecure"], 2),
        (["--tls-cert", "c", "--tls-key", "k"], 2),
        (["--print-config", "none"], 2),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_served(
    words: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["mcp", *words]) == code


def test_a_missing_library_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.chdir(tmp_path)
    runner = click.testing.CliRunner()

    result = runner.invoke(mcp.mcp_command, [])

    assert "cellwright[mcp]" in str(getattr(result.exception, "hint", ""))


def _server(parsed: dict[str, Any]) -> dict[str, Any]:
    (servers,) = (value for name, value in parsed.items() if "erver" in name)
    found: dict[str, Any] = servers["cellwright"]
    return found
