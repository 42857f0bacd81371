"""`cellwright eval` and the commands over kernels, as processes and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.cli.calling import call, command, process

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_code_prints_is_data_and_nothing_else_is() -> None:
    answer = process("eval", "print('one')", "40 + 2")
    assert (answer.code, answer.text, answer.err) == (0, "one\n42\n", "")


def test_code_comes_from_stdin_too() -> None:
    assert process("eval", stdin="print(1)\nprint(2)\n").text == "1\n2\n"
    assert process("eval", "-", stdin="3").text == "3\n"


@pytest.mark.parametrize(
    ("code", "exit_code", "error"),
    [
        ("1 / 0", 1, "CELL_FAILED"),
        ("input()", 1, "CELL_FAILED"),
        ("import time; time.sleep(60)", 124, "EXECUTION_TIMED_OUT"),
        ("import os; os.kill(os.getpid(), 9)", 4, "KERNEL_DIED"),
    ],
)
def test_the_exit_code_says_how_the_cell_ended(code: str, exit_code: int, error: str) -> None:
    answer = process("eval", "--timeout", "1", code)
    assert answer.code == exit_code
    assert "Traceback (most recent call last)\n  File" not in answer.err
    told = json.loads(process("eval", "--json", "--timeout", "1", code).out)
    assert (told["ok"], told["error"]["code"]) == (False, error)
    assert told["data"]["cells"][0]["text"] is not None


def test_a_kernel_that_is_not_there_is_kernel_trouble() -> None:
    answer = process("eval", "--kernel", "no-such-kernel", "1", "--json")
    assert answer.code == 4
    told = json.loads(answer.out)
    assert (told["ok"], told["error"]["code"]) == (False, "KERNEL_MISSING")
    assert told["error"]["hint"]


def test_cells_with_titles_and_settings_of_their_own_come_as_json() -> None:
    cells = [
        {"code": "x = 1", "title": "set"},
        {"code": "'x' in globals()", "title": "look", "reset": True, "timeout": 5},
    ]
    answer = call("eval", "--cells", "-", "--json", stdin=json.dumps(cells))
    rows = answer.data["cells"]
    assert [(row["title"], row["text"]) for row in rows] == [("set", ""), ("look", "False\n")]
    assert call("eval", "--cells", "-", stdin="{}").code == 2
    assert call("eval", "--cells", "-", "1", stdin="[]").code == 2


def test_ctrl_c_stops_the_cell_and_leaves_nothing() -> None:
    code = "import os, subprocess, time; p = subprocess.Popen(['sleep', '999'])\n"
    code += "print(os.getpid(), p.pid, flush=True); time.sleep(60)"
    child = subprocess.Popen(command("eval", "--timeout", "0", code), stdout=subprocess.PIPE)
    assert child.stdout is not None
    pids = child.stdout.readline().split()
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 130
    child.stdout.close()
    _all_gone(pids)


def test_a_killed_command_leaves_nothing() -> None:
    code = "import os, subprocess, re\np = subprocess.Popen(['sleep', '999'], start_new_session=True)\n"
    code += "print(os.getpid(), p.pid, flush=True); re.match(r'(a+)+$', 'a' * 60 + 'b')"
    child = subprocess.Popen(command("eval", "--timeout", "0", code), stdout=subprocess.PIPE)
    assert child.stdout is not None
    pids = child.stdout.readline().split()
    child.kill()
    child.wait()
    child.stdout.close()
    _all_gone(pids)


def _all_gone(pids: list[bytes]) -> None:
    assert len(pids) == 2
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid.decode()}").exists() for pid in pids):
        assert time.monotonic() < deadline, "a process outlived its owner"
        time.sleep(0.02)


def terminal(words: list[str], typed: bytes = b"", until: bytes = b"") -> tuple[int, str]:
    """Run a command on a terminal of its own; `typed` when it has said `until`."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ["NO_COLOR"] = "1"
        os.execv(words[0], words)  # noqa: S606
    said = b""
    while True:
        ready, _, _ = select.select([master], [], [], 60)
        assert ready, said
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux's way to say that it is over
            break
        if not piece:
            break
        said += piece
        if typed and until in said:
            os.write(master, typed)
            typed = b""
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


def test_on_a_terminal_every_cell_tells_how_far_it_is() -> None:
    code, said = terminal(command("eval", "--title", "good", "print(1)", "--title", "bad", "1/0"))
    assert code == 1
    places = [
        said.index(text)
        for text in (
            "[1/2] good: running",
            "[2/2] bad: pending",
            "[1/2] good: complete",
            "[2/2] bad: running",
            "[2/2] bad: error",
        )
    ]
    assert places == sorted(places)
    assert process("eval", "--title", "a", "1", "2").err == ""  # on a terminal only


