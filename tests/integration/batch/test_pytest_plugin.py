"""`pytest --cellwright` as its users run it: in a process of its own, over a folder of notebooks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)


def write(path: Path, *cells: tuple[str, str, str]) -> None:
    """Write a notebook of cells: source, what is stored as printed, and a tag."""
    found: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": [tag]} if tag else {},
            "source": source,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": said}] if said else [],
            "execution_count": 1,
        }
        for number, (source, said, tag) in enumerate(cells)
    ]
    shape = {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(shape))


def run(folder: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", *words, "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_notebook_is_a_test_and_its_failure_shows_the_cell(tmp_path: Path) -> None:
    write(tmp_path / "good.ipynb", ("x = 1", "", ""), ("1 / 0", "", "raises-exception"))
    write(tmp_path / "bad.ipynb", ("y = 2", "", ""), ("y / 0", "", ""), ("print('no')", "", ""))
    write(tmp_path / "magic.ipynb", ("%nothing", "", ""))
    (tmp_path / "broken.ipynb").write_text("{")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, said = run(tmp_path, "--cellwright", "-n", "2")
    assert code == 1
    assert "3 failed, 1 passed" in said
    assert "UsageError: Line magic function `%nothing` not found" in said
    assert "cell c1 (index 1): ZeroDivisionError: division by zero\n    y / 0" in said
    assert "FAILED bad.ipynb::notebook - cell c1 (index 1): ZeroDivisionError: division" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "pytest_plugin.py" not in said, "our own traceback says nothing"
    assert {path: path.read_bytes() for path in before} == before
    assert "no tests ran" in run(tmp_path)[1]


def test_outputs_are_compared_with_masks_and_a_tolerance(tmp_path: Path) -> None:
    write(tmp_path / "close.ipynb", ("print(1.0000001)", "1.0\n", ""))
    write(tmp_path / "masked.ipynb", ("print('took 5 ms')", "took 7 ms\n", ""))
    write(
        tmp_path / "ignored.ipynb",
        ("print(1)", "2\n", "nbval-ignore-output"),
        ("# NBVAL_IGNORE_OUTPUT\nprint(1)", "2\n", ""),
    )
    write(tmp_path / "other.ipynb", ("print('a')", "b\n", ""))
    code, said = run(
        tmp_path,
        *("--cellwright", "--cellwright-check", "--cellwright-tolerance", "1e-5"),
        *("--cellwright-mask", r"\d+ ms"),
    )
    assert code == 1
    assert "1 failed, 3 passed" in said
    assert "cell c0 (index 0) shows something else:" in said
    assert "-[stdout] b\n+[stdout] a" in said


def test_a_mask_hides_no_more_than_it_matches(tmp_path: Path) -> None:
    said = "took 7 ms\nthe sum is 5\n"
    write(tmp_path / "same.ipynb", ("print('took 9 ms\\nthe sum is 5')", said, ""))
    write(tmp_path / "other.ipynb", ("print('took 9 ms\\nthe sum is 6')", said, ""))
    for mask in ("^took .*$", "took .*"):
        code, told = run(tmp_path, "--cellwright", "--check", "--cellwright-mask", mask)
        assert (code, "1 failed, 1 passed" in told) == (1, True), told
        assert "other.ipynb" in told.rpartition("short test summary")[2]
    code, told = run(tmp_path, "--cellwright", "--cellwright-mask", "(")
    assert (code, "cellwright: the masks: " in told) == (4, True), told


def test_users_of_nbval_find_their_marks_and_their_file_of_masks(tmp_path: Path) -> None:
    raises = "1 / 0"
    write(
        tmp_path / "good.ipynb",
        ("# NBVAL_SKIP\nraise SystemExit(3)", "", ""),
        ("raise SystemExit(3)", "", "nbval-skip"),
        ("# NBVAL_RAISES_EXCEPTION\n1 / 0", "", ""),
        (raises, "", "nbval-raises-exception"),
        ("print('on 03/04/2026')", "on 01/02/2025\n", ""),
        ("print(1)", "2\n", "nbval-ignore-output"),
    )
    write(tmp_path / "bad.ipynb", (raises, "", ""), ("1", "", "nbval-raises-exception"))
    write(tmp_path / "checked.ipynb", ("# NBVAL_CHECK_OUTPUT\nprint(1)", "2\n", ""))
    masks = tmp_path / "sanitize.cfg"
    masks.write_text("[dates]\nregex: \\d{2}/\\d{2}/\\d{4}\n\nreplace: DATE\n")
    code, said = run(tmp_path, "--cellwright")
    assert code == 1
    assert "2 failed, 1 passed" in said
    assert "cell c0 (index 0): ZeroDivisionError" in said
    assert "cell c0 (index 0) shows something else:" in said, "compared without --check, too"
    masked = ("--cellwright", "--check", "--cellwright-mask-file", str(masks))
    code, said = run(tmp_path, *masked, "-n", "1", "--deselect", "good.ipynb")
    assert "2 failed" in said
    code, said = run(tmp_path, *masked, "-k", "good")
    # Errors that are announced are compared as well: those here are in no stored output.
    assert "cell c2 (index 2) shows something else:" in said


def test_types_that_differ_from_machine_to_machine_are_left_out(tmp_path: Path) -> None:
    show = "from IPython.display import display\ndisplay({'image/png': 'AAAA', 'text/plain': %r}, raw=True)"
    for name, text in {"same": "x", "other": "y"}.items():
        write(tmp_path / f"{name}.ipynb", (show % text, "", ""))
        shape = json.loads((tmp_path / f"{name}.ipynb").read_text())
        data = {"image/png": "BBBB", "text/plain": "x"}
        shape["cells"][0]["outputs"] = [
            {"output_type": "display_data", "data": data, "metadata": {}}
        ]
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(shape))
    code, said = run(tmp_path, "--cellwright", "--check")
    assert (code, "2 failed" in said) == (1, True), said
    code, said = run(tmp_path, "--cellwright", "--check", "--cellwright-skip", "image/*")
    assert (code, "1 failed, 1 passed" in said) == (1, True), said
    assert "other.ipynb" in said.rpartition("short test summary")[2]


def test_users_of_nbmake_find_what_the_metadata_of_a_notebook_says(tmp_path: Path) -> None:
    write(tmp_path / "fails.ipynb", ("1 / 0", "", ""), ("print('on')", "", ""))
    write(tmp_path / "slow.ipynb", ("import time; time.sleep(60)", "", ""))
    for name, about in {"fails": {"allow_errors": True}, "slow": {"timeout": 1}}.items():
        path = tmp_path / f"{name}.ipynb"
        shape = json.loads(path.read_text())
        path.write_text(json.dumps({**shape, "metadata": {"execution": about}}))
    code, said = run(tmp_path, "--cellwright")
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert "cell c0 (index 0): timed out after 1." in said
    code, said = run(tmp_path, "--cellwright", "--cellwright-kernel", "nothing", "-k", "fails")
    assert "There is no kernel `nothing`" in said


def test_check_is_short_for_the_option_beside_cellwright(tmp_path: Path) -> None:
    write(tmp_path / "other.ipynb", ("print('a')", "b\n", ""))
    code, said = run(tmp_path, "--cellwright", "--check", "-n", "1")
    assert code == 1
    assert "cell c0 (index 0) shows something else:" in said
    assert "unrecognized arguments: --check" in run(tmp_path, "--check")[1]


def test_a_display_may_fail_in_a_cell_that_says_so(tmp_path: Path) -> None:
    shown = "class Shy:\n    def _repr_html_(self):\n        1 / 0\nShy()"
    write(tmp_path / "announced.ipynb", (shown, "", "raises-exception"))
    write(tmp_path / "surprise.ipynb", (shown, "", ""))
    code, said = run(tmp_path, "--cellwright")
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert "surprise.ipynb" in said.rpartition("short test summary")[2]


def test_what_a_notebook_says_is_not_obeyed_by_the_terminal(tmp_path: Path) -> None:
    unsafe = "\x1b]0;title\x07\u202e\U000e0041"
    write(tmp_path / "a.ipynb", (f"raise ValueError({unsafe!r})  # \u202e", "", ""))
    (tmp_path / "b.ipynb").write_text("{" + unsafe)
    code, said = run(tmp_path, "--cellwright", "--color=no")
    assert code == 1
    assert "ValueError" in said
    assert not set(said) & {"\x1b", "\x07", "\u202e", "\U000e0041"}


@pytest.mark.parametrize("words", [("-rA",), ("-vv",)])
def test_nor_is_the_name_of_a_notebook_or_of_its_folder(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    unsafe = "\x1b]0;title\x07\u202e\U000e0041\n"
    (tmp_path / f"in{unsafe}").mkdir()
    write(tmp_path / f"in{unsafe}" / "a.ipynb", ("1", "", ""))
    write(tmp_path / f"b{unsafe}PASSED.ipynb", ("1/0", "", ""))
    code, said = run(tmp_path, "--cellwright", "--color=no", "--junitxml=report.xml", *words)
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert not any(line.startswith("PASSED.ipynb") for line in said.splitlines())
    for text in (said, (tmp_path / "report.xml").read_text()):
        assert "␛]0;title" in text
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\U000e0041"}
