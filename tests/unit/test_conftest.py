"""What every test is given: places of its own, and a plain word about what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import PLACES, require_root, require_tool

TOUCHED: set[Path] = set()


@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.parametrize("left", ["file", "mode", "nothing"])
def test_places_are_private_short_and_as_new_for_every_test(
    turn: int,  # noqa: ARG001
    left: str,
    tmp_path: Path,
) -> None:
    for variable in PLACES:
        place = Path(os.environ[variable])
        assert place.stat().st_mode & 0o777 == 0o700
        assert list(place.iterdir()) == []
        assert len(str(place)) < 60
        assert place not in TOUCHED
        if left == "file":
            (place / "left behind").touch()
            TOUCHED.add(place)
        elif left == "mode":
            place.chmod(0o755)
            TOUCHED.add(place)
    assert list(tmp_path.iterdir()) == []


def test_callers_settings_do_not_reach_a_test() -> None:
    ours = {name: value for name, value in os.environ.items() if name.startswith("CELLWRIGHT_")}
    # By the conftest itself.
    assert ours == {"CELLWRIGHT_ENGINE": "never", "CELLWRIGHT_SPARE_KERNEL": "false"}


@given(st.integers())
def test_places_and_hypothesis_go_together(number: int) -> None:
    assert isinstance(number, int)
    assert Path.home().parent == Path(os.environ["XDG_STATE_HOME"]).parent


def test_a_tool_that_is_there_is_found() -> None:
    assert Path(require_tool("sh")).name == "sh"


@pytest.mark.parametrize("value", [None, "", "0", "false"])
def test_a_missing_tool_is_a_named_skip(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match="no-such-tool"):
        require_tool("no-such-tool")


def test_a_missing_tool_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-tool"):
        require_tool("no-such-tool")


def test_root_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    require_root()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="needs root"):
        require_root()


@pytest.mark.root
def test_marker_root_means_root() -> None:
    assert os.geteuid() == 0


@pytest.mark.strace
def test_marker_strace_means_strace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    require_tool("strace")
