"""`notebook_read`, `notebook_outputs` and `notebook_list`: what is shown, and what is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli import samples
from tests.unit.tools.support import book, outside, picture, png, stream, within

if TYPE_CHECKING:
    from pathlib import Path

    from cellwright import AsyncWorkspace
    from tests.unit.tools.conftest import Call

LARGE = [samples.code(f"c{at}", f"value_{at} = {at}\n" * 40) for at in range(60)]


def ids(text: str) -> list[str]:
    """The cells that an answer shows."""
    return [line.split(" · ")[1][3:] for line in outside(text) if line.startswith("cell ")]


# --- notebook_read -------------------------------------------------------------------------------


async def test_a_read_says_what_it_is_then_the_cells_with_index_and_id(call: Call) -> None:
    answer = await call("notebook_read", path="nb.ipynb")
    lines = outside(answer.text)
    assert lines[0] == f"nb.ipynb · revision {answer.data['revision']} · 7 cells"
    assert lines[1] == "cell 0 · id intro · markdown"
    assert lines[2] == "cell 1 · id load · code · [1] ok"
    assert lines[5] == "cell 4 · id plot · code · [4] error"
    assert lines[6] == "cell 5 · id later · code · never"
    assert "print(total)" in within(answer.text)
    assert "NameError" not in answer.text  # no outputs unless asked
    assert answer.data["total_cells"] == 7
    assert answer.data["left_out"] == 0
    assert [cell["handle"] for cell in answer.data["cells"]] == ids(answer.text)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ({"cells": [1]}, ["load"]),
        ({"cells": ["load", 4]}, ["load", "plot"]),
        ({"cells": ["1-2"]}, ["load", "sum"]),
        ({"cells": ["sum-plot"]}, ["sum", "results", "plot"]),
        ({"cells": ["5-"]}, ["later", "notes"]),
        ({"cells": ["cell-3"]}, ["results"]),
        (
            {"cells": [], "only": "all"},
            ["intro", "load", "sum", "results", "plot", "later", "notes"],
        ),
        ({"cells": "1,4"}, ["load", "plot"]),
        ({"section": "Results"}, ["results", "plot", "later", "notes"]),
        ({"section": "results", "cells": ["0-4"]}, ["results", "plot"]),
        ({"only": "errors"}, ["plot"]),
        ({"only": "stale", "cells": ["4-"]}, ["later"]),
        ({"search": "TOTAL"}, ["load", "sum"]),
        ({"search": "total", "only": "errors"}, []),
        ({"search": "nowhere"}, []),
    ],
)
async def test_a_part_is_chosen_by_cells_section_state_and_text(
    words: dict[str, object], shown: list[str], call: Call
) -> None:
    answer = await call("notebook_read", path="nb.ipynb", **words)
    assert ids(answer.text) == shown
    assert not answer.is_error
    said = f"showing {len(shown)}" if len(shown) < 7 else "7 cells"
    assert outside(answer.text)[0].endswith(said)
    assert ("No cell matches." in answer.text) == (not shown)


async def test_the_size_of_a_notebook_is_said_where_it_matters(call: Call, folder: Path) -> None:
    (folder / "nb.ipynb").write_bytes(book("x" * 1000, "y" * 1001))
    answer = await call("notebook_read", path="nb.ipynb", cells=[0])
    assert outside(answer.text)[0].endswith("2 cells, 2,001 characters of source · showing 1")


async def test_outputs_come_when_they_are_asked_for(call: Call) -> None:
    answer = await call("notebook_read", path="nb.ipynb", outputs=True, only="errors")
    assert "NameError: name 'y' is not defined" in within(answer.text)


async def test_the_text_view_has_its_markers_and_lines(call: Call) -> None:
    answer = await call("notebook_read", path="nb.ipynb", view="text", cells=[1])
    assert "# %% [code] cell:1\ntotal = 42\nprint(total)" in answer.text
    assert ": lines 5-7>" in answer.text


async def test_an_outline_has_headings_cells_and_their_lines_and_a_base_to_edit_from(
    call: Call,
) -> None:
    answer = await call("notebook_read", path="nb.ipynb", view="outline")
    text = within(answer.text)
    assert text.startswith("0 intro 1-17 # Sales\n1 load 5-7 +outputs code total = 42\n")
    assert answer.data["total_cells"] == 7
    edits = [{"op": "replace", "cell": "load", "source": "1"}]
    await call("notebook_edit", path="nb.ipynb", edits=[{"op": "insert", "source": "", "at": 0}])
    done = await call("notebook_edit", path="nb.ipynb", edits=edits, base=answer.data["revision"])
    assert not done.is_error


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        ({"cells": ["lod"]}, "CELL_NOT_FOUND", "load"),
        ({"cells": [99]}, "CELL_NOT_FOUND", "7 cells"),
        ({"section": "Result"}, "INVALID_SELECTOR", "Results"),
        ({"path": "nb.ipnb"}, "NOTEBOOK_NOT_FOUND", "`nb.ipynb`"),
        ({"path": "NB"}, "NOTEBOOK_NOT_FOUND", "`nb.ipynb`"),
        ({"path": "elsewhere/nb.ipynb"}, "NOTEBOOK_NOT_FOUND", "`nb.ipynb`"),
        ({"path": "quite-different.ipynb"}, "NOTEBOOK_NOT_FOUND", "Check the path"),
        ({"path": "../nb.ipynb"}, "OUTSIDE_ROOT", "inside"),
        ({"path": "/etc/passwd"}, "OUTSIDE_ROOT", "inside"),
    ],
)
async def test_what_is_not_there_is_an_error_with_what_was_probably_meant(
    words: dict[str, object], code: str, hint: str, call: Call
) -> None:
    answer = await call("notebook_read", **{"path": "nb.ipynb", **words})
    assert answer.is_error
    assert answer.data["code"] == code
    assert answer.text.startswith(f"error: {code}: ")
    assert hint in answer.text.splitlines()[1]


async def test_what_does_not_fit_is_said_with_the_call_that_gets_it(
    folder: Path, call: Call
) -> None:
    (folder / "nb.ipynb").write_bytes(samples.write(*LARGE))
    seen: list[str] = []
    words: dict[str, object] = {}
    for _ in range(100):
        answer = await call("notebook_read", path="nb.ipynb", max_tokens=1500, **words)
        seen += ids(answer.text)
        last = outside(answer.text)[-1]
        if not last.startswith("LEFT OUT: "):
            break
        assert answer.data["left_out"] > 0
        words = {"cells": json.loads(last.partition("cells=")[2].partition(", or")[0])}
    assert seen == [f"c{at}" for at in range(60)]


@pytest.mark.parametrize("line", ["x{} = 1\n", "x{} = '\u202e\u202e\u202e'\n"])
async def test_a_cell_that_is_too_long_is_read_in_parts(
    line: str, folder: Path, call: Call
) -> None:
    source = "".join(line.format(at) for at in range(1000))
    (folder / "nb.ipynb").write_bytes(book(source))
    read, offset = "", 0
    for _ in range(100):
        answer = await call("notebook_read", path="nb.ipynb", max_tokens=1000, offset=offset)
        part = answer.text.split(">\n", 1)[1].rpartition("\n</data")[0]
        is_cut = "offset=" in answer.text
        read += part.removesuffix("⟦…⟧") if is_cut else part
        if not is_cut:
            break
        offset = int(answer.text.rpartition("offset=")[2])
    assert read.rstrip("\n") == source.replace("\u202e", "<U+202E>").rstrip("\n")


async def test_a_broken_cell_does_not_hide_the_others(folder: Path, call: Call) -> None:
    cells = [samples.code("good", "x = 1"), {"cell_type": "zzz", "metadata": {}, "source": 5}]
    (folder / "nb.ipynb").write_bytes(samples.write(*cells))
    answer = await call("notebook_read", path="nb.ipynb")
    assert "x = 1" in within(answer.text)
    assert "broken: " in outside(answer.text)[-1]


async def test_whoever_reads_while_others_write_gets_one_state(
    folder: Path, call: Call, workspace: AsyncWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two looks at the file, somebody deletes cells; the second look wins."""
    real = type(workspace.open("nb.ipynb")).load

    async def change_and_load(here: object) -> object:
        monkeypatch.undo()
        (folder / "nb.ipynb").write_bytes(book("only"))
        return await real(here)  # type: ignore[arg-type]

    monkeypatch.setattr(type(workspace.open("nb.ipynb")), "load", change_and_load)
    answer = await call("notebook_read", path="nb.ipynb", outputs=True)
    assert ids(answer.text) == ["c0"]


