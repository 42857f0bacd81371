"""Notebooks of every format version: edited as they are, or read and upgraded when asked."""

from __future__ import annotations

import json
import re
from typing import Any

import nbformat
import pytest

from cellwright import CodeCell, MarkdownCell, Notebook, RawCell, Result, Stream
from cellwright.errors import CellwrightError, InvalidNotebook, NeedsUpgrade, UnsupportedVersion
from tests.unit.document.samples import (
    MINIFIED,
    STREAM,
    STYLES,
    book,
    code,
    ids,
    markdown,
    raw,
    refusal,
    sources,
    values,
    write,
)

THREE = b"""{
 "metadata": {
  "name": "old"
 },
 "nbformat": 3,
 "nbformat_minor": 0,
 "worksheets": [
  {
   "cells": [
    {
     "cell_type": "heading",
     "level": 2,
     "metadata": {},
     "source": ["Title"]
    },
    {
     "cell_type": "code",
     "collapsed": false,
     "input": ["print(1)\\n", "2"],
     "language": "python",
     "metadata": {},
     "outputs": [
      {
       "output_type": "stream",
       "stream": "stdout",
       "text": "1\\n"
      },
      {
       "output_type": "pyout",
       "prompt_number": 4,
       "text": ["2"],
       "metadata": {}
      }
     ],
     "prompt_number": 4
    },
    {
     "cell_type": "markdown",
     "metadata": {"k": 1},
     "source": "text"
    },
    {
     "cell_type": "raw",
     "metadata": {},
     "source": "raw"
    }
   ],
   "metadata": {}
  }
 ]
}
"""
TWO = json.dumps(
    {
        "metadata": {"name": "older"},
        "nbformat": 2,
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "code", "input": "x", "language": "python", "outputs": []},
                    {"cell_type": "markdown", "source": "y"},
                ]
            }
        ],
    }
).encode()


def json_of(data: bytes) -> Any:
    return json.loads(data)


# --- 4.0 to 4.4: as they are ---------------------------------------------------------------------

OLD_CELLS = (code("a\nb", outputs=[STREAM], execution_count=1), markdown("c"), raw("d"))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("minor", range(5))
def test_a_notebook_without_ids_is_edited_as_it_is(minor: int, style: dict[str, Any]) -> None:
    notebook = book(*OLD_CELLS, minor=minor, style=style)
    assert notebook.version == f"4.{minor}"
    assert not notebook.needs_upgrade
    assert [cell.handle for cell in notebook.cells] == ["cell-0", "cell-1", "cell-2"]

    notebook.apply(
        [
            {"op": "replace", "cell": "cell-1", "source": "C"},
            {"op": "insert", "source": "new"},
            {"op": "split", "cell": 0, "line": 1},
            {"op": "set_type", "cell": "cell-2", "type": "code"},
            {"op": "splice", "start": 0, "cells": [{**code("spliced"), "id": "dropped"}]},
        ]
    )

    expected = [
        code("spliced"),
        code("a", outputs=[STREAM], execution_count=1),
        code("b"),
        markdown("C"),
        code("d"),
        code("new"),
    ]
    assert notebook.to_bytes() == write(*expected, minor=minor, style=style)
    assert notebook.version == f"4.{minor}"
    assert notebook.validate() is None


def test_ids_cannot_be_asked_for_where_the_format_has_none() -> None:
    assert refusal(book(minor=4), {"op": "insert", "id": "new"}).code == "INVALID_EDIT"


def test_ids_that_an_old_file_has_all_the_same_name_its_cells() -> None:
    notebook = book(code("a", "aa"), code("b"), minor=4)
    assert [cell.handle for cell in notebook.cells] == ["aa", "cell-1"]
    notebook.apply({"op": "replace", "cell": "aa", "source": "A"})
    assert notebook.to_bytes() == write(code("A", "aa"), code("b"), minor=4)


# --- Upgrades ------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("minor", range(5))
def test_an_upgrade_adds_ids_and_the_version_and_nothing_else(
    minor: int, style: dict[str, Any]
) -> None:
    notebook = book(*OLD_CELLS, minor=minor, metadata={"k": 1}, style=style)

    change = notebook.upgrade()

    assert change
    assert notebook.version == "4.5"
    cells = [{**cell, "id": id_} for cell, id_ in zip(OLD_CELLS, ids(notebook), strict=True)]
    assert notebook.to_bytes() == write(*cells, metadata={"k": 1}, style=style)
    assert all(re.fullmatch("[0-9a-f]{8}", id_ or "") for id_ in ids(notebook))
    assert notebook.validate() is None
    notebook.apply({"op": "insert", "id": "new"})
    assert ids(notebook)[-1] == "new"


def test_an_upgrade_of_what_is_up_to_date_changes_nothing() -> None:
    for data in (write(code("a", "aa")), write(code("a", "aa"), minor=7)):
        notebook = Notebook(data)
        assert not notebook.upgrade()
        assert notebook.to_bytes() == data


