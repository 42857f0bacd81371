"""The command `show`: what it prints at three widths, on a terminal, into a pipe, and as JSON.

The golden files are written anew like those of the other commands, then read as a diff:

    CELLWRIGHT_TEST_GOLDEN=write ./dev test tests/unit/cli/test_show.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.unit.cli import show_samples as make
from tests.unit.cli.calling import call, command, process, succeed
from tests.unit.cli.show_rendering import SGR
from tests.unit.cli.terminal import on_a_terminal, sent_to_a_terminal

GOLDEN = Path(__file__).parent / "golden"
WRITES = os.environ.get("CELLWRIGHT_TEST_GOLDEN") == "write"
WIDTHS = (60, 100, 200)


@pytest.fixture
def sales(folder: Path) -> Path:
    path = folder / "sales.ipynb"
    path.write_bytes(make.everything())
    return path


def golden(name: str, text: str) -> str:
    """What a golden file holds, after writing it if that was asked for."""
    path = GOLDEN / name
    if WRITES:
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


# -- what it looks like -------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.usefixtures("sales")
def test_a_notebook_looks_as_it_did(width: int) -> None:
    text = succeed("show", "sales.ipynb", "--width", str(width)).text
    assert text == golden(f"show-{width}.txt", text)


@pytest.mark.parametrize("width", [60, 61, 79, 120, 200])
@pytest.mark.usefixtures("sales")
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    for flags in ([], ["--expanded"]):
        text = succeed("show", "sales.ipynb", "--width", str(width), *flags).text
        assert max(map(cell_len, text.splitlines())) == width  # the lines right of the heads


@pytest.mark.usefixtures("sales")
def test_json_has_cells_with_their_outputs_in_short() -> None:
    data = succeed("show", "sales.ipynb", "--json").data
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    assert text == golden("show.json", text)


@pytest.mark.usefixtures("sales")
def test_json_of_several_notebooks_is_a_list_of_them() -> None:
    one = succeed("show", "sales.ipynb", "--json", "--cells", "2").data
    two = succeed("show", "sales.ipynb", "nb.ipynb", "--json", "--cells", "2").data
    assert list(two) == ["notebooks"]
    assert two["notebooks"][0] == one
    assert [book["path"] for book in two["notebooks"]] == ["sales.ipynb", "nb.ipynb"]


@pytest.mark.usefixtures("sales")
def test_json_is_whole_when_expanded_and_has_no_outputs_when_not_wanted() -> None:
    short = succeed("show", "sales.ipynb", "--json", "--cells", "3").data["cells"][0]
    whole = succeed("show", "sales.ipynb", "--json", "--cells", "3", "--expanded").data["cells"][0]
    none = succeed("show", "sales.ipynb", "--json", "--cells", "3", "--no-outputs").data["cells"][0]
    assert short["outputs"][0]["hidden"] == {"lines": 115}
    assert whole["outputs"][0]["hidden"] == {}
    assert whole["outputs"][0]["text"].count("\n") == 129
    assert none["outputs"] == []


# -- what is asked for --------------------------------------------------------------------------


@pytest.mark.usefixtures("sales")
def test_cells_are_chosen_by_id_handle_and_index() -> None:
    text = succeed("show", "sales.ipynb", "--cells", "cell05,cell-2", "--cells=-1").text
    heads = [line.split()[:2] for line in text.splitlines() if line.endswith("──")]
    assert heads == [["5", "cell05"], ["2", "cell02"], ["10", "cell10"]]


@pytest.mark.usefixtures("sales")
def test_an_unknown_cell_is_an_error() -> None:
    answer = call("show", "sales.ipynb", "--cells", "nowhere")
    assert answer.code == 3
    assert answer.text == ""
    assert (
        call("show", "sales.ipynb", "--cells", "9,99", "--json").error["code"] == "CELL_NOT_FOUND"
    )


@pytest.mark.usefixtures("sales")
def test_outputs_can_be_left_out() -> None:
    text = succeed("show", "sales.ipynb", "--no-outputs").text
    assert "│" not in text.partition("mystery")[0]
    assert "load()" in text


@pytest.mark.usefixtures("sales")
def test_several_notebooks_each_have_a_heading() -> None:
    text = succeed("show", "sales.ipynb", "nb.ipynb").text
    assert text.startswith("sales.ipynb  11 cells")
    assert "\n\n\nnb.ipynb  " in text


@pytest.mark.usefixtures("sales")
def test_a_missing_notebook_does_not_keep_the_others_from_being_shown() -> None:
    answer = call("show", "gone.ipynb", "sales.ipynb")
    assert answer.code == 3
    assert "gone.ipynb" in answer.err
    assert answer.text.lstrip().startswith("sales.ipynb")
    assert call("show", "gone.ipynb").text == ""


def test_a_notebook_can_come_from_stdin(folder: Path) -> None:
    del folder
    text = succeed("show", "-", stdin=make.everything()).text
    assert text.startswith("stdin  11 cells")
    assert succeed("show", "-", "--json", stdin=make.everything()).data["path"] == "-"


def test_an_old_notebook_is_shown_by_handles(folder: Path) -> None:
    (folder / "old.ipynb").write_bytes(make.notebook([make.code("x = 1")], {}, minor=2))
    assert " 0  cell-0  code [1]  ✓ ok ──" in succeed("show", "old.ipynb").text


def test_an_empty_notebook_is_only_a_heading(folder: Path) -> None:
    (folder / "empty.ipynb").write_bytes(make.notebook([], {}))
    assert succeed("show", "empty.ipynb").text == "empty.ipynb  0 cells · nbformat 4.5\n"


@pytest.mark.parametrize("flag", [["--width", "5"], ["--images", "ascii"], []])
def test_wrong_usage_is_told(flag: list[str], folder: Path) -> None:
    del folder
    words = ["nb.ipynb", *flag] if flag else []
    assert call("show", *words).code == 2


# -- where it goes ------------------------------------------------------------------------------


@pytest.mark.usefixtures("sales")
def test_a_pipe_gets_plain_text_of_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = succeed("show", "sales.ipynb").text
    assert "\x1b" not in text
    assert "▀" not in text
    assert max(map(cell_len, text.splitlines())) == 80
    monkeypatch.setenv("COLUMNS", "66")
    assert max(map(cell_len, succeed("show", "sales.ipynb").text.splitlines())) == 66


@pytest.mark.usefixtures("sales")
def test_colours_can_be_forced_and_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "3")
    colored = succeed("show", "sales.ipynb").text
    assert "\x1b[36m" in colored
    assert "▀" in colored
    assert "\x1b" not in SGR.sub("", colored)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in succeed("show", "sales.ipynb", "--images", "blocks").text


@pytest.mark.usefixtures("sales")
def test_colours_change_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = succeed("show", "sales.ipynb").text
    monkeypatch.setenv("FORCE_COLOR", "3")
    colored = succeed("show", "sales.ipynb", "--images", "none").text
    # Code within a line of prose has a colour or its signs.
    assert SGR.sub("", colored) == plain.replace("`pandas`", "pandas")


@pytest.mark.usefixtures("sales")
def test_an_odd_locale_does_not_stop_it() -> None:
    answer = process("show", "sales.ipynb", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert answer.code == 0
    assert "東京" in answer.text


@pytest.mark.usefixtures("sales")
def test_a_reader_who_leaves_early_is_no_error() -> None:
    running = subprocess.Popen(
        command("show", *["sales.ipynb"] * 40), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    assert running.stdout.read(100)
    running.stdout.close()
    assert running.stderr is not None
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait(50) == 0


@pytest.mark.usefixtures("sales")
def test_a_terminal_gets_colours_pictures_and_its_own_width() -> None:
    sent = on_a_terminal("sales.ipynb")
    plain = SGR.sub("", sent)
    assert "\x1b" in sent
    assert "\x1b" not in plain
    assert "▀" in plain
    assert max(map(cell_len, plain.splitlines())) == 90


@pytest.mark.usefixtures("sales")
def test_a_terminal_that_can_draw_is_let() -> None:
    sent = on_a_terminal("sales.ipynb", "--cells", "2", KITTY_WINDOW_ID="1")
    assert re.findall(r"\x1b_Ga=p,i=\d+,([^\x1b]*)\x1b", sent) == ["c=16,r=4,U=1,q=2"]
    assert sent.count("\U0010eeee") == 16 * 4
    assert "▀" not in sent


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize("terminal", ["xterm-kitty", "foot"])
def test_the_size_of_a_character_is_the_terminals_own(terminal: str) -> None:
    words = command("show", "sales.ipynb", "--cells", "2")
    sent = sent_to_a_terminal(words, (40, 90, 720, 640), TERM=terminal)  # of 8 by 16 pixels
    if terminal == "foot":
        assert re.findall(r'\x1bP[0-9;]*q"1;1;(\d+);(\d+)', sent) == [("160", "80")]
        assert "\x1b7\x1b[5A\x1b[" in sent
    else:
        assert ",c=20,r=5," in sent
        assert sent.count("\U0010eeee") == 20 * 5


@pytest.mark.usefixtures("sales")
@pytest.mark.parametrize("terminal", ["xterm-kitty", "foot", "xterm-256color"])
def test_the_terminal_is_asked_nothing_and_what_is_typed_ahead_stays(terminal: str) -> None:
    then_read = ["sh", "-c", '"$@"; read -r line; echo "left: $line"', "sh"]
    words = [*then_read, *command("show", "sales.ipynb", "--cells", "2")]
    # It does not tell its size in pixels, which is a reason to ask as well.
    sent = sent_to_a_terminal(words, (40, 90, 0, 0), b"typed ahead\n", TERM=terminal)
    assert sent.endswith("left: typed ahead\n")
    for question in ("\x1b[c", "\x1b[>", "\x1b[16t", "\x1b[14t", "a=q", "\x1b[6n"):
        assert question not in sent


@pytest.mark.usefixtures("sales")
def test_a_dumb_terminal_gets_plain_text() -> None:
    assert "\x1b" not in on_a_terminal("sales.ipynb", TERM="dumb", COLORTERM="")


def test_the_pager_gets_everything_in_colour(sales: Path) -> None:
    pager = sales.parent / "pager"
    pager.write_text('#!/bin/sh\necho "less is told $LESS"\nexec cat\n')
    pager.chmod(0o755)
    sent = on_a_terminal("sales.ipynb", "--pager", PAGER=str(pager), KITTY_WINDOW_ID="1")
    assert sent.startswith("less is told FRX\n")
    assert "▀" in sent  # no pager passes on what kitty draws
    assert "\x1b" not in SGR.sub("", sent)
    assert sent.rstrip().endswith("}\x1b[0m")


@pytest.mark.usefixtures("sales")
def test_a_pager_that_is_left_early_or_missing_is_no_error() -> None:
    assert on_a_terminal(*["sales.ipynb"] * 30, "--pager", PAGER="true") == ""
    assert "sales.ipynb" in on_a_terminal("sales.ipynb", "--pager", PAGER="no-such-pager")


@pytest.mark.usefixtures("sales")
def test_there_is_no_pager_unless_it_is_asked_for() -> None:
    assert "sales.ipynb" in on_a_terminal("sales.ipynb", PAGER="true")
