"""`ArtifactStore`: output that is too long to show, kept on disk under random ids.

An artifact is two files: `<id>.<extension>` with the bytes and `<id>.json` with the record. The
record is written last, by a rename, and removed first, so every artifact with a record is
complete. Any number of processes can use one folder, and any of them can be killed at any moment,
without locks and without damage. Nothing is synced to the disk: after a power cut the bytes of an
artifact may not match the hash in its record.

An id is looked up among the names in the folder and is never used as part of a path.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cellwright.config.defaults import ARTIFACT_MAX_BYTES, ARTIFACT_QUOTA_BYTES
from cellwright.document.disk.lock import remove_unlocked
from cellwright.errors import ArtifactNotFound, ArtifactsUnavailable
from cellwright.outputs._artifact_writer import SCHEME, Artifact, ArtifactWriter, read_record
from cellwright.outputs.sizes import whole_end, whole_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import BufferedReader
    from typing import BinaryIO, TypeAlias

    Names: TypeAlias = Mapping[str, list[str]]

__all__ = ["Artifact", "ArtifactStore", "ArtifactWriter"]
PRIVATE = 0o700
READ_BYTES = 50 * 2**10
"""How much is read by default."""
MOST_ARTIFACTS = 4_000
ABANDONED_AFTER = 60.0
"""Seconds after which a file without a record is removed, if no process is writing it."""
_LEAST_BYTES = 1024
_id = re.compile(r"[a-z2-7]{10}")


@dataclass(frozen=True, slots=True)
class ArtifactBytes:
    """Some bytes; `next_offset` is where the rest begins, None at the end."""

    data: bytes
    offset: int
    next_offset: int | None
    total: int


@dataclass(frozen=True, slots=True)
class ArtifactText:
    """Some text; offsets and `total` count bytes of UTF-8."""

    text: str
    offset: int
    next_offset: int | None
    total: int


class ArtifactStore:
    """Artifacts in one private folder; the oldest are removed when there are too many.

    Args:
        directory: created when first needed, with mode 0700.
        quota_bytes: the total size of all artifacts. The oldest are removed first; one that is
            still being written is never removed.
        max_artifact_bytes: the size of one artifact. Of a longer text, the beginning and the end
            are kept, with a line between them that says how much is missing. Other artifacts
            that are too large are refused.
        origin: whose artifacts are made here, in the words of the caller.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        quota_bytes: int = ARTIFACT_QUOTA_BYTES,
        max_artifact_bytes: int = ARTIFACT_MAX_BYTES,
        origin: str = "",
    ) -> None:
        self.directory = Path(directory)
        self.origin = origin
        self.quota_bytes = quota_bytes
        self.max_artifact_bytes = max(_LEAST_BYTES, min(max_artifact_bytes, quota_bytes))
        self._folder = ArtifactFolder(self.directory)

    def stamp(self, origin: str) -> ArtifactStore:
        """Return the same store for artifacts of another origin."""
        return ArtifactStore(
            self.directory,
            quota_bytes=self.quota_bytes,
            max_artifact_bytes=self.max_artifact_bytes,
            origin=origin,
        )

    # -- writing ----------------------------------------------------------------------------

    def create(self, *, mime: str = "text/plain", name: str = "") -> ArtifactWriter:
        """Start an artifact; others can see it after its writer was committed.

        Args:
            mime: its MIME type.
            name: a label for people, such as `output`.

        Raises:
            ArtifactsUnavailable: with the reason.
        """
        with _translate_errors():
            self._folder.make()
            return ArtifactWriter(
                self.directory,
                most_bytes=self.max_artifact_bytes,
                mime=mime,
                name=name,
                origin=self.origin,
                committed=lambda artifact: self.make_room(keep=artifact.id),
            )

    def put(self, data: bytes, *, mime: str = "text/plain", name: str = "") -> Artifact:
        """Keep these bytes as an artifact.

        Raises:
            ArtifactsUnavailable: with the reason.
        """
        with self.create(mime=mime, name=name) as writer:
            writer.write(data)
            return writer.commit()

    def delete(self, ref: str) -> None:
        """Remove an artifact.

        Raises:
            ArtifactNotFound: no artifact has that id.
        """
        with _translate_errors():
            names = self._folder.names()
            self._folder.remove(names[self._folder.resolve(ref, names)])

    def make_room(self, *, keep: str | None = None) -> list[str]:
        """Remove the oldest artifacts beyond the quota, and the files of killed writers.

        Returns the removed ids; `keep` is never removed.
        """
        with _translate_errors():
            return self._folder.make_room(self.quota_bytes, keep)

    # -- reading ----------------------------------------------------------------------------

    def get(self, ref: str) -> Artifact:
        """The record of an artifact, by its id or `artifact://` address.

        Raises:
            ArtifactNotFound: no artifact has that id.
        """
        with _translate_errors():
            artifact = self._folder.record(self._folder.resolve(ref, self._folder.names()))
        if artifact is None:
            raise ArtifactNotFound(ref[:80])
        return artifact

    def read(self, ref: str, offset: int = 0, limit: int = READ_BYTES) -> ArtifactBytes:
        """Read some bytes of an artifact.

        Raises:
            ArtifactNotFound: no artifact has that id.
        """
        with self._open(ref) as file:
            return _read_bytes(file, offset, limit)

    def read_text(self, ref: str, offset: int = 0, limit: int = READ_BYTES) -> ArtifactText:
        """Read some text of an artifact as it was printed: it is not sanitized.

        Offsets count bytes. No character is cut: the part begins after it or ends before it.
        Continue at `next_offset`.

        Raises:
            ArtifactNotFound: no artifact has that id.
        """
        with self._open(ref) as file:
            return _read_text(file, offset, limit)

    @contextmanager
    def _open(self, ref: str) -> Iterator[BufferedReader]:
        with _translate_errors():
            names = self._folder.names()
            id = self._folder.resolve(ref, names)  # noqa: A001
            try:
                file = self._folder.open(names[id])
            except FileNotFoundError:  # it was removed at this moment
                raise ArtifactNotFound(ref[:80]) from None
            with file:
                yield file

    def list(self) -> list[Artifact]:
        """All artifacts, the newest first."""
        with _translate_errors():
            found = [self._folder.record(id) for id in self._folder.ids()]  # noqa: A001
        known = [artifact for artifact in found if artifact is not None]
        return sorted(known, key=lambda artifact: artifact.created, reverse=True)


