"""What tests of tools share: notebooks to read, and a reader of fenced answers."""

from __future__ import annotations

import base64
import json
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING, Any

from cellwright.document import files
from cellwright.errors import NotSaved
from tests.unit.cli import samples

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.unit.tools.conftest import Call

COUNT = 7
"""The cells of the sample notebook."""
BROKEN = {
    "not JSON": b'{"cells": [',
    "empty": b"",
    "no cells": b'{"metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "cells are no array": b'{"cells": {}, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    "not an object": b"[]",
}
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


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a file as another parser reads them."""
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    return found


# Where a test is a coroutine: it may wait for the disk, unlike what it tests.


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


def is_there(path: Path) -> bool:
    return path.exists()


async def log(call: Call) -> list[dict[str, Any]]:
    """The history of the sample notebook."""
    return await call.caller.workspace.open("nb.ipynb").log()


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
