"""The profile `text` as transcripts: files as text, notebooks with their markers, and `eval`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli import samples
from tests.unit.tools.support import book, outside, within

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright.tools.tool import ToolResult
    from tests.memory_kernel import MemoryKernel
    from tests.unit.tools.conftest import Call

TEXT = "".join(f"line {at}\n" for at in range(1, 1001))


def shown(answer: ToolResult) -> list[str]:
    """The lines inside the fences."""
    return [line for line in within(answer.text).split("\n") if "data " not in line]


async def read(call: Call, path: str, **words: Any) -> ToolResult:
    return await call("read", "text", path=path, **words)


async def test_a_notebook_is_text_with_a_marker_for_each_cell(call: Call) -> None:
    answer = await read(call, "nb.ipynb")
    assert outside(answer.text)[0].startswith("nb.ipynb · revision ")
    assert shown(answer)[:5] == [
        "# %% [markdown] cell:0",
        "# Sales",
        "",
        "What we sold.",
        "# %% [code] cell:1",
    ]
    assert "# %% [raw] cell:6" in shown(answer)
    assert answer.data["total_lines"] == 17


@pytest.mark.parametrize(
    ("selector", "lines"),
    [
        ("5", range(4, 9)),  # one line before and three after a single range
        ("5-7", range(4, 11)),
        ("5+2", range(4, 10)),
        ("15-", range(15, 18)),
        ("2-3,16-17", [2, 3, 16, 17]),
        ("cell=load", range(5, 8)),
        ("section=Results", range(10, 18)),
    ],
)
async def test_lines_of_a_notebook(selector: str, lines: Any, call: Call) -> None:
    whole = shown(await read(call, "nb.ipynb"))
    answer = await read(call, f"nb.ipynb:{selector}")
    assert shown(answer) == [whole[number - 1] for number in lines]


@pytest.mark.parametrize(
    ("selector", "lines"),
    [("5", range(4, 9)), ("998-", range(998, 1001)), ("1-2,10-11", [1, 2, 10, 11]), ("7:raw", range(6, 11))],
)  # fmt: skip
async def test_lines_of_another_file(selector: str, lines: Any, call: Call, folder: Path) -> None:
    (folder / "a.txt").write_text(TEXT)
    assert shown(await read(call, f"a.txt:{selector}")) == [f"line {number}" for number in lines]


async def test_raw_is_the_json_of_the_file(call: Call) -> None:
    text = within((await read(call, "nb.ipynb:raw")).text)
    assert '"nbformat": 4' in text
    assert '"What we sold."' in text


async def test_an_outline(call: Call) -> None:
    answer = await read(call, "nb.ipynb:outline")
    assert "1-17 # Sales" in shown(answer)
    assert "10-17 ## Results" in shown(answer)


async def test_a_long_file_is_cut_after_300_lines_with_the_call_that_goes_on(
    call: Call, folder: Path
) -> None:
    (folder / "a.txt").write_text(TEXT)
    answer = await read(call, "a.txt")
    assert len(shown(answer)) == 300
    assert outside(answer.text)[-1] == "LEFT OUT: 700 lines; read a.txt:301-"
    rest = await read(call, "a.txt:301-")
    assert shown(rest)[0] == "line 301"
    assert shown(rest)[-1] == "line 1000"


async def test_a_file_of_exactly_300_lines_is_whole(call: Call, folder: Path) -> None:
    (folder / "all.txt").write_text("line\n" * 300)
    answer = await read(call, "all.txt")
    assert len(shown(answer)) == 300
    assert "LEFT OUT" not in answer.text


async def test_lines_that_do_not_fit_are_left_out_by_whole_lines(call: Call, folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"{'x' * 90} {at}\n" for at in range(1, 101)))
    answer = await read(call, "a.txt:1-100", max_tokens=500)
    next_ = int(outside(answer.text)[-1].rpartition(":")[2].rstrip("-"))
    assert shown(answer)[-1].endswith(f"x {next_ - 1}")


async def test_a_file_whose_name_has_a_colon_wins_over_a_selector(call: Call, folder: Path) -> None:
    (folder / "a.txt").write_text("x\n")
    (folder / "a.txt:1").write_text("the other\n")
    assert shown(await read(call, "a.txt:1")) == ["the other"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nothing.txt", "NOTEBOOK_NOT_FOUND"),
        ("nothing.ipynb", "NOTEBOOK_NOT_FOUND"),
        ("nb.ipynb:0", "INVALID_SELECTOR"),
        ("nb.ipynb:9-2", "INVALID_SELECTOR"),
        ("nb.ipynb:3+0", "INVALID_SELECTOR"),
        ("nb.ipynb:99", "INVALID_SELECTOR"),
        ("nb.ipynb:cell=lod", "CELL_NOT_FOUND"),
        ("bytes.bin", "UNREADABLE_FILE"),
        ("broken.ipynb", "INVALID_JSON"),
        ("../x.txt", "OUTSIDE_ROOT"),
        ("/etc/passwd", "OUTSIDE_ROOT"),
    ],
)
async def test_what_cannot_be_read(path: str, code: str, call: Call, folder: Path) -> None:
    (folder / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    (folder / "broken.ipynb").write_bytes(b"{")
    (folder / "sub").mkdir()
    answer = await read(call, path)
    assert answer.data["code"] == code


# --- edit ----------------------------------------------------------------------------------------


async def edit(call: Call, path: str, *edits: tuple[str, str], **more: Any) -> ToolResult:
    found = [{"old_text": old, "new_text": new, **more} for old, new in edits]
    return await call("edit", "text", path=path, edits=found)


def cells(folder: Path, name: str = "nb.ipynb") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / name).read_bytes())["cells"]
    return found


async def test_a_text_of_a_notebook_is_replaced_and_all_else_stays(
    call: Call, folder: Path
) -> None:
    answer = await edit(call, "nb.ipynb", ("total = 42", "total = 43"), ("## Results", "## End"))
    assert not answer.is_error, answer.text
    assert "+total = 43" in within(answer.text)
    before = json.loads(samples.SALES)["cells"]
    before[1]["source"][0] = "total = 43\n"
    before[3]["source"] = ["## End"]
    assert cells(folder) == before


async def test_cells_are_added_and_removed_by_their_markers(call: Call, folder: Path) -> None:
    await edit(call, "nb.ipynb", ("# %% [code] cell:2\ntotal\n", "# %% [code]\nnew\n"))
    assert [cell["source"] for cell in cells(folder)][2] == ["new"]
    assert "sum" not in [cell["id"] for cell in cells(folder)]


async def test_a_missing_notebook_begins_empty(call: Call, folder: Path) -> None:
    answer = await edit(call, "new.ipynb", ("", "# %% [markdown]\n# T\n# %% [code]\n1"))
    assert not answer.is_error, answer.text
    assert [cell["cell_type"] for cell in cells(folder, "new.ipynb")] == ["markdown", "code"]
    whole = json.loads((folder / "new.ipynb").read_bytes())
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)


@pytest.mark.parametrize(
    ("old", "part"),
    [
        ("nowhere", "does not occur"),
        ("total", "occurs 3 times, first in line 6"),
        ("\ntotal", "occurs 2 times, first in line "),
        ("", "old_text is empty"),
    ],
)
async def test_a_text_must_occur_once(old: str, part: str, call: Call, folder: Path) -> None:
    answer = await edit(call, "nb.ipynb", ("## Results", "## X"), (old, "x"))
    assert answer.data["code"] == "INVALID_EDIT"
    assert part in answer.text
    assert answer.text.startswith("error: INVALID_EDIT: Edit 1: ")
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_all_places_if_asked(call: Call, folder: Path) -> None:
    await edit(call, "nb.ipynb", ("total", "sum_"), all=True)
    assert b"total" not in (folder / "nb.ipynb").read_bytes()


async def test_text_before_the_first_marker_is_refused(call: Call, folder: Path) -> None:
    answer = await edit(call, "nb.ipynb", ("# %% [markdown] cell:0\n", "oops\n"))
    assert answer.data["code"] == "INVALID_TEXT"
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_another_file_is_edited_as_it_is(call: Call, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    answer = await edit(call, "a.txt", ("two", "three"))
    assert outside(answer.text) == ["Wrote a.txt: 12 bytes."]
    assert len(answer.data["change"]) == 8
    assert (folder / "a.txt").read_bytes() == b"one\r\nthree\r\n"


# --- write ---------------------------------------------------------------------------------------


async def write(call: Call, path: str, content: str, **more: Any) -> ToolResult:
    return await call("write", "text", path=path, content=content, **more)


async def test_what_was_read_can_be_written_back_and_changes_nothing(
    call: Call, folder: Path
) -> None:
    text = "\n".join(shown(await read(call, "nb.ipynb"))) + "\n"
    answer = await write(call, "nb.ipynb", text)
    assert "has that content already" in answer.text
    assert (folder / "nb.ipynb").read_bytes() == samples.SALES


async def test_a_notebook_is_written_from_its_text(call: Call, folder: Path) -> None:
    text = "# %% [code] cell:1\ntotal = 1\n# %% [markdown] cell:0\n# Sales\n\nWhat we sold.\n"
    assert not (await write(call, "nb.ipynb", text)).is_error
    assert [cell["id"] for cell in cells(folder)] == ["load", "intro"]
    assert cells(folder)[0]["outputs"] == [samples.STREAM]
    assert not (await write(call, "nb.ipynb", "")).is_error
    assert cells(folder) == []


async def test_a_base_that_others_have_overtaken_is_a_conflict(call: Call) -> None:
    base = (await read(call, "nb.ipynb")).data["revision"]
    text = "\n".join(shown(await read(call, "nb.ipynb")))
    await edit(call, "nb.ipynb", ("total = 42", "total = 1"))
    answer = await write(call, "nb.ipynb", text.replace("total = 42", "total = 2"), base=base)
    assert answer.data["code"] == "CONFLICT"


HIDDEN = "a \u202e b\nsoft\xadhyphen ⚠️ 👩\u200d💻\nplain"
DATA = "iVBORw0KGgo" + "Ab1+" * 300


async def test_what_is_hidden_in_a_text_survives_reading_and_writing(
    call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book(HIDDEN, f"x = '{DATA}'", "y = 1"))
    before = (folder / "nb.ipynb").read_bytes()
    text = "\n".join(shown(await read(call, "nb.ipynb")))
    assert "\u202e" not in text
    assert DATA not in text
    assert "⚠️ 👩\u200d💻" in text
    await write(call, "nb.ipynb", text + "\n")
    assert (folder / "nb.ipynb").read_bytes() == before
    await write(call, "nb.ipynb", text.replace("plain", "simple").replace("y = 1", "y = 2"))
    found = ["".join(cell["source"]) for cell in cells(folder)]
    assert found == [HIDDEN.replace("plain", "simple"), f"x = '{DATA}'", "y = 2"]


async def test_what_is_hidden_is_found_as_it_was_shown(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book(HIDDEN))
    answer = await edit(call, "nb.ipynb", ("a <U+202E> b\n", "a <U+202E> b\nand more\n"))
    assert not answer.is_error, answer.text
    assert "".join(cells(folder)[0]["source"]) == HIDDEN.replace("b\n", "b\nand more\n")


async def test_base64_that_was_left_out_is_not_lost_by_writing(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book(f"x = '{DATA}'", "y = 1"))
    before = (folder / "nb.ipynb").read_bytes()
    text = "\n".join(shown(await read(call, "nb.ipynb")))
    answer = await write(call, "nb.ipynb", text.replace("x = ", "z = "))
    assert answer.data["code"] == "INVALID_TEXT"
    assert (folder / "nb.ipynb").read_bytes() == before
    assert not (await edit(call, "nb.ipynb", ("x = ", "z = "))).is_error
    assert DATA.encode() in (folder / "nb.ipynb").read_bytes()


async def test_other_files_are_made_and_replaced(call: Call, folder: Path) -> None:
    answer = await write(call, "sub/deep/a.txt", "one\n")
    assert answer.text == "Made sub/deep/a.txt: 4 bytes."
    assert answer.data["created"]
    answer = await write(call, "sub/deep/a.txt", "two\n")
    assert "+two" in within(answer.text)
    assert (folder / "sub" / "deep" / "a.txt").read_text() == "two\n"
    assert sorted(path.name for path in (folder / "sub" / "deep").iterdir()) == ["a.txt"]


async def test_a_file_with_cr_lf_keeps_its_line_ends(call: Call, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    text = "\n".join(shown(await read(call, "a.txt"))) + "\n"
    await write(call, "a.txt", text)
    assert (folder / "a.txt").read_bytes() == b"one\r\ntwo\r\n"
    await write(call, "a.txt", text.replace("two", "three\nfour"))
    assert (folder / "a.txt").read_bytes() == b"one\r\nthree\r\nfour\r\n"


@pytest.mark.parametrize("path", ["../x.txt", "/tmp/x.txt", "link/x.txt", "../x.ipynb"])  # noqa: S108
async def test_nothing_is_written_outside_the_root(path: str, call: Call, folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent)
    answer = await write(call, path, "x")
    assert answer.data["code"] == "OUTSIDE_ROOT"
    assert not (folder.parent / "x.txt").exists()


async def test_the_file_tools_start_no_kernel(call: Call, kernels: list[MemoryKernel]) -> None:
    await read(call, "nb.ipynb")
    await edit(call, "nb.ipynb", ("total = 42", "total = 43"))
    await write(call, "nb.ipynb", "# %% [code]\nprint 1")
    assert kernels == []


# --- eval ----------------------------------------------------------------------------------------


async def test_eval_speaks_the_words_of_the_profile(call: Call) -> None:
    words = [{"language": "py", "code": "set x 1"}, {"language": "py", "code": "get y"}]
    answer = await call("eval", "text", cells=[*words, {"code": "print z"}])
    lines = outside(answer.text)
    assert lines[0] == "FAILED at cell 1: error. NameError."
    assert lines[1].startswith("cell 0 · complete · ")
    assert lines[2].startswith("cell 1 · error · ")
    assert lines[3] == "cell 2 · pending"


async def test_a_cell_has_its_own_reset(call: Call) -> None:
    cells = [{"code": "set x 1"}, {"code": "get x", "reset": True}]
    answer = await call("eval", "text", cells=cells)
    assert "NameError" in answer.text


async def test_a_notebook_is_read_its_code_is_run_and_what_came_of_it_is_written_back(
    call: Call, folder: Path
) -> None:
    (folder / "nb.ipynb").write_bytes(book("set x 42", "get x"))
    lines = shown(await read(call, "nb.ipynb"))
    cells_ = [{"language": "py", "code": line} for line in lines if not line.startswith("# %%")]
    answer = await call("eval", "text", cells=cells_)
    assert "42" in within(answer.text)
    await edit(call, "nb.ipynb", ("get x", "get x\n# it was 42"))
    assert cells(folder)[1]["source"] == ["get x\n", "# it was 42"]


async def test_what_eval_leaves_out_is_read_by_the_call_that_it_names(call: Call) -> None:
    """Output beyond what is kept in memory is an artifact, and `read` pages through it."""
    code = "\n".join(f"print line {number} {'x' * 60}" for number in range(2000))
    answer = await call("eval", "text", cells=[{"code": code}])
    (left_out,) = [line for line in outside(answer.text) if "read with path=" in line]
    path = left_out.partition("read with path=")[2].split()[0].rstrip(".")
    first = await call("read", "text", path=path)
    assert not first.is_error, first.text
    assert outside(first.text)[0] == f"{path} · 2,000 lines"
    assert "line 0 x" in first.text
    assert f"read {path}:" in first.text
    last = await call("read", "text", path=f"{path}:1999-")
    assert "line 1999 x" in last.text
    assert "line 1997 x" not in last.text
    asked = await call("read", "text", path=f"{path}:1-350")  # more than a page, and asked for
    assert "line 349 x" in asked.text
    most = await call("read", "text", path=f"{path}:1-")
    assert f"; read {path}:" in most.text  # as it can be typed
    gone = await call("read", "text", path="artifact://zzzzzzzzzz")
    assert gone.data["code"] == "ARTIFACT_NOT_FOUND"


@pytest.mark.parametrize(
    ("profile", "tool"), [("text", "eval"), ("notebook", "python"), ("native", "eval")]
)
async def test_what_is_cut_and_kept_nowhere_is_had_by_what_the_tool_can_do(
    profile: str, tool: str, call: Call
) -> None:
    """Less than an artifact is made for, and more than fits into an answer."""
    code = "\n".join(f"print {number} {'word ' * 10}" for number in range(700))
    for cells in ([{"code": code}], [{"code": code}] * 3):
        answer = await call(tool, profile, cells=cells)
        left_out = " ".join(line for line in outside(answer.text) if "LEFT OUT: " in line)
        assert "parts of 700 lines; " in left_out
        assert "print less" in left_out
        assert ("max_tokens" in left_out) == (profile == "native")
    long = json.dumps({"a": "x" * 60_000})
    answer = await call(tool, profile, cells=[{"code": f"show application/json {long}"}])
    assert "characters of JSON; print the part that you need" in answer.text


async def test_a_reset_is_of_a_cell_and_not_of_the_call(call: Call) -> None:
    await call("eval", "text", cells=[{"code": "set x 1"}])
    answer = await call("eval", "text", cells=[{"code": "get x"}], reset=True)
    assert answer.is_error
    assert "reset" in answer.text
    both = [{"code": "get x"}, {"code": "get x", "reset": True}]
    answer = await call("eval", "text", cells=both)
    assert [row["status"] for row in answer.data["cells"]] == ["ok", "error"]


async def test_a_folder_is_listed_inside_the_root_only(folder: Path, profile: Any) -> None:
    read = profile("text")
    (folder / "data").mkdir()
    (folder / "data" / "a.csv").write_text("1,2\n")
    (folder / "data" / ".secret").write_text("x")
    (folder / "data" / "out").symlink_to(folder.parent)
    found = await read("read", path="data")
    assert found.data["entries"] == ["data/a.csv"]
    assert "data/a.csv  4 bytes" in found.text
    assert "data/" in (await read("read", path=".")).data["entries"]
    for path in ("..", "data/out", "/"):
        refused = await read("read", path=path)
        assert (refused.is_error, refused.data["code"]) == (True, "OUTSIDE_ROOT")
