"""Whether the user trusted a notebook when a run began, and what that means for what came of it."""

from __future__ import annotations

from cellwright.journal.place import signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import State
    from cellwright.workspace.run_file import RunFile
    from cellwright.workspace.trust import Notary


class RunTrust:
    """Sees to it that a notebook which was signed stays so; to be used by one thread at a time.

    `start` is what the notebook held when the run began.
    """

    def __init__(self, file: RunFile, start: State) -> None:
        self._file = file
        self._start = start
        self._notary: Notary | None = None
        self._has_looked = self._is_unsigned = False

    def look(self, real: str) -> None:
        """Before the first save: is there a notary, and does it know the file?"""
        if self._has_looked:
            return
        from cellwright.workspace.trust import Notary

        self._has_looked = True
        self._notary = Notary.find()
        if self._notary is not None:
            self._is_unsigned = self._notary.is_left_unsigned(signature(real))

    def saved(self) -> None:
        """What came of an unsigned notebook is not signed either."""
        if self._notary is not None and self._is_unsigned and self._file.is_only_ours:
            self._notary.leave_unsigned(self._file.left)

    @property
    def may_sign(self) -> bool:
        """Whether there is anything to see to when the run is over."""
        return self._notary is not None and not self._is_unsigned

    def end(self) -> None:
        """If the user trusted what was there, and all that came to it is ours, so be it."""
        notary, file = self._notary, self._file
        if notary is None or not file.is_only_ours:
            return
        if self._is_unsigned or not notary.has_signed(self._start.to_bytes()):
            notary.leave_unsigned(file.left)
        elif file.written is not None:
            notary.sign(file.written.to_bytes())