def test_on_a_terminal_a_person_answers_input() -> None:
    code, said = terminal(command("eval", "print(input('who? ') + '!')"), b"Ada\n", b"who? ")
    assert (code, "Ada!" in said) == (0, True)


def test_a_terminal_obeys_nothing_that_code_prints() -> None:
    code, said = terminal(command("eval", r"print('\x1b]0;owned\x07\x1b[2Jplain')"))
    assert (code, "plain" in said) == (0, True)
    assert "\x1b" not in said
    assert "\x07" not in said


def test_kernels_sessions_and_artifacts_are_listed() -> None:
    specs = call("kernel", "specs", "--json").data["specs"]
    assert [spec["name"] for spec in specs if spec["default"]] == ["python3"]
    assert "python3" in call("kernel", "specs").text
    assert call("sessions", "--json").data == {"sessions": []}
    assert call("artifact", "--json").data == {"artifacts": []}
    for action in ("status", "interrupt", "restart", "variables", "shutdown"):
        answer = call("kernel", action, "nobody", "--json")
        assert (answer.code, answer.error["code"]) == (4, "SESSION_NOT_FOUND")


def test_an_artifact_is_read_in_parts_and_deleted() -> None:
    row = call("eval", "--json", "for i in range(9000): print(i)").data["cells"][0]
    name = row["artifact"]
    whole = "".join(f"{number}\n" for number in range(9000))
    assert call("artifact", name).text == whole
    assert (
        call("artifact", f"artifact://{name}", "--offset", "10", "--limit", "6").text
        == whole[10:16]
    )
    part = call("artifact", name, "--limit", "100", "--json").data
    assert (part["text"], part["next_offset"], part["size"]) == (whole[:100], 100, len(whole))
    assert [item["id"] for item in call("artifact", "--json").data["artifacts"]] == [name]
    assert call("artifact", name, "--delete").code == 0
    answer = call("artifact", name, "--json")
    assert (answer.code, answer.error["code"]) == (3, "ARTIFACT_NOT_FOUND")
    assert call("artifact", "../../etc/passwd", "--json").error["code"] == "ARTIFACT_NOT_FOUND"


def test_outputs_of_a_notebook_are_described_within_a_budget(folder: Path) -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": "".join(f"{n}\n" for n in range(5000))},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["x"]},
    ]
    cells = [
        {"cell_type": "code", "id": "aa", "metadata": {}, "source": "", "execution_count": 3,
         "outputs": outputs},
        {"cell_type": "code", "id": "bb", "metadata": {}, "source": "", "execution_count": None,
         "outputs": []},
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "nb.ipynb").write_text(json.dumps(notebook))
    data = call("outputs", "nb.ipynb", "--max-tokens", "300", "--json").data
    (row,) = data["cells"]
    assert (row["handle"], row["outputs"]) == ("aa", 2)
    assert "ValueError: bad" in row["text"]
    assert len(row["text"]) <= 300 * 4 + 400
    assert row["left_out"]
    assert "cell 0 aa [3]" in call("outputs", "nb.ipynb", "aa").text
    assert call("outputs", "nb.ipynb", "zz").code == 3


def test_a_cut_output_is_said_on_stderr_with_where_all_of_it_is() -> None:
    answer = process("eval", "for i in range(9000): print(i)")
    assert answer.code == 0
    assert answer.text.splitlines() == [str(number) for number in range(9000)]  # it streams
    assert "9,000 lines of output; all stored as artifact://" in answer.err
    cell = call("eval", "--json", "for i in range(9000): print(i)").data["cells"][0]
    assert (cell["truncated"], cell["total_lines"]) == (True, 9000)
    assert cell["artifact"]


def test_an_edit_can_run_what_it_changed(folder: Path) -> None:
    call("new", "made.ipynb")
    answer = call("edit", "made.ipynb", "insert", "print(6 * 7)", "--id", "a", "--run", "changed")
    assert (answer.code, "42" in answer.text) == (0, True)
    assert "Ran: a (index 0), ok" in answer.err
    assert b'"42\\n"' in (folder / "made.ipynb").read_bytes()
    answer = call("edit", "made.ipynb", "replace", "a", "1 / 0", "--run", "stale", "--json")
    assert answer.code == 1
    told = json.loads(answer.out)
    assert (told["ok"], told["error"]["code"]) == (False, "CELL_FAILED")
    assert told["data"]["saved"]  # the edit stands, whatever became of its run
    assert told["data"]["executions"][0]["status"] == "error"
