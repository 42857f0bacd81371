from __future__ import annotations

import pytest

from cellwright.errors import ConfigError
from cellwright.mcp import clients


def test_a_server_that_does_not_start_is_a_problem_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(clients, "command_line", lambda: ["false"])

    with pytest.raises(ConfigError) as found:
        clients.check_server(str(tmp_path))

    assert "\n" not in found.value.message
