"""The test plans of notebook mode, step by step, on the HTTP requests that leave.

Each part stands for one plan. The model is a script behind a server; where it matters, it does
nothing but what the request in its hands allows: it calls a tool if it was given it, and else says
what its system prompt tells it to say. `test_how_to_test.py` has the same plans with the model that
is a program, and looks at what it answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.availability import FILE_TOOLS
from cellwright.assistant.models.model import ToolCall
from cellwright.assistant.prompt_files import OURS, read_prompt
from cellwright.assistant.requests import FileReference, ToolAttachment
from cellwright.tools.profiles.positron import POSITRON
from tests.conftest import ROOT
from tests.integration.assistant.model_servers import DIALECTS, model_at, serve, served
from tests.unit.assistant.chatting import NOTEBOOK
from tests.unit.assistant.test_injection import PAYLOADS, infected
from tests.unit.cli.calling import call, process
from tests.unit.tools.support import book

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cellwright.workspace.api.requests import Mode
    from tests.integration.assistant.model_servers import Dialect, Received, Step
    from tests.memory_kernel import MemoryKernel
    from tests.unit.assistant.chatting import Conversation, Turn

    Make = Callable[..., Conversation]
    Ask = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("empty_keyring")
both = pytest.mark.parametrize("dialect", DIALECTS)

GOLDEN = ROOT / "tests" / "unit" / "assistant" / "golden"
READING = ["GetNotebookCells", "GetCellOutputs"]
CHANGING = ["RunNotebookCells", "AddNotebookCell", "UpdateNotebookCell"]
ALL = [*READING, *CHANGING]
MODES: tuple[Mode, ...] = ("ask", "edit", "agent")
NOT_AGENT: tuple[Mode, ...] = ("ask", "edit")
CELLS = ("intro", "load", "sum", "results", "plot", "later", "notes")


def cells(*names: str) -> ToolCall:
    return ToolCall("cells", "GetNotebookCells", {"cellIds": list(names)} if names else {})


def outputs(name: str) -> ToolCall:
    return ToolCall("outputs", "GetCellOutputs", {"cellId": name})


def run(name: str) -> ToolCall:
    return ToolCall("run", "RunNotebookCells", {"cellIds": [name]})


def update(name: str, content: str) -> ToolCall:
    return ToolCall("update", "UpdateNotebookCell", {"cellId": name, "content": content})


def add(kind: str, content: str, index: int = -1) -> ToolCall:
    return ToolCall("add", "AddNotebookCell", {"type": kind, "index": index, "content": content})


def willing(call: ToolCall) -> Callable[[Received], Step]:
    """A model that calls a tool if it has it, and else suggests what its prompt tells it to."""

    def step(request: Received) -> Step:
        if call.name in request.tools:
            return call
        (other,) = re.findall(r"suggest to switch to (\w+ mode)", " ".join(request.system.split()))
        return f"I cannot do that here. Switch to {other}."

    return step


async def held(
    make: Make, prompt: str, mode: Mode, *script: Any, dialect: Dialect = "openai", **more: Any
) -> tuple[list[Received], Turn, Conversation]:
    """A turn about the notebook that is attached by its name: what left, what came, and the chat."""
    options = {"tools": more.pop("tools")} if "tools" in more else {}
    about: dict[str, Any] = {"attached": (), **more}
    async with serve(dialect, script) as server:
        chat = make(model_at(server), **options)
        turn = await chat(prompt, mode, **about)
    return server.requests, turn, chat


def result(request: Received, name: str) -> tuple[str, bool]:
    """What a call came back with, and whether it is marked as a failure."""
    ((text, failed),) = [
        (text, failed) for each, text, failed in request.results if each.startswith(name)
    ]
    return text, failed


def named(request: Received) -> list[str]:
    """The lines about the tools that the person named."""
    return [line for line in request.said[-1][1].splitlines() if line.startswith("- #")]


# --- Test 1: Ask mode, and Test 2: Edit mode -----------------------------------------------------


@both
@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_only_the_reading_tools_leave(
    dialect: Dialect, mode: Mode, conversation: Make
) -> None:
    (sent,), turn, _ = await held(conversation, "hello @sales.ipynb", mode, "ok", dialect=dialect)
    assert list(sent.tools) == READING
    assert not any(name in json.dumps(sent.body["tools"]) for name in CHANGING)
    assert turn.begun.to_json()["tools"] == READING
    assert not any(f"`{name}`" in sent.system for name in CHANGING)
    assert "In this mode the notebook is read-only." in " ".join(sent.system.split())


@both
async def test_selected_cells_leave_with_their_status(dialect: Dialect, conversation: Make) -> None:
    """And the same after a run: what the kernel did is told with the next request."""
    async with serve(dialect, [run("load"), "ran", "ok"]) as server:
        chat = conversation(model_at(server))
        await chat("run it")
        await chat("and now?", "ask", selected=("plot", "intro"), editing="load")
    state = server.last.said[0][1]
    section = state.partition("<selected-cells>")[2].partition("</selected-cells>")[0]
    told = {
        found["id"]: found
        for found in (
            dict(re.findall(r'([\w-]+)="([^"]*)"', line)) for line in section.split("\n<")
        )
        if "id" in found
    }
    assert [(name, cell["selection"]) for name, cell in told.items()] == [
        ("intro", "selected"),
        ("load", "active"),
        ("plot", "selected"),
    ]
    assert {name for name, cell in told.items() if "execution" not in cell} == {"intro"}
    load, plot = told["load"], told["plot"]
    assert (load["execution"], load["order"], load["last-run"]) == ("idle", "1", "succeeded")
    assert int(load["duration-ms"]) >= 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", load["ended"])
    assert (plot["order"], plot["last-run"], plot["has-output"]) == ("4", "failed", "yes")
    assert 'kernel="memory" language="script"' in state
    for content in ("print 42", "raise NameError y", "What we sold."):
        assert state.count(content) == 1
    others = re.findall(r'id="(\w+)" type="\w+" selection="unselected"', state)
    assert others == ["sum", "results", "later", "notes"]
    labels = re.findall(r'label="Cell (\d+)" index="(\d+)"', state)
    assert {int(label) - int(index) for label, index in labels} == {1}


async def test_cells_that_run_and_wait_now_leave_as_such(conversation: Make, folder: Path) -> None:
    (folder / NOTEBOOK).write_bytes(book("print 1", "sleep 60", "print 3"))
    async with serve("anthropic", ["ok"]) as server, asyncio.timeout(30):
        chat = conversation(model_at(server))
        agent = await chat.workspaces.get("agent")
        running = asyncio.Event()

        def progress(event: dict[str, Any]) -> None:
            if event.get("cell") == 1 and event.get("status") == "running":
                running.set()

        task = asyncio.ensure_future(agent.open(NOTEBOOK).run([0, 1, 2], progress=progress))
        await running.wait()
        await chat("how far is it?", "ask")
        task.cancel()
        await asyncio.wait([task])
    state = server.last.said[0][1]
    assert re.findall(r'execution="(\w+)"', state) == ["idle", "running", "pending"]
    assert 'kernel="memory"' in state


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_what_does_cell_1_do_uses_get_notebook_cells(mode: Mode, conversation: Make) -> None:
    def answer(request: Received) -> str:
        text, _ = result(request, "cells")
        return "It is the title of `intro`." if "# Sales" in text else "I do not know."

    requests, turn, _ = await held(
        conversation, "What does cell 1 of @sales.ipynb do?", mode, willing(cells("intro")), answer
    )
    assert turn.called == ["GetNotebookCells"]
    assert result(requests[1], "cells")[1] is False
    assert turn.text == "It is the title of `intro`."


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_show_me_the_output_of_cell_2_uses_get_cell_outputs(
    mode: Mode, conversation: Make
) -> None:
    def answer(request: Received) -> str:
        return "It printed 42." if "42" in result(request, "outputs")[0] else "Nothing."

    prompt = "Show me the output of cell 2 of @sales.ipynb"
    requests, turn, _ = await held(conversation, prompt, mode, willing(outputs("load")), answer)
    assert turn.called == ["GetCellOutputs"]
    assert result(requests[1], "outputs")[1] is False
    assert turn.text == "It printed 42."


WISHES: list[tuple[Mode, str, ToolCall]] = [
    ("ask", "Run this cell", run("load")),
    ("edit", "Run this cell", run("load")),
    ("ask", "Update cell 3 to add error handling", update("sum", "x")),
    ("edit", "Update cell 3 to add error handling", update("sum", "x")),
    ("edit", "Add a cell", add("code", "x")),
]


@both
@pytest.mark.parametrize("wish", WISHES, ids=[f"{mode}-{call.id}" for mode, _, call in WISHES])
async def test_what_would_modify_is_answered_with_agent_mode(
    wish: tuple[Mode, str, ToolCall],
    dialect: Dialect,
    conversation: Make,
    kernels: list[MemoryKernel],
) -> None:
    """Both by a model that keeps to its request, and, against one that does not, by the loop."""
    mode, prompt, call = wish
    chat = conversation()
    before = (chat.folder / NOTEBOOK).read_bytes()
    for step in (willing(call), call):
        async with serve(dialect, [step, "Sorry."]) as server:
            chat.chat.model = model_at(server)
            turn = await chat(f"{prompt} @sales.ipynb", mode, attached=(), selected=("load",))
        if turn.called:
            text, failed = result(server.requests[1], call.id)
            assert failed
            assert "MODE_FORBIDS" in text
            assert "Switch to mode `agent`" in text
        else:
            assert len(server.requests) == 1
            assert turn.text == "I cannot do that here. Switch to Agent mode."
        assert turn.called == ([] if callable(step) else [call.name])
        assert (chat.folder / NOTEBOOK).read_bytes() == before
    assert kernels == []


# --- Test 3: Agent mode --------------------------------------------------------------------------


@both
async def test_all_five_tools_leave_and_all_can_be_named(
    dialect: Dialect, conversation: Make
) -> None:
    references = [f"#{name[0].lower()}{name[1:]}" for name in ALL]
    prompt = f"{' '.join(references)} @sales.ipynb"
    (sent,), turn, _ = await held(conversation, prompt, "agent", "ok", dialect=dialect)
    assert list(sent.tools) == ALL
    assert named(sent) == [
        f"- {name}: the tool {tool}" for name, tool in zip(references, ALL, strict=True)
    ]
    told = turn.begun.to_json()["tool_references"]
    assert [(f"#{each['name']}", each["tool"]) for each in told] == list(
        zip(references, ALL, strict=True)
    )


@both
async def test_every_operation_can_be_carried_out(
    dialect: Dialect, conversation: Make, kernels: list[MemoryKernel]
) -> None:
    """Analyse, modify, run, add: each with its tool, and each result in the next request."""
    wishes = [
        cells(),
        outputs("plot"),
        update("plot", "print mended"),
        run("plot"),
        add("markdown", "## Summary"),
    ]
    script = [*map(willing, wishes), "All done."]
    requests, turn, chat = await held(
        conversation, "mend @sales.ipynb", "agent", *script, dialect=dialect
    )
    assert turn.called == [wish.name for wish in wishes]
    assert sorted(turn.called) == sorted(ALL)
    last = requests[-1]
    assert [failed for _, _, failed in last.results] == [False] * 5
    assert "NameError" in result(last, "outputs")[0]
    assert "mended" in result(last, "run")[0]
    assert chat.source("plot") == "print mended"
    assert (chat.cells()[-1].type, chat.cells()[-1].source) == ("markdown", "## Summary")
    assert len(kernels) == 1
    assert [operation.words for operation in chat.asked] == ["Run cell 5 of sales.ipynb?"]


@pytest.mark.parametrize(
    ("prompt", "wish"),
    [
        ("#runNotebookCells execute cell 1", run("load")),
        ("#addNotebookCell add a new markdown cell at the end", add("markdown", "# End")),
        ("#updateNotebookCell update cell 2", update("load", "print 43")),
    ],
)
async def test_naming_a_changing_tool_works(
    prompt: str, wish: ToolCall, conversation: Make
) -> None:
    requests, turn, chat = await held(
        conversation, f"{prompt} @sales.ipynb", "agent", willing(wish), "Done."
    )
    assert named(requests[0]) == [f"- {prompt.split(maxsplit=1)[0]}: the tool {wish.name}"]
    assert turn.called == [wish.name]
    assert result(requests[1], wish.id)[1] is False
    assert turn.done.text == "Done."
    if wish.name == "AddNotebookCell":
        assert chat.cells()[-1].source == "# End"
    elif wish.name == "UpdateNotebookCell":
        assert chat.source("load") == "print 43"
    else:
        assert turn.answers[0].data["executions"][0]["status"] == "ok"


# --- Inline in a cell ----------------------------------------------------------------------------


@both
@pytest.mark.parametrize("mode", MODES)
async def test_inline_it_has_its_own_place_prompt_and_cell(
    dialect: Dialect, mode: Mode, conversation: Make, kernels: list[MemoryKernel]
) -> None:
    """Without an attachment, in any mode; and what changes the notebook needs the chat pane."""
    before = (conversation().folder / NOTEBOOK).read_bytes()
    calls = [run("plot"), update("plot", "evil"), add("code", "evil")]
    requests, turn, chat = await held(
        conversation, "#runNotebookCells mend it", mode, calls, "```\nprint 7\n```",
        dialect=dialect, editing="plot", location="cell",
    )  # fmt: skip
    sent = requests[0]
    assert (turn.begun.location, turn.begun.notebook) == ("cell", NOTEBOOK)
    assert turn.begun.prompts == ["assistant.md", "inline.md"]
    assert sent.system == (GOLDEN / "inline.md").read_text(encoding="utf-8").strip()
    assert list(sent.tools) == READING
    (active,) = re.findall(r'id="(\w+)" type="code" selection="active"', sent.said[0][1])
    assert active == "plot"
    codes = [answer.data["code"] for answer in turn.answers]
    assert codes == ["TOOL_UNAVAILABLE" if mode == "agent" else "MODE_FORBIDS"] * 3
    assert [failed for _, _, failed in requests[1].results] == [True] * 3
    assert named(sent)[0].startswith("- #runNotebookCells: not available.")
    assert turn.done.proposal is not None
    assert (turn.done.proposal.cell, turn.done.proposal.new) == ("plot", "print 7")
    assert (chat.folder / NOTEBOOK).read_bytes() == before
    assert kernels == []


# --- Test 4: without an attached notebook --------------------------------------------------------


@both
@pytest.mark.parametrize("mode", MODES)
async def test_without_an_attachment_it_is_a_general_assistant(
    dialect: Dialect, mode: Mode, conversation: Make, folder: Path
) -> None:
    (folder / "a.py").write_text("x = 1\n", encoding="utf-8")
    look = ToolCall("look", "read", {"path": "a.py"})
    requests, turn, _ = await held(
        conversation, "what is in a.py?", mode, willing(look), "x is 1", dialect=dialect,
        tools=(*POSITRON, *FILE_TOOLS), selected=("load",),
    )  # fmt: skip
    sent = requests[0]
    assert list(sent.tools) == ["read", "search", *(["edit", "write"] if mode == "agent" else [])]
    assert f"# {mode.capitalize()} mode" in sent.system
    assert "attached notebook" not in sent.system
    assert sent.said == [("user", "what is in a.py?")]  # nothing of the notebook that is open
    assert not any(name in json.dumps(sent.body) for name in ("sales.ipynb", *ALL))
    assert "x = 1" in result(requests[1], "look")[0]
    assert turn.begun.notebook is None


# --- Test 5: prompt files ------------------------------------------------------------------------


@both
async def test_the_log_tells_the_file_whose_text_leaves(
    dialect: Dialect, conversation: Make, caplog: pytest.LogCaptureFixture
) -> None:
    files = {
        "ask": "notebook-mode-readonly.md",
        "edit": "notebook-mode-readonly.md",
        "agent": "notebook-mode-agent.md",
    }
    async with serve(dialect, ["ok"] * 3) as server:
        chat = conversation(model_at(server))
        for mode in MODES:
            caplog.clear()
            with caplog.at_level(logging.DEBUG, "cellwright.assistant"):
                await chat("hello @sales.ipynb", mode, attached=())
            loaded = re.findall(rf"mode {mode} loads (notebook-mode-\S+)", caplog.text)
            assert loaded == [files[mode]]
            parts = ["assistant.md", f"{mode}.md", files[mode]]
            bodies = [read_prompt(name, OURS / name).text.strip() for name in parts]
            assert server.last.system == "\n\n".join(bodies)  # as they are, with nothing decided
    assert OURS.parts[-2:] == ("prompts", "chat")


def test_prompt_files_hold_no_conditionals() -> None:
    files = sorted(OURS.glob("*.md"))
    assert len(files) >= 7
    conditional = re.compile(r"\{\{|\{%|\{#|<%|\$\{|@if\b|<if\b|\[\[", re.IGNORECASE)
    assert [path.name for path in files if conditional.search(path.read_text("utf-8"))] == []


# --- Test 6: references --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", NOT_AGENT)
@pytest.mark.parametrize(
    ("prompt", "wish", "shown"),
    [
        ("#getNotebookCells show all cells", cells(), CELLS),
        ("#getNotebookCells show me all cells", cells(), CELLS),
        ("#getCellOutputs show outputs for cell 2", outputs("load"), ("42",)),
    ],
)
async def test_naming_a_reading_tool_works_in_ask_and_edit(
    mode: Mode, prompt: str, wish: ToolCall, shown: tuple[str, ...], conversation: Make
) -> None:
    requests, turn, _ = await held(
        conversation, f"{prompt} @sales.ipynb", mode, willing(wish), "There."
    )
    assert named(requests[0]) == [f"- {prompt.split(maxsplit=1)[0]}: the tool {wish.name}"]
    text, failed = result(requests[1], wish.id)
    assert not failed
    assert [each for each in shown if each not in text] == []
    assert turn.done.text == "There."


@both
@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_naming_a_changing_tool_elsewhere_brings_the_mode_to_switch_to(
    dialect: Dialect, mode: Mode, conversation: Make
) -> None:
    (sent,), turn, _ = await held(
        conversation, "#runNotebookCells execute cell @sales.ipynb", mode, willing(run("load")),
        dialect=dialect,
    )  # fmt: skip
    assert list(sent.tools) == READING
    (line,) = named(sent)
    assert line.startswith("- #runNotebookCells: not available.")
    assert "Switch to mode `agent`" in line
    assert turn.text.endswith("Switch to Agent mode.")
    (reference,) = turn.begun.to_json()["tool_references"]
    assert (reference["name"], reference["tool"]) == ("runNotebookCells", None)
    assert "agent" in reference["note"]


@both
@pytest.mark.parametrize("mode", MODES)
async def test_an_attached_tool_enters_the_prompt_and_the_model_decides(
    dialect: Dialect, mode: Mode, conversation: Make
) -> None:
    chat = conversation()
    _, offer = await chat.chat.look(chat.request("", mode))
    listed = [attachment.name for attachment, _ in offer.attachable()]
    tools = ALL if mode == "agent" else READING
    assert [f"{name[0].upper()}{name[1:]}" for name in listed] == tools
    attached = [FileReference(NOTEBOOK), *map(ToolAttachment, listed)]
    (sent,), turn, _ = await held(
        conversation, "look", mode, "I would rather not.", dialect=dialect, attached=attached
    )
    assert named(sent) == [
        f"- #{name}: the tool {tool}" for name, tool in zip(listed, tools, strict=True)
    ]
    assert sent.said[-1][1].startswith("look\n\nThe person named these tools")
    assert list(sent.tools) == tools
    assert "tool_choice" not in sent.body or sent.body["tool_choice"] in ("auto", {"type": "auto"})
    assert turn.called == []  # a reference is a hint


@pytest.mark.parametrize("mode", NOT_AGENT)
async def test_a_reference_forces_nothing_and_allows_nothing(
    mode: Mode, conversation: Make, kernels: list[MemoryKernel]
) -> None:
    """The model takes another tool than the one that was named, and the named one is refused."""
    prompt = "#runNotebookCells #updateNotebookCell #addNotebookCell @sales.ipynb"
    calls = [cells("load"), run("load"), update("load", "evil"), add("code", "evil")]
    requests, turn, chat = await held(conversation, prompt, mode, calls, "ok")
    assert list(requests[0].tools) == READING
    assert [failed for _, _, failed in requests[1].results] == [False, True, True, True]
    codes = [answer.data.get("code") for answer in turn.answers]
    assert codes == [None, *["MODE_FORBIDS"] * 3]
    assert chat.source("load") == "print 42"
    assert (kernels, chat.asked) == ([], [])


@both
def test_the_events_of_the_command_line_have_the_references(
    dialect: Dialect, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: the command, for one kind of server as a process, and what it sent."""
    start = process if dialect == "openai" else call
    before = (folder / NOTEBOOK).read_bytes()
    prompt = "#getNotebookCells #runNotebookCells run cell 2"
    with served(dialect, [[cells(), run("load")], "Switch to Agent mode."]) as server:
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", f"{dialect}:scripted")
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_BASE_URL", server.base_url)
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        answer = start("chat", NOTEBOOK, "--json", "--mode", "ask", "-p", prompt)
    assert answer.code == 0, answer.err
    events = [json.loads(line) for line in answer.text.splitlines()]
    begun = events[0]
    assert [(each["name"], each["tool"]) for each in begun["tool_references"]] == [
        ("getNotebookCells", "GetNotebookCells"),
        ("runNotebookCells", None),
    ]
    assert begun["tools"] == list(server.requests[0].tools) == READING
    assert [line.split(":")[0] for line in named(server.requests[0])] == [
        "- #getNotebookCells",
        "- #runNotebookCells",
    ]
    results = [event for event in events if event["event"] == "tool_result"]
    assert [each["is_error"] for each in results] == [False, True]
    assert events[-1]["text"] == "Switch to Agent mode."
    assert (folder / NOTEBOOK).read_bytes() == before


