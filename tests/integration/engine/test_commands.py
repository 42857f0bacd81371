"""The command line through the engine: kernels, runs and notebooks outlive a command."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines import Engine, engine_of_its_own, is_alive, move_to_places, wait_for
from tests.unit.cli import samples
from tests.unit.cli.calling import Answer, call, command

pytestmark = pytest.mark.timeout(120)

SLOW = "import time\nprint('here', flush=True)\ntime.sleep(60)"
NOTEBOOK = samples.write(
    samples.code("c1", "x = 20"),
    samples.code("c2", "y = x + 1"),
    samples.code("c3", "print(y)\ny * 2"),
    samples.code("slow", SLOW),
    samples.code("ask", "name = input('who? ')\nprint(name + '!')"),
    samples.code("bad", "1 / 0"),
    samples.code("dies", "import os; os._exit(3)"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "ada")
    (tmp_path / "nb.ipynb").write_bytes(NOTEBOOK)
    return tmp_path


@pytest.fixture(autouse=True)
def engine(shared_engine: Engine) -> Engine:
    return shared_engine


def cw(*words: str, **env: str) -> Answer:
    """A command: in this process, which is faster; what it leaves behind is the engine's."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        return call(*words)


def outputs(cell: str) -> str:
    return cw("outputs", "nb.ipynb", cell).text


def start(*words: str, **options: Any) -> subprocess.Popen[bytes]:
    """A command that goes on, once its cell has said that it runs."""
    child = subprocess.Popen(command(*words), stdout=subprocess.PIPE, **options)
    assert child.stdout is not None
    assert child.stdout.readline() == b"here\n"
    return child


# --- One kernel over many commands ---------------------------------------------------------------


def test_a_session_keeps_its_state_from_one_command_to_the_next(engine: Engine) -> None:
    assert cw("eval", "-s", "a", "x = 1").code == 0
    assert cw("eval", "-s", "a", "x").text == "1\n"
    assert cw("eval", "-s", "b", "x").code == 1  # another session
    assert cw("eval", "-s", "a", "--reset", "x").code == 1
    assert {row["session"] for row in engine.status()["sessions"]} == {"a", "b"}


def test_a_notebook_keeps_its_kernel_from_one_command_to_the_next(folder: Path) -> None:
    assert cw("run", "nb.ipynb", "c1", "c2").code == 0
    (folder / "sub").mkdir()
    (folder / "sub" / "link.ipynb").symlink_to(folder / "nb.ipynb")
    answer = cw("run", "sub/link.ipynb", "c3")  # the same notebook, by another name
    assert (answer.code, answer.text) == (0, "21\n42\n")
    assert "42" in outputs("c3")
    rows = cw("sessions", "--json").data["sessions"]
    assert [(row["session"], row["kind"]) for row in rows] == [
        (str(folder / "nb.ipynb"), "notebook")
    ]


def test_what_the_engine_recorded_is_forgotten_through_it() -> None:
    assert cw("run", "nb.ipynb", "c1", "c2").code == 0
    assert cw("edit", "nb.ipynb", "replace", "c1", "x = 'sesame'").code == 0
    assert cw("edit", "nb.ipynb", "replace", "c1", "x = 1").code == 0

    found = cw("forget", "nb.ipynb", "--json").data

    assert (found["notebooks"], found["executions"]) == (1, 2)
    assert cw("log", "nb.ipynb", "--json").data["entries"] == []
    state = Path(os.environ["XDG_STATE_HOME"]) / "cellwright"
    assert not [each.name for each in state.iterdir() if b"sesame" in _read_bytes(each)]
    assert cw("edit", "nb.ipynb", "replace", "c1", "x = 2").code == 0
    assert cw("undo", "nb.ipynb").code == 0
    assert cw("run", "nb.ipynb", "c2").code == 0  # its kernel was not touched


