"""Real notebooks, run by nbclient and by us: the same outputs, or a difference with a reason.

Every notebook of the corpus that is Python is run by nbclient, by us, and by nbclient again, at the
same path and with kernels of the same environment. Where the two runs of nbclient differ, the
notebook is left to chance (times, random numbers, threads) and proves nothing.

All of it takes an hour, so every outcome is kept in `.dev/fidelity.jsonl` at once, and a run that
was stopped goes on where it was. Outcomes of other code are forgotten; a difference without a
reason is looked at again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cellwright import Workspace
from cellwright.errors import CellwrightError
from tests import corpus
from tests.kernels.comparing import comparable

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / ".dev" / "fidelity.jsonl"
PYTHON = ROOT / ".dev" / "corpus" / "bin" / "python"
NBCLIENT = ROOT / "tests" / "kernels" / "nbclient_side.py"
SECONDS = 240
CELL_SECONDS = 90  # a notebook of the corpus sleeps for a minute
WORKERS = 2
_model = re.compile(r"\b[0-9a-f]{32}\b")


class Outcome(NamedTuple):
    """What came of one notebook; `detail` is the first cell that differs."""

    name: str
    verdict: str
    detail: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


def run(*, quick: bool = False) -> list[str]:
    """Compare the runs, print every difference and the tally; the goal is none without a reason."""
    paths = list_notebooks()
    if quick:
        paths = paths[::20]
    code = fingerprint()
    known = load_outcomes(RECORD, code)
    outcomes = [known[name] for path in paths if (name := corpus.ids(path)) in known]
    print(f"\nOutputs beside nbclient's, {len(paths)} notebooks", flush=True)
    if outcomes:
        print(f"{len(outcomes)} of them were compared before, by the same code: {RECORD.name}")
    with tempfile.TemporaryDirectory(prefix="cwb") as place, ThreadPoolExecutor(WORKERS) as pool:
        for variable in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR", "IPYTHONDIR"):
            (Path(place) / variable.lower()).mkdir(mode=0o700)
            os.environ[variable] = f"{place}/{variable.lower()}"
        todo = [path for path in paths if corpus.ids(path) not in known]
        futures = [pool.submit(compare_runs, path) for path in todo]
        try:
            for future in as_completed(futures):
                outcomes.append(future.result())
                keep_outcome(RECORD, code, outcomes[-1])
                print(f"{len(outcomes):5}  {outcomes[-1]}", flush=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    print("\nThose that differ")
    for each in sorted(outcomes):
        if each.verdict != SAME:
            print(f"       {each}")
    print(f"\nOutputs beside nbclient's, {len(outcomes)} notebooks")
    for verdict, count in Counter(each.verdict for each in outcomes).most_common():
        print(f"{count:6}  {verdict}")
    bad = sorted(each.name for each in outcomes if each.verdict == UNEXPLAINED)
    return [f"fidelity: {name} differs from nbclient without a reason" for name in bad]


def fingerprint() -> str:
    """One line that changes with all that an outcome depends on, but for the machine."""
    kernels = ROOT / "tests" / "kernels"
    files = [
        *sorted((ROOT / "src").rglob("*.py")),
        *(Path(__file__), NBCLIENT, kernels / "comparing.py", ROOT / "requirements" / "corpus.txt"),
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def load_outcomes(record: Path, code: str) -> dict[str, Outcome]:
    """What the record knows of this code, by name, but for differences without a reason."""
    known: dict[str, Outcome] = {}
    for line in record.read_text("utf-8").splitlines() if record.exists() else ():
        with contextlib.suppress(ValueError):  # the last line, cut when a run was killed
            of, *outcome = json.loads(line)
            if of == code and outcome[1] != UNEXPLAINED:
                known[outcome[0]] = Outcome(*outcome)
    return known


def keep_outcome(record: Path, code: str, outcome: Outcome) -> None:
    """Add one to the record, which may end in a line that was cut."""
    record.parent.mkdir(exist_ok=True)
    with record.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps([code, *outcome])}\n")


def list_notebooks() -> list[Path]:
    """The notebooks of the corpus that a Python kernel can run, each code once."""
    found: dict[str, Path] = {}
    for path in corpus.notebooks():
        try:
            shape = json.loads(path.read_bytes())
            cells = [cell for cell in shape["cells"] if cell["cell_type"] == "code"]
            code = ["".join(cell["source"]) for cell in cells]
            language = shape["metadata"].get("kernelspec", {}).get("language", "python")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        spec = str(shape["metadata"].get("kernelspec", {}).get("name", "python3"))
        if language == "python" and spec.startswith("python") and any(map(str.strip, code)):
            found.setdefault(json.dumps(code), path)
    return list(found.values())


SAME = "the same"
CHANCE = "two runs of nbclient differ"
UNEXPLAINED = "DIFFERS"
NO_ANSWER = "nbclient gives up (a timeout, a dead kernel, a notebook it cannot read)"


def compare_runs(path: Path) -> Outcome:
    """Run one notebook three times, and compare."""
    name = corpus.ids(path)
    with tempfile.TemporaryDirectory(prefix="fidelity-") as folder:
        target = Path(folder) / "run" / "notebook.ipynb"
        theirs = _run_nbclient(_copy(path, target))
        if theirs is None:
            return Outcome(name, NO_ANSWER)
        try:
            ours = _run_ours(_copy(path, target))
        except CellwrightError as error:
            return Outcome(name, UNEXPLAINED, f"{error.code}: {error.message[:200]}")
        found = _find_difference(theirs, ours)
        if found is None:
            return Outcome(name, SAME)
        for reason, explains in REASONS:
            if explains(*found):
                return Outcome(name, reason)
        again = _run_nbclient(_copy(path, target))
        if again is None or _find_difference(theirs, again) is not None:
            return Outcome(name, CHANCE)
        return Outcome(name, UNEXPLAINED, f"{found[0]!s:.300} | {found[1]!s:.300}")


def _copy(path: Path, target: Path) -> Path:
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    return Path(shutil.copyfile(path, target))


def _run_nbclient(path: Path) -> list[dict[str, Any]] | None:
    try:
        subprocess.run(
            [PYTHON, NBCLIENT, "go-on", path],
            capture_output=True,
            timeout=SECONDS,
            check=True,
            env={**os.environ, "MPLCONFIGDIR": str(PYTHON.parent.parent / "matplotlib")},
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return _read(path)


def _run_ours(path: Path) -> list[dict[str, Any]]:
    with Workspace(path.parent, actor="bench:fidelity", engine=False) as workspace:
        workspace.open(path).run(kernel=str(PYTHON), keep_going=True, timeout=CELL_SECONDS)
    return _read(path)


def _read(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_bytes())["cells"]
    for cell in cells:
        cell["source"] = "".join(cell.get("source", ()))
        for output in cell.get("outputs", ()):
            _join_lines(output)
    return cells


def _join_lines(output: dict[str, Any]) -> None:
    if isinstance(output.get("text"), list):
        output["text"] = "".join(output["text"])
    for mime, value in output.get("data", {}).items():
        if isinstance(value, list) and all(isinstance(line, str) for line in value):
            output["data"][mime] = "".join(value)


def _find_difference(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> Any:
    """The first cell that differs, of both; None if all are the same."""
    pairs = zip(comparable(one), comparable(other), strict=True)
    return next(((a, b) for a, b in pairs if _settle(a) != _settle(b)), None)


def _settle(cell: Any) -> str:
    """A cell as text, with the ids of widgets by the order in which they come."""
    known: dict[str, str] = {}
    text = json.dumps(cell, sort_keys=True, default=str)
    return _model.sub(lambda found: known.setdefault(found[0], f"model {len(known)}"), text)


def _says(cell: Any, *words: str) -> bool:
    text = json.dumps(cell, default=str)
    return any(word in text for word in words)


REASONS: list[tuple[str, Callable[[Any, Any], bool]]] = [
    (
        "a message names the client: stdin of a kernel, by nbclient or by us",
        lambda theirs, ours: _says(theirs, "StdinNotImplementedError") and _says(ours, "Stdin"),
    ),
    (
        "nbclient keeps the history of IPython in memory, we leave it to the user's settings",
        lambda _, ours: _says(ours, "hist_file"),
    ),
    (
        "help (`len?`) is shown as JupyterLab shows it; nbclient drops it",
        lambda theirs, ours: not theirs[1] and _says(ours, "Docstring:", "Signature:", "Source:"),
    ),
    (
        "we put the environment of the kernel first on PATH, so that `!python` is its own",
        lambda theirs, ours: (
            _says(ours, str(PYTHON.parent)) and not _says(theirs, str(PYTHON.parent))
        ),
    ),
    (
        "we keep a display under its limit, and the rest in an artifact",
        lambda _, ours: _says(ours, "[cellwright: "),
    ),
]
