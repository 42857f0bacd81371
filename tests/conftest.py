"""What every test gets: places of its own, an honest word about missing tools, hypothesis."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from tests.report import Recorder, runs_all

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RUN_ALL = runs_all()


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in the background deaf to Ctrl-C, and all its children with it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(0o022)  # files that anyone may write are not trusted, those of tests neither
    # What a machine for builds sets for itself; users' streams have buffers.
    os.environ.pop("PYTHONUNBUFFERED", None)
    config.pluginmanager.register(Recorder(), "cellwright-report")


# --- Hypothesis ----------------------------------------------------------------------------------

set_hypothesis_home_dir(ROOT / ".dev" / "hypothesis")
hypothesis.settings.register_profile(
    "ci",
    deadline=None,
    derandomize=False,  # hypothesis itself would turn it on where CI is set
    max_examples=30,
    print_blob=True,
    # Two busy cores make any generator look slow.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# Others in every run, so many runs are worth more than a long one.
hypothesis.settings.register_profile(
    "all", hypothesis.settings.get_profile("ci"), max_examples=1000
)
hypothesis.settings.load_profile("all" if RUN_ALL else "ci")

# --- What a test may need ------------------------------------------------------------------------


def require_tool(name: str) -> str:
    """Give the path of a program; without it skip the test by name, or fail it when `CI` is set."""
    __tracebackhide__ = True
    path = shutil.which(name)
    if path is None:
        problem = f"needs {name}, which is not installed"
        if _is_ci():
            pytest.fail(problem, pytrace=False)
        pytest.skip(problem)
    return path


def require_root() -> None:
    """Skip the test by name for anyone but root."""
    __tracebackhide__ = True
    if os.geteuid() != 0:
        pytest.skip("needs root")


def _is_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false"}


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("strace"):
        require_tool("strace")
    if item.get_closest_marker("root"):
        require_root()


# --- Places --------------------------------------------------------------------------------------

PLACES = {
    "HOME": "home",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_RUNTIME_DIR": "run",
    "XDG_STATE_HOME": "state",
}


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Coroutines run on asyncio: the event loop of pyzmq and of Jupyter."""
    return "asyncio"


@pytest.fixture(scope="session")
def _short_folder() -> Iterator[Path]:
    # Not in `tmp_path`: a socket's path may have some 107 bytes, and a test that lists its
    # `tmp_path` wants to find there what it made and nothing else.
    with tempfile.TemporaryDirectory(prefix="cw", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture(scope="session")
def _unused_places() -> list[Path]:
    return []


@pytest.fixture(autouse=True)
def places(
    _short_folder: Path, _numbers: Iterator[int], _unused_places: list[Path]
) -> Iterator[Path]:
    """Give the test a home and runtime, state, config and cache folders that are its alone.

    No `CELLWRIGHT_*` variable of the caller reaches it.
    """
    if _unused_places:
        folder = _unused_places.pop()
    else:
        folder = _short_folder / str(next(_numbers))
        folder.mkdir(mode=0o700)
        for name in PLACES.values():
            (folder / name).mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        for variable in [name for name in os.environ if name.startswith("CELLWRIGHT_")]:
            patch.delenv(variable)
        for variable, name in PLACES.items():
            patch.setenv(variable, str(folder / name))
        # Commands of tests work in their own process, unless a test is about the engine.
        patch.setenv("CELLWRIGHT_ENGINE", "never")
        # The spare is a second kernel for every first one; tests about it turn it on.
        patch.setenv("CELLWRIGHT_SPARE_KERNEL", "false")
        # The keys of whoever runs the tests are none of their business.
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        yield folder
    if _are_untouched(folder):  # most tests need none
        _unused_places.append(folder)
    else:  # now, and not all of them at the end: thousands of tests have left some by then
        shutil.rmtree(folder, ignore_errors=True)


def _are_untouched(folder: Path) -> bool:
    try:
        if {place.name for place in folder.iterdir()} != set(PLACES.values()):
            return False
        return all(
            stat.S_IMODE(place.lstat().st_mode) == 0o700 and not any(place.iterdir())
            for place in map(folder.joinpath, PLACES.values())
        )
    except OSError:  # gone, or no folder any more
        return False
