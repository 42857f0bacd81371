"""The command of the README in an environment that has nothing but our wheel, and Notebook 7 there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import PANEL, Server, cells, keep_picture, start_server, texts
from tests.conftest import PLACES, ROOT
from tests.integration.project.test_wheel import Installation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(1800), pytest.mark.all]


@pytest.fixture(scope="module")
def installed() -> Iterator[Installation]:
    """Install the wheel with its extra, as a user does, and Notebook 7 beside it."""
    folder = Path(tempfile.mkdtemp(prefix="cw"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    found = Installation(folder, wheel, "lab")
    for variable, name in PLACES.items():
        (folder / name).mkdir(mode=0o700)
        found.environ[variable] = str(folder / name)
    found.run("python -m pip install --quiet notebook")
    yield found
    found.run("cellwright engine stop")
    shutil.rmtree(folder, ignore_errors=True)


COMMANDS = {
    "lab": ("cellwright", "lab", "analysis.ipynb", "--no-browser", "--"),
    "notebook": ("jupyter-notebook", "--no-browser"),
}


@pytest.fixture(params=COMMANDS)
def server(
    request: pytest.FixtureRequest, installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    """Start it without a word about our extensions: they enable themselves."""
    for variable in PLACES:  # where its own engine is, not that of the other tests
        monkeypatch.setenv(variable, installed.environ[variable])
    notebooks = installed.folder / request.param
    notebooks.mkdir()
    Server(notebooks, "", "", notebooks).write("analysis.ipynb", "x = 20", "x + 1")
    program, *options = COMMANDS[request.param]
    with start_server(notebooks, str(installed.bin / program), *options) as started:
        yield started


def test_the_command_of_the_readme_shows_a_person_and_an_agent_in_one_notebook(
    server: Server, open_page: OpenPage, installed: Installation
) -> None:
    is_lab = server.folder.name == "lab"
    page = open_page("analysis.ipynb", view="lab/tree" if is_lab else "notebooks")
    page.evaluate(
        f"""async () => {{
            {PANEL}.content.activeCellIndex = 0;
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    command = "cellwright edit analysis.ipynb insert 'print(x + 1)' --run stale --json"
    answer = json.loads(installed.run(f"cd {server.folder.name} && {command}"))["data"]
    assert (answer["host"], answer["saved"]) == ("tab", True)
    found = list(cells(page).values())
    assert [cell["source"] for cell in found] == ["x = 20", "x + 1", "print(x + 1)"]
    assert texts(found[2]) == "21\n"  # in the kernel of the page
    page.locator(".cw-review").wait_for()
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    keep_picture(page, f"wheel-{server.folder.name}")
