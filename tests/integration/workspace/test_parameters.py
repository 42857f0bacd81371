"""Parameters of a run, as real programs of several languages take them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.errors import InvalidEdit
from cellwright.workspace.runs.parameters import assign
from tests.unit.workspace.memory import make_notebook
from tests.unit.workspace.runs.test_parameters import NASTY, TAGGED, VALUES

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import Workspace

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize("value", ["", NASTY, "x y", 3, 0.5, True], ids=repr)
def test_bash_gets_the_very_text(value: Any) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    line = assign("bash", "p", value)
    code = f'{line}\nprintf %s "$p"'
    said = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == (str(value).lower() if isinstance(value, bool) else str(value))


def test_bash_gets_lists_of_words_and_nothing_deeper() -> None:
    code = assign("bash", "p", ["a b", 3]) + "\nprintf '%s|' \"${p[@]}\""
    said = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "a b|3|"
    with pytest.raises(InvalidEdit):
        assign("bash", "p", [[1]])
    with pytest.raises(InvalidEdit):
        assign("bash", "p", {"a": 1})


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_javascript_gets_the_very_value(value: Any, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        assert assign("javascript", "p", value) == f"p = {json.dumps(value, ensure_ascii=False)};"
        return
    script = tmp_path / "p.js"
    line = assign("javascript", "p", value, declares=True)
    script.write_text(f"{line}\nconsole.log(JSON.stringify(p))")
    said = subprocess.run([node, script], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == value


def test_a_real_kernel_gets_them_and_what_used_them_is_stale(
    workspace: Workspace, folder: Path
) -> None:
    make_notebook(
        folder, "alpha = 1\nbeta = 'x'", "gamma = alpha * 2\ngamma, beta", "delta = 5", c0=TAGGED
    )
    path = folder / "m.ipynb"
    path.write_text(path.read_text().replace('"script"', '"python"'))
    book = workspace.open("m.ipynb")
    done = book.run(parameters={"alpha": 21, "Beta": NASTY})
    assert [execution.status for execution in done] == ["ok", "ok", "ok"]
    assert done[1].outputs[0]["data"]["text/plain"] == "(42, 'x')"
    (note,) = done[0].notes
    assert "`Beta` is not assigned in cell c0" in note
    found = {row.cell: row for row in book.stale().cells}
    assert [found[cell].state for cell in ("c0", "c1", "c2")] == ["fresh", "stale", "fresh"]
    assert found["c1"].stale_reason == ("It uses `alpha`, which the parameters of a run had set.")
    book.run()
    assert {row.state for row in book.stale().cells} == {"fresh"}
