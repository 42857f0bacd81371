"""Nothing forges our voice: a payload in every string that a notebook, kernel, file or client has."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.kernel.events import Finished, InputRequested, Started
from cellwright.kernel.factory import KernelFactory
from cellwright.kernel.transport import KernelInfo, Launch
from cellwright.outputs.events import DisplayEvent, ErrorEvent, StreamEvent
from tests.integration.hostile import doors
from tests.integration.hostile.repository import (
    FORGED,
    NAMES,
    PAYLOAD,
    UNSAFE,
    code,
    display,
    markdown,
    notebook,
    stream,
)
from tests.memory_kernel import MemoryKernel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from cellwright.kernel.events import KernelEvent
    from cellwright.kernel.factory import KernelOrder
    from cellwright.kernel.transport import Code

    Place = tuple[str | int, ...]

_ERROR = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["line"]}
_TIMES = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
SAMPLE: dict[str, Any] = json.loads(
    notebook(
        markdown("# Title\ntext", attachments={"a.png": {"image/png": "AAAA"}}),
        code(
            "x = 1\nprint(x)",
            stream("out\n"),
            _ERROR,
            display("text/html", "<table><tr><td>1</td></tr></table>"),
            display("application/json", {"key": "value"}),
            {**display("text/plain", "v"), "output_type": "execute_result", "execution_count": 1},
            metadata={"tags": ["parameters"], "name": "n", "execution": _TIMES},
        ),
        {"cell_type": "raw", "id": "r", "source": "raw", "metadata": {"format": "text/x"}},
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python", "version": "3", "mimetype": "text/x-python"},
            "title": "title",
        },
    )
)


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where there is a string, and where there is a name of a field."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*place, "key", key)
            yield from places(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*place, index))


def put(place: Place) -> str:
    """The sample with the payload there."""
    changed = deepcopy(SAMPLE)
    inside: Any = changed
    is_key = len(place) > 1 and place[-2] == "key"
    for step in place[: -2 if is_key else -1]:
        inside = inside[step]
    if is_key:
        inside[PAYLOAD] = inside.pop(place[-1])
    else:
        inside[place[-1]] = PAYLOAD
    return json.dumps(changed)


PLACES = list(places(SAMPLE))
# Whatever the place, it ends in one of these words; one place for each will do in a hurry.
QUICK = list(
    {place[-1] if isinstance(place[-1], str) else place: place for place in PLACES}.values()
)


async def check(folder: Path, chosen: list[Place], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    names = []
    for number, place in enumerate(chosen):
        names.append(f"{number}.ipynb")
        (folder / names[-1]).write_text(put(place))
    calls = [call for name in names for call in doors.reading_calls(name)]
    for what, result in await doors.call_tools(folder, calls):
        assert doors.find_forged(result) is None, (what, doors.find_forged(result), chosen)
    for heard in await doors.ask_pages(folder, names):
        assert doors.find_raw(heard) is None, doors.find_raw(heard)
    for name, place in zip(names, chosen, strict=True):
        for words in doors.reading_commands(name):
            exit_code, shown = doors.type_command(*words)
            assert doors.find_raw(shown) is None, (words, place, doors.find_raw(shown))
            assert exit_code != 70, (words, place, shown)


@pytest.mark.anyio
async def test_a_payload_in_any_kind_of_string_of_a_notebook_is_shown_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(QUICK) >= 30
    await check(tmp_path, QUICK, monkeypatch)


@pytest.mark.all
@pytest.mark.anyio
async def test_a_payload_in_every_string_of_a_notebook_is_shown_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(PLACES) >= 90
    await check(tmp_path, PLACES, monkeypatch)


class HostileKernel(MemoryKernel):
    """A kernel that says the payload wherever it can say something."""

    @property
    def info(self) -> KernelInfo:
        return KernelInfo(PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD)

    async def execute(self, code: Code) -> AsyncIterator[KernelEvent]:
        yield Started(1)
        yield StreamEvent("stdout", PAYLOAD)
        yield StreamEvent("stderr", PAYLOAD)
        yield DisplayEvent({PAYLOAD: PAYLOAD, "text/plain": PAYLOAD}, {PAYLOAD: PAYLOAD})
        yield DisplayEvent({"application/x-cellwright-status": {"op": PAYLOAD, "x": PAYLOAD}})
        if code.allow_stdin:
            yield InputRequested(PAYLOAD, password=False)
        yield ErrorEvent(PAYLOAD, PAYLOAD, (PAYLOAD, PAYLOAD))
        yield Finished("error", 1)


@pytest.fixture
def hostile_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def start(_: KernelFactory, order: KernelOrder) -> MemoryKernel:
        kernel = HostileKernel(Launch(order.cwd, order.env))
        await kernel.start()
        return kernel

    monkeypatch.setattr(KernelFactory, "start", start)
    monkeypatch.chdir(tmp_path)
    cells = (
        code("x", id=PAYLOAD),
        code("y", id="b"),
        code("p", id=f"a{PAYLOAD}", metadata={"tags": ["parameters"]}),
    )
    (tmp_path / "nb.ipynb").write_text(notebook(*cells))
    return tmp_path


@pytest.mark.anyio
async def test_a_kernel_says_nothing_to_a_model_in_our_name(hostile_kernel: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("notebook_run", {"path": "nb.ipynb"}),
        ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "replace", "cell": 0, "source": "z"}], "run": "changed"}),
        ("notebook_run", {"path": "nb.ipynb", "which": "stale"}),
        ("notebook_run", {"path": "nb.ipynb", "cells": ["cell-2"], "parameters": {"q": 1}}),
        ("eval", {"cells": [{"code": "x", "title": PAYLOAD}]}),
        ("python", {"cells": [{"code": "x"}]}),
        ("RunNotebookCells", {"path": "nb.ipynb", "cellIds": ["a"]}),
        ("execute_cell_range", {"path": "nb.ipynb", "start": 0, "end": 1}),
        ("kernel", {"action": "status"}),
        ("kernel", {"action": "variables", "path": "nb.ipynb"}),
        ("kernel", {"action": "restart", "path": "nb.ipynb"}),
        *doors.reading_calls("nb.ipynb"),
    ]  # fmt: skip
    results = await doors.call_tools(hostile_kernel, calls, mode="agent")
    assert not [(what, said) for what, result in results if (said := doors.find_forged(result))]


def test_a_kernel_sends_nothing_raw_to_a_terminal(
    hostile_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda prompt: asked.append(prompt) or "x")
    for name in NAMES.values():
        (hostile_kernel / name).write_text(notebook(code("x", id=PAYLOAD)))
    for words in (
        *(["run", "--", name] for name in NAMES.values()),
        *(["edit", "insert", "--run", "changed", "--", name, "y"] for name in NAMES.values()),
        ["run", "nb.ipynb"],
        ["run", "--json", "nb.ipynb"],
        ["run", "--keep-going", "--check", "nb.ipynb"],
        ["edit", "replace", "nb.ipynb", "0", "z", "--run", "changed"],
        ["eval", "--json", "x"],
        ["eval", "x"],
        *doors.reading_commands("nb.ipynb"),
    ):
        exit_code, shown = doors.type_command(*words, typing=True)
        assert doors.find_raw(shown) is None, (words, doors.find_raw(shown))
        assert exit_code != 70, (words, shown)
    assert asked
    assert not any(doors.find_raw(prompt) for prompt in asked)


def test_no_door_to_a_kernel_sends_anything_raw_to_a_terminal(
    hostile_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches, copies, scripts, editors and settings, with hostile names, outputs and values."""
    odd = NAMES["escapes"]
    (hostile_kernel / odd).write_text(notebook(code("x", id=PAYLOAD)))
    (hostile_kernel / "sets.json").write_text(json.dumps([{PAYLOAD: PAYLOAD}, {"q": PAYLOAD}]))
    (hostile_kernel / "bad.py").write_text(f"# %% id={UNSAFE}\nx\n", encoding="utf-8")
    monkeypatch.setenv("VISUAL", f"no{UNSAFE}".replace("\0", ""))
    for words in (
        *(["batch", name, "--out", "out", "--report", "html"] for name in (odd, "nb.ipynb")),
        ["batch", "nb.ipynb", "--out", "sets", "--params", "sets.json"],
        ["batch", "nb.ipynb", "--out", "x/{stem}-{q}.ipynb", "--matrix", f"q={UNSAFE}"],
        ["batch", "nb.ipynb", "--out", f"{UNSAFE}/{{nothing}}.ipynb"],
        ["batch", "nb.ipynb", "--report", UNSAFE],
        ["batch", "nb.ipynb", "--out", "y", "--report", f"html=no/{UNSAFE}/x"],
        ["run", "nb.ipynb", "-o", f"copy{odd}", "-p", f"q={UNSAFE}"],
        ["run", "nb.ipynb", "-p", f"{UNSAFE}=1"],
        ["run", "nb.ipynb", "--server", f"http://{UNSAFE}"],
        ["eval", "x", "--session", UNSAFE],
        *(["sync", name, f"{number}.py"] for number, name in enumerate((odd, "nb.ipynb"))),
        ["sync", "nb.ipynb", f"{UNSAFE}.py"],
        ["sync", "nb.ipynb", "bad.py"],
        ["read", "--percent", odd],
        ["edit", odd],
        ["config", UNSAFE],
        ["config", "set", "lock_timeout", UNSAFE],
        ["config", "set", "assistant_model", UNSAFE],
        ["config", "--origin"],
        *([name, UNSAFE] for name in ("attach", "cancel", "artifact")),
        *([name] for name in ("runs", "sessions")),
        [UNSAFE],
    ):
        exit_code, shown = doors.type_command(*words)
        assert doors.find_raw(shown) is None, (words, doors.find_raw(shown))
        assert exit_code != 70, (words, shown)


