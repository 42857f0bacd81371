"""The system prompt of every mode: which files, in which order, and what they say."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cellwright.assistant.prompt_files import (
    OURS,
    BadFrontMatter,
    PromptFolder,
    read_prompt,
    split_front_matter,
)
from cellwright.config.settings import Settings
from cellwright.errors import InvalidSetting

if TYPE_CHECKING:
    from cellwright.assistant.prompt_files import PromptMode

GOLDEN = Path(__file__).parent / "golden"
WRITES = os.environ.get("CELLWRIGHT_TEST_GOLDEN") == "write"
MODES: tuple[PromptMode, ...] = ("ask", "edit", "agent", "inline")
FILES = {
    ("ask", True): ["assistant.md", "ask.md", "notebook-mode-readonly.md"],
    ("edit", True): ["assistant.md", "edit.md", "notebook-mode-readonly.md"],
    ("agent", True): ["assistant.md", "agent.md", "notebook-mode-agent.md"],
    ("inline", True): ["assistant.md", "inline.md"],
    ("ask", False): ["assistant.md", "ask.md"],
    ("edit", False): ["assistant.md", "edit.md"],
    ("agent", False): ["assistant.md", "agent.md"],
    ("inline", False): ["assistant.md"],
}


@pytest.mark.parametrize(("mode", "has_notebook"), FILES)
def test_every_mode_loads_its_files_in_order_and_says_which(
    mode: PromptMode, has_notebook: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "cellwright.assistant.prompts"):
        prompt = PromptFolder().system_prompt(mode, has_notebook=has_notebook)
    assert prompt.names == FILES[mode, has_notebook]
    loaded = re.findall(rf"mode {mode} loads (\S+)", caplog.text)
    assert loaded == prompt.names


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_says_is_what_was_reviewed(mode: PromptMode) -> None:
    """To write the files anew, then read the diff: CELLWRIGHT_TEST_GOLDEN=write."""
    text = PromptFolder().system_prompt(mode, has_notebook=True).text + "\n"
    path = GOLDEN / f"{mode}.md"
    if WRITES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_where_mode_edit_may_edit_it_is_told_so() -> None:
    """To write the file anew, then read the diff: CELLWRIGHT_TEST_GOLDEN=write."""
    prompt = PromptFolder().system_prompt("edit", has_notebook=True, may_edit=True)
    assert prompt.names == ["assistant.md", "edit.md", "notebook-mode-edit.md"]
    path = GOLDEN / "edit-may-edit.md"
    if WRITES:
        path.write_text(prompt.text + "\n", encoding="utf-8")
    assert prompt.text + "\n" == path.read_text(encoding="utf-8")
    assert "`RunNotebookCells`" not in prompt.text
    others: tuple[PromptMode, ...] = ("ask", "agent")
    for mode in others:
        same = PromptFolder().system_prompt(mode, has_notebook=True, may_edit=True)
        assert same.names == FILES[mode, True]
    without = PromptFolder().system_prompt("edit", has_notebook=False, may_edit=True)
    assert without.names == FILES["edit", False]


def test_the_notebook_files_have_the_heads_that_were_agreed() -> None:
    agent = read_prompt("a", OURS / "notebook-mode-agent.md")
    reading = read_prompt("b", OURS / "notebook-mode-readonly.md")
    assert (agent.modes, agent.order) == (("agent",), 80)
    assert (reading.modes, reading.order) == (("ask", "edit"), 80)
    assert agent.description == "Full notebook manipulation instructions for Agent mode"
    assert reading.description.startswith("Read-only notebook context and query tools")


# What each of them has to carry: a few words that only that instruction has.
USAGE = [
    "focus on the selected cells when you analyse or explain",
    "use cell ids to refer to cells",
    "pay attention to the status of cells",
    "selected or being edited (`active`)",
    "`running`, `pending`",
    "in which order they ran",
    "succeeded or failed",
    "which cells depend on which",
    "maintain the structure of the notebook",
    "markdown cells",
    "use the notebook's own tools",
]
READING = ["`GetNotebookCells`", "`GetCellOutputs`"]
CHANGING = ["`RunNotebookCells`", "`AddNotebookCell`", "`UpdateNotebookCell`"]


@pytest.mark.parametrize("mode", ["ask", "edit", "agent"])
def test_every_usage_instruction_is_in_every_mode(mode: PromptMode) -> None:
    text = spoken(mode).lower()
    assert [words for words in USAGE if words not in text] == []


def test_agent_mode_has_all_tools_workflows_and_no_restriction() -> None:
    text = spoken("agent")
    assert [name for name in [*READING, *CHANGING] if name not in text] == []
    for workflow in ("Analyse", "Modify", "Add", "Execute", "Debug"):
        assert f"**{workflow}.**" in text
    assert "without restriction" in text
    assert "Suggest operations on cells" in text
    assert "not direct access to its file" in text
    assert "Agent mode, and show" not in text


@pytest.mark.parametrize("mode", ["ask", "edit"])
def test_the_others_have_reading_tools_limits_and_the_switch(mode: PromptMode) -> None:
    text = spoken(mode)
    assert [name for name in READING if name not in text] == []
    assert [name for name in CHANGING if name in text] == []
    assert "**Analyse.**" in text
    assert "**Explain.**" in text
    assert "You cannot add, change, delete or run cells here" in text
    assert "suggest to switch to Agent mode" in text
    assert "Do not try it another way" in text


def spoken(mode: PromptMode) -> str:
    """The prompt of a mode with line breaks as spaces."""
    return " ".join(PromptFolder().system_prompt(mode, has_notebook=True).text.split())


# --- Files of the user ---------------------------------------------------------------------------


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def test_files_of_the_user_are_added_and_replace_ours(tmp_path: Path) -> None:
    write(tmp_path, "ask.md", "---\nmode: ask\norder: 50\n---\nBe terse.")
    write(
        tmp_path, "team/house.md", "---\nmode:\n  - ask\n  - agent\norder: 60\n---\nUse polars.\n"
    )
    write(tmp_path, "plain.md", "No head at all.")
    folder = PromptFolder(tmp_path)

    ask = folder.system_prompt("ask", has_notebook=False)
    assert ask.names == ["plain.md", "assistant.md", "ask.md", "team/house.md"]
    assert ask.text.endswith("Be terse.\n\nUse polars.")
    assert "team/house.md" not in folder.system_prompt("edit", has_notebook=False).names


def test_a_mode_can_do_without_a_file() -> None:
    folder = PromptFolder(disabled={"ask": ["notebook-mode-readonly.md", "assistant"]})
    assert folder.system_prompt("ask", has_notebook=True).names == ["ask.md"]
    assert folder.system_prompt("edit", has_notebook=True).names == FILES["edit", True]


@pytest.mark.parametrize(
    "head",
    [
        "mode: agent\nno colon here",
        "mode: [agent",
        "mode: agnet",
        "mode: []",
        "order: many",
        "order: [1, 2]",
        'description: "never ends',
        "mode: ask\nmode: edit",
        "mode: ask\n- edit",
        "requires: luck",
        "unless: [notebook, rain]",
        "- ask",
    ],
)
def test_a_head_that_cannot_be_read_is_warned_of_and_the_rest_goes_on(
    head: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "bad.md", f"---\n{head}\n---\nBad.")
    write(tmp_path, "good.md", "---\norder: 90\n---\nGood.")
    prompt = PromptFolder(tmp_path).system_prompt("agent", has_notebook=True)
    assert prompt.names == [*FILES["agent", True], "good.md"]
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "bad.md" in warning.getMessage()


def test_a_file_that_is_no_text_or_endless_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "latin.md").write_bytes(b"\xff\xfe")
    (tmp_path / "open.md").write_text("---\nmode: ask\n", encoding="utf-8")
    (tmp_path / "long.md").write_text("x" * 300_000, encoding="utf-8")
    (tmp_path / "folder.md").mkdir()
    assert (
        PromptFolder(tmp_path).system_prompt("ask", has_notebook=False).names == FILES["ask", False]
    )
    assert len(caplog.records) == 4


def test_a_folder_that_is_not_there_has_no_files(tmp_path: Path) -> None:
    prompt = PromptFolder(tmp_path / "none").system_prompt("ask", has_notebook=False)
    assert prompt.names == FILES["ask", False]


# --- Heads ---------------------------------------------------------------------------------------


def test_a_head_has_values_lists_quotes_and_comments() -> None:
    values, text = split_front_matter(
        "---\r\n# a comment\r\nmode: [ask, 'edit'] # both\r\norder: 80 # late\r\n"
        'description: "a: b # c"\r\nnames:\r\n  - one\r\n  - two\r\nempty:\r\n---\r\nText\r\n'
    )
    assert values == {
        "mode": ["ask", "edit"],
        "order": "80",
        "description": "a: b # c",
        "names": ["one", "two"],
        "empty": "",
    }
    assert text == "Text\n"


def test_a_rule_inside_the_text_is_no_head() -> None:
    assert split_front_matter("Text\n---\nmode: ask\n---\n") == ({}, "Text\n---\nmode: ask\n---\n")
    assert split_front_matter("---\n---\nText") == ({}, "Text")
    with pytest.raises(BadFrontMatter):
        split_front_matter("---\nmode: ask")


def test_settings_name_a_folder_and_files_that_are_off(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("---\norder: 90\n---\nAlways be brief.", encoding="utf-8")
    folder = PromptFolder.of(
        Settings(assistant_prompts=str(tmp_path), assistant_prompts_off=("ask:ask.md", "assistant"))
    )
    ask = folder.system_prompt("ask", has_notebook=False)
    edit = folder.system_prompt("edit", has_notebook=False)
    assert ask.names == ["mine.md"]
    assert edit.names == ["edit.md", "mine.md"]
    assert ask.text == "Always be brief."


@pytest.mark.parametrize(
    ("settings", "about"),
    [
        ({"assistant_prompts": "/nowhere/at/all"}, "a folder"),
        ({"assistant_prompts_off": ("asking:ask.md",)}, "mode:name.md"),
        ({"assistant_prompts_off": ("ask:",)}, "mode:name.md"),
    ],
)
def test_settings_that_name_nothing_are_refused(settings: dict[str, Any], about: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        PromptFolder.of(Settings(**settings))
    assert about in (caught.value.hint or "")
