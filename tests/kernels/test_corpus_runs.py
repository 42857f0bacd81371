"""Real notebooks, run by nbclient and by us: equal outputs, and nothing else in the file changes.

Both run a copy of the notebook at the same path, one after the other, with kernels of the same
environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

import cellwright
from cellwright import Workspace
from tests import corpus
from tests.conftest import ROOT
from tests.kernels.comparing import as_nbformat, comparable, frame, without_code

pytestmark = [pytest.mark.corpus, pytest.mark.timeout(300)]

ENVIRONMENT = ROOT / ".dev" / "corpus"
PYTHON = ENVIRONMENT / "bin" / "python"
NBCLIENT = Path(__file__).with_name("nbclient_side.py")
CELL_SECONDS = 60

# Streams, errors, displays that are updated and cleared, plots, tables, cells without code.
QUICK = (
    "nbclient-Clear-Output-4248aa5b",
    "nbclient-Empty-Cell-e6ed9a64",
    "nbclient-update-display-id-967a9a63",
    "papermill-sysexit-2120b660",
)
# Not here: what waits, asks for input, tells the time, draws lots, wants the network, or holds
# something that a run has to put right: times in the metadata, cells without the id that they need.
LONG = (
    "jupyterlab-simple_test-392b4fac",
    "jupytext-text_outputs_and_images-c01769a9",
    "nbval-test_coalesce-4884c0e3",
    "pytest-notebook-different_outputs-9ead1513",
    "jupyterlab-code_notebook-558f0e42",
    "jupyterlab-collapsible_headings_keyboard_navigation-249e7ad9",
    "jupyterlab-css_js_injection-4abd667e",
    "jupyterlab-example-8aeea82e",
    "jupyterlab-mermaid_notebook-eef12b28",
    "jupyterlab-output_scrolling-ba695700",
    "jupyterlab-search-aa2751ee",
    "jupyterlab-single_long_output-268683ca",
    "jupyterlab-vega_notebook-0497fc13",
    "jupytext-Notebook-with-html-and-latex-cells-f01bf075",
    "jupytext-build-48017cb6",
    "jupytext-chunk_options-525d9978",
    "jupytext-hydrogen-5c8afede",
    "jupytext-hydrogen_latex_html_R_magics-8532c687",
    "jupytext-ioslides-95320569",
    "jupytext-julia_sample_script-34cf076d",
    "jupytext-jupyter-408532f6",
    "jupytext-jupyter_with_raw_cell_on_top-a1c7e5f0",
    "jupytext-knitr-spin-811b7334",
    "jupytext-nteract_with_parameter-9dac0166",
    "jupytext-plot_notebook-5b004bbf",
    "jupytext-python_notebook_sample-f2d19a15",
    "nbclient-Error-4b206faa",
    "nbclient-Factorials-d480e18f",
    "nbclient-Inline-Image-3c74b956",
    "nbclient-SVG-933bb49c",
    "nbclient-Skip-Exceptions-ac4a2235",
    "nbclient-Unicode-71b70a9a",
    "nbclient-UnicodePy3-af97a890",
    "nbconvert-notebook3_with_errors-47d475e8",
    "nbconvert-notebook_tags-fcf445e1",
    "nbconvert-pngmetadata-f8a29164",
    "nbconvert-prompt_numbers-c4f2696a",
    "nbconvert-rst_output-73f5f1e3",
    "nbconvert-svg-50b7b7fc",
    "nbdime-cellids-local-f9c0a8c7",
    "nbdime-center-a7ac52c4",
    "nbdime-error-1-ad7ed939",
    "nbdime-foo-1-cda02c45",
    "nbdime-left-90949b20",
    "nbdime-left-c759a6ee",
    "nbdime-multi_cell_nb-ea82cf66",
    "nbdime-output-conflict-1-02589233",
    "nbdime-right-3c220df7",
    "nbdime-right-8d2a6cda",
    "nbdime-scrollA-7cbeb9e6",
    "nbdime-src-and-output-1-cfde5d34",
    "nbformat-test4custom-05e2a0d7",
    "nbformat-test4jupyter_metadata-28bcfb48",
    "nbgrader-autotest-multi-changed-fcc3223b",
    "nbgrader-creating_and_grading_assignments-3e23a0ec",
    "nbgrader-infinite-recursion-b152aaa5",
    "nbgrader-long-output-463d13b6",
    "nbgrader-problem1-10496629",
    "nbgrader-problem1-1a47d2f0",
    "nbgrader-problem1-92bca771",
    "nbgrader-submitted-cheat-attempt-82e13fe7",
    "nbgrader-test-hidden-tests-22d94eca",
    "nbmake-magic_error-0b40eba5",
    "nbmake-post_cell_execute_masked_error-771496c6",
    "nbsphinx-allow-errors-9902e760",
    "nbsphinx-cell-metadata-428008fd",
    "nbsphinx-cell-tag-100e5874",
    "nbsphinx-default-thumbnail-86a204df",
    "nbsphinx-multiple-outputs-5f4377b4",
    "nbsphinx-thumbnail-from-conf-py-ea94a22a",
    "nbstripout-test_keep_output_tags-72dac6af",
    "nbval-test-exceptions-fail-storedmismatch-c8416e3d",
    "nbval-test-stream-fail-missingoutput-15c4c7de",
    "papermill-broken-5ee3aad6",
    "papermill-line_magic_error-80c17214",
    "papermill-read_check-3482729d",
    "papermill-sysexit0-7692b917",
    "papermill-test_autosave-8d640cc9",
    "pytest-notebook-example2-a2acccdf",
    "voila-many_iopub_messages-88bc9c4b",
    "voila-query-strings-4eaf98a4",
    "voila-syntax_error-26810f81",
)
# One that ends with its first error, and one whose error is announced by a tag.
FAILING = (
    "papermill-broken1-2debe790",
    "nbclient-Skip-Exceptions-with-Cell-Tags-b36011e0",
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip by name where there is no environment for the notebooks; fail when `CI` is set."""
    if not PYTHON.exists():
        problem = "needs the environment .dev/corpus with nbclient and what the notebooks import"
        if os.environ.get("CI", "").lower() not in {"", "0", "false"}:
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    # Without its list of fonts matplotlib needs seconds to make one, and says so in the outputs.
    fonts = ENVIRONMENT / "matplotlib"
    monkeypatch.setenv("MPLCONFIGDIR", str(fonts))
    if not any(fonts.glob("fontlist*")):
        subprocess.run([PYTHON, "-c", "import matplotlib.font_manager"], check=True)


