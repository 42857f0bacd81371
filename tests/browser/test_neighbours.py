"""Other pages of Jupyter than plain JupyterLab: Notebook 7, and documents that pages share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import (
    BUILT,
    PANEL,
    Server,
    cells,
    keep_picture,
    put_cursor,
    read_saved,
    run_cell,
    start_server,
    texts,
)
from tests.conftest import ROOT
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]

COMMANDS = {
    "notebook": (
        *("-m", "notebook", "--no-browser", "--ServerApp.root_dir=."),
        "--ServerApp.jpserver_extensions={'cellwright.server': True}",
        f"--JupyterNotebookApp.extra_labextensions_path={BUILT.parent.parent}",
    ),
    "collaboration": ("-m", "cellwright", "lab", "--no-browser", "--"),
}


@pytest.fixture(scope="module", params=[])
def server(
    request: pytest.FixtureRequest, server_places: tuple[pytest.MonkeyPatch, Path]
) -> Iterator[Server]:
    """Start a server of another environment, with our extensions."""
    python = ROOT / ".dev" / request.param / "bin" / "python"
    assert python.exists(), "`./dev test --all` makes it"
    notebooks = server_places[1] / request.param
    notebooks.mkdir()
    with start_server(notebooks, str(python), "-P", *COMMANDS[request.param]) as started:
        yield started


@pytest.mark.parametrize("server", ["notebook"], indirect=True)
def test_an_agents_edit_and_run_appear_in_a_page_of_notebook_7(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("seven.ipynb", "x = 1", "y = 2")
    page = open_page("seven.ipynb", view="notebooks")
    assert page.evaluate("() => window.jupyterapp.name") == "Jupyter Notebook"
    put_cursor(page, 0)
    page.keyboard.press("End")
    page.keyboard.type("0")
    book = agent.open("seven.ipynb")
    edits = [
        {"op": "replace", "cell": "b", "source": "print(x + 1)"},
        {"op": "insert", "after": "a", "source": "between = True"},
    ]
    answer = book.edit(edits)
    assert (answer.host, answer.saved) == ("tab", True)
    assert texts(run_cell(page, 0)) == ""
    # The person's variable is there: it is the kernel of the page.
    assert book.run(["b"]).ok
    found = cells(page)
    sources = [cell["source"] for cell in found.values()]
    assert sources == ["x = 10", "between = True", "print(x + 1)"]
    assert (texts(found["b"]), found["b"]["count"]) == ("11\n", 2)
    shown = page.locator(".jp-Cell").nth(2).locator(".jp-OutputArea-output")
    assert shown.inner_text().strip() == "11"
    assert page.locator(".jp-Dialog").all_inner_texts() == []
    keep_picture(page, "notebook-7")
    saved = read_saved(path)
    assert ["".join(cell["source"]) for cell in saved] == sources


@pytest.mark.parametrize("server", ["collaboration"], indirect=True)
def test_beside_jupyter_collaboration_an_agents_edit_is_in_every_page_once(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("shared.ipynb", "x = 1", "y = 2")
    page, other = open_page("shared.ipynb"), open_page("shared.ipynb")
    is_shared = f"() => !!{PANEL}.context.model.collaborative"
    assert page.evaluate(is_shared), "the documents of this server are shared"
    put_cursor(page, 0)
    page.keyboard.press("End")
    page.keyboard.type("0")
    book = agent.open("shared.ipynb")
    for number in range(5):
        answer = book.edit(
            [
                {"op": "replace", "cell": "b", "source": f"print(x + {number})"},
                {"op": "insert", "after": "a", "source": f"between = {number}"},
            ]
        )
        assert answer.host == "tab"
    wanted = ["x = 10", *(f"between = {number}" for number in (4, 3, 2, 1, 0)), "print(x + 4)"]
    assert book.run(["a", "b"]).ok

    def list_sources(where: Page) -> list[str]:
        return [cell["source"] for cell in cells(where).values()]

    for each in (page, other):
        wait_for(lambda each=each: list_sources(each) == wanted, "the edits in both pages")
        wait_for(lambda each=each: texts(cells(each)["b"]) == "14\n", "the output in both pages")

    def is_saved() -> bool:
        saved = read_saved(path)
        return ["".join(cell["source"]) for cell in saved] == wanted and bool(saved[-1]["outputs"])

    wait_for(is_saved, "the file")
    # What a person types afterwards reaches the other page and the file, and nothing comes twice.
    other.evaluate(f"() => {PANEL}.content.model.cells.get(1).sharedModel.setSource('typed')")
    wanted[1] = "typed"
    for each in (page, other):
        wait_for(lambda each=each: list_sources(each) == wanted, "what was typed")
    wait_for(is_saved, "the file")
    assert [each["source"] for each in book.read().to_json()["cells"]] == wanted
    for each in (page, other):
        assert list_sources(each) == wanted
        assert len(cells(each)["b"]["outputs"]) == 1
        assert each.locator(".jp-Dialog").all_inner_texts() == []
        assert each.locator(".cw-conflict").all_inner_texts() == []
    keep_picture(other, "collaboration")
