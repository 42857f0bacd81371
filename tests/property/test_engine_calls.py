"""Whatever is sent to the engine: each call is answered, and none does harm."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.engine import wire
from cellwright.errors import CellwrightError
from cellwright.workspace.api.requests import VERBS, list_kinds
from tests.engines import greeting
from tests.unit.cli import samples
from tests.unit.engine.lines import Line, serving
from tests.unit.engine.test_service import REPLACE, code

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nb.ipynb").write_bytes(samples.SALES)
    return tmp_path


ATOMS: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**70, 1.5, "", "x", "nb.ipynb", "sum", "../..", "\0", "\udc80"),
    *([], {}, [None], [[]], {"a": None}, [1], ["sum"], ["\0"], [{"op": "insert"}], [{"code": 1}]),
    *([REPLACE], [{"op": "nonsense"}], [{"op": "delete", "cell": {}}], "/", "/proc/self/mem"),
]
METHODS = [*VERBS, "nonsense", "hello", "stop ", "__init__", ""]
# These wait, and have tests of their own; here they would wait for somebody.
SLOW = ("watch", "attach", "eval", "run", "kernel_specs")
QUICK = [verb for verb in METHODS if verb not in SLOW]


def random_call(chance: random.Random, number: int) -> bytes:
    verb = chance.choice(QUICK)
    known = list_kinds(VERBS[verb]) if verb in VERBS else {}
    names = [name for name in (*known, "path") if chance.random() < 0.6]
    params: Any = {}
    for name in names:
        kinds = known.get(name, (str,))
        fitting = [atom for atom in ATOMS if isinstance(atom, kinds)]
        params[name] = chance.choice(fitting if chance.random() < 0.95 else ATOMS)
    if chance.random() < 0.7:
        params["path"] = "nb.ipynb"
    if chance.random() < 0.05:
        params["nonsense"] = 1
    if params.get("run"):
        params["run"] = None  # that needs a kernel
    message: Any = {"jsonrpc": "2.0", "id": number, "method": verb, "params": params}
    line = json.dumps(message).encode()
    if chance.random() < 0.2:
        cut = chance.randrange(len(line))
        line = line[:cut] + bytes([chance.randrange(256)]) + line[cut + 1 :]
    return line.replace(b"\n", b" ") + b"\n"


@pytest.mark.parametrize("seed", range(2))
async def test_of_a_thousand_random_calls_each_is_answered_and_none_does_harm(
    seed: int, places: Path, folder: Path
) -> None:
    chance = random.Random(seed)
    async with serving(places) as (_, connect):
        client: Line = await connect()
        await client.greet()
        answered = crashed = 0
        for number in range(10**6, 10**6 + 1000):
            line = random_call(chance, number)
            await client.send(line)
            answer = await client.receive()
            while answer.get("method") == "event":
                answer = await client.receive()
            answered += 1
            if code(answer) == CellwrightError.code:  # a bug of ours, well caught
                crashed += 1
                print(line, answer["error"]["message"])  # noqa: T201
        assert (answered, crashed) == (1000, 0)
        assert code(await client.call("read", path="nb.ipynb")) is None
    assert (folder / "nb.ipynb").is_file()


async def test_two_thousand_lines_of_noise_are_two_thousand_invalid_calls(places: Path) -> None:
    chance = random.Random(7)
    async with serving(places) as (_, connect):
        client = await connect()
        await client.send(wire.make_call(1, "hello", greeting()))
        await client.receive()
        noise = [
            bytes(chance.choices(range(256), k=chance.randrange(200))).replace(b"\n", b"")
            for _ in range(2000)
        ]
        await client.send(b"".join(line + b"\n" for line in noise))
        for _ in range(2000):
            assert code(await client.receive()) == "INVALID_CALL"
        assert code(await client.call("list")) is None
