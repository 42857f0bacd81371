"""The conformance kit: ours passes, and each way of being broken fails its own rows."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest

from cellwright.cli.main import main
from cellwright.protocol.conformance.frontend import FRONTEND
from cellwright.protocol.conformance.kernel import KERNEL, CallResult, ScriptedFrontend
from cellwright.protocol.conformance.reference import ReferenceFrontend, ReferenceMessage
from cellwright.protocol.conformance.rows import Broken, ConformanceTable, Skipped, render
from cellwright.protocol.messages import MANIPULATOR
from tests.unit.protocol.broken_frontends import BROKEN


def failed(results: Any) -> set[str]:
    return {result.id for result in results if result.verdict == "failed"}


# --- Frontends -----------------------------------------------------------------------------------


async def test_our_frontend_passes_every_row() -> None:
    peer = ReferenceFrontend()
    results = await FRONTEND.run(peer)
    await peer.close()
    assert [(r.id, r.detail) for r in results if r.verdict != "passed"] == []
    assert len(results) == len(FRONTEND.rows) > 40


class ImpatientLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is left to do.

    So a wait for what never comes takes no time, and what does come is never too late.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ahead = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            found = select(0 if timeout else timeout)
            if not found and timeout:
                self._ahead += timeout
            return found

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return super().time() + self._ahead


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"loop_factory": ImpatientLoop})])
@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_frontend_fails_exactly_the_rows_about_it(name: str) -> None:
    kind, expected = BROKEN[name]
    peer = kind()
    results = await FRONTEND.run(peer)
    await peer.close()
    assert failed(results) == expected
    assert all(result.detail for result in results if result.verdict == "failed")


def test_every_row_is_failed_by_some_broken_frontend() -> None:
    assert set().union(*(rows for _, rows in BROKEN.values())) == {row.id for row in FRONTEND.rows}


# --- Clients -------------------------------------------------------------------------------------


@dataclass
class Client:
    """A client in this process; each field breaks one thing."""

    opens: bool = True
    reopens: bool = False
    reopens_after_errors: bool = False
    no_method: bool = False
    one_id: bool = False
    drops_params: bool = False
    drops_results: bool = False
    swallows_errors: bool = False
    knows_nine_codes: bool = False
    strict_fields: bool = False
    takes_any_answer: bool = False
    takes_last_answer: bool = False
    never_gives_up: bool = False
    gives_up_for_good: bool = False
    deaf: bool = False
    hangs_afterwards: bool = False
    nests_badly: bool = False

    def __post_init__(self) -> None:
        self.numbers = itertools.count()
        self.comm: str | None = None
        self.has_failed = False

    async def call(
        self, frontend: ScriptedFrontend, method: str, params: Any, *, patience: float = 30
    ) -> CallResult:
        del patience
        if self.gives_up_for_good and self.has_failed:
            return CallResult(error="closed")
        again = self.reopens or (self.reopens_after_errors and self.has_failed)
        if self.comm is None or again:
            self.comm = f"comm-{next(self.numbers)}"
        if self.opens:
            frontend.hear(ReferenceMessage("open", self.comm, MANIPULATOR))
        request_id = "same" if self.one_id else f"req-{next(self.numbers)}"
        data = {"method": "get" if self.no_method else method, "request_id": request_id}
        if params and not self.drops_params:
            data["params"] = dict(params)
        try:
            answers = [
                answer for _, answer in frontend.hear(ReferenceMessage("msg", self.comm, data=data))
            ]
        except KeyError:  # the kit knows no such method
            answers = []
        mine = [a for a in answers if self.takes_any_answer or a["request_id"] == request_id]
        if not mine:
            self.has_failed = True
            return (
                CallResult()
                if self.never_gives_up
                else CallResult(error="no answer", timed_out=True)
            )
        return self._read(mine[-1] if self.takes_last_answer else mine[0])

    def _read(self, answer: Any) -> CallResult:
        if answer["status"] == "error":
            self.has_failed = True
            known = answer["error"]["code"] in {"OUT_OF_BOUNDS", "INVALID_RANGE"}
            if self.swallows_errors or (self.knows_nine_codes and not known):
                return CallResult()
            return CallResult(error=answer["error"]["message"], code=answer["error"]["code"])
        if self.strict_fields and answer.keys() != {"request_id", "status", "result"}:
            return CallResult(error="unknown field")
        return CallResult(None if self.drops_results else answer["result"])

    async def interrupt_call(self, frontend: ScriptedFrontend) -> bool:
        del frontend
        return not self.deaf

    async def run_cell(self) -> bool:
        return not self.hangs_afterwards

    async def run_nested(self, frontend: ScriptedFrontend) -> str | None:
        del frontend
        return "it ran afterwards" if self.nests_badly else None


CLIENTS = {
    "opens": "K-01",
    "reopens": "K-02 K-16",
    "reopens_after_errors": "K-16",
    "no_method": "K-01 K-02 K-03 K-04 K-05 K-10 K-16 K-19",
    "one_id": "K-04 K-18",
    "drops_params": "K-05",
    "drops_results": "K-10 K-13 K-14 K-15 K-18 K-19",
    "swallows_errors": "K-11 K-12",
    "knows_nine_codes": "K-12",
    "strict_fields": "K-13",
    "takes_any_answer": "K-14 K-18",
    "takes_last_answer": "K-15",
    "never_gives_up": "K-17",
    "gives_up_for_good": "K-12 K-13 K-14 K-15 K-16 K-17 K-18 K-19",
    "deaf": "K-19",
    "hangs_afterwards": "K-19 K-20",
    "nests_badly": "K-20",
}


async def test_a_good_client_passes_every_row() -> None:
    assert failed(await KERNEL.run(Client())) == set()


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_broken_client_fails_exactly_the_rows_about_it(name: str) -> None:
    client = Client(**{name: name != "opens"})
    assert sorted(failed(await KERNEL.run(client))) == CLIENTS[name].split()


def test_every_row_is_failed_by_some_broken_client() -> None:
    assert set(" ".join(CLIENTS.values()).split()) == {row.id for row in KERNEL.rows}


# --- The table -----------------------------------------------------------------------------------


async def test_a_table_says_what_was_seen_and_goes_on() -> None:
    table: ConformanceTable[None] = ConformanceTable()

    @table.row("1", "holds")
    async def _(_: None) -> None: ...

    @table.row("2", "does not", "ours")
    async def _(_: None) -> None:
        raise Broken("it was seen")

    @table.row("3", "cannot be tried")
    async def _(_: None) -> None:
        raise Skipped("no way")

    @table.row("4", "crashes")
    async def _(_: None) -> None:
        raise ZeroDivisionError("1/0")

    @table.row("5", "hangs")
    async def _(_: None) -> None:
        await asyncio.sleep(60)

    results = await table.run(None, within=0.05)
    assert render(results) == (
        "1  ok       holds\n"
        "2  FAILED   does not  (ours)\n"
        "            it was seen\n"
        "3  skipped  cannot be tried\n"
        "            no way\n"
        "4  FAILED   crashes\n"
        "            ZeroDivisionError: 1/0\n"
        "5  FAILED   hangs\n"
        "            it did not end within 0.05 s\n"
        "1 of 4 statements hold, 1 skipped\n"
    )
    assert [r.id for r in await table.run(None, only=["1"])] == ["1"]


def test_the_command_prints_the_table_and_ends_well(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "frontend"]) == 0
    told = capfd.readouterr()
    assert told.out.splitlines()[-1].endswith("statements hold")
    assert told.err == ""


def test_the_command_gives_the_rows_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "frontend", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["data"]["failed"] == []
    assert answer["data"]["rows"][0].keys() == {"id", "statement", "level", "verdict", "detail"}


def test_the_command_fails_if_a_statement_does_not_hold(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceFrontend, "bad_name", "OtherError")
    assert main(["conformance", "frontend", "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["data"]["failed"] == ["F-52"]


def test_options_of_one_side_are_refused_by_the_other(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "frontend", "--python", "python3"]) == 2
    assert "conformance kernel" in capfd.readouterr().err
