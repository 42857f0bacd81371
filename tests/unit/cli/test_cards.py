"""Cards of tool calls: how each looks, what it says of its call and its result, what is cached.

The golden files are written anew like those of the commands, then read as a diff:

    CELLWRIGHT_TEST_GOLDEN=write ./dev test tests/unit/cli/test_cards.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from cellwright.cli.render.cards.card import format_seconds
from cellwright.cli.render.cards.results import summarize_card
from cellwright.cli.render.screen import COLLAPSED_LINES, ScreenView
from cellwright.tools.tool import ToolResult
from tests.unit.cli.cards import LONG, card, draw, every_card, ran, screen, told
from tests.unit.cli.show_rendering import SGR
from tests.unit.cli.test_show import golden

if TYPE_CHECKING:
    from cellwright.cli.render.cards.card import Card

NAMES = list(every_card())


def gallery(width: int, **options: Any) -> str:
    parts = [f"# {name}\n{draw(one, width, **options)}" for name, one in every_card().items()]
    return "\n".join(parts)


# -- what they look like ------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 140])
def test_cards_look_as_they_did(width: int) -> None:
    text = gallery(width)
    assert text == golden(f"cards-{width}.txt", text)


def test_cards_in_colour_look_as_they_did() -> None:
    text = gallery(80, colors=True)
    assert text == golden("cards-80-colors.txt", text)


def test_expanded_cards_look_as_they_did() -> None:
    text = gallery(80, expanded=True)
    assert text == golden("cards-80-expanded.txt", text)


@pytest.mark.parametrize("width", [20, 40, 80, 140, 200])
@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_card_is_wider_than_the_terminal(name: str, width: int) -> None:
    for expanded in (False, True):
        lines = draw(every_card()[name], width, expanded=expanded).splitlines()
        assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", NAMES)
def test_everything_below_the_head_stands_right_of_the_gutter(name: str) -> None:
    head, *rest = draw(every_card()[name]).splitlines()
    assert head[:4].strip().isdecimal()
    for line in rest:
        assert line[:4].strip() in {"", "│", "+", "-", "…", "→", "▸", "✓", "✗", "●", "○"}
        assert line[:2] == "  "


# -- the call -----------------------------------------------------------------------------------


def head(one: Card) -> str:
    return draw(one, 120).splitlines()[0].rstrip("─ ")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("GetNotebookCells", {}, "Read all cells  sales.ipynb"),
        ("GetNotebookCells", {"cellIds": ["load"]}, "Read cell 2  load  code  sales.ipynb"),
        ("GetCellOutputs", {"cellId": 2}, "Read outputs of cell 3  sum  code  sales.ipynb"),
        ("RunNotebookCells", {"cellIds": ["load"]}, "Run cell 2  load  code  sales.ipynb"),
        ("RunNotebookCells", {"cellIds": ["load", "sum"]}, "Run 2 cells  2, 3  sales.ipynb"),
        ("RunNotebookCells", {"cellIds": ["nope"]}, "Run cell  nope  sales.ipynb"),
        ("RunNotebookCells", {"cellIds": 7}, "Run cell  7  sales.ipynb"),
        ("RunNotebookCells", {}, "Run cell  None  sales.ipynb"),
        ("UpdateNotebookCell", {"cellId": "intro"}, "Update cell 1  intro  markdown  sales.ipynb"),
        (
            "AddNotebookCell",
            {"type": "markdown", "index": -1},
            "Add cell at the end  markdown  sales.ipynb",
        ),
        ("AddNotebookCell", {"type": "code", "index": 1}, "Add cell as cell 2  code  sales.ipynb"),
        (
            "notebook",
            {"action": "insert", "cell_index": 0, "cell_type": "markdown"},
            "Add cell as cell 1  markdown  sales.ipynb",
        ),
        ("notebook", {"action": "delete", "cell_index": 2}, "Delete cell 3  sum  code"),
        ("NotebookEdit", {"cell_id": "load", "edit_mode": "replace"}, "Update cell 2  load  code"),
        ("NotebookEdit", {"edit_mode": "insert", "cell_id": "sum"}, "Add cell after sum  code"),
        ("python", {"cells": [{"code": "1"}, {"code": "2"}]}, "Run 2 pieces of code"),
        ("read", {"path": "notes.py"}, "Read file  notes.py"),
        ("anything", {"a": 1}, 'anything  {"a": 1}'),
    ],
)
def test_the_call_view_has_action_cell_type_path_and_status(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    line = head(card(tool, arguments))
    assert line.startswith(f" 1  {said}")
    assert line.endswith("● running")


def test_a_success_is_told_from_the_details_of_the_answer() -> None:
    cards = every_card()
    assert "Added cell 6  ab12cd34  markdown" in head(cards["added markdown"])
    assert "Deleted cell 3  sum  code" in head(cards["deleted"])
    assert "✓ complete" in head(cards["deleted"])


def test_how_it_stands_is_told_whatever_the_room() -> None:
    one = card(
        "GetNotebookCells", {}, ToolResult("", {"cells": []}), path="a/very/long/" * 20 + "n.ipynb"
    )
    assert "✓ complete" in draw(one, 60).splitlines()[0]


# -- the result ---------------------------------------------------------------------------------


def test_a_preview_has_twice_the_lines_of_a_collapsed_output_and_says_how_to_see_the_rest() -> None:
    lines = draw(every_card()["added long"]).splitlines()
    sources = [line for line in lines if line.startswith("  + line_")]
    assert len(sources) == 2 * COLLAPSED_LINES
    assert lines[-1] == "  … 15 more lines (/expand 15 shows them)"


def test_an_expanded_card_has_all_of_it() -> None:
    lines = draw(every_card()["added long"], expanded=True).splitlines()
    assert [line[4:] for line in lines[1:]] == LONG.splitlines()


def test_markdown_is_coloured_as_markdown_and_code_as_the_notebooks_language() -> None:
    source = "# not a comment\n\nSELECT *"
    looks = {
        kind: draw(
            card("AddNotebookCell", {"type": kind, "index": 0, "content": source}), colors=True
        )
        for kind in ("markdown", "code")
    }
    assert len(set(looks.values())) == 2
    sql = card("AddNotebookCell", {"type": "code", "index": 0, "content": "SELECT 1 FROM x"})
    python = draw(sql, colors=True)
    sql.language = "sql"
    sql.begin()
    assert draw(sql, colors=True) != python
    assert SGR.sub("", draw(sql, colors=True)) == SGR.sub("", python)


def test_lines_that_are_new_or_gone_have_their_signs() -> None:
    lines = draw(every_card()["updated"]).splitlines()
    assert lines[1:] == [
        "  - total = 41",
        "  + total = 42",
        "  │ print(total)",
        "  + print('done')",
    ]


def test_cells_go_from_pending_over_running_to_complete_or_error() -> None:
    one = card("RunNotebookCells", {"cellIds": ["load", "sum"]})

    def statuses() -> list[str]:
        return [line.split()[4] for line in draw(one).splitlines() if line[2] in "✓✗●○"]

    assert statuses() == ["pending", "pending"]
    one.progress({"run": "r1"})
    one.progress({"cell": 1, "handle": "load", "status": "running"})
    assert statuses() == ["running", "pending"]
    one.progress({"cell": 1, "handle": "load", "status": "ok"})
    one.progress({"cell": 2, "handle": "sum", "status": "running"})
    assert statuses() == ["complete", "running"]
    one.progress({"cell": 2, "handle": "sum", "status": "error"})
    assert statuses() == ["complete", "error"]


def test_what_a_cell_says_while_it_runs_is_shown_in_its_last_state() -> None:
    one = card("RunNotebookCells", {"cellIds": ["load"]})
    for step in range(20):
        one.progress({"cell": 1, "handle": "load", "text": f"{step} %\r{step} done\n"})
    lines = draw(one).splitlines()[1:]
    assert lines == [f"  │ {step} done" for step in range(14, 20)]


def test_a_turn_that_ends_early_leaves_no_cell_running() -> None:
    one = card("RunNotebookCells", {"cellIds": ["load", "sum"]})
    one.progress({"cell": 1, "handle": "load", "status": "running"})
    one.stop()
    text = draw(one)
    assert "✗ cell 2  load  cancelled" in text
    assert "○ cell 3  sum   not run" in text


def test_json_is_a_tree_and_a_status_event_a_line() -> None:
    text = draw(every_card()["outputs"])
    assert "└─ rows: [] 3 items" in text
    assert 'status: {"op": "read", "path": "data.csv"}' in text


def test_pictures_are_drawn_as_show_draws_them() -> None:
    one = every_card()["a picture"]
    assert "▀" in draw(one, colors=True, images="blocks")
    assert "image/png, 64×32" in draw(one)


def test_a_cut_is_a_warning_and_what_was_kept_a_pointer() -> None:
    cards = every_card()
    assert "  … cut for the model: 3 cells" in draw(cards["read and cut"])
    assert "  → artifact://k3m9x2ab  cellwright artifact k3m9x2ab" in draw(cards["a picture"])
    spilled = card(
        "python",
        {"cells": []},
        ToolResult("Done.", {"cells": [{"status": "ok", "artifact": "zz99xx"}]}),
    )
    assert "  → artifact://zz99xx" in draw(spilled)


@pytest.mark.parametrize("text", ["Error: no such cell", "error: CODE: no such cell"])
def test_an_answer_that_begins_with_error_is_an_error_block(text: str) -> None:
    one = card("notebook", {"action": "edit", "cell_index": 1}, ToolResult(text))
    lines = draw(one).splitlines()
    assert "✗ error" in lines[0]
    assert lines[1].startswith("  │ ")
    assert lines[1].endswith("no such cell")


def test_an_error_block_has_a_red_rule() -> None:
    one = card("notebook", {"action": "edit", "cell_index": 1}, ToolResult("Error: no"))
    assert "\x1b[31m  │ \x1b[0m" in draw(one, colors=True)


def test_a_run_whose_cell_is_gone_is_told_by_the_answer() -> None:
    said = told(
        "ok",
        ("outputs of gone", "42"),
        data={"executions": [{"cell": "gone", "index": 9, "status": "ok", "seconds": 1}]},
    )
    assert "  │ 42" in draw(card("RunNotebookCells", {"cellIds": ["gone"]}, said))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("ran one", "✓ Ran cell 2 · load · sales.ipynb · complete 0.25 s"),
        ("read all", "✓ Read all cells · sales.ipynb · complete"),
        (
            "no such cell",
            "✗ Update cell · 99 · sales.ipynb · error: Error: Cell index 99 out of range (0-4) in sales.ipynb",
        ),
    ],
)
def test_a_card_in_brief_is_one_line(name: str, line: str) -> None:
    assert summarize_card(every_card()[name]) == line


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0001, "under 1 ms"), (0.004, "4 ms"), (0.25, "0.25 s"), (12, "12.0 s"), (125, "2 min 5 s")],
)
def test_durations_are_told_as_people_do(seconds: float, said: str) -> None:
    assert format_seconds(seconds) == said


# -- the cache ----------------------------------------------------------------------------------


def test_a_card_is_laid_out_once_for_each_width_and_expansion() -> None:
    one = card("RunNotebookCells", {"cellIds": ["load"]}, ran(("load", 1, "ok", 0.25)))
    console, _ = screen(80)
    for _ in range(3):
        one.draw(console, ScreenView(width=80), expanded=False)
    assert one.layouts == 1
    one.draw(console, ScreenView(width=80), expanded=True)
    one.draw(console, ScreenView(width=140), expanded=False)
    assert one.layouts == 3
    one.draw(console, ScreenView(width=80), expanded=False)
    assert one.layouts == 3


def test_what_changed_is_laid_out_anew() -> None:
    one = card("RunNotebookCells", {"cellIds": ["load"]})
    first = draw(one)
    one.progress({"cell": 1, "handle": "load", "status": "running"})
    one.progress({"cell": 1, "handle": "load", "text": "hello\n"})
    assert draw(one) != first
    assert one.layouts == 2


def test_the_cache_does_not_grow_for_ever() -> None:
    one = every_card()["updated"]
    for width in range(40, 140):
        draw(one, width)
    assert len(one._cache._kept) <= 8
