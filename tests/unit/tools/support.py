"""What tests of tools share: notebooks to read, and a reader of fenced answers."""

from __future__ import annotations

import base64
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING, Any

from cellwright.document import files
from cellwright.errors import NotSaved
from tests.unit.cli import samples

if TYPE_CHECKING:
    import pytest

_opening = re.compile(r"<data ([0-9a-f]{4,})(?:: ([^<>\n]*))?>").fullmatch


def png(width: int = 4, height: int = 4, pixel: bytes = b"\x80\x10\x20") -> bytes:
    """A picture of one colour; of noise, if `pixel` is empty."""
    rows = b"".join(b"\0" + (pixel * width or os.urandom(3 * width)) for _ in range(height))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def picture(width: int = 4, height: int = 4, **how: bytes) -> dict[str, Any]:
    """An output that is a picture."""
    data = base64.b64encode(png(width, height, **how)).decode()
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {"image/png": data, "text/plain": ["<Figure>"]},
    }


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    """Something printed."""
    return {"output_type": "stream", "name": name, "text": text}


def book(*sources: str) -> bytes:
    """A notebook of code cells `c0`, `c1`, … that a kernel in memory understands."""
    return samples.write(*(samples.code(f"c{at}", text) for at, text in enumerate(sources)))


def outside(text: str) -> list[str]:
    """The lines of an answer that are ours: all but those between fences, and the fences.

    Inside a fence, a line with its number in front is ours.
    """
    return _split(text)[0]


def within(text: str) -> str:
    """What is between the fences of an answer, without our lines there."""
    return "\n".join(_split(text)[1])


def _split(text: str) -> tuple[list[str], list[str]]:
    ours: list[str] = []
    theirs: list[str] = []
    inside: str | None = None
    for line in text.split("\n"):
        found = _opening(line)
        if inside is None and found:
            inside = found[1]
        elif inside is None:
            ours.append(line)
        elif line == f"</data {inside}>":
            inside = None
        elif line.startswith(f"{inside} "):
            ours.append(line.removeprefix(f"{inside} "))
        else:
            theirs.append(line)
    assert inside is None, "a fence is not closed"
    return ours, theirs


def refuse_to_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every save fail, as on a full disk."""

    def refuse(real: str, *_: Any, **__: Any) -> Any:
        raise NotSaved(real, "write", "no space left")

    monkeypatch.setattr(files, "replace_file", refuse)
