"""The suite of verbs, on notebooks that are open in a real JupyterLab page."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine.client import connect
from cellwright.errors import CellwrightError, KernelCannot
from tests.kernels.dialects import PYTHON
from tests.unit.workspace.stages import Stage, make_content
from tests.unit.workspace.test_verbs import *  # noqa: F403  # the suite; the stage is our own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Server

pytestmark = [pytest.mark.timeout(180), pytest.mark.all]

OPEN = """async paths => {
    const app = window.jupyterapp;
    window.opened = [];
    for (const path of paths) {
        const panel = await app.commands.execute('docmanager:open', {path});
        await panel.context.ready;
        await panel.sessionContext.ready;
        window.opened.push(panel);
    }
}"""
CLOSE = """async () => {
    for (const panel of window.opened) {
        await panel.sessionContext.shutdown();
        panel.dispose();
    }
    document.querySelectorAll('.jp-Dialog').forEach(each => each.remove());
}"""


# In a tab the metadata are JupyterLab's, and so is the kernel: it is not ended by us.
test_load_and_raw_give_the_notebook_itself = None
test_kernels_of_sessions_can_be_looked_at_restarted_and_ended = None
test_errors = None


def test_another_kernel_than_that_of_the_tab_is_refused(stage: Stage) -> None:
    book = stage.workspace().open("nb.ipynb")
    with pytest.raises(KernelCannot):
        book.run(["a"], kernel="no-such-kernel")


@pytest.fixture(scope="module")
def lab(browser: Any, server: Server) -> Iterator[Page]:
    """A page for all tests of this file: each test has notebooks of its own."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.url}lab?token={server.token}&reset")
    page.wait_for_function(
        "async () => { await window.jupyterapp?.restored; return !!window.jupyterapp }"
    )
    yield page
    context.close()


@pytest.fixture
def tmp_path(server: Server) -> Path:
    """Return a folder where the server finds notebooks."""
    folder = server.folder / secrets.token_hex(4)
    folder.mkdir()
    return folder


@pytest.fixture
def stage(lab: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.chdir(tmp_path)
    names = {"nb.ipynb": 5, "old.ipynb": 4}
    for name, minor in names.items():
        (tmp_path / name).write_bytes(make_content("python", PYTHON, minor))
    # `?reset` may load the page once more.
    lab.wait_for_function("() => window.jupyterapp?.commands?.hasCommand('docmanager:open')")
    lab.evaluate(OPEN, [f"{tmp_path.name}/{name}" for name in names])
    # JupyterLab puts into the metadata what the kernel says of itself.
    lab.wait_for_function(
        """() => window.opened.every(panel => panel.hasClass('cw-shared') &&
            panel.content.model.getMetadata('language_info')?.codemirror_mode)"""
    )
    stage = Stage(connect, language="python", dialect=PYTHON, host="tab")
    try:
        yield stage
    finally:
        last = stage.workspace()
        for session in last.sessions():
            with contextlib.suppress(CellwrightError):
                last.kernel("shutdown", session.session, session.cwd)
        stage.close()
        lab.evaluate(CLOSE)
