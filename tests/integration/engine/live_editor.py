"""A scripted editor at the other end of a real socket."""

from __future__ import annotations

import contextlib
import json
import threading
from typing import TYPE_CHECKING, Any

from cellwright.engine import wire
from cellwright.engine.launch import connect_or_start
from tests.engines import greeting
from tests.unit.engine.scripted_editor import ScriptedEditor

if TYPE_CHECKING:
    from pathlib import Path


class LiveEditor(ScriptedEditor):
    """Has one notebook open, registered with the engine, until `close`."""

    def __init__(
        self, file: Path, *, content: ScriptedEditor | None = None, **presence: Any
    ) -> None:
        super().__init__(file.read_bytes(), file)
        if content is not None:  # a page that was here before
            self.cells, self.hash = content.cells, content.hash
        self.path = file.name
        self.is_silent = False
        self.refuses: set[str] = set()  # what it answers with an error
        self._answers: dict[int, Any] = {}
        self._answered = threading.Condition()
        self._socket = connect_or_start()
        self._lines = self._socket.makefile("rb")
        self._number = 0
        self._call("hello", greeting(cwd=str(file.parent), actor="lab:ada"))
        self._call("editor.register", {"path": self.path, **presence})
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the page, without a word."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(2)
        self._thread.join(10)
        self._lines.close()
        self._socket.close()

    def say(self, method: str, **params: Any) -> Any:
        """Call the engine about the notebook, and return its answer."""
        with self._answered:
            self._number += 1
            number = self._number
            message = wire.make_call(number, f"editor.{method}", {"path": self.path, **params})
            self._socket.sendall(wire.encode(message))
            assert self._answered.wait_for(lambda: number in self._answers, 20), method
            answer = self._answers.pop(number)
        assert "result" in answer, answer
        return answer["result"]

    def _call(self, method: str, params: dict[str, Any]) -> None:
        self._number += 1
        self._socket.sendall(wire.encode(wire.make_call(self._number, method, params)))
        answer = json.loads(self._lines.readline())
        assert "result" in answer, answer

    def _serve(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._lines:
                message = json.loads(line)
                if "method" not in message:
                    with self._answered:
                        self._answers[message["id"]] = message
                        self._answered.notify_all()
                elif message["method"] in self.refuses:
                    error = {"code": -32000, "message": "the disk of the page is full"}
                    self._socket.sendall(wire.encode({"id": message["id"], "error": error}))
                elif not self.is_silent:
                    result = self.answer(message["method"], message["params"])
                    self._socket.sendall(wire.encode(wire.make_answer(message["id"], result)))
