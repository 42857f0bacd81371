"""Notebooks on disk: read one, write one, or edit one in a single locked step.

`Recent` remembers notebooks that were read or written, so that the same bytes are not parsed
again. It never decides by file times whether a file is the same: it compares every byte, which
costs a small part of parsing.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import OrderedDict
from functools import partial

from cellwright.config.defaults import LOCK_TIMEOUT, MAX_FILE_BYTES
from cellwright.document._bytes.layout import Layout
from cellwright.document._bytes.slots import FileSlots
from cellwright.document.disk.load import file_holds, is_still, is_stored, load_file, sync_file
from cellwright.document.disk.lock import FileLock
from cellwright.document.disk.save import remove_abandoned_temps, replace_file
from cellwright.document.notebook import Notebook, Origin
from cellwright.errors import (
    Conflict,
    DurabilityUnconfirmed,
    InvalidJson,
    NotebookNotFound,
    NotSaved,
    NotUtf8,
    UnreadableFile,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from cellwright.document.change import Change, State
    from cellwright.document.disk.paths import PinnedPath
    from cellwright.document.edits import Edit
    from cellwright.document.snapshot import Snapshot

    PathLike = str | os.PathLike[str]

# From this size on, hashing takes so long that it is done while the disk is busy.
_LARGE = 1_000_000
# If another program saves the file again and again, give up with a conflict.
_ATTEMPTS = 5
_MOST = 8
_MOST_BYTES = 128 * 2**20
# A program that saves in place writes again within `_SAVING` seconds; it is waited for.
_SAVING = 0.5
_SAVED_WITHIN = 2.0
_JUST_SAVED = 10.0
_LOOK_EVERY = 0.02
# After many edits a notebook has many pieces; parsing the file again makes it one piece.
_MOST_PARTS = 200


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
    reached: PinnedPath | None = None,
    recent: Recent | None = None,
) -> Notebook:
    """Read a notebook of nbformat 2 to 4; raises a `DocumentError` if it cannot be read.

    `reached` is the checked path to open, for callers who must not follow a new link. `recent`
    remembers the notebook, for callers who will read it again.
    """
    name = os.fspath(path)
    real = find_real_path(name) if reached is None else reached.real
    remove_abandoned_temps(os.path.dirname(reached or real))
    return _read(name, real, max_bytes, reached, recent)


def read_bytes(
    path: PathLike, *, max_bytes: int = MAX_FILE_BYTES, reached: PinnedPath | None = None
) -> bytes:
    """Read the bytes of any file, with the same checks as `read`."""
    return load_file(reached or os.fspath(path), max_bytes)


def write(
    notebook: Notebook,
    path: PathLike | None = None,
    *,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
    reached: PinnedPath | None = None,
    real: str | None = None,
) -> Saved:
    """Write a notebook, atomically and durably, and read it back.

    `path` defaults to the file it was read from; if another program has changed that file since,
    nothing is written. A different file is replaced, whatever it contains. `reached` is as for
    `read`, and `real` the real path, for callers who know it.

    Raises:
        Conflict: another program changed the file since it was read.
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
    if real is None:
        real = find_real_path(name) if reached is None else reached.real
    with FileLock(real, lock_timeout):
        try:
            return _write(notebook, name, real, reached, break_hard_links=break_hard_links)
        except DurabilityUnconfirmed as error:
            error.name_bytes(notebook.revision)
            raise


def edit(
    path: PathLike,
    edits: Edit | Mapping[str, Any] | Sequence[Edit | Mapping[str, Any]],
    *,
    base: Snapshot | str | None = None,
    create: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
    real: str | None = None,
) -> tuple[Notebook, Change]:
    """Read a file, apply edits and save it, under one lock; `real` is as for `write`."""
    return update(
        path,
        lambda notebook: notebook.apply(edits, base=base),
        real=real,
        create=create,
        lock_timeout=lock_timeout,
        break_hard_links=break_hard_links,
    )


