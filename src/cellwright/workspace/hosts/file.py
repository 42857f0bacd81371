"""A notebook in a file: read losslessly, changed under its lock and lease, kept trusted.

The bytes on disk are the truth. Also here: `read`, `write` and `edit` of the package's root,
which are the file alone, without history.
"""

from __future__ import annotations

import os

from cellwright.config.defaults import LOCK_TIMEOUT
from cellwright.document import files
from cellwright.errors import NotebookNotFound
from cellwright.journal.place import signature
from cellwright.workspace.hosts.host import NO_HOOKS, ClosedHost, SaveHooks, note_written

# Now: a save that began opens no module.
from cellwright.workspace.hosts.leases import SharedLease
from cellwright.workspace.paths import hold_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from cellwright.config.settings import Settings
    from cellwright.document.change import Change, State
    from cellwright.document.disk.paths import PinnedPath
    from cellwright.document.edits import Edit
    from cellwright.document.files import PathLike, Recent, Saved
    from cellwright.document.notebook import Notebook
    from cellwright.document.snapshot import Snapshot
    from cellwright.workspace.hosts.host import Make
    from cellwright.workspace.hosts.leases import Leases
    from cellwright.workspace.hosts.trust import Notary

# A save that others follow does not wait long for another writer.
_SHORT_WAIT = 1.0


class FileHost(ClosedHost):
    """The `NotebookHost` of a notebook in a file.

    Args:
        path: where it is.
        real: the same path without links.
        root: the folder that the path must not leave, if any.
        name: what the caller calls it, for errors.
        settings: the largest file, and how long to wait for a lock.
        leases: which process runs which notebook.
        recent: notebooks that were read lately.
    """

    kind = "file"

    def __init__(
        self,
        path: str,
        real: str,
        *,
        root: str | None,
        name: str,
        settings: Settings,
        leases: Leases,
        recent: Recent,
    ) -> None:
        self.path = path
        self.real = real
        self._root = root
        self._name = name
        self._settings = settings
        self._leases = leases
        self._recent = recent

    def exists(self) -> bool:
        """Whether there is a file, or a link."""
        return os.path.lexists(self.path)

    def read(self) -> Notebook:
        """Return the notebook as the file has it now."""
        try:
            with self._open_folder() as place:
                return files.read(
                    self.path,
                    max_bytes=self._settings.max_file_bytes,
                    reached=place,
                    recent=self._recent,
                )
        except NotebookNotFound as error:
            raise error.under(self._name) from None

    def read_bytes(self) -> bytes:
        """Return the bytes of the file, whether it is a notebook or not."""
        with self._open_folder() as place:
            return files.read_bytes(
                self.path, max_bytes=self._settings.max_file_bytes, reached=place
            )

    def signature(self) -> str | None:
        """Return what changes whenever the file does; None if there is none."""
        return signature(self.real)

    def change(
        self,
        make: Make,
        *,
        create: bool = False,
        hooks: SaveHooks = NO_HOOKS,
    ) -> Change:
        """Let `make` change the notebook, and save it under its lock.

        Raises:
            OwnedElsewhere: another process runs the notebook.
        """
        with self._leases.share(self.real):
            return self._update(make, create=create, hooks=hooks)

    def begin_landing(self, start: State) -> FileLanding:
        """Begin to receive the outputs of a run."""
        return FileLanding(self, start)

    def back_up(self, state: State) -> str:
        """Write a copy as `x.backup.ipynb`, or `x.backup-2.ipynb` and so on; return its path."""
        from cellwright.document.notebook import Notebook

        stem, suffix = os.path.splitext(self.path)  # noqa: PTH122  # hot path: no pathlib
        number = 1
        while True:
            name = f"{stem}.backup{f'-{number}' if number > 1 else ''}{suffix}"
            with hold_folder(name, self._root, name) as place:
                if not os.path.lexists(place or name):
                    copy = Notebook()
                    copy.become(state)
                    files.write(copy, name, reached=place)
                    return name
            number += 1

    def own(self) -> None:
        """Take the lease, which keeps other processes from running the notebook."""
        self._leases.own(self.real)

    def release(self) -> None:
        """Give the lease up."""
        self._leases.release(self.real)

    def _open_folder(self) -> AbstractContextManager[PinnedPath | None]:
        """Hold the file's folder open, so that the path cannot be redirected meanwhile."""
        return hold_folder(self.path, self._root, self._name)

    def _update(
        self,
        make: Make,
        *,
        create: bool = False,
        hooks: SaveHooks,
        wait: float | None = None,
    ) -> Change:
        settings = self._settings
        try:
            with self._open_folder() as place:
                _, change = files.update(
                    self.path,
                    make,
                    create=create,
                    saving=hooks.saving,
                    saved=hooks.saved,
                    failed=hooks.failed,
                    max_bytes=settings.max_file_bytes,
                    lock_timeout=settings.lock_timeout if wait is None else wait,
                    reached=place,
                    recent=self._recent,
                )
        except NotebookNotFound as error:
            raise error.under(self._name) from None
        return change


