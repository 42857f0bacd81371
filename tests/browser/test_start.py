"""`cellwright lab`: what it opens, and what it does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser.conftest import FIRST, PANEL, PLANTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Server


def test_it_opens_the_notebook_that_is_named_and_runs_nothing_of_its_folder(
    server: Server, open_page: Callable[[str], Page]
) -> None:
    assert f"{server.url}lab/tree/{FIRST.replace(' ', '%20')}?token=" in server.log.read_text()
    page = open_page(FIRST)
    assert page.evaluate(f"() => {PANEL}.context.path") == FIRST
    assert all((server.folder / f"{name}.py").exists() for name in PLANTED)
    assert not (server.folder.parent / "planted").exists()
