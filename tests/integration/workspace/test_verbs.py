"""The suite of verbs through an engine, with real kernels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import aio
from cellwright.engine.client import connect
from tests.kernels.dialects import PYTHON
from tests.unit.workspace.stages import Stage, make_content
from tests.unit.workspace.test_verbs import *  # noqa: F403  # the suite; the stage is our own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.engines import Engine

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(params=["engine", "engine, awaited"])
def stage(
    request: pytest.FixtureRequest,
    shared_engine: Engine,  # noqa: ARG001  # each test has notebooks of its own
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stage]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(make_content("python", PYTHON))
    (tmp_path / "old.ipynb").write_bytes(make_content("python", PYTHON, minor=4))
    is_async = request.param.endswith("awaited")
    make = aio.connect if is_async else connect
    stage = Stage(make, language="python", dialect=PYTHON, is_async=is_async)
    yield stage
    stage.close()


def test_variables_of_a_session_are_listed(stage: Stage) -> None:
    workspace = stage.workspace()
    workspace.eval(["n = 6"], session="one")
    (row,) = workspace.kernel("variables", "one").variables
    assert (row.name, row.type, row.size, row.value) == ("n", "int", None, "6")


def test_kernel_specs_name_the_default(stage: Stage) -> None:
    (default,) = [spec for spec in stage.workspace().kernel_specs() if spec.default]
    assert (default.name, default.language, default.problem) == ("python3", "python", None)
    assert default.why


def test_the_callers_variables_and_folder_rule(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    environ = {**os.environ, "COLOUR": "red"}
    workspace = stage.workspace(cwd=str(tmp_path / "sub"), environ=environ)
    code = ["import os; print(os.environ['COLOUR'], os.getcwd())"]
    text = workspace.eval(code, session="env").cells[0].text
    assert text == f"red {tmp_path / 'sub'}\n"


def test_nobody_to_ask_is_an_error_of_the_cell(stage: Stage) -> None:
    answer: Any = stage.workspace().eval(["input('who?')"], session="ask")
    assert answer.cells[0].status == "error"