class FileLanding:
    """Where the outputs of one run land: in the file, which stays trusted if it was.

    If Jupyter's notary had signed the notebook when the run began, and only our outputs came to
    it since, it is signed again at the end.
    """

    def __init__(self, host: FileHost, start: State) -> None:
        self._host = host
        self._start = start
        self._is_only_ours = True
        self._notary: Notary | None = None
        self._has_looked = self._is_unsigned = False
        self.left: str | None = None
        self.written: State | None = None

    def land(
        self,
        make: Make,
        *,
        is_last: bool = True,
        hooks: SaveHooks = NO_HOOKS,
    ) -> None:
        """Let `make` put outputs into the notebook, and save it."""
        host = self._host
        make, hooks = note_written(self, make, hooks, host.signature)
        self._look_for_notary()

        def make_and_compare(notebook: Notebook) -> Change:
            if self._is_only_ours:
                known = self.written or self._start
                self._is_only_ours = known.holds_the_same(notebook.state)
            return make(notebook)

        host._update(  # noqa: SLF001  # a part of the host; the run holds the lease
            make_and_compare,
            hooks=hooks,
            wait=None if is_last else _SHORT_WAIT,
        )
        if is_last and self._notary is not None and self._is_unsigned and self._is_only_ours:
            self._notary.leave_unsigned(self.left)

    @property
    def needs_end(self) -> bool:
        """Whether the notebook may have to be signed."""
        return self._notary is not None and not self._is_unsigned

    def end(self) -> None:
        """Sign the notebook if it was signed before and only our outputs came to it."""
        notary = self._notary
        if notary is None or not self._is_only_ours:
            return
        if self._is_unsigned or not notary.has_signed(self._start.to_bytes()):
            notary.leave_unsigned(self.left)
        elif self.written is not None:
            notary.sign(self.written.to_bytes())

    def _look_for_notary(self) -> None:
        """Before the first save, find out whether there is a notary and whether it knows the file."""
        if self._has_looked:
            return
        from cellwright.workspace.hosts.trust import Notary

        self._has_looked = True
        self._notary = Notary.find()
        if self._notary is not None:
            self._is_unsigned = self._notary.is_left_unsigned(self._host.signature())


# -- the functions of the package's root --------------------------------------------------------


def write(
    notebook: Notebook,
    path: PathLike | None = None,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
) -> Saved:
    """Write a notebook, atomically and durably, and read it back.

    `path` may be left out for the file it was read from; if another program changed that file
    meanwhile, nothing is written. Another file is replaced whatever it holds.

    Raises:
        Conflict: the file was changed since it was read.
        OwnedElsewhere: another process runs the notebook.
        NotSaved: the system refused, and the file is untouched.
        DurabilityUnconfirmed: the new bytes are in place, but may not survive a power cut.
    """
    place = path if path is not None else notebook.origin.path if notebook.origin else notebook.path
    if place is None:
        return files.write(notebook)  # which says that it has no path
    real = files.find_real_path(os.fspath(place))
    with SharedLease(real, is_optional=True):
        return files.write(
            notebook, path, real=real, break_hard_links=break_hard_links, lock_timeout=lock_timeout
        )


def edit(
    path: PathLike,
    edits: Edit | Mapping[str, Any] | Sequence[Edit | Mapping[str, Any]],
    *,
    base: Snapshot | str | None = None,
    create: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
) -> tuple[Notebook, Change]:
    """Read a file, apply edits and save it, with no other writer of ours in between.

    Raises:
        OwnedElsewhere: another process runs the notebook.
    """
    real = files.find_real_path(os.fspath(path))
    with SharedLease(real, is_optional=True):
        return files.edit(
            path,
            edits,
            real=real,
            base=base,
            create=create,
            lock_timeout=lock_timeout,
            break_hard_links=break_hard_links,
        )
