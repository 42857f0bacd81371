"""Ctrl-C while a command talks to the engine."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from cellwright.engine import wire
from cellwright.engine.client import EngineConnection


class Line:
    """A socket whose engine runs a call until it is told to stop; Ctrl-C comes at `moment`."""

    def __init__(self, moment: str) -> None:
        self.moment = moment
        self.sent: list[dict[str, Any]] = []
        self.is_closed = False

    def settimeout(self, seconds: float) -> None:
        """Ctrl-C may come when nothing has been sent."""
        del seconds
        if self.moment == "before" and not self.sent:
            signal.raise_signal(signal.SIGINT)

    def sendall(self, line: bytes) -> None:
        self.sent.append(wire.decode(line.rstrip(b"\n")))
        if self.moment == "sent" and len(self.sent) == 1:
            signal.raise_signal(signal.SIGINT)

    def recv(self, size: int) -> bytes:
        del size
        if self.moment == "waiting" and len(self.sent) == 1:
            signal.raise_signal(signal.SIGINT)
            return b""
        assert len(self.sent) == 2, "nobody told the engine to stop"
        return wire.encode(wire.make_answer(self.sent[0]["id"], "stopped"))

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("moment", ["before", "sent", "waiting"])
def test_ctrl_c_stops_the_run_of_a_call_however_early_it_comes(moment: str) -> None:
    line: Any = Line(moment)
    connection = EngineConnection(line)
    number, call = connection._wire.write_call("run", {})
    running: Any = SimpleNamespace(runs_cells=True)
    try:
        answer = connection._converse("run", number, call, running)
    except KeyboardInterrupt:
        pytest.fail("the command left, and its run went on")
    assert answer == "stopped"
    assert [each.get("id") for each in line.sent] == [number, None]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not line.is_closed
