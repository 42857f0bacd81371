"""The engine as a process: one at a time, found, private, and gone when nobody needs it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.config.directories import runtime_directory
from cellwright.engine import client as client_module
from cellwright.engine import location, wire
from cellwright.engine.client import EngineConnection
from cellwright.engine.launch import connect_or_start, try_connect
from cellwright.errors import EngineDraining, EngineLost, EngineUnavailable
from cellwright.workspace.api.requests import ReadRequest
from tests.engines import (
    Engine,
    ask,
    end,
    engine_of_its_own,
    greeting,
    is_alive,
    wait_for,
)
from tests.unit.cli import samples
from tests.unit.cli.calling import call, command, process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CELLWRIGHT_SPARE_KERNEL")  # it ends with its engine, too
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with engine_of_its_own(monkeypatch) as engine:
        yield engine


@pytest.fixture
def no_engine_yet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with engine_of_its_own(monkeypatch, started=False) as engine:
        yield engine


def log() -> str:
    return Path(location.log_path()).read_text(encoding="utf-8")


# --- Only one ------------------------------------------------------------------------------------


def test_of_twenty_that_start_it_at_once_all_get_the_same(no_engine_yet: Engine) -> None:
    code = (
        "from cellwright.engine import connect\n"
        "import sys; sys.stdin.read(1)\n"
        "print(connect().api.call_engine('status')['pid'])"
    )
    words = [sys.executable, "-c", code]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    starters = [subprocess.Popen(words, **pipes) for _ in range(20)]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("g")
        starter.stdin.flush()
    pids = {starter.communicate()[0].strip() for starter in starters}
    assert pids == {str(no_engine_yet.pid)}
    assert log().count("listening on") == 1


def test_two_at_the_same_place_are_one(engine: Engine) -> None:
    """Started by hand, past the lock of whoever starts it: its own is what counts."""
    words = [sys.executable, "-m", "cellwright.engine"]
    assert subprocess.run(words, check=True, timeout=60).returncode == 0
    assert log().count("listening on") == 1
    assert is_alive(engine.pid)


def is_refused() -> bool:
    connected = try_connect()
    if connected is not None:
        connected.close()
    return connected is None


def test_the_socket_of_a_dead_one_is_no_obstacle(engine: Engine) -> None:
    first = engine.pid
    os.kill(first, signal.SIGKILL)
    end(first)
    assert Path(location.socket_path()).exists()
    # A child that it was just starting has the socket, too, until it is a program of its own.
    wait_for(is_refused, "the last that holds its socket", 30)
    assert process("engine", "status").text == "No engine is running\n"
    assert process("eval", "1 + 1").text == "2\n"
    assert engine.pid != first


# --- Private -------------------------------------------------------------------------------------


def test_only_its_user_can_reach_it(engine: Engine) -> None:
    assert engine.pid
    path = Path(location.socket_path())
    assert path.is_relative_to(runtime_directory())
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert len(path.name) < 40
    assert Path(location.log_path()).stat().st_mode & 0o777 == 0o600


@pytest.mark.root
def test_another_user_is_refused_by_the_engine_and_refuses_one_of_another(
    engine: Engine, places: Path
) -> None:
    path, folders = location.socket_path(), (places / "run", Path(runtime_directory()))
    Path(path).chmod(0o777)
    for folder in (places.parent, places, *folders):
        folder.chmod(0o755)  # as if they did not keep them out
    code = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1])\n"
        "try:\n"
        '    s.sendall(b\'{"id": 1, "method": "status"}\\n\')\n'
        "    print(s.recv(100))\n"
        "except ConnectionError: print(b'')"
    )
    words = [sys.executable, "-c", code, path]
    try:
        assert subprocess.run(words, check=True, capture_output=True).stdout == b"b''\n"
        wait_for(lambda: "refused a client of another user" in log(), "a word in the log")
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert engine.pid

    # And the other way round: a socket of somebody else is not taken for the engine's.
    trap = places / "trap"
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)
    code = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('on', flush=True)\n"
        "s.accept()[0].recv(1)"
    )
    words = [sys.executable, "-c", code, str(trap / "s")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == b"on\n"
        assert try_connect(str(trap / "s")) is None
        assert stranger.wait(20) == 0


def test_a_runtime_directory_that_others_can_enter_is_not_used_and_that_is_said(
    no_engine_yet: Engine, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del no_engine_yet
    run = places / "open"
    run.mkdir()
    run.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("CELLWRIGHT_RUNTIME_DIR", str(run))
        answer = process("eval", "1 + 1")
    # Nothing works without a folder for locks; but nothing is done in one that is not safe.
    assert answer.code == 2
    assert "0755" in answer.err
    assert "working in this process alone" in answer.err
    assert list(run.iterdir()) == []


# --- No pipe of the caller's ---------------------------------------------------------------------


def test_it_keeps_no_pipe_open(no_engine_yet: Engine) -> None:
    began = time.monotonic()
    script = f'x=$({sys.executable} -m cellwright eval "6 * 7"); echo "<$x>"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"<42>\n"
    pid = no_engine_yet.pid
    script = f"{sys.executable} -m cellwright run nb.ipynb load 2>&1 | cat; exec 7>&1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stdout.startswith(b"42\n")
    assert time.monotonic() - began < 60
    assert no_engine_yet.pid == pid
    status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert int(status[3]) != os.getsid(0)  # a session of its own
    assert str(Path(f"/proc/{pid}/cwd").readlink()) == "/"
    assert str(Path(f"/proc/{pid}/fd/0").readlink()) == "/dev/null"
    assert str(Path(f"/proc/{pid}/fd/1").readlink()) == "/dev/null"


def test_descriptors_of_whoever_starts_it_do_not_go_along(no_engine_yet: Engine) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        subprocess.run(command("engine", "start"), check=True, close_fds=False, timeout=60)
        assert is_alive(no_engine_yet.pid)
    finally:
        os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        os.set_blocking(reading, False)
        assert pipe.read() == b""  # its end; while anybody had it, this would be None


# --- When there is none --------------------------------------------------------------------------


def test_where_ci_is_set_none_is_started_unless_asked_but_one_that_runs_is_used(
    no_engine_yet: Engine,
) -> None:
    assert process("eval", "-s", "a", "x = 1", CI="true", CELLWRIGHT_ENGINE="auto").code == 0
    assert try_connect() is None
    assert process("eval", "-s", "a", "x = 1", CI="true").code == 0  # `always`
    assert no_engine_yet.pid
    answer = process("eval", "-s", "a", "x", CI="true", CELLWRIGHT_ENGINE="auto")
    assert answer.text == "1\n"
    assert process("--no-engine", "eval", "-s", "a", "x").code == 1
    assert process("eval", "-s", "a", "x", CELLWRIGHT_ENGINE="never").code == 1


def test_commands_that_need_no_kernel_start_none(no_engine_yet: Engine) -> None:
    del no_engine_yet
    for words in (("read", "nb.ipynb"), ("runs",), ("sessions",), ("engine", "status")):
        assert process(*words).code == 0
    assert try_connect() is None


@pytest.mark.parametrize("as_json", [False, True])
def test_where_a_socket_is_impossible_it_works_in_process_and_says_so(
    as_json: bool, no_engine_yet: Engine, places: Path
) -> None:
    del no_engine_yet
    # A folder where the socket should be: it cannot be removed, and nothing bound there.
    Path(location.socket_path()).mkdir()
    words = ["--json"] if as_json else []
    answer = process("eval", "1 + 1", *words)
    assert answer.code == 0
    assert answer.text == "2\n" if not as_json else json.loads(answer.text)["ok"]
    assert "working in this process alone" in answer.err
    Path(location.socket_path()).rmdir()
    assert places.exists()


def test_an_engine_that_cannot_start_says_why(
    no_engine_yet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del no_engine_yet
    with monkeypatch.context() as patch:
        patch.setenv("CELLWRIGHT_EVAL_SESSIONS_KEPT", "many")
        with pytest.raises(EngineUnavailable, match=r"(?i)eval_sessions_kept"):
            connect_or_start()
    assert "eval_sessions_kept" in log().lower()


# --- When it leaves ------------------------------------------------------------------------------


def test_it_leaves_when_idle_and_not_before(
    no_engine_yet: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELLWRIGHT_ENGINE_IDLE_TIMEOUT", "1")
    client = EngineConnection(connect_or_start(), greeting)
    pid = no_engine_yet.pid
    # It must not leave while somebody is there, even if a command has ended meanwhile.
    assert process("eval", "--per-call", "1").text == "1\n"
    began = no_engine_yet.status()["seconds"]
    wait_for(lambda: no_engine_yet.status()["seconds"] > began + 1.5, "time to pass")
    client.close()
    end(pid)
    assert not Path(location.socket_path()).exists()
    assert "leaving: idle" in log()


def test_stop_ends_it_with_all_kernels(engine: Engine) -> None:
    kernel = int(process("eval", "import os; os.getpid()").text)
    pid = engine.pid
    assert is_alive(kernel)
    answer = process("engine", "stop", "--json").data
    assert answer == {"stopped": True, "pid": pid, "pids": [pid]}
    assert not is_alive(pid)
    wait_for(lambda: not is_alive(kernel), "the end of the kernel", 30)
    assert process("engine", "stop", "--json").data == {"stopped": False, "pid": None, "pids": []}
    assert not Path(location.socket_path()).exists()


def test_a_signal_ends_it_with_all_kernels_and_a_cell_keeps_what_it_said(
    engine: Engine, folder: Path
) -> None:
    source = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    assert process("edit", "nb.ipynb", "replace", "load", source).code == 0
    with subprocess.Popen(command("run", "nb.ipynb", "load"), stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        kernel = int(client.stdout.readline())
        os.kill(engine.pid, signal.SIGTERM)
        assert client.wait(30) == 130
    wait_for(lambda: not is_alive(kernel), "the end of the kernel", 30)
    assert str(kernel) in (folder / "nb.ipynb").read_text()


def test_killed_it_leaves_no_kernel_and_the_next_is_as_good(engine: Engine) -> None:
    code = "import os, subprocess; p = subprocess.Popen(['sleep', '999'], start_new_session=True)\n"
    code += "print(os.getpid(), p.pid)"
    pids = [int(pid) for pid in process("eval", code).text.split()]
    assert process("run", "nb.ipynb", "load").code == 0
    kernel = next(s["pid"] for s in engine.status()["sessions"] if s["kind"] == "notebook")
    first = engine.pid
    os.kill(first, signal.SIGKILL)
    for pid in (*pids, kernel):
        wait_for(lambda pid=pid: not is_alive(pid), "the end of a kernel", 30)
    assert process("run", "nb.ipynb", "sum").code == 1  # in a new kernel: NameError
    assert process("run", "nb.ipynb", "load", "sum").code == 0
    assert engine.pid != first


def test_the_next_one_removes_what_a_killed_one_left(engine: Engine) -> None:
    assert process("eval", "1").code == 0
    assert list(Path(runtime_directory()).glob("session-*.json"))
    first = engine.pid
    os.kill(first, signal.SIGKILL)
    end(first)
    wait_for(is_refused, "the last that holds its socket", 30)
    assert process("engine", "start").code == 0
    left = Path(runtime_directory())
    wait_for(lambda: not [*left.glob("session-*"), *left.glob("k-*")], "the sweep", 30)


# --- Another version -----------------------------------------------------------------------------


def newer_greeting() -> dict[str, Any]:
    return greeting(wire=wire.VERSION + 1)


def test_a_newer_client_makes_it_drain_and_another_can_start_meanwhile(engine: Engine) -> None:
    assert process("eval", "-s", "old", "x = 1").code == 0
    old = engine.pid
    connected, newer = try_connect(), try_connect()
    assert connected is not None
    assert newer is not None
    here = EngineConnection(connected, greeting)
    with pytest.raises(EngineDraining):
        EngineConnection(newer, newer_greeting)
    # Who is connected keeps the sessions there are.
    with pytest.raises(EngineDraining):
        here.call("eval", {"cells": ["1"], "session": "new"})
    found = here.call("eval", {"cells": ["x"], "session": "old"})
    assert found["cells"][0]["text"] == "1\n"
    # Whoever comes now gets a new one.
    wait_for(lambda: try_connect() is None, "room")
    assert process("eval", "2").text == "2\n"
    assert engine.pid != old
    told = process("engine", "status", "--json").data
    assert [other["pid"] for other in told["making_room"]] == [old]
    assert told["making_room"][0]["draining"]
    assert is_alive(old)
    # It leaves when it is empty.
    here.call("kernel", {"action": "shutdown", "session": "old"})
    here.close()
    end(old)
    assert process("engine", "status", "--json").data["making_room"] == []
    assert location.draining_paths() == []


def test_stop_ends_also_those_that_drain(engine: Engine) -> None:
    assert process("eval", "-s", "old", "x = 1").code == 0
    old = engine.pid
    newer = try_connect()
    assert newer is not None
    with pytest.raises(EngineDraining):
        EngineConnection(newer, newer_greeting)

    def is_gone() -> bool:
        found = try_connect()
        if found is not None:
            found.close()
        return found is None

    wait_for(is_gone, "room")
    assert process("engine", "stop", "--json").data["pids"] == [old]
    assert not is_alive(old)


# --- Always to be reached or ended ---------------------------------------------------------------


def delete_socket() -> None:
    Path(location.socket_path()).unlink()


def delete_socket_and_lock() -> None:
    delete_socket()
    Path(location.lock_path()).unlink()


def delete_folder() -> None:
    shutil.rmtree(runtime_directory())


def replace_socket() -> None:
    delete_socket()
    Path(location.socket_path()).write_text("a file")


@pytest.mark.parametrize(
    "delete",
    [
        pytest.param(delete_socket, marks=pytest.mark.all),
        pytest.param(delete_socket_and_lock, marks=pytest.mark.all),
        replace_socket,
        delete_folder,
    ],
)
def test_one_whose_place_was_deleted_is_found_again_with_its_kernels(
    no_engine_yet: Engine, delete: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = no_engine_yet
    # A kernel that starts at this moment makes the folder of its connection file again, and so
    # the folder above, for others to enter: that is refused.
    monkeypatch.setenv("CELLWRIGHT_SPARE_KERNEL", "false")
    assert process("run", "nb.ipynb", "load").code == 0
    first = engine.pid
    delete()
    assert process("eval", "2").text == "2\n"  # at once: it waits for the first, and starts none
    assert engine.pid == first
    assert process("run", "nb.ipynb", "sum").code == 0  # the kernel has its variables
    refused = process("--no-engine", "run", "nb.ipynb", "load", "--json")
    assert json.loads(refused.text)["error"]["code"] == "OWNED_ELSEWHERE"
    assert process("engine", "stop", "--json").data["pids"] == [first]
    assert not is_alive(first)


def test_one_that_cannot_be_found_again_can_be_ended(no_engine_yet: Engine) -> None:
    assert process("eval", "-s", "old", "x = 1").code == 0
    first = no_engine_yet.pid
    delete_socket()
    Path(location.socket_path()).mkdir()  # it cannot listen there again
    wait_for(location.draining_paths, "another place")
    assert process("engine", "stop", "--json").data["pids"] == [first]
    assert not is_alive(first)
    assert location.draining_paths() == []


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE", 0.5)


@pytest.fixture
def frozen(engine: Engine, _impatient: None) -> Iterator[int]:
    pid = engine.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)


def test_of_one_that_is_frozen_every_command_says_so_and_reads_go_on(frozen: int) -> None:
    answer = call("read", "nb.ipynb")
    assert answer.code == 0
    assert "did not answer" in answer.err
    assert "working in this process alone" in answer.err
    answer = call("engine", "status", "--json")
    assert json.loads(answer.text)["error"]["code"] == "ENGINE_UNAVAILABLE"
    assert str(frozen) in answer.text


def test_a_connection_that_has_nothing_to_say_is_used_again(engine: Engine) -> None:
    connected = try_connect()
    assert connected is not None
    client = EngineConnection(connected, greeting)
    client.call("status", {})
    assert client.is_usable
    assert engine.status()["clients"] == ["test:ada#1"]
    client.close()
    assert not client.is_usable


@pytest.mark.usefixtures("_impatient")
def test_a_call_that_is_under_way_when_it_freezes_ends(engine: Engine) -> None:
    connected = try_connect()
    assert connected is not None
    client = EngineConnection(connected, greeting)
    pid = engine.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(EngineLost):
            client.perform(ReadRequest("nb.ipynb"))
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.usefixtures("_impatient")
def test_stop_ends_one_that_is_frozen_with_all_kernels(engine: Engine) -> None:
    kernel = int(process("eval", "import os; os.getpid()").text)
    pid = engine.pid
    os.kill(pid, signal.SIGSTOP)
    assert call("engine", "stop", "--json").data["pids"] == [pid]
    assert not is_alive(pid)
    assert not is_alive(kernel)


@pytest.mark.usefixtures("_impatient")
def test_one_without_descriptors_is_not_waited_for_and_can_be_stopped(engine: Engine) -> None:
    pid = engine.pid
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64))
    idle = [socket.socket(socket.AF_UNIX) for _ in range(80)]
    try:
        for each in idle:
            each.connect(location.socket_path())
        assert call("read", "nb.ipynb").code == 0
        assert call("engine", "stop", "--json").data["pids"] == [pid]
        assert not is_alive(pid)
    finally:
        for each in idle:
            each.close()


# --- Bounds --------------------------------------------------------------------------------------


def test_its_log_is_bounded(engine: Engine) -> None:
    connected = try_connect()
    assert connected is not None
    client = EngineConnection(connected, None)
    # Every one of these leaves two lines, most of them the actor's name.
    for _ in range(700):
        words = greeting(actor="a" * 2000, environ={})
        other = socket.socket(socket.AF_UNIX)
        other.connect(location.socket_path())
        EngineConnection(other, lambda words=words: words).close()
    client.close()
    path = Path(location.log_path())
    sizes = [each.stat().st_size for each in path.parent.glob("engine.log*")]
    assert len(sizes) == 2
    assert max(sizes) < 1.1 * 2**20
    assert len(process("engine", "logs", "-n", "5").text.splitlines()) == 5
    # What Python complains about goes to the new file too.
    assert str(Path(f"/proc/{engine.pid}/fd/2").readlink()) == str(path)


def test_status_tells_who_it_is(engine: Engine) -> None:
    told = process("engine", "status", "--json").data
    assert told["pid"] == engine.pid
    assert told["socket"] == location.socket_path()
    assert (told["sessions"], told["runs"], told["draining"]) == ([], [], None)
    assert told["running"] is True
    assert ask("status")["wire"] == wire.VERSION