# --- Pictures ------------------------------------------------------------------------------------


def is_base64(text: str) -> bool:
    return "iVBORw0KGgo" in text or "A" * 200 in text


@pytest.mark.parametrize("tool", ["notebook_read", "notebook_outputs"])
async def test_pictures_are_images_four_at_most_and_never_text(
    tool: str, folder: Path, call: Call
) -> None:
    cells = [samples.code(f"c{at}", "plot()", picture(), picture()) for at in range(4)]
    (folder / "nb.ipynb").write_bytes(samples.write(*cells))
    words = {"outputs": True} if tool == "notebook_read" else {}
    answer = await call(tool, path="nb.ipynb", **words)
    assert [image.mime for image in answer.images] == ["image/png"] * 4
    assert answer.images[0].data.startswith(b"\x89PNG")
    assert not is_base64(answer.text)
    assert not is_base64(json.dumps(answer.data))
    assert answer.text.count("image/png") >= 8  # those that are not shown are named


async def test_a_large_picture_is_scaled(folder: Path, call: Call) -> None:
    output = picture(3000, 2000)
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("c", "plot()", output)))
    (image,) = (await call("notebook_outputs", path="nb.ipynb")).images
    assert max(image.width, image.height) < 2000
    assert len(image.data) < len(png(3000, 2000))


