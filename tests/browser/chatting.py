"""The assistant's panel as a person uses it: by clicking and typing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

MODEL = "scripted"
READING = ["#getNotebookCells", "#getCellOutputs"]
CHANGING = ["#runNotebookCells", "#addNotebookCell", "#updateNotebookCell"]
ALL = [*READING, *CHANGING]
expect.set_options(timeout=40_000)  # milliseconds, on a machine that is busy


class Panel:
    """The panel of one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.node = page.locator(".cw-chat")
        self.prompt = self.node.get_by_label("Prompt", exact=True)
        self.look = self.node.locator(".cw-look")
        self.turns = self.node.locator(".cw-turn")
        self.choices = self.node.locator(".cw-field .cw-choices li")

    @classmethod
    def open(cls, page: Page) -> Panel:
        """Open it with its shortcut; the cursor is in the prompt."""
        # JupyterLab's own questions may be on top of a button.
        page.add_style_tag(content=".Toastify, .jp-toast-message { display: none !important }")
        page.keyboard.press("Control+Alt+j")
        panel = cls(page)
        expect(panel.prompt).to_be_focused()
        expect(panel.look).to_contain_text("Notebook mode:")
        return panel

    @property
    def last(self) -> Locator:
        return self.turns.last

    def new(self) -> None:
        """Begin a conversation without attachments."""
        self.node.get_by_role("button", name="New conversation").last.click()
        expect(self.turns).to_have_count(0)
        expect(self.node.locator(".cw-composer .cw-chip")).to_have_count(0)

    def button(self, name: str) -> Locator:
        return self.node.get_by_role("button", name=name, exact=True)

    def attach(self, name: str) -> None:
        """Attach a file by typing `@` and choosing it."""
        self.prompt.click()
        self.page.keyboard.type(f"@{name.split(maxsplit=1)[0]}")  # a space ends what is completed
        expect(self.choices.first).to_contain_text(name)
        self.page.keyboard.press("Enter")
        expect(self.chip(name)).to_be_visible()

    def chip(self, name: str) -> Locator:
        return self.node.locator(".cw-composer .cw-chip", has_text=name)

    def choose_mode(self, mode: str) -> None:
        self.node.locator(".cw-modes").get_by_text(mode, exact=True).click()
        expect(self.node.get_by_role("radio", name=mode)).to_be_checked()

    def choose_model(self) -> None:
        """Name the scripted model; later it is in the list."""
        models = self.node.get_by_label("Model", exact=True)
        name = f"openai:{MODEL}"
        expect(models.locator("option").first).to_be_attached()
        if models.locator(f"option[value='{name}']").count():
            models.select_option(name)
        else:
            models.select_option(label="Another model …")
            self.node.get_by_label("Provider").select_option("openai")
            self.node.get_by_label("Name of the model").fill(MODEL)
            self.button("Use this model").click()
        expect(models).to_have_value(name)

    def expect_mode(self, is_on: bool, reason: str = "") -> None:
        word = "on" if is_on else "off"
        expect(self.look).to_contain_text(f"Notebook mode: {word}")
        if reason:
            expect(self.look).to_contain_text(reason)

    def list_tools(self) -> list[str]:
        """The tools that `#` completes, or none."""
        self.prompt.click()
        self.page.keyboard.type("#")
        if self.look.get_attribute("title") != "No tools":
            expect(self.choices.first).to_be_visible()
        found = [re.split(r"\s", text)[0] for text in self.choices.all_inner_texts()]
        self.page.keyboard.press("Backspace")
        expect(self.choices).to_have_count(0)
        return found

    def ask(self, prompt: str) -> Locator:
        """Type a prompt and send it; returns its turn."""
        count = self.turns.count()
        self.prompt.click()
        self.page.keyboard.type(prompt)
        self.page.keyboard.press("Escape")  # closes a list that is open
        self.page.keyboard.press("Enter")
        expect(self.turns).to_have_count(count + 1)
        return self.last

    def expect_answer(self, text: str | re.Pattern[str]) -> None:
        """Wait for the end of the last turn, which says this."""
        expect(self.last.locator(".cw-answer")).to_contain_text(text)
        expect(self.button("Send")).to_be_visible()

    def allow(self) -> None:
        self.last.locator(".cw-question").get_by_role("button", name="Allow", exact=True).click()


def watch(page: Page) -> list[str]:
    """Note everything that a hostile text could do: requests elsewhere, dialogs, new pages."""
    noted: list[str] = []
    host = re.escape(re.sub(r"^(https?://[^/]+).*$", r"\1", page.url))

    def note_request(request: Any) -> None:
        if not re.match(rf"{host}/|data:|blob:", request.url):
            noted.append(request.url)

    page.on("request", note_request)
    page.on("dialog", lambda dialog: (noted.append(f"dialog {dialog.message}"), dialog.dismiss()))
    page.on("popup", lambda popup: noted.append(f"popup {popup.url}"))
    return noted
