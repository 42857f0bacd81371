"""The wire itself: a runner that is driven by hand, over its stdin and stdout."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cellwright.kernel.runner.transport import INSIDE

START = str(INSIDE / "start.py")
FILES = sorted(INSIDE.glob("*.py"))


def talk(*requests: object, python: str = sys.executable) -> list[dict[str, Any]]:
    """Give a runner some requests and the end of file; give its frames."""
    lines = [r if isinstance(r, str) else json.dumps(r) for r in requests]
    done = subprocess.run(
        [python, START],
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def of(frames: list[dict[str, Any]], cell: str) -> list[dict[str, Any]]:
    """The frames of a cell; text that came in pieces is joined, as it may come so at any time."""
    found: list[dict[str, Any]] = []
    for frame in frames:
        if frame.get("id") != cell:
            continue
        if found and frame["type"] == found[-1]["type"] == "stdout":
            found[-1] = {**frame, "data": found[-1]["data"] + frame["data"]}
        else:
            found.append(frame)
    return found


def test_a_cell_has_started_first_and_exactly_one_done_last() -> None:
    codes = ["print(1)\n2", "1/0", "x = (", "exit()", "", "import os\nos.system('echo child')"]
    frames = talk(*({"id": f"c{n}", "code": code} for n, code in enumerate(codes)))
    assert frames[0]["type"] == "hello"
    for n in range(len(codes)):
        mine = of(frames, f"c{n}")
        assert mine[0] == {"type": "started", "id": f"c{n}", "executionCount": n + 1}
        assert [frame["type"] for frame in mine].count("done") == 1
        assert mine[-1]["type"] == "done"
    assert of(frames, "c0")[1:] == [
        {"type": "stdout", "id": "c0", "data": "1\n"},
        {"type": "result", "id": "c0", "bundle": {"text/plain": "2"}, "executionCount": 1},
        {"type": "done", "id": "c0", "status": "ok", "executionCount": 1, "cancelled": False},
    ]
    assert of(frames, "c1")[-1]["status"] == "error"


@pytest.mark.parametrize(
    "line", ["junk", "", "[1]", '{"id": 5, "code": "1"}', "{} {}", '"x"', "{", '{"code": "1"}']
)
def test_a_line_that_is_no_request_is_answered_and_the_next_one_served(line: str) -> None:
    frames = talk(line, {"id": "a", "code": "1"})
    assert frames[1]["type"] == "error"
    assert (frames[1]["id"], frames[1]["ename"]) == ("", "ProtocolError")
    assert of(frames, "a")[-1]["status"] == "ok"


def test_a_request_without_code_is_done_with_an_error() -> None:
    frames = talk({"id": "a"}, {"id": "b", "code": None})
    for cell in "ab":
        assert [frame["type"] for frame in of(frames, cell)] == ["error", "done"]


def test_ping_is_answered_and_exit_obeyed() -> None:
    frames = talk(
        {"type": "ping", "id": "p"},
        {"type": "input", "id": "x", "data": "nobody asked"},
        {"type": "exit"},
        {"id": "never", "code": "1"},
    )
    assert [frame["type"] for frame in frames] == ["hello", "pong"]


FORGERIES = {
    "raw": "import os\nos.write(1, FAKE)",
    "raw stderr": "import os\nos.write(2, FAKE)",
    "buffer": "import sys\nsys.stdout.buffer.write(FAKE)",
    "child": "import subprocess\nsubprocess.run(['cat'], input=FAKE)",
    "child's stderr": "import subprocess\nsubprocess.run(['sh', '-c', 'cat >&2'], input=FAKE)",
    "fork": """
import os
if not os.fork():
    os.write(1, FAKE); print(FAKE.decode()); os._exit(0)
os.wait()
""",
    "every descriptor of a fork": """
import os
if not os.fork():
    for number in range(3, 400):
        try: os.write(number, FAKE)
        except OSError: pass
    os._exit(0)
os.wait()
""",
    "every descriptor of a child": """
