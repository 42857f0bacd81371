"""The assistant in JupyterLab, used by clicking and typing only."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from cellwright.assistant.models.model import ToolCall
from tests.browser.chatting import ALL, CHANGING, READING, Panel
from tests.browser.conftest import LAB, cells, read_saved, start_server, texts
from tests.engines import wait_for
from tests.integration.assistant.model_servers import Holds, Pauses
from tests.integration.assistant.wire import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.browser.conftest import Server
    from tests.integration.assistant.model_servers import ModelServer, Received, Step

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(180)
MODES = ("Ask", "Edit", "Agent")


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(f"call-{name}", name, arguments)


def willing(wanted: ToolCall) -> Callable[[Received], Step]:
    """A model that calls a tool if it has it, and else says what its prompt tells it to say."""

    def step(request: Received) -> Step:
        if wanted.name in request.tools:
            return wanted
        (other,) = re.findall(r"suggest to switch to (\w+ mode)", " ".join(request.system.split()))
        return f"I cannot do that here. Switch to {other}."

    return step


def test_a_first_time_user_reads_and_runs_cells_without_any_key(
    server: Server, open_page: OpenPage
) -> None:
    path = server.write("newcomer.ipynb", "x = 6 * 7\nprint(x)", "x + 1")
    page = open_page("newcomer.ipynb")
    panel = Panel.open(page)
    panel.expect_mode(False, "not attached to the chat")
    expect(panel.node.locator(".cw-no-model")).to_contain_text("Another model")
    panel.button("Attach newcomer.ipynb").click()
    panel.expect_mode(True, "newcomer.ipynb")
    panel.ask("#getNotebookCells show all cells")
    panel.expect_answer(re.compile(r"Cell 1.*x = 6 \* 7.*Cell 2", re.DOTALL))
    panel.choose_mode("Agent")
    expect(panel.node).to_contain_text("asks before it runs")
    turn = panel.ask("#runNotebookCells run cell 1")
    expect(turn.locator(".cw-question")).to_contain_text("Run cell 1 of newcomer.ipynb?")
    assert cells(page)["a"]["count"] is None
    panel.allow()
    panel.expect_answer("ok")
    expect(turn.locator(".cw-card").first).to_have_attribute("data-status", "ok")
    assert texts(cells(page)["a"]) == "42\n"
    assert read_saved(path)[0]["execution_count"] == 1
    panel.new()
    panel.button("#runNotebookCells run cell 1").click()  # an example
    expect(panel.prompt).to_have_value("#runNotebookCells run cell 1")
    expect(panel.prompt).to_be_focused()
    expect(panel.node.get_by_role("radio", name="Agent")).to_be_checked()
    page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
    page.keyboard.press("Control+Alt+k")
    page.keyboard.type("make it nicer")
    page.keyboard.press("Enter")
    expect(page.locator(".cw-inline")).to_contain_text("choose one in the panel")


@pytest.mark.all
def test_the_eight_scenarios_of_notebook_mode(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("one.ipynb", "1")
    server.write("two.ipynb", "2")
    (server.folder / "plain.txt").write_text("nothing")
    page = open_page("one.ipynb")
    panel = Panel.open(page)
    panel.choose_model()
    for name in ("two.ipynb", "plain.txt"):
        page.locator(".jp-DirListing-item", has_text=name).dblclick()
        page.locator(".lm-TabBar-tab.lm-mod-current", has_text=name).wait_for()
    table = [
        (1, ["one.ipynb"], "one.ipynb", MODES[:1]),
        (2, ["one.ipynb"], "one.ipynb", MODES[1:2]),
        (3, ["one.ipynb"], "one.ipynb", MODES[2:]),
        (4, ["one.ipynb"], "two.ipynb", MODES),
        (5, [], "one.ipynb", MODES),
        (6, ["one.ipynb", "two.ipynb"], "two.ipynb", MODES[:2]),
        (7, ["one.ipynb", "two.ipynb"], "two.ipynb", MODES[2:]),
        (8, ["one.ipynb", "two.ipynb"], "plain.txt", MODES),
    ]
    for number, attached, active, modes in table:
        panel.new()
        panel.choose_model()
        page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text=active).click()
        for name in attached:
            panel.attach(name)
        is_on = active in attached
        for mode in modes:
            panel.choose_mode(mode)
            panel.expect_mode(is_on, active if is_on else "")
            tools = ALL if mode == "Agent" else READING
            offered = [each for each in panel.list_tools() if each in ALL]
            assert offered == (tools if is_on else []), (number, mode, offered)
            model.add("understood")
            panel.ask("what is there?")
            panel.expect_answer("understood")
            sent = [name for name in model.last.tools if f"#{name[0].lower()}{name[1:]}" in ALL]
            expected = [f"{name[1].upper()}{name[2:]}" for name in tools] if is_on else []
            assert sent == expected, (number, mode)


@pytest.mark.all
@pytest.mark.parametrize("mode", MODES[:2])
def test_ask_and_edit_read_and_suggest_agent_mode(
    server: Server, open_page: OpenPage, model: ModelServer, mode: str
) -> None:
    """Tests 1 and 2 of the plan."""
    name = f"plan-{mode}.ipynb"
    server.write(name, "rows = [1, 2]", "print(len(rows))", "rows[5]")
    page = open_page(name)
    page.locator(".jp-Cell").nth(1).locator(".cm-content").click()
    panel = Panel.open(page)
    panel.choose_model()
    panel.attach(name)
    panel.choose_mode(mode)
    panel.expect_mode(True, name)
    assert panel.list_tools() == READING
    model.add(call("GetNotebookCells", cellIds=["a"]), "It makes a list, see `a`.")
    panel.ask("What does cell 1 do?")
    panel.expect_answer("It makes a list")
    sent = model.requests[0]
    assert list(sent.tools) == ["GetNotebookCells", "GetCellOutputs"]
    said = "\n".join(text for _, text in sent.said)
    assert "print(len(rows))" in said
    assert 'label="Cell 2" index="1" id="b" type="code" selection="active"' in said
    for tool, request in (
        (call("RunNotebookCells", cellIds=["a"]), "Run this cell"),
        (
            call("UpdateNotebookCell", cellId="c", content="rows[0]"),
            "Update cell 3 to add error handling",
        ),
    ):
        model.add(willing(tool))
        panel.ask(request)
        panel.expect_answer("Switch to Agent mode")
    model.add(call("GetCellOutputs", cellId="b"), "There is nothing.")
    panel.ask("Show me the output of cell 2")
    panel.expect_answer("There is nothing.")
    for tool, request in (
        (call("GetNotebookCells"), "#getNotebookCells show me all cells"),
        (call("GetCellOutputs", cellId="b"), "#getCellOutputs show outputs for cell 2"),
    ):
        model.add(tool, f"Done with {tool.name}.")
        turn = panel.ask(request)
        panel.expect_answer(f"Done with {tool.name}.")
        named = f"{tool.name[0].lower()}{tool.name[1:]}"
        assert f"- #{named}: the tool {tool.name}" in model.last.said[-1][1]
        expect(turn.locator(".cw-card")).to_have_attribute("data-status", "ok")
    # The link of an id goes to its cell.
    panel.turns.first.locator(".cw-text .cw-link", has_text="a").click()
    expect(page.locator(".jp-Cell").nth(0)).to_have_class(re.compile("jp-mod-active"))


@pytest.mark.all
def test_agent_mode_changes_runs_and_adds_cells_and_a_turn_is_undone(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    """Test 3 of the plan, with the review bar."""
    server.write("agent.ipynb", "x = 1", "print(x)")
    page = open_page("agent.ipynb")
    panel = Panel.open(page)
    panel.choose_model()
    panel.attach("agent.ipynb")
    panel.choose_mode("Agent")
    panel.expect_mode(True)
    assert panel.list_tools() == ALL
    model.add(
        call("UpdateNotebookCell", cellId="a", content="x = 41 + 1"),
        call("RunNotebookCells", cellIds=["a", "b"]),
        call("AddNotebookCell", type="markdown", index=-1, content="# The end"),
        "Done: cell 1 has another number.",
    )
    turn = panel.ask("Make it 42, run it, and add an end")
    question = turn.locator(".cw-question")
    expect(question).to_contain_text("Run 2 cells (1, 2) of agent.ipynb?")
    for source in ("x = 41 + 1", "print(x)"):
        expect(question).to_contain_text(source)
    panel.allow()
    panel.expect_answer("Done: cell 1 has")
    found = cells(page)
    assert found["a"]["source"] == "x = 41 + 1"
    assert texts(found["b"]) == "42\n"
    assert [cell["source"] for cell in found.values()][-1] == "# The end"
    cards = turn.locator(".cw-card:not(.cw-question)[data-status]")
    expect(cards).to_have_count(3)
    assert [card.get_attribute("data-status") for card in cards.all()] == ["ok"] * 3
    cards.nth(1).locator("summary").click()
    expect(cards.nth(1)).to_contain_text("42")
    expect(cards.nth(1).locator(".cw-status")).to_have_text(re.compile(r"^done, [\d.]+ m?s$"))
    expect(cards.nth(2).locator(".cw-link")).to_have_text("cell 3")  # the one it added
    bar = turn.locator(".cw-review-bar")
    expect(bar.locator(".cw-link")).to_have_text(["cell 1", "cell 3"])
    expect(page.locator(".jp-Cell .cw-review")).to_have_count(2)  # the marks of the tab
    bar.get_by_role("button", name="Diff").click()
    expect(bar.locator(".cw-plus").first).to_contain_text("41 + 1")
    bar.get_by_role("button", name="Undo", exact=True).click()
    expect(bar).to_contain_text("were undone")
    assert [cell["source"] for cell in cells(page).values()] == ["x = 1", "print(x)"]
    for tool, request in (
        (call("RunNotebookCells", cellIds=["a"]), "#runNotebookCells execute cell 1"),
        (
            call("AddNotebookCell", type="markdown", index=-1, content="# Z"),
            "#addNotebookCell add a new markdown cell at the end",
        ),
        (call("UpdateNotebookCell", cellId="b", content="x"), "#updateNotebookCell update cell 2"),
    ):
        model.add(tool, f"Done with {tool.name}.")
        turn = panel.ask(request)
        if tool.name == "RunNotebookCells":
            panel.allow()
        panel.expect_answer(f"Done with {tool.name}.")
        named = f"{tool.name[0].lower()}{tool.name[1:]}"
        assert f"- #{named}: the tool {tool.name}" in model.last.said[-1][1]
        expect(turn.locator(".cw-card").first).to_have_attribute("data-status", "ok")
    assert [cell["source"] for cell in cells(page).values()] == ["x = 1", "x", "# Z"]


@pytest.mark.all
def test_without_an_attached_notebook_it_is_a_general_assistant(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    """Test 4 of the plan; and test 5: the prompt files of each mode."""
    server.write("alone.ipynb", "secret_word = 1")
    panel = Panel.open(open_page("alone.ipynb"))
    panel.choose_model()
    for mode in MODES:
        panel.choose_mode(mode)
        panel.expect_mode(False, "not attached")
        assert not set(panel.list_tools()) & set(ALL)
        model.add("Hello.")
        panel.ask("hello")
        panel.expect_answer("Hello.")
        assert not {"GetNotebookCells", "RunNotebookCells"} & set(model.last.tools)
        assert "secret_word" not in str(model.last.body)
    panel.attach("alone.ipynb")
    panel.button("Context").click()
    for mode in MODES:
        panel.choose_mode(mode)
        files = "notebook-mode-agent" if mode == "Agent" else "notebook-mode-readonly"
        preview = panel.node.get_by_label("What the model will see")
        expect(preview).to_contain_text(files)
        expect(preview).to_contain_text("secret_word")
    expect(panel.node.get_by_role("button", name="Context")).to_contain_text("Context (")
    # What is shown is what is sent, to the byte.
    panel.prompt.click()
    panel.page.keyboard.type("and now?")
    expect(preview.locator("pre", has_text="and now?")).to_be_attached()
    sections = preview.locator("section")
    shown = sections.locator("pre").all_text_contents()
    model.add("Now.")
    panel.page.keyboard.press("Enter")
    panel.expect_answer("Now.")
    body = model.last.body
    messages = [text_of(message["content"]) for message in body["messages"]]
    assert shown[: len(messages)] == messages
    schemas = [tool["function"]["parameters"] for tool in body["tools"]]
    assert [json.loads(each) for each in shown[len(messages) :]] == schemas
    expect(panel.node.get_by_role("button", name="Context")).to_have_text("Context")


@pytest.mark.all
def test_tools_are_named_with_a_sign_or_attached(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    """Test 6 of the plan."""
    server.write("tools.ipynb", "1 + 1", "2")
    panel = Panel.open(open_page("tools.ipynb"))
    panel.choose_model()
    panel.attach("tools.ipynb")
    for mode in MODES[:2]:
        panel.choose_mode(mode)
        panel.expect_mode(True)
        model.add(willing(call("RunNotebookCells", cellIds=["a"])))
        panel.ask("#runNotebookCells execute cell")
        panel.expect_answer("Switch to Agent mode")
        assert "#runNotebookCells: not available" in model.last.said[-1][1]
        panel.button("Attach").click()
        listed = panel.node.locator(".cw-attach").get_by_role("option")
        expect(listed.filter(has_text="#getNotebookCells")).to_be_visible()
        assert not [text for text in listed.all_inner_texts() if text.split()[0] in CHANGING]
        panel.button("Attach").click()
    panel.choose_mode("Agent")
    panel.expect_mode(True)
    expect(panel.look).to_have_attribute("title", re.compile("updateNotebookCell"))
    panel.button("Attach").click()
    panel.page.keyboard.type("updateNote")
    expect(panel.node.locator(".cw-attach li").first).to_contain_text("#updateNotebookCell")
    panel.page.keyboard.press("Enter")
    expect(panel.chip("#updateNotebookCell")).to_be_visible()
    model.add(call("UpdateNotebookCell", cellId="b", content="3"), "Cell 2 is new.")
    panel.ask("update cell 2")
    panel.expect_answer("Cell 2 is new.")
    assert "- #updateNotebookCell: the tool UpdateNotebookCell" in model.requests[-2].said[-1][1]
    assert cells(panel.page)["b"]["source"] == "3"
    expect(panel.last.locator(".cw-prompt .cw-chip").last).to_have_text("#updateNotebookCell")
    expect(panel.chip("#updateNotebookCell")).to_have_count(0)


# --- what a person does beside the plans ---------------------------------------------------------


def start_about(page: Page, name: str, mode: str) -> Panel:
    """Open the panel with the scripted model, about a notebook."""
    panel = Panel.open(page)
    panel.choose_model()
    panel.attach(name)
    panel.choose_mode(mode)
    panel.expect_mode(True, name)
    return panel


@pytest.mark.all
def test_code_of_an_answer_gets_into_the_notebook_by_a_click(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("blocks.ipynb", "x = 1", "x")
    page = open_page("blocks.ipynb")
    page.locator(".jp-Cell").nth(0).locator(".jp-InputPrompt").click()
    panel = start_about(page, "blocks.ipynb", "Edit")
    model.add("Use this:\n\n```python\nx = [1 < 2]\n```\n\nand cell 2 stays.")
    turn = panel.ask("make it a list")
    panel.expect_answer("stays")
    expect(turn.locator(".cw-state")).to_have_text("120 tokens in, 30 out")
    # Pages that come over plain HTTP from another machine have no such clipboard.
    page.evaluate("() => Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    turn.get_by_role("button", name="Copy").click()
    expect(turn.get_by_role("button", name="Copied")).to_be_visible()
    panel.prompt.click()
    page.keyboard.press("Control+v")
    expect(panel.prompt).to_have_value("x = [1 < 2]")
    panel.prompt.fill("")
    turn.get_by_role("button", name="Insert below").click()
    sources = lambda: [cell["source"] for cell in cells(page).values()]  # noqa: E731
    assert sources() == ["x = 1", "x = [1 < 2]", "x"]
    page.locator(".jp-Cell").nth(0).locator(".jp-InputPrompt").click()
    turn.get_by_role("button", name="Replace cell").click()
    assert sources() == ["x = [1 < 2]", "x = [1 < 2]", "x"]
    # Edit and send again: the old turn is forgotten.
    model.add("A tuple, then.")
    turn.get_by_role("button", name="Edit").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("make it a tuple")
    page.keyboard.press("Enter")
    panel.expect_answer("A tuple, then.")
    expect(panel.turns).to_have_count(1)
    assert [text for role, text in model.last.said if role == "user"][-1] == "make it a tuple"
    model.add("Again.")
    panel.last.get_by_role("button", name="Retry").click()
    panel.expect_answer("Again.")
    expect(panel.turns).to_have_count(1)


@pytest.mark.all
def test_input_is_asked_for_in_the_panel_and_a_run_is_stopped_there(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("input.ipynb", "name = input('Who? ')\nprint('I am', name)", "while True: pass")
    page = open_page("input.ipynb")
    panel = start_about(page, "input.ipynb", "Agent")
    model.add(call("RunNotebookCells", cellIds=["a"]), "It ran.")
    turn = panel.ask("run cell 1")
    panel.allow()
    turn.get_by_role("textbox", name="Who?").fill("Ada")
    page.keyboard.press("Enter")
    panel.expect_answer("It ran.")
    assert "I am Ada" in texts(cells(page)["a"])
    model.add(call("RunNotebookCells", cellIds=["b"]))
    turn = panel.ask("run cell 2")
    panel.allow()
    expect(turn.locator(".cw-card").first).to_contain_text("cell 2 running")
    expect(page.locator(".jp-Cell").nth(1).locator(".jp-InputPrompt")).to_contain_text("[*]")
    panel.button("Stop").click()
    expect(turn.locator(".cw-ending")).to_contain_text("Stopped.")
    expect(turn.locator(".cw-card").first).to_have_attribute("data-status", "stopped")


@pytest.mark.all
def test_conversations_are_listed_renamed_resumed_and_deleted(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    server.write("list.ipynb", "1")
    (server.folder / "notes.txt").write_text("x")
    page = open_page("list.ipynb")
    panel = Panel.open(page)
    panel.choose_model()
    page.locator(".jp-DirListing-item", has_text="notes.txt").hover()
    page.mouse.down()
    box = panel.node.locator(".cw-log").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 60, steps=20)
    page.mouse.up()  # a file that is dropped is attached
    expect(panel.chip("notes.txt")).to_be_visible()
    panel.chip("notes.txt").get_by_role("button").click()
    expect(panel.chip("notes.txt")).to_have_count(0)
    model.add("First answer.", "Second answer.")
    panel.ask("the first of two questions")
    panel.expect_answer("First answer.")
    panel.new()
    panel.choose_model()
    panel.ask("the second of two questions")
    panel.expect_answer("Second answer.")
    panel.button("the second of two questions").click()
    rows = panel.node.locator(".cw-list li")
    expect(rows.nth(1)).to_contain_text("the first of two questions")
    rows.nth(0).get_by_role("button", name="Rename").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("Renamed")
    page.keyboard.press("Enter")
    expect(rows.nth(0)).to_contain_text("Renamed")
    rows.nth(0).get_by_role("button", name="Delete").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Delete").click()
    expect(rows.filter(has_text="Renamed")).to_have_count(0)
    rows.filter(has_text="the first of two").get_by_role("button").first.click()
    panel.expect_answer("First answer.")
    # The chats of the terminal are the same ones.
    chat = [str(LAB / "python"), "-P", "-m", "cellwright", "chat"]
    said = [
        subprocess.check_output([*chat, *more], cwd=server.folder, text=True)
        for more in (["list.ipynb", "-p", "what does cell 1 of list.ipynb do?"], ["--list"])
    ]
    assert "the first of two questions" in said[1]
    panel.node.locator(".cw-title").click()
    rows.filter(has_text="what does cell 1 of").get_by_role("button").first.click()
    expect(panel.turns).to_have_count(1)
    panel.expect_answer("Cell 1 (a) is a code cell")


@pytest.mark.all
def test_a_reload_in_the_middle_of_a_turn_draws_it_again_and_goes_on(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    path = server.write("reload.ipynb", "x = 1")
    page = open_page("reload.ipynb")
    panel = start_about(page, "reload.ipynb", "Agent")
    model.add(
        Pauses(["I am in the mid"], ["dle of a *word*."]),
        ["I begin.", call("UpdateNotebookCell", cellId="a", content="x = 2")],
        call("RunNotebookCells", cellIds=["a"]),
        "I have ended.",
    )
    panel.ask("tell me")
    expect(panel.last.locator(".cw-answer")).to_have_text("I am in the mid")
    page.reload()
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.hasClass('cw-shared')")
    panel = Panel(page)
    expect(panel.last.locator(".cw-answer")).to_have_text("I am in the mid")
    expect(panel.button("Stop")).to_be_visible()
    model.go_on()
    panel.expect_answer("I am in the middle of a word.")
    expect(panel.last.locator(".cw-answer em")).to_have_text("word")
    panel.ask("do it")
    expect(panel.last.locator(".cw-question")).to_be_visible()
    page.reload()
    page.wait_for_function("() => window.jupyterapp?.shell?.currentWidget?.hasClass('cw-shared')")
    panel = Panel(page)
    expect(panel.last.locator(".cw-answer")).to_contain_text("I begin.")
    expect(panel.chip("reload.ipynb")).to_be_visible()
    page.add_style_tag(content=".Toastify, .jp-toast-message { display: none !important }")
    panel.allow()
    panel.expect_answer("I have ended.")
    assert len(model.requests) == 4
    expect(panel.last.locator(".cw-review-bar")).to_contain_text("Changed")
    assert read_saved(path)[0]["source"] == ["x = 2"]


@pytest.mark.all
def test_a_server_that_is_stopped_in_the_middle_is_said_and_so_is_what_was_done(
    browser: object, server: Server, model: ModelServer
) -> None:
    """The page says that it is lost; the turn says what it had changed, once there is a server."""
    folder = server.folder.parent / "stopped"
    folder.mkdir()
    type(server)(folder, "", "", folder).write("half.ipynb", "x = 1", "y = 1")
    command = (str(LAB / "python"), "-P", "-m", "cellwright", "lab", "--no-browser", "--")
    context = browser.new_context(viewport={"width": 1280, "height": 720})  # type: ignore[attr-defined]

    def open_there(own: Server) -> Page:
        page: Page = context.new_page()
        page.goto(f"{own.url}lab/tree/half.ipynb?token={own.token}&reset")
        page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.hasClass?.('cw-shared')", timeout=90_000
        )
        return page

    with start_server(folder, *command) as own:
        page = open_there(own)
        panel = start_about(page, "half.ipynb", "Agent")
        model.add(call("UpdateNotebookCell", cellId="a", content="x = 2"), Holds(["And now"]))
        panel.ask("change both cells")
        expect(panel.last.locator(".cw-answer")).to_contain_text("And now")
    expect(panel.node.locator(".cw-lost")).to_contain_text("cannot be reached")
    with start_server(folder, *command) as own:
        page = open_there(own)
        panel = Panel.open(page)
        panel.button("New conversation").first.click()
        panel.node.locator(".cw-list").get_by_text("change both cells").click()
        expect(panel.last.locator(".cw-state")).to_contain_text(
            re.compile("stopped", re.IGNORECASE)
        )
        expect(panel.last.locator(".cw-review-bar .cw-link")).to_have_text(["cell 1"])
        panel.last.get_by_role("button", name="Undo", exact=True).click()
        expect(panel.last.locator(".cw-review-bar")).to_contain_text("were undone")
        assert [cell["source"] for cell in cells(page).values()] == ["x = 1", "y = 1"]
    context.close()


@pytest.mark.all
def test_a_chat_in_a_cell_proposes_a_diff_that_is_refined_accepted_or_rejected(
    server: Server, open_page: OpenPage, model: ModelServer, agent: Any
) -> None:
    server.write("inline.ipynb", "total = 1 + 1", "1 / 0")
    page = open_page("inline.ipynb")
    page.set_viewport_size({"width": 1400, "height": 800})
    panel = Panel.open(page)
    panel.choose_model()
    first = page.locator(".jp-Cell").nth(0)
    first.locator(".cm-content").click()
    page.keyboard.press("Control+Alt+k")
    bar = first.locator(".cw-inline")
    expect(bar.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(bar).to_have_count(0)
    assert cells(page)["a"]["source"] == "total = 1 + 1"
    first.locator(".jp-InputPrompt").click()
    first.locator("[data-command='cellwright:cell-chat']").click()
    model.add(
        Pauses(["Here:\n\n```python\ntotal = 2\n"], ["```\n"]),
        "Then:\n\n```python\ntotal = 2\nprint(total)\n```\n",
    )
    bar.get_by_role("textbox").click()
    page.keyboard.type("dd simplify")  # D D would delete the cell
    page.keyboard.press("Enter")
    expect(bar.locator(".cw-minus")).to_have_text("- total = 1 + 1")
    expect(bar.locator(".cw-plus")).to_have_text("+ total = 2")
    expect(bar.get_by_role("button", name="Stop")).to_be_visible()  # there is more to come
    expect(bar.get_by_role("button", name="Accept")).to_be_hidden()
    model.go_on()
    expect(bar.get_by_role("button", name="Refine")).to_be_visible()
    assert cells(page)["a"]["source"] == "total = 1 + 1"
    assert set(model.last.tools) <= {"GetNotebookCells", "GetCellOutputs"}
    bar.get_by_role("textbox").click()
    page.keyboard.type("and print it")
    page.keyboard.press("Enter")
    expect(bar.locator(".cw-plus")).to_have_text(["+ total = 2", "+ print(total)"])
    bar.get_by_role("button", name="Accept").click()
    expect(bar).to_have_count(0)
    assert cells(page)["a"]["source"] == "total = 2\nprint(total)"
    # After an error: a quiet offer.
    second = page.locator(".jp-Cell").nth(1)
    second.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(second.locator(".cw-offer")).to_be_visible()
    model.add("```python\n1 / 1\n```")
    second.get_by_role("button", name="Fix").click()
    expect(second.locator(".cw-inline .cw-plus")).to_have_text("+ 1 / 1")
    assert "ZeroDivisionError" in model.last.said[-1][1]
    second.locator(".cw-inline").get_by_role("button", name="Reject").click()
    expect(second.locator(".cw-inline")).to_have_count(0)
    assert cells(page)["b"]["source"] == "1 / 0"
    model.add("You divide by zero.")
    second.get_by_role("button", name="Explain").click()
    panel.expect_answer("You divide by zero.")
    expect(panel.last.locator(".cw-words")).to_contain_text(
        "Explain the error of cell 2: ZeroDivisionError"
    )
    # What was accepted in the cell is not asked for again; what others do there is.
    agent.open("inline.ipynb").edit([{"op": "replace", "cell": "b", "source": "2 / 1"}])
    expect(second.locator(".cw-review")).to_be_visible()
    assert first.locator(".cw-review").count() == 0


PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6o"
    "AAAAAElFTkSuQmCC"
)


@pytest.mark.all
def test_the_notebook_follows_the_cell_at_work_until_a_click_and_pictures_are_in_the_card(
    server: Server, open_page: OpenPage, model: ModelServer
) -> None:
    show = f"from IPython.display import Image\nImage(data=__import__('base64').b64decode('{PICTURE}'))"
    table = "print('| a | b |\\n|---|---|\\n| 1 | 2 |')"
    server.write("follow.ipynb", table, *(f"x{n} = {n}\n\n\n" for n in range(20)), show)
    page = open_page("follow.ipynb")
    panel = start_about(page, "follow.ipynb", "Agent")
    last = chr(ord("a") + 21)
    first = page.locator(".jp-Cell[data-windowed-list-index='0']")
    expect(first).to_be_in_viewport()
    model.add(call("RunNotebookCells", cellIds=[last]), "The last one ran.")
    turn = panel.ask("run the last one")
    turn.locator(".cw-question").get_by_role("button", name="Allow for this chat").click()
    panel.expect_answer("The last one ran.")
    expect(page.locator(".jp-Cell[data-windowed-list-index='21']")).to_be_in_viewport()
    expect(first).not_to_be_in_viewport()
    expect(panel.prompt).not_to_be_focused()  # the button had the focus, and no cell has taken it
    assert page.evaluate("() => document.activeElement.closest('.jp-Notebook')") is None
    picture = turn.locator(".cw-card img")
    assert (picture.get_attribute("src") or "").startswith("data:image/png;base64,")
    panel.button("Follow").click()
    expect(panel.button("Follow")).to_have_attribute("aria-pressed", "false")
    model.add(call("RunNotebookCells", cellIds=["a"]), "The first one ran.")
    turn = panel.ask("run the first one")
    panel.expect_answer("The first one ran.")
    expect(turn.locator(".cw-card td")).to_have_text(["1", "2"])
    expect(first).not_to_be_in_viewport()
    panel.button("Follow").click()
    expect(panel.button("Follow")).to_have_attribute("aria-pressed", "true")


@pytest.mark.all
def test_offers_at_errors_are_off_by_a_setting_and_following_an_agent_keeps_the_cursor(
    server: Server, open_page: OpenPage, agent: Any
) -> None:
    def set_(plugin: str, settings: dict[str, bool]) -> None:
        body = json.dumps({"raw": json.dumps(settings)}).encode()
        headers = {"Authorization": f"token {server.token}", "Content-Type": "application/json"}
        url = f"{server.url}lab/api/settings/cellwright-lab:{plugin}"
        with urlopen(Request(url, body, headers, method="PUT"), timeout=20) as answer:  # noqa: S310
            assert answer.status == 204

    server.write("set.ipynb", "1 / 0", *(f"x{n} = {n}\n\n\n" for n in range(20)))
    set_("live", {"follow": True})
    try:
        page = open_page("set.ipynb")
        page.locator(".jp-Cell").first.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        expect(page.locator(".jp-OutputArea-output").first).to_contain_text("ZeroDivisionError")
        expect(page.locator(".cw-offer")).to_be_visible()
        page.get_by_role("menuitem", name="Settings", exact=True).click()
        page.locator(".lm-Menu").get_by_text("Settings Editor", exact=True).click()
        page.locator(".jp-PluginList").get_by_text("Cellwright assistant").click()
        page.get_by_label("Help with errors").uncheck()
        page.locator(".lm-DockPanel-tabBar .lm-TabBar-tab", has_text="set.ipynb").click()
        expect(page.locator(".cw-offer")).to_have_count(0)
        page.locator(".jp-Cell").first.locator(".cm-content").click()
        book = agent.open("set.ipynb")
        book.edit([{"op": "replace", "cell": "u", "source": "changed = 1"}])
        expect(page.locator(".jp-Cell[data-windowed-list-index='20']")).to_be_in_viewport()
        assert page.locator(".cw-offer").count() == 0
        page.keyboard.type("#")
        assert "#" in cells(page)["a"]["source"]
        assert cells(page)["u"]["source"] == "changed = 1"
    finally:
        set_("chat", {})
        set_("live", {})


@pytest.mark.all
def test_a_key_is_entered_once_and_never_comes_back(
    browser: object, server: Server, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del model
    key, stored = "sk-ant-0123456789abcdef", server.folder.parent / "keyring.json"
    plugins = server.folder.parent / "plugins"
    plugins.mkdir()
    (plugins / "file_keyring.py").write_text(
        f"""
