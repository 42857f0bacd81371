"""A notebook in memory, for tests and for programs that have no file."""

from __future__ import annotations

import threading
from copy import copy

from cellwright.document.notebook import Notebook
from cellwright.errors import NotebookNotFound
from cellwright.workspace.hosts.host import NO_HOOKS, ClosedHost, note_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.document.change import Change, State
    from cellwright.workspace.hosts.host import Make, SaveHooks


class MemoryHost(ClosedHost):
    """A `NotebookHost` without a file; `notebook` is None until it is created."""

    kind = "memory"

    def __init__(self, notebook: Notebook | None = None, *, name: str = "memory.ipynb") -> None:
        self.name = name
        self.copies: dict[str, bytes] = {}
        self._notebook = notebook
        self._version = 1 if notebook is not None else 0
        self._lock = threading.RLock()

    def exists(self) -> bool:
        """Whether there is a notebook."""
        return self._notebook is not None

    def read(self) -> Notebook:
        """Return a copy of the notebook."""
        with self._lock:
            if self._notebook is None:
                raise NotebookNotFound(self.name)
            return copy(self._notebook)

    def read_bytes(self) -> bytes:
        """Return the notebook's bytes."""
        return self.read().to_bytes()

    def signature(self) -> str | None:
        """Return the number of the last change; None if there is no notebook."""
        return f"memory {self._version}" if self._notebook is not None else None

    def change(
        self,
        make: Make,
        *,
        create: bool = False,
        hooks: SaveHooks = NO_HOOKS,
    ) -> Change:
        """Let `make` change the notebook, all or nothing."""
        with self._lock:
            if self._notebook is None and not create:
                raise NotebookNotFound(self.name)
            notebook = Notebook(path=self.name) if self._notebook is None else self.read()
            change = make(notebook)
            try:
                hooks.announce(change)
                notebook.to_bytes()
            except BaseException:
                hooks.failed()
                raise
            if change or self._notebook is None:
                self._version += 1
            self._notebook = notebook
            hooks.saved()
            return change

    def begin_landing(self, start: State) -> MemoryLanding:
        """Begin to receive the outputs of a run."""
        del start
        return MemoryLanding(self)

    def back_up(self, state: State) -> str:
        """Keep a copy in `copies`, and return its name."""
        name = f"{self.name}.backup-{len(self.copies) + 1}"
        self.copies[name] = state.to_bytes()
        return name


class MemoryLanding:
    """Where the outputs of one run land in memory."""

    needs_end = False

    def __init__(self, host: MemoryHost) -> None:
        self._host = host
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
        del is_last
        make, hooks = note_written(self, make, hooks, self._host.signature)
        self._host.change(make, hooks=hooks)

    def end(self) -> None:
        """Finish: there is nothing to do."""
