"""An editor without a page: it has notebooks open, answers the engine, and does as a test says."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from cellwright.engine.live import Editor, LiveHost
from cellwright.engine.outside import OutsideChanges
from cellwright.workspace.hosts.file import FileHost

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.workspace.hub import Hub


class ScriptedEditor:
    """One notebook in an editor that speaks the messages of `docs/live.md`.

    `typed` is called before a change is applied, as a person who types at that moment;
    `after_write` by a save before it reads the hash of the file, as another program may write then.
    """

    def __init__(self, content: bytes, file: Path | None = None) -> None:
        shape = json.loads(content)
        self.file = file
        self.version = 1
        self.minor = shape["nbformat_minor"]
        self.metadata: dict[str, Any] = shape["metadata"]
        self.cells: list[dict[str, Any]] = shape["cells"]
        for number, cell in enumerate(self.cells):
            cell.setdefault("id", f"made-{number}")
            cell["source"] = "".join(cell["source"])
        self.changed = {cell["id"]: 1 for cell in self.cells}
        self.structure = 1  # the version in which cells came, went or moved
        self.dirty = False
        self.hash = hashlib.sha256(content).hexdigest()
        self.conflicts: list[dict[str, Any]] = []
        self._merged = ""
        self.replies: list[dict[str, Any]] = []  # to the kernel
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.seen: dict[str, dict[str, Any]] = {}
        self.grown: list[str] = []  # cells of which the next answer says only how much is there
        self.typed: Any = lambda: None
        self.after_write: Any = lambda: None  # before the hash of the file is read
        self.told = -1
        self.news: dict[str, Any] = {}  # what it saved last
        self.answers: Any = lambda _method: True

    # -- a person ---------------------------------------------------------------------------

    def type(self, cell: str, source: str) -> None:
        """Change the source of a cell, as a person does."""
        self.find(cell)["source"] = source
        self._touch(cell)

    def append(self, cell: str, text: str) -> None:
        """Type at the end of a cell."""
        self.type(cell, self.find(cell)["source"] + text)

    def insert(self, cell: str, source: str, at: int) -> None:
        """Add a cell, as a person does."""
        after = self.cells[at - 1]["id"] if at else None
        shape = {"cell_type": "code", "id": cell, "metadata": {}, "source": source}
        self._put({**shape, "outputs": [], "execution_count": None}, after)

    def resolve(self, conflict: dict[str, Any], *, take: bool) -> bool:
        """Choose one side of a conflict: that of the file, or what is here."""
        if take and any(each["id"] == conflict["cell"] for each in self.cells):
            if conflict["other"] is None:
                self._apply_one("delete", conflict["cell"])
            else:
                self.type(conflict["cell"], conflict["other"])
        self.conflicts.remove(conflict)
        self._settle()
        return True

    def save(self) -> bool:
        """Save, as a person does; if the file is not the one that is known, the editor asks."""
        assert self.file is not None
        if hashlib.sha256(self.file.read_bytes()).hexdigest() != self.hash or self.conflicts:
            return False
        self.answer("editor.save", {})
        return True

    def _settle(self) -> None:
        """Once nothing is in conflict, the merged file is the one that is known."""
        if not self.conflicts and self._merged:
            self.hash = self._merged

    def find(self, cell: str) -> dict[str, Any]:
        return next(each for each in self.cells if each["id"] == cell)

    # -- messages ---------------------------------------------------------------------------

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer one request of the engine."""
        self.asked.append((method, params))
        name = method.removeprefix("editor.")
        if name == "read":
            return self._tell(params["since"])
        if name in ("change", "land"):
            if params["request"] in self.seen:
                return self.seen[params["request"]]
            self.typed()
            self.grown.clear()
            was_dirty = self.dirty
            is_applied = self._apply(params["since"], params["edits"])
            if is_applied and params.get("hash"):
                self._merged = params["hash"]
                self.dirty = self.dirty if self.conflicts else was_dirty
                self._settle()
            answer = {**self._tell(params["since"]), "applied": is_applied}
            answer["cells"] = [cell for cell in answer["cells"] if cell["id"] not in self.grown]
            answer["grown"] = [self._measure(cell) for cell in self.grown]
            self.seen[params["request"]] = answer
            return answer
        if name == "merged":
            new = {each["cell"]: each for each in params["conflicts"]}
            old = [each for each in self.conflicts if each["cell"] not in new]
            self.conflicts, self._merged = [*old, *new.values()], params["hash"]
            self._settle()
            return {}
        if name == "reply":
            self.replies.append(params["data"])
            return {}
        assert name == "save"
        if self.conflicts:
            raise ValueError("cells are in conflict with the file")
        news = {"since": self.told, **self._describe(self.told), "dirty": False}
        if self.file is not None:
            shape = {"nbformat": 4, "nbformat_minor": self.minor, "metadata": self.metadata}
            cells = [dict(cell) for cell in self.cells]
            if self.minor < 5:
                for cell in cells:
                    del cell["id"]
            text = json.dumps({**shape, "cells": cells}, indent=1, sort_keys=True) + "\n"
            self.file.write_text(text)
            self.after_write()
            self.hash = hashlib.sha256(self.file.read_bytes()).hexdigest()
        self.dirty = self.version != news["version"]
        self.news = {**news, "hash": self.hash}
        return {"saved": True, "news": self.news}

    def _tell(self, since: int) -> dict[str, Any]:
        self.told = self.version
        return self._describe(since)

    def _describe(self, since: int) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "version": self.version,
            "dirty": self.dirty,
            "hash": self.hash,
            "nbformat_minor": self.minor,
            "metadata": self.metadata,
            "cells": [
                json.loads(json.dumps(cell))
                for cell in self.cells
                if self.changed[cell["id"]] > since
            ],
        }
        if self.structure > since:
            answer["order"] = [cell["id"] for cell in self.cells]
        return answer

    def _apply(self, since: int, edits: list[dict[str, Any]]) -> bool:
        known = {cell["id"] for cell in self.cells}
        for edit in edits:
            name = edit.get("cell")
            if isinstance(name, str) and (name not in known or self.changed[name] > since):
                return False
            if edit["edit"] == "grow" and not self._may_grow(self.find(name)["outputs"], edit):
                return False
        for edit in edits:
            self._apply_one(**edit)
        return True

    def _apply_one(self, edit: str, cell: Any = None, **facts: Any) -> None:
        if edit == "insert":
            self._put({**cell, "source": "".join(cell["source"])}, facts["after"])
        elif edit == "delete":
            self.cells.remove(self.find(cell))
            self.version += 1
            self.structure = self.version
        elif edit == "move":
            moved = self.find(cell)
            self.cells.remove(moved)
            self._put(moved, facts["after"])
        elif edit == "replace":
            self.find(cell["id"]).clear()
            place = next(i for i, each in enumerate(self.cells) if not each)
            self.cells[place] = {**cell, "source": "".join(cell["source"])}
            self._touch(cell["id"])
        elif edit == "source":
            found = self.find(cell)
            found["source"] = splice(found["source"], facts["splices"])
            self._touch(cell)
        elif edit == "grow":
            found = self.find(cell)
            if facts["text"]:
                last = found["outputs"][-1]
                last["text"] = "".join(last["text"]) + facts["text"]
            found["outputs"] += facts["outputs"]
            found["execution_count"] = facts["execution_count"]
            self.grown.append(cell)
            self._touch(cell)
        elif edit == "metadata" and cell is None:
            self.metadata = facts["metadata"]
            self.version += 1
        else:
            self.find(cell).update(facts)
            self._touch(cell)

    def _may_grow(self, outputs: list[dict[str, Any]], edit: dict[str, Any]) -> bool:
        last = "".join(outputs[-1].get("text", "")) if outputs else ""
        return len(outputs) == edit["kept"] and edit["at"] in (None, count_units(last))

    def _measure(self, cell: str) -> dict[str, Any]:
        """Say how much a cell has put out, and how that ends."""
        found = self.find(cell)
        last = found["outputs"][-1]
        text = "".join(last["text"]) if last["output_type"] == "stream" else None
        return {
            "id": cell,
            "outputs": len(found["outputs"]),
            "length": None if text is None else count_units(text),
            "tail": (text or "")[-100:],
            "execution_count": found["execution_count"],
        }

    def _put(self, cell: dict[str, Any], after: str | None) -> None:
        place = 0 if after is None else self.cells.index(self.find(after)) + 1
        self.cells.insert(place, cell)
        self._touch(cell["id"])
        self.structure = self.version

    def _touch(self, cell: str) -> None:
        self.version += 1
        self.changed[cell] = self.version
        self.dirty = True


