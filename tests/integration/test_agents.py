"""The tasks of `benchmarks/agents`: scripts do all of them with Cellwright, and a model can play."""

from __future__ import annotations

import http.server
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.agents.evaluation import play_task, print_table
from benchmarks.agents.players import ModelPlayer
from benchmarks.agents.sides import open_cellwright
from benchmarks.agents.tasks import TASKS, Final, Task

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(120)
QUICK = {"keep-outputs", "explain-long-output", "conflict-elsewhere", "hostile-output", "fix-name"}
by_name = {task.name: task for task in TASKS}


def test_there_are_thirty_of_eight_kinds() -> None:
    assert len(by_name) == len(TASKS) == 30
    assert len({task.kind for task in TASKS}) == 8


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_notebook_that_was_not_touched_satisfies_no_check(task: Task, tmp_path: Path) -> None:
    shape = json.loads(task.make(tmp_path).read_bytes())
    assert not task.check(Final(shape, shape, ""))


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, id=task.name, marks=() if task.name in QUICK else pytest.mark.all)
        for task in TASKS
    ],
)
async def test_a_script_does_the_task_with_cellwright(task: Task, tmp_path: Path) -> None:
    async with open_cellwright(tmp_path) as side:
        played = await play_task(task, side, tmp_path)
    assert played.problem == ""
    assert 1 <= played.bill.calls <= 4


class Model(http.server.BaseHTTPRequestHandler):
    """An API that calls a tool first, and answers then."""

    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
        said: dict[str, Any] = {"role": "assistant", "content": "It prints 42."}
        if len(self.asked) == 1:
            call = {"name": "notebook_read", "arguments": '{"path": "explain-number.ipynb"}'}
            said = {"role": "assistant", "content": None}
            said["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
        answer = json.dumps({"choices": [{"message": said}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    Model.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


async def test_a_model_plays_through_an_openai_compatible_address(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    player = ModelPlayer(address, "m", "secret")
    async with open_cellwright(tmp_path) as side:
        played = await play_task(by_name["explain-number"], side, tmp_path, player.play)
    assert (played.problem, played.bill.calls) == ("", 1)
    first, second = Model.asked
    assert (first["path"], first["key"]) == ("/v1/chat/completions", "Bearer secret")
    assert len(first["tools"]) == 8
    assert "print(a)" in second["messages"][-1]["content"]
    print_table([played])
    assert "cellwright             1/1" in capsys.readouterr().out
