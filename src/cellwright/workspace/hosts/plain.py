"""A file that is not a notebook, as a notebook of one raw cell: so it has a history, too.

No cell means that there is no file. All verbs on history work on it as on any notebook.
"""

# The files are reached by descriptors of their folders, which pathlib cannot do.
# ruff: noqa: PTH108, PTH119
from __future__ import annotations

import contextlib
import os
import re

from cellwright.document.costs import blake2b
from cellwright.document.disk.load import is_stored, load_file
from cellwright.document.disk.lock import FileLock
from cellwright.document.disk.save import replace_file
from cellwright.document.notebook import Notebook
from cellwright.errors import (
    Conflict,
    DurabilityUnconfirmed,
    KernelCannot,
    NotebookNotFound,
    NotSaved,
    OutsideRoot,
    UnreadableFile,
)
from cellwright.journal.place import signature
from cellwright.workspace.hosts.host import NO_HOOKS, ClosedHost
from cellwright.workspace.paths import hold_folder, real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cellwright.config.settings import Settings
    from cellwright.document.change import Change, State
    from cellwright.workspace.hosts.host import Landing, Make, SaveHooks

_ATTEMPTS = 5
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_not_in_id = re.compile(r"[^A-Za-z0-9_-]+")


class PlainFileHost(ClosedHost):
    """The `NotebookHost` of a text file; the arguments are those of `FileHost`."""

    kind = "file"

    def __init__(
        self, path: str, real: str, *, root: str | None, name: str, settings: Settings
    ) -> None:
        self.path = path
        self.real = real
        self._root = root
        self._name = name
        self._settings = settings
        # Several files may be changed in one turn of a chat, where cells are told apart by id.
        stem = _not_in_id.sub("-", os.path.basename(real))[:48].strip("-")
        self.cell = f"{stem}-{blake2b(os.fsencode(real), digest_size=2).hexdigest()}"

    def exists(self) -> bool:
        """Whether there is a file, or a link."""
        return os.path.lexists(self.path)

    def read(self) -> Notebook:
        """Return the file as a notebook; raises `UnreadableFile` unless it is text in UTF-8."""
        return self._wrap(self.read_bytes())

    def read_bytes(self) -> bytes:
        """Return the bytes of the file."""
        with hold_folder(self.path, self._root, self._name) as place:
            return self._load(place or self.real)

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
        """Let `make` change the text, and save it under the file's lock."""
        if create:
            self._make_folders()
        with (
            hold_folder(self.path, self._root, self._name) as place,
            FileLock(self.real, self._settings.lock_timeout),
        ):
            for attempt in range(_ATTEMPTS):
                try:
                    old: bytes | None = self._load(place or self.real)
                except NotebookNotFound:
                    if not create:
                        raise
                    old = None
                notebook = self._wrap(old)
                change = make(notebook)
                try:
                    hooks.announce(change)
                    self._store(place or self.real, old, notebook)
                except DurabilityUnconfirmed as error:
                    error.name_bytes(notebook.revision)
                    hooks.saved()  # the new bytes are in place
                    raise
                except BaseException as error:
                    # An interruption can also come after the rename.
                    is_interruption = not isinstance(error, Exception)
                    texts = [cell.source.encode() for cell in notebook.cells if is_interruption]
                    if texts and is_stored(place or self.real, texts):
                        hooks.saved()
                    else:
                        hooks.failed()
                    if isinstance(error, Conflict) and attempt < _ATTEMPTS - 1:
                        continue
                    raise
                hooks.saved()
                return change
        raise AssertionError  # pragma: no cover  # the loop returns or raises

    def begin_landing(self, start: State) -> Landing:  # noqa: ARG002  # as the seam has it
        """Refuse: a text has no outputs."""
        raise KernelCannot(self._name, "run: it is not a notebook")

    def back_up(self, state: State) -> str:  # noqa: ARG002  # as the seam has it
        """Refuse: the history has the copy."""
        raise NotSaved(self._name, "back up", "it is not a notebook")

    def _load(self, place: str) -> bytes:
        try:
            return load_file(place, self._settings.max_file_bytes)
        except NotebookNotFound:
            raise NotebookNotFound(self._name) from None

    def _wrap(self, data: bytes | None) -> Notebook:
        notebook = Notebook(path=self.path)
        if data is not None:
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                reason = f"no text in UTF-8 (byte {error.start})"
                raise UnreadableFile(self._name, reason) from None
            notebook.apply({"op": "insert", "type": "raw", "id": self.cell, "source": text})
        return notebook

    def _store(self, place: str, old: bytes | None, notebook: Notebook) -> None:
        new = notebook.cells[0].source if notebook.cells else None
        try:
            data = None if new is None else new.encode()
        except UnicodeEncodeError:
            raise NotSaved(self._name, "write", "the text holds a surrogate") from None
        if data == old:
            return
        if data is not None:
            replace_file(place, [data], None if old is None else [old])
            return
        if self._load(place) != old:
            raise Conflict(f"{self._name} was changed by another program")
        try:
            os.unlink(place)
        except OSError as error:
            raise NotSaved(self._name, "remove", error.strerror or str(error)) from None

    def _make_folders(self) -> None:
        """Make the folders above the file, each in the one that was opened before it."""
        folder = os.path.dirname(self.real)  # noqa: PTH120
        try:
            with contextlib.suppress(FileNotFoundError):  # a path that is too long is an error now
                os.stat(folder)  # noqa: PTH116
                return
            top = folder if self._root is None else real_path(self._root)
            while self._root is None and not os.path.isdir(top):  # noqa: PTH112
                top = os.path.dirname(top)  # noqa: PTH120
            held = os.open(top, _FOLDER)
            try:
                for name in os.path.relpath(folder, top).split("/"):
                    if name == "..":
                        raise OutsideRoot(self._name, self._root or top)
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=held)
                    # Without a root, a folder may be a link by now.
                    flags = _FOLDER if self._root is None else _FOLDER | os.O_NOFOLLOW
                    inner = os.open(name, flags, dir_fd=held)
                    os.close(held)
                    held = inner
            finally:
                os.close(held)
        except OSError as error:
            if isinstance(error, (NotSaved, OutsideRoot)):
                raise
            raise NotSaved(self._name, "write", error.strerror or str(error)) from None
