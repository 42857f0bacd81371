"""The eight scenarios in every mode, read off the HTTP request that left.

A model that does not care what it may do calls all five tools. What the table says it has is done;
everything else is refused, and no byte on disk changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.requests import FileReference, SessionReference
from cellwright.tools.profiles.positron import POSITRON
from tests.conftest import ROOT
from tests.integration.assistant.model_servers import DIALECTS, model_at, serve
from tests.unit.assistant import notebooks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from cellwright.workspace.api.requests import Mode
    from tests.integration.assistant.model_servers import Dialect, Received
    from tests.memory_kernel import MemoryKernel
    from tests.unit.assistant.chatting import Conversation

    Make = Callable[..., Conversation]

pytestmark = pytest.mark.usefixtures("empty_keyring")

GOLDEN = ROOT / "tests" / "unit" / "assistant" / "golden"
A, B = "sales.ipynb", "other.ipynb"
MENTION = "@sales.ipynb"
OFF = ""
NONE: tuple[str, ...] = ()
READING = ("GetNotebookCells", "GetCellOutputs")
CHANGING = ("RunNotebookCells", "AddNotebookCell", "UpdateNotebookCell")
ALL = (*READING, *CHANGING)


@dataclass(frozen=True)
class Scenario:
    """What is attached and active, and what has to come of it."""

    number: int
    attached: Sequence[object]
    active: str | None
    mode: Mode
    about: str
    tools: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number}-{self.mode}"


file, session = FileReference, SessionReference

# fmt: off
TABLE = [
    #        no  attached                active  mode     about  tools
    Scenario(1, [file(A)],               A,      "ask",   A,     READING),
    Scenario(1, [file(A)],               A,      "edit",  A,     READING),
    Scenario(1, [file(A)],               A,      "agent", A,     ALL),
    Scenario(2, [MENTION],               A,      "ask",   A,     READING),
    Scenario(2, [MENTION],               A,      "edit",  A,     READING),
    Scenario(2, [MENTION],               A,      "agent", A,     ALL),
    Scenario(3, [session(A)],            A,      "ask",   A,     READING),
    Scenario(3, [session(A)],            A,      "edit",  A,     READING),
    Scenario(3, [session(A)],            A,      "agent", A,     ALL),
    Scenario(4, [file(A)],               B,      "ask",   OFF,   NONE),
    Scenario(4, [file(A)],               B,      "edit",  OFF,   NONE),
    Scenario(4, [file(A)],               B,      "agent", OFF,   NONE),
    Scenario(5, [],                      A,      "ask",   OFF,   NONE),
    Scenario(5, [],                      A,      "edit",  OFF,   NONE),
    Scenario(5, [],                      A,      "agent", OFF,   NONE),
    Scenario(6, [file(A), file(B)],      B,      "ask",   B,     READING),
    Scenario(6, [file(A), file(B)],      B,      "edit",  B,     READING),
    Scenario(6, [file(A), file(B)],      B,      "agent", B,     ALL),
    Scenario(7, [file(B), MENTION],      A,      "ask",   A,     READING),
    Scenario(7, [file(B), MENTION],      A,      "edit",  A,     READING),
    Scenario(7, [file(B), MENTION],      A,      "agent", A,     ALL),
    Scenario(8, [file(A), file(B)],      None,   "ask",   OFF,   NONE),
    Scenario(8, [file(A), file(B)],      None,   "edit",  OFF,   NONE),
    Scenario(8, [file(A), file(B)],      None,   "agent", OFF,   NONE),
]
# fmt: on

CELL = {A: "load", B: "c3", OFF: "load"}
"""A code cell of the notebook that a scenario is about."""


def everything(scenario: Scenario) -> list[Any]:
    """A call of every tool; where there is no notebook they name one, which must not help."""
    cell = CELL[scenario.about]
    more = {} if scenario.about else {"path": A}
    arguments: dict[str, dict[str, Any]] = {
        "GetNotebookCells": {},
        "GetCellOutputs": {"cellId": cell},
        "RunNotebookCells": {"cellIds": [cell]},
        "AddNotebookCell": {"type": "code", "index": -1, "content": "print added"},
        "UpdateNotebookCell": {"cellId": cell, "content": "print changed"},
    }
    return [ToolCall(f"call_{name}", name, {**arguments[name], **more}) for name in ALL]


def expected_system(scenario: Scenario) -> str:
    """The whole prompt as it was reviewed; without a notebook, all that stands before its part."""
    text = (GOLDEN / f"{scenario.mode}.md").read_text(encoding="utf-8").removesuffix("\n")
    return text if scenario.about else text.partition("\n\n# The attached notebook")[0]


def told_of_references(scenario: Scenario) -> list[str]:
    """What the model is told of the two tools that the prompt names."""
    lines = []
    for reference, tool in (("runNotebookCells", ALL[2]), ("getCellOutputs", ALL[1])):
        if tool in scenario.tools:
            lines.append(f"- #{reference}: the tool {tool}")
        elif tool in CHANGING and scenario.mode != "agent":
            lines.append(
                f"- #{reference}: not available. Mode `{scenario.mode}` does not allow to use "
                f"{tool}. Switch to mode `agent`."
            )
        else:
            lines.append(
                f"- #{reference}: not available. {tool} needs a notebook that is attached and "
                "open in the active editor."
            )
    return lines


def refusal(scenario: Scenario, tool: str) -> str | None:
    """The code that a call is refused with; None if it is carried out."""
    if tool in scenario.tools:
        return None
    is_mode = tool in CHANGING and scenario.mode != "agent"
    return "MODE_FORBIDS" if is_mode else "TOOL_UNAVAILABLE"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("scenario", TABLE, ids=str)
async def test_what_leaves_and_what_is_done_in_every_scenario_and_mode(
    scenario: Scenario,
    dialect: Dialect,
    conversation: Make,
    folder: Path,
    kernels: list[MemoryKernel],
) -> None:
    mentions = [each for each in scenario.attached if isinstance(each, str)]
    prompt = " ".join(["#runNotebookCells #getCellOutputs see what it prints", *mentions])
    calls = everything(scenario)
    before = {name: (folder / name).read_bytes() for name in (A, B)}
    async with serve(dialect, [calls, "That is all."]) as server:
        chat = conversation(model_at(server))
        turn = await chat(
            prompt,
            scenario.mode,
            attached=[each for each in scenario.attached if not isinstance(each, str)],
            active=scenario.active,
            selected=(CELL[scenario.about],) if scenario.active else (),
        )
    sent, again = server.requests

    # The request that left
    tools = {tool.name: tool for tool in POSITRON if tool.name in scenario.tools}
    assert list(sent.tools) == list(scenario.tools)
    assert sent.descriptions == [tools[name].description for name in scenario.tools]
    assert sent.system == expected_system(scenario)
    check_context(sent, scenario, folder)
    asked, _, told = sent.said[-1][1].partition("\n\n")
    assert asked == prompt
    heading, *references = told.splitlines()
    assert heading.startswith("The person named these tools")
    assert references == told_of_references(scenario)
    assert (again.system, list(again.tools)) == (sent.system, list(sent.tools))

    # The events
    begun = turn.begun.to_json()
    assert begun["notebook"] == (scenario.about or None)
    assert bool(begun["reason"]) == (not scenario.about)
    assert [(each["name"], each["tool"]) for each in begun["tool_references"]] == [
        (name, tool if tool in scenario.tools else None)
        for name, tool in (("runNotebookCells", ALL[2]), ("getCellOutputs", ALL[1]))
    ]

    # What became of the calls, as the model is told and as it is on disk
    codes = [refusal(scenario, each.name) for each in calls]
    assert [answer.data.get("code") for answer in turn.answers] == codes
    assert [(name, failed) for name, _, failed in again.results] == [
        (each.id, code is not None) for each, code in zip(calls, codes, strict=True)
    ]
    after = {name: (folder / name).read_bytes() for name in (A, B)}
    changed = scenario.about if scenario.mode == "agent" else OFF
    assert [name for name in (A, B) if before[name] != after[name]] == [changed][: bool(changed)]
    assert len(kernels) == len(chat.asked) == bool(changed)
    if changed:
        cells = chat.cells(changed)
        assert cells[-1].source == "print added"
        (edited,) = [cell for cell in cells if cell.id == CELL[changed]]
        assert edited.source == "print changed"


def check_context(sent: Received, scenario: Scenario, folder: Path) -> None:
    """The state of the notebook is one message before the prompt, or is not there at all."""
    states = [text for _, text in sent.said if text.startswith("<notebook-state>")]
    assert "<notebook-info" not in sent.system
    if not scenario.about:
        assert [role for role, _ in sent.said] == ["user"]
        for content in ("print 42", "print 3", "notebook-info"):
            assert content not in str(sent.body["messages"])
        return
    assert [role for role, _ in sent.said] == ["user", "user"]
    (state,) = states
    assert state == sent.said[0][1]
    assert f'uri="{(folder / scenario.about).as_uri()}"' in state
    count = {A: 7, B: 30}[scenario.about]
    assert f'path="{scenario.about}"' in state
    assert f'cells="{count}" selected="1"' in state
    assert ("<all-cells>" in state) == (count < 20)
    assert ("<nearby-cells>" in state) == (count >= 20)
    selected = state.partition("<selected-cells>")[2].partition("</selected-cells>")[0]
    assert f'id="{CELL[scenario.about]}"' in selected
    assert 'selection="selected"' in selected
    assert {A: "print 42", B: "print 3"}[scenario.about] in selected


def test_the_table_is_whole() -> None:
    assert [(each.number, each.mode) for each in TABLE] == [
        (number, mode) for number in range(1, 9) for mode in ("ask", "edit", "agent")
    ]
    assert b"print 3" in notebooks.many(30)
