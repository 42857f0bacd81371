"""The wheel: what it says about itself, and what a plain installation of it can do."""

from __future__ import annotations

import email
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTRAS = ("", "acp", "assistant", "batch", "charts", "images", "jupyter-ai", "lab", "mcp", "all")
# Only what says where packages come from.
LEFT = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "HOME")
LEFT_PREFIXES = ("PIP_", "XDG_")


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def test_the_wheel_links_to_the_project(metadata: Message) -> None:
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert urls.keys() == {"Repository", "Documentation", "Changelog", "Issues"}


def test_every_link_of_the_long_description_leads_somewhere_outside_the_repository(
    metadata: Message,
) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert metadata["Description-Content-Type"] == "text/markdown"
    links = LINK.findall(text)
    assert len(links) == len(LINK.findall((ROOT / "README.md").read_text("utf-8")))
    assert all(link.startswith("https://") for link in links)
    relative = [found for link in links if (found := re.search(r"/(blob|raw)/main/(.*)", link))]
    assert relative
    assert all((ROOT / found[2]).is_file() for found in relative)
    # The page of a picture is no picture.
    assert all((found[1] == "raw") == found[2].endswith(".png") for found in relative)


def test_both_packages_of_the_wheel_are_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {"cellwright/py.typed", "cellwright_kernel/py.typed"} <= set(archive.namelist())


def test_a_plain_installation_has_a_kernel_and_no_extra_is_empty(metadata: Message) -> None:
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {"ipykernel", "pydantic"} <= {re.split(r"[<>=\[; ]", line)[0] for line in required}
    assert set(metadata.get_all("Provides-Extra", [])) == {*EXTRAS} - {""}


def test_every_package_of_an_extra_is_imported_somewhere(metadata: Message) -> None:
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "src/cellwright").rglob("*.py"))
    # JupyterLab loads our extension, and not the other way round.
    imported = {
        "agent-client-protocol": "acp",
        "jupyterlab": "jupyter_server",
        "pillow": "PIL",
        "pydantic-ai-slim": "pydantic_ai",
        "vl-convert-python": "vl_convert",
    }
    for line in metadata.get_all("Requires-Dist", []):
        if "extra ==" in line:
            name = re.split(r"[<>=\[; ]", line)[0].lower()
            module = imported.get(name, name.replace("-", "_"))
            assert re.search(rf"^\s*(from|import) {module}\b", sources, re.MULTILINE), line


# --- In a fresh environment ----------------------------------------------------------------------


class Installation:
    """The wheel in an environment of its own, used from an empty folder."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        self.folder = folder
        self.bin = folder / "environment" / "bin"
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if name in LEFT or name.startswith(LEFT_PREFIXES)
        }
        self.environ["PATH"] = f"{self.bin}{os.pathsep}{self.environ['PATH']}"
        subprocess.run([sys.executable, "-m", "venv", str(self.bin.parent)], check=True)
        asked = f"{wheel}[{extra}]" if extra else str(wheel)
        command = [self.bin / "python", "-m", "pip", "install", "--quiet", asked]
        subprocess.run(command, check=True, env=self.environ)

    def run(self, line: str, stdin: str = "", expect: int = 0) -> str:
        """Type a line in a shell; returns what it printed."""
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == expect, (line, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, (line, done.stderr)
        return done.stdout


@pytest.fixture(params=EXTRAS, ids=lambda extra: extra or "plain")
def installation(
    request: pytest.FixtureRequest, tmp_path: Path, wheel: Path
) -> Iterator[tuple[str, Installation]]:
    installed = Installation(tmp_path, wheel, request.param)
    yield request.param, installed
    installed.run("cellwright engine stop")


@pytest.mark.all
@pytest.mark.timeout(1800)
def test_every_installation_does_the_main_job_and_what_its_extra_is_for(
    installation: tuple[str, Installation],
) -> None:
    extra, here = installation
    assert here.run("cellwright --version").startswith("cellwright ")
    here.run("cellwright new a.ipynb && cellwright edit a.ipynb insert 'x = 20'")
    answer = json.loads(
        here.run("cellwright edit a.ipynb insert 'print(x + 1)' --run stale --json")
    )
    assert [each["status"] for each in answer["data"]["executions"]] == ["ok", "ok"]
    assert "21\n" in here.run("cellwright run a.ipynb --restart")
    assert "21" in here.run("cellwright show a.ipynb")
    report = json.loads(here.run("cellwright doctor --json"))["data"]
    assert "default" in report["kernels"]["python3"]
    has = {name for name, state in report["extras"].items() if state.startswith("installed")}
    assert has == ({*EXTRAS} - {"", "all"} if extra == "all" else {extra} - {""})
    here.run("cellwright chat a.ipynb -p 'what does cell 1 do?'")
    mcp = extra in {"mcp", "all"}
    here.run("cellwright doctor --mcp", expect=0 if mcp else 1)
    here.run("cellwright mcp", expect=0 if mcp else 2)  # stdin is empty: its client has left


@pytest.mark.all
@pytest.mark.timeout(1800)
def test_the_commands_and_the_code_of_the_readme_work_on_a_plain_installation(
    tmp_path: Path, wheel: Path
) -> None:
    here = Installation(tmp_path, wheel, "")
    cells = [("load", "sales = [1, 2]"), ("total", "print('total', sum(sales))")]
    for book, ids in {"sales": cells, "analysis": [("ab12", "x = 1"), ("cd34", "foo = x")]}.items():
        edits = [{"op": "insert", "id": name, "source": source} for name, source in ids]
        (tmp_path / "edits.json").write_text(json.dumps(edits), encoding="utf-8")
        here.run(f"cellwright new {book}.ipynb && cellwright edit {book}.ipynb apply edits.json")
    here.run("git init --quiet")
    text = (ROOT / "README.md").read_text("utf-8")
    lines = [
        line[2:]
        for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines()
        if line.startswith("$ cellwright ")
    ]
    assert len(lines) > 8
    try:
        for line in lines:
            chats = shlex.split(line)[1] == "chat"
            here.run(line, stdin="what does cell 1 do?\n" if chats else "")
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.DOTALL)):
            (tmp_path / f"readme{number}.py").write_text(code, encoding="utf-8")
            assert "ok" in here.run(f"python readme{number}.py")
    finally:
        here.run("cellwright engine stop")
