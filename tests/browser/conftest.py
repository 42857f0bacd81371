"""A real JupyterLab with our extension, and pages of it in a real browser."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from cellwright import connect, read
from cellwright.errors import InvalidJson
from tests.conftest import PLACES, ROOT, require_tool
from tests.engines import engine_of_its_own, wait_for
from tests.integration.assistant.model_servers import served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from tests.integration.assistant.model_servers import ModelServer

LAB = ROOT / ".dev" / "lab" / "bin"
BUILT = ROOT / "src" / "cellwright" / "server" / "labextensions" / "cellwright-lab" / "package.json"
FIRST = "first day.ipynb"
# What JupyterLab or Python would run if it looked for them in the working folder.
PLANTED = ("click", "ipykernel", "jupyter_config", "jupyter_lab_config", "jupyter_server_config")
START = (str(LAB / "python"), "-P", "-m", "cellwright", "lab", "--no-browser")
PANEL = "window.jupyterapp.shell.currentWidget"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    chromium = require_tool("chromium")
    if not (LAB / "jupyter-lab").exists() or not BUILT.exists():
        pytest.fail("JupyterLab or our extension is missing; `./dev lab` makes both")
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield found
        found.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine in a thread of its own: Playwright's loop runs in this one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, pyfuncitem.obj(**wanted)).result()
    return True


class Server:
    """A JupyterLab server; notebooks are in `folder`."""

    def __init__(self, folder: Path, url: str, token: str, log: Path) -> None:
        self.folder = folder
        self.url = url
        self.token = token
        self.log = log

    def ask(self, what: str) -> Any:
        """Ask the server's own API."""
        request = Request(f"{self.url}{what}", headers={"Authorization": f"token {self.token}"})  # noqa: S310
        with urlopen(request, timeout=20) as answer:  # noqa: S310  # the server of this test
            return json.load(answer)

    def write(self, name: str, *sources: str, kernel: str = "python3") -> Path:
        """Write a notebook with these cells, named a, b, c …"""
        cells = [
            {
                "cell_type": "code",
                "id": chr(ord("a") + number),
                "metadata": {},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, source in enumerate(sources)
        ]
        spec = {"name": kernel, "display_name": "Python 3", "language": "python"}
        shape = {"cells": cells, "metadata": {"kernelspec": spec}, "nbformat": 4}
        path = self.folder / name
        path.write_text(json.dumps({**shape, "nbformat_minor": 5}, indent=1), encoding="utf-8")
        return path


@pytest.fixture(scope="session")
def server_places() -> Iterator[tuple[pytest.MonkeyPatch, Path]]:
    """Places of the server and its engine: tests have notebooks of their own."""
    folder = Path(tempfile.mkdtemp(prefix="cw"))
    with pytest.MonkeyPatch.context() as patch:
        for variable, name in PLACES.items():
            (folder / name).mkdir(mode=0o700)
            patch.setenv(variable, str(folder / name))
        for name in ("CONFIG", "DATA", "RUNTIME"):
            patch.setenv(f"JUPYTER_{name}_DIR", str(folder / f"jupyter-{name.lower()}"))
        for name in ("SETTINGS", "WORKSPACES"):
            patch.setenv(f"JUPYTERLAB_{name}_DIR", str(folder / f"lab-{name.lower()}"))
        with engine_of_its_own(patch):
            yield patch, folder
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def start_server(notebooks: Path, *command: str, like: Server | None = None) -> Iterator[Server]:
    """Start a Jupyter server under a base URL that is not the root, as behind JupyterHub.

    One that is `like` another has its address and its token: the same server, started again.
    """
    token, log = like.token if like else secrets.token_hex(8), notebooks.with_suffix(".log")
    port = like.url.split(":")[2].split("/")[0] if like else "0"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CELLWR")}
    options = [
        *("--allow-root", "--ip=127.0.0.1", f"--port={port}", "--expose-app-in-browser"),
        f"--IdentityProvider.token={token}",
        "--ServerApp.base_url=/user/ada/",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *options],
            cwd=notebooks,
            env=environ,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )

    def find_address() -> str | None:
        assert process.poll() is None, log.read_text()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/user/ada/", log.read_text())
        if found is None:
            return None
        # It says where it will be before it is there.
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", int(found[1])), 1).close()
            return found[0]
        return None

    try:
        yield Server(notebooks, wait_for(find_address, "the Jupyter server", 60), token, log)
    finally:
        end_server(process)