def update(
    path: PathLike,
    make: Callable[[Notebook], Change],
    *,
    real: str | None = None,
    create: bool = False,
    saving: Callable[[Change], object] | None = None,
    saved: Callable[[], object] = lambda: None,
    failed: Callable[[], object] = lambda: None,
    max_bytes: int = MAX_FILE_BYTES,
    lock_timeout: float = LOCK_TIMEOUT,
    break_hard_links: bool = False,
    reached: PinnedPath | None = None,
    recent: Recent | None = None,
) -> tuple[Notebook, Change]:
    """Read a file, let `make` change the notebook, and save it, under one lock.

    If another program saves meanwhile, `make` is called again with the new content. After each
    call of `make`, `saved` or `failed` is called, still under the lock; before the file is replaced,
    and while the disk writes, `saving` gets the change.
    """
    name = os.fspath(path)
    if real is None:
        real = find_real_path(name) if reached is None else reached.real
    with FileLock(real, lock_timeout):
        for attempt in range(_ATTEMPTS):
            try:
                # What shall be created is not waited for.
                read_now = _read_once if create else _read
                notebook = read_now(name, real, max_bytes, reached, recent)
            except NotebookNotFound:
                if not create:
                    raise
                notebook = Notebook(path=name)
            change = make(notebook)
            announce = None if saving is None else partial(saving, change)
            try:
                _write(
                    notebook,
                    name,
                    real,
                    reached,
                    break_hard_links=break_hard_links,
                    meanwhile=announce,
                )
            except DurabilityUnconfirmed as error:
                error.name_bytes(notebook.revision)
                saved()  # the new bytes are in place
                raise
            except BaseException as error:
                # An interruption can also come after the rename.
                is_interruption = not isinstance(error, Exception)
                if is_interruption and is_stored(reached or real, list(notebook.parts())):
                    saved()
                else:
                    failed()
                if isinstance(error, Conflict) and attempt < _ATTEMPTS - 1:
                    continue
                raise
            try:
                if recent is not None:
                    recent.keep(real, notebook.state)
                saved()
            except Exception as error:
                raise report_saved(name, error, notebook.revision) from error
            return notebook, change
    raise AssertionError  # pragma: no cover  # the loop returns or raises


def report_saved(path: str, error: Exception, revision: str) -> DurabilityUnconfirmed:
    """The one error after a save: the new bytes are there, whatever else went wrong."""
    found = DurabilityUnconfirmed(path, "after the save", f"{type(error).__name__}: {error}")
    found.name_bytes(revision)
    return found


def find_real_path(name: str) -> str:
    """The real path; raises `UnreadableFile` if it cannot be determined, such as after an EIO."""
    if _has_no_links(name):
        return name
    try:
        return os.path.realpath(name, strict=True)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            raise UnreadableFile(name, error.strerror or str(error)) from None
    except ValueError:
        return name  # it contains a NUL, which `open` reports
    try:
        return os.path.realpath(name)
    except OSError as error:  # a link was changed at this moment
        raise UnreadableFile(name, error.strerror or str(error)) from None


def _has_no_links(name: str) -> bool:
    """Whether a path is real already: most are, and this sees it in a third of the time."""
    if name[:1] != "/" or name[:2] == "//" or os.path.normpath(name) != name:
        return False
    at = 0
    try:
        while at >= 0:
            at = name.find("/", at + 1)
            if stat.S_ISLNK(os.lstat(name[:at] if at > 0 else name).st_mode):
                return False
    except (OSError, ValueError):
        return False  # the slower look says why
    return True


def _read(
    name: str, real: str, max_bytes: int, reached: PinnedPath | None, recent: Recent | None
) -> Notebook:
    patience = _SAVED_WITHIN
    while True:
        try:
            return _read_once(name, real, max_bytes, reached, recent)
        except (NotebookNotFound, InvalidJson, NotUtf8) as error:
            # Many programs save in place: for a moment, a file is empty, half there, or missing.
            is_missing = isinstance(error, NotebookNotFound)
            age = _find_age(reached or name, is_missing=is_missing)
            if age is None or age > _SAVING or patience <= 0:
                # What was never there is a wrong name, however new its folder is.
                was_there = not is_missing or (recent is not None and recent.knows(real))
                if age is not None and age < _JUST_SAVED and was_there:
                    error.suggest_retry("Another program may be saving it: try again")
                raise
        time.sleep(_LOOK_EVERY)
        patience -= _LOOK_EVERY


def _find_age(place: str, *, is_missing: bool) -> float | None:
    """Seconds since the file, or the folder that it is missing from, was last written to."""
    try:
        written = os.stat(os.path.dirname(place) or "." if is_missing else place).st_mtime
    except OSError:
        return None
    age = time.time() - written
    return age if age > -_SAVING else None  # another machine's clock


def _read_once(
    name: str, real: str, max_bytes: int, reached: PinnedPath | None, recent: Recent | None
) -> Notebook:
    state = recent.look(real, reached or name, max_bytes) if recent is not None else None
    if state is not None:
        notebook = Notebook.of_state(state, path=name)
        notebook.origin = Origin(os.path.abspath(name), real, state.layout)
        return notebook
    data = load_file(reached or name, max_bytes)
    state = recent.find(real, data) if recent is not None else None
    if state is not None:
        notebook = Notebook.of_state(state, path=name)
    else:
        notebook = Notebook(data, path=name)
        if recent is not None:
            recent.keep(real, notebook.state)
    layout = _raw(data) if notebook.needs_upgrade else notebook.state.layout
    notebook.origin = Origin(os.path.abspath(name), real, layout)
    return notebook


