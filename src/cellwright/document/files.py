"""Notebooks on disk: read one, write one, or edit one in a single locked step."""

from __future__ import annotations

import errno
import os

from cellwright.config.defaults import LOCK_TIMEOUT, MAX_FILE_BYTES
from cellwright.document._disk.compare import holds, sync_file
from cellwright.document._disk.load import load
from cellwright.document._disk.lock import FileLock
from cellwright.document._disk.save import replace_file
from cellwright.document._disk.temps import clean
from cellwright.document._layout import Layout
from cellwright.document.notebook import Notebook, Origin
from cellwright.errors import (
    Conflict,
    DurabilityUnconfirmed,
    NotebookNotFound,
    NotSaved,
    UnreadableFile,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cellwright.document.change import Change
    from cellwright.document.edits import Edit
    from cellwright.document.reached import Reached
    from cellwright.document.recent import Recent
    from cellwright.document.revision import Snapshot

    PathLike = str | os.PathLike[str]


# From here on, hashing takes long enough to be done while the disk is busy.
_LARGE = 1_000_000
# An outside editor that saves again and again is a conflict, not a reason to try forever.
_ATTEMPTS = 5


class Saved:
    """What a write did: where the bytes are, how many, and whether any had to be written."""

    __slots__ = ("changed", "path", "size")

    def __init__(self, path: str, size: int, *, changed: bool) -> None:
        self.path = path
        self.size = size
        self.changed = changed

    def __repr__(self) -> str:
        return f"<Saved {self.path}, {self.size} bytes>"


def read(
    path: PathLike,
    *,
    max_bytes: int = MAX_FILE_BYTES,
    reached: Reached | None = None,
    recent: Recent | None = None,
) -> Notebook:
    """Read a notebook of any version from 2 to 4; raises a `DocumentError` that says why not.

    `reached` is where the system shall look for it, for callers who must not be led astray;
    `recent` remembers it, for those who will read it again.
    """
    name = os.fspath(path)
    real = _real(name)
    clean(os.path.dirname(reached or real))
    return _read(name, real, max_bytes, reached, recent)


def read_bytes(
    path: PathLike, *, max_bytes: int = MAX_FILE_BYTES, reached: Reached | None = None
) -> bytes:
    """The bytes of a file, be it a notebook or not, with the same care."""
    return load(reached or os.fspath(path), max_bytes)


def write(
    notebook: Notebook,
    path: PathLike | None = None,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
    reached: Reached | None = None,
) -> Saved:
    """Write a notebook, atomically and durably, and read it back.

    To the file it was read from, `path` may be left out; if that file has been changed by
    somebody else meanwhile, nothing is written. Another file is replaced whatever it holds.
    `reached` is as for `read`.

    Raises:
        Conflict: somebody else changed the file since it was read.
        NotSaved: the system refused, and the file is untouched.
        DurabilityUnconfirmed: the new bytes are in place, but may not survive a power cut.
    """
    if path is not None:
        name = os.fspath(path)
    elif notebook.origin is not None:
        name = notebook.origin.path  # absolute: the process may have moved since it was read
    elif notebook.path is not None:
        name = notebook.path
    else:
        raise NotSaved("the notebook", "write", "it has no path yet", hint="Give a path")
    real = _real(name)
    with FileLock(real, lock_timeout):
        return _write(notebook, name, real, reached, break_hard_links=break_hard_links)


def edit(
    path: PathLike,
    edits: Edit | Mapping[str, Any] | Sequence[Edit | Mapping[str, Any]],
    *,
    base: Snapshot | str | None = None,
    create: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
) -> tuple[Notebook, Change]:
    """Read a file, apply edits and save it, with no other writer of ours in between."""
    return update(
        path,
        lambda notebook: notebook.apply(edits, base=base),
        create=create,
        lock_timeout=lock_timeout,
        break_hard_links=break_hard_links,
    )


def update(
    path: PathLike,
    make: Callable[[Notebook], Change],
    *,
    create: bool = False,
    saved: Callable[[], None] = lambda: None,
    failed: Callable[[], None] = lambda: None,
    max_bytes: int = MAX_FILE_BYTES,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
    reached: Reached | None = None,
    recent: Recent | None = None,
) -> tuple[Notebook, Change]:
    """Read a file, let `make` change the notebook, and save it, under one lock.

    If an outside editor saves meanwhile, `make` is called again with what it wrote. After each
    call of `make`, `saved` or `failed` is called, still under the lock.
    """
    name = os.fspath(path)
    real = _real(name)
    with FileLock(real, lock_timeout):
        for attempt in range(_ATTEMPTS):
            try:
                notebook = _read(name, real, max_bytes, reached, recent)
            except NotebookNotFound:
                if not create:
                    raise
                notebook = Notebook(path=name)
            change = make(notebook)
            try:
                _write(notebook, name, real, reached, break_hard_links=break_hard_links)
            except DurabilityUnconfirmed:
                saved()  # the new bytes are in place
                raise
            except BaseException as error:
                failed()
                if isinstance(error, Conflict) and attempt < _ATTEMPTS - 1:
                    continue
                raise
            if recent is not None:
                recent.keep(real, notebook.state)
            saved()
            return notebook, change
    raise AssertionError  # pragma: no cover  # the loop returns or raises


def _real(name: str) -> str:
    """The real path; one that cannot be found out is an error, as an EIO of a link is."""
    try:
        return os.path.realpath(name, strict=True)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            raise UnreadableFile(name, error.strerror or str(error)) from None
    except ValueError:
        return name  # a NUL; opening it will say so
    try:
        return os.path.realpath(name)
    except OSError as error:  # a link on the way was turned in this moment
        raise UnreadableFile(name, error.strerror or str(error)) from None


def _read(
    name: str, real: str, max_bytes: int, reached: Reached | None, recent: Recent | None
) -> Notebook:
    data = load(reached or name, max_bytes)
    state = recent.find(real, data) if recent is not None else None
    if state is not None:
        notebook = Notebook.holding(state, path=name)
    else:
        notebook = Notebook(data, path=name)
        if recent is not None:
            recent.keep(real, notebook.state)
    layout = _raw(data) if notebook.needs_upgrade else notebook.state.layout
    notebook.origin = Origin(os.path.abspath(name), real, layout)
    return notebook


def _raw(data: bytes) -> Layout:
    """The bytes of an old notebook, kept to see whether the file still holds them."""
    return Layout(data, (), (b"",))


def _write(
    notebook: Notebook,
    name: str,
    real: str,
    reached: Reached | None = None,
    *,
    break_hard_links: bool,
) -> Saved:
    parts = list(notebook.parts())
    size = sum(map(len, parts))
    expected = None
    place, origin, state = os.path.abspath(name), notebook.origin, notebook.state
    # By either name: a link that was turned meanwhile leads to what was never read.
    if origin is not None and (origin.real == real or origin.path == place):
        expected = list(origin.layout.parts())
        if origin.layout is state.layout or expected == [state.old]:
            return _confirm(notebook, name, reached or real, parts, size)
    # The answer to every edit carries the revision: worked out while the disk is busy.
    large = size >= _LARGE and state.old is None
    replace_file(
        reached or real,
        parts,
        expected,
        break_hard_links=break_hard_links,
        meanwhile=(lambda: state.snapshot.revision) if large else None,
    )
    layout = _raw(state.old) if state.old is not None else state.layout
    notebook.origin = Origin(place, real, layout)
    notebook.path = name
    return Saved(name, size, changed=True)


def _confirm(
    notebook: Notebook, name: str, real: str, parts: list[bytes | memoryview], size: int
) -> Saved:
    """Nothing was edited: the file already holds these bytes, or somebody changed it."""
    try:
        if not holds(real, parts):
            raise Conflict(f"{name} was changed by somebody else since it was read")
        sync_file(real)
    except FileNotFoundError:
        raise Conflict(f"{name} was deleted since it was read") from None
    except OSError as error:
        raise NotSaved(name, "read back", error.strerror or str(error)) from None
    notebook.path = name
    return Saved(name, size, changed=False)