@pytest.mark.anyio
async def test_what_a_client_calls_itself_or_asks_for_is_not_said_in_our_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "nb.ipynb").write_text(notebook(code("x")))
    insert = [{"op": "insert", "source": "x", "type": "code"}]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("notebook_edit", {"path": "nb.ipynb", "edits": insert}),
        ("notebook_edit", {"path": "nb.ipynb", "edits": insert, "base": PAYLOAD}),
        ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": "delete", "cell": PAYLOAD}]}),
        ("notebook_edit", {"path": "nb.ipynb", "edits": [{"op": PAYLOAD}]}),
        ("notebook_edit", {"path": "nb.ipynb", PAYLOAD: 1, "edits": []}),
        ("notebook_read", {"path": PAYLOAD}),
        ("notebook_read", {"path": "nb.ipynb", "cells": [PAYLOAD]}),
        ("notebook_read", {"path": "nb.ipynb", "view": PAYLOAD}),
        ("notebook_outputs", {"path": "nb.ipynb", "artifact": PAYLOAD}),
        ("notebook_history", {"path": "nb.ipynb", "action": "log"}),
        ("notebook_history", {"path": "nb.ipynb", "action": "diff"}),
        ("notebook_history", {"path": "nb.ipynb", "action": "undo", "change": PAYLOAD}),
        ("notebook_run", {"run": PAYLOAD}),
        ("kernel", {"action": "status", "session": PAYLOAD}),
        ("kernel", {"action": PAYLOAD}),
        ("eval", {"cells": [{"code": "1", "language": PAYLOAD}]}),
        ("read", {"path": f"nb.ipynb:{PAYLOAD}"}),
        ("read", {"path": PAYLOAD}),
        ("GetCellOutputs", {"path": "nb.ipynb", "cellId": PAYLOAD}),
        (PAYLOAD, {}),
    ]
    for actor in ("test:ada", f"mcp:{PAYLOAD}"):
        results = await doors.call_tools(tmp_path, calls, mode="agent", actor=actor)
        found = [(what, doors.find_forged(result, echoes=True)) for what, result in results]
        assert not [(what, said) for what, said in found if said]
    assert FORGED not in (tmp_path / "nb.ipynb").read_text()
