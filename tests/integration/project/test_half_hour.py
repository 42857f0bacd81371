"""A new user's half hour at a terminal: install, show, edit, run, undo, git, chat.

It is played in tmux. Every screen is kept in `.dev/half-hour`, to be looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, require_tool
from tests.integration.project.test_wheel import LEFT, LEFT_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCREENS = ROOT / ".dev" / "half-hour"
PATIENCE = 500

# What is typed at the shell, and what must be on the screen then.
INSTALL = [
    ("python3 -m venv env && . env/bin/activate", ()),
    ('pip install --quiet --disable-pip-version-check "$WHEEL[assistant]"', ()),
    ("cellwright --version", ("cellwright ",)),
    ("cellwright doctor", ("python3", "default")),
]
SHOW_AND_EDIT = [
    ("cellwright new sales.ipynb", ("sales.ipynb",)),
    ("cellwright edit sales.ipynb insert --type markdown '# Sales of a year'", ("New cell",)),
    ("cellwright edit sales.ipynb insert 'sales = [12, 30, 54]'", ("New cell",)),
    ("cellwright edit sales.ipynb insert 'print(\"total\", sum(sales))'", ("New cell",)),
    ("cellwright show sales.ipynb", ("Sales of a year", "sales = [12, 30, 54]")),
]
RUN_AND_UNDO = [
    ("cellwright run sales.ipynb", ("total 96", "2 ok")),
    ("cellwright edit sales.ipynb replace 1 'sales = [1, 2, 3]' --run stale", ("total 6",)),
    ("cellwright stale sales.ipynb", ("fresh",)),
    ("cellwright log sales.ipynb", ("insert", "run")),
    ("cellwright undo sales.ipynb", ("Undone", "not undone", "Outputs of later runs stay")),
    ("cellwright show sales.ipynb", ("sales = [12, 30, 54]",)),
]
GIT = [
    ("git init --quiet && cellwright git install", ()),
    ("git add sales.ipynb && git commit --quiet -m 'Add the sales'", ()),
    ("cellwright edit sales.ipynb replace 1 'sales = [20, 30]'", ("Cell updated",)),
    ("git --no-pager diff", ("-sales = [12, 30, 54]", "+sales = [20, 30]")),
    ("cellwright diff sales.ipynb", ("+sales = [20, 30]",)),
]
# What is typed into the chat, and what must be on the screen then.
CHAT = [
    ("what does cell 2 do?", ("It defines sales",)),
    ("/mode agent", ("Mode agent:",)),
    ("#updateNotebookCell cell 2", ("What is the new source",)),
    ("sales = [5, 6]", ("has its new source",)),
    ("run all cells", ("Run 2 cells", "y yes")),
    ("y", ("total 11",)),
    ("/undo", ("Undid the turn",)),
]


class Tmux:
    """A shell in a terminal of 80 columns, and a person in front of it."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self.environ = environ
        self._socket = str(folder / "tmux")
        self._commands = self._screens = 0
        (folder / "rc").write_text(
            "PS1='$ '\n"
            "PROMPT_COMMAND='echo $? >status-$count; tmux wait-for -S ready-$count; "
            "count=$((count + 1))'\ncount=0\n",
            encoding="utf-8",
        )
        shell = f"bash --noprofile --rcfile {folder / 'rc'} -i"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "50", shell)
        self.tmux("wait-for", "ready-0")

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout

    def type(self, line: str) -> None:
        self.tmux("send-keys", "-l", line)
        self.tmux("send-keys", "Enter")

    def see(self) -> str:
        """What is on the screen, without the blanks at its end."""
        return self.tmux("capture-pane", "-p", "-J").rstrip()

    def keep(self, title: str) -> None:
        """Keep the screen."""
        self._screens += 1
        name = (
            f"{self._screens:02} {''.join(c if c.isalnum() else ' ' for c in title)[:50].strip()}"
        )
        (SCREENS / f"{name}.txt").write_text(self.see() + "\n", encoding="utf-8")

    def run(self, line: str, *words: str) -> None:
        """Type a command, and wait for its end, on a clean screen."""
        self.tmux("send-keys", "-R")
        self.tmux("clear-history")
        self._commands += 1
        self.type(line)
        self.tmux("wait-for", f"ready-{self._commands}")
        self.keep(line)
        seen = self.see()
        assert (self.folder / f"status-{self._commands}").read_text("utf-8") == "0\n", seen
        assert [word for word in words if word not in seen] == [], seen
        assert "Traceback" not in seen

    def wait_until_seen(self, *words: str) -> None:
        """Wait until all of these words are on the screen."""
        deadline = time.monotonic() + PATIENCE
        while True:
            seen = self.see()
            if all(word in seen for word in words):
                return
            assert time.monotonic() < deadline, (words, seen)
            time.sleep(0.1)


@pytest.fixture
def terminal(tmp_path: Path, wheel: Path) -> Iterator[Tmux]:
    require_tool("tmux")
    environ = {
        name: value
        for name, value in os.environ.items()
        if name in LEFT or name.startswith(LEFT_PREFIXES)
    }
    environ |= {"WHEEL": str(wheel), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    for role in ("AUTHOR", "COMMITTER"):
        environ |= {f"GIT_{role}_NAME": "Ada", f"GIT_{role}_EMAIL": "ada@example.org"}
    shutil.rmtree(SCREENS, ignore_errors=True)
    SCREENS.mkdir(parents=True)
    terminal = Tmux(tmp_path, environ)
    try:
        yield terminal
    finally:
        terminal.tmux("kill-server")


@pytest.mark.all
@pytest.mark.timeout(1800)
def test_a_new_users_half_hour(terminal: Tmux) -> None:
    for line, words in (*INSTALL, *SHOW_AND_EDIT, *RUN_AND_UNDO, *GIT):
        terminal.run(line, *words)
    try:
        terminal.tmux("send-keys", "-R")
        terminal.type("cellwright chat sales.ipynb")
        terminal.wait_until_seen("ask \u203a")
        for line, words in CHAT:
            terminal.type(line)
            terminal.wait_until_seen(*words)
            terminal.keep(f"chat {line}")
        terminal._commands += 1
        terminal.type("/quit")
        terminal.tmux("wait-for", f"ready-{terminal._commands}")
        terminal.run("cellwright show sales.ipynb", "sales = [20, 30]")
    finally:
        terminal.run("cellwright engine stop")
    kept = sorted(path.name for path in SCREENS.iterdir())
    assert len(kept) == len((*INSTALL, *SHOW_AND_EDIT, *RUN_AND_UNDO, *GIT, *CHAT)) + 2
