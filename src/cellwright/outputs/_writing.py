"""An artifact while it is written: beside the others, but none of them yet."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from contextlib import contextmanager, suppress

from cellwright.errors import ArtifactsUnavailable
from cellwright.outputs._ends import whole_end, whole_start
from cellwright.outputs._record import Artifact, label, to_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_LENGTH = 10
_MOST_TAIL = 16 * 2**20
_BLOCK = 2**20
_BUFFER = 64 * 2**10  # a system call for every few bytes would take longer than the bytes
_NOTICE_ROOM = 200
_EXTENSIONS = {
    "application/json": "json-data",  # `<id>.json` is the record
    "application/pdf": "pdf",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}


def new_id() -> str:
    """An id that nobody can guess."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


class ArtifactWriter:
    """Takes the bytes of an artifact; `commit` makes it one, `abort` or an exception drops it.

    Of a text that grows too long the beginning is kept, and the end in a second file that is
    written round and round; memory does not grow.
    """

    def __init__(
        self,
        directory: Path,
        *,
        most_bytes: int,
        mime: str,
        name: str,
        origin: str,
        committed: Callable[[Artifact], object],
    ) -> None:
        self.id = new_id()
        self._directory = directory
        self._mime = mime
        self._name = label(name)
        self._origin = label(origin)
        self._committed = committed
        self._is_text = mime.startswith("text/")
        self._most_bytes = most_bytes
        self._tail_bytes = min(_MOST_TAIL, most_bytes // 4)
        self._head_bytes = max(0, most_bytes - self._tail_bytes - _NOTICE_ROOM)
        self._size = 0  # of the file with the beginning
        self._total = 0
        self._buffer = bytearray()
        self._ring: int | None = None
        self._ring_total = 0
        self._hash = hashlib.sha256()
        self._part = self._path("part")
        self._ring_part = self._path("tail.part")
        self._file: int | None = _create(self._part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._total + len(self._buffer)

    def write(self, data: bytes | bytearray) -> None:
        """Put bytes to the end.

        Raises:
            ArtifactsUnavailable: the disk is full, or the artifact too large; it is dropped.
        """
        with self._guarded():
            self._buffer += data
            if len(self._buffer) >= _BUFFER:
                self._flush()

    def commit(self) -> Artifact:
        """Finish the artifact; from now on it is listed, and can be read.

        Raises:
            ArtifactsUnavailable: with the reason; there is no artifact.
        """
        with self._guarded() as file:
            self._flush()
            if self._ring is not None:
                self._append_tail(file, self._ring)
            artifact = Artifact(
                id=self.id,
                mime=self._mime,
                size=self._size,
                sha256=self._hash.hexdigest(),
                created=time.time(),
                name=self._name,
                origin=self._origin,
                original_bytes=self._total,
                truncated=self._ring_total > self._tail_bytes,
            )
            self._part.rename(self._path(_EXTENSIONS.get(self._mime, "data")))
            # The record comes last: what is listed is whole.
            record = _create(self._part)
            try:
                _write_all(record, to_record(artifact))
            finally:
                os.close(record)
            self._part.rename(self._path("json"))
        self._close()
        with suppress(OSError):  # it is there; that others would not go is no failure of it
            self._committed(artifact)
        return artifact

    def abort(self) -> None:
        """Drop what was written, unless it is committed already."""
        if self._file is None:
            return
        self._close()
        # The name of the data is there too if the record could not be written.
        for path in (self._part, self._path(_EXTENSIONS.get(self._mime, "data"))):
            with suppress(OSError):
                path.unlink()

    @contextmanager
    def _guarded(self) -> Iterator[int]:
        """Give the file; whatever the system refuses is told in our words, and drops it."""
        if self._file is None:
            raise ArtifactsUnavailable("this artifact is finished")
        try:
            yield self._file
        except OSError as error:
            self.abort()
            if isinstance(error, ArtifactsUnavailable):
                raise
            raise ArtifactsUnavailable(error.strerror or str(error)) from error

    def _path(self, extension: str) -> Path:
        return self._directory / f"{self.id}.{extension}"

    def _close(self) -> None:
        for descriptor in (self._file, self._ring):
            if descriptor is not None:
                os.close(descriptor)
        if self._ring is not None:
            with suppress(OSError):
                self._ring_part.unlink()
        self._file = self._ring = None

    def _flush(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        self._write(memoryview(data))

    def _write(self, data: memoryview) -> None:
        assert self._file is not None  # noqa: S101  # the caller has looked
        self._total += len(data)
        if not self._is_text and self._total > self._most_bytes:
            raise ArtifactsUnavailable(f"it is larger than {self._most_bytes:,} bytes")
        if self._ring is None:
            head = data
            if self._is_text and self._size + len(data) > self._head_bytes:
                # The beginning ends with a whole character, if whole ones are written.
                head = data[: whole_end(data, max(0, self._head_bytes - self._size))]
            _write_all(self._file, head)
            self._hash.update(head)
            self._size += len(head)
            data = data[len(head) :]
            if not data:
                return
            self._ring = _create(self._ring_part)
        if len(data) > self._tail_bytes:  # most of it would be overwritten at once
            self._ring_total += len(data) - self._tail_bytes
            data = data[len(data) - self._tail_bytes :]
        while data:
            position = self._ring_total % self._tail_bytes
            part = data[: self._tail_bytes - position]
            os.lseek(self._ring, position, os.SEEK_SET)
            _write_all(self._ring, part)
            self._ring_total += len(part)
            data = data[len(part) :]

    def _append_tail(self, file: int, ring: int) -> None:
        """Put the notice and the end to the beginning, cutting no character."""
        left_out = max(0, self._ring_total - self._tail_bytes)
        start = self._ring_total % self._tail_bytes if left_out else 0
        end = min(self._ring_total, self._tail_bytes)
        order = [(start, end), (0, start)] if left_out else [(0, end)]
        skip = 0
        if left_out:
            first = os.pread(ring, min(4, end - start), start) + os.pread(ring, min(4, start), 0)
            skip = min(whole_start(first, 0), 3)
            left_out = self._total - self._size - end + skip
            notice = (
                f"\n[ARTIFACT TRUNCATED: {left_out:,} bytes left out here,"
                f" {self._size:,} before and {end - skip:,} after are kept]\n"
            ).encode()
            self._append(file, notice)
        for begin, stop in order:
            for position in range(begin, stop, _BLOCK):
                block = os.pread(ring, min(_BLOCK, stop - position), position)
                self._append(file, block[skip:])
                skip = max(0, skip - len(block))

    def _append(self, file: int, data: bytes) -> None:
        _write_all(file, data)
        self._hash.update(data)
        self._size += len(data)


def _create(path: Path) -> int:
    import fcntl

    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    # Held until the file is closed, if only by a kill: so others see that it is being written.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    data = memoryview(data)
    while data:
        data = data[os.write(descriptor, data) :]
