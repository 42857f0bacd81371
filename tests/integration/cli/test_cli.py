"""The command as a process: its three names, pipes that break, terminals, signals, odd machines."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cellwright import read
from cellwright.document.disk.lock import FileLock
from tests.conftest import require_tool
from tests.unit.cli import golden, samples
from tests.unit.cli.calling import Answer, call, command, process

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def large(folder: Path) -> Path:
    """A notebook whose text is larger than any pipe."""
    cells = [samples.code(f"c{i}", f"# line of cell {i}\n" * 3000) for i in range(60)]
    path = folder / "large.ipynb"
    path.write_bytes(samples.write(*cells))
    return path


# --- Names ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_the_command_has_two_names_and_is_a_module(tmp_path: Path) -> None:
    answers = [
        subprocess.run([*name, "read", "nb.ipynb", "--json"], capture_output=True, check=True)
        for name in ([SCRIPTS / "cellwright"], [SCRIPTS / "cw"], [sys.executable, "-m", "cellwright"])
    ]  # fmt: skip
    assert len({answer.stdout for answer in answers}) == 1
    assert {answer.stderr for answer in answers} == {b""}
    assert (tmp_path / "nb.ipynb").read_bytes() == samples.SALES


@pytest.mark.usefixtures("folder")
def test_a_process_answers_as_the_golden_files_say() -> None:
    """The golden tests run in one process for speed; this is what they stand for."""
    for name, first in (("read", 0), ("usage", 0), ("bad-notebook", 0)):
        expected = json.loads((golden.FOLDER / f"{name}.json").read_text(encoding="utf-8"))[first]
        answer = process(*expected["command"].split(), "--json")
        assert answer.err == ""
        assert (answer.code, answer.json) == (expected["exit"], expected["answer"])


# --- Pipes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["read", "large.ipynb"],
        ["read", "large.ipynb", "--json"],
        ["read", "large.ipynb:raw"],
        ["diff", "nb.ipynb", "large.ipynb"],
        ["edit", "large.ipynb", "apply", "--dry-run"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("large")
def test_a_reader_that_has_had_enough_is_no_error(words: list[str]) -> None:
    """As in `cellwright read large.ipynb | head -1`."""
    edits = json.dumps([{"op": "delete", "cell": i} for i in range(60)]).encode()
    with subprocess.Popen(
        command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdin
        assert running.stdout
        assert running.stderr
        running.stdin.write(edits)
        running.stdin.close()
        assert running.stdout.read(10)
        running.stdout.close()
        talk = running.stderr.read()
        assert running.wait(50) in (0, 128 + signal.SIGPIPE)
    assert b"Traceback" not in talk
    assert b"Broken" not in talk
    assert b"Exception ignored" not in talk


@pytest.mark.usefixtures("large")
def test_head_takes_a_line_and_the_shell_is_content() -> None:
    line = f"'{sys.executable}' -m cellwright read large.ipynb | head -1"
    done = subprocess.run([require_tool("sh"), "-c", line], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"# %% [code] cell:0\n", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["read", "nb.ipynb"], ["read", "nb.ipynb", "--json"]])
@pytest.mark.usefixtures("folder")
def test_a_full_disk_behind_stdout_is_told(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(*words), stdout=full, stderr=subprocess.PIPE, timeout=100, check=False
        )
    assert done.returncode not in (0, 120)
    assert b"Traceback" not in done.stderr
    assert b"No space left" in done.stderr


def test_an_edit_is_made_even_if_nobody_hears_the_answer(folder: Path) -> None:
    """Closed streams, as under a daemon."""
    line = f"'{sys.executable}' -m cellwright edit nb.ipynb delete notes <&- >&- 2>&-"
    done = subprocess.run([require_tool("sh"), "-c", line], timeout=100, check=False)
    assert done.returncode == 0
    assert b"as is" not in (folder / "nb.ipynb").read_bytes()


@pytest.mark.usefixtures("folder")
def test_a_closed_stdin_is_wrong_usage_where_stdin_is_wanted() -> None:
    line = f"'{sys.executable}' -m cellwright edit nb.ipynb replace sum - <&-"
    done = subprocess.run([require_tool("sh"), "-c", line], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: ")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}])
def test_a_machine_without_utf_8_gets_the_same_data(env: dict[str, str], folder: Path) -> None:
    (folder / "größe.ipynb").write_bytes(samples.write(samples.code("a", "größe = '大🙂'")))
    assert process("read", "größe.ipynb", **env).text == "# %% [code] cell:0\ngröße = '大🙂'\n"
    answer = process("edit", "größe.ipynb", "replace", "a", "-", stdin="größer", **env)
    assert answer.code == 0
    assert "Traceback" not in answer.err
    assert process("read", "größe.ipynb", "--json", **env).data["cells"][0]["source"] == "größer"
    assert process("read", "größte.ipynb", **env).code == 3


# --- Terminals -----------------------------------------------------------------------------------


def at_terminal(*words: str, stdin: bytes = b"", **env: str) -> Answer:
    """Run a command whose stdout and stderr are a terminal; both come back as `out`."""
    ours, theirs = pty.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST  # line feeds stay line feeds
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    with subprocess.Popen(
        command(*words),
        stdin=subprocess.PIPE,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **env},
    ) as running:
        os.close(theirs)
        assert running.stdin
        running.stdin.write(stdin)
        running.stdin.close()
        shown = b""
        while True:
            assert select.select([ours], [], [], 50)[0], "nothing comes"
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # Linux says EIO when the other side is gone
                chunk = b""
            if not chunk:
                break
            shown += chunk
        os.close(ours)
        return Answer(running.wait(50), shown, "")


@pytest.mark.usefixtures("folder")
def test_a_terminal_gets_colours_unless_it_wants_none() -> None:
    for words in (
        ["edit", "nb.ipynb", "replace", "sum", "total + 1", "--dry-run"],
        ["read", "nowhere.ipynb"],
    ):
        assert b"\x1b[" in at_terminal(*words).out
        assert b"\x1b" not in at_terminal(*words, NO_COLOR="1").out


@pytest.mark.usefixtures("folder")
def test_a_diff_on_a_terminal_shows_the_words_that_changed() -> None:
    words = ["edit", "nb.ipynb", "replace-text", "load", "total = 42", "total = 43", "--dry-run"]
    assert b"\x1b[7m42" in at_terminal(*words).out
    assert b"\x1b[7m43" in at_terminal(*words).out


def test_nothing_that_a_notebook_holds_drives_a_terminal(folder: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08"
    (folder / "evil.ipynb").write_bytes(
        samples.write(samples.code("a", f"x = '{evil}'"), samples.markdown("b", f"# {evil}"))
    )
    for words in (
        ["read", "evil.ipynb"],
        ["read", "evil.ipynb:1-2"],
        ["read", "evil.ipynb:cell=a"],
        ["read", "evil.ipynb:outline"],
        ["edit", "evil.ipynb", "delete", "a", "--dry-run"],
        ["edit", "evil.ipynb", "replace", "a", "x", "--expect", "0123"],
        ["diff", "nb.ipynb", "evil.ipynb"],
    ):
        shown = at_terminal(*words, NO_COLOR="1").out.decode()
        assert shown
        assert [c for c in shown if c not in "\n\t" and not c.isprintable()] == [], words


def test_git_gets_no_control_sequence_to_show(folder: Path) -> None:
    """What it gets is only ever looked at, and its pager would pass everything on."""
    data = samples.write(samples.code("a", "x = '\x1b]0;owned\x07\x1b[2J\x9b31m'\n\ty"))
    (folder / "evil.ipynb").write_bytes(data)
    shown = call("git", "textconv", "evil.ipynb").text
    assert [c for c in shown if c not in "\n\t" and not c.isprintable()] == []
    assert shown.startswith("# %% [code] a\nx = '")


@pytest.mark.usefixtures("folder")
def test_data_on_a_terminal_reads_as_in_a_pipe() -> None:
    for words in (["read", "nb.ipynb"], ["blame", "nb.ipynb"], ["config"]):
        assert at_terminal(*words, NO_COLOR="1").text == call(*words).text


# --- Signals -------------------------------------------------------------------------------------


@contextmanager
def waiting_for_input(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that reads from a terminal and has said so."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(*words),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,  # noqa: PLW1509
    ) as running:
        os.close(theirs)
        try:
            assert running.stderr
            assert b"Ctrl-D" in running.stderr.readline()
            yield running, ours
        finally:
            running.kill()
            os.close(ours)


@pytest.mark.parametrize("words", [["write", "nb.ipynb"], ["edit", "nb.ipynb", "replace", "sum"]])
@pytest.mark.parametrize("way", ["signal", "key"])
def test_an_interrupted_command_ends_with_130_and_changes_nothing(
    words: list[str], way: str, folder: Path
) -> None:
    with waiting_for_input(*words) as (running, terminal):
        if way == "signal":
            running.send_signal(signal.SIGINT)
        else:
            os.write(terminal, b"\x03")  # Ctrl-C
        out, err = running.communicate(timeout=100)
    assert running.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


def test_what_is_typed_is_taken_when_it_ends(folder: Path) -> None:
    with waiting_for_input("edit", "nb.ipynb", "replace", "sum") as (running, terminal):
        os.write(terminal, b"typed = 1\n\x04")  # Ctrl-D
        running.communicate(timeout=100)
    assert running.returncode == 0
    assert json.loads((folder / "nb.ipynb").read_bytes())["cells"][2]["source"] == ["typed = 1"]


# Says when it begins to wait for a lock, which is the only thing it sleeps for.
WAITING = """
import sys, time
from cellwright.cli import entry

