"""Real notebooks as tests: `pytest --cellwright` beside nbmake, the same verdicts and less time.

Every notebook of the corpus that is Python is a test, for both with kernels of the environment
that nbmake is in, one after the other. They take turns, some notebooks at a time. Where the two
disagree, the notebook is run once more by both: what then changes is left to chance.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from benchmarks.fidelity import list_notebooks
from benchmarks.tables import judge

BIN = Path(__file__).resolve().parent.parent / ".dev" / "rivals" / "bin"
AT_ONCE = 20
CELL_SECONDS = 60
SIDES = {
    "nbmake": [str(BIN / "python"), "--nbmake", f"--nbmake-timeout={CELL_SECONDS}"],
    "cellwright": [sys.executable, "--cellwright", f"--cellwright-timeout={CELL_SECONDS}"],
}
CHANCE = "another run says something else"
SILENT = "failed silently"
QUIET = "no output is an error, and nbmake looks at outputs only"
REASONS = {
    "nbclient-Check-History-in-Memory": "nbclient keeps IPython's history in memory, and we where the user has it",
    **dict.fromkeys(
        (
            "nbval-exceptions",
            "nbval-index",
            "nbval-sample_notebook",
            "nbval-test-exceptions-fail-storedmismatch",
        ),
        "only we have nbval's tags",
    ),
    "nbmake-mock": "only nbmake has its metadata `mock`",
    "nbmake-post_cell_execute": "only nbmake has its metadata `post_cell_execute`",
    "nbmake-post_cell_execute_error": "only nbmake has its metadata `post_cell_execute`",
}


class Round(NamedTuple):
    """The verdict of both sides by notebook, and the seconds that each of them took."""

    verdicts: dict[str, tuple[str, ...]]
    seconds: dict[str, float]


def run(*, quick: bool = False) -> list[str]:
    """Print the verdicts that differ and the times; returns the goals that were missed."""
    paths = list_notebooks()[:: 20 if quick else 1]
    verdicts: dict[str, tuple[str, ...]] = {}
    seconds = dict.fromkeys(SIDES, 0.0)
    missed: list[str] = []
    print(f"\nNotebooks as tests, {len(paths)} of them", flush=True)
    for start in range(0, len(paths), AT_ONCE):
        found = run_both(paths[start : start + AT_ONCE])
        verdicts |= found.verdicts
        seconds = {side: spent + found.seconds[side] for side, spent in seconds.items()}
        print(f"{len(verdicts):5}  {', '.join(f'{k} {v:.0f} s' for k, v in seconds.items())}")
        sys.stdout.flush()
    by_name = {path.stem: path for path in paths}
    for name, pair in verdicts.items():
        if pair[0].split()[0] == pair[1].split()[0]:
            continue
        why = (
            QUIET if pair == ("passed", SILENT) else REASONS.get(re.sub(r"-[0-9a-f]{8}$", "", name))
        )
        if why is None and run_both([by_name[name]]).verdicts[name] != pair:
            why = CHANCE
        print(f"       {name}: {dict(zip(SIDES, pair, strict=True))}: {why or 'NO REASON'}")
        missed += [] if why else [f"pytest: {name} differs from nbmake without a reason"]
    for place, side in enumerate(SIDES):
        tally = Counter(pair[place] for pair in verdicts.values())
        print(f"{side:12} {seconds[side]:7.0f} s   {dict(tally)}")
    words, late = judge("pytest: seconds, × nbmake's", seconds["cellwright"] / seconds["nbmake"], 1)
    print(f"goal × nbmake {words}")
    return missed + late


def run_both(paths: list[Path]) -> Round:
    """Run these notebooks as tests of both sides."""
    verdicts: dict[str, tuple[str, ...]] = {path.stem: () for path in paths}
    seconds: dict[str, float] = {}
    for side, (python, *words) in SIDES.items():
        with tempfile.TemporaryDirectory(prefix="cwb") as name:
            folder = Path(name)
            for path in paths:
                (folder / path.stem).mkdir()
                shutil.copyfile(path, folder / path.stem / path.name)
            began = time.perf_counter()
            found = _run_tests(folder, python, words)
            seconds[side] = time.perf_counter() - began
        verdicts = {each: (*pair, found.get(each, "missing")) for each, pair in verdicts.items()}
    return Round(verdicts, seconds)


def _run_tests(folder: Path, python: str, words: list[str]) -> dict[str, str]:
    """How every notebook of a folder ended, by the name of its file."""
    report = folder / "report.xml"
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "VIRTUAL_ENV": str(BIN.parent)}
    environ |= {"XDG_STATE_HOME": str(folder / "state"), "CELLWRIGHT_ENGINE": "never"}
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    subprocess.run(
        [*command, *words, "."], cwd=folder, env=environ, capture_output=True, check=False
    )
    found = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314  # our own
        bad = "".join(each.text or "" for each in case if each.tag in ("failure", "error"))
        verdict = "passed" if not bad else "failed" if "Traceback (most recent" in bad else SILENT
        about = f"{case.get('classname')} {case.get('name')} {case.get('file')}"
        for each in folder.iterdir():
            if each.name in about:
                found[each.name] = verdict
    return found
