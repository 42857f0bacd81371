"""A greedy client beside a small one in one engine: how long does the small one wait?

    .venv/bin/python -m tests.integration.engine.neighbours [GREED...]

The greedy one has a large notebook analysed, alone and twelve times at once, reads and edits one
of a hundred megabytes, runs cells that flood their output, show pictures, and have results and
errors of a hundred megabytes, and makes a thousand calls. The small one reads a notebook of three
cells all the while, and edits it now and then.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from cellwright.engine import connect
from tests.unit.cli import samples
from tests.unit.tools.support import picture

MOST_SECONDS = 1.0
"""What the small client may wait, in 99 of 100 calls."""

# Each ends by itself; the number is how often it is done.
GREEDY = {
    "analysis": (6, "book('large.ipynb').read(stale=True)"),
    "large reads": (6, "book('large.ipynb').read()"),
    "floods": (3, "workspace.eval(['for n in range(200_000): print(n, \"x\" * 60)'])"),
    "pictures": (20, "book('pictures.ipynb').outputs()"),
    "large output": (1, "book('huge.ipynb').run()"),
    "12 analyses": (2, "at_once(lambda: connect().open('large.ipynb').read(stale=True))"),
    "100 MB reads": (3, "book('heavy.ipynb').read(stale=True)"),
    "100 MB edits": (
        4,
        "book('heavy.ipynb').edit([{'op': 'replace', 'cell': 1, 'source': repr(time.time())}])",
    ),
    "100 MB undo": (
        1,
        "book('heavy.ipynb').edit([{'op': 'delete', 'cell': 0}]); book('heavy.ipynb').undo()",
    ),
    "1,000 calls": (1000, "book('small.ipynb').read()"),
}
_CLIENT = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from cellwright.engine import connect
def at_once(work):
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: work(), range(12)))
with connect() as workspace:
    book = workspace.open
    for _ in range({times}):
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

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (
            f"{self.greed:12} {len(ordered):6} calls   p50 {ordered[len(ordered) // 2]:6.3f} s"
            f"   p99 {self.p99:6.3f} s   most {ordered[-1]:6.3f} s"
        )


def prepare(folder: Path, cells: int = 5000) -> None:
    """Write the notebooks that both use."""
    (folder / "small.ipynb").write_bytes(samples.SALES)
    large = [samples.code(f"c{n}", f"x{n} = x{max(0, n - 1)} + {n}") for n in range(cells)]
    (folder / "large.ipynb").write_bytes(samples.write(*large))
    show = "from IPython.display import display\ndisplay({'text/plain': 'x' * 10**8}, raw=True)"
    huge = [show, "'x' * 10**8", "print('x' * 10**8)", "raise ValueError('x' * 10**8)"]
    huge_cells = [samples.code(f"h{n}", source) for n, source in enumerate(huge)]
    (folder / "huge.ipynb").write_bytes(samples.write(*huge_cells))
    shown = [picture(1000, 600, pixel=b"") for _ in range(5)]
    (folder / "pictures.ipynb").write_bytes(samples.write(samples.code("p", "1", *shown)))


def prepare_heavy(folder: Path) -> None:
    """Write a notebook of a hundred megabytes: half in four outputs, half in five hundred."""

    def printed(lines: int) -> dict[str, Any]:
        return {"output_type": "stream", "name": "stdout", "text": ["x" * 79 + "\n"] * lines}

    cells = [samples.code(f"v{n}", f"y{n} = {n}", printed(1000)) for n in range(500)]
    cells += [samples.code(f"w{n}", f"z{n} = {n}", printed(125_000)) for n in range(4)]
    (folder / "heavy.ipynb").write_bytes(samples.write(*cells))


def measure(folder: Path, greed: str, *, least: int = 50) -> Waits:
    """Let the greedy client work in `folder`, and measure the small one until it has ended."""
    times, call = GREEDY[greed]
    if "heavy" in call:
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
                else:
                    small.read()
                seconds.append(time.monotonic() - began)
    finally:
        greedy.kill()
        greedy.wait()
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
    late = [waits.greed for waits in found if waits.p99 > MOST_SECONDS]
    print(f"too long beside: {', '.join(late)}" if late else "no wait of a second")  # noqa: T201
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
