"""`pytest --cellwright`: a notebook is a test, and its cells are the steps.

| option | |
|---|---|
| `--cellwright` | collect `*.ipynb` |
| `--cellwright-check`, `--check` | outputs must be those in the notebook |
| `--cellwright-mask REGEX` | what may differ; may be repeated |
| `--cellwright-tolerance R` | numbers may differ by this part of their size |
| `--cellwright-timeout S` | seconds for each cell |

Tags of a cell: `raises-exception`, `skip-execution`, and for outputs `ignore-output` or nbval's
`nbval-ignore-output`; nbval's comment `# NBVAL_IGNORE_OUTPUT` is understood. Every notebook runs in
a kernel of its own, and none is written to.
"""

from __future__ import annotations

import os
import re

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.workspace import Workspace

_IGNORE = ("ignore-output", "nbval-ignore-output")
_COMMENT = re.compile(r"^\s*#\s*NBVAL_IGNORE_OUTPUT", re.MULTILINE)
_colors = re.compile(r"\x1b\[[0-9;]*m")
_number = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("cellwright", "notebooks as tests")
    group.addoption("--cellwright", action="store_true", help="Run notebooks as tests.")
    group.addoption(
        "--cellwright-check", action="store_true", help="Outputs must be those in the notebook."
    )
    group.addoption(
        "--cellwright-mask", action="append", default=[], metavar="REGEX", help="What may differ."
    )
    group.addoption(
        "--cellwright-tolerance",
        type=float,
        default=0.0,
        metavar="R",
        help="Numbers may differ by this part of their size, such as 1e-6.",
    )
    group.addoption(
        "--cellwright-timeout", type=float, default=0.0, metavar="S", help="Seconds for each cell."
    )


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Understand `--check` beside `--cellwright`; as an option it could be another plugin's."""
    if "--cellwright" in args:
        args[:] = ["--cellwright-check" if each == "--check" else each for each in args]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect notebooks, if that was asked for."""
    if file_path.suffix != ".ipynb" or not parent.config.getoption("--cellwright"):
        return None
    if ".ipynb_checkpoints" in file_path.parts:
        return None
    found: pytest.File = NotebookFile.from_parent(
        parent, path=file_path, nodeid=_name(file_path, parent.config)
    )
    return found


class NotebookFailed(Exception):
    """A cell failed, or showed something else; its text is what pytest prints."""


class NotebookFile(pytest.File):
    """A notebook."""

    def collect(self) -> Iterator[pytest.Item]:
        """A notebook is one test."""
        yield NotebookTest.from_parent(self, name="notebook")


class NotebookTest(pytest.Item):
    """The cells of a notebook, one after the other, in a kernel of its own."""

    def runtest(self) -> None:
        """Run the cells; nothing is written."""
        from cellwright.errors import CellwrightError

        option = self.config.getoption
        workspace = _find_workspace(self.config)
        book = workspace.open(self.path)
        try:
            cells = {cell.handle: cell for cell in book.load().cells}
            done = book.run(check=True, timeout=option("--cellwright-timeout"), keep_going=False)
        except CellwrightError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            raise NotebookFailed(f"{self.path.name}: {error.message}{hint}") from None
        for execution in done:
            if execution.is_failure or execution.shown_error:
                raise NotebookFailed(_describe(execution, cells))
            if option("--cellwright-check"):
                self._compare(cells[execution.cell or ""], execution)

    def _compare(self, cell: Cell, execution: Execution) -> None:
        if execution.check is None or execution.check.result != "differs" or _ignores(cell):
            return
        from cellwright.document.outputs import parse_output

        masks = [re.compile(text) for text in self.config.getoption("--cellwright-mask")]
        tolerance = self.config.getoption("--cellwright-tolerance")
        old = _flatten(cell.outputs, masks)
        new = _flatten([parse_output(output) for output in execution.outputs], masks)
        if len(old) == len(new) and all(map(_are_close, old, new, [tolerance] * len(old))):
            return
        head = f"cell {cell.handle} (index {cell.index}) shows something else:"
        raise NotebookFailed(f"{head}\n{execution.check.diff}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], **how: Any) -> Any:  # type: ignore[override]
        """What is printed of a failure: the cell and its traceback, not ours."""
        if isinstance(excinfo.value, NotebookFailed):
            from cellwright.outputs.sanitize import make_visible

            # The cell and its kernel may say anything, and pytest prints it at a terminal.
            return make_visible(_colors.sub("", str(excinfo.value)))
        return super().repr_failure(excinfo, **how)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test is, and its name."""
        shown = self.config.rootpath / _name(self.path, self.config)
        return shown, 0, shown.name


def _name(path: Path, config: pytest.Config) -> str:
    """What pytest calls a notebook; it prints that as it is, whatever the file is called."""
    from cellwright.outputs.sanitize import one_line

    return one_line(os.path.relpath(path, config.rootpath)).replace(os.sep, "/")


_workspace = pytest.StashKey["Workspace"]()


def _find_workspace(config: pytest.Config) -> Workspace:
    """The workspace of this pytest, in its own process; ended with it."""
    if _workspace not in config.stash:
        from cellwright import Workspace  # which lets its kernels call tools

        config.stash[_workspace] = Workspace(actor="pytest:cellwright", engine=False)
    return config.stash[_workspace]


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the kernels."""
    if _workspace in config.stash:
        config.stash[_workspace].close()
        del config.stash[_workspace]


def _describe(execution: Execution, cells: dict[str, Cell]) -> str:
    from cellwright.batch.jobs import find_first_words

    cell = cells.get(execution.cell or "")
    error = execution.error or execution.shown_error
    why = find_first_words(execution, error)
    lines = [f"cell {execution.cell} (index {execution.index}): {why}"]
    if cell is not None:
        lines += [f"    {line}" for line in cell.source.splitlines()[:30]]
    lines += (error and error.traceback) or execution.notes
    return "\n".join(lines)


def _ignores(cell: Cell) -> bool:
    from cellwright.workspace.runs.parameters import has_tag

    return any(has_tag(cell, tag) for tag in _IGNORE) or bool(_COMMENT.search(cell.source))


def _flatten(outputs: Any, masks: list[re.Pattern[str]]) -> list[str]:
    """All that outputs say, as text with masks; streams in one piece, pictures by their bytes."""
    from cellwright.workspace.runs.comparison import list_parts

    found = []
    for part in list_parts(outputs):
        text = repr(part)
        for mask in masks:
            text = mask.sub("…", text)
        found.append(text)
    return found


def _are_close(old: str, new: str, tolerance: float) -> bool:
    """Whether two texts are the same but for small differences of their numbers."""
    if old == new:
        return True
    if not tolerance or _number.sub("", old) != _number.sub("", new):
        return False
    from math import isclose

    pairs = zip(_number.findall(old), _number.findall(new), strict=True)
    return all(isclose(float(a), float(b), rel_tol=tolerance) for a, b in pairs)
