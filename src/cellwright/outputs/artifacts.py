"""`ArtifactStore`: what is too much to show, kept on disk under ids that nobody can guess.

The folder is its own table. An artifact is two files, `<id>.<extension>` with the bytes and
`<id>.json` with the record; the record is written last, by a rename, and removed first, so that
whatever has a record is whole. Any number of processes may use one folder, and any of them may
be killed at any moment: there is nothing to lock, and nothing that could be left damaged.
Nothing is synced to the disk: after a power cut `verify` tells what survived.

An id is looked up among the names in the folder and never becomes part of a path by itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

from cellwright.config.defaults import ARTIFACT_MAX_BYTES, ARTIFACT_QUOTA_BYTES
from cellwright.errors import ArtifactNotFound, ArtifactsUnavailable
from cellwright.outputs import _reading
from cellwright.outputs._folder import Folder
from cellwright.outputs._record import Artifact
from cellwright.outputs._writing import ArtifactWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from io import BufferedReader

    from cellwright.outputs._reading import LinesPart, Part, TextPart

__all__ = ["Artifact", "ArtifactStore", "ArtifactWriter"]

_LEAST_BYTES = 1024


class ArtifactStore:
    """Artifacts in one private folder, the oldest of which make room for new ones.

    Args:
        directory: made when first needed, with mode 0700.
        quota_bytes: what all artifacts together may take. The oldest go first; one that is being
            written is no artifact yet, and never goes.
        max_artifact_bytes: what one may take. Of a longer text the beginning and the end are
            kept, with a line between them that says how much is missing; any longer other
            artifact is refused.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        quota_bytes: int = ARTIFACT_QUOTA_BYTES,
        max_artifact_bytes: int = ARTIFACT_MAX_BYTES,
    ) -> None:
        self.directory = Path(directory)
        self.quota_bytes = quota_bytes
        self.max_artifact_bytes = max(_LEAST_BYTES, min(max_artifact_bytes, quota_bytes))
        self._folder = Folder(self.directory)

    # -- writing ----------------------------------------------------------------------------

    def create(
        self, *, mime: str = "text/plain", name: str = "", origin: str = ""
    ) -> ArtifactWriter:
        """Start an artifact; it exists for others when its writer is committed.

        Args:
            mime: what it is.
            name: a label for people, such as `output`.
            origin: where it came from, such as a notebook and a cell.

        Raises:
            ArtifactsUnavailable: with the reason.
        """
        with _told():
            self._folder.make()
            return ArtifactWriter(
                self.directory,
                most_bytes=self.max_artifact_bytes,
                mime=mime,
                name=name,
                origin=origin,
                committed=lambda artifact: self.make_room(keep=artifact.id),
            )

    def put(
        self, data: bytes, *, mime: str = "text/plain", name: str = "", origin: str = ""
    ) -> Artifact:
        """Keep bytes that are all there already.

        Raises:
            ArtifactsUnavailable: with the reason.
        """
        with self.create(mime=mime, name=name, origin=origin) as writer:
            writer.write(data)
            return writer.commit()

    def delete(self, ref: str) -> None:
        """Remove an artifact.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with _told():
            names = self._folder.names()
            self._folder.remove(names[self._folder.resolve(ref, names)])

    def make_room(self, *, keep: str | None = None) -> list[str]:
        """Remove the oldest artifacts beyond the quota, and what killed writers left behind.

        Returns the ids that went; `keep` names one that stays in any case.
        """
        with _told():
            return self._folder.make_room(self.quota_bytes, keep)

    # -- reading ----------------------------------------------------------------------------

    def get(self, ref: str) -> Artifact:
        """What is known about an artifact, by its id or `artifact://` address.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with _told():
            artifact = self._folder.record(self._folder.resolve(ref, self._folder.names()))
        if artifact is None:
            raise ArtifactNotFound(ref[:80])
        return artifact

    def path(self, ref: str) -> Path:
        """The file with the bytes of an artifact, for handing it to another program.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with _told():
            names = self._folder.names()
            return self._folder.data_path(names[self._folder.resolve(ref, names)])

    def read(self, ref: str, offset: int = 0, limit: int = _reading.BYTES) -> Part:
        """Some bytes of an artifact.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with self._opened(ref) as file:
            return _reading.read_bytes(file, offset, limit)

    def read_text(self, ref: str, offset: int = 0, limit: int = _reading.BYTES) -> TextPart:
        """Some text of an artifact, as it was printed: it is not made harmless.

        Offsets count bytes. No character is cut: where one would be, the part begins after it
        or ends before it. `next_offset` is where to go on.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with self._opened(ref) as file:
            return _reading.read_text(file, offset, limit)

    def read_lines(
        self, ref: str, first: int = 1, count: int = 200, most_bytes: int = _reading.BYTES
    ) -> LinesPart:
        """Some lines of an artifact, counted from 1, as they were printed.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        with self._opened(ref) as file:
            return _reading.read_lines(file, first, count, most_bytes)

    def verify(self, ref: str) -> bool:
        """Whether an artifact still has the bytes that were written.

        Raises:
            ArtifactNotFound: there is none of that id.
        """
        import hashlib

        artifact = self.get(ref)
        with self._opened(ref) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256

    @contextmanager
    def _opened(self, ref: str) -> Iterator[BufferedReader]:
        with _told():
            names = self._folder.names()
            id = self._folder.resolve(ref, names)  # noqa: A001
            try:
                file = self._folder.open(names[id])
            except FileNotFoundError:  # it has just made room for another
                raise ArtifactNotFound(ref[:80]) from None
            with file:
                yield file

    def list(self) -> list[Artifact]:
        """All artifacts, the newest first."""
        with _told():
            found = [self._folder.record(id) for id in self._folder.ids()]  # noqa: A001
        known = [artifact for artifact in found if artifact is not None]
        return sorted(known, key=lambda artifact: artifact.created, reverse=True)


@contextmanager
def _told() -> Iterator[None]:
    """Whatever the system refuses is told in our words."""
    try:
        yield
    except ArtifactsUnavailable:
        raise
    except OSError as error:
        raise ArtifactsUnavailable(error.strerror or str(error)) from error
