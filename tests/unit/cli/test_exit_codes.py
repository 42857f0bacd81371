"""How a command ends: one exit code for every kind of error, with and without `--json`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from cellwright import errors
from cellwright.cli.output import exit_code
from cellwright.document.disk.lock import FileLock
from cellwright.errors import CellwrightError
from tests.cases import for_each
from tests.conftest import ROOT
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from pathlib import Path

CLASSES: list[type[CellwrightError]] = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, CellwrightError)
]

# All of them, so that a new class has to be given its place here.
TABLE = {
    1: {"CELL_FAILED"},
    2: {"CONFIG_ERROR", "UNKNOWN_SETTING", "INVALID_SETTING", "BAD_CONFIG_FILE"}
    | {"UNSAFE_DIRECTORY", "UNKNOWN_MODEL", "MODEL_NOT_CONFIGURED"},
    3: {"DOCUMENT_ERROR", "NOTEBOOK_NOT_FOUND", "UNREADABLE_FILE", "NOTEBOOK_TOO_LARGE"}
    | {"INVALID_NOTEBOOK", "INVALID_JSON", "NOT_UTF8", "DUPLICATE_KEY", "TOO_DEEP"}
    | {"INVALID_CELL", "UNSUPPORTED_VERSION", "NEEDS_UPGRADE", "CELL_NOT_FOUND"}
    | {"AMBIGUOUS_CELL", "INVALID_EDIT", "TEXT_MISMATCH", "INVALID_METADATA", "INVALID_TEXT"}
    | {"INVALID_SELECTOR", "SAVE_ERROR", "NOT_SAVED", "READ_ONLY", "HARD_LINKED"}
    | {"OWNER_WOULD_CHANGE", "DURABILITY_UNCONFIRMED", "HISTORY_ERROR", "JOURNAL_UNAVAILABLE"}
    | {"CHANGE_NOT_FOUND", "NOTHING_TO_UNDO", "WORKSPACE_ERROR", "OUTSIDE_ROOT"}
    | {
        "RUN_NOT_FOUND",
        "ALREADY_EXISTS",
        "OUTPUT_ERROR",
        "ARTIFACT_NOT_FOUND",
        "ARTIFACTS_UNAVAILABLE",
        "SYSTEM_REFUSED",
    },
    4: {"KERNEL_ERROR", "KERNEL_MISSING", "KERNEL_START_FAILED", "KERNEL_UNREACHABLE"}
    | {"KERNEL_CANNOT", "KERNEL_DIED", "RESTART_LIMIT", "SESSION_NOT_FOUND", "SESSIONS_BUSY"}
    | {"RESET_IN_PROGRESS", "ENGINE_ERROR", "ENGINE_UNAVAILABLE", "ENGINE_LOST"}
    | {"ENGINE_DRAINING", "INVALID_CALL", "MODEL_ERROR", "MODEL_REFUSED", "MODEL_REJECTED"}
    | {"MODEL_UNAVAILABLE", "CONVERSATION_TOO_LONG"}
    | {"EDITOR_ERROR", "EDITOR_SILENT", "EDITOR_LOST", "EDITOR_UNFIT"},
    5: {"MODE_FORBIDS"},
    6: {"CHAT_BUSY", "CONFLICT", "OWNED_ELSEWHERE", "UNKNOWN_REVISION"},
    70: {"INTERNAL_ERROR"},
    124: {"LOCKED", "EXECUTION_TIMED_OUT"},
    130: {"EXECUTION_CANCELLED"},
}


@for_each("kind", CLASSES)
def test_every_error_ends_with_the_one_code_of_its_kind(kind: type[CellwrightError]) -> None:
    codes = [code for code, names in TABLE.items() if kind.code in names]
    assert codes == [exit_code(kind.__new__(kind))]


def test_no_error_is_listed_that_does_not_exist() -> None:
    listed = set().union(*TABLE.values())
    assert listed == {kind.code for kind in CLASSES}


# --- Each code as a command ends with it ---------------------------------------------------------


@pytest.fixture
def taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that somebody else is writing, and nobody waits for long."""
    monkeypatch.setenv("CELLWRIGHT_LOCK_TIMEOUT", "0.05")
    return folder / "nb.ipynb"