def _read_bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def test_environment_and_folder_are_those_of_whoever_starts_the_kernel(folder: Path) -> None:
    code = "import os; print(os.environ.get('COLOUR'), os.getcwd())"
    (folder / "sub").mkdir()
    assert cw("eval", "-s", "a", code, COLOUR="red").text == f"red {folder}\n"
    assert cw("eval", "-s", "a", code, COLOUR="blue").text == f"red {folder}\n"
    assert cw("eval", "-s", "b", code, COLOUR="blue").text == f"blue {folder}\n"
    words = [sys.executable, "-m", "cellwright", "eval", "-s", "a", code]
    there = subprocess.run(words, cwd=folder / "sub", capture_output=True, text=True, check=True)
    assert there.stdout == f"None {folder / 'sub'}\n"  # of that name, in another folder
    cw("edit", "nb.ipynb", "replace", "c1", code)
    there = subprocess.run(
        [*command("run", "../nb.ipynb", "c1")],
        cwd=folder / "sub",
        env={**os.environ, "COLOUR": "green"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout == f"green {folder}\n"


@pytest.mark.parametrize("name", ["mine", "nb.ipynb"])
def test_kernels_are_looked_after_by_session_or_notebook(name: str) -> None:
    first = ("run", name, "c1") if name == "nb.ipynb" else ("eval", "-s", name, "x = 20")
    assert cw(*first).code == 0
    told = cw("kernel", "status", name, "--json").data
    assert (told["state"], told["executions"]) == ("idle", 1)
    (variable,) = cw("kernel", "variables", name, "--json").data["variables"]
    assert (variable["name"], variable["value"]) == ("x", "20")
    assert cw("kernel", "interrupt", name, "--json").data["interrupted"] is False
    assert cw("kernel", "restart", name).code == 0
    assert cw("kernel", "variables", name, "--json").data["variables"] == []
    assert is_alive(told["pid"]) is False
    assert cw("kernel", "shutdown", name).code == 0
    assert cw("kernel", "status", name, "--json").error["code"] == "SESSION_NOT_FOUND"


def test_interrupt_from_another_command_stops_the_cell_and_keeps_the_state() -> None:
    assert cw("run", "nb.ipynb", "c1").code == 0
    child = start("run", "nb.ipynb", "slow")
    assert cw("kernel", "interrupt", "nb.ipynb", "--json").data["interrupted"] is True
    assert child.wait(30) == 130
    child.communicate()
    assert cw("run", "nb.ipynb", "c2", "c3").text == "21\n42\n"


# --- Runs by id ----------------------------------------------------------------------------------


def test_a_run_can_be_left_listed_followed_and_stopped_by_others() -> None:
    assert cw("run", "nb.ipynb", "c1").code == 0
    told = cw("run", "nb.ipynb", "slow", "bad", "--detach", "0.1", "--json")
    data = told.data
    assert (told.code, data["done"]) == (0, False)
    first, second = (row["status"] for row in data["executions"])
    assert first in ("pending", "running"), "as far as it is after a tenth of a second"
    assert second == "pending"
    run = data["run"]
    wait_for(
        lambda: cw("runs", "--json").data["runs"][0]["cells"].get("slow") == "running",
        "the cell to run",
    )
    row = cw("runs", "--json").data["runs"][0]
    assert (row["run"], row["kind"], row["state"]) == (run, "run", "running")
    assert (row["actor"], row["cells"]["bad"]) == ("cli:ada", "pending")
    assert run in cw("runs").text
    # From its beginning, also what was said before; and looking away does not stop it.
    wait_for(lambda: cw("attach", run, "--wait", "0.1").text == "here\n", "what it said")
    other = cw("attach", run, "--wait", "0", "--json").data
    assert not other["done"]
    assert [row["status"] for row in other["answer"]["executions"]] == ["running", "pending"]
    assert cw("cancel", run).text == f"Stopped {run}\n"
    assert cw("cancel", run).text == f"{run} had already ended\n"
    answer = cw("attach", run, "--json")
    assert answer.code == 130
    ended = json.loads(answer.text)["data"]
    statuses = [each["status"] for each in ended["answer"]["executions"]]
    assert (ended["state"], statuses) == ("done", ["cancelled", "pending"])
    assert "here" in outputs("slow")
    assert cw("run", "nb.ipynb", "c2", "c3").text == "21\n42\n"  # the kernel is as it was
    assert cw("attach", "r0", "--json").error["code"] == "RUN_NOT_FOUND"


def test_an_eval_can_be_left_and_followed() -> None:
    code = "import time\nfor i in range(4): print(i, flush=True); time.sleep(0.2)\n'end'"
    answer = cw("eval", "-s", "a", "x = 5", code, "--detach", "0.3", "--json").data
    run = answer["run"]
    assert answer["done"] is False
    followed = cw("attach", run)
    assert (followed.code, followed.text) == (0, "0\n1\n2\n3\n'end'\n")
    rows = cw("attach", run, "--json").data["answer"]["cells"]
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert cw("eval", "-s", "a", "x").text == "5\n"


def test_runs_of_one_notebook_take_turns_and_one_that_waits_can_be_stopped() -> None:
    first = start("run", "nb.ipynb", "slow")
    waiting = cw("run", "nb.ipynb", "c1", "--detach", "0", "--json").data["run"]
    states = {row["run"]: row["state"] for row in cw("runs", "--json").data["runs"]}
    assert states[waiting] == "waiting"
    assert cw("cancel", waiting).code == 0
    told = cw("attach", waiting, "--json")
    assert (told.code, json.loads(told.text)["error"]["code"]) == (130, "EXECUTION_CANCELLED")
    assert first.poll() is None
    first.send_signal(signal.SIGINT)
    assert first.wait(30) == 130
    first.communicate()


# --- Clients that go away ------------------------------------------------------------------------


def test_ctrl_c_stops_the_run_and_the_kernel_keeps_its_state(engine: Engine) -> None:
    assert cw("run", "nb.ipynb", "c1").code == 0
    kernel = engine.status()["sessions"][0]["pid"]
    child = start("run", "nb.ipynb", "slow")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130
    child.communicate()
    assert "here" in outputs("slow")
    words = ("edit", "nb.ipynb", "replace", "slow", f"{SLOW}\n", "--run", "changed")
    child = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL)
    wait_for(lambda: engine.status()["runs"][0]["cells"].get("slow") == "running", "the cell")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130
    assert engine.status()["sessions"][0]["pid"] == kernel
    wait_for(
        lambda: [run["state"] for run in engine.status()["runs"][:3]] == ["done"] * 3,
        "the end of the run",
    )
    assert cw("run", "nb.ipynb", "c2", "c3").text == "21\n42\n"
    child = start("eval", "-s", "a", "--timeout", "0", f"z = 7\n{SLOW}")
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 130
    child.communicate()
    assert cw("eval", "-s", "a", "z").text == "7\n"


def test_ctrl_c_stops_all_of_several_notebooks(folder: Path) -> None:
    for name, source in (("one", ""), ("slow", SLOW), ("three", "3")):
        (folder / f"{name}.ipynb").write_bytes(samples.write(samples.code("a", source)))
    child = start("run", "one.ipynb", "slow.ipynb", "three.ipynb", stderr=subprocess.PIPE)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    assert b"3 notebooks: 1 ok, 1 failed, 1 not run" in said
    assert cw("log", "three.ipynb").text == ""


def test_a_killed_client_loses_nothing(engine: Engine, folder: Path) -> None:
    source = (
        "import os, time\nprint('here', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nprint('there')"
    )
    assert cw("edit", "nb.ipynb", "replace", "slow", source).code == 0
    child = start("run", "nb.ipynb", "slow", "c1")
    child.kill()
    child.communicate()
    wait_for(lambda: not engine.status()["clients"], "the engine to notice")
    (folder / "go").touch()
    wait_for(lambda: engine.status()["runs"][0]["state"] == "done", "the end of the run")
    assert "here\nthere" in outputs("slow")
    assert cw("run", "nb.ipynb", "c2", "c3").text == "21\n42\n"
    # Nobody holds the kernel in the name of one that is gone.
    assert engine.status()["sessions"][0]["owners"] == []


def test_a_run_that_begins_when_its_client_is_gone_holds_no_kernel_for_it(engine: Engine) -> None:
    run = cw("run", "nb.ipynb", "c1", "--detach", "0", "--json").data["run"]
    assert cw("attach", run).code == 0
    wait_for(lambda: not engine.status()["clients"], "all clients to be gone")
    assert engine.status()["sessions"][0]["owners"] == []


def test_a_person_at_a_terminal_answers_input() -> None:
    pid, master = pty.fork()
    if pid == 0:
        words = command("run", "nb.ipynb", "ask")
        os.execv(words[0], words)  # noqa: S606
    said, typed = b"", b"Ada\n"
    while select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux's way to say that it is over
            break
        said += piece
        if typed and b"who? " in said:
            os.write(master, typed)
            typed = b""
    os.close(master)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, said
    assert b"Ada!" in said
    assert "Ada!" in outputs("ask")
    # Where nobody can be asked, or what was given is used up, that is an error.
    assert cw("run", "nb.ipynb", "ask").code == 1
    assert cw("run", "nb.ipynb", "ask", "--answer", "Bob").text == "Bob!\n"


# --- Errors, as they are -------------------------------------------------------------------------


def test_errors_are_the_same_as_without_an_engine(folder: Path) -> None:
    (folder / "other.ipynb").write_bytes(NOTEBOOK)
    for words, code, name in (
        (("run", "nb.ipynb", "bad"), 1, "CELL_FAILED"),
        (("run", "nb.ipynb", "nobody"), 3, "CELL_NOT_FOUND"),
        (("read", "none.ipynb"), 3, "NOTEBOOK_NOT_FOUND"),
        (("run", "other.ipynb", "c1", "--kernel", "none"), 4, "KERNEL_MISSING"),
        (("run", "nb.ipynb", "dies"), 4, "KERNEL_DIED"),
        (("run", "nb.ipynb", "c1", "--mode", "ask"), 5, "MODE_FORBIDS"),
        (("edit", "nb.ipynb", "delete", "c1", "--base", "0" * 12), 6, "UNKNOWN_REVISION"),
        (("run", "nb.ipynb", "slow", "--timeout", "0.2"), 124, "EXECUTION_TIMED_OUT"),
        (("read", "/etc/hosts", "--root", "."), 3, "OUTSIDE_ROOT"),
    ):
        answers = [cw(*words, "--json", *more) for more in ((), ("--no-engine",))]
        if words[0] != "read" and code != 5:
            answers.pop()  # the engine has its kernel
        for answer in answers:
            told = json.loads(answer.text)
            assert told["error"], words
            assert (answer.code, told["ok"], told["error"]["code"]) == (code, False, name), words
    base = cw("read", "nb.ipynb", "--json").data["revision"]
    assert cw("edit", "nb.ipynb", "replace", "c1", "x = 1").code == 0
    words = ("edit", "nb.ipynb", "replace", "c1", "x = 2", "--base", base)
    answer = cw(*words)
    assert answer.code == 6
    assert "x = 1" in answer.err
    assert "x = 2" in answer.err
    (cell,) = cw(*words, "--json").error["cells"]
    assert (cell["current"], cell["other"]) == ("x = 1", "x = 2")
    assert b"x = 1" in (folder / "nb.ipynb").read_bytes()


def test_a_notebook_that_the_engine_runs_is_owned_elsewhere_for_others(engine: Engine) -> None:
    assert cw("run", "nb.ipynb", "c1").code == 0
    for words in (
        ("run", "nb.ipynb", "c1"),
        ("edit", "nb.ipynb", "replace", "c1", "x = 3"),
        ("undo", "nb.ipynb"),
    ):
        answer = cw(*words, "--no-engine", "--json")
        told = json.loads(answer.text)["error"]
        assert (answer.code, told["code"]) == (6, "OWNED_ELSEWHERE"), words
        assert f"the engine (process {engine.pid})" in told["message"]
    assert cw("--no-engine", "read", "nb.ipynb").code == 0
    # Another engine of the same user, with a history elsewhere, does not get it either.
    other = {"XDG_STATE_HOME": str(Path(os.environ["XDG_STATE_HOME"]) / "other")}
    answer = cw("run", "nb.ipynb", "c1", "--json", **other)
    try:
        assert (answer.code, json.loads(answer.text)["error"]["code"]) == (6, "OWNED_ELSEWHERE")
        assert cw("engine", "status", "--json", **other).data["pid"] != engine.pid
        # Free again as soon as the kernel is.
        assert cw("kernel", "shutdown", "nb.ipynb").code == 0
        assert cw("edit", "nb.ipynb", "replace", "c1", "x = 4", "--no-engine").code == 0
        assert cw("run", "nb.ipynb", "c1", **other).code == 0
        answer = cw("run", "nb.ipynb", "c1", "--json")
        assert answer.code == 6
        pid = cw("engine", "status", "--json", **other).data["pid"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(pid), "its end")
        assert cw("run", "nb.ipynb", "c1").code == 0
    finally:
        cw("engine", "stop", **other)


def test_an_idle_kernel_is_swept_and_the_notebook_is_free(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_to_places(monkeypatch, places)  # with settings, so that it needs an engine of its own
    monkeypatch.setenv("CELLWRIGHT_SESSION_SWEEP_INTERVAL", "0.2")
    monkeypatch.setenv("CELLWRIGHT_NOTEBOOK_SESSION_IDLE_TIMEOUT", "1")
    with engine_of_its_own(monkeypatch) as engine:
        assert cw("run", "nb.ipynb", "c1").code == 0
        wait_for(lambda: not engine.status()["sessions"], "the sweep")
        # Free when the kernel has ended, and not before.
        wait_for(lambda: cw("--no-engine", "run", "nb.ipynb", "c1").code == 0, "the notebook")


def test_who_did_what_is_told_to_others() -> None:
    assert cw("edit", "nb.ipynb", "replace", "c1", "x = 5", LOGNAME="bob").code == 0
    assert cw("run", "nb.ipynb", "c1", LOGNAME="eve").code == 0
    others = cw("edit", "nb.ipynb", "replace", "c2", "y = 1", "--json").data["others"]
    assert [(one["actor"], one["did"]) for one in others] == [
        ("cli:eve", "run"),
        ("cli:bob", "edit"),
    ]
