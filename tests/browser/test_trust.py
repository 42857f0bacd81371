"""What a page trusts: scripts in outputs that were only loaded, or merged from the file, never run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import PANEL, Server, cells, keep_picture, read_saved, run_cell
from tests.engines import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(120)

VIEW = "application/vnd.jupyter.widget-view+json"


def make_widgets(run: str) -> dict[str, Any]:
    """The saved state of a widget that would run something where it is shown."""

    def describe(name: str, module: str, **state: Any) -> dict[str, Any]:
        facts = {"model_module": f"@jupyter-widgets/{module}", "model_module_version": "2.0.0"}
        return {**facts, "model_name": name, "state": state}

    html = f"<img src=x onerror=\"{run}='view'\">"
    state = {
        "evil": describe("HTMLModel", "controls", value=html, layout="IPY_MODEL_flat"),
        "flat": describe("LayoutModel", "base"),
    }
    kind = "application/vnd.jupyter.widget-state+json"
    return {kind: {"state": state, "version_major": 2, "version_minor": 0}}


def make_outputs(run: str) -> list[dict[str, Any]]:
    """Outputs that would run something if their cell were trusted."""
    view = {"model_id": "evil", "version_major": 2, "version_minor": 0}
    bundles = [
        {VIEW: view, "text/plain": "a view"},
        {"text/html": f"<img src=x onerror=\"{run}='html'\"><script>{run}='script'</script>"},
        {"application/javascript": f"{run}='javascript'", "text/plain": "a script"},
        {
            "image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg" onload="{run}=1"/>',
            "text/plain": "a drawing",
        },
        {
            "text/html": "<button data-commandlinker-command='notebook:delete-cell'"
            " data-commandlinker-args='{}'>press</button>"
        },
    ]
    return [{"output_type": "display_data", "data": each, "metadata": {}} for each in bundles]


def wait_a_moment(page: Page) -> Any:
    """What has run, after images had the time to fail."""
    return page.evaluate("() => new Promise(done => setTimeout(() => done(window.pwned), 500))")


def test_outputs_that_a_file_has_run_nothing_and_widgets_of_a_run_are_shown(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    """Opened, merged from the file, beside a widget of an agent, saved, and loaded again."""
    run = "window.pwned"
    slider = "import ipywidgets\nipywidgets.IntSlider(3)"
    path = server.write("trust.ipynb", "'loaded'", "'run here'", slider)
    hostile = {"metadata": {"trusted": True}, "outputs": make_outputs(run), "execution_count": 1}

    def write(change: Callable[[list[dict[str, Any]]], None]) -> None:
        shape = json.loads(path.read_text())
        shape["metadata"]["widgets"] = make_widgets(run)
        change(shape["cells"])
        new = path.with_suffix(".new")
        new.write_text(json.dumps(shape), encoding="utf-8")
        new.replace(path)

    write(lambda found: found[0].update(hostile))
    page = open_page("trust.ipynb")
    trusted = f"() => [...{PANEL}.content.model.cells].map(model => model.trusted)"
    run_cell(page, 1)  # JupyterLab trusts what a person runs
    assert page.evaluate(trusted)[:2] == [False, True]
    # The view of a widget that a run has made is shown, and does not let in the one of the file.
    assert agent.open("trust.ipynb").run(["c"]).ok
    page.locator(".widget-slider").wait_for()
    assert page.evaluate(trusted)[2] is False
    # Another program gives a trusted cell such outputs, and adds a cell that says it is trusted.
    new = {"cell_type": "code", "id": "new", "source": "'new'", **hostile}

    def merge(found: list[dict[str, Any]]) -> None:
        found[1].update(hostile)
        found.append(new)

    wait_for(lambda: read_saved(path)[2]["outputs"], "the run in the file")
    write(merge)
    page.wait_for_function(f"() => {PANEL}.content.model.cells.length === 4")
    wait_for(lambda: len(cells(page)["b"]["outputs"]) == 5, "the outputs in the page")
    assert wait_a_moment(page) is None
    assert page.evaluate(trusted) == [False] * 4
    assert page.locator(".jp-OutputArea-output:has-text('a view')").count() == 3
    # A button that is bound to a command: JupyterLab asks, because the cell is not trusted.
    page.get_by_role("button", name="press").last.click()
    page.locator(".jp-Dialog").get_by_text("not trusted").wait_for()
    keep_picture(page, "trust")
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel").click()
    assert page.evaluate(f"() => {PANEL}.content.model.cells.length") == 4
    # Nothing of it is trusted when the page is loaded again, after it was saved there.
    page.evaluate(f"async () => await {PANEL}.context.save()")
    page.reload()
    page.wait_for_function(f"() => window.jupyterapp && {PANEL}?.hasClass?.('cw-shared')")
    assert wait_a_moment(page) is None
    assert page.evaluate(trusted) == [False] * 4
    # What was tried does run where a person says that they trust it.
    page.evaluate(f"() => {{ {PANEL}.content.model.cells.get(0).trusted = true }}")
    page.wait_for_function("() => window.pwned")


def test_the_cells_of_a_notebook_that_was_closed_are_let_go(
    server: Server, open_page: OpenPage
) -> None:
    """ipywidgets keeps the manager of each kernel, and with it all that was drawn."""
    for name in ("stays", "first", "second"):
        server.write(f"{name}.ipynb", "print(1)")
    page = open_page("stays.ipynb")
    devtools = page.context.new_cdp_session(page)
    page.evaluate("() => { window.nodes = [] }")
    for name in ("stays", "first", "second"):
        page.evaluate(
            """async path => {
                const panel = await window.jupyterapp.commands.execute('docmanager:open', {path});
                await panel.sessionContext.ready;
                window.nodes.push(new WeakRef(panel.content.widgets[0].node));
            }""",
            f"{name}.ipynb",
        )
        run_cell(page, 0)
        if name != "stays":
            page.evaluate(f"() => {PANEL}.dispose()")

    def is_gone() -> bool:
        devtools.send("HeapProfiler.collectGarbage")
        return bool(page.evaluate("() => window.nodes[1].deref() === undefined"))

    wait_for(is_gone, "the cells of the first to go", 30)
    assert page.evaluate("() => window.nodes[0].deref() !== undefined"), "it is still open"