CASES = [
    (2, "USAGE", ["read"]),
    (2, "USAGE", ["edit", "nb.ipynb", "fly"]),
    (3, "NOTEBOOK_NOT_FOUND", ["read", "nowhere.ipynb"]),
    (3, "INVALID_JSON", ["read", "broken.ipynb"]),
    (3, "CELL_NOT_FOUND", ["edit", "nb.ipynb", "delete", "nothing"]),
    (3, "INVALID_TEXT", ["write", "nb.ipynb"]),
    (4, "SESSION_NOT_FOUND", ["kernel", "status"]),
    (5, "MODE_FORBIDS", ["edit", "nb.ipynb", "delete", "sum", "--mode", "ask"]),
    (5, "MODE_FORBIDS", ["--mode", "ask", "edit", "nb.ipynb", "delete", "sum"]),
    (6, "CONFLICT", ["edit", "nb.ipynb", "delete", "sum", "--expect", "0123"]),
    (6, "UNKNOWN_REVISION", ["edit", "nb.ipynb", "delete", "sum", "--base", "0123"]),
    (6, "UNKNOWN_REVISION", ["write", "nb.ipynb", "--base", "0123", "--from", "text.txt"]),
    (124, "LOCKED", ["edit", "nb.ipynb", "delete", "sum"]),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(
    ("code", "name", "words"), CASES, ids=[f"{code}-{'-'.join(words)}" for code, _, words in CASES]
)
def test_a_failing_command_ends_with_its_code_says_why_and_changes_nothing(
    code: int, name: str, words: list[str], as_json: bool, taken: Path
) -> None:
    before = taken.read_bytes()
    (taken.parent / "broken.ipynb").write_text("{", encoding="utf-8")
    os.utime(taken.parent / "broken.ipynb", (1, 1))  # long ago: it is not being saved now
    (taken.parent / "text.txt").write_text("# %% [code]\n", encoding="utf-8")
    stdin = "no marker\n"
    if name == "LOCKED":
        with FileLock(os.path.realpath(taken), 0):
            answer = call(*words, *["--json"][:as_json], stdin=stdin)
    else:
        answer = call(*words, *["--json"][:as_json], stdin=stdin)

    assert answer.code == code
    if as_json:
        assert answer.err == ""
        assert answer.error["code"] == name
        assert answer.error.keys() - {"cells"} == {"code", "message", "hint", "retryable"}
        assert answer.error["retryable"] is (name == "LOCKED")
    else:
        assert answer.out == b""
        assert re.match(r"error: \S.*\n(\nhint: \S.*\n|$)", answer.err)
        assert "Traceback" not in answer.err
    assert taken.read_bytes() == before
    assert not succeed("log", "nb.ipynb").out


def test_a_wrong_setting_is_wrong_usage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLWRIGHT_LOCK_TIMEOUT", "soon")
    answer = call("read", folder / "nb.ipynb", "--json")
    assert (answer.code, answer.error["code"]) == (2, "INVALID_SETTING")


def test_a_bug_of_ours_is_told_in_one_line_and_ends_with_a_code_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by \x1b[31mzero")

    monkeypatch.setattr("cellwright.workspace.workspace.Book.read", fail)
    monkeypatch.setenv("FORCE_COLOR", "1")
    answer = call("read", folder / "nb.ipynb")
    assert answer.code == 70
    assert answer.out == b""
    assert "ZeroDivisionError" in answer.err
    assert "Traceback" not in answer.err
    assert "\x1b[31mzero" not in answer.err
    assert call("read", folder / "nb.ipynb", "--json").error["code"] == "INTERNAL_ERROR"


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_traceback_is_shown_to_who_asks_for_it(flag: str, place: str, folder: Path) -> None:
    words = ["read", str(folder / "nowhere.ipynb")]
    words = [flag, *words] if place == "before" else [*words, flag]
    answer = call(*words)
    assert answer.code == 3
    assert "Traceback (most recent call last)" in answer.err
    assert answer.err.rstrip().splitlines()[-3].startswith("error: No notebook")


def test_the_codes_are_documented() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE))
    assert list(map(int, rows)) == [0, 1, 2, 3, 4, 5, 6, 70, 124, 130]
    for code, names in TABLE.items():
        named = set(re.findall(r"`([A-Z_]+)`", rows[str(code)]))
        assert named <= names | {"USAGE"}, "a code stands in the wrong row"
