"""Calls made up from the schemas: whatever a model sends, there is an answer and a valid notebook."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.utils import many
from hypothesis_jsonschema import from_schema

from cellwright import AsyncWorkspace
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller, allowed_effects
from cellwright.tools.toolbox import Toolbox
from tests.conftest import RUN_ALL
from tests.unit.cli import samples
from tests.unit.tools.support import outside

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import Tool, ToolResult
    from tests.memory_kernel import MemoryKernel

EXAMPLES = 5000 if RUN_ALL else 100
HANG = 30.0

TOOLS = [
    (profile, tool) for profile, tools in PROFILES.items() if profile != "all" for tool in tools
]
PATHS = ["nb.ipynb"] * 6 + ["other.ipynb", "a.txt", "nb.ipynb:2-3", "../nb.ipynb", "", "\0", "sub/"]
CELLS: list[Any] = ["load", "sum", 0, 3, -1, 99, "cell-2", "1-3", "nothing", ""]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, dict[str, Any]]:
    """A profile, a tool, and arguments: as the schema has them, or with names that mean something."""
    profile, tool = draw(st.sampled_from(TOOLS))
    arguments = draw(_arguments(tool))
    if draw(st.integers(0, 9)):
        for name in ("path", "notebook_path"):
            if name in tool.model.model_fields:
                arguments[name] = draw(st.sampled_from(PATHS))
        for name in ("cell", "cell_id", "cellId"):
            if name in arguments:
                arguments[name] = draw(st.sampled_from(CELLS))
        if isinstance(arguments.get("cells"), list) and "code" not in json.dumps(
            arguments["cells"]
        ):
            arguments["cells"] = draw(st.lists(st.sampled_from(CELLS), max_size=3))
        for edit in arguments.get("edits", ()):
            for name in ("cell", "after", "before"):
                if name in edit:
                    edit[name] = draw(st.sampled_from(CELLS))
    for name in ("wait", "timeout"):  # a call may wait for an hour, a test may not
        if isinstance(arguments.get(name), int | float):
            arguments[name] = 0.2
    return profile, tool.name, arguments


def _arguments(tool: Tool) -> st.SearchStrategy[dict[str, Any]]:
    if tool.name not in _strategies:
        _strategies[tool.name] = from_schema(tool.schema(allowed_effects("agent")))
    return _strategies[tool.name].map(lambda value: json.loads(json.dumps(value)))


_strategies: dict[str, st.SearchStrategy[Any]] = {}


@pytest.fixture(autouse=True)
def _older_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """hypothesis-jsonschema 0.23 asks `while elements.more()`, which is a `for` by now."""

    def more(elements: Any) -> bool:
        if not hasattr(elements, "steps"):
            elements.__enter__()
            elements.steps = iter(elements)
        return next(elements.steps, "the end") is None

    if not hasattr(many, "more"):
        monkeypatch.setattr(many, "more", more, raising=False)


def look(answer: ToolResult) -> None:
    """An answer is text that a model can read, and data that a program can."""
    assert answer.text.strip()
    outside(answer.text)
    answer.text.encode()
    json.dumps(answer.data)


def assert_valid(folder: Path) -> None:
    """Every notebook of the folder can be read, and is valid."""
    for path in folder.rglob("*.ipynb"):
        found = json.loads(path.read_bytes())
        nbformat.validate(found)
    assert (folder / "nb.ipynb").exists()


@pytest.mark.timeout(2400 if RUN_ALL else 120)
def test_generated_calls_are_answered_and_leave_valid_notebooks(
    tmp_path: Path, kernels: list[MemoryKernel]
) -> None:
    """Nothing crashes, nothing hangs, and nothing is written outside the folder."""
    root = tmp_path / "root"
    root.mkdir()
    beside = tmp_path / "beside.txt"
    beside.write_text("untouched")

    async def one(profile: str, name: str, arguments: dict[str, Any]) -> None:
        box = Toolbox(PROFILES[profile])
        async with asyncio.timeout(HANG):
            look(await box.call(name, arguments, caller))

    with asyncio.Runner() as runner:
        workspace = AsyncWorkspace(root, cwd=str(root), actor="test:fuzz")
        caller = ToolCaller(workspace=workspace)

        @settings(
            max_examples=EXAMPLES,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        @given(call=calls())
        @example(call=("native", "notebook_run", {"path": "nb.ipynb"}))
        def check(call: tuple[str, str, dict[str, Any]]) -> None:
            (root / "nb.ipynb").write_bytes(samples.SALES)
            runner.run(one(*call))
            assert_valid(root)

        try:
            check()
        finally:
            runner.run(workspace.close())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside.txt", "root"]
    assert beside.read_text() == "untouched"
    assert kernels  # one of the calls at least did run something


WRONG: list[Any] = [None, True, -1, 10**30, 1.5, "x", "\0", "\ud800", [], [[]], {}, {"a": None}]


@pytest.mark.parametrize(("profile", "tool"), TOOLS, ids=[f"{p}-{t.name}" for p, t in TOOLS])
async def test_arguments_of_any_other_type_are_answered_too(
    profile: str, tool: Tool, caller: ToolCaller, folder: Path
) -> None:
    """Every parameter gets every kind of value, alone and with what is required beside it."""
    needed: dict[str, Any] = {"path": "nb.ipynb", "notebook_path": "nb.ipynb"}
    needed = {name: value for name, value in needed.items() if name in tool.model.model_fields}
    box = Toolbox(PROFILES[profile])
    for name in [*tool.model.model_fields, "unknown", ""]:
        for value in WRONG:
            async with asyncio.timeout(HANG):
                answer = await box.call(tool.name, {**needed, name: value}, caller)
            assert answer.text.strip()
            answer.text.encode()
    nbformat.validate(json.loads((folder / "nb.ipynb").read_bytes()))