@pytest.mark.parametrize(
    ("dialect", "inside"), [("openai", "false"), ("openai", "true"), ("anthropic", "true")]
)
def test_the_context_is_a_message_of_its_own_unless_a_setting_puts_it_into_the_system_prompt(
    dialect: Dialect, inside: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(dialect, ["ok"]) as server:
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_MODEL", f"{dialect}:scripted")
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_BASE_URL", server.base_url)
        monkeypatch.setenv("CELLWRIGHT_ASSISTANT_CONTEXT_IN_SYSTEM_PROMPT", inside)
        monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        answer = call("chat", folder / NOTEBOOK, "--root", folder, "-p", "hello")
    assert answer.code == 0, answer.err
    (sent,) = server.requests
    prompt = (GOLDEN / "ask.md").read_text(encoding="utf-8").strip()
    state = sent.system.removeprefix(prompt) if inside == "true" else sent.said[0][1]
    assert state.strip().startswith("<notebook-state>")
    assert state.endswith("</notebook-state>")
    assert (sent.system == prompt) == (inside == "false")
    assert len(sent.said) == {"true": 1, "false": 2}[inside]
    assert sent.said[-1] == ("user", "hello")


# --- What all of it rests on ---------------------------------------------------------------------


@both
async def test_no_payload_in_a_notebook_changes_the_shape_of_a_request(
    dialect: Dialect, conversation: Make, folder: Path, kernels: list[MemoryKernel]
) -> None:
    """Whatever stands in cells, outputs, names and metadata: no role, no tool, no result is forged."""
    payloads = ["harmless", *PAYLOADS]
    calls: list[Any] = [cells(), outputs("a"), run("a"), update("a", "evil"), add("code", "evil")]
    shapes = []
    async with serve(dialect, [calls, "done"] * len(payloads)) as server:
        chat = conversation(model_at(server))
        for payload in payloads:
            (folder / NOTEBOOK).write_bytes(infected(payload))
            await chat("explain it", "ask", selected=(0, 3))
            assert (folder / NOTEBOOK).read_bytes() == infected(payload)
            chat.chat.history.clear()
            first, second = server.requests[-2:]
            shapes.append((shape(first), shape(second), [bad for _, _, bad in second.results]))
    assert len(shapes) > 40
    odd = [payload for payload, each in zip(payloads, shapes, strict=True) if each != shapes[0]]
    assert odd == []
    assert shapes[0][2] == [False, False, True, True, True]
    assert (kernels, chat.asked) == ([], [])


def shape(request: Received) -> tuple[object, ...]:
    """All of a request but what was said in it by a user, and what tools answered."""
    parts = [
        (
            message["role"],
            [block["type"] for block in message["content"]]
            if isinstance(message["content"], list)
            else "text",
        )
        for message in request.body["messages"]
    ]
    rest = {name: value for name, value in request.body.items() if name != "messages"}
    return parts, request.system, json.dumps(rest, sort_keys=True), request.calls


def test_nothing_below_the_assistant_knows_of_it() -> None:
    """Notebook mode is no part of documents, kernels, workspaces or tools, but built on them."""
    source = ROOT / "src"
    rooms = {
        path.relative_to(source).parts[1]
        for path in source.glob("cellwright*/**/*.py")
        if "cellwright.assistant" in path.read_text(encoding="utf-8")
    }
    assert rooms <= {"acp.py", "app", "assistant", "cli", "mcp", "server"}
    assert "assistant" in rooms
