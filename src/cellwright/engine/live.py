"""A notebook that an editor has open: read, changed and saved there, by messages.

`docs/live.md` describes the messages. An `Editor` is one page of an editor with one notebook
open; `LiveHost` is the notebook, whichever of its pages answers for it. The editor's model is the
truth: what was changed there is read back from there.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from contextvars import ContextVar
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import NamedTuple
from uuid import uuid4

from cellwright.document._bytes.layout import Layout
from cellwright.document._bytes.slots import Slot
from cellwright.document.change import State, longest_increasing
from cellwright.document.notebook import Notebook
from cellwright.errors import Conflict, EditorLost, EditorSilent, EditorUnfit
from cellwright.workspace.hosts.host import NO_HOOKS, Presence, SaveHooks, note_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from cellwright.document.change import Change
    from cellwright.engine.connection import Connection
    from cellwright.engine.outside import OutsideChanges
    from cellwright.workspace.hosts.file import FileHost, FileLanding
    from cellwright.workspace.hosts.host import KernelAddress, Make

    Shape = dict[str, Any]

_TRIES = 20  # of an edit, while a person types in the same cell
_TIMEOUT = 10.0
_MOST_LINES = 2_000  # compared line by line; longer sources are cut at both ends only
_MOST_EARLIER = 8  # states of an editor that are remembered, for news that comes late
LONGEST_PIECE = 262_144
"""Characters of a text that an editor gets at a time: a page that takes more at once stands still."""
asking_page: ContextVar[Connection | None] = ContextVar("asking_page", default=None)
"""The page that asks for what is done now: it is done there, wherever the person was last."""


class Editor:
    """One page of an editor that has one notebook open.

    `path` is what the editor calls the notebook; `focused` is when a person was last there.
    `running` are the cells that the person runs there, `running` or `pending`.
    """

    def __init__(self, connection: Connection, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self.connection = connection
        self.path = path
        self.focused = time.monotonic()
        self.presence = Presence()
        self.kernel: KernelAddress | None = None
        self.running: dict[str, str] = {}
        self.outside: OutsideChanges | None = None
        self.document = EditorDocument(path)
        self.guard = threading.RLock()  # one exchange at a time, so that versions follow each other
        self._loop = loop
        self._is_closed = False  # as it has answered itself

    @property
    def is_gone(self) -> bool:
        """Whether it does not have the notebook open any more, or its connection is closed."""
        return self._is_closed or self.connection.is_closed

    def ask(self, method: str, timeout: float = _TIMEOUT, **params: Any) -> Shape:
        """Ask the editor for something, and wait for its answer; not on the event loop.

        Raises:
            EditorSilent: it did not answer in time.
            EditorLost: its connection is gone, or it has closed the notebook.
            EditorUnfit: it refused, or its answer has the wrong shape.
        """
        call = self.connection.request(f"editor.{method}", {"path": self.path, **params})
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(call, timeout), self._loop)
        try:
            answer = future.result()
        except TimeoutError:
            raise EditorSilent(self.path, timeout) from None
        except ConnectionError:
            raise EditorLost(self.path) from None
        if "error" in answer:
            if _find_code(answer["error"]) == "NOT_OPEN":
                self._is_closed = True
                raise LostBefore(self.path)
            raise EditorUnfit(self.path, str(answer["error"])[:500])
        found = answer.get("result")
        if not isinstance(found, dict):
            raise EditorUnfit(self.path, f"it answered `{method}` with something else")
        return found


def _find_code(error: object) -> object:
    data = error.get("data") if isinstance(error, dict) else None
    return data.get("code") if isinstance(data, dict) else None


class LostBefore(EditorLost):
    """The editor was gone before it was asked to change anything."""


class _Description(NamedTuple):
    """What an editor had at a version."""

    version: int
    slots: dict[str, Slot]
    order: list[str]
    metadata: Shape
    minor: int


class EditorDocument:
    """The notebook as an editor last described it; only what has changed travels again."""

    def __init__(self, path: str) -> None:
        self.version = -1
        self.is_dirty = False
        self.is_saving = False
        self.saved_hash = ""  # of the file, as the editor knows it
        self._path = path
        self._slots: dict[str, Slot] = {}
        self._order: list[str] = []
        self._metadata: Shape = {}
        self._minor = 5
        self._state: State | None = None
        self._earlier: deque[_Description] = deque(maxlen=_MOST_EARLIER)

    def take(
        self, answer: Mapping[str, Any], grown: Mapping[str, Slot] = MappingProxyType({})
    ) -> None:
        """Take over what the editor says has changed since `version`.

        `grown` are cells of which it has said enough to know that they are so.

        Raises:
            EditorUnfit: it is not a notebook.
        """
        try:
            slots = {cell["id"]: _make_slot(cell) for cell in answer.get("cells", ())}
            slots |= grown
            order = list(answer.get("order", self._order))
            version, minor = int(answer["version"]), int(answer.get("nbformat_minor", self._minor))
            metadata = dict(answer.get("metadata", self._metadata))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EditorUnfit(self._path, f"what it says is not a notebook: {error!r}") from None
        missing = [each for each in order if each not in slots and each not in self._slots]
        if missing or len(set(order)) != len(order):
            raise EditorUnfit(self._path, f"cells are missing or doubled: {missing[:3]}")
        is_same = (
            all(each in self._slots and self._slots[each].raw == slots[each].raw for each in slots)
            and order == self._order
            and metadata == self._metadata
        )
        if version != self.version:
            self._remember()
        self.version, self.is_dirty = version, bool(answer.get("dirty"))
        self.is_saving = bool(answer.get("saving"))
        self.saved_hash = str(answer.get("hash") or "")
        if is_same and self._state is not None:
            return
        known = {**self._slots, **slots}
        self._slots = {each: known[each] for each in order}
        # An editor gives every cell an id, also those of older notebooks.
        self._order, self._metadata, self._minor = order, metadata, max(minor, 5)
        self._state = None

    def forget(self) -> None:
        """Let the editor describe all of it anew; news may still come about what it had."""
        self._remember()
        self.version = -1

    def _remember(self) -> None:
        if self.version != -1:
            parts = (self._slots, self._order, self._metadata, self._minor)
            self._earlier.append(_Description(self.version, *parts))

    def take_news(self, news: object) -> EditorDocument | None:
        """Return what the editor had when it said, unasked, what has changed `since` a version.

        It may come after a newer answer: then this document stays as it is. None if it is about a
        state that is not known any more.

        Raises:
            EditorUnfit: it is not a notebook.
        """
        if not isinstance(news, dict):
            return None
        since = news.get("since")
        if since == self.version:
            self.take(news)
            return self
        found = next((each for each in self._earlier if each.version == since), None)
        if found is None:
            return None
        then = EditorDocument(self._path)
        then.version, then._slots, then._order, then._metadata, then._minor = found
        then.take(news)
        return then

    def build(self) -> Notebook:
        """Return the notebook, in the bytes that Jupyter would save."""
        if self._state is None:
            shape = {"cells": [], "metadata": self._metadata, "nbformat": 4}
            skeleton = _dump({**shape, "nbformat_minor": self._minor}) + b"\n"
            slots = [self._slots[each] for each in self._order]
            between = [b",\n  "] * (len(slots) - 1)
            gaps = [b"\n  ", *between, b"\n "] if slots else [b""]
            self._state = State(Layout(skeleton, slots, gaps))
        return Notebook.of_state(self._state, path=self._path)


class LiveHost:
    """The `NotebookHost` of a notebook that is open in an editor.

    Several pages may have it open: the one where a person was last answers for it. Once all are
    closed it is the file, for a call that began before.
    """

    landing_interval: float | None = 0.1  # a person watches
    keeps_widgets = True

    def __init__(self, file: FileHost) -> None:
        self.file = file
        self.editors: list[Editor] = []
        self.changed: Editor | None = None  # where we changed it last: what is saved is that

    @property
    def kind(self) -> str:
        """What answers call it: a tab, as long as one has it open."""
        return "file" if self.editor is None else "tab"

    @property
    def editor(self) -> Editor | None:
        """The page that answers for the notebook; None if all are closed."""
        found, asking = [each for each in self.editors if not each.is_gone], asking_page.get()
        asked = [each for each in found if each.connection is asking]
        return max(asked or found, key=lambda editor: editor.focused, default=None)

    def add(self, editor: Editor) -> None:
        """Add a page that has the notebook open, instead of one with the same connection."""
        others = [each for each in self.editors if each.connection is not editor.connection]
        self.editors = [*others, editor]

    def merge_outside(self) -> None:
        """Merge what other programs, or other pages, have written to the file, into each page.

        Raises:
            CellwrightError: a page does not answer.
        """
        for editor in self.editors:
            if editor.outside is not None:
                editor.outside.merge_new()

    def exists(self) -> bool:
        """Whether there is a notebook."""
        return self.editor is not None or self.file.exists()

    def read(self) -> Notebook:
        """Return the notebook as the editor has it now; one that goes meanwhile is not asked."""
        while (editor := self.editor) is not None:
            try:
                return self.read_in(editor)
            except EditorLost:
                if not editor.is_gone:
                    raise
        return self.file.read()

    def read_in(self, editor: Editor) -> Notebook:
        """Return the notebook as one page has it."""
        with editor.guard:
            return self._fetch(editor)

    def read_bytes(self) -> bytes:
        """Return the bytes that Jupyter would save."""
        return self.read().to_bytes() if self.editor is not None else self.file.read_bytes()

    def signature(self) -> str | None:
        """Return the editor's number of the last change that was read.

        It does not ask the editor: the journal calls it inside a transaction.
        """
        editor = self.editor
        if editor is None:
            return self.file.signature()
        return f"tab {id(editor):x} {editor.document.version}"

    def change(
        self,
        make: Make,
        *,
        create: bool = False,
        hooks: SaveHooks = NO_HOOKS,
    ) -> Change:
        """Let `make` change the notebook, in the editor, and read it back.

        Raises:
            Conflict: a person was typing in the same cell all the time.
        """
        while (editor := self.editor) is not None:
            self.changed = editor
            try:
                return self._apply(editor, "change", make, hooks)
            except LostBefore:
                self.changed = None
        return self.file.change(make, create=create, hooks=hooks)

    def change_in(self, editor: Editor, make: Make, describe: Callable[[], Shape]) -> Change:
        """Let `make` change the notebook in one page; `describe` says what to send with it."""
        return self._apply(editor, "change", make, NO_HOOKS, describe=describe)

    def begin_landing(self, start: State) -> LiveLanding:
        """Begin to receive the outputs of a run."""
        return LiveLanding(self, start)

    def save(self) -> None:
        """Have the editor save the notebook.

        Raises:
            EditorUnfit: the editor could not.
            EditorLost: the page that has our last change is gone, and the change with it.
        """
        changed, self.changed = self.changed, None
        if changed is not None and changed.is_gone:
            raise EditorLost(changed.path)
        # The person may have gone to another page since.
        editor = changed if changed in self.editors else self.editor
        if editor is None:
            return
        with editor.guard:
            outside = editor.outside
            if outside is not None:
                outside.require_merged()  # or the editor would ask the person what to keep
            answer = editor.ask("save")
            if not answer.get("saved"):
                raise EditorUnfit(editor.path, "it did not save the notebook")
            if outside is not None:
                outside.note_saved(answer.get("news"))
                outside.merge_new()  # what it saved is what both sides agree on

    def back_up(self, state: State) -> str:
        """Write a copy beside the file, and return its path."""
        return self.file.back_up(state)

    def presence(self) -> Presence:
        """Return where a person is in the notebook."""
        editor = self.editor
        if editor is None:
            return Presence()
        return editor.presence.replace(seen=time.time() - (time.monotonic() - editor.focused))

    def kernel(self) -> KernelAddress | None:
        """Return the kernel that the editor runs the notebook in."""
        editor = self.editor
        return None if editor is None else editor.kernel

    def list_running(self) -> dict[str, str]:
        """Return the cells that a person runs, in any page."""
        return {cell: now for each in self.editors for cell, now in list(each.running.items())}

    def own(self) -> None:
        """Keep other processes from running the notebook."""
        self.file.own()

    def release(self) -> None:
        """Do nothing: the notebook stays claimed while it is open."""

    def _fetch(self, editor: Editor) -> Notebook:
        editor.document.take(editor.ask("read", since=editor.document.version))
        return editor.document.build()

    def _apply(
        self,
        editor: Editor,
        method: str,
        make: Make,
        hooks: SaveHooks,
        *,
        describe: Callable[[], Shape] = dict,
    ) -> Change:
        """Let `make` change the notebook, and send the editor what that means for its cells."""
        with editor.guard:
            for turn in range(_TRIES):
                try:
                    notebook = self._fetch(editor)
                except EditorLost:
                    if editor.is_gone:
                        raise LostBefore(editor.path) from None
                    raise
                change = make(notebook)
                try:
                    hooks.announce(change)
                    # An editor that does not take what is new of the outputs gets all of them.
                    grows = method == "land" and turn == 0
                    more = describe()
                    is_applied = not (change or more) or self._send(
                        editor, method, change, more, grows=grows
                    )
                except BaseException:
                    hooks.failed()
                    raise
                if is_applied:
                    hooks.saved()
                    return change
                hooks.failed()
        raise Conflict(f"{editor.path} is being changed in its editor all the time")

    def _send(
        self, editor: Editor, method: str, change: Change, more: Shape, *, grows: bool
    ) -> bool:
        """Send a change; returns whether the editor took it, and it is there."""
        # A cell that is moved is made anew: the person's cursor, or the rest of its output, is gone.
        active = editor.presence.active
        pinned = {*editor.running, *([active] if active else ())}
        landed = editor.document.build().state if grows else None
        edits = list(describe_edits(change, pinned, landed))
        if grows and not self._send_ahead(editor, edits):
            return False
        answer = editor.ask(
            method,
            request=uuid4().hex,
            since=editor.document.version,
            edits=edits,
            **more,
        )
        grown = _confirm_growth(answer, change)
        if grown is None:
            editor.document.forget()  # what is there is not what was to be there
            return False
        editor.document.take(answer, grown)
        if not answer.get("applied"):
            return False
        found = {slot.facts.id: slot for slot in editor.document.build().state.layout.slots}
        if list(change.origins) != list(range(len(change.before.layout.slots))):
            order = [slot.facts.id for slot in change.after.layout.slots]
            if [each for each in order if each in found] != [
                each for each in found if each in order
            ]:
                raise EditorUnfit(editor.path, "its cells are not in the order that was wanted")
        # A cell that is only written in another way was not sent, and may have been typed in since.
        cells = (edit.get("cell") for edit in edits)
        sent = {each["id"] if isinstance(each, dict) else each for each in cells}
        for cell in change.cells:
            if cell.after is None:
                continue
            wanted = change.after.layout.slots[cell.after]
            if wanted.facts.id not in sent:
                continue
            there = found.get(wanted.facts.id)
            if there is None or there.hash != wanted.hash:
                problem = f"cell {cell.handle} is not there as it should be after a change"
                raise EditorUnfit(editor.path, problem)
        return True

    def _send_ahead(self, editor: Editor, edits: list[Shape]) -> bool:
        """Land long texts in pieces, all but their ends, which are left in `edits`."""
        document = editor.document
        try:
            for piece in take_pieces(edits):
                request, since = uuid4().hex, document.version
                answer = editor.ask("land", request=request, since=since, edits=[piece])
                document.take(answer)  # the end of the text will confirm what became of its cell
                if not answer.get("applied"):
                    document.forget()
                    return False
        except BaseException:
            document.forget()
            raise
        return True


class LiveLanding:
    """Where the outputs of one run land: in the editor, and in the file once that is closed.

    What has landed in the editor and was not saved there would be lost with its page; so it is
    landed in the file again.
    """

    needs_end = True

    def __init__(self, host: LiveHost, start: State) -> None:
        self._host = host
        self._start = start
        self._unsaved: list[tuple[Make, SaveHooks]] = []
        self._in_file: FileLanding | None = None
        self.left: str | None = None
        self.written: State | None = None

    def land(
        self,
        make: Make,
        *,
        is_last: bool = True,
        hooks: SaveHooks = NO_HOOKS,
    ) -> None:
        """Let `make` put outputs into the notebook."""
        editor = self._host.editor
        if self._in_file is None and editor is not None:

            def keep_until_saved() -> None:
                if is_last:
                    self._unsaved.append((make, hooks))
                hooks.saved()

            noting, tell = note_written(
                self,
                make,
                SaveHooks(hooks.saving, keep_until_saved, hooks.failed),
                self._host.signature,
            )
            self._host.changed = editor
            try:
                self._host._apply(editor, "land", noting, tell)  # noqa: SLF001  # a part of the host
            except EditorLost:
                pass
            else:
                return
        if self._in_file is None or self._unsaved:
            self._move_to_file()
        self._land_in_file(make, is_last=is_last, hooks=hooks)

    def end(self) -> None:
        """Have the editor save the notebook; if it is gone, what it had goes into the file.

        Raises:
            EditorSilent, EditorUnfit: it has not saved what landed, which it still shows.
        """
        if self._unsaved:
            try:
                if self._in_file is not None or self._host.editor is None:
                    raise EditorLost(self._host.file.path)  # noqa: TRY301  # as if it went now
                self._host.save()
            except EditorLost:
                self._move_to_file()
            finally:
                self._unsaved.clear()
        if self._in_file is not None:
            self._in_file.end()

    def _move_to_file(self) -> None:
        """From now on land in the file, all that is not there yet first."""
        if self._in_file is None:
            self._in_file = self._host.file.begin_landing(self._start)
        while self._unsaved:
            make, hooks = self._unsaved[0]
            self._land_in_file(make, hooks=hooks)
            del self._unsaved[0]

    def _land_in_file(
        self,
        make: Make,
        *,
        is_last: bool = True,
        hooks: SaveHooks = NO_HOOKS,
    ) -> None:
        landing = self._in_file
        assert landing is not None  # noqa: S101  # `_move_to_file` made it

        def note_and_tell() -> None:
            self.left, self.written = landing.left, landing.written
            hooks.saved()

        landing.land(
            make, is_last=is_last, hooks=SaveHooks(hooks.saving, note_and_tell, hooks.failed)
        )


# -- a change, as messages describe it ----------------------------------------------------------


def describe_edits(change: Change, pinned: set[str], there: State | None = None) -> Iterator[Shape]:
    """Yield the steps that make a change in an editor, by cell id, in their order.

    Cells in `pinned` are not moved if moving the others does as well: a person is in them.
    `there` is what the editor has, if outputs land: if they have only become more, only what is
    new is sent. A change of a running cell begins before its first outputs, not with its last.
    """
    before, after = change.before.layout, change.after.layout
    landed = {} if there is None else {slot.facts.id: slot for slot in there.layout.slots}
    kept = {origin for origin in change.origins if origin is not None}
    for index, slot in enumerate(before.slots):
        if index not in kept:
            yield {"edit": "delete", "cell": slot.facts.id}
    still = _find_unmoved(
        change.origins, {i for i, slot in enumerate(before.slots) if slot.facts.id in pinned}
    )
    previous: str | None = None
    for slot, origin in zip(after.slots, change.origins, strict=True):
        name = slot.facts.id
        if origin is None:
            yield {"edit": "insert", "after": previous, "cell": json.loads(slot.raw)}
        else:
            if origin not in still:
                yield {"edit": "move", "cell": name, "after": previous}
            if slot.raw != (old := before.slots[origin]).raw:
                shapes = json.loads(old.raw), json.loads(slot.raw)
                now = json.loads(landed[name].raw) if name in landed else None
                yield from _describe_cell(str(name), *shapes, now)
        previous = name
    if before.skeleton != after.skeleton:
        yield {"edit": "metadata", "metadata": json.loads(after.skeleton).get("metadata", {})}


def _describe_cell(name: str, old: Shape, new: Shape, there: Shape | None) -> Iterator[Shape]:
    """Yield the steps for one cell that is there before and after."""
    known = ("source", "metadata", "outputs", "execution_count")
    if {**old, **dict.fromkeys(known)} != {**new, **dict.fromkeys(known)}:
        yield {"edit": "replace", "cell": new}
        return
    source, changed = _join(old.get("source")), _join(new.get("source"))
    if source != changed:
        yield {"edit": "source", "cell": name, "splices": make_splices(source, changed)}
    if old.get("metadata") != new.get("metadata"):
        yield {"edit": "metadata", "cell": name, "metadata": new.get("metadata", {})}
    if any(old.get(key) != new.get(key) for key in ("outputs", "execution_count")):
        outputs, count = new.get("outputs", []), new.get("execution_count")
        growth = None if there is None else _describe_growth(there.get("outputs", []), outputs)
        edit = {"edit": "outputs", "outputs": outputs} if growth is None else growth
        yield {**edit, "cell": name, "execution_count": count}


def _describe_growth(old: list[Shape], new: list[Shape]) -> Shape | None:
    """Describe what outputs have got more; None if that is not all that has become of them.

    A page moves its cursor in a stream at a backspace and a carriage return, as a terminal does:
    what such a text becomes, the page alone knows.
    """
    if not old or len(new) < len(old) or old[:-1] != new[: len(old) - 1]:
        return None
    last, now, at, text = old[-1], new[len(old) - 1], None, ""
    if last.get("output_type") == "stream":
        before, after = _join(last.get("text")), _join(now.get("text"))
        if {**last, "text": ""} != {**now, "text": ""} or not after.startswith(before):
            return None
        at, text = _count_units(before), after[len(before) :]
    elif last != now:
        return None
    if "\r" in text or "\b" in text:
        return None
    return {"edit": "grow", "kept": len(old), "at": at, "text": text, "outputs": new[len(old) :]}


def take_pieces(edits: list[Shape]) -> Iterator[Shape]:
    """Yield the beginnings of long texts that land, a piece in each step, and keep their ends."""
    for place, edit in enumerate(edits):
        shown = edit.get("outputs")
        if edit["edit"] not in ("outputs", "grow") or not isinstance(shown, list):
            continue
        text = _join(shown[-1].get("text")) if shown else edit.get("text", "")
        if len(text) <= LONGEST_PIECE or "\r" in text or "\b" in text:
            continue
        rest, at = {**edit, "edit": "grow", "outputs": []}, 0
        if shown:
            if shown[-1].get("output_type") != "stream":
                continue
            head = [*shown[:-1], {**shown[-1], "text": text[:LONGEST_PIECE]}]
            yield {**edit, "outputs": head}
            text, at = text[LONGEST_PIECE:], _count_units(text[:LONGEST_PIECE])
            rest["kept"] = edit.get("kept", 0) + len(shown)
        else:
            at = edit["at"]
        while len(text) > LONGEST_PIECE:
            yield {**rest, "at": at, "text": text[:LONGEST_PIECE]}
            text, at = text[LONGEST_PIECE:], at + _count_units(text[:LONGEST_PIECE])
        edits[place] = {**rest, "at": at, "text": text}


def _confirm_growth(answer: Mapping[str, Any], change: Change) -> dict[str, Slot] | None:
    """Return the cells whose outputs have grown as they were to; None if one has not.

    Of such a cell the editor says how much is there now, and how it ends.
    """
    wanted = {slot.facts.id: slot for slot in change.after.layout.slots}
    found: dict[str, Slot] = {}
    try:
        for facts in answer.get("grown", ()):
            cell = json.loads(wanted[facts["id"]].raw)
            last = cell["outputs"][-1]
            text = _join(last["text"]) if last["output_type"] == "stream" else None
            length = None if text is None else _count_units(text)
            here = (len(cell["outputs"]), length, cell.get("execution_count"))
            there = (facts["outputs"], facts["length"], facts["execution_count"])
            tail = facts["tail"]
            if here != there or not (text or "").endswith(tail) or (text and not tail):
                return None
            found[facts["id"]] = _make_slot(cell)
    except (KeyError, IndexError, TypeError, AttributeError):
        return None  # it says something else than it was asked
    return found


def make_splices(old: str, new: str) -> list[Shape]:
    """Return what turns one text into another, as few characters as possible, first to last.

    Places are counted in UTF-16 units of the old text, as JavaScript counts.
    """
    ours, theirs = old.splitlines(keepends=True), new.splitlines(keepends=True)
    steps: Sequence[tuple[str, int, int, int, int]]
    if max(len(ours), len(theirs)) <= _MOST_LINES:
        steps = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    else:
        steps = [("replace", 0, len(ours), 0, len(theirs))]
    splices: list[Shape] = []
    for kind, i, j, k, m in steps:
        if kind == "equal":
            continue
        begin = sum(map(len, ours[:i]))
        was, becomes = "".join(ours[i:j]), "".join(theirs[k:m])
        head = _count_common(was, becomes)
        tail = _count_common(was[head:][::-1], becomes[head:][::-1])
        start = _count_units(old[: begin + head])
        end = start + _count_units(was[head : len(was) - tail])
        splices.append({"start": start, "end": end, "text": becomes[head : len(becomes) - tail]})
    return splices


def _count_common(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))


def _count_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _find_unmoved(origins: Sequence[int | None], pinned: set[int]) -> set[int]:
    """Return the old places of the cells that stay while the others move around them.

    These are the pinned ones, as far as their order allows it, and as many others as possible.
    """
    places = [origin for origin in origins if origin is not None]
    fixed = longest_increasing([place for place in places if place in pinned])
    still, low, between = set(fixed), -1, list[int]()
    for place in (*places, len(places) + len(fixed) + max(places, default=0)):
        if place in fixed or place > max(places, default=0):
            still |= longest_increasing([each for each in between if low < each < place])
            low, between = place, []
        else:
            between.append(place)
    return still


# -- cells, as Jupyter saves them ---------------------------------------------------------------


def rewrite(notebook: Notebook) -> Notebook:
    """Return a notebook as an editor that has read it describes it, byte for byte.

    Programs write the same text as one string or as lines; compared with what an editor says,
    such a cell must not look changed.
    """
    layout = notebook.state.layout
    document = EditorDocument(notebook.path or "")
    try:
        cells = [json.loads(slot.raw) for slot in layout.slots]
        order = [cell["id"] for cell in cells]
        document.take({**json.loads(layout.skeleton), "cells": cells, "order": order, "version": 0})
    except (EditorUnfit, KeyError, TypeError, ValueError):
        return notebook  # an old one, without ids, or a broken one
    return document.build()


def _make_slot(cell: Mapping[str, Any]) -> Slot:
    """Make the bytes of a cell, as Jupyter would save it."""
    shape = {**cell, "source": _split(_join(cell.get("source")))}
    if "trusted" in shape.get("metadata", {}):  # what a page knows of it is not saved
        shape["metadata"] = {k: v for k, v in shape["metadata"].items() if k != "trusted"}
    if "attachments" in shape:
        shape["attachments"] = {
            name: _split_bundle(bundle) for name, bundle in shape["attachments"].items()
        }
    if shape.get("cell_type") == "code":
        shape["outputs"] = [_split_output(output) for output in shape.get("outputs", ())]
        shape.setdefault("execution_count", None)
    return Slot.of(_dump(shape).replace(b"\n", b"\n  "))


def _split_output(output: Mapping[str, Any]) -> Shape:
    shape = dict(output)
    if "data" in shape:
        shape["data"] = _split_bundle(shape["data"])
    if shape.get("output_type") == "stream":
        shape["text"] = _split(_join(shape.get("text")))
    return shape


def _split_bundle(bundle: Mapping[str, Any]) -> Shape:
    return {
        mime: _split(value)
        if isinstance(value, str) and (mime.startswith("text/") or mime in _SPLIT_MIMES)
        else value
        for mime, value in bundle.items()
    }


_SPLIT_MIMES = frozenset({"application/javascript", "image/svg+xml"})


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _join(text: object) -> str:
    return text if isinstance(text, str) else "".join(text or ())  # type: ignore[arg-type]


def _dump(shape: Mapping[str, Any]) -> bytes:
    text = json.dumps(shape, indent=1, ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8", "surrogatepass")
