"""Random interleavings in a real page: tab edits, agent edits and runs, disk edits, saves, reloads."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import wait_for
from tests.unit.engine.interleavings import Story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Server

    OpenPage = Callable[..., Page]

NAME = "story.ipynb"


class Tab:
    """A notebook in a real tab, with the hands of a person."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page, self.path = page, path
        self.typed: Any = None

    @property
    def cells(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(
            "() => [...window.story.content.model.cells].map(m => m.sharedModel.toJSON())"
        )
        return [{**cell, "source": "".join(cell["source"])} for cell in found]

    @property
    def dirty(self) -> bool:
        return bool(self.page.evaluate("() => window.story.context.model.dirty"))

    @property
    def conflicts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate(
            """() => window.story.content.widgets.flatMap(w => {
                const bar = w.node.querySelector('.cw-conflict pre');
                return bar ? [{cell: w.model.id, other: bar.textContent}] : [];
            })"""
        )
        return found

    def append(self, cell: str, text: str) -> None:
        """Type at the end of what is there now: an agent's line may have come since we looked."""
        self.page.evaluate(
            """([id, text]) => {
                const cell = window.story.content.model.sharedModel.cells.find(c => c.id === id);
                const end = cell.getSource().length;
                cell.updateSource(end, end, text);
            }""",
            [cell, text],
        )

    def insert(self, cell: str, source: str, at: int) -> None:
        self.page.evaluate(
            """([id, source, at]) => window.story.content.model.sharedModel
                .insertCell(at, {cell_type: 'code', id, source})""",
            [cell, source, at],
        )

    def resolve(self, conflict: dict[str, Any], *, take: bool) -> bool:
        """Choose one side, unless the file has something else by now."""
        chosen: bool = self.page.evaluate(
            """([{cell, other}, index]) => {
                const { node } = window.story.content.widgets.find(w => w.model.id === cell);
                const isSame = node.querySelector('.cw-conflict pre')?.textContent === other;
                if (isSame) {
                    node.querySelectorAll('.cw-conflict button')[index].click();
                }
                return isSame;
            }""",
            [conflict, int(take)],
        )
        return chosen

    def save(self) -> bool:
        """Save as a person does who would be asked if the file is another than the tab knows."""
        known = self.page.evaluate("() => window.story.context.contentsModel.hash")
        if hashlib.sha256(self.path.read_bytes()).hexdigest() != known or self.conflicts:
            return False
        self.page.evaluate("async () => await window.story.context.save()")
        return True


class TabStory(Story):
    """With one tab of a real page; the engine looks at the file by itself."""

    LINE = "print('t{}')"

    def __init__(self, page: Page, path: Path, workspace: Any, seed: int) -> None:
        super().__init__(path, workspace, seed)
        self.page = page

    def open(self) -> None:
        if self.random.random() < 0.1:
            self.page.reload()
            self.page.wait_for_function("() => window.jupyterapp?.restored !== undefined")
        self.page.evaluate(
            f"""() => {{
                const app = window.jupyterapp;
                window.story = null;
                app.restored
                    .then(() => app.commands.execute('docmanager:open', {{path: '{NAME}'}}))
                    .then(panel => {{
                        app.shell.activateById(panel.id);
                        window.story = panel;
                    }});
            }}"""
        )
        self.page.wait_for_function("() => window.story?.context.isReady")
        self.page.wait_for_function("() => window.story.sessionContext.isReady")
        self.page.wait_for_function("() => window.story.hasClass('cw-shared')")
        self.pages.append(Tab(self.page, self.path))

    def hang_up(self, page: Tab) -> None:
        page.page.evaluate("() => window.story.dispose()")

        def is_gone() -> bool:
            return all(row.path != NAME for row in self.workspace.list(opened=True))

        wait_for(is_gone, "the tab to be gone")

    def look(self) -> None:
        """Give the engine the time to look; what is merged is seen in the tab."""
        for tab in self.pages:
            wait_for(lambda tab=tab: self.has_looked(tab), "the engine to look")

    def has_looked(self, tab: Tab) -> bool:
        known = tab.page.evaluate("() => window.story.context.contentsModel.hash")
        return bool(tab.conflicts or hashlib.sha256(self.path.read_bytes()).hexdigest() == known)

    def edit_beside(self) -> None:
        """An agent edits while the person types: both at once, each in its own process."""
        if not self.pages:
            return
        (tab,) = self.pages
        before, word = tab.cells[0], self.make_token()
        tab.page.evaluate(
            """([id, word]) => {
                const cell = window.story.content.model.sharedModel.cells.find(c => c.id === id);
                [...('\\n' + word)].forEach((sign, n) => setTimeout(() => {
                    const end = cell.getSource().length;
                    cell.updateSource(end, end, sign);
                }, 3 * n));
                window.typing = new Promise(done => setTimeout(done, 3 * word.length + 10));
            }""",
            [before["id"], word],
        )
        self.edit_other(before["id"])
        tab.page.evaluate("async () => await window.typing")

    def edit_other(self, but: str) -> None:
        book = self.workspace.open(self.path.name)
        view = book.read()
        cell = self.random.choice([each for each in view.cells if each.handle != but])
        token = self.make_token()
        edit = {"op": "replace", "cell": cell.handle, "source": f"{cell.source}\n{token}"}
        self.do_edit(token, [edit], view.revision)

    def check(self) -> None:
        super().check()
        dialogs = self.page.locator(".jp-Dialog").all_inner_texts()
        assert dialogs == [], (dialogs, self.steps)

    def finish(self) -> None:
        deadline = time.monotonic() + 20
        while True:  # a choice is followed by a look at the file, in the page
            try:
                super().finish()
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            else:
                return


@pytest.fixture
def play(server: Server, open_page: OpenPage, agent: Any) -> Callable[[int], None]:
    """Play stories in one page, one after the other, in one kernel."""
    server.write("start.ipynb", "1")
    page = open_page("start.ipynb")

    def play_one(seed: int) -> None:
        path = server.write(NAME, "a = 1", "b = 2", "c = 3")
        story = TabStory(page, path, agent, seed)
        story.open()
        story.play(25)
        if not story.pages:
            story.open()
        story.finish()
        story.hang_up(story.pages.pop())

    return play_one


@pytest.mark.timeout(180)
def test_some_interleavings_in_a_page_lose_nothing_and_double_nothing(
    play: Callable[[int], None],
) -> None:
    for seed in range(2):
        play(seed)


@pytest.mark.all
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(2, 200, 33))
def test_many_interleavings_in_a_page_lose_nothing_and_double_nothing(
    play: Callable[[int], None], first: int
) -> None:
    for seed in range(first, min(first + 33, 200)):
        play(seed)
