"""The pictures of the documentation, taken anew: `.dev/pictures` has them afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Server, change_on_disk, keep_picture, put_cursor, run_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = [pytest.mark.timeout(300), pytest.mark.all]

LOAD = "sales = [310, 420, 380, 505]\nmonths = ['Jan', 'Feb', 'Mar', 'Apr']"
SUM = "total = sum(sales)\ntotal"
# Nothing glows any more, and what is stale is marked.
IS_STILL = "() => !document.querySelector('.cw-changed') && document.querySelector('.cw-stale')"
BEST = "best = max(zip(sales, months))\nprint('best month:', best[1])"


def test_a_person_and_an_agent_a_conflict_and_marks_are_shown(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    path = server.write("sales.ipynb", LOAD, SUM, BEST)
    page = open_page("sales.ipynb")
    page.set_viewport_size({"width": 1000, "height": 640})
    page.add_style_tag(content=".Toastify { display: none }")  # JupyterLab's own questions
    page.evaluate(
        "async () => await window.jupyterapp.commands.execute('application:toggle-left-area')"
    )
    for index in range(3):
        run_cell(page, index)
    book = agent.open("sales.ipynb")
    put_cursor(page, 0)
    page.keyboard.press("Control+End")
    page.keyboard.type("\ncurrency = 'EUR'")
    average = "average = total / len(sales)\nprint(f'{average:.1f} a month')"
    book.edit([{"op": "insert", "after": "b", "source": average, "id": "mean"}])
    assert book.run(["mean"]).ok
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 1")
    keep_picture(page, "live")

    book.edit([{"op": "replace", "cell": "c", "source": f"{BEST}\nprint('with', best[0])"}])
    page.wait_for_function("() => document.querySelectorAll('.cw-review').length === 2")
    last = page.locator(".jp-Cell", has_text="best month").locator(".cw-review")
    last.get_by_text("Diff").click()
    last.locator(".cw-diff").wait_for()
    page.wait_for_function(IS_STILL)
    keep_picture(page, "marks")

    page.evaluate("async () => await window.jupyterapp.commands.execute('cellwright:accept-all')")
    # The button that was clicked has the focus: a click on the first line puts it into the cell.
    page.locator(".jp-Cell").nth(1).locator(".cm-line").first.click()
    page.keyboard.press("End")
    page.keyboard.type("  # in euros")
    change_on_disk(path, b="total = sum(sales) * 1.08\ntotal")
    page.locator(".cw-conflict").wait_for(timeout=60_000)
    page.wait_for_function(IS_STILL)
    keep_picture(page, "conflict")