def splice(text: str, splices: list[dict[str, Any]]) -> str:
    """Apply splices, which count in UTF-16 units, as a page does."""
    units = text.encode("utf-16-le", "surrogatepass")
    for each in reversed(splices):
        new = each["text"].encode("utf-16-le", "surrogatepass")
        units = units[: 2 * each["start"]] + new + units[2 * each["end"] :]
    return units.decode("utf-16-le", "surrogatepass")


def count_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class ClosedNotebook(Exception):  # not an error: the person closed it
    """The page does not have the notebook open any more."""


class EditorConnection:
    """What `Editor` needs of a connection, without a socket."""

    def __init__(self, editor: ScriptedEditor) -> None:
        self.editor = editor
        self.is_closed = False
        self.name = "test:editor"

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.is_closed:
            raise ConnectionResetError
        try:
            return {"result": self.editor.answer(method, params)}
        except ClosedNotebook:
            return {"error": {"code": -32000, "message": "", "data": {"code": "NOT_OPEN"}}}
        except ValueError as error:
            return {"error": {"code": -32000, "message": str(error)}}


def open_in_editor(hub: Hub, file: Path, content: bytes) -> ScriptedEditor:
    """Write a notebook and open it in an editor, of which the hub knows."""
    file.write_bytes(content)
    found = ScriptedEditor(content, file)
    path = str(file)
    host = LiveHost(
        FileHost(
            path,
            path,
            root=None,
            name=file.name,
            settings=hub.settings,
            leases=hub.leases,
            recent=hub.recent,
        )
    )
    connection: Any = EditorConnection(found)
    editor = Editor(connection, file.name, _start_loop())
    editor.outside = OutsideChanges(host, editor)
    host.add(editor)
    hub.add_host(path, host)
    return found


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    """Start a loop for the editors of all tests: hosts are called elsewhere."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="editors", daemon=True).start()
    return loop
