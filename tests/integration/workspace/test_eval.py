"""`Workspace.eval`: cells that belong to no notebook, in sessions that keep their state."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright import Workspace
from cellwright.errors import (
    InvalidEdit,
    KernelCannot,
    KernelMissing,
    ModeForbids,
    RestartLimit,
    SessionNotFound,
)
from cellwright.kernel.processes import is_stale
from cellwright.workspace.runs.execution import CellError

if TYPE_CHECKING:
    from cellwright.workspace.api.answers import EvalAnswer

pytestmark = pytest.mark.timeout(120)


def texts(answer: EvalAnswer) -> list[str]:
    return [cell.text for cell in answer.cells]


def statuses(answer: EvalAnswer) -> list[str]:
    return [cell.status for cell in answer.cells]


def test_cells_share_a_state_with_each_other_and_with_later_calls(workspace: Workspace) -> None:
    answer = workspace.eval(["x = 20", {"code": "x + 1", "title": "sum"}])
    assert (statuses(answer), texts(answer)) == (["ok", "ok"], ["", "21\n"])
    assert answer.cells[1].title == "sum"
    assert answer.cells[1].count == 2
    assert texts(workspace.eval(["x"])) == ["20\n"]
    assert statuses(workspace.eval(["x"], session="other")) == ["error"]


def test_sessions_are_told_apart_by_folder(workspace: Workspace, folder: Path) -> None:
    (folder / "sub").mkdir()
    workspace.eval(["x = 1"])
    code = "import os; print(os.getcwd()); x"
    answer = workspace.eval([code], cwd=str(folder / "sub"))
    assert answer.cells[0].text.startswith(f"{folder / 'sub'}\n")
    assert statuses(answer) == ["error"]
    assert {row.cwd for row in workspace.sessions()} == {str(folder), str(folder / "sub")}


def test_it_stops_at_the_first_failure_unless_told_to_go_on(workspace: Workspace) -> None:
    cells = ["print(1)", "1 / 0", "print(3)"]
    answer = workspace.eval(cells)
    assert statuses(answer) == ["ok", "error", "pending"]
    error = answer.cells[1]
    assert error.error == CellError("ZeroDivisionError", "division by zero")
    assert "ZeroDivisionError: division by zero" in error.text
    assert statuses(workspace.eval(cells, keep_going=True)) == ["ok", "error", "ok"]


def test_a_reset_is_for_its_own_cell(workspace: Workspace) -> None:
    workspace.eval(["x = 1"])
    answer = workspace.eval(
        ["x", {"code": "'x' in globals()", "reset": True}, "y = 2", {"code": "y"}]
    )
    assert texts(answer) == ["1\n", "False\n", "", "2\n"]


def test_a_call_of_its_own_neither_sees_nor_leaves_anything(workspace: Workspace) -> None:
    workspace.eval(["x = 1"])
    pid = "import os; print(os.getpid())"
    answer = workspace.eval([pid, "'x' in globals()"], per_call=True)
    assert texts(answer)[1] == "False\n"
    assert len(workspace.sessions()) == 1
    assert not Path(f"/proc/{texts(answer)[0].strip()}").exists()


def test_a_timeout_is_said_in_the_output_and_what_became_of_the_state(
    workspace: Workspace,
) -> None:
    workspace.eval(["x = 1"])
    answer = workspace.eval([{"code": "import time; time.sleep(60)", "timeout": 0.5}])
    cell = answer.cells[0]
    assert (cell.status, cell.state_kept) == ("timed_out", True)
    assert "Command timed out after 0.5 seconds" in cell.text
    assert cell.notes == ["The kernel was interrupted; its variables are kept"]
    assert texts(workspace.eval(["x"])) == ["1\n"]


def test_a_crash_is_retried_once_and_said_so(workspace: Workspace, folder: Path) -> None:
    once = (
        "import os\n"
        "if not os.path.exists('mark'):\n    open('mark', 'w').close(); os.kill(os.getpid(), 9)\n"
        "print('alive')"
    )
    answer = workspace.eval([once])
    cell = answer.cells[0]
    assert (cell.status, cell.retried, (folder / "mark").exists()) == ("ok", True, True)
    assert "alive" in cell.text
    assert "may have happened twice" in cell.notes[0]

    answer = workspace.eval(["import os; os.kill(os.getpid(), 9)"])
    cell = answer.cells[0]
    assert (cell.status, cell.retried, cell.exit.signal) == ("died", True, 9)
    assert any("killed by SIGKILL, signal 9" in note for note in cell.notes)
    with pytest.raises(RestartLimit):
        workspace.eval(["1"])
    assert statuses(workspace.eval([{"code": "1", "reset": True}])) == ["ok"]


def test_a_dead_kernel_is_replaced_before_the_next_cell_and_said_so(workspace: Workspace) -> None:
    pid = int(texts(workspace.eval(["import os; os.getpid()"]))[0])
    os.kill(pid, signal.SIGKILL)
    while workspace.kernel("status", "default").state != "dead":
        time.sleep(0.01)
    cell = workspace.eval(["'os' in globals()"]).cells[0]
    assert (cell.text, cell.replaced) == ("False\n", True)
    assert "had died" in cell.notes[0]


def test_long_output_is_cut_and_all_of_it_is_in_an_artifact(workspace: Workspace) -> None:
    cell = workspace.eval(["for i in range(20_000): print(i)"]).cells[0]
    assert cell.truncated
    assert cell.total_lines == 20_000
    assert cell.text.endswith("19999\n")
    assert len(cell.text.splitlines()) <= 3000
    whole = "".join(f"{number}\n" for number in range(20_000))
    got, offset = "", 0
    while offset is not None:
        part = workspace.artifact(f"artifact://{cell.artifact}", offset, 40_000)
        got += part.text
        offset = part.next_offset
    assert got == whole


def test_displays_are_told_apart_by_what_they_are(workspace: Workspace) -> None:
    code = (
        "class J:\n    def _repr_json_(self): return {'a': [1, 2]}\n"
        "class S:\n"
        "    def _repr_mimebundle_(self, **_):\n"
        "        return {'application/x-cellwright-status': {'op': 'ls', 'count': 3}}\n"
        "class O:\n"
        "    def _repr_mimebundle_(self, **_):\n"
        "        return {'application/x-omp-status': {'op': 'cd'}}\n"
        "class P:\n"
        "    def _repr_png_(self):\n"
        "        import base64\n"
        "        return base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
        "NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==')\n"
        "class T:\n"
        "    def _repr_html_(self): return '<table><tr><th>n</th></tr><tr><td>7</td></tr></table>'\n"
        "    def _repr_markdown_(self): return '**seven**'\n"
        "for thing in (J(), S(), O(), P(), T()): display(thing)"
    )
    cell = workspace.eval([code]).cells[0]
    assert cell.status == "ok", cell.text
    assert cell.json == [{"a": [1, 2]}]
    assert cell.events == [{"op": "ls", "count": 3}, {"op": "cd"}]
    assert "**seven**" in cell.text
    (image,) = cell.images
    assert image["mime"] == "image/png"
    part = workspace.artifact(image["artifact"])
    assert part.base64.startswith("iVBORw0KGgo")
    assert "iVBOR" not in cell.text


def test_what_a_terminal_would_obey_never_gets_into_the_text(workspace: Workspace) -> None:
    code = r"print('\x1b]52;c;aGk=\x07\x1b[2Jred \x1b[31mtext\x1b[0m \u202e')"
    text = workspace.eval([code]).cells[0].text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "red text" in text


def test_input_is_answered_from_a_list_and_refused_after_it(workspace: Workspace) -> None:
    cell = workspace.eval(["print(input('a') + input('b'))"], answers=["x", "y"]).cells[0]
    assert (cell.status, cell.text.strip()) == ("ok", "xy")
    cell = workspace.eval(["name = input('who? ')"]).cells[0]
    assert cell.status == "error"
    assert "[stdin] Kernel requested input. Interactive stdin is not supported" in cell.text
    assert cell.notes == ["Kernel requested stdin; interactive input is not supported."]


def test_code_is_told_where_it_is_under_all_names(workspace: Workspace, folder: Path) -> None:
    code = (
        "import os, json\n"
        "names = ['CELLWRIGHT_SESSION_FILE', 'PI_SESSION_FILE', 'CELLWRIGHT_ARTIFACTS_DIR',"
        " 'PI_ARTIFACTS_DIR', 'ARTIFACTS']\n"
        "print(json.dumps({n: os.environ.get(n) for n in names}))\n"
        "print(json.dumps(json.load(open(os.environ['PI_SESSION_FILE']))))\n"
        "import sys; print(json.dumps([os.getcwd(), sys.path[0]]))"
    )
    lines = workspace.eval([code], session="mine").cells[0].text.splitlines()
    variables, facts, place = map(json.loads, lines)
    assert len(set(variables.values())) == 2
    assert None not in variables.values()
    assert not is_stale(facts.pop("owner"))
    assert facts == {"session": "mine", "notebook": None, "root": str(folder), "mode": "agent"}
    assert place[0] == str(folder)
    assert place[1] in ("", str(folder))


def test_keys_are_withheld_and_the_answer_names_the_one_that_was_missed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DATABASE_PASSWORD", "needed")
    code = "import os; print(os.environ['DATABASE_PASSWORD']); os.environ['OPENAI_API_KEY']"
    cell = workspace.eval([code]).cells[0]
    assert cell.error.ename == "KeyError"
    assert cell.text.startswith("needed\n")
    assert "CELLWRIGHT_PASS_VARIABLES=OPENAI_API_KEY" in cell.notes[0]
    assert "sk-secret" not in json.dumps(cell.to_json())

    monkeypatch.setenv("CELLWRIGHT_PASS_VARIABLES", "OPENAI_API_KEY")
    with Workspace() as told:
        cell = told.eval(["import os; print(os.environ['OPENAI_API_KEY'])"]).cells[0]
    assert cell.text == "sk-secret\n"


def test_progress_is_told_as_it_goes(workspace: Workspace) -> None:
    found: list[dict[str, Any]] = []
    workspace.eval(["print('a')", "1 / 0", "3"], progress=found.append)
    told = [(report["cell"], report["status"]) for report in found if "status" in report]
    assert told == [(0, "running"), (0, "ok"), (1, "running"), (1, "error")]
    said = [report["text"] for report in found if report.get("cell") == 0 and "text" in report]
    assert "".join(said) == "a\n"


def test_a_session_can_be_looked_at_interrupted_restarted_and_ended(workspace: Workspace) -> None:
    workspace.eval(["number = 7; words = ['a', 'b']"], session="s")
    variables = workspace.kernel("variables", "s").variables
    assert {row.name: (row.type, row.size) for row in variables} == {
        "number": ("int", None),
        "words": ("list", "2"),
    }
    answers: list[dict[str, Any]] = []
    thread = threading.Thread(
        target=lambda: answers.append(
            workspace.eval(["import time; time.sleep(60)"], session="s", timeout=0)
        )
    )
    thread.start()
    while not workspace.kernel("interrupt", "s").interrupted:
        time.sleep(0.05)
    thread.join()
    assert statuses(answers[0]) == ["cancelled"]
    assert workspace.kernel("restart", "s").state == "idle"
    assert statuses(workspace.eval(["number"], session="s")) == ["error"]
    assert workspace.kernel("shutdown", "s").state == "closed"
    with pytest.raises(SessionNotFound):
        workspace.kernel("status", "s")


def test_a_jupyter_kernel_can_be_asked_for_and_is_then_what_the_session_has(
    workspace: Workspace,
) -> None:
    code = "get_ipython().__class__.__name__"
    answer = workspace.eval([code], kernel="python3", session="j")
    assert texts(answer) == ["'ZMQInteractiveShell'\n"]
    assert texts(workspace.eval([code], session="j")) == ["'ZMQInteractiveShell'\n"]
    with pytest.raises(KernelCannot, match="Kernel `python3` cannot stand in for runner"):
        workspace.eval(["1"], session="j", runner=True)
    assert texts(workspace.eval([{"code": "1", "reset": True}], session="j")) == ["1\n"]


def test_what_cannot_be_is_refused_by_name(workspace: Workspace) -> None:
    with pytest.raises(KernelMissing, match="klingon"):
        workspace.eval([{"code": "1", "language": "klingon"}])
    with pytest.raises(KernelMissing, match="no-such-kernel"):
        workspace.eval(["1"], kernel="no-such-kernel")
    assert workspace.sessions() == []  # what could not start is not in the way
    assert texts(workspace.eval(["1"])) == ["1\n"]
    with pytest.raises(InvalidEdit, match="a timeout of 99999 s"):
        workspace.eval(["1"], timeout=99999)
    for cell in ({"title": "no code"}, {"code": 1}, {"code": "1", "colour": "red"}):
        with pytest.raises(InvalidEdit, match="Edit 0"):
            workspace.eval([cell])
    with pytest.raises(InvalidEdit, match="Unknown action"):
        workspace.kernel("explode", "default")


def test_a_reader_may_look_and_not_run(folder: Path) -> None:
    with Workspace(folder, mode="ask") as reader:
        with pytest.raises(ModeForbids):
            reader.eval(["1"])
        with pytest.raises(ModeForbids):
            reader.kernel("restart", "default")
        assert reader.sessions() == []
        assert reader.kernel_specs()


def test_nothing_is_left_when_the_workspace_closes(folder: Path, places: Path) -> None:
    with Workspace(folder) as workspace:
        code = (
            "import os, subprocess; p = subprocess.Popen(['sleep', '999'], start_new_session=True)\n"
            "print(os.getpid(), p.pid)"
        )
        pids = texts(workspace.eval([code]))[0].split()
        assert list(places.rglob("session-*.json"))
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert not list(places.rglob("session-*.json"))


def test_each_cell_names_its_language(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder / "jupyter" / "kernels" / "tongue"
    place.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Tongue", "language": "tongue"}
    (place / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(folder / "jupyter"))
    cells = [
        {"code": "x = 'of the runner'", "language": "py"},
        {"code": "x = 'of the kernel'", "language": "tongue"},
        {"code": "x", "language": "py"},
        {"code": "x", "language": "Tongue"},
    ]
    answer = workspace.eval(cells)
    assert texts(answer) == ["", "", "'of the runner'\n", "'of the kernel'\n"]
    assert {row.session for row in workspace.sessions()} == {"default", "default:tongue"}
