"""What is known about an artifact, and the file that says it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

from cellwright.outputs.sizes import human_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

SCHEME = "artifact://"
_LONGEST_RECORD = 64 * 2**10
_LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something kept aside; `created` is in seconds since 1970, sizes are bytes.

    `original_bytes` is what was written; `size` is less when the middle was left out.
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
        """Its address."""
        return SCHEME + self.id

    def __str__(self) -> str:
        return f"{self.uri} ({self.mime}, {human_size(self.size)})"


def to_record(artifact: Artifact) -> bytes:
    """The content of an artifact's record."""
    return json.dumps(asdict(artifact)).encode()


def label(text: str) -> str:
    """A name or origin, short enough for a record."""
    return text[:_LONGEST_LABEL]


def read_record(path: Path, id: str) -> Artifact | None:  # noqa: A002
    """The artifact that a record is about; None if it is gone or is no record of ours."""
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
