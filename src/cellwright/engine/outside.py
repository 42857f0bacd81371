"""What other programs write to the file of a notebook that is open in an editor."""

from __future__ import annotations

import hashlib

from cellwright.document.merge import merge
from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import Change
    from cellwright.document.notebook import Notebook
    from cellwright.engine.live import LiveHost


class OutsideChanges:
    """Merges outside changes of the file into the editor, cell by cell.

    The base is what editor and file last agreed on: the file when it was opened, or as the editor
    last saved it. Cells that both sides changed stay as the person has them, and are shown with
    both versions.
    """

    def __init__(self, host: LiveHost) -> None:
        self._host = host
        self._seen = host.file.signature()
        self._base = self._read_file()

    def merge_new(self) -> None:
        """Look whether the file has changed, and merge what another program wrote.

        Raises:
            CellwrightError: the editor does not answer.
        """
        host = self._host
        editor, now = host.editor, host.file.signature()
        if editor is None or now is None or now == self._seen:
            return
        found = self._read_file()
        if found is None:
            return  # it is being written, or broken: the next look tells
        with editor.guard:
            current = host.read()
            if editor.document.is_saving:
                return
            digest = hashlib.sha256(found.to_bytes()).hexdigest()
            if digest != editor.document.saved_hash and self._base is not None:
                self._merge(found, current, digest)
            self._base, self._seen = found, now

    def _merge(self, found: Notebook, current: Notebook, digest: str) -> None:
        host, base = self._host, self._base
        assert base is not None  # noqa: S101  # the caller looked
        merged = merge(base, current, found)

        def make(notebook: Notebook) -> Change:
            # The person may have typed since: then it is merged anew.
            return notebook.become(merge(base, notebook, found).notebook.state)

        host.change(make)
        editor = host.editor
        if editor is not None:
            conflicts = [
                {"cell": each.handle, "current": each.current, "other": each.other}
                for each in merged.conflicts
            ]
            editor.ask("merged", hash=digest, conflicts=conflicts)

    def _read_file(self) -> Notebook | None:
        try:
            found = self._host.file.read()
        except CellwrightError:
            return None
        return None if found.needs_upgrade else found
