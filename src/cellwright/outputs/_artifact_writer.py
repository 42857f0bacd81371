"""The record of an artifact, and the writer that makes one.

A writer keeps its files beside the artifacts, but the artifact is visible only after the commit.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from cellwright.config.directories import lock_file
from cellwright.errors import ArtifactsUnavailable, CellwrightError
from cellwright.outputs.sizes import human_size, whole_end, whole_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Self

SCHEME = "artifact://"
_LONGEST_RECORD = 64 * 2**10
_LONGEST_LABEL = 200
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


@dataclass(frozen=True, slots=True)
class Artifact:
    """The record of an artifact; `created` is in seconds since 1970, sizes are in bytes.

    `origin` says whose it is: `notebook:` and its real path, or `root:` and the folder that the
    code which made it was confined to.
    `original_bytes` is how much was written; `size` is less if the middle was left out.
    """

    id: str
    mime: str
    size: int
    sha256: str
    created: float
    name: str = ""
    origin: str = ""
    original_bytes: int = 0
    truncated: bool = False

    @property
    def uri(self) -> str:
        """The address, `artifact://` and the id."""
        return SCHEME + self.id

    def __str__(self) -> str:
        return f"{self.uri} ({self.mime}, {human_size(self.size)})"


def read_record(path: Path, id: str) -> Artifact | None:  # noqa: A002
    """Read a record file; None if it is missing or not a valid record."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        try:
            value = json.loads(file.read(_LONGEST_RECORD))
            return Artifact(
                id=id,
                mime=str(value["mime"]),
                size=int(value["size"]),
                sha256=str(value["sha256"]),
                created=float(value["created"]),
                name=str(value.get("name", "")),
                origin=str(value.get("origin", "")),
                original_bytes=int(value.get("original_bytes", value["size"])),
                truncated=bool(value.get("truncated", False)),
            )
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None


def new_artifact_id() -> str:
    """A random id that cannot be guessed."""
    import secrets

    return "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))


class ArtifactWriter:
    """Writes the bytes of an artifact; `commit` finishes it, `abort` or an exception drops it.

    If a text grows too long, its beginning is kept, and its end in a second file that is used as
    a ring buffer; memory does not grow.
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
        self.id = new_artifact_id()
        self._directory = directory
        self._mime = mime
        self._name = name[:_LONGEST_LABEL]
        self._origin = origin
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
        """Append bytes.

        Raises:
            ArtifactsUnavailable: the disk is full, or the artifact too large; it is dropped.
        """
        with self._open_file():
            self._buffer += data
            if len(self._buffer) >= _BUFFER:
                self._flush()

    def commit(self) -> Artifact:
        """Finish the artifact; from now on it is listed and can be read.

        Raises:
            ArtifactsUnavailable: with the reason; the artifact was dropped.
        """
        with self._open_file() as file:
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
            # The record comes last, so every listed artifact is complete.
            record = _create(self._part)
            try:
                _write_all(record, json.dumps(asdict(artifact)).encode())
            finally:
                os.close(record)
            self._part.rename(self._path("json"))
        self._close()
        with suppress(OSError):  # the artifact is complete, even if old ones cannot be removed
            self._committed(artifact)
        return artifact

    def abort(self) -> None:
        """Drop what was written, unless it is committed already."""
        if self._file is None:
            return
        self._close()
        # The data file exists too if the record could not be written.
        for path in (self._part, self._path(_EXTENSIONS.get(self._mime, "data"))):
            with suppress(OSError):
                path.unlink()

    @contextmanager
    def _open_file(self) -> Iterator[int]:
        """The open file; a system error drops it and becomes `ArtifactsUnavailable`."""
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
        assert self._file is not None  # noqa: S101  # the caller has checked
        self._total += len(data)
        if not self._is_text and self._total > self._most_bytes:
            raise ArtifactsUnavailable(f"it is larger than {self._most_bytes:,} bytes")
        if self._ring is None:
            head = data
            if self._is_text and self._size + len(data) > self._head_bytes:
                # End the beginning at a whole character.
                head = data[: whole_end(data, max(0, self._head_bytes - self._size))]
            _write_all(self._file, head)
            self._hash.update(head)
            self._size += len(head)
            data = data[len(head) :]
            if not data:
                return
            self._ring = _create(self._ring_part)
        if len(data) > self._tail_bytes:  # the rest would be overwritten immediately
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
        """Append the notice and the end to the beginning, without cutting a character."""
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
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    # Held until the file is closed or the process dies; so others see that it is being written.
    with suppress(OSError):
        lock_file(descriptor)
    return descriptor


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    data = memoryview(data)
    while data:
        data = data[os.write(descriptor, data) :]


class ArtifactSpill:
    """Writes a stream to an artifact, if it becomes longer than what is kept elsewhere.

    Until then the stream is held in memory. If it cannot be written, that is only a warning: the
    code that prints must not fail.
    """

    def __init__(self, open_writer: Callable[[], ArtifactWriter] | None, held_bytes: int) -> None:
        self.warning: str | None = None
        self.committed: Artifact | None = None
        self._open_writer = open_writer
        self._writer: ArtifactWriter | None = None
        self._held = bytearray()
        self._most_bytes = held_bytes

    @property
    def id(self) -> str | None:
        """The id of the artifact, once there is one."""
        return self._writer.id if self._writer else None

    def describe(self) -> str | None:
        """Say how much of the stream is in the artifact, and its id; None if there is none."""
        if self.id is None:
            return None
        kept = self.committed
        if kept is None or not kept.truncated:
            return f"all of it: artifact://{self.id}"
        sizes = f"{human_size(kept.size)} of {human_size(kept.original_bytes)}"
        return f"its beginning and end, {sizes}: artifact://{self.id}"

    def feed(self, data: bytes) -> None:
        """Add the next piece of the stream."""
        if self._writer is not None:
            self._write(data)
        elif self._open_writer is not None:
            self._held += data
            if len(self._held) > self._most_bytes:
                self.start()

    def start(self) -> None:
        """Write what is held, and from now on everything."""
        if self._writer is not None or self._open_writer is None:
            return
        try:
            self._writer = self._open_writer()
        except (CellwrightError, OSError) as error:
            self._give_up(error)
            return
        held, self._held = self._held, bytearray()
        for start in range(0, len(held), _BLOCK):  # not a copy of all of it
            if self._writer is not None:
                self._write(bytes(held[start : start + _BLOCK]))

    def forget_held(self) -> None:
        """Drop what is held; what has been written stays."""
        self._held.clear()

    def end(self, *, keep: bool) -> None:
        """Finish the artifact, or drop it."""
        self._open_writer = None
        self._held.clear()
        if self._writer is None:
            return
        try:
            if keep:
                self.committed = self._writer.commit()
            else:
                self._writer.abort()
                self._writer = None
        except (CellwrightError, OSError) as error:
            self._give_up(error)

    def _write(self, data: bytes) -> None:
        assert self._writer is not None  # noqa: S101  # the callers have checked
        try:
            self._writer.write(data)
        except (CellwrightError, OSError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.warning = str(error)
        self._open_writer = None
        self._held.clear()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            try:
                writer.abort()
            except (CellwrightError, OSError):
                return
