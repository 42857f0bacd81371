"""`pytest --cellwright`: a notebook is a test, and its cells are the steps.

| option | |
|---|---|
| `--cellwright` | collect `*.ipynb` |
| `--cellwright-check`, `--check` | outputs must be those in the notebook |
| `--cellwright-mask REGEX` | what may differ; may be repeated |
| `--cellwright-mask-file FILE` | the same, as nbval's `--nbval-sanitize-with` has it |
| `--cellwright-skip MIME` | outputs of this type may differ, such as `image/*`; may be repeated |
| `--cellwright-tolerance R` | numbers may differ by this part of their size |
| `--cellwright-timeout S` | seconds for each cell |
| `--cellwright-kernel NAME` | the kernel for all notebooks |

Tags of a cell: `raises-exception`, `skip-execution` and `ignore-output`, and nbval's, which may
also be comments: `nbval-skip` or `# NBVAL_SKIP`. The metadata `execution` of a notebook may have
`timeout` and `allow_errors`, as for nbmake. Every notebook runs in a kernel of its own, and none is
written to.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from cellwright.document.cells import Cell
    from cellwright.document.notebook import Notebook
    from cellwright.workspace.runs.execution import Execution
    from cellwright.workspace.workspace import Workspace

_SKIP = {"skip-execution", "nbval-skip"}
_RAISES = {"raises-exception", "nbval-raises-exception"}
_IGNORE = {"ignore-output", "nbval-ignore-output"}
_CHECK = {"nbval-check-output"}
_comment = re.compile(r"^\s*#\s*(NBVAL_[A-Z_]+)", re.MULTILINE)
_mask_lines = re.compile(r"^regex: (.*)\n+replace: (.*)$", re.MULTILINE)
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
        "--cellwright-mask-file",
        metavar="FILE",
        help="What may differ, in lines `regex: …` and `replace: …`, as nbval has them.",
    )
    group.addoption(
        "--cellwright-skip",
        action="append",
        default=[],
        metavar="MIME",
        help="Outputs of this type may differ, such as image/*.",
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
    group.addoption("--cellwright-kernel", metavar="NAME", help="The kernel for all notebooks.")


def pytest_load_initial_conftests(args: list[str]) -> None:
    """Understand `--check` beside `--cellwright`; as an option it could be another plugin's."""
    if "--cellwright" in args:
        args[:] = ["--cellwright-check" if each == "--check" else each for each in args]


def pytest_configure(config: pytest.Config) -> None:
    """Refuse masks that are none before anything runs."""
    _list_masks(config)


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
            notebook = book.load()
            rules = _read_rules(notebook)
            marks = {cell.handle: _list_marks(cell) for cell in notebook.cells}
            done = book.run(
                _choose_cells(notebook),
                check=True,
                timeout=option("--cellwright-timeout") or rules.timeout,
                kernel=option("--cellwright-kernel"),
                keep_going=rules.allow_errors or any(map(_RAISES.intersection, marks.values())),
            )
        except CellwrightError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            raise NotebookFailed(f"{self.path.name}: {error.message}{hint}") from None
        cells = {cell.handle: cell for cell in notebook.cells}
        for execution in done:
            found = marks[execution.cell or ""]
            may_fail = rules.allow_errors or found & _RAISES
            failed = execution.is_failure or execution.shown_error
            if failed and not (may_fail and execution.status in ("ok", "error")):
                raise NotebookFailed(_describe(execution, cells))
            if (option("--cellwright-check") or found & _CHECK) and not found & _IGNORE:
                self._compare(cells[execution.cell or ""], execution)

    def _compare(self, cell: Cell, execution: Execution) -> None:
        # An error that was announced is compared, too.
        if execution.check is None or execution.check.result not in ("differs", "failed"):
            return
        from cellwright.document.outputs import parse_output
        from cellwright.workspace.runs.comparison import list_parts

        masks = _list_masks(self.config)
        skipped = self.config.getoption("--cellwright-skip")
        now = map(parse_output, execution.outputs)
        old, new = (_mask(list_parts(each), masks, skipped) for each in (cell.outputs, now))
        if _are_close(old, new, self.config.getoption("--cellwright-tolerance")):
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


class _Rules(NamedTuple):
    """What the metadata of a notebook says about its test, as for nbmake."""

    timeout: float
    allow_errors: bool


def _read_rules(notebook: Notebook) -> _Rules:
    found = notebook.metadata.get("execution")
    said = found if isinstance(found, dict) else {}
    seconds = said.get("timeout")
    timeout = float(seconds) if isinstance(seconds, (int, float)) else 0.0  # -1 means no limit, too
    return _Rules(max(0.0, timeout), said.get("allow_errors") is True)


def _list_marks(cell: Cell) -> set[str]:
    """The tags of a cell, and those that nbval writes as comments."""
    tags = cell.metadata.get("tags")
    found = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    return found | {each.lower().replace("_", "-") for each in _comment.findall(cell.source)}


def _choose_cells(notebook: Notebook) -> list[int] | None:
    """The cells that run, if some of them do not; None for all."""
    code = [cell for cell in notebook.cells if cell.type == "code"]
    found = [cell.index for cell in code if not _list_marks(cell) & _SKIP]
    return found if len(found) < len(code) else None


def _list_masks(config: pytest.Config) -> list[tuple[re.Pattern[str], str]]:
    """What may differ, and what is put there before outputs are compared."""
    pairs = [(text, "…") for text in config.getoption("--cellwright-mask")]
    path = config.getoption("--cellwright-mask-file")
    try:
        if path:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123  # pytest imports this always
                pairs += _mask_lines.findall(file.read())
        return [(re.compile(text, re.MULTILINE), put) for text, put in pairs]
    except (OSError, ValueError, re.error) as error:
        raise pytest.UsageError(f"cellwright: the masks: {error}") from None


def _mask(value: Any, masks: list[tuple[re.Pattern[str], str]], skipped: list[str]) -> Any:
    """What outputs say, with masks in all of its texts and without some types."""
    if isinstance(value, str):
        for mask, put in masks:
            value = mask.sub(put, value)
        return value
    if isinstance(value, dict):
        from fnmatch import fnmatchcase

        return {
            name: _mask(each, masks, skipped)
            for name, each in value.items()
            if not any(fnmatchcase(name, pattern) for pattern in skipped)
        }
    if isinstance(value, (list, tuple)):
        return [_mask(each, masks, skipped) for each in value]
    return value


def _are_close(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two values are the same but for small differences of numbers, in texts too."""
    if old == new or not tolerance:
        return bool(old == new)
    from math import isclose

    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return all(_are_close(old[name], new[name], tolerance) for name in old)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_are_close(*pair, tolerance) for pair in zip(old, new, strict=True))
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return isclose(old, new, rel_tol=tolerance)
    if not (isinstance(old, str) and isinstance(new, str)):
        return False
    before, now = _number.findall(old), _number.findall(new)
    if len(before) != len(now) or _number.sub("", old) != _number.sub("", new):
        return False
    pairs = zip(before, now, strict=True)
    return all(isclose(float(a), float(b), rel_tol=tolerance) for a, b in pairs)
