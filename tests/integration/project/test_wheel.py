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
from tests.integration.assistant.model_servers import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from email.message import Message
    from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTRAS = ("", "acp", "assistant", "batch", "charts", "images", "jupyter-ai", "lab", "mcp", "all")
# What an extra is for, as a user or a client does it, and a word that is printed only then.
HELLO = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": %s}}'
CLIENT = '"2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}'
SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='5' height='5'/></svg>"
DRAW = """import sys; from cellwright.outputs.charts.drawing import draw_svg
print((draw_svg(sys.argv[1]) or bytes()).hex())"""
PERSONAS = """from importlib.metadata import entry_points
print([each.load() for each in entry_points(group="jupyter_ai.personas")])"""
USES = {
    "acp": (f"echo '{HELLO % 1}' | cellwright acp", "agentInfo"),
    "assistant": ("cellwright chat a.ipynb --model openai:scripted -p 'how many?'", "Seven."),
    "batch": ("cellwright batch a.ipynb --out out --scheduler LocalCluster", " 1 ok "),
    "charts": (f"python -c '{DRAW}' \"{SVG}\"", b"\x89PNG".hex()),
    "images": (
        'TERM=xterm-256color python -c "import pty; pty.spawn([\\"cellwright\\", \\"show\\", \\"a.ipynb\\"])"',
        "▀",
    ),
    "jupyter-ai": (f"python -c '{PERSONAS}'", "CellwrightPersona"),
    "lab": ("cellwright lab -- --version && jupyter server extension list", "cellwright.server"),
    "mcp": (f"echo '{HELLO % CLIENT}' | cellwright mcp", "serverInfo"),
}
PICTURE = """import struct, zlib
from IPython.display import Image
def part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
head = struct.pack(">IIBBBBB", 20, 20, 8, 0, 0, 0, 0)
rows = zlib.compress((bytes(1) + bytes(range(0, 240, 12))) * 20)
Image(bytes.fromhex("89504e470d0a1a0a") + part(b"IHDR", head) + part(b"IDAT", rows) + part(b"IEND", b""))
"""
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
    here.run("cellwright edit a.ipynb insert - --run changed", stdin=PICTURE)
    with served("openai", ["Seven."]) as model:
        here.environ["CELLWRIGHT_ASSISTANT_BASE_URL"] = model.base_url
        for name, (line, word) in USES.items():
            shown = here.run(f"{{ {line}; }} 2>&1 || true")
            assert (word in shown) == (name in has), (name, shown)
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
