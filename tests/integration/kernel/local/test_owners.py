"""No kernel, nor a descendant of one, outlives its owner, whichever way that one goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.local import LocalKernel, sweep_leftovers
from tests.conftest import ROOT
from tests.integration.kernel.local.conftest import launch, leftovers, run, verdict
from tests.integration.kernel.processes import is_running, wait_until, with_mark

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = Path(__file__).with_name("owner_program.py")
WITHIN = 5.0
NOBODY = 65534

ROUTES = {
    # What the owner does, and who is killed with which signal.
    "owner killed": ("wait", ["owner"], signal.SIGKILL),
    "keeper killed": ("wait", ["keeper"], signal.SIGKILL),
    "both killed": ("wait", ["owner", "keeper"], signal.SIGKILL),
    "kernel killed": ("wait", ["kernel"], signal.SIGKILL),
    "loop closed": ("close", [], signal.SIGKILL),
    "shut down": ("shutdown", [], signal.SIGKILL),
    "exception": ("raise", [], signal.SIGKILL),
    "owner terminated": ("wait", ["owner"], signal.SIGTERM),
    "owner interrupted": ("wait", ["owner"], signal.SIGINT),
    "restarted": ("restart", [], signal.SIGKILL),
}
QUICK = list(ROUTES)[:6]


def _leave(route: str, *, python: str = sys.executable, **more: Any) -> None:
    """Let an owner go by one route, and check that nothing of its kernel stays."""
    action, victims, number = ROUTES[route]
    owner = subprocess.Popen(
        [python, str(PROGRAM), action],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        **{"env": {**os.environ, "PYTHONPATH": str(ROOT)}, **more},
    )
    assert owner.stdout is not None
    facts: Mapping[str, Any] = {}
    try:
        line = owner.stdout.readline()
        assert line, f"the owner did not start: {owner.wait()}"
        facts = json.loads(line)
        for victim in victims:
            os.kill(facts[victim], number)
        if action == "restart":
            assert owner.stdout.readline()
        if "keeper" in victims and "owner" in victims:
            # The kernel itself goes at once; the rest is found by the next owner.
            assert wait_until(lambda: not is_running(facts["kernel"]), WITHIN)
            owner.wait()  # it may still be on its way out
            sweep_leftovers()
        assert wait_until(lambda: not with_mark(facts["mark"]), WITHIN)
        assert wait_until(lambda: not is_running(facts["keeper"]), WITHIN)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
        assert facts, route
        # If the test failed, or was a restart, something is still there.
        wait_until(lambda: not with_mark(facts["mark"]), WITHIN)


@pytest.mark.parametrize("route", QUICK)
def test_nothing_is_left(route: str) -> None:
    _leave(route)


def test_the_next_owner_removes_the_files_of_one_that_was_killed(places: Path) -> None:
    _leave("owner killed")
    assert leftovers(places)

    sweep_leftovers()

    assert not leftovers(places)


async def test_the_files_of_an_owner_that_lives_are_left_alone(places: Path) -> None:
    kernel = LocalKernel(launch())
    await kernel.start()

    sweep_leftovers()

    assert leftovers(places)
    assert verdict(await run(kernel, "1")).status == "ok"
    await kernel.shutdown(now=True)
    assert not leftovers(places)


@pytest.mark.all
@pytest.mark.timeout(300)
@pytest.mark.parametrize("route", ROUTES)
def test_nothing_is_left_time_and_again(route: str) -> None:
    for _ in range(5):
        _leave(route)


@pytest.mark.root
@pytest.mark.parametrize("route", ["owner killed", "keeper killed"])
def test_nothing_is_left_of_an_ordinary_users_kernel(route: str, places: Path) -> None:
    python, paths = _python_for_others()
    for folder in (places.parent, places):
        folder.chmod(0o711)
    for folder in places.iterdir():
        os.chown(folder, NOBODY, NOBODY)
    spec = places / "jupyter" / "kernels" / "theirs"
    spec.mkdir(parents=True)
    command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": command, "language": "python"}))
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "JUPYTER_PATH": str(places / "jupyter"),
        "OWNER_KERNEL": "theirs",
    }

    _leave(route, python=python, env=env, user=NOBODY, group=NOBODY, extra_groups=[])


def _python_for_others() -> tuple[str, list[str]]:
    """An interpreter like ours that an ordinary user may run, and where our packages are."""
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    paths = [str(ROOT), str(ROOT / "src"), *(path for path in sys.path if "site-packages" in path)]
    for candidate in (sys.executable, f"/usr/bin/python{wanted}"):
        try:
            subprocess.run(
                [candidate, "-c", "import zmq, ipykernel, cellwright"],
                env={"PYTHONPATH": os.pathsep.join(paths)},
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate, paths
    pytest.skip(f"needs a Python {wanted} that an ordinary user may run")