def end_server(process: subprocess.Popen[Any]) -> None:
    """End a Jupyter server; one that reads a file for a page at that moment waits for ever."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


@pytest.fixture(scope="session")
def model_server(server_places: tuple[pytest.MonkeyPatch, Path]) -> Iterator[ModelServer]:
    """A server of models, which the assistant reaches as that of OpenAI, without a key."""
    patch, _ = server_places
    with served("openai", []) as server:
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@pytest.fixture
def model(model_server: ModelServer) -> ModelServer:
    """The same, as if this test were its first."""
    model_server.forget()
    return model_server


@pytest.fixture(scope="session")
def server(
    server_places: tuple[pytest.MonkeyPatch, Path], model_server: ModelServer
) -> Iterator[Server]:
    """Start the JupyterLab of most tests."""
    del model_server  # its address is in the environment
    _, folder = server_places
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    Server(notebooks, "", "", folder).write(FIRST, "1 + 1")
    for name in PLANTED:
        (notebooks / f"{name}.py").write_text(
            f"open({str(folder / 'planted')!r}, 'a').write({name!r})"
        )
    with start_server(notebooks, *START, FIRST, "--") as started:
        yield started


@pytest.fixture
def open_page(browser: Browser, server: Server) -> Iterator[Callable[[str], Page]]:
    """Open a notebook in a page of its own; its kernel is there, and the engine knows it."""
    contexts = []

    def open_one(name: str, *, busy: bool = False, view: str = "lab/tree", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1100, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        # A workspace of its own: one that is shared is that of another page, and to reset it may
        # load the page once more.
        place = view.replace("lab/", f"lab/workspaces/{secrets.token_hex(4)}/")
        page.goto(f"{server.url}{place}/{name}?token={server.token}")
        status = f"{PANEL}?.sessionContext?.session?.kernel?.status"
        shared = f"window.jupyterapp?.shell && {PANEL}?.hasClass?.('cw-shared')"
        ready = "true" if busy else f"{status} === 'idle'"
        try:
            page.wait_for_function(f"() => {shared} && {ready}", timeout=60_000)
        except Exception as error:  # Playwright is imported where there is a browser
            found = page.evaluate(
                f"() => [!!window.jupyterapp, {shared}, {status}, document.body.innerText]"
            )
            said = server.log.read_text()[-3000:]
            raise AssertionError(f"{name} is not there: {found}\n{said}") from error
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture(autouse=True)
def _same_places(
    server_places: tuple[pytest.MonkeyPatch, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let this test find the engine of the server."""
    patch, folder = server_places
    del patch
    for variable, name in PLACES.items():
        monkeypatch.setenv(variable, str(folder / name))
    monkeypatch.setenv("CELLWRIGHT_ENGINE", "always")


@pytest.fixture
def agent(server: Server) -> Iterator[Any]:
    workspace = connect(cwd=str(server.folder), actor="mcp:agent")
    assert workspace is not None
    with workspace:
        yield workspace


def cells(page: Page) -> dict[str, Any]:
    """The cells of the tab: source, count and outputs by id."""
    found: dict[str, Any] = page.evaluate(
        f"""() => Object.fromEntries([...{PANEL}.content.model.cells].map(
            m => [m.id, {{source: m.sharedModel.getSource(), count: m.executionCount,
                          outputs: m.outputs?.toJSON()}}]))"""
    )
    return found


def texts(cell: dict[str, Any]) -> str:
    """What a cell printed, showed or raised."""
    return "".join(
        output.get("text") or output.get("evalue") or output["data"]["text/plain"]
        for output in cell["outputs"]
    )


def run_cell(page: Page, index: int) -> dict[str, Any]:
    """Run a cell as a person does, and wait for its end."""
    page.evaluate(
        f"""async () => {{
            {PANEL}.content.activeCellIndex = {index};
            await window.jupyterapp.commands.execute('notebook:run-cell');
        }}"""
    )
    return list(cells(page).values())[index]


def put_cursor(page: Page, index: int) -> None:
    """Let a person type in a cell: an editor that is not there yet would lose the first keys."""
    page.evaluate(
        f"""index => {{
            {PANEL}.content.activeCellIndex = index;
            {PANEL}.content.mode = 'edit';
        }}""",
        index,
    )
    page.wait_for_function(f"() => {PANEL}.content.activeCell.editor?.hasFocus()")


def read_saved(path: Path) -> list[dict[str, Any]]:
    """The cells in the file; JupyterLab saves in place, so that it may be empty for a while."""

    def read_whole() -> list[list[dict[str, Any]]]:
        with contextlib.suppress(InvalidJson):
            return [json.loads(read(path).to_bytes())["cells"]]
        return []

    found: list[dict[str, Any]] = wait_for(read_whole, "a whole file")[0]
    return found


def change_on_disk(path: Path, **sources: str) -> None:
    shape = json.loads(read(path).to_bytes())
    for cell in shape["cells"]:
        if cell["id"] in sources:
            cell["source"] = sources[cell["id"]]
    new = path.with_suffix(".new")
    new.write_text(json.dumps(shape, indent=1), encoding="utf-8")
    new.replace(path)


def keep_picture(page: Page, name: str) -> None:
    """Keep what the page shows, to be looked at."""
    folder = ROOT / ".dev" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")
