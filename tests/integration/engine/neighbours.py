"""A greedy client beside a small one in one engine: how long does the small one wait?

    .venv/bin/python -m tests.integration.engine.neighbours [GREED...]

The greedy one has large notebooks analysed, one after the other and twelve at once, and small ones
a hundred at once; it reads, edits, runs and shows one of a hundred megabytes, runs cells that flood
their output, show pictures, and have results and errors of a hundred megabytes, and makes a
thousand calls. The small one reads a notebook of three cells all the while, and now and then edits
it, or reads one with some output.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from cellwright.engine import connect
from cellwright.engine.client import PATIENCE
from tests.unit.cli import samples
from tests.unit.tools.support import picture

MOST_SECONDS = 1.0
"""What the small client may wait, in 99 of 100 calls: the machine may do something else."""

# Each ends by itself; the number is how often it is done.
GREEDY = {
    "analysis": (6, "book(f'large{number}.ipynb').stale()"),
    "large reads": (6, "book('large0.ipynb').read()"),
    "floods": (3, "workspace.eval(['for n in range(200_000): print(n, \"x\" * 60)'])"),
    "pictures": (20, "book('pictures.ipynb').outputs()"),
    "large output": (1, "book('huge.ipynb').run()"),
    "12 analyses": (1, "at_once(12, lambda n: connect().open(f'large{n}.ipynb').stale())"),
    "100 analyses": (1, "at_once(100, lambda n: book(f'middling{n}.ipynb').stale())"),
    "100 MB reads": (3, "book('heavy.ipynb').read(stale=True)"),
    "12 100 MB reads": (1, "at_once(12, lambda _: connect().open('heavy.ipynb').read())"),
    "100 MB edits": (
        4,
        "book('heavy.ipynb').edit([{'op': 'replace', 'cell': 1, 'source': repr(time.time())}])",
    ),
    "100 MB undo": (
        1,
        "change(); book('heavy.ipynb').undo()",
    ),
    "100 MB run": (1, "book('heavy.ipynb').run([0])"),
    "100 MB outputs": (2, "book('heavy.ipynb').outputs()"),
    "100 MB stale": (2, "book('heavy.ipynb').stale()"),
    "100 MB text": (2, "book('heavy.ipynb').read(text=True); book('heavy.ipynb').select('5')"),
    "100 MB log": (
        2,
        "change(); book('heavy.ipynb').log(); book('heavy.ipynb').blame(); book('heavy.ipynb').diff()",
    ),
    "100 MB show": (1, "command('show', 'heavy.ipynb')"),
    "100 MB source": (
        2,
        "read(); book('prose.ipynb').edit([{'op': 'delete', 'cell': 0}]); book('prose.ipynb').undo()",
    ),
    "1,000 calls": (1000, "book('small.ipynb').read()"),
}
_CLIENT = """
import subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
from cellwright.engine import connect
def command(*words):
    program = [sys.executable, "-m", "cellwright", *words]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
def at_once(times, work):
    with ThreadPoolExecutor(times) as pool:
        list(pool.map(work, range(times)))
def change():
    book('heavy.ipynb').edit([{{'op': 'delete', 'cell': 0}}])
def read():
    book('prose.ipynb').read(text=True, stale=True)
    source = repr(time.time())
    book('prose.ipynb').edit([{{'op': 'replace', 'cell': 1, 'source': source}}])
with connect() as workspace:
    book = workspace.open
    for number in range({times}):
        {call}
        print("done", flush=True)
