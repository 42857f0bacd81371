"""One task from end to end, in a real kernel; and what only a real one can show."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest

from cellwright import AsyncWorkspace
from cellwright.tools.tool import ToolCaller
from tests.unit.tools.conftest import Call
from tests.unit.tools.support import book, outside, within

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SHOW = """
import base64
from IPython.display import Image, display
raw = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
display(Image(raw))
""".strip()


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[Call]:
    """Somebody who calls tools where kernels are processes."""
    async with AsyncWorkspace(tmp_path, cwd=str(tmp_path), actor="test:ada") as workspace:
        yield Call(ToolCaller(workspace=workspace))


async def test_a_failing_cell_is_found_mended_run_looked_at_and_undone(
    real: Call, tmp_path: Path
) -> None:
    (tmp_path / "nb.ipynb").write_bytes(book("x = 20", "y = x + 1", "print(y / 0)", SHOW))
    before = (tmp_path / "nb.ipynb").read_bytes()
    ran = await real("notebook_run", path="nb.ipynb")
    assert outside(ran.text)[0] == "FAILED at cell 2 (c2): 2 ok, 1 error, 1 pending."
    assert "ZeroDivisionError at its line 1" in ran.text

    found = await real("notebook_read", path="nb.ipynb", only="errors", outputs=True)
    assert [cell["handle"] for cell in found.data["cells"]] == ["c2"]

    mended = await real(
        "notebook_edit",
        path="nb.ipynb",
        edits=[{"op": "replace_text", "cell": "c2", "old": "/ 0", "new": "/ 2"}],
        base=found.data["revision"],
        run="stale",
    )
    assert not mended.is_error, mended.text
    assert [row["cell"] for row in mended.data["executions"]] == ["c2", "c3"]
    assert "10.5" in within(mended.text)
    assert [image.mime for image in mended.images] == ["image/png"]
    assert mended.data["stale"] == []

    undone = await real("notebook_history", path="nb.ipynb", action="undo")
    assert "+print(y / 0)" in within(undone.text)
    variables = await real("kernel", action="variables", path="nb.ipynb")
    assert "y: int = 21" in within(variables.text)
    await real("notebook_history", path="nb.ipynb", action="restore", change="first")
    assert (tmp_path / "nb.ipynb").read_bytes() == before


async def test_parameters_and_a_replay(real: Call, tmp_path: Path) -> None:
    (tmp_path / "nb.ipynb").write_bytes(book("n = 1", "k = 5", "print(n + 1)"))
    answer = await real("notebook_run", path="nb.ipynb", cells=["c2"], parameters={"n": 41})
    assert "42" in within(answer.text)
    answer = await real("notebook_run", path="nb.ipynb", which="replay", cell="c2", restart=True)
    assert "c2" in [row["cell"] for row in answer.data["executions"]]
    assert not answer.is_error, answer.text


async def test_eval_in_the_runner_with_input_and_a_cancelled_call(real: Call) -> None:
    cells = [{"code": "name = input('who? ')"}, {"code": "print('hello', name)"}]
    answer = await real("eval", cells=cells, answers=["Ada"])
    assert "hello Ada" in within(answer.text)
    task = asyncio.ensure_future(real("eval", cells=[{"code": "import time; time.sleep(600)"}]))
    async with asyncio.timeout(30):
        while not any(run.state == "running" for run in await real.caller.workspace.runs()):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    answer = await real("eval", cells=[{"code": "print(name)"}])
    assert "Ada" in within(answer.text)  # interrupted, and its state kept


async def test_input_with_no_one_to_ask_raises_and_the_cell_goes_no_further(
    real: Call, tmp_path: Path
) -> None:
    source = "if input('Delete? [Y/n]') in ('', 'Y'):\n    print('deleted')"
    (tmp_path / "nb.ipynb").write_bytes(book(source, f"input()\n{source}"))
    first = await real("notebook_run", path="nb.ipynb", cells=[0])
    assert first.data["executions"][0]["error"] == {"ename": "StdinNotImplementedError"}
    more = await real("notebook_run", path="nb.ipynb", cells=[1], answers=["one"])
    assert more.data["executions"][0]["status"] == "error"
    for answer in (first, more):
        assert "deleted" not in within(answer.text).split("\n")
        assert "there was no answer to give it" in answer.text


@pytest.mark.parametrize(
    ("profile", "tool"), [("native", "eval"), ("text", "eval"), ("notebook", "python")]
)
async def test_what_is_left_out_of_an_answer_is_had_by_the_call_that_it_names(
    profile: str, tool: str, real: Call
) -> None:
    code = "print('\\n'.join(f'line {number}' for number in range(9000)))"
    answer = await real(tool, profile, cells=[{"code": code}])
    found = re.search(r"LEFT OUT: parts of 9,000 lines; (\w+) with (\w+)=(.*)", answer.text)
    assert found, answer.text
    name, parameter, value = found.groups()
    value = json.loads(value) if value.startswith("[") else value
    rest = await real(name, profile, **{parameter: value})
    assert not rest.is_error, rest.text
    assert "line 250\n" in within(rest.text)
