"""How the result of an edit reads at a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from cellwright import Workspace
from tests.unit.cli import samples
from tests.unit.cli.calling import call, succeed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("folder")


def said(*words: str, stdin: str = "") -> str:
    """The talk of a call, with the id of the change replaced; it prints no data."""
    answer = succeed(*words, stdin=stdin)
    assert answer.out == b""
    return re.sub(r"Change: [0-9a-f]{8}\b", "Change: ID", answer.err)


def test_a_replace_tells_the_notebook_the_cell_its_index_and_type() -> None:
    assert said("edit", "nb.ipynb", "replace", "load", "total = 1") == (
        "✓ Cell updated\n  Notebook: nb.ipynb\n  Cell: load (index 1)\n  Type: code\n  Change: ID\n"
    )


@pytest.mark.parametrize("ref", ["load", "1", "cell-1", "-6"])
def test_an_insert_tells_the_new_cell_its_type_and_what_it_comes_after(ref: str) -> None:
    """The cell before it is told by its id, however it was named."""
    words = ("--id", "def456", "--type", "markdown", "--after", ref)
    assert said("edit", "nb.ipynb", "insert", "# Data", *words) == (
        "✓ Cell inserted\n"
        "  Notebook: nb.ipynb\n"
        "  New cell: def456 (index 2)\n"
        "  Type: markdown\n"
        "  Inserted after: load\n"
        "  Change: ID\n"
    )


def test_an_insert_with_no_cell_before_it_names_none() -> None:
    for words, follows in (
        ([], "notes"),
        (["--at", "1"], "intro"),
        (["--before", "load"], None),
        (["--at", "0"], None),
    ):
        if words == ["--before", "load"]:
            succeed("edit", "nb.ipynb", "move", "load", "--at", "0")
        talk = said("edit", "nb.ipynb", "insert", "x", *words)
        assert talk.startswith("✓ Cell inserted\n")
        found = re.findall(r"^  Inserted after: (.+)$", talk, re.MULTILINE)
        assert found == ([follows] if follows else [])


def test_a_delete_tells_what_was_removed_and_where_it_was() -> None:
    assert said("edit", "nb.ipynb", "delete", "later") == (
        "✓ Cell deleted\n  Notebook: nb.ipynb\n  Removed: later (was at index 5)\n  Change: ID\n"
    )


def test_a_move_tells_both_places() -> None:
    assert said("edit", "nb.ipynb", "move", "notes", "--at", "0") == (
        "✓ Cell moved\n"
        "  Notebook: nb.ipynb\n"
        "  Cell: notes (index 6 -> 0)\n"
        "  Type: raw\n"
        "  Change: ID\n"
    )


def test_several_edits_at_once_tell_about_each_cell() -> None:
    edits = (
        '[{"op": "delete", "cell": "notes"}, {"op": "replace", "cell": "sum", "source": "x"},'
        ' {"op": "insert", "source": "y", "id": "fresh", "at": 0}]'
    )
    assert said("edit", "nb.ipynb", "apply", stdin=edits) == (
        "✓ Notebook edited\n"
        "  Notebook: nb.ipynb\n"
        "  Deleted: notes (was at index 6), raw\n"
        "  Inserted: fresh (index 0), code\n"
        "  Updated: sum (index 3), code\n"
        "  Change: ID\n"
    )


def test_the_change_that_is_told_can_be_undone_by_that_id(folder: Path) -> None:
    talk = succeed("edit", "nb.ipynb", "delete", "notes").err
    change = re.findall(r"Change: (\S+)", talk)[0]
    undone = succeed("undo", "nb.ipynb", change).err
    assert undone.startswith(f"✓ Undone {change}\n")
    assert undone.endswith("  Variables in the kernel are not undone\n")
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES
    assert succeed("redo", "nb.ipynb", change).err.startswith(f"✓ Redone {change}\n")


def test_nothing_to_do_is_said_in_two_words(folder: Path) -> None:
    before = (folder / "nb.ipynb").stat()
    assert said("edit", "nb.ipynb", "replace", "sum", "total") == "Nothing changed\n"
    assert said("upgrade", "nb.ipynb") == "Nothing changed\n"
    assert (folder / "nb.ipynb").stat().st_mtime_ns == before.st_mtime_ns


def test_restoring_what_the_file_holds_changes_nothing() -> None:
    succeed("edit", "nb.ipynb", "delete", "notes")
    succeed("undo", "nb.ipynb")
    entries = succeed("log", "nb.ipynb", "--json").data["entries"]
    assert said("backup", "nb.ipynb", "--restore", "first") == "Nothing changed\n"
    assert succeed("log", "nb.ipynb", "--json").data["entries"] == entries


def test_a_dry_run_prints_the_diff_as_data_and_says_that_nothing_was_saved(folder: Path) -> None:
    answer = succeed("edit", "nb.ipynb", "replace", "load", "total = 1", "--dry-run")
    assert answer.text == (
        "--- a/nb.ipynb\n"
        "+++ b/nb.ipynb\n"
        "@@ cell load (code, index 1) edited @@\n"
        "-total = 42\n"
        "-print(total)\n"
        "+total = 1\n"
    )
    assert answer.err == "Would change nb.ipynb; nothing was saved\n"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES
    assert succeed("log", "nb.ipynb").out == b""


def test_a_notebook_without_history_is_said_to_have_none_and_a_wrong_name_is_an_error() -> None:
    assert succeed("log", "nb.ipynb").err.startswith("No changes on record")
    assert succeed("backup", "nb.ipynb").err == "No earlier states on record\n"
    for verb in ("log", "backup", "diff"):
        answer = call(verb, "nope.ipynb")
        assert (answer.code, answer.out) == (3, b"")
        assert answer.err.startswith("error: No notebook at nope.ipynb\n")


def test_the_diff_of_an_edit_is_shown_to_who_asks_for_it() -> None:
    answer = succeed("edit", "nb.ipynb", "delete", "notes", "--diff")
    assert answer.text.endswith("@@ cell notes (raw, was at index 6) deleted @@\n-as is\n")
    assert answer.err.startswith("✓ Cell deleted\n")


def test_a_backup_is_told_by_its_path(folder: Path) -> None:
    talk = said("edit", "nb.ipynb", "delete", "notes", "--backup")
    assert f"  Backup: {folder / 'nb.backup.ipynb'}\n" in talk
    assert (folder / "nb.backup.ipynb").read_bytes() == samples.SALES


def test_a_new_notebook_is_told(folder: Path) -> None:
    talk = said("new", "made.ipynb")
    assert talk.startswith("✓ Notebook created\n  Notebook: made.ipynb\n")
    assert (folder / "made.ipynb").exists()


def test_a_written_notebook_tells_about_each_cell() -> None:
    text = succeed("read", "nb.ipynb").text.replace("total = 42", "total = 43")
    assert said("write", "nb.ipynb", stdin=text) == (
        "✓ Notebook written\n  Notebook: nb.ipynb\n  Updated: load (index 1), code\n  Change: ID\n"
    )


def test_a_conflict_shows_what_the_cell_holds_now_and_what_was_wanted() -> None:
    answer = call("edit", "nb.ipynb", "replace", "load", "total = 1", "--expect", "0123")
    assert answer.code == 6
    assert answer.out == b""
    head, _, sides = answer.err.partition("\ncell load: ")
    assert head.startswith("error: ")
    assert "\n\nhint: " in head
    _, now, yours = re.split(r"^--- (?:now|yours)\n", sides, flags=re.MULTILINE)
    assert (now, yours) == ("total = 42\nprint(total)\n", "total = 1\n")


def test_an_error_stands_apart_from_its_hint_by_a_blank_line() -> None:
    assert call("edit", "nb.ipynb", "delete", "itnro").err == (
        "error: No cell `itnro`\n\nhint: Did you mean intro?\n"
    )


# --- Lists ---------------------------------------------------------------------------------------


def test_the_log_is_data_a_row_for_each_change() -> None:
    succeed("edit", "nb.ipynb", "replace", "sum", "1", "--label", "for tea")
    succeed("edit", "nb.ipynb", "delete", "notes")
    succeed("undo", "nb.ipynb")
    answer = succeed("log", "nb.ipynb")
    assert answer.err == ""
    rows = answer.text.splitlines()
    row = re.compile(r"[0-9a-f]{8}  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d  (\S+) +cli:ada  (.+)")
    found = [row.fullmatch(line) for line in rows]
    assert [match and match.groups() for match in found] == [
        ("undo", "inserted notes"),
        ("edit", "delete  deleted notes  (undone)"),
        ("edit", "for tea  edited sum"),
    ]


def test_the_log_lists_every_change_unless_told_how_many() -> None:
    for number in range(55):
        succeed("edit", "nb.ipynb", "replace", "sum", str(number), "-q")
    assert len(succeed("log", "nb.ipynb").text.splitlines()) == 55
    assert len(succeed("log", "nb.ipynb", "-n", "3").text.splitlines()) == 3


def test_blame_has_a_row_for_every_cell() -> None:
    untouched = succeed("blame", "nb.ipynb").text
    assert untouched.count("before the first recorded change") == 7
    succeed("edit", "nb.ipynb", "replace", "sum", "1", "--label", "for tea")
    rows = succeed("blame", "nb.ipynb").text.splitlines()
    assert len(rows) == 7
    assert re.search(r"^ +2  sum +code +[0-9a-f]{8}  \S+  cli:ada  for tea$", rows[2])
    assert sum("before the first recorded change" in row for row in rows) == 6


def test_backups_are_listed_with_the_first_state_last() -> None:
    succeed("edit", "nb.ipynb", "replace", "sum", "1", "--label", "for tea")
    rows = succeed("backup", "nb.ipynb").text.splitlines()
    assert [row.split()[0] == "first" for row in rows] == [False, True]
    assert rows[0].endswith("edit     for tea")


def test_the_outline_shows_lines_names_and_titles() -> None:
    answer = succeed("read", "nb.ipynb:outline")
    assert answer.err == "17 lines, 7 cells in total\n"
    assert answer.text.splitlines() == [
        "        1-17  intro         # Sales",
        "         1-4  intro           markdown # Sales",
        "         5-7  load            code total = 42 *",
        "         8-9  sum             code total *",
        "       10-17  results       ## Results",
        "       10-11  results         markdown ## Results",
        "       12-13  plot            code y *",
        "       14-15  later           code # not yet run",
        "       16-17  notes           raw as is",
    ]


def test_the_settings_are_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CELLWRIGHT_LOCK_TIMEOUT", "7")
    assert succeed("config", "lock_timeout").text == "lock_timeout = 7.0\n"
    shown = succeed("config", "lock_timeout", "--origin").text
    assert shown == "lock_timeout = 7.0  (variable CELLWRIGHT_LOCK_TIMEOUT)\n"
    assert len(succeed("config").text.splitlines()) == len(succeed("config", "--json").data)


def test_settings_are_set_and_the_rest_of_the_file_stays(places: Path, folder: Path) -> None:
    path = places / "config" / "cellwright" / "config.toml"
    answer = succeed("config", "set", "lock_timeout", "30")
    assert answer.text == f"lock_timeout = 30.0  (user {path})\n"
    path.write_text("# mine\nlock_timeout = 1  # short\npass_variables = [\n  'A',\n]\n")
    succeed("config", "set", "pass_variables", "B,C")
    succeed("config", "set", "assistant_transcripts", "off")
    assert path.read_text() == (
        '# mine\nlock_timeout = 1  # short\npass_variables = ["B", "C"]\nassistant_transcripts = false\n'
    )
    succeed("config", "unset", "lock_timeout")
    assert "lock_timeout" not in path.read_text()
    succeed("config", "set", "lock_timeout", "5", "--project")
    assert (folder / "cellwright.toml").read_text() == "lock_timeout = 5.0\n"
    before = path.read_text()
    assert call("config", "set", "lock_timeout", "soon").code == 2
    assert call("config", "set", "lock_tiemout", "1").code == 2
    assert call("config", "set", "lock_timeout").code == 2
    assert call("config", "set", "assistant_model", "x", "--project").code == 2
    assert path.read_text() == before


def test_setting_a_setting_follows_no_link_of_a_repository_and_keeps_the_mode(
    places: Path, folder: Path
) -> None:
    mine, path = folder / "dotfiles.toml", places / "config" / "cellwright" / "config.toml"
    mine.write_text("lock_timeout = 1\n")
    path.parent.mkdir()
    path.symlink_to(mine)  # as people keep their settings together
    succeed("config", "set", "lock_timeout", "2")
    assert (path.is_symlink(), mine.read_text()) == (True, "lock_timeout = 2.0\n")

    project = folder / "cellwright.toml"
    project.symlink_to(mine)  # as a repository may have it
    answer = call("config", "set", "lock_timeout", "3", "--project")
    assert (answer.code, "it is a link" in answer.err) == (2, True)
    assert (project.is_symlink(), mine.read_text()) == (True, "lock_timeout = 2.0\n")
    project.unlink()
    project.write_text("lock_timeout = 1\n")
    project.chmod(0o664)
    succeed("config", "set", "lock_timeout", "3", "--project")
    assert (project.stat().st_mode & 0o777, project.read_text()) == (0o664, "lock_timeout = 3.0\n")


@pytest.mark.parametrize("words", [(), ("--from", "-"), ("--percent",)])
def test_an_empty_pipe_does_not_empty_a_notebook(words: tuple[str, ...], folder: Path) -> None:
    """`read` or `sed` before the pipe may have failed."""
    before = (folder / "nb.ipynb").read_bytes()
    answer = call("write", "nb.ipynb", *words, stdin="")
    assert (answer.code, "--from /dev/null" in answer.err) == (2, True)
    assert (folder / "nb.ipynb").read_bytes() == before
    succeed("write", "nb.ipynb", "--from", "/dev/null")
    assert succeed("read", "nb.ipynb", "--json").data["cells"] == []
    succeed("write", "nb.ipynb", *words, stdin="")  # it has no cell to lose
    succeed("write", "new.ipynb", *words, stdin="")


def test_every_setting_can_be_set_as_it_is_shown() -> None:
    succeed("config", "set", "pass_variables", "A_*,B")
    shown = succeed("config").text
    assert "pass_variables = A_*,B\n" in shown
    for line in shown.splitlines():
        name, _, value = line.partition(" = ")
        before = succeed("config", name, "--json").data[name]["value"]
        succeed("config", "set", name, value)
        assert succeed("config", name, "--json").data[name]["value"] == before, line


def test_an_undo_says_which_command_brings_the_outputs_back_too(folder: Path) -> None:
    succeed("edit", "nb.ipynb", "replace", "load", "total = 1")
    (entry,) = succeed("log", "nb.ipynb", "--json").data["entries"]
    assert "Outputs" not in succeed("undo", "nb.ipynb", "--dry-run").err
    with Workspace(folder, actor="test:ada") as workspace:
        workspace.open("nb.ipynb").edit([{"op": "clear_outputs", "cells": ["sum"]}], kind="run")
    command = f"backup nb.ipynb --restore {entry['id']}^"
    assert f"  `cellwright {command}`\n" in succeed("undo", "nb.ipynb").err
    succeed(*command.split())
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES
    succeed("edit", "nb.ipynb", "replace", "load", "total = 1")
    assert "Outputs" not in succeed("undo", "nb.ipynb").err
