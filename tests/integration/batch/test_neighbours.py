"""Batches beside papermill, the plugin of pytest beside nbmake, and hooks in a real pre-commit.

The notebooks are those of the source distributions of papermill and nbmake. Both have tests of
their own for them, which say what should pass and which cell should fail.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cellwright.batch import run_batch
from tests import corpus
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

BIN = ROOT / ".dev" / "rivals" / "bin"
pytestmark = [pytest.mark.all, pytest.mark.timeout(2400)]

# The index of the cell that should fail; all others should pass.
FAILS = {
    "papermill-binder": 1,  # starts papermill in a folder of its repository
    "papermill-broken": 0,
    "papermill-broken1": 6,
    "papermill-broken2": 1,  # imports what IPython 9 has elsewhere
    "papermill-complex_parameters": 0,  # a line of it is not Python
    "papermill-line_magic_error": 0,
    "papermill-read_check": 1,  # wants a file of papermill's test
    "papermill-sysexit1": 1,
    "papermill-test_logging": 2,  # imports ggplot
    "nbmake-import_errs": 0,
    "nbmake-magic_error": 1,  # shows a figure that cannot be drawn
    "nbmake-mock": 1,  # the variables are set by nbmake's own metadata
    "nbmake-post_cell_execute": 1,  # so is the code after a cell
    "nbmake-post_cell_execute_masked_error": 0,
}
# Where nbmake says something else than our plugin, and why.
DIFFERS = {
    "papermill-line_magic_error": "IPython prints this error, and nbmake looks at outputs only",
    "nbmake-mock": "only nbmake has its metadata `mock`",
    "nbmake-post_cell_execute": "only nbmake has its metadata `post_cell_execute`",
    "nbmake-post_cell_execute_error": "only nbmake has its metadata `post_cell_execute`",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the notebooks, by their names without the hash."""
    monkeypatch.chdir(tmp_path)
    for path in corpus.notebooks():
        name = re.sub(r"-[0-9a-f]{8}$", "", path.stem)
        if name.startswith(("papermill-", "nbmake-")):
            shutil.copy(path, tmp_path / f"{name}.ipynb")
    return tmp_path


def test_notebooks_of_papermill_and_nbmake_pass_and_fail_where_they_should(folder: Path) -> None:
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    assert len(names) > 25
    report = run_batch(names, out="out", kernel=str(BIN / "python"), timeout=120)
    found = {result.job.notebook.removesuffix(".ipynb"): result for result in report.results}
    bad = {name: result.index for name, result in found.items() if not result.ok}
    assert bad == {name: index for name, index in FAILS.items() if name in found}
    for name in ("papermill-sysexit", "papermill-sysexit0", "papermill-systemexit"):
        assert "left the notebook" in found[name].notes[-1]
    assert "UsageError: Line magic" in found["papermill-line_magic_error"].message


def test_the_plugin_has_the_verdicts_of_nbmake(folder: Path) -> None:
    (folder / "papermill-keyboard_interrupt.ipynb").unlink()  # only sleeps for a minute
    ours, seconds = run_tests(folder, sys.executable, "--cellwright")
    theirs, their_seconds = run_tests(folder, str(BIN / "python"), "--nbmake")
    assert len(ours) > 25
    different = {name for name in ours if ours[name] != theirs.get(name)}
    assert different == set(DIFFERS), {name: (ours[name], theirs.get(name)) for name in different}
    print(f"{len(ours)} notebooks: ours {seconds:.1f} s, nbmake {their_seconds:.1f} s")  # noqa: T201


def run_tests(folder: Path, python: str, option: str) -> tuple[dict[str, str], float]:
    """Run all notebooks as tests; return the verdicts by name, and how long that took."""
    import xml.etree.ElementTree as ET

    report = folder / f"{option.strip('-')}.xml"
    environ = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "VIRTUAL_ENV": str(BIN.parent)}
    words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", option, f"--junitxml={report}"]
    subprocess.run([*words, "."], cwd=folder, env=environ, capture_output=True, check=False)
    suite = ET.parse(report).getroot()[0]  # noqa: S314  # our own
    verdicts = {}
    for case in suite.iter("testcase"):
        names = f"{case.get('classname')} {case.get('name')} {case.get('file')}"
        found = re.search(r"((?:papermill|nbmake)-[\w.-]+?)(?:\.ipynb|\s|$)", names)
        if found is not None:
            name = found.group(1).removesuffix(".ipynb")
            verdicts[name] = "failed" if case.find("failure") is not None else "passed"
    return verdicts, float(suite.get("time") or 0)


def test_the_hooks_work_in_pre_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    # As a local repository, in the environment of this test: no hook needs a network then.
    local = hooks.replace("language: python", "language: system").replace("\n", "\n      ")
    (tmp_path / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: local\n    hooks:\n      {local.rstrip()}\n"
    )
    output = {"output_type": "stream", "name": "stdout", "text": "1\n"}
    cell = {"cell_type": "code", "metadata": {}, "source": "print(1)", "outputs": [output]}
    old = {"cells": [cell | {"execution_count": 1}], "metadata": {}}
    (tmp_path / "old.ipynb").write_text(json.dumps({**old, "nbformat": 4, "nbformat_minor": 2}))
    environ = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}  # noqa: PTH120
    for words in (("init", "-q"), ("add", "."), ("config", "user.name", "test")):
        subprocess.run(["git", *words], check=True)

    def run(*words: str) -> tuple[int, str]:
        command = [str(BIN / "pre-commit"), "run", "--all-files", *words]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, said = run("check-clean")
    assert (code, "old.ipynb: outputs or counts in 0" in said) == (1, True), said
    code, said = run()
    assert (code, "files were modified by this hook" in said) == (1, True), said
    subprocess.run(["git", "add", "."], check=True)
    code, said = run()
    assert (code, said.count("Passed")) == (0, 4), said
    shape = json.loads((tmp_path / "old.ipynb").read_bytes())
    assert (shape["nbformat_minor"], shape["cells"][0]["outputs"]) == (5, [])
