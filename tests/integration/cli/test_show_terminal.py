"""`cellwright show` on terminals, in pagers and in pipes."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from tests.unit.cli import show_samples as make
from tests.unit.cli.calling import command, process
from tests.unit.cli.show_rendering import SGR
from tests.unit.cli.terminal import on_a_terminal, sent_to_a_terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def sales(folder: Path) -> Path:
    path = folder / "sales.ipynb"
    path.write_bytes(make.everything())
    return path


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


@pytest.mark.parametrize("columns", [40, 80])
def test_diff_log_and_stale_fit_a_terminal(columns: int, folder: Path) -> None:
    name = "a-cell-with-a-name-that-is-as-long-as-names-of-cells-can-be-0123"
    long = f"figures = {list(range(100))}  # 東京 " + "東京" * 50
    assert process("new", "long.ipynb").code == 0
    edits = [{"op": "insert", "id": name, "source": long}, {"op": "insert", "source": "figures"}]
    (folder / "edits.json").write_text(json.dumps(edits), encoding="utf-8")
    assert process("edit", "long.ipynb", "apply", "edits.json").code == 0
    assert process("edit", "long.ipynb", "replace", name, f"{long}\t+ [1]").code == 0
    for verb in ("diff", "log", "stale"):
        sent = sent_to_a_terminal(command(verb, "long.ipynb"), (40, columns, 0, 0))
        lines = SGR.sub("", sent).expandtabs().splitlines()
        assert max(map(cell_len, lines)) <= columns, verb
        assert "\x1b" in sent or verb == "stale"
        if verb == "diff":
            whole = "".join(SGR.sub("", sent).replace("\n ↪ ", "\n").split("\n"))
            assert f"-{long}" in whole
            assert f"+{long}\t+ [1]" in whole
