from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


_PROGRAM = """
import asyncio, os, sys
from cellwright.mcp.stdio import StdioWire
print("waiting in the buffer")
wire = StdioWire()
print("stray")
sys.stdout.flush()
os.system("echo child; cat")
async def main():
    await wire.write(b"protocol\\n")
    async for line in wire.lines():
        await wire.write(line * int(sys.argv[1]) + b"\\n")
asyncio.run(main())
"""


def test_the_wire_moves_away_before_anybody_can_write_to_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "1"],
        input=b"from the client\n",
        capture_output=True,
        check=True,
        env=dict(os.environ),
    )

    assert done.stdout == b"protocol\nfrom the client\n"
    assert done.stderr.split(b"\n")[:3] == [b"waiting in the buffer", b"stray", b"child"]


def test_a_file_can_be_the_client(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.write_bytes(b"one\ntwo\nthree")
    with asked.open("rb") as source, (tmp_path / "told").open("wb") as told:
        subprocess.run([sys.executable, "-c", _PROGRAM, "1"], stdin=source, stdout=told, check=True)

    assert (tmp_path / "told").read_bytes() == b"protocol\none\ntwo\nthree\n"


def test_a_client_that_reads_late_misses_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked = [b"%04d" % number for number in range(1000)]
        process.stdin.write(b"\n".join(asked) + b"\n")
        process.stdin.close()
        told = process.stdout.read().split(b"\n")

    assert told == [b"protocol", *(line * 100 for line in asked), b""]