def copy(name: str, folder: Path) -> Path:
    """The notebook, in a folder that holds nothing else."""
    original = next(path for path in corpus.notebooks() if corpus.ids(path) == name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return shutil.copyfile(original, folder / "notebook.ipynb")


def run_by_nbclient(path: Path, after_an_error: str) -> nbformat.NotebookNode:
    for _ in range(3):
        done = subprocess.run(
            [PYTHON, NBCLIENT, after_an_error, path],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        # Its kernel has ports that were free a moment ago; then nothing was run yet.
        if "Address already in use" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return nbformat.read(path, as_version=4)


def run_by_us(path: Path, *, keep_going: bool) -> str:
    with Workspace(path.parent, actor="test:ada") as workspace:
        book = workspace.open(path)
        done = book.run(kernel=str(PYTHON), keep_going=keep_going, timeout=CELL_SECONDS)
    assert all(run.saved for run in done if run.status != "pending")
    return path.read_bytes().decode()


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.all) for n in LONG)])
def test_outputs_are_those_of_nbclient_and_nothing_else_changes(name: str, tmp_path: Path) -> None:
    theirs = run_by_nbclient(copy(name, tmp_path / "run"), "go-on")
    path = copy(name, tmp_path / "run")
    before = path.read_bytes().decode()
    after = run_by_us(path, keep_going=True)

    ours = nbformat.reads(after, as_version=4)
    nbformat.validate(ours)
    assert any(count for count, _ in comparable(theirs.cells))
    assert comparable(ours.cells) == comparable(theirs.cells)
    assert comparable(as_nbformat(cellwright.read(path))) == comparable(theirs.cells)
    assert without_code(ours.cells) == without_code(theirs.cells)
    was = nbformat.reads(before, as_version=4).metadata
    if was.keys() & {"kernelspec", "language_info"}:
        assert frame(after) == frame(before)
    else:  # the first run says which kernel it was, and changes nothing else
        assert ours.metadata.pop("kernelspec").name == "python3"
        assert ours.metadata.pop("language_info").name == "python"
        assert ours.metadata == was


@pytest.mark.parametrize("name", FAILING)
def test_a_run_ends_where_that_of_nbclient_ends(name: str, tmp_path: Path) -> None:
    theirs = run_by_nbclient(copy(name, tmp_path / "run"), "stop")
    after = run_by_us(copy(name, tmp_path / "run"), keep_going=False)
    assert comparable(nbformat.reads(after, as_version=4).cells) == comparable(theirs.cells)


def test_there_are_enough_of_them() -> None:
    assert len({*QUICK, *LONG}) >= 40


WIDGETS = (
    "import sys, ipywidgets as widgets\nfrom IPython.display import clear_output, display",
    "slider = widgets.IntSlider(3)\nslider",
    "out = widgets.Output()\nout",
    "with out:\n    print('in')\n    display('shown')\n    print('err', file=sys.stderr)\nprint('not in')",
    "slider.value = 7",
    "with out:\n    1 / 0",
    "len(out.outputs)",
    "with out:\n    clear_output()\n    print('new')",
    "widgets.Image(value=b'\\x89PNG')",
    "widgets.HBox([widgets.Label('a'), widgets.Text('b')])",
    "slider.close()",
)
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"


@pytest.mark.all
def test_widgets_and_what_they_catch_are_saved_as_by_nbclient(tmp_path: Path) -> None:
    path = tmp_path / "notebook.ipynb"
    notebook = nbformat.v4.new_notebook(
        cells=[
            *map(nbformat.v4.new_code_cell, WIDGETS),
            nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["skip-execution"]}),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python"}},
    )
    nbformat.write(notebook, path)
    theirs = run_by_nbclient(path, "go-on")
    nbformat.write(notebook, path)
    ours = nbformat.reads(run_by_us(path, keep_going=True), as_version=4)
    nbformat.validate(ours)
    assert name_models(ours) == name_models(theirs)
    shown = {
        output.data[mime].model_id
        for cell in ours.cells
        for output in cell.outputs
        for mime in output.get("data", {})
        if "widget-view" in mime
    }
    assert shown <= ours.metadata.widgets[WIDGET_STATE].state.keys()
    assert len(shown) == 4


def name_models(notebook: nbformat.NotebookNode) -> list[str]:
    """Cells and widgets as texts, with the kinds of models instead of their random ids."""
    state = notebook.metadata.widgets[WIDGET_STATE].state
    kinds = {model: each.model_name for model, each in state.items()}
    texts = [
        json.dumps(each, sort_keys=True, default=str)
        for each in (*comparable(notebook.cells), *state.values())
    ]
    texts = [re.sub(r'"msg_id": "[^"]*"', '"msg_id": ""', text) for text in texts]
    return sorted(re.sub(r"[0-9a-f]{32}", lambda model: kinds[model[0]], text) for text in texts)
