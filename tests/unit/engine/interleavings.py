"""Stories of a person, an agent and another program that change one notebook in random order."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from cellwright import Workspace
from cellwright.engine.editors import Editors
from cellwright.errors import CellwrightError, Conflict
from cellwright.workspace.caller import Caller
from tests.unit.engine.scripted_editor import EditorConnection, ScriptedEditor
from tests.unit.workspace.memory import MemoryKernels, make_hub, make_notebook

if TYPE_CHECKING:
    from pathlib import Path

_TOKEN = re.compile(r"print\('t\d+'\)|print t\d+\b")


def find_tokens(cells: list[dict[str, Any]]) -> Counter[str]:
    return Counter(token for cell in cells for token in _TOKEN.findall("".join(cell["source"])))


class Story:
    """One notebook, the pages that have it open, and what must be in it at the end.

    Every edit adds a line of its own, so that each is found again, and found once. A page is a
    `ScriptedEditor`, or does what that does. Subclasses say how pages are opened and closed.
    """

    LINE = "print t{}"

    def __init__(self, path: Path, workspace: Any, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.path = path
        self.workspace = workspace
        self.expected: set[str] = set()
        self.given_up: set[str] = set()
        self.pages: list[Any] = []
        self.count = 0
        self.is_ending = False
        self.steps: list[str] = []

    # -- what happens -------------------------------------------------------------------------

    def play(self, steps: int) -> None:
        """Let random things happen."""
        acts = [self.type, self.type, self.add_cell, self.save, self.edit, self.edit_beside]
        acts += [self.insert, self.move, self.run, self.change_on_disk, self.look, self.look]
        acts += [self.resolve, self.reload, self.focus]
        for _ in range(steps):
            act = self.random.choice(acts)
            self.steps.append(act.__name__)
            act()
            self.check()

    def open(self) -> None:
        """Open the notebook in a page."""
        raise NotImplementedError

    def hang_up(self, page: Any) -> None:
        """Close a page, which is not in `pages` any more."""
        raise NotImplementedError

    def look(self) -> None:
        """The engine looks whether the file has changed."""
        raise NotImplementedError

    def focus(self) -> None:
        """The person goes to another page."""

    def tell_saved(self, page: Any) -> None:
        """A page has saved the notebook."""

    def close(self, page: Any) -> None:
        self.pages.remove(page)
        self.hang_up(page)
        here = [*(each.cells for each in self.pages), self.saved]
        kept = sum((find_tokens(cells) for cells in here), Counter())
        self.expected &= set(kept)  # what was typed there, and not saved

    def reload(self) -> None:
        if self.pages:
            self.close(self.random.choice(self.pages))
        if self.random.random() < 0.7 or len(self.pages) > 1:
            self.open()

    def type(self) -> None:
        if self.pages:
            self.type_in(self.random.choice(self.pages))

    def type_in(self, page: Any) -> None:
        cell = self.random.choice(page.cells)
        page.append(cell["id"], "\n" + self.make_token())

    def add_cell(self) -> None:
        if self.pages:
            page = self.random.choice(self.pages)
            at = self.random.randint(0, len(page.cells))
            page.insert(f"p{self.count}", self.make_token(), at)

    def save(self) -> None:
        if self.pages:
            page = self.random.choice(self.pages)
            if page.save():
                self.tell_saved(page)

    def edit(self) -> None:
        """An agent edits a cell that it has read."""
        book = self.workspace.open(self.path.name)
        view = book.read()
        cell = self.random.choice(view.cells)
        token = self.make_token()
        edit = {"op": "replace", "cell": cell.handle, "source": f"{cell.source}\n{token}"}
        self.do_edit(token, [edit], view.revision)

    def edit_beside(self) -> None:
        """An agent edits a cell while the person types."""
        if not self.pages:
            return
        page = self.random.choice(self.pages)
        self.let_type(page)
        self.edit()
        page.typed = lambda: None

    def let_type(self, page: Any) -> None:
        """Let the person type just before the next change comes to a page."""

        def type_once() -> None:
            page.typed = lambda: None
            self.type_in(page)

        page.typed = type_once

    def insert(self) -> None:
        view, token = self.workspace.open(self.path.name).read(), self.make_token()
        after = self.random.choice(view.cells).handle
        self.do_edit(token, [{"op": "insert", "source": token, "after": after}], view.revision)

    def move(self) -> None:
        view = self.workspace.open(self.path.name).read()
        one, other = self.random.sample([cell.handle for cell in view.cells], 2)
        self.do_edit("", [{"op": "move", "cell": one, "after": other}], view.revision)

    def do_edit(self, token: str, edits: list[dict[str, Any]], base: str) -> None:
        try:
            answer = self.workspace.open(self.path.name).edit(edits, base=base)
        except Conflict:
            self.expected.discard(token)
        except CellwrightError as error:
            raise AssertionError(error) from error
        else:
            if token and answer.saved:
                assert find_tokens(self.saved)[token] == 1, "it was called saved"

    def run(self) -> None:
        """An agent runs a cell."""
        book = self.workspace.open(self.path.name)
        cell = self.random.choice(book.read().cells)
        (execution,) = book.run([cell.handle], keep_going=True)
        if self.pages and execution.saved:
            assert any(
                each["id"] == cell.handle and each["execution_count"] == execution.count
                for page in self.pages
                for each in page.cells
            )

    def change_on_disk(self) -> None:
        """Another program edits the file, or adds a cell."""
        shape = json.loads(self.path.read_bytes())
        cells, token = shape["cells"], self.make_token()
        if self.random.random() < 0.7:
            cell = self.random.choice(cells)
            cell["source"] = "".join(cell["source"]) + "\n" + token
        else:
            new = {**cells[0], "id": f"d{self.count}", "source": token}
            cells.insert(self.random.randint(0, len(cells)), new)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(shape, indent=1), encoding="utf-8")
        beside.replace(self.path)

    def resolve(self) -> None:
        """The person chooses one side of a conflict."""
        for page in self.pages:
            for conflict in list(page.conflicts)[:1]:
                take = self.random.random() < 0.5
                here = next((c for c in page.cells if c["id"] == conflict["cell"]), None)
                mine = set(_TOKEN.findall(here["source"])) if here else set()
                theirs = set(_TOKEN.findall(conflict["other"] or ""))
                lost = (mine - theirs) if take else (theirs - mine)
                if page.resolve(conflict, take=take):
                    self.expected -= lost
                    self.given_up |= lost  # the other page may have it still

    # -- what must hold -------------------------------------------------------------------------

    def check(self) -> None:
        """Nothing is doubled, and everything is somewhere."""
        here = [page.cells for page in self.pages]
        for cells in (*here, self.saved):
            names = [cell["id"] for cell in cells]
            assert len(set(names)) == len(names), self.steps
            doubled = [token for token, count in find_tokens(cells).items() if count > 1]
            assert not doubled, self.steps
        other = [{"source": each["other"] or ""} for page in self.pages for each in page.conflicts]
        found = sum((find_tokens(cells) for cells in (*here, self.saved, other)), Counter())
        missing = self.expected - set(found)
        assert not missing, (missing, self.steps)

    def finish(self) -> None:
        """Choose, save and close; then all of it is in the file."""
        self.is_ending = True
        for _ in range(8):
            self.look()
            self.resolve()
            for page in self.pages:
                if page.dirty and page.save():
                    self.tell_saved(page)
        for page in self.pages:
            assert not page.conflicts, (self.seed, "open", page.conflicts, self.steps)
            assert not page.dirty, (self.seed, "there is something to save", self.steps)
            mine = [(c["id"], c["source"], c.get("execution_count")) for c in page.cells]
            disk = [(c["id"], "".join(c["source"]), c.get("execution_count")) for c in self.saved]
            different = [pair for pair in zip_longest(mine, disk) if pair[0] != pair[1]]
            assert not different, (self.seed, "page and file", different, self.steps)
        found = set(find_tokens(self.saved))
        lost, more = self.expected - found, found - self.expected - self.given_up
        assert not lost | more, (self.seed, "lost", lost, "more", more, self.steps)

    @property
    def saved(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.path.read_bytes())["cells"]
        return found

    def make_token(self) -> str:
        self.count += 1
        token = self.LINE.format(self.count)
        self.expected.add(token)
        return token


class ScriptedStory(Story):
    """With pages that are scripted editors, in one process."""

    def __init__(self, folder: Path, seed: int, pages: int) -> None:
        make_notebook(folder, "print a", "print b", "print c")
        self.hub = make_hub(MemoryKernels())
        self.editors = Editors(self.hub)
        self.caller = Caller(folder, cwd=str(folder), actor="lab:ada", hub=self.hub)
        self.connections: dict[int, Any] = {}
        workspace = Workspace(folder, cwd=str(folder), actor="mcp:agent", hub=self.hub)
        super().__init__(folder / "m.ipynb", workspace, seed)
        for _ in range(pages):
            self.open()

    def open(self) -> None:
        page = ScriptedEditor(self.path.read_bytes(), self.path)
        self.connections[id(page)] = EditorConnection(page)
        self.pages.append(page)
        self.say(page, "register")

    def hang_up(self, page: ScriptedEditor) -> None:
        connection = self.connections.pop(id(page))
        connection.is_closed = True
        self.hub.call(self.editors.forget(connection))

    def look(self) -> None:
        """Look, in one of three times while the person types."""
        typing = self.pages and not self.is_ending and self.random.random() < 0.3
        page = self.random.choice(self.pages) if typing else None
        if page is not None:
            self.let_type(page)
        for host in self.editors._hosts.values():
            host.merge_outside()
        if page is not None:
            page.typed = lambda: None

    def focus(self) -> None:
        if self.pages:
            self.say(self.random.choice(self.pages), "presence", focused=True, active=None)

    def save(self) -> None:
        """The person may type while a page saves, and the engine hear of it before it looks."""
        typing = self.pages and self.random.random() < 0.3
        page = self.random.choice(self.pages) if typing else None
        if page is not None:
            page.after_write = lambda: self.type_in(page)
        super().save()
        if page is not None:
            page.after_write = lambda: None

    def tell_saved(self, page: ScriptedEditor) -> None:
        if not self.is_ending and self.random.random() < 0.3:
            self.change_on_disk()
        self.say(page, "presence", saved=True, news=page.news)

    def say(self, page: ScriptedEditor, method: str, **params: Any) -> None:
        facts = {"path": self.path.name, **params}
        connection = self.connections[id(page)]
        self.hub.call(self.editors.handle(connection, self.caller, f"editor.{method}", facts))