async def test_base64_in_sources_and_prints_is_taken_out(folder: Path, call: Call) -> None:
    data = "iVBORw0KGgoAAAANSUhEUgAA9b" * 100
    cells = [
        samples.markdown("m", f"before ![](data:image/png;base64,{data}) after"),
        samples.code("c", f"x = '{data}'", stream(data)),
    ]
    (folder / "nb.ipynb").write_bytes(samples.write(*cells))
    for words in ({"outputs": True}, {"view": "text"}):
        text = (await call("notebook_read", path="nb.ipynb", **words)).text
        assert "iVBORw0KGgo" not in text
        assert (
            "before ![](data:image/png;base64,⟦2,600 characters of base64 left out⟧) after" in text
        )


# --- notebook_outputs ----------------------------------------------------------------------------


async def test_outputs_of_all_cells_or_of_some(call: Call) -> None:
    assert ids((await call("notebook_outputs", path="nb.ipynb")).text) == ["load", "sum", "plot"]
    one = await call("notebook_outputs", path="nb.ipynb", cells=["load"])
    assert "42" in within(one.text)
    none = await call("notebook_outputs", path="nb.ipynb", cells=["later"])
    assert "cell 5 · id later · 0 outputs" in none.text


async def test_long_outputs_can_be_read_to_their_end(folder: Path, call: Call) -> None:
    lines = "".join(f"row {at}\n" for at in range(5000))
    (folder / "nb.ipynb").write_bytes(samples.write(samples.code("c", "x", stream(lines))))
    answer = await call("notebook_outputs", path="nb.ipynb", cells=["c"], max_tokens=500)
    assert "LEFT OUT: " in answer.text
    read, offset = "", 1
    for _ in range(100):
        answer = await call("notebook_outputs", path="nb.ipynb", cells=["c"], offset=offset)
        read += answer.text.split(">\n", 1)[1].rpartition("\n</data")[0]
        if "offset=" not in answer.text:
            break
        offset = int(answer.text.rpartition("offset=")[2])
    assert "row 0\n" in read
    assert read.endswith("row 4999")