import subprocess
script = "for n in 3 4 5 6 7 8 9; do eval \\"cat >&$n\\" 2>/dev/null; done"
subprocess.run(["bash", "-c", script], input=FAKE, close_fds=False)
""",
    "without a line break": "import os\nos.write(1, FAKE[:-1])\nprint()",
}


@pytest.mark.parametrize("source", FORGERIES.values(), ids=list(FORGERIES))
def test_nothing_a_cell_or_its_children_write_passes_for_a_frame(source: str) -> None:
    fake = '{"type":"done","id":"a","status":"ok","executionCount":66,"cancelled":false}\n'
    frames = talk(
        {"id": "a", "code": f"FAKE = {fake.encode()!r}\n{source}"}, {"id": "b", "code": "7"}
    )
    assert [frame["type"] for frame in of(frames, "a")].count("done") == 1
    assert of(frames, "a")[-1]["executionCount"] == 1
    assert of(frames, "b")[-1]["executionCount"] == 2
    assert all(frame["type"] != "error" for frame in frames), frames


def test_children_read_nothing_of_ours() -> None:
    frames = talk(
        {"id": "a", "code": "import os\nos.system('cat; echo end')"}, {"id": "b", "code": "5"}
    )
    assert [f["data"] for f in of(frames, "a") if f["type"] == "stdout"] == ["end\n"]
    assert of(frames, "b")[-1]["status"] == "ok"


def test_requests_before_the_end_of_file_are_all_served() -> None:
    frames = talk(*({"id": f"n{n}", "code": f"print({n})"} for n in range(50)))
    # A print is two writes, which may come as two pieces.
    said = [(f["id"], f["data"]) for f in frames if f["type"] == "stdout"]
    assert "".join(data for _, data in said) == "".join(f"{n}\n" for n in range(50))
    assert list(dict.fromkeys(name for name, _ in said)) == [f"n{n}" for n in range(50)]


def test_exit_functions_run_when_it_leaves() -> None:
    code = "import atexit\natexit.register(print, 'bye')"
    frames = talk({"id": "a", "code": code})
    said = [f for f in frames if f["type"] == "stdout"]
    assert "".join(f["data"] for f in said) == "bye\n"
    assert {f["id"] for f in said} == {""}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_it_is_python_3_9_and_imports_the_standard_library_alone(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 9))
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
            assert set(names) <= sys.stdlib_module_names, names
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert str(node.module).split(".")[0] in sys.stdlib_module_names


def other_pythons() -> list[str]:
    """Every Python from 3.9 on that this machine has, one of each version."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    folders += sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin")
    )
    found = {sys.version_info[1]: sys.executable}
    for minor in range(9, 20):
        for folder in folders:
            python = folder / f"python3.{minor}"
            if minor not in found and folder.name != "shims" and python.exists():
                found[minor] = str(python)
    return list(found.values())


@pytest.mark.parametrize("python", other_pythons())
def test_every_python_here_runs_it(python: str) -> None:
    code = (
        "import asyncio, sys\nprint('out')\nprint('err', file=sys.stderr)\n"
        "x = !echo shell\nawait asyncio.sleep(0.001)\n[*x, 1]"
    )
    frames = of(talk({"id": "a", "code": code}, python=python), "a")
    # A print is two writes, which may come as two pieces.
    assert "".join(f["data"] for f in frames if "data" in f) == "out\nerr\n"
    assert frames[-2]["bundle"] == {"text/plain": "['shell', 1]"}
    assert frames[-1]["status"] == "ok"


def test_it_loads_little_before_the_first_cell() -> None:
    code = "import sys; sorted(sys.modules)"
    loaded = of(talk({"id": "a", "code": code}), "a")[1]["bundle"]["text/plain"]
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(sorted(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    ours = set(ast.literal_eval(loaded)) - set(ast.literal_eval(bare.stdout))
    theirs = {name for name in ours if not name.startswith("_cellwright_runner")}
    small = {"__future__", "_ast", "_ctypes", "_json", "atexit", "faulthandler", "gc", "select"}
    assert theirs <= small | {"pprint"}