def test_an_upgrade_mends_ids_that_are_missing_doubled_or_invalid() -> None:
    cells = [code("a", "same"), code("b", "same"), code("c", "a b"), code("d"), code("e", "same")]
    notebook = book(*cells, code("f", "ok"), {"cell_type": "code"})

    notebook.upgrade()

    found = ids(notebook)
    assert found[0] == "same"
    assert found[5:] == ["ok", None]
    assert len(set(found)) == 7
    assert sources(notebook) == ["a", "b", "c", "d", "e", "f", ""]


def test_an_upgrade_of_a_file_that_names_no_minor_version_names_it() -> None:
    notebook = Notebook(b'{"cells": [], "metadata": {}, "nbformat": 4}')
    assert notebook.version == "4.0"
    notebook.upgrade()
    assert notebook.to_bytes() == (
        b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    )
    assert notebook.version == "4.5"


def test_undoing_an_upgrade_gives_the_old_notebook_back() -> None:
    data = write(*OLD_CELLS, minor=2)
    notebook = Notebook(data)
    change = notebook.upgrade()

    notebook.apply(change.inverse())

    assert notebook.to_bytes() == data
    assert notebook.version == "4.2"
    notebook.apply({"op": "insert", "source": "new"})
    assert values(notebook)[-1] == code("new")


def test_undoing_an_edit_after_an_upgrade_keeps_the_upgrade() -> None:
    notebook = book(*OLD_CELLS, minor=4)
    deleted = notebook.apply({"op": "delete", "cell": 1})
    notebook.upgrade()

    notebook.apply(deleted.inverse())

    assert notebook.version == "4.5"
    assert sources(notebook) == ["a\nb", "c", "d"]
    assert None not in ids(notebook)
    assert notebook.validate() is None


# --- 2 and 3: read through nbformat's conversion -------------------------------------------------


def test_a_notebook_of_version_3_is_read_as_if_it_were_4() -> None:
    notebook = Notebook(THREE)
    assert (notebook.version, notebook.needs_upgrade) == ("3.0", True)
    assert [type(cell) for cell in notebook.cells] == [
        MarkdownCell,
        CodeCell,
        MarkdownCell,
        RawCell,
    ]
    assert sources(notebook) == ["## Title", "print(1)\n2", "text", "raw"]
    assert [cell.handle for cell in notebook.cells] == ["cell-0", "cell-1", "cell-2", "cell-3"]
    cell = notebook.cells[1]
    assert cell.execution_count == 4
    assert cell.outputs == (Stream("stdout", "1\n"), Result({"text/plain": "2"}, {}, 4))
    assert notebook.cells[2].metadata == {"k": 1}


def test_a_notebook_of_version_2_is_read_as_if_it_were_4() -> None:
    notebook = Notebook(TWO)
    assert (notebook.nbformat, notebook.needs_upgrade) == (2, True)
    assert [(cell.type, cell.source) for cell in notebook.cells] == [
        ("code", "x"),
        ("markdown", "y"),
    ]


@pytest.mark.parametrize("data", [TWO, THREE, b"\xef\xbb\xbf" + THREE, b"\n " + TWO + b"\n\n"])
def test_an_old_notebook_that_is_not_upgraded_keeps_every_byte(data: bytes) -> None:
    notebook = Notebook(data)
    assert notebook.to_bytes() == data
    assert b"".join(notebook.parts()) == data


@pytest.mark.parametrize("data", [TWO, THREE], ids=["2", "3"])
@pytest.mark.parametrize(
    "edits",
    [
        [],
        {"op": "replace", "cell": 0, "source": "x"},
        {"op": "insert"},
        {"op": "set_metadata", "metadata": {"k": 1}},
        {"op": "nonsense"},
    ],
    ids=repr,
)
def test_an_old_notebook_is_never_edited_in_place(data: bytes, edits: Any) -> None:
    notebook = Notebook(data)
    assert sources(notebook)[-1] in ("y", "raw")  # it can be read, as if it were new
    error = refusal(notebook, edits)
    assert isinstance(error, NeedsUpgrade)
    assert (error.code, error.version[0]) == ("NEEDS_UPGRADE", str(json_of(data)["nbformat"]))


def test_an_old_notebook_that_was_upgraded_is_edited_like_any_other() -> None:
    notebook = Notebook(THREE)

    change = notebook.upgrade()

    assert change
    assert (notebook.version, notebook.needs_upgrade) == ("4.5", False)
    assert notebook.validate() is None
    found = ids(notebook)
    assert all(re.fullmatch("[0-9a-f]{8}", id_ or "") for id_ in found)
    assert len(set(found)) == 4

    notebook.apply({"op": "replace", "cell": 0, "source": "# New"})

    converted = nbformat.convert(nbformat.reads(THREE.decode(), nbformat.NO_CONVERT), 4)
    converted = json_of(json.dumps(converted).encode())
    converted |= {"nbformat_minor": 5, "metadata": {}}  # orig_nbformat is never written to a file
    for cell, id_ in zip(converted["cells"], found, strict=True):
        cell["id"] = id_
    converted["cells"][0]["source"] = "# New"
    joined = json_of(notebook.to_bytes())
    for cell in joined["cells"]:
        if isinstance(cell["source"], list):
            cell["source"] = "".join(cell["source"])
    assert joined == converted
    assert Notebook(notebook.to_bytes()).revision == notebook.revision