async def test_cut_outputs_of_many_cells_are_named_in_one_line(folder: Path, call: Call) -> None:
    lines = "".join(f"row {at}\n" for at in range(500))
    cells = [samples.code(f"c{at}", "x", stream(lines)) for at in range(8)]
    (folder / "nb.ipynb").write_bytes(samples.write(*cells))
    answer = await call("notebook_outputs", path="nb.ipynb", max_tokens=3000)
    assert outside(answer.text)[-1].startswith(
        "LEFT OUT: parts of outputs of cells [0, 1, 2, 3, 4, 5, 6, 7]; cells=[0] with offset=1"
    )
    answer = await call("notebook_read", path="nb.ipynb", max_tokens=3000, outputs=True)
    assert outside(answer.text)[-1] == (
        "LEFT OUT: parts of outputs; notebook_outputs with cells=[0, 1, 2, 3, 4, 5, 6, 7]"
    )


async def test_an_offset_needs_one_cell(call: Call) -> None:
    answer = await call("notebook_outputs", path="nb.ipynb", offset=5)
    assert answer.data["code"] == "INVALID_PARAMETERS"


async def test_an_artifact_is_read_in_parts(call: Call, workspace: AsyncWorkspace) -> None:
    text = "".join(f"{at}\n" for at in range(10_000))
    store = workspace.caller.hub.artifacts.stamp(workspace.caller.origin)
    artifact = store.put(text.encode(), mime="text/plain", name="output")
    read, offset = "", 0
    for _ in range(100):
        answer = await call("notebook_outputs", artifact=f"artifact://{artifact.id}", offset=offset)
        read += answer.text.split(">\n", 1)[1].rpartition("</data")[0]
        if answer.data["next_offset"] is None:
            break
        assert f"offset={answer.data['next_offset']}" in answer.text
        offset = answer.data["next_offset"]
    assert read.replace("\n", "") == text.replace("\n", "")


async def test_a_picture_among_the_artifacts_is_an_image(
    call: Call, workspace: AsyncWorkspace
) -> None:
    store = workspace.caller.hub.artifacts.stamp(workspace.caller.origin)
    artifact = store.put(png(), mime="image/png", name="image")
    answer = await call("notebook_outputs", artifact=artifact.id)
    assert len(answer.images) == 1
    assert not is_base64(answer.text + json.dumps(answer.data))


async def test_an_unknown_artifact_is_an_error(call: Call) -> None:
    answer = await call("notebook_outputs", artifact="artifact://nothing")
    assert answer.data["code"] == "ARTIFACT_NOT_FOUND"


# --- notebook_list -------------------------------------------------------------------------------


async def test_a_list_has_the_notebooks_that_match(folder: Path, call: Call) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "other.ipynb").write_bytes(book("x"))
    answer = await call("notebook_list")
    assert outside(answer.text) == ["2 notebooks."]
    assert "sub/other.ipynb  " in within(answer.text)
    answer = await call("notebook_list", match="OTHER")
    assert [row["path"] for row in answer.data["notebooks"]] == ["sub/other.ipynb"]


async def test_a_list_without_a_match_shows_others(folder: Path, call: Call) -> None:
    (folder / "sales-2026.ipynb").write_bytes(book("x"))
    answer = await call("notebook_list", match="sale-2026.ipynb")
    assert outside(answer.text)[0] == "0 notebooks match."
    assert "sales-2026.ipynb" in within(answer.text)


async def test_a_long_list_is_cut_and_says_so(folder: Path, call: Call) -> None:
    for at in range(100):
        (folder / f"a-notebook-with-a-long-name-{at:03}.ipynb").write_bytes(book("x"))
    answer = await call("notebook_list", max_tokens=300)
    assert "LEFT OUT: " in answer.text
    assert "narrow with match" in answer.text
    assert answer.data["total"] == 101


async def test_a_folder_without_notebooks(folder: Path, call: Call) -> None:
    (folder / "nb.ipynb").unlink()
    assert (await call("notebook_list")).text == "0 notebooks."