def _read_bytes(file: BinaryIO, offset: int, limit: int) -> ArtifactBytes:
    """Bytes from an offset on; none if it is beyond the end."""
    total = os.fstat(file.fileno()).st_size
    offset = min(max(0, offset), total)
    data = os.pread(file.fileno(), max(0, limit), offset)
    end = offset + len(data)
    return ArtifactBytes(data, offset, end if end < total else None, total)


def _read_text(file: BinaryIO, offset: int, limit: int) -> ArtifactText:
    """Text from an offset on, always whole characters, and at least one."""
    limit = max(4, limit)
    part = _read_bytes(file, offset, limit + 4)
    start = min(whole_start(part.data, 0), 3) if part.offset else 0
    end = start + limit
    end = max(whole_end(part.data, end), end - 3) if end < len(part.data) else len(part.data)
    after = part.offset + end
    return ArtifactText(
        text=part.data[start:end].decode("utf-8", "replace"),
        offset=part.offset + start,
        next_offset=after if after < part.total else None,
        total=part.total,
    )


class ArtifactFolder:
    """Finds artifacts among the names in a folder; it leaves other files alone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder if needed, readable by this user only."""
        self.path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        status = self.path.stat()
        if status.st_uid != os.geteuid():
            raise ArtifactsUnavailable(f"{self.path} belongs to user {status.st_uid}")
        if stat.S_IMODE(status.st_mode) != PRIVATE:
            self.path.chmod(PRIVATE)

    def names(self) -> Names:
        """The files in the folder, by the part of the name before the first dot."""
        names: dict[str, list[str]] = {}
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                names.setdefault(entry.name.partition(".")[0], []).append(entry.name)
        return names

    def ids(self) -> list[str]:
        """The ids of all artifacts with a record."""
        names = self.names()
        return [id for id in names if _is_artifact(id, names)]  # noqa: A001

    def resolve(self, ref: str, names: Names) -> str:
        """The id that a reference means.

        Raises:
            ArtifactNotFound: no artifact has that id.
        """
        wanted = ref.removeprefix(SCHEME)
        for id in names:  # noqa: A001  # the result is a name from the folder, not from the caller
            if id == wanted and _is_artifact(id, names):
                return id
        error = ArtifactNotFound(ref[:80])
        known = [id for id in names if _is_artifact(id, names)]  # noqa: A001
        # Suggest only near misses: ids must not be found by guessing.
        near = difflib.get_close_matches(wanted[:20].lower(), known, n=1, cutoff=0.85)
        if near:
            error.hint = f"Did you mean {near[0]}?"
        raise error

    def record(self, id: str) -> Artifact | None:  # noqa: A002
        """The record of an artifact; None if it was removed or cannot be read."""
        return read_record(self.path / f"{id}.json", id)

    def data_path(self, names: Iterable[str]) -> Path:
        """The path of the bytes among the file names of an artifact.

        Raises:
            FileNotFoundError: the file with the bytes is missing.
        """
        for name in names:
            if not name.endswith((".json", ".part")):
                return self.path / name
        raise FileNotFoundError

    def open(self, names: Iterable[str]) -> BufferedReader:
        """Open the bytes of an artifact.

        Raises:
            FileNotFoundError: they were removed, or it is not a regular file.
        """
        # Follow no link and wait for no pipe that another program may have put there.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.fdopen(os.open(self.data_path(names), flags), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise FileNotFoundError
        return file

    def remove(self, names: Iterable[str]) -> None:
        """Remove an artifact: its record first, so that no incomplete artifact is visible."""
        for name in sorted(names, key=lambda name: not name.endswith(".json")):
            (self.path / name).unlink(missing_ok=True)

    def make_room(self, quota_bytes: int, keep: str | None) -> list[str]:
        """Remove the oldest artifacts until the others fit; returns their ids."""
        names = self.names()
        found: list[tuple[int, str, int]] = []
        for id in names:  # noqa: A001
            size, newest = self._measure(names[id])
            if _is_artifact(id, names):
                found.append((newest, id, size))
            elif newest < time.time_ns() - ABANDONED_AFTER * 1e9 and _id.fullmatch(id):
                self._sweep(names[id])
        total = sum(size for _, _, size in found)
        count = len(found)
        removed: list[str] = []
        for _, id, size in sorted(found):  # noqa: A001
            if total <= quota_bytes and count <= MOST_ARTIFACTS:
                break
            if id != keep:
                self.remove(names[id])
                removed.append(id)
                total -= size
                count -= 1
        return removed

    def _measure(self, names: Iterable[str]) -> tuple[int, int]:
        size = newest = 0
        for name in names:
            with suppress(FileNotFoundError):
                status = (self.path / name).lstat()
                size += status.st_size
                newest = max(newest, status.st_mtime_ns)
        return size, newest

    def _sweep(self, names: Iterable[str]) -> None:
        """Remove files without a record, unless a process is still writing them."""
        for name in names:
            remove_unlocked(str(self.path / name))


def _is_artifact(id: str, names: Names) -> bool:  # noqa: A002
    return _id.fullmatch(id) is not None and f"{id}.json" in names[id]


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn system errors into `ArtifactsUnavailable`."""
    try:
        yield
    except ArtifactsUnavailable:
        raise
    except OSError as error:
        raise ArtifactsUnavailable(error.strerror or str(error)) from error
