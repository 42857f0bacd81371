"""A notebook that is open in JupyterLab: how soon a change is seen, and what our extension costs.

Two servers, the same pages: one with our extension, one without. The pages take turns.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.mcp_lean import LeanClient
from benchmarks.tables import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, CDPSession, Page

ROOT = Path(__file__).parent.parent
LAB = ROOT / ".dev" / "lab" / "bin" / "python"
PLACES = ("CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR", "STATE_HOME")
OURS, PLAIN = "with Cellwright", "plain JupyterLab"
MOST_EDIT, MOST_SPLICE, MOST_FREEZE = 150.0, 200.0, 100.0  # milliseconds
MOST_TYPING, MOST_OPENING = 1.10, 1.20  # times plain JupyterLab
CELLS = 1000
FLOOD = "for i in range(100_000):\n    print(f'{i:06d} ' + 'x' * 92)"  # 10 MB
LAST_LINE = "099999"
LONGEST_FLOOD = 180.0  # seconds

# What the pages measure themselves. A frame is over when the next task after it begins.
TOOLS = """() => {
    const cw = window.cw = {keys: [], longest: 0, seen: 0};
    cw.panel = () => window.jupyterapp.shell.currentWidget;
    cw.painted = () => new Promise(done => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done();
        channel.port2.postMessage(0);
    }));
    cw.until = async isTrue => {
        while (!isTrue()) {
            await cw.painted();
        }
        await cw.painted();
    };
    // Looks now and then: to ask for frames all the time would cost more than it sees.
    cw.watch = async text => {
        cw.seen = 0;
        const {content} = cw.panel();
        const isThere = cell => cell.node.textContent.includes(text);
        while (!content.widgets.slice(0, 8).some(isThere)) {
            await new Promise(done => setTimeout(done, 5));
        }
        await cw.painted();
        cw.seen = Date.now();
    };
    cw.open = async path => {
        const began = performance.now();
        const panel = await window.jupyterapp.commands.execute('docmanager:open', {path});
        await panel.context.ready;
        await panel.revealed;
        await cw.until(() => panel.content.widgets[1]?.node.querySelector('.cm-content')?.textContent);
        return performance.now() - began;
    };
    cw.close = () => cw.panel().dispose();
    let isOn = false;
    cw.beginFrames = () => {
        isOn = true;
        cw.longest = 0;
        let last = performance.now();
        const look = () => {
            const now = performance.now();
            cw.longest = Math.max(cw.longest, now - last);
            last = now;
            isOn && cw.painted().then(look);
        };
        look();
    };
    cw.endFrames = () => {
        isOn = false;
        return cw.longest;
    };
    document.addEventListener('keydown', () => {
        const began = performance.now();
        cw.painted().then(() => cw.keys.push(performance.now() - began));
    }, true);
}"""
IS_READY = """() => {
    const panel = window.cw.panel();
    return panel?.sessionContext?.session?.kernel?.status === 'idle'
        && (!window.jupyterapp.hasPlugin('cellwright-lab:live') || panel.hasClass('cw-shared'));
}"""

# JupyterLab makes cells that are not seen when it has time, which a busy machine never gives it. A
# new cell costs less with our extension: without this, its side has more cells, and slower keys.
MAKE_WHOLE = """async () => {
    const {content} = cw.panel();
    for (let index = 0; index < content.widgets.length; index++) {
        content.renderCellOutputs(index);
        await content.widgets[index].ready;
    }
    await cw.painted();
    return document.querySelectorAll('.jp-Notebook .cm-editor').length;
}"""
SPLICE = """text => {
    cw.watch(text);
    const notebook = cw.panel().content.model.sharedModel;
    notebook.transact(() => {
        notebook.deleteCellRange(2, 5);
        const cells = [0, 1, 2].map(n => ({cell_type: 'code', source: `z${n} = '${text}'`}));
        notebook.insertCells(2, cells);
    });
}"""


@dataclass
class Side:
    """One JupyterLab: a page of it, and the folder of its notebooks."""

    page: Page
    folder: Path
    devtools: CDPSession

    def measure(self, act: Callable[[str], object], text: str) -> tuple[float, float]:
        """Do something, and return how long it took until the page showed a text.

        The first number is time, the second what the page's own thread worked meanwhile: that
        says more on a busy machine. Both in milliseconds.
        """
        self.page.evaluate("text => { cw.watch(text) }", text)
        work, began = self._work(), time.time() * 1000
        with ThreadPoolExecutor() as threads:
            done = threads.submit(act, text)
            self.page.wait_for_function("() => cw.seen", timeout=120_000)
            took = self.page.evaluate("() => cw.seen") - began
            worked = self._work() - work
            done.result()
        self.page.wait_for_timeout(1000)
        return took, worked

    def measure_by_hand(self, text: str) -> tuple[float, float]:
        """Splice the model as JupyterLab itself does, and return the same."""
        work, began = self._work(), time.time() * 1000
        self.page.evaluate(SPLICE, text)
        self.page.wait_for_function("() => cw.seen", timeout=120_000)
        took = self.page.evaluate("() => cw.seen") - began
        worked = self._work() - work
        self.page.wait_for_timeout(1000)
        return took, worked

    def _work(self) -> float:
        found = self.devtools.send("Performance.getMetrics")["metrics"]
        return next(
            1000.0 * float(each["value"]) for each in found if each["name"] == "TaskDuration"
        )

    def open(self, name: str) -> float:
        """Open a notebook, wait until it can be used, and return how long it was not seen."""
        took: float = self.page.evaluate("path => cw.open(path)", name)
        self.page.wait_for_function(IS_READY, timeout=300_000)
        return took

    def make_whole(self) -> None:
        """Have all cells of the large notebook made, as they are once it has been open for long."""
        self.page.bring_to_front()
        made = self.page.evaluate(MAKE_WHOLE)
        assert made == CELLS, f"{made} of {CELLS} cells have an editor"
        self.rest()

    def rest(self, seconds: float = 1.5) -> None:
        """Let the page finish what it does after a change."""
        self.page.wait_for_timeout(seconds * 1000)


def run(*, quick: bool = False) -> list[str]:
    """Print the tables; returns the goals that were missed."""
    chromium = shutil.which("chromium")
    if chromium is None or not LAB.exists():
        print("Chromium or JupyterLab is missing: ./dev bench live makes both")
        return ["live: not measured"]
    from playwright.sync_api import sync_playwright

    busy = os.getloadavg()[0]
    print(
        f"\nLoad before: {busy:.1f} on {os.cpu_count()} cores; the times mean little if it is high"
    )
    with contextlib.ExitStack() as stack:
        # A short path, because sockets are in it.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cwb")))
        stack.enter_context(_places(folder))
        playwright = stack.enter_context(sync_playwright())
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        stack.callback(browser.close)
        sides = {
            OURS: stack.enter_context(_side(browser, folder / "ours", ("cellwright", "lab"))),
            PLAIN: stack.enter_context(_side(browser, folder / "plain", ("jupyterlab",))),
        }
        missed = _openings(sides, 3 if quick else 9)
        missed += _keys(sides, 3 if quick else 8)
        missed += _changes(sides, 7 if quick else 30)
        missed += _floods(sides, 1 if quick else 3)
    return missed


# -- what is measured ---------------------------------------------------------------------------


def _openings(sides: dict[str, Side], rounds: int) -> list[str]:
    """Open the large notebook again and again; it stays open at the end."""
    rows: dict[str, list[float]] = {name: [] for name in sides}
    after: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        _write(side.folder / "large.ipynb", CELLS)
        side.open("large.ipynb")
        side.rest()
    for _ in range(rounds):
        for name, side in sides.items():
            side.page.evaluate("() => cw.close()")
            side.rest()
            side.page.evaluate("() => cw.beginFrames()")
            rows[name].append(side.open("large.ipynb"))
            side.rest()
            after[name].append(side.page.evaluate("() => cw.endFrames()"))
    title = f"{CELLS:,} cells, opened · {rounds} rounds"
    missed = _compare(title, rows, MOST_OPENING)
    for name, values in after.items():
        print(f"  {name:34} longest freeze meanwhile {statistics.median(values):7.0f} ms")
    return missed


def _keys(sides: dict[str, Side], rounds: int) -> list[str]:
    """Type into a cell of the large notebook: from a key to the frame that shows it."""
    rows: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side.make_whole()
    for _ in range(rounds):
        for name, side in sides.items():
            page = side.page
            page.bring_to_front()
            page.evaluate(
                """() => {
                    const {content} = cw.panel();
                    content.activeCellIndex = 3;
                    content.mode = 'edit';
                    cw.keys = [];
                }"""
            )
            side.rest()
            for number in range(40):
                page.keyboard.press("Enter" if number % 20 == 19 else "abcdefghij"[number % 10])
                page.wait_for_timeout(30 + number % 17)  # not in step with the frames
            side.rest()
            found = page.evaluate("() => cw.keys")
            assert len(found) == 40, found
            rows[name] += found
    title = f"{CELLS:,} cells, typing: from a key to its frame · {rounds * 40} keys"
    return _compare(title, rows, MOST_TYPING)


def _changes(sides: dict[str, Side], rounds: int) -> list[str]:
    """Let an agent edit a small notebook and splice the large one, through MCP.

    Beside it, what JupyterLab itself needs to show the same splice of its own model: by that, and
    by the work of the page, the rest is known, which is ours.
    """
    plain, ours = sides[PLAIN], sides[OURS]
    for side in (plain, ours):
        # Or JupyterLab is busy with the place of a person whose cell goes, for much longer.
        side.page.evaluate("() => { cw.panel().content.activeCellIndex = 0 }")
        side.page.evaluate("() => { cw.panel().content.mode = 'command' }")
    client = LeanClient(str(ours.folder))

    def replace(text: str) -> None:
        edit = {"op": "replace", "cell": 1, "source": f"y = '{text}'"}
        client.call("notebook_edit", path="small.ipynb", edits=[edit])

    def splice(text: str) -> None:
        new = [{"op": "insert", "after": 1, "source": f"z{n} = '{text}'"} for n in range(3)]
        edits = [*({"op": "delete", "cell": n} for n in (2, 3, 4)), *new]
        client.call("notebook_edit", path="large.ipynb", edits=edits)

    spliced: list[tuple[float, float]] = []
    by_hand: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    try:
        for turn in range(rounds + 2):  # they take turns, because other programs may be busy
            for name, side in sides.items():
                side.page.bring_to_front()
                side.rest()  # a page that is seen again has to be drawn
                by_hand[name].append(side.measure_by_hand(f"by hand {turn}"))
            ours.page.bring_to_front()
            ours.rest()
            spliced.append(ours.measure(splice, f"by an agent {turn}"))
        _write(ours.folder / "small.ipynb", 20)
        ours.open("small.ipynb")
        edited = [ours.measure(replace, f"seen {n}") for n in range(rounds + 2)]
    finally:
        client.close()
    print(f"\nFrom an agent's call (MCP) to the frame that shows it · {rounds} rounds")
    return [
        *_show_work("an edit of a cell, 20 cells", edited[2:], MOST_EDIT),
        *_show_work(f"three cells for three, {CELLS:,} cells", spliced[2:], MOST_SPLICE),
        *_show_work(f"the same without an agent, {OURS}", by_hand[OURS][2:], None),
        *_show_work(f"the same without an agent, {PLAIN}", by_hand[PLAIN][2:], None),
    ]


def _show_work(name: str, rows: list[tuple[float, float]], most: float | None) -> list[str]:
    times, work = zip(*rows, strict=True)
    note = f"  min {min(times):.0f}, work of the page {statistics.median(work):.0f}"
    return _limit(name, list(times), most, note)


def _floods(sides: dict[str, Side], rounds: int) -> list[str]:
    """Have 10 MB printed, by the person and by an agent: the longest time without a frame."""
    ways = {
        f"{PLAIN}, run by the person": (sides[PLAIN], False),
        f"{OURS}, run by the person": (sides[OURS], False),
        f"{OURS}, run by an agent": (sides[OURS], True),
    }
    rows: dict[str, list[float]] = {name: [] for name in ways}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for place, (name, (side, is_agent)) in enumerate(ways.items()):
            path = f"flood-{place}-{turn}.ipynb"
            _write(side.folder / path, 2, FLOOD)
            side.open(path)
            side.rest()
            freeze, seconds = _flood(side, path, is_agent=is_agent)
            rows[name].append(freeze)
            times[name].append(seconds)
            side.page.evaluate(
                "async () => { await cw.panel().sessionContext.shutdown(); cw.close() }"
            )
    print(f"\n10 MB of lines: the longest time without a frame · {rounds} rounds")
    missed = []
    plain = statistics.median(next(iter(rows.values())))
    for name, values in rows.items():
        most = MOST_FREEZE if "an agent" in name else None
        ratio = statistics.median(values) / plain
        note = (
            f"  {ratio:4.2f} × {PLAIN}, {statistics.median(times[name]):5.1f} s until all is there"
        )
        missed += _limit(name, values, most, note)
    return missed


def _flood(side: Side, path: str, *, is_agent: bool) -> tuple[float, float]:
    from playwright.sync_api import TimeoutError as TookTooLong

    page = side.page
    page.evaluate("() => cw.beginFrames()")
    began = time.perf_counter()
    if is_agent:
        client = LeanClient(str(side.folder))
        client.call("notebook_run", path=path, cells=[0])
        client.close()
    else:
        page.evaluate(
            """() => {
                cw.panel().content.activeCellIndex = 0;
                void window.jupyterapp.commands.execute('notebook:run-cell');
            }"""
        )
    seconds = math.inf  # a page that is frozen for too long loses its kernel, and never has all
    with contextlib.suppress(TookTooLong):
        page.wait_for_function(
            """line => {
                const outputs = cw.panel().content.model.cells.get(0).outputs;
                const last = outputs.get(outputs.length - 1)?.streamText;
                return last && last.text.slice(-200).includes(line);
            }""",
            arg=LAST_LINE,
            polling=200,
            timeout=LONGEST_FLOOD * 1000,
        )
        seconds = time.perf_counter() - began
    side.rest()
    return float(page.evaluate("() => cw.endFrames()")), seconds


# -- tables -------------------------------------------------------------------------------------


def _compare(title: str, rows: dict[str, list[float]], most: float) -> list[str]:
    ratio = statistics.median(rows[OURS]) / statistics.median(rows[PLAIN])
    words, missed = judge(f"{title.partition(' · ')[0]}: × {PLAIN}", ratio, most)
    print(f"\n{title}")
    for name, values in rows.items():
        line = f"  {name:34} {statistics.median(values):8.1f} ms (min {min(values):.1f})"
        if name == OURS:
            line += f"  goal × {PLAIN} {words}"
        print(line)
    return missed


def _limit(name: str, values: list[float], most: float | None, note: str = "") -> list[str]:
    median = statistics.median(values)
    goal = ""
    missed: list[str] = []
    if most is not None:
        words, missed = judge(name, median, most, " ms")
        goal = f"  goal {words}"
    print(f"  {name:44} {median:8.1f} ms (max {max(values):.1f}){note}{goal}")
    return missed


# -- servers and pages --------------------------------------------------------------------------


@contextlib.contextmanager
def _places(folder: Path) -> Iterator[None]:
    """Servers, the engine and its clients use places of their own."""
    for place in PLACES:
        (folder / place).mkdir(mode=0o700)
        os.environ[f"XDG_{place}"] = str(folder / place)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(folder / f"jupyter-{place}")
    os.environ |= {"CELLWRIGHT_ENGINE": "always", "IPYTHONDIR": str(folder / "ipython")}
    os.environ.pop("CELLWRIGHT_RUNTIME_DIR", None)
    try:
        yield
    finally:
        words = [sys.executable, "-m", "cellwright", "engine", "stop", "--quiet"]
        subprocess.run(words, check=False, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def _side(browser: Browser, folder: Path, module: tuple[str, ...]) -> Iterator[Side]:
    """Start a server in a folder, and open a page of it without a notebook."""
    folder.mkdir()
    token, log = secrets.token_hex(8), folder.with_suffix(".log")
    home = {f"JUPYTERLAB_{name}_DIR": f"{folder}-{name}" for name in ("SETTINGS", "WORKSPACES")}
    first, *rest = module
    if not rest:
        home["JUPYTER_CONFIG_DIR"] = str(_leave_out_cellwright(Path(f"{folder}-config")))
    command = [
        *(str(LAB), "-P", "-m", first, *rest, "--no-browser"),
        *(("--",) if rest else (f"--ServerApp.root_dir={folder}",)),
        *("--allow-root", "--ip=127.0.0.1", "--port=0", "--expose-app-in-browser"),
        f"--IdentityProvider.token={token}",
        # Or the server drops what comes faster than 1 MB a second.
        "--ZMQChannelsWebsocketConnection.limit_rate=False",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **home}, stdout=out, stderr=out
        )
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.goto(f"{found[0]}lab?token={token}")
        page.wait_for_function("() => window.jupyterapp", timeout=60_000)
        # A notebook that is opened before is not JupyterLab's current one.
        page.evaluate("() => window.jupyterapp.restored")
        is_ours = page.evaluate("() => window.jupyterapp.isPluginActivated('cellwright-lab:live')")
        assert is_ours == bool(rest), "a plain JupyterLab has our extension, or ours has not"
        page.evaluate(TOOLS)
        devtools = page.context.new_cdp_session(page)
        devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
        yield Side(page, folder, devtools)
    finally:
        process.kill()  # one that is asked to end while it reads a file for a page never does
        process.wait(20)


def _leave_out_cellwright(folder: Path) -> Path:
    """Make a configuration of a JupyterLab without our extension, which its environment has."""
    (folder / "labconfig").mkdir(parents=True)
    shown = {"disabledExtensions": {"cellwright-lab": True}}
    (folder / "labconfig" / "page_config.json").write_text(json.dumps(shown))
    served = {"ServerApp": {"jpserver_extensions": {"cellwright.server": False}}}
    (folder / "jupyter_server_config.json").write_text(json.dumps(served))
    return folder


def _write(path: Path, count: int, first: str = "x = 0") -> None:
    """Write a notebook of code cells, some lines each, every fourth with an output."""
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell{number}",
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": [f"{number}\n"]}]
            if number % 4 == 1
            else [],
            "source": f"x{number} = {number}\n# a line\nprint(x{number})" if number else first,
        }
        for number in range(count)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    path.write_text(json.dumps({**whole, "nbformat_minor": 5}, indent=1), encoding="utf-8")