def _raw(data: bytes) -> Layout:
    """The bytes of an old notebook, kept to check whether the file still has them."""
    return Layout(data, (), (b"",))


def _write(
    notebook: Notebook,
    name: str,
    real: str,
    reached: PinnedPath | None = None,
    *,
    break_hard_links: bool,
    meanwhile: Callable[[], object] | None = None,
) -> Saved:
    parts = list(notebook.parts())
    size = sum(map(len, parts))
    expected = None
    place, origin, state = os.path.abspath(name), notebook.origin, notebook.state
    # By either name: a link that was changed meanwhile leads to a file that was never read.
    if origin is not None and (origin.real == real or origin.path == place):
        expected = list(origin.layout.parts())
        if origin.layout is state.layout or expected == [state.old]:
            if meanwhile is not None:
                meanwhile()
            return _confirm(notebook, name, reached or real, parts, size)
    # Every answer to an edit has the revision. Where working it out takes a while, that is done
    # while the disk is busy.
    large = size >= _LARGE and state.old is None
    works = [] if meanwhile is None else [meanwhile]
    if large:
        works.append(lambda: state.snapshot.revision)
    else:
        _ = state.snapshot.revision
    replace_file(
        reached or real,
        parts,
        expected,
        break_hard_links=break_hard_links,
        large=large,
        meanwhile=works,
    )
    layout = _raw(state.old) if state.old is not None else state.layout
    notebook.origin = Origin(place, real, layout)
    notebook.path = name
    return Saved(name, size, changed=True)


def _confirm(
    notebook: Notebook, name: str, real: str, parts: list[bytes | memoryview], size: int
) -> Saved:
    """Handle a save without edits: check that the file still has these bytes."""
    try:
        if not file_holds(real, parts):
            raise Conflict(f"{name} was changed by another program since it was read")
        sync_file(real)
    except FileNotFoundError:
        raise Conflict(f"{name} was deleted since it was read") from None
    except OSError as error:
        raise NotSaved(name, "read back", error.strerror or str(error)) from None
    notebook.path = name
    return Saved(name, size, changed=False)


class Recent:
    """The last known content of some files, by real path; for all threads.

    Args:
        most: notebooks kept; the least recently used one is dropped.
        most_bytes: their total size; a larger notebook is not kept.
    """

    def __init__(self, most: int = _MOST, most_bytes: int = _MOST_BYTES) -> None:
        from threading import Lock  # only those who keep notebooks need it

        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, tuple[State, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, real: str, data: bytes) -> State | None:
        """The state of these bytes of a file, if the same bytes were kept for it."""
        with self._lock:
            found = self._kept.get(real)
        if found is None or found[1] != len(data):
            return None
        at = 0
        for part in found[0].layout.parts():
            if not data.startswith(part, at):  # compares in place, without a copy
                return None
            at += len(part)
        with self._lock:
            if real in self._kept:
                self._kept.move_to_end(real)
        return found[0]

    def look(self, real: str, place: str, most_bytes: int) -> State | None:
        """The state of a large file, if it still has the bytes that were kept; it is not loaded."""
        with self._lock:
            found = self._kept.get(real)
        if found is None or not _LARGE <= found[1] <= most_bytes:
            return None
        if not is_still(place, list(found[0].layout.parts())):
            return None
        with self._lock:
            if real in self._kept:
                self._kept.move_to_end(real)
        return found[0]

    def knows(self, real: str) -> bool:
        """Whether there is a content of this file."""
        with self._lock:
            return real in self._kept

    def keep(self, real: str, state: State) -> None:
        """Remember the content of a file, if it is not too large or in too many pieces."""
        slots = state.layout.slots
        size = 0
        if state.old is None and isinstance(slots, FileSlots):
            lengths = [len(part) for part in state.layout.parts()]
            size = sum(lengths) if len(lengths) <= _MOST_PARTS else 0
        with self._lock:
            self._kept.pop(real, None)
            if 0 < size <= self._most_bytes:
                self._kept[real] = (state, size)
            while len(self._kept) > self._most or self._total() > self._most_bytes:
                self._kept.popitem(last=False)

    def _total(self) -> int:
        return sum(size for _, size in self._kept.values())
