"""The raw stream of an execution on its way to an artifact, if there turns out to be much of it."""

from __future__ import annotations

from typing import Protocol

from cellwright.errors import CellwrightError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Committed(Protocol):
    """What a writer tells about the artifact it has made."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    @property
    def truncated(self) -> bool:
        """Whether something was left out of it."""


class SpillWriter(Protocol):
    """Where the stream goes: an artifact that is being written."""

    @property
    def id(self) -> str:
        """The id under which it can be read after `commit`."""

    def write(self, data: bytes) -> None:
        """Put bytes to the end."""

    def commit(self) -> Committed:
        """Finish it."""

    def abort(self) -> None:
        """Drop it."""


class Spill:
    """Holds the stream back until it is longer than what is kept anyway, then passes it on.

    That it cannot be written is a warning: the code that prints goes on.
    """

    def __init__(self, open_writer: Callable[[], SpillWriter] | None, held_bytes: int) -> None:
        self.warning: str | None = None
        self.committed: Committed | None = None
        self._open_writer = open_writer
        self._writer: SpillWriter | None = None
        self._held = bytearray()
        self._most_bytes = held_bytes

    @property
    def id(self) -> str | None:
        """The id of the artifact, as soon as there is one."""
        return self._writer.id if self._writer else None

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        if self._writer is not None:
            self._write(data)
        elif self._open_writer is not None:
            self._held += data
            if len(self._held) > self._most_bytes:
                self.start()

    def start(self) -> None:
        """Write what was held back, and from now on everything."""
        if self._writer is not None or self._open_writer is None:
            return
        try:
            self._writer = self._open_writer()
        except (CellwrightError, OSError) as error:
            self._give_up(error)
            return
        self._write(bytes(self._held))
        self._held.clear()

    def forget_held(self) -> None:
        """Drop what was held back; what has been written stays."""
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
        assert self._writer is not None  # noqa: S101  # the callers have looked
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