def sleep(seconds, real=time.sleep):
    print("waiting", file=sys.stderr, flush=True)
    real(seconds)

time.sleep = sleep
entry()
"""


def test_a_command_that_waits_for_another_writer_can_be_interrupted(folder: Path) -> None:
    """It ends with 130 and leaves the file alone; nobody has to wait for the lock."""
    words = [sys.executable, "-c", WAITING, "edit", "nb.ipynb", "delete", "notes"]
    with (
        FileLock(os.path.realpath(folder / "nb.ipynb"), 0),
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
    ):
        assert running.stderr
        assert running.stderr.readline() == b"waiting\n"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=100)
    assert running.returncode == 130
    assert b"Traceback" not in err
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


# --- stdout is data, stderr is talk --------------------------------------------------------------

DATA = {
    "read nb.ipynb": b"# %% [markdown] cell:0\n",
    "read nb.ipynb:cell=sum": b"# %% [code] cell:2\ntotal\n",
    "edit nb.ipynb delete notes --dry-run": b"--- a/nb.ipynb\n",
    "diff nb.ipynb first": b"--- a/nb.ipynb\n",
    "log nb.ipynb": b"",
    "backup nb.ipynb": b"",
    "blame nb.ipynb": b"   0  intro",
    "config lock_timeout": b"lock_timeout = 30.0\n",
    "doctor": b"cellwright ",
    "show nb.ipynb": b"",
}
TALK = [
    "edit nb.ipynb delete notes",
    "undo nb.ipynb",
    "redo nb.ipynb",
    "new made.ipynb",
    "write other.ipynb",
    "upgrade nb.ipynb",
    "backup nb.ipynb --restore first",
    "edit nb.ipynb delete nothing",
    "raed",
]


@pytest.mark.usefixtures("folder")
def test_stdout_is_data_and_stderr_is_talk() -> None:
    assert process("edit", "nb.ipynb", "replace", "later", "x").out == b""
    for line, beginning in DATA.items():
        assert call(*line.split()).out.startswith(beginning), line
        assert call(*line.split()).out or line.startswith("log")
    for line in TALK:
        answer = call(*line.split())
        assert answer.out == b"", line
        assert answer.err, line


@pytest.mark.usefixtures("folder")
def test_json_is_all_there_is_with_json() -> None:
    for line in [*DATA, *TALK]:
        answer = call(*line.split(), "--json")
        assert answer.err == "", line
        assert answer.json.keys() == {"ok", "data", "error"}
        assert (answer.json["error"] is None) == answer.json["ok"] == (answer.code == 0)
        if not answer.json["ok"]:
            assert answer.error.keys() == {"code", "message", "hint", "retryable"}
    assert process("read", "nb.ipynb", "--json").json["ok"]


def edit_with(folder: Path, script: str, *words: str) -> Answer:
    """Edit the notebook in an editor that carries out a script of Python on the text."""
    editor = folder / "editor.py"
    editor.write_text(f"import sys\npath = sys.argv[1]\ntext = open(path).read()\n{script}\n")
    return process("edit", "nb.ipynb", *words, EDITOR=f"{sys.executable} {editor}", VISUAL="")


def test_edit_without_a_verb_opens_the_text_in_the_editor_and_merges(folder: Path) -> None:
    save = "open(path, 'w').write(text.replace('total = 42', 'total = 43'))"
    other = "from cellwright import edit; edit('nb.ipynb', [{'op': 'replace', 'cell': %r, 'source': 'z'}])"
    answer = edit_with(folder, f"{save}\n{other % 'plot'}")
    assert answer.code == 0, answer
    sources = {cell.id: cell.source for cell in read(folder / "nb.ipynb").cells}
    assert (sources["load"], sources["plot"]) == ("total = 43\nprint(total)", "z")
    assert "Nothing changed" in edit_with(folder, "").err
    save = "open(path, 'w').write(text.replace('total = 43', 'total = 44'))"
    answer = edit_with(folder, f"{save}\n{other % 'load'}")
    assert answer.code == 6
    again = re.search(r"`cellwright (write .*) --from (\S+) --base \w+`", answer.err)
    assert again is not None
    assert "total = 44" in Path(again[2]).read_text()  # what was typed is not lost
    Path(again[2]).unlink()
    assert process("edit", "nb.ipynb", "relpace", "load").code == 2


def test_an_editor_that_fails_or_is_none_leaves_nothing_that_was_not_typed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = folder / "drafts"
    drafts.mkdir()
    monkeypatch.setenv("TMPDIR", str(drafts))
    before = (folder / "nb.ipynb").read_bytes()
    for editor in ("/nowhere/editor", "false", "vi 'x", "''"):
        answer = process("edit", "nb.ipynb", EDITOR=editor, VISUAL=" ")
        assert (answer.code, "bug" in answer.err) == (2, False), answer
    assert list(drafts.iterdir()) == []
    answer = edit_with(folder, "open(path, 'a').write('typed')\nsys.exit(1)")
    (draft,) = drafts.iterdir()
    assert (answer.code, str(draft) in answer.err) == (2, True)
    assert "typed" in draft.read_text()
    assert (folder / "nb.ipynb").read_bytes() == before
    long = folder / f"{'ü' * 120}.ipynb"
    long.write_bytes(before)
    assert process("edit", long.name, EDITOR="true", VISUAL="").code == 0
    assert list(drafts.iterdir()) == [draft]


def test_a_script_that_is_no_file_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "nb.py")
    answer = process("sync", "nb.ipynb", "nb.py")
    assert (answer.code, "is not a file" in answer.err) == (2, True)
