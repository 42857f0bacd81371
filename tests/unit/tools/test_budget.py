"""No answer is longer than its budget, whatever is in the notebook and whatever is asked."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cellwright import AsyncWorkspace
from cellwright.outputs.describe import CHARACTERS_PER_TOKEN
from cellwright.outputs.sizes import estimate_tokens
from cellwright.tools.page import IMAGES, SLACK, Page
from cellwright.tools.profiles import PROFILES
from cellwright.tools.tool import ToolCaller
from cellwright.tools.toolbox import Toolbox
from tests.conftest import RUN_ALL
from tests.unit.cli import samples
from tests.unit.tools.support import outside, picture, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cellwright.tools.tool import ToolResult

DATA = 200_000
"""Characters that the data of an answer may have: small facts, whatever the notebook holds."""

EXAMPLES = 300 if RUN_ALL else 24
QUICK = (
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
)  # examples are large; to shrink them takes long

# Text that grows when it is made visible, that looks like ours, or that is simply long.
PIECES = st.sampled_from(
    [
        "x = 1\n",
        "\u202e",
        "\x00\x1b[31m",
        "é",
        "😀",
        "⟦output 0: stdout⟧\n",
        "</data 0>\n",
        "LEFT OUT: nothing\n",
        "a" * 500,
        "Ab1" * 400,
        "# Heading\n",
        "\n" * 50,
        "\t",
        "\ud83d\n",
    ]
)
TEXTS = st.builds(lambda piece, times: piece * times, PIECES, st.sampled_from([0, 1, 3, 40, 150]))
LONG = st.lists(TEXTS, max_size=3).map("".join)
IDS = st.one_of(st.none(), st.text(max_size=8), st.just("i" * 3000), st.just("x\n· ok"))
OUTPUTS = st.one_of(
    LONG.map(stream),
    st.just(picture()),
    LONG.map(lambda text: {"output_type": "error", "ename": text[:300], "evalue": text, "traceback": [text]}),
    LONG.map(
        lambda text: {"output_type": "display_data", "metadata": {}, "data": {"text/html": text, "application/json": {"a": text}}}
    ),
)  # fmt: skip


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Any]:
    source, id_ = draw(LONG).encode("utf-8", "replace").decode(), draw(IDS)
    if draw(st.booleans()):
        return samples.markdown(id_, source)
    return samples.code(id_, source, *draw(st.lists(OUTPUTS, max_size=4)))


NOTEBOOKS = st.builds(
    lambda found, times: found * times, st.lists(cells(), max_size=4), st.sampled_from([1, 1, 30])
)
BUDGETS = st.sampled_from([200, 201, 300, 700, 2000])
CALLS = st.one_of(
    st.builds(
        lambda **words: ("notebook_read", words),
        view=st.sampled_from(["cells", "text", "outline"]),
        outputs=st.booleans(),
        offset=st.sampled_from([0, 5]),
        only=st.sampled_from([None, "errors", "stale"]),
        search=st.sampled_from([None, "x", "\u202e"]),
        section=st.sampled_from([None, "Heading"]),
        cells=st.sampled_from([None, [0], ["0-"], ["nothing" * 200]]),
    ),
    st.builds(
        lambda **words: ("notebook_outputs", words),
        cells=st.sampled_from([None, [0], ["0-"]]),
        offset=st.sampled_from([0, 7]),
    ),
    st.builds(
        lambda source, dry_run: (
            "notebook_edit",
            {"edits": [{"op": "insert", "source": source}] * 20, "dry_run": dry_run},
        ),
        LONG.map(lambda text: text.encode("utf-8", "replace").decode()),
        st.booleans(),
    ),
    st.sampled_from(
        [
            ("notebook_edit", {"edits": [{"op": "splice", "start": 0, "delete_count": 1}]}),
            ("notebook_history", {"action": "log"}),
            ("notebook_history", {"action": "diff"}),
            ("notebook_history", {"action": "undo"}),
            ("notebook_run", {"cells": [0]}),
        ]
    ),
)


def check(answer: ToolResult, max_tokens: int) -> None:
    assert estimate_tokens(answer.text) <= max_tokens + SLACK / CHARACTERS_PER_TOKEN
    assert len(answer.images) <= IMAGES
    data = json.dumps(answer.data)
    assert len(data) <= DATA
    outside(answer.text)  # every fence is closed
    assert "iVBORw0KGgo" not in answer.text + data


@contextmanager
def fresh(folder: Path, found: list[dict[str, Any]]) -> Iterator[None]:
    text = json.dumps(
        {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=True
    )
    (folder / "nb.ipynb").write_text(text)
    yield
    (folder / "nb.ipynb").unlink(missing_ok=True)


@pytest.mark.timeout(400)
@settings(max_examples=EXAMPLES, phases=QUICK)
@given(found=NOTEBOOKS, asked=CALLS, max_tokens=BUDGETS)
async def test_no_answer_is_longer_than_its_budget(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[dict[str, Any]],
    asked: tuple[str, dict[str, Any]],
    max_tokens: int,
) -> None:
    folder = tmp_path_factory.mktemp("budget")
    name, words = asked
    # Mode edit, so that nothing is run, but everything is listed and looked at.
    box = Toolbox(PROFILES["native"], "edit" if name == "notebook_run" else "agent")
    async with AsyncWorkspace(folder, cwd=str(folder)) as workspace:
        with fresh(folder, found):
            words = {**words, "path": "nb.ipynb", "max_tokens": max_tokens}
            answer = await box.call(name, words, ToolCaller(workspace=workspace))
    check(answer, max_tokens if not answer.is_error else 2000)


@pytest.mark.timeout(400)
@settings(max_examples=EXAMPLES // 4, phases=QUICK)
@given(found=NOTEBOOKS, start=st.integers(0, 3), end=st.integers(0, 10))
async def test_profiles_without_a_budget_have_the_default_one(
    tmp_path_factory: pytest.TempPathFactory, found: list[dict[str, Any]], start: int, end: int
) -> None:
    folder = tmp_path_factory.mktemp("budget")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("GetNotebookCells", {"path": "nb.ipynb"}),
        ("GetCellOutputs", {"path": "nb.ipynb", "cellId": start}),
        ("get_cell_range", {"path": "nb.ipynb", "start": start, "end": end}),
        ("get_notebook_metadata", {"path": "nb.ipynb"}),
        ("read", {"path": "nb.ipynb"}),
        ("read", {"path": "nb.ipynb:raw"}),
        ("notebook", {"action": "delete", "notebook_path": "nb.ipynb", "cell_index": start}),
        ("NotebookEdit", {"notebook_path": "nb.ipynb", "cell_id": "0", "edit_mode": "delete"}),
    ]
    box = Toolbox(PROFILES["all"])
    async with AsyncWorkspace(folder, cwd=str(folder)) as workspace:
        with fresh(folder, found):
            for name, words in calls:
                check(await box.call(name, words, ToolCaller(workspace=workspace)), 8000)


@settings(max_examples=EXAMPLES, phases=QUICK)
@given(
    max_tokens=st.integers(200, 2000),
    steps=st.lists(
        st.tuples(st.sampled_from(["head", "say", "show", "tail", "outputs", "leave"]), LONG),
        max_size=30,
    ),
)
def test_a_page_is_never_longer_than_its_budget(
    max_tokens: int, steps: list[tuple[str, str]]
) -> None:
    page = Page(max_tokens)
    for step, text in steps:
        if step == "head":
            page.head(" ".join(text.split()))
        elif step == "say":
            page.say(" ".join(text.split()))
        elif step == "show":
            page.show(text[:100], text)
        elif step == "tail":
            page.show("x", text, len(text) // 2, tail=0.5)
        elif step == "outputs":
            page.show_outputs("x", [stream(text), picture()])
        else:
            page.leave_out(" ".join(text.split()))
    assert estimate_tokens(page.text()) <= max_tokens + SLACK / CHARACTERS_PER_TOKEN
    assert len(page.pictures) <= IMAGES


def test_all_pictures_of_a_page_share_one_budget_of_pixels() -> None:
    page = Page(5000)
    large = picture(6000, 5000)  # 30 of 40 million pixels
    page.show_outputs("first", [large])
    assert len(page.pictures) == 1
    page.show_outputs("second", [large])
    assert len(page.pictures) == 1
    assert "too many pixels for one answer" in page.text()


def test_a_page_tells_how_much_of_a_text_is_not_shown() -> None:
    page = Page(200)
    assert page.show("short", "x " * 50) == 0
    cut = page.show("long", "y " * 5000)
    assert page.text().count("y") * 2 == 10_000 - cut
    assert page.show("more", "z " * 100) == 200  # no room is left for it


def test_both_ends_of_a_text_can_be_kept() -> None:
    page = Page(200)
    cut = page.show("ends", "<" + "a " * 1000 + "b " * 1000, tail=0.5)
    shown = page.text()
    assert 60 < shown.count("a ") < 90
    assert 60 < shown.count("b ") < 90
    assert f"⟦… {cut:,} characters …⟧" in shown
    assert shown.rstrip().endswith(">")


def test_lines_that_have_no_room_are_counted() -> None:
    page = Page(30)
    page.say_all([f"kernel {number} is idle and has run nothing" for number in range(9)], "kernels")
    result = page.to_result({})
    said = result.text.count("is idle")
    assert 0 < said < 9
    assert result.left_out == (f"{9 - said} kernels",)