def test_an_upgraded_notebook_is_written_as_jupyter_writes_one() -> None:
    notebook = Notebook(THREE)
    notebook.upgrade()
    again = nbformat.reads(notebook.to_bytes().decode(), 4)
    expected = json.dumps(again, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert json_of(notebook.to_bytes()) == json_of(expected.encode())
    assert notebook.to_bytes().startswith(b'{\n "cells": [\n  {\n   "cell_type": "markdown",\n')


def test_undoing_the_upgrade_of_an_old_notebook_gives_its_bytes_back() -> None:
    notebook = Notebook(THREE)
    change = notebook.upgrade()
    notebook.apply(change.inverse())
    assert notebook.to_bytes() == THREE
    assert (notebook.version, notebook.needs_upgrade) == ("3.0", True)


@pytest.mark.parametrize(
    "data",
    [
        b'{"nbformat":3,"nbformat_minor":0}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[]}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[{}]}',
        b'{"nbformat":2,"metadata":{}}',
    ],
)
def test_an_old_notebook_with_nothing_in_it_is_read(data: bytes) -> None:
    notebook = Notebook(data)
    assert len(notebook.cells) == 0
    assert notebook.to_bytes() == data


@pytest.mark.parametrize(
    "data",
    [
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":5}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[5]}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[{"cells":5}]}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[{"cells":[5]}]}',
        b'{"nbformat":3,"nbformat_minor":0,"worksheets":[{"cells":[{}]}]}',
        b'{"nbformat":2,"worksheets":[{"cells":[{"cell_type":"code"}]}]}',
    ],
)
def test_an_old_notebook_that_is_broken_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(InvalidNotebook) as caught:
        Notebook(data)
    assert caught.value.code == "INVALID_NOTEBOOK"
    assert "\n" not in str(caught.value)


# --- Versions of the future ----------------------------------------------------------------------


@pytest.mark.parametrize("minor", [6, 99, 999_999_999])
def test_an_unknown_minor_version_is_edited_like_the_newest_known(minor: int) -> None:
    cells = (code("a", "aa", x_new=1), markdown("b", "bb"))
    notebook = book(*cells, minor=minor, style=MINIFIED)
    assert notebook.version == f"4.{minor}"

    notebook.apply(
        [{"op": "replace", "cell": "aa", "source": "A"}, {"op": "insert", "source": "c"}]
    )

    new = code("c", notebook.cells[2].id)
    expected = [code("A", "aa", x_new=1), markdown("b", "bb"), new]
    assert notebook.to_bytes() == write(*expected, minor=minor, style=MINIFIED)
    assert not notebook.upgrade()


@pytest.mark.parametrize(
    ("major", "minor", "accepted"),
    [
        *[(4, minor, True) for minor in (0, 4, 5, 6, 99, 999_999_999)],
        *[(major, minor, False) for major in (0, 1, 5, 6, 99, 999_999_999) for minor in (0, 5)],
    ],
)
def test_an_unknown_version_is_accepted_exactly_or_refused_by_name(
    major: int, minor: int, accepted: bool
) -> None:
    value = {"cells": [], "metadata": {}, "nbformat": major, "nbformat_minor": minor, "x": 1}
    data = json.dumps(value).encode()
    if accepted:
        assert Notebook(data).version == f"{major}.{minor}"
        assert Notebook(data).to_bytes() == data
        return
    with pytest.raises(UnsupportedVersion) as caught:
        Notebook(data)
    error = caught.value
    assert (error.code, error.version) == ("UNSUPPORTED_VERSION", f"{major}.{minor}")


@pytest.mark.parametrize(
    "version",
    [
        b'"nbformat":4.0',
        b'"nbformat":"4"',
        b'"nbformat":null',
        b'"nbformat":true',
        b'"nbformat":[4]',
        b'"nbformat":-4',
        b'"nbformat":4e0',
        b'"nbformat":4,"nbformat_minor":"5"',
        b'"nbformat":4,"nbformat_minor":-1',
        b'"nbformat":4,"nbformat_minor":5.0',
        b'"nbformat":4,"nbformat_minor":' + b"9" * 5000,
        b'"metadata":{}',
    ],
    ids=repr,
)
def test_a_version_that_is_no_pair_of_integers_is_refused(version: bytes) -> None:
    with pytest.raises(CellwrightError) as caught:
        Notebook(b'{"cells":[],' + version + b"}")
    assert caught.value.code == "INVALID_NOTEBOOK"
    assert "\n" not in str(caught.value)
