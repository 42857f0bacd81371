"""What other programs write to the file of a notebook that is open in an editor."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque

from cellwright.document.merge import merge
from cellwright.document.notebook import Notebook
from cellwright.engine.live import rewrite
from cellwright.errors import CellwrightError, EditorUnfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cellwright.document.change import Change, State
    from cellwright.engine.live import Editor, LiveHost

    Recall = Callable[[str], Notebook | None]


class OutsideChanges:
    """Merges outside changes of the file into one page of an editor, cell by cell.

    The base is what page and file last agreed on: the file when it was opened, or as the page
    last saved it. Cells that both sides changed stay as the person has them, and are shown with
    both versions. What another page saves comes here in the same way.
    """

    def __init__(self, host: LiveHost, editor: Editor, recall: Recall = lambda _: None) -> None:
        """Begin; `recall` finds what the file held by the hash of its bytes, if it is on record."""
        self._host = host
        self._editor = editor
        self._recall = recall
        self._seen: str | None = None
        self._base: Notebook | None = None
        self._saved: tuple[str, Notebook] | None = None  # what the page saved, if the file differs
        self._news: deque[object] = deque()
        self._is_lost = False  # the file has changed, and what it held before is not known
        self._first = self._read_file()

    def merge_new(self) -> None:
        """Look whether the file has changed, and merge what another program wrote.

        Raises:
            CellwrightError: the editor does not answer.
        """
        host, editor = self._host, self._editor
        if editor.is_gone or (not self._news and host.file.signature() == self._seen):
            return
        # The file is read while no one else looks: merged into a newer base, an older file would
        # take back what the person has saved since.
        with editor.guard:
            self._take_news()
            now = host.file.signature()
            if now is None or now == self._seen:
                return
            found = self._read_file()
            if found is None:
                return  # it is being written, or broken: the next look tells
            page = host.read_in(editor)
            self._take_news()  # which the page has said before it answered
            if editor.document.is_saving or host.file.signature() != now:
                return
            digest, known = _hash(found), editor.document.saved_hash
            base = found if digest == known else self._base or self._find_base(known)
            if self._saved is not None and self._saved[0] == known and rewrite(found) is not found:
                base = self._saved[1]
            if base is None and not editor.document.is_dirty:
                base = page  # it has what it read, whatever that was
            if base is not None:
                if base is not found:
                    self._merge(base, found, digest)
                self._base, self._saved = found, None
            # A server that tells no hashes compares times, and we cannot.
            self._seen, self._is_lost = now, base is None and known != ""

    def require_merged(self) -> None:
        """Merge what is new, before an agent saves.

        Raises:
            EditorUnfit: the file was deleted, or cannot be merged; the person decides what to keep
                when they save.
        """
        if self._is_lost:
            self._seen = None  # they may have decided
        self.merge_new()
        was_there = self._first is not None or self._seen is not None
        if was_there and self._host.file.signature() is None:
            raise EditorUnfit(
                self._editor.path, "its file was deleted, and only a person saves it anew"
            )
        if self._is_lost:
            problem = "its file was changed, and the person has not chosen yet what to keep"
            raise EditorUnfit(self._editor.path, problem)

    def note_saved(self, news: object) -> None:
        """Note what the page says it has just saved, which another program may have replaced since.

        The next look at the file takes it into account, also one for an agent's save. `news` is what
        had changed in the page since a version that we know when the save began, as it answers `read`.
        """
        self._news.append(news)

    def _take_news(self) -> None:
        """Find out what the page has saved; the caller has the guard.

        The page reads the hash of the file after it has saved: if that is not the hash of what it
        has, a program has changed the file in between, and the page does not have that change.
        """
        document = self._editor.document
        while self._news:
            then = None
            with contextlib.suppress(CellwrightError):  # what it says is not a notebook
                then = document.take_news(self._news.popleft())
            if then is None or then.saved_hash != document.saved_hash:
                continue  # it is about a state that we do not know, or a file that was replaced since
            saved = then.build()
            if _hash(saved) == then.saved_hash:  # nothing was typed since
                self._base, self._seen = saved, None
            elif not then.is_dirty:
                self._saved, self._seen = (then.saved_hash, saved), None

    def _find_base(self, known: str) -> Notebook | None:
        """Find the file as a page knows it that was not with us until now, by its hash.

        If it is not found, nothing can be merged; the page asks the person before it saves.
        """
        if self._first is not None and _hash(self._first) == known:
            return self._first
        return self._recall(known)

    def _merge(self, base: Notebook, found: Notebook, digest: str) -> None:
        editor = self._editor
        conflicts: list[dict[str, str | None]] = []
        was, then = rewrite(base), rewrite(found)

        def make(notebook: Notebook) -> Change:
            # The person may have typed since: then it is merged anew.
            merged = merge(was, notebook, then)
            conflicts[:] = [
                {"cell": each.handle, "current": each.current, "other": each.other}
                for each in merged.conflicts
            ]
            return notebook.become(merged.notebook.state)

        # In one step with the change, or a person who saves right then would be asked. The page
        # knows whether it has something to save: the person may type while this is on its way.
        self._host.change_in(editor, make, lambda: {} if conflicts else {"hash": digest})
        if conflicts:
            editor.ask("merged", hash=digest, conflicts=conflicts)

    def _read_file(self) -> Notebook | None:
        try:
            found = self._host.file.read()
        except CellwrightError:
            return None
        return None if found.needs_upgrade else found


def find_saved(states: Iterable[State], digest: str) -> Notebook | None:
    """Return the notebook whose bytes have this hash, if it is among these states."""
    found = (Notebook.of_state(state) for state in states)
    return next((notebook for notebook in found if _hash(notebook) == digest), None)


def _hash(notebook: Notebook) -> str:
    return hashlib.sha256(notebook.to_bytes()).hexdigest()