import json, pathlib
from keyring.backend import KeyringBackend
PLACE = pathlib.Path({str(stored)!r})
class FileKeyring(KeyringBackend):
    priority = 1
    def _all(self):
        return json.loads(PLACE.read_text()) if PLACE.exists() else {{}}
    def get_password(self, service, name):
        return self._all().get(f"{{service}} {{name}}")
    def set_password(self, service, name, password):
        PLACE.write_text(json.dumps({{**self._all(), f"{{service}} {{name}}": password}}))
    def delete_password(self, service, name):
        raise NotImplementedError
"""
    )
    monkeypatch.setenv("PYTHONPATH", str(plugins))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "file_keyring.FileKeyring")
    folder = server.folder.parent / "keys"
    folder.mkdir()
    type(server)(folder, "", "", folder).write("keys.ipynb", "1")
    command = (str(LAB / "python"), "-P", "-m", "cellwright", "lab", "--no-browser", "--")
    context = browser.new_context()  # type: ignore[attr-defined]
    with start_server(folder, *command) as own:
        page: Page = context.new_page()
        heard: list[str] = []

        def listen(socket: object) -> None:
            socket.on("framereceived", lambda frame: heard.append(str(frame)))  # type: ignore[attr-defined]

        page.on("websocket", listen)
        page.goto(f"{own.url}lab/tree/keys.ipynb?token={own.token}&reset")
        page.wait_for_function(
            "() => window.jupyterapp?.shell?.currentWidget?.hasClass?.('cw-shared')"
        )
        panel = Panel.open(page)
        models = panel.node.get_by_label("Model", exact=True)
        models.select_option(label="Another model …")
        panel.node.get_by_label("Provider").select_option("anthropic")
        panel.node.get_by_label("Name of the model").fill("claude-test")
        field = panel.node.get_by_label("Key")
        assert field.get_attribute("type") == "password"
        field.fill(key)
        panel.button("Use this model").click()
        expect(models).to_have_value("anthropic:claude-test")
        wait_for(
            lambda: stored.exists() and key in json.dumps(json.loads(stored.read_text())), "the key"
        )
        expect(panel.node).to_contain_text("The key is stored in the keyring")
        models.select_option(label="Another model …")  # a key that was refused can be replaced
        panel.node.get_by_label("Provider").select_option("anthropic")
        expect(panel.node.get_by_label("Key")).to_be_visible()
        assert key not in page.content()
        assert not [frame for frame in heard if key in frame]
        assert key not in own.log.read_text()
    context.close()
