"""Other users of the machine, with real user ids: their files, their connections, their names.

Only root can act as two other users. `ada` works with Cellwright, and `eve` is in her way.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require_tool
from tests.integration.mcp.process import HELLO, LOOPBACK, served
from tests.integration.mcp.test_http import call, raw, request
from tests.unit.cli import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]

ADA, EVE = 61_001, 61_002
VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
# A program that says that it ran, and for whom.
TRAP = "#!/bin/sh\necho $0 $(id -u) >> {ran}\nexit 3\n"


class Shared:
    """A folder in which every user may make files, as in /tmp, and what its users run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # In a folder without the sticky bit, where Linux lets others write to a file of root's.
        self.ran = folder / "log" / "ran.txt"
        self.ran.parent.mkdir(0o755)
        self.ran.touch()
        self.ran.chmod(0o666)
        self.homes = {user: folder / f"home-{user}" for user in (ADA, EVE)}
        for user, home in self.homes.items():
            home.mkdir(0o700)
            os.chown(home, user, user)

    def make(self, user: int, path: Path, text: str | bytes = "", mode: int = 0o644) -> Path:
        """Make a file, and the folders to it that are missing, as those of a user."""
        for folder in reversed([each for each in path.parents if not each.exists()]):
            folder.mkdir(0o755)
            os.chown(folder, user, user)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        os.chown(path, user, user)
        return path

    def plant(self, user: int, folder: Path) -> None:
        """Make an environment and project files, with programs that say that they ran."""
        trap = TRAP.format(ran=self.ran)
        for name in ("bin/python", "bin/python3", "bin/cellwright"):
            self.make(user, folder / ".venv" / name, trap, 0o755)
        self.make(
            user, folder / ".venv/pyvenv.cfg", f"version = {VERSION.removeprefix('python')}.0\n"
        )
        for name in ("ipykernel_launcher.py", "sitecustomize.py"):
            code = f"open({str(self.ran)!r}, 'a').write('imported')"
            self.make(user, folder / ".venv/lib" / VERSION / "site-packages" / name, code)
        self.make(user, folder / "cellwright.toml", "lock_timeout = 97.5\n")

    def run(self, *words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run Cellwright as ada."""
        base = {"PATH": os.environ["PATH"], "HOME": str(self.homes[ADA])}
        ours = {"CELLWRIGHT_ENGINE": "never", "CELLWRIGHT_SPARE_KERNEL": "false"}
        return subprocess.run(
            [*become_ada(), sys.executable, "-P", "-m", "cellwright", *words],
            cwd=cwd,
            env={**base, **ours, "TMPDIR": str(self.folder), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@cache
def become_ada() -> tuple[str, ...]:
    """The command before the command that ada runs.

    If this Python is in a folder of root's own, she may read everything; whose a file is, and who
    may write it, is as for every user.
    """
    user = ("setpriv", f"--reuid={ADA}", f"--regid={ADA}", "--clear-groups")
    # In a child: the first program that is started after the change of the user says nothing.
    again = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', '']))"
    probe = [*user, sys.executable, "-c", again]
    if subprocess.run(probe, capture_output=True, cwd="/", check=False).returncode == 0:
        return user
    return (*user, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


def act_as_eve(code: str) -> subprocess.Popen[bytes]:
    """Start a process of eve's that has imported what it needs."""
    become = f"os.setgroups([]); os.setgid({EVE}); os.setuid({EVE})"
    words = [sys.executable, "-c", f"import os, socket, sys\n{become}\n{code}"]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def shared() -> Iterator[Shared]:
    require_tool("setpriv")
    # Not in the folder of pytest, which is root's alone.
    with tempfile.TemporaryDirectory(prefix="cw", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        folder.chmod(0o1777)
        yield Shared(folder)


# --- Environments and project files (found by climbing) ------------------------------------------


@pytest.mark.parametrize("whose", ["everyone's", "eve's", "root's"])
def test_what_another_user_puts_in_a_folder_above_ours_is_named_and_not_used(
    shared: Shared, whose: str
) -> None:
    above = shared.folder / "above"
    shared.make(EVE if whose == "eve's" else 0, above / "readme.txt")
    above.chmod(0o1777 if whose == "everyone's" else 0o755)
    project = above / "project"
    shared.make(ADA, project / "nb.ipynb", samples.write(samples.code("a", "print(6 * 7)")))
    shared.plant(EVE, above)

    listed = shared.run("kernel", "specs", "--json", cwd=project)
    ran = shared.run("run", "nb.ipynb", cwd=project)
    limit = shared.run("config", "lock_timeout", cwd=project)

    reason = "all users may write" if whose == "everyone's" else f"belongs to user {EVE}"
    for done, what in ((ran, ".venv"), (limit, "cellwright.toml")):
        assert done.returncode == 0, done.stderr
        assert f"{above}/{what}" in done.stderr
        assert reason in done.stderr
    assert "42" in ran.stdout
    assert "97.5" not in limit.stdout
    assert listed.returncode == 0, listed.stderr
    assert f"{above}/.venv" not in listed.stdout
    assert shared.ran.read_text() == ""


def test_nor_what_is_ours_in_a_folder_of_another_user(shared: Shared) -> None:
    theirs = shared.folder / "eve"
    shared.make(EVE, theirs / "readme.txt")
    theirs.chmod(0o777)
    shared.plant(ADA, theirs)  # eve can put hers in its place at any time
    shared.make(ADA, theirs / "nb.ipynb", samples.write(samples.code("a", "print(6 * 7)")))

    ran = shared.run("run", "nb.ipynb", cwd=theirs)
    limit = shared.run("config", "lock_timeout", cwd=theirs)

    assert (ran.returncode, "42" in ran.stdout) == (0, True), ran.stderr
    assert "97.5" not in limit.stdout
    assert shared.ran.read_text() == ""


def test_what_is_ours_or_roots_is_used(shared: Shared) -> None:
    """Else the tests above would pass if nothing were ever used."""
    for user in (ADA, 0):
        project = shared.folder / f"project-{user}"
        shared.make(user, project / "nb.ipynb", samples.write(samples.code("a", "1")))
        shared.plant(user, project)
        limit = shared.run("config", "lock_timeout", cwd=project)
        assert "97.5" in limit.stdout, limit.stderr
        shared.run("run", "nb.ipynb", cwd=project)
        assert str(ADA) in shared.ran.read_text()
        shared.ran.write_text("")


# --- The runtime folder ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what", ["folder", "link", *(pytest.param(x, marks=pytest.mark.all) for x in ("file", "fifo"))]
)
def test_a_runtime_folder_that_another_user_has_taken_is_replaced_by_one_that_all_find(
    shared: Shared, what: str
) -> None:
    taken = shared.folder / f"cellwright-{ADA}"
    makers = {
        "folder": lambda: taken.mkdir(0o777),
        "file": taken.touch,
        "link": lambda: taken.symlink_to(shared.homes[ADA]),
        "fifo": lambda: os.mkfifo(taken),
    }
    makers[what]()
    os.chown(taken, EVE, EVE, follow_symlinks=False)
    project = shared.folder / "project"
    shared.make(ADA, project / "nb.ipynb", samples.write(samples.code("a", "x = 6 * 7")))
    engine = {"CELLWRIGHT_ENGINE": "always"}
    try:
        first = shared.run("run", "nb.ipynb", cwd=project, **engine)
        assert first.returncode == 0, first.stderr
        # The next command finds the same engine, also when eve takes hers away meanwhile.
        taken.rmdir() if what == "folder" else taken.unlink()
        status = shared.run("engine", "status", "--json", cwd=project, **engine)
        facts = json.loads(status.stdout)["data"]
        assert len(facts["sessions"]) == 1, status.stdout
        second = Path(facts["socket"]).parent
        assert second.parent == shared.folder
        assert second != taken
        assert (second.stat().st_uid, second.stat().st_mode & 0o777) == (ADA, 0o700)
        assert not taken.exists()
        # Eve can neither enter it nor speak with the engine.
        code = (
            f"try: socket.socket(socket.AF_UNIX).connect({facts['socket']!r})\n"
            "except PermissionError: print('refused')"
        )
        with act_as_eve(code) as eve:
            assert eve.communicate(timeout=20) == (b"refused\n", None)
    finally:
        shared.run("engine", "stop", cwd=project, **engine)


# --- What is kept --------------------------------------------------------------------------------

SNOOP = """
def read(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''
for folder, _, names in os.walk({top!r}):
    for name in names:
        if b'SECRET' in read(f'{{folder}}/{{name}}'):
            print('read', name)
for pid in {{*filter(str.isdigit, os.listdir('/proc'))}} - {{str(os.getpid())}}:
    said = read(f'/proc/{{pid}}/cmdline') + read(f'/proc/{{pid}}/environ')
    if b'HOME={home}' in said or b'sk-SECRET' in said:
        print('process', pid)
"""


def test_another_user_reads_nothing_of_what_is_kept_and_nothing_is_left_when_forgotten(
    shared: Shared,
) -> None:
    """Sources, outputs, keys and history, with homes that all may enter, as on many machines."""
    project = shared.homes[ADA] / "project"
    cell = "print('OUTPUT' + 'SECRET' * 20_000)  # 'SOURCE' 'SECRET'"
    notebook = shared.make(ADA, project / "nb.ipynb", samples.write(samples.code("a", cell)), 0o600)
    shared.homes[ADA].chmod(0o755)
    engine = {"CELLWRIGHT_ENGINE": "always", "OPENAI_API_KEY": "sk-SECRET"}
    snoop = SNOOP.format(top=str(shared.folder), home=shared.homes[ADA])
    try:
        assert shared.run("run", "nb.ipynb", cwd=project, **engine).returncode == 0
        edit = ("edit", "nb.ipynb", "insert", "'SECRET'", "--run", "changed")
        assert shared.run(*edit, cwd=project, **engine).returncode == 0
        kept = [path for path in shared.folder.rglob("*") if path.is_file() and path != notebook]
        assert any(b"SECRET" in path.read_bytes() for path in kept), "there is something to read"
        with act_as_eve(snoop) as eve:
            assert eve.communicate(timeout=60) == (b"", None)
        assert notebook.stat().st_mode & 0o777 == 0o600
        # The same look by root finds it, so that it could have found something.
        as_root = subprocess.run(
            [sys.executable, "-c", f"import os\n{snoop}"], capture_output=True, check=True
        )
        assert b"read nb.ipynb" in as_root.stdout
        assert shared.run("forget", "--all", cwd=project, **engine).returncode == 0
        assert not [path for path in kept if path.exists() and b"SECRET" in path.read_bytes()]
    finally:
        shared.run("engine", "stop", cwd=project, **engine)


# --- Connections ----------------------------------------------------------------------------------


@contextlib.contextmanager
def silent_callers(port: int, number: int) -> Iterator[None]:
    """Connections of eve's that say nothing, or half a line."""
    code = f"""
silent = [socket.socket() for _ in range({number})]
for each in silent:
    each.connect(("{LOOPBACK}", {port}))
for each in silent[::2]:
    each.sendall(b"POST /mcp HTTP/1.1\\r\\nHost: ")
print("on", flush=True)
sys.stdin.read()
"""
    with act_as_eve(code) as eve:
        assert eve.stdout is not None
        assert eve.stdout.readline() == b"on\n"
        yield
        eve.communicate(timeout=20)


def test_half_open_connections_of_another_user_do_not_keep_a_client_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "nb.ipynb").write_bytes(samples.SALES)
    with served(root, f"{LOOPBACK}:0") as server, silent_callers(server.port, 300):
        for _ in range(3):
            status, _ = raw(server.port, request(server.headers(), call("initialize", HELLO)))
            assert status == 200