"""


class Waits(NamedTuple):
    """How long the calls of the small client took, in seconds, beside one kind of greed."""

    greed: str
    seconds: list[float]

    @property
    def p99(self) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]

    @property
    def is_late(self) -> bool:
        """Whether calls took too long, or a single one so long that the engine seems lost."""
        return self.p99 > MOST_SECONDS or max(self.seconds) > PATIENCE

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (
            f"{self.greed:15} {len(ordered):6} calls   p50 {ordered[len(ordered) // 2]:6.3f} s"
            f"   p99 {self.p99:6.3f} s   most {ordered[-1]:6.3f} s"
        )


def prepare(folder: Path, cells: int = 5000) -> None:
    """Write the notebooks that both use."""
    (folder / "small.ipynb").write_bytes(samples.SALES)
    printed = {"output_type": "stream", "name": "stdout", "text": ["x" * 79 + "\n"] * 4000}
    (folder / "medium.ipynb").write_bytes(samples.write(samples.code("m", "1", printed)))
    # Each is another one: the analysis of what was just analysed is remembered.
    for name, number, length in (("large", 12, cells), ("middling", 100, cells // 8)):
        for place in range(number):
            code = [f"x{n} = x{max(0, n - 1)} + {place}" for n in range(length)]
            chain = [samples.code(f"c{n}", source) for n, source in enumerate(code)]
            (folder / f"{name}{place}.ipynb").write_bytes(samples.write(*chain))
    show = "from IPython.display import display\ndisplay({'text/plain': 'x' * 10**8}, raw=True)"
    huge = [show, "'x' * 10**8", "print('x' * 10**8)", "raise ValueError('x' * 10**8)"]
    huge_cells = [samples.code(f"h{n}", source) for n, source in enumerate(huge)]
    (folder / "huge.ipynb").write_bytes(samples.write(*huge_cells))
    shown = [picture(1000, 600, pixel=b"") for _ in range(5)]
    (folder / "pictures.ipynb").write_bytes(samples.write(samples.code("p", "1", *shown)))


def prepare_heavy(folder: Path) -> None:
    """Write two notebooks of a hundred megabytes.

    One has half of it in four outputs and half in five hundred, the other all in one source.
    """

    def printed(lines: int) -> dict[str, Any]:
        return {"output_type": "stream", "name": "stdout", "text": ["x" * 79 + "\n"] * lines}

    cells = [samples.code(f"v{n}", f"y{n} = {n}", printed(1000)) for n in range(500)]
    cells += [samples.code(f"w{n}", f"z{n} = {n}", printed(125_000)) for n in range(4)]
    (folder / "heavy.ipynb").write_bytes(samples.write(*cells))
    prose = [samples.markdown("prose", "word " * 20_000_000), samples.code("c", "1")]
    (folder / "prose.ipynb").write_bytes(samples.write(*prose))


def measure(folder: Path, greed: str, *, least: int = 50) -> Waits:
    """Let the greedy client work in `folder`, and measure the small one until it has ended."""
    times, call = GREEDY[greed]
    if "heavy" in call or "prose" in call:
        prepare_heavy(folder)
    code = _CLIENT.format(times=times, call=call)
    seconds: list[float] = []
    workspace = connect(cwd=str(folder))
    assert workspace is not None
    greedy = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.DEVNULL)
    try:
        with workspace:
            small = workspace.open("small.ipynb")
            while greedy.poll() is None or len(seconds) < least:
                began = time.monotonic()
                if len(seconds) % 10 == 9:
                    edit = {"op": "replace", "cell": 0, "source": f"# {len(seconds)}"}
                    small.edit([edit])
                elif len(seconds) % 10 == 4:
                    workspace.open("medium.ipynb").read()
                else:
                    small.read()
                seconds.append(time.monotonic() - began)
    finally:
        greedy.kill()
        ended = greedy.wait()
    assert ended == 0, f"the greedy client did not do its work beside {greed!r}"
    return Waits(greed, seconds)


def main(*chosen: str) -> int:
    """Measure all of it, or what is chosen, with an engine of its own, and print the report."""
    import os
    import tempfile

    from cellwright.engine.launch import connect_or_start
    from tests.engines import Engine

    with tempfile.TemporaryDirectory(prefix="cellwright-neighbours-") as name:
        folder = Path(name)
        for variable in ("XDG_STATE_HOME", "CELLWRIGHT_RUNTIME_DIR"):
            place = folder / variable
            place.mkdir(mode=0o700)
            os.environ[variable] = str(place)
        os.environ["CELLWRIGHT_ENGINE"] = "always"
        prepare(folder)
        connect_or_start().close()
        try:
            found = [measure(folder, greed) for greed in chosen or GREEDY]
        finally:
            Engine().stop()
    print(*found, sep="\n")  # noqa: T201
    late = [waits.greed for waits in found if waits.is_late]
    print(f"too long beside: {', '.join(late)}" if late else "no wait of a second")  # noqa: T201
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
