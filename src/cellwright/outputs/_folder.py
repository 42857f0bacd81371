"""The folder of artifacts: which names are whose, and which of them may go."""

from __future__ import annotations

import difflib
import os
import re
import stat
import time
from contextlib import suppress

from cellwright.errors import ArtifactNotFound, ArtifactsUnavailable
from cellwright.outputs._record import SCHEME, read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from io import BufferedReader
    from pathlib import Path
    from typing import TypeAlias

    from cellwright.outputs._record import Artifact

    Names: TypeAlias = Mapping[str, list[str]]

PRIVATE = 0o700
MOST_ARTIFACTS = 4_000

ABANDONED = 60.0
"""After so many seconds a file that nobody is writing, and that has no record, may go."""

_id = re.compile(r"[a-z2-7]{10}")


class Folder:
    """Finds artifacts among the names in a folder; what it does not know it leaves alone."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder if need be, for nobody else to look into."""
        self.path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        status = self.path.stat()
        if status.st_uid != os.geteuid():
            raise ArtifactsUnavailable(f"{self.path} belongs to user {status.st_uid}")
        if stat.S_IMODE(status.st_mode) != PRIVATE:
            self.path.chmod(PRIVATE)

    def names(self) -> Names:
        """The files in the folder, by what stands before the first dot."""
        names: dict[str, list[str]] = {}
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                names.setdefault(entry.name.partition(".")[0], []).append(entry.name)
        return names

    def ids(self) -> list[str]:
        """All that have a record."""
        names = self.names()
        return [id for id in names if _is_artifact(id, names)]  # noqa: A001

    def resolve(self, ref: str, names: Names) -> str:
        """The id that was meant.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        wanted = ref.removeprefix(SCHEME)
        for id in names:  # noqa: A001  # the name that we go on with is the folder's own
            if id == wanted and _is_artifact(id, names):
                return id
        error = ArtifactNotFound(ref[:80])
        known = [id for id in names if _is_artifact(id, names)]  # noqa: A001
        # Only a slip of the pen is helped out with: ids are not to be found by guessing.
        near = difflib.get_close_matches(wanted[:20].lower(), known, n=1, cutoff=0.85)
        if near:
            error.hint = f"Did you mean {near[0]}?"
        raise error

    def record(self, id: str) -> Artifact | None:  # noqa: A002
        """What the record of an artifact says; None if it is gone or not to be read."""
        return read_record(self.path / f"{id}.json", id)

    def data_path(self, names: Iterable[str]) -> Path:
        """Which of an artifact's names is that of its bytes.

        Raises:
            FileNotFoundError: none is.
        """
        for name in names:
            if not name.endswith((".json", ".part")):
                return self.path / name
        raise FileNotFoundError

    def open(self, names: Iterable[str]) -> BufferedReader:
        """Open the bytes of an artifact.

        Raises:
            FileNotFoundError: they are gone, or something else is in their place.
        """
        # No link and no pipe that somebody has put there is followed or waited for.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = os.fdopen(os.open(self.data_path(names), flags), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise FileNotFoundError
        return file

    def remove(self, names: Iterable[str]) -> None:
        """Remove an artifact: its record first, so that it is never half there."""
        for name in sorted(names, key=lambda name: not name.endswith(".json")):
            (self.path / name).unlink(missing_ok=True)

    def make_room(self, quota_bytes: int, keep: str | None) -> list[str]:
        """Remove the oldest artifacts until the others fit; tell which."""
        names = self.names()
        found: list[tuple[int, str, int]] = []
        for id in names:  # noqa: A001
            size, newest = self._measure(names[id])
            if _is_artifact(id, names):
                found.append((newest, id, size))
            elif newest < time.time_ns() - ABANDONED * 1e9 and _id.fullmatch(id):
                self._sweep(names[id])
        total = sum(size for _, _, size in found)
        count = len(found)
        gone: list[str] = []
        for _, id, size in sorted(found):  # noqa: A001
            if total <= quota_bytes and count <= MOST_ARTIFACTS:
                break
            if id != keep:
                self.remove(names[id])
                gone.append(id)
                total -= size
                count -= 1
        return gone

    def _measure(self, names: Iterable[str]) -> tuple[int, int]:
        size = newest = 0
        for name in names:
            with suppress(FileNotFoundError):
                status = (self.path / name).lstat()
                size += status.st_size
                newest = max(newest, status.st_mtime_ns)
        return size, newest

    def _sweep(self, names: Iterable[str]) -> None:
        """Remove what is no part of an artifact, unless somebody is still writing it."""
        import fcntl

        for name in names:
            path = self.path / name
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)


def _is_artifact(id: str, names: Names) -> bool:  # noqa: A002
    return _id.fullmatch(id) is not None and f"{id}.json" in names[id]
